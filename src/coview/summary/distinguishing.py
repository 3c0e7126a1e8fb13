"""The columns of the data that distinguish the clusters: those of largest effect, and the constant ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from coview.data.view import Matrix
from coview.kernels import Precomputed
from coview.preprocess.impute import FillMedian
from coview.summary.clustering import Clustering
from coview.summary.effects import effects, effects_of_columns
from coview.summary.plain import plain_record
from coview.summary.values import Feature, FeatureMeans

FEATURES = 10
MEANS = 40  # columns in the table of standardised means


class ClusterFeatures(NamedTuple):
    """The features of each cluster, the means of the best of them, and notes on the columns of each view."""

    by_cluster: list[tuple[Feature, ...]]
    means: FeatureMeans | None
    notes: dict[str, tuple[str, ...]]


def distinguishing_features(found: Clustering) -> ClusterFeatures:
    """Return the columns of largest effect for each cluster, in the units of the data."""
    largest: list[list[tuple[float, str, int, Feature]]] = [[] for _ in found.names]
    notes: dict[str, tuple[str, ...]] = {}
    for view in found.views:
        encoding, constant = found.model.encodings.get(view), list[int]()
        notes[view] = (encoding.in_words,) if encoding else ()
        if isinstance(found.model.kernels.get(view), Precomputed):
            notes[view] = ("The columns are similarities to samples, not features.",)
            continue
        if not found.views.n_present(view):
            continue
        for part in effects(_in_units(found, view), found.numbers_with(view), found.n_clusters):
            constant += part.columns[part.constant].tolist()
            for c, candidates in enumerate(largest):
                order = np.argsort(-abs(part.values[c]), kind="stable")[:FEATURES]
                for j in order[part.values[c, order] != 0]:
                    column = int(part.columns[j])
                    feature = plain_record(
                        Feature,
                        view=view,
                        name=_column_name(found, view, column),
                        effect=part.values[c, j],
                        inside=part.inside[c, j],
                        outside=part.outside[c, j],
                    )
                    candidates.append((-abs(feature.effect), view, column, feature))
        if constant:
            named = ", ".join(_column_name(found, view, column) for column in constant[:5])
            more = f" and {len(constant) - 5} more" if len(constant) > 5 else ""
            n_columns = found.views[view].shape[1]
            notes[view] += (f"{len(constant)} of {n_columns} columns are constant: {named}{more}",)
    best = [sorted(candidates, key=lambda each: each[0])[:FEATURES] for candidates in largest]
    means = _feature_means(found, [[(view, column) for _, view, column, _ in ranked] for ranked in best])
    return ClusterFeatures([tuple(feature for *_, feature in ranked) for ranked in best], means, notes)


def _feature_means(found: Clustering, ranked: Sequence[Sequence[tuple[str, int]]]) -> FeatureMeans | None:
    """Return the means of the best columns of each cluster, as many of each as fit, in the order of the clusters."""
    chosen, rank = set[tuple[str, int]](), 0
    while len(chosen) < MEANS and rank < FEATURES:  # the best of every cluster, then the second best, and so on
        chosen |= {some[rank] for some in ranked[: MEANS - len(chosen)] if rank < len(some)}
        rank += 1
    columns = [each for each in dict.fromkeys(each for some in ranked for each in some[:rank]) if each in chosen]
    if not columns:
        return None
    values = np.empty((found.n_clusters, len(columns)))
    for view in dict.fromkeys(view for view, _ in columns):
        places = [i for i, (each, _) in enumerate(columns) if each == view]
        wanted, numbers = [columns[i][1] for i in places], found.numbers_with(view)
        of_view = effects_of_columns(_in_units(found, view), wanted, numbers, found.n_clusters)
        values[:, places] = of_view.standardised
    names = [_column_name(found, view, column) for view, column in columns]
    return plain_record(FeatureMeans, views=[view for view, _ in columns], names=names, values=values)


def _in_units(found: Clustering, view: str) -> Matrix:
    """Return the rows of the samples that have a view; empty cells have the median, categories are fractions."""
    rows, encoding = found.views.observed(view), found.model.encodings.get(view)
    rows = FillMedian.learn(rows)(rows) if view in found.views.empty_cells else rows
    return encoding.in_units(rows) if encoding else rows


def _column_name(found: Clustering, view: str, column: int) -> str:
    names = found.views.columns[view]
    return f"column {column}" if names is None else names[column]
