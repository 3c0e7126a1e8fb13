"""Gather all numbers of a summary from a fitted model and its views."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from coview import metrics
from coview.base.runtime import Workers
from coview.certainty.columns import SampleColumns, columns_of_rows, labels_of
from coview.certainty.stability import Stability
from coview.core.agreement import contingency
from coview.core.drawn import draw_by_cluster
from coview.data.as_views import check_row_labels
from coview.data.mistakes import check_classes
from coview.data.view import Array, View
from coview.data.views import Views
from coview.errors import InputError, InputTypeError, kind_of
from coview.evaluate.support import Support, measure_support
from coview.kernels import Precomputed
from coview.methods.tmvkscr import TMvKSCR
from coview.model.clusterer import Clusterer
from coview.model.model import Model
from coview.preprocess.impute import FillMedian
from coview.summary.by_view import contradictions, describe_views, mean_contributions, members_kept_together
from coview.summary.clustering import Clustering, names_of
from coview.summary.distinguishing import distinguishing_features
from coview.summary.map import map_positions
from coview.summary.margins import Numbers
from coview.summary.plain import plain_record, significant
from coview.summary.remarks import COMPONENTS, remarks
from coview.summary.settings import nested_name, parameters, versions
from coview.summary.similarities import sample_similarities
from coview.summary.splits import tree_of
from coview.summary.values import (
    Cluster,
    Feature,
    Points,
    Refits,
    SampleMap,
    Samples,
    Summary,
    Truth,
    Uncertain,
    reading_order,
)

LISTED = 20_000
VIEW_COMPONENTS = 30  # of all views together
UNCERTAIN = 20


def summarize(
    model: Any,
    views: Any,
    *,
    ids: Sequence[Any] | None = None,
    truth: Sequence[Any] | None = None,
    seconds: Mapping[str, float] | None = None,
    notes: Iterable[str] = (),
    command: str | None = None,
    on_map: SampleMap | None = None,
    stability: Stability | None = None,
) -> Summary:
    """Return what a fitted model found in these views: clusters, their separation and their distinguishing features.

    docs/reading-a-summary.md explains each number. Views are read in blocks. Numbers whose cost grows with the square
    of the samples are computed for a random subset, which is noted.

    Parameters
    ----------
    model : fitted estimator of this library
    views : views, as in `as_views`
        The training samples, in their order, or new samples for models that can label them.
    ids : sequence, optional
        Names of the samples; by default their row numbers.
    truth : sequence, optional
        Known class of each sample, to compare the clusters with.
    seconds : mapping, optional
        Times to report, by stage.
    notes : strings, optional
        Further notes for the reader.
    command : str, optional
        The command that repeats the run.
    on_map : SampleMap, optional
        `summary.map` of the training samples, on which new samples are placed. By default it is computed again from the
        scores of the training samples that the model keeps.
    stability : Stability, optional
        The result of `coview.stability` for this model and these views.

    Returns
    -------
    Summary

    See Also
    --------
    coview.report.write_report : Write the summary as a page.
    coview.plots.sample_map : Draw the map of the samples.
    stability : Which clusters and samples other samples confirm.

    Examples
    --------
    >>> import numpy as np
    >>> from coview import TMvKSCR
    >>> rng = np.random.default_rng(0)
    >>> truth = np.repeat([0, 1, 2], 20)
    >>> text, image = (rng.normal(size=(3, d))[truth] * 4 + rng.normal(size=(60, d)) for d in (5, 8))
    >>> views = {"text": text, "image": image}
    >>> summary = summarize(TMvKSCR(3, random_state=0).fit(views), views, truth=truth)
    >>> [cluster.size for cluster in summary.clusters], summary.truth.ari
    ([20, 20, 20], 1.0)
    """
    if not isinstance(model, Clusterer):
        raise InputTypeError(f"model is {kind_of(model)}; give a fitted method or wrapper of this library")
    given = Given(ids, truth, seconds, notes, command, on_map, stability)
    return summarize_with_positions(model, model.check(views), given)[0]


class Given(NamedTuple):
    """What the caller knows about the samples and the run, as in `summarize`."""

    ids: Sequence[Any] | None = None
    truth: Sequence[Any] | None = None
    seconds: Mapping[str, float] | None = None
    notes: Iterable[str] = ()
    command: str | None = None
    on_map: SampleMap | None = None
    stability: Stability | None = None


def summarize_with_positions(
    estimator: Clusterer, views: Views, given: Given, columns: SampleColumns | None = None
) -> tuple[Summary, Array | None]:
    """Return the summary of validated samples, and the positions of all of them on the map; it has the plotted ones.

    `columns` are those of all samples, if they are known.
    """
    model, n, stability = estimator.model_, views.n_samples, given.stability
    samples = names_of("ids", given.ids, n)
    classes = None if given.truth is None else names_of("truth", given.truth, n)
    check_row_labels("truth", given.truth, views)
    labels, of_training = labels_of(estimator, views) if columns is None else (columns.labels, model.is_of(views))
    found = Clustering(model, views, labels, of_training, estimator.method, samples, classes)
    _check_stability(stability, found)
    support = _support(found)  # before there is more to keep, because it needs most memory
    features, truth = distinguishing_features(found), _truth(found)
    arranged, positions = map_positions(model, found.scores, labels, of_training, given.on_map)
    margins, listed = found.separation.margins, draw_by_cluster(found.numbers, LISTED)
    least = np.arange(0) if margins is None else np.argsort(margins, kind="stable")[:UNCERTAIN]
    shown = np.unique(np.concatenate([listed, found.drawn, least]))
    of_shown = columns_of_rows(model, views, labels, shown) if columns is None else columns.take(shown)
    of_listed, of_drawn, of_least = (
        _with_meaning(of_shown, found).take(np.searchsorted(shown, rows)) for rows in (listed, found.drawn, least)
    )
    summary = plain_record(
        Summary,
        method=nested_name(estimator),
        parameters=parameters(estimator),
        n_samples=n,
        n_train=len(model.trained_labels),
        n_clusters=found.n_clusters,
        of_training=of_training,
        views=describe_views(found, features.notes),
        clusters=_clusters(found, features.by_cluster, truth, stability, listed, of_listed),
        support=support,
        refits=None if stability is None else _refits(stability),
        silhouette=found.separation.silhouette,
        rho=float(found.method.rho) if isinstance(found.method, TMvKSCR) else None,
        eigenvalues=model.learnt.get("eigenvalues_"),
        explained_variance_ratio=model.learnt.get("explained_variance_ratio_"),
        further_eigenvalues=model.learnt.get("_further_eigenvalues"),
        tree=tree_of(model),
        feature_means=features.means,
        uncertain=_uncertain(_table(found, least, of_least)),
        truth=truth,
        samples=plain_record(Samples, **_table(found, listed, of_listed, stability)),
        points=_points(found, _table(found, found.drawn, of_drawn), positions),
        map=arranged,
        similarities=sample_similarities(found),
        number=model.learnt.get("number_"),
        notes=(*map(str, given.notes), *remarks(found)),
        seconds={str(stage): float(time) for stage, time in (given.seconds or {}).items()},
        versions=versions(),
        command=given.command,
    )
    return summary, positions


def training_silhouette(model: Model, views: Views) -> float | None:
    """Return the mean silhouette of the training samples, as `summarize` does; None without a score space."""
    found = Clustering(model, views, model.labels, of_training=True).separation.silhouette
    return None if found is None else significant(found)


def _support(found: Clustering) -> Support | None:
    """Return the support of the clusters, which `Coview` has measured if it has selected their number.

    That of new samples is not measured: a small batch has no valleys, however distant its clusters are.
    """
    learnt, views = found.model.learnt, found.views
    if not found.of_training:
        return None
    if learnt.get("support_") and "best_view_" not in learnt:
        known: Support = learnt["support_"]
        return known
    if found.n_clusters < 2 or any(isinstance(kernel, Precomputed) for kernel in learnt.get("kernels_", {}).values()):
        return None

    def filled(name: str, view: View) -> View:
        if name not in views.empty_cells:
            return view
        return replace(view, matrix=FillMedian.learn(views.observed(name))(view.matrix), has_empty_cells=False)

    with Workers(None) as workers:
        return measure_support(views.map(filled), found.labels, workers)


def _check_stability(given: Any, found: Clustering) -> None:
    """Raise an error unless this is a `Stability` of these samples and clusters, or None."""
    if given is None:
        return
    if not isinstance(given, Stability):
        raise InputTypeError(f"stability is {kind_of(given)}; give the result of coview.stability(model, views)")
    if len(given.samples) != len(found.labels):
        raise InputError(
            f"stability has {len(given.samples)} samples, but the views have {len(found.labels)}; compute it for the "
            "same views"
        )
    sizes = zip(found.names.tolist(), np.bincount(found.numbers).tolist(), strict=True)
    if {(each.label, each.size) for each in given.clusters} != {*sizes}:
        raise InputError("stability has other clusters than the model; compute it for the same model")


def _refits(given: Stability) -> Refits:
    return Refits(given.n_repeats, given.n_drawn, given.predicts, tuple(each.dissolved for each in given.clusters))


def _truth(found: Clustering) -> Truth | None:
    if found.classes is None:
        return None
    check_classes("truth", found.classes)
    ordered = sorted(set(found.classes), key=reading_order)
    place = {name: column for column, name in enumerate(ordered)}
    counts = contingency(found.numbers, np.array([place[name] for name in found.classes]))
    largest = counts.sum(axis=0).max() / len(found.classes)
    measures = metrics.scores(found.classes, found.labels)
    return plain_record(Truth, classes=ordered, contingency=counts, **measures, largest_class=largest)


def _with_meaning(columns: SampleColumns, found: Clustering) -> SampleColumns:
    """Return the columns, without memberships and contributions if there is a single cluster.

    A mixture of scikit-learn has probabilities of another meaning than memberships, and no novelties.
    """
    if columns.novelties is None or found.model.n_clusters < 2:
        columns = replace(columns, memberships=None)
    return columns if found.n_clusters > 1 else replace(columns, contributions={})


def _clusters(
    found: Clustering,
    features: Sequence[tuple[Feature, ...]],
    truth: Truth | None,
    stability: Stability | None,
    listed: Numbers,
    columns: SampleColumns,
) -> tuple[Cluster, ...]:
    k, sizes, numbers, apart = found.n_clusters, np.bincount(found.numbers), found.numbers[listed], found.separation
    kept, by_view = members_kept_together(found), columns.contributions
    contributions, against = mean_contributions(by_view, numbers, k), contradictions(by_view, numbers, k)
    memberships = None
    if columns.memberships is not None:
        memberships = np.bincount(numbers, columns.memberships) / np.bincount(numbers)
    return tuple(
        plain_record(
            Cluster,
            label=label,
            size=sizes[c],
            fraction=sizes[c] / len(found.labels),
            stability=stability.clusters[c].jaccard if stability and k > 1 else None,  # any model finds one cluster
            silhouette=_at(apart.silhouettes, c),
            margin=_at(apart.cluster_margins, c),
            membership=_at(memberships, c),
            kept_together=kept[c],
            contributions=contributions[c],
            contradicted=against[c],
            features=features[c],
            classes=None if truth is None else _most_frequent(truth, c),
        )
        for c, label in enumerate(found.names)
    )


def _most_frequent(truth: Truth, c: int) -> dict[str, int]:
    """Return the number of members of a cluster in each class that occurs in it, the most frequent first."""
    counts = zip(truth.classes, truth.contingency[c], strict=True)
    return {name: count for name, count in sorted(counts, key=lambda pair: -pair[1]) if count}


def _table(
    found: Clustering, rows: Numbers, columns: SampleColumns, stability: Stability | None = None
) -> dict[str, Any]:
    """Return the columns of the table of samples, for some rows."""
    return {
        "rows": rows,
        "names": [found.samples[row] for row in rows],
        "labels": columns.labels,
        "classes": None if found.classes is None else [found.classes[row] for row in rows],
        "nearest_others": _at(found.names, _at(found.separation.nearest_others, rows)),
        "margins": _at(found.separation.margins, rows),
        "memberships": columns.memberships,
        "novelties": columns.novelties,
        "best_views": columns.best_views,
        "stability": None if stability is None else [stability.samples[row] for row in rows],
    }


def _uncertain(table: Mapping[str, Any]) -> tuple[Uncertain, ...]:
    columns = ("rows", "names", "labels", "nearest_others", "margins", "memberships")
    names = ("row", "sample", "label", "nearest_other", "margin", "membership")
    return tuple(
        plain_record(Uncertain, **{name: _at(table[column], i) for name, column in zip(names, columns, strict=True)})
        for i in range(len(table["rows"]))
    )


def _points(found: Clustering, table: Mapping[str, Any], positions: Array | None) -> Points:
    drawn, places = found.drawn, np.searchsorted(found.labelled, found.drawn)
    view_components = min(COMPONENTS, max(2, VIEW_COMPONENTS // len(found.views)))
    return plain_record(
        Points,
        samples=table["names"],
        scores=() if found.scores is None else found.scores[drawn, :COMPONENTS],
        positions=() if positions is None else positions[drawn],
        view_labels={name: labels[places] for name, labels in found.view_labels.items()},
        view_scores={name: scores[:, :view_components] for name, scores in found.view_scores().items()},
        **{name: table[name] for name in ("rows", "labels", "classes", "margins", "memberships", "novelties")},
    )


def _at(values: Any, place: Any) -> Any:
    """Return the value or values at a place; None if there are none."""
    return None if values is None or place is None else values[place]
