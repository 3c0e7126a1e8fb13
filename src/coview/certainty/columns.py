"""The columns of samples: what a model finds for each sample, as label files, summaries and annotated data have it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from sklearn.utils import gen_batches

from coview.core.assign import Labels
from coview.data.view import Array
from coview.data.views import Views
from coview.errors import InputError, InputTypeError
from coview.model.model import Model, concatenated
from coview.registry import CLUSTER_COLUMN, LABEL_COLUMNS, check_name

Columns: TypeAlias = dict[str, Array | None]  # a value for each sample, by name; None if there are none
BLOCK_ROWS = 4096  # that are taken at a time, because views may be files
_DECIMALS = 6  # contributions are rounded before they are compared, so that equal views are a tie in any batch


@dataclass(frozen=True)
class SampleColumns:
    """What a model finds for each sample, arrays of shape (n_samples,); None if it has no such values."""

    labels: Labels
    memberships: Array | None = None  # in the cluster of the label
    second_clusters: Labels | None = None  # of the second largest membership; None for a single cluster
    novelties: Array | None = None  # NaN if no training sample has a view of the sample
    # By view, NaN for samples that lack it: how usual the sample is, and the contribution of the view to the label, if
    # there are several views and clusters.
    usualness: Mapping[str, Array] = field(default_factory=dict)
    contributions: Mapping[str, Array] = field(default_factory=dict)

    @property
    def best_views(self) -> Array | None:
        """The view that contributes most to each label, the first of equal ones."""
        if not self.contributions:
            return None
        table = np.round(np.array(list(self.contributions.values())), _DECIMALS)
        return np.array(list(self.contributions))[np.nan_to_num(table, nan=-np.inf).argmax(axis=0)]

    def take(self, rows: Any) -> SampleColumns:
        """Return the columns of some of the samples."""

        def some(values: Any) -> Any:
            if isinstance(values, Mapping):
                return {name: each[rows] for name, each in values.items()}
            return None if values is None else values[rows]

        return SampleColumns(**{name: some(values) for name, values in vars(self).items()})

    def in_file(
        self, wanted: Collection[str] = tuple(LABEL_COLUMNS), stability: Sequence[float | None] | None = None
    ) -> Columns:
        """Return the wanted `LABEL_COLUMNS`, with the values of `stability` if they are known."""
        found: Columns = {
            CLUSTER_COLUMN: self.labels,
            "membership": self.memberships,
            "second_cluster": self.second_clusters,
            "novelty": self.novelties,
            "best_view": self.best_views,
            "stability": None if stability is None else np.array(stability, dtype=float),
        }
        return {name: found[name] for name in LABEL_COLUMNS if name in wanted}


def labels_of(estimator: Any, views: Views) -> tuple[Labels, bool]:
    """Return the clusters of validated samples, and whether they are the training samples; others are predicted."""
    model: Model = estimator.model_
    if model.is_of(views):
        return model.labels, True
    if model.predictor is None:
        raise InputError(
            f"{type(estimator).__name__} cannot label new samples, and these {views.n_samples} are not the "
            f"{len(model.labels)} training samples; give the views of the fit"
        )
    return model.predict(views), False


def sample_columns(
    model: Model, views: Views, labels: Labels | None = None, wanted: Collection[str] = tuple(LABEL_COLUMNS)
) -> SampleColumns:
    """Return the columns of validated samples, those that the wanted `LABEL_COLUMNS` need.

    The labels are those of training samples, if these are the samples; by default they are predicted.
    """
    memberships = second = novelties = None
    table = np.array(model.membership(views)) if model.can("membership") and _OF_MEMBERSHIP & {*wanted} else None
    if labels is None:
        labels = model.predict(views) if table is None else table.argmax(axis=1)
    if table is not None:
        own = np.arange(len(labels)), labels
        memberships = table[own]
        table[own] = -1.0
        second = table.argmax(axis=1) if table.shape[1] > 1 else None
    usualness = model.usualness(views) if model.can("usualness") and "novelty" in wanted else {}
    if usualness:
        novelties = 1 - model.joint_usualness(usualness)
    several = model.can("contributions") and len(model.seen_names) > 1 and model.n_clusters > 1
    contributions = model.contributions(views) if several and "best_view" in wanted else {}
    return SampleColumns(labels, memberships, second, novelties, usualness, contributions)


_OF_MEMBERSHIP = {"membership", "second_cluster"}


def columns_of_rows(model: Model, views: Views, labels: Labels, rows: Array) -> SampleColumns:
    """Return the columns of some of the samples, given the labels of all."""
    parts = [rows[part] for part in gen_batches(len(rows), BLOCK_ROWS)]
    blocks = [vars(sample_columns(model, views.take(part), labels[part])) for part in parts]
    known = [name for name, values in blocks[0].items() if values is not None]
    return SampleColumns(**{name: concatenated([block[name] for block in blocks]) for name in known})


def check_columns(parameter: str, wanted: Any) -> tuple[str, ...]:
    """Return the names of columns of new samples, all by default; the clusters are always among them."""
    known = tuple(name for name in LABEL_COLUMNS if name != "stability")  # which is a value of training samples
    if wanted is None:
        return known
    if isinstance(wanted, str):
        raise InputTypeError(f"{parameter}={wanted!r}: expected a list of columns, such as [{wanted!r}]")
    chosen = {check_name(parameter, name, known) for name in wanted} | {CLUSTER_COLUMN}
    return tuple(name for name in known if name in chosen)
