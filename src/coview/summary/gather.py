"""Gather all numbers of a summary from a fitted model and its views."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from coview import metrics
from coview.certainty.stability import Stability
from coview.certainty.which_view import agreements_without
from coview.compose import PerView
from coview.core.assign import Labels
from coview.core.drawn import draw_by_cluster
from coview.core.gram import Centering
from coview.errors import InputError, InputTypeError, kind_of
from coview.evaluate.coview import Coview
from coview.evaluate.number import ClusterNumber
from coview.evaluate.support import Support, measure_support
from coview.formats import decimals
from coview.kernels import Kernel, Precomputed
from coview.likely_mistakes import check_classes
from coview.methods.base import MultiViewClusterer, labels_of
from coview.methods.nested import kept_scores, nested_models
from coview.methods.tmvkscr import TMvKSCR
from coview.preprocess.impute import FillMedian
from coview.runtime import Workers
from coview.summary.certainty import Certainty, gather_certainty
from coview.summary.contributions import Contributions, gather_contributions
from coview.summary.effects import effects, effects_of_columns
from coview.summary.map import ARRANGED, arrange, place
from coview.summary.margins import Numbers, margins, shortened_directions
from coview.summary.refitted import check_stability, refits_of, stability_by_cluster
from coview.summary.settings import describe_preprocessing, n_training_samples, nested_name, parameters, versions
from coview.summary.space import Nested, all_scores, view_labels, view_scores
from coview.summary.tree import tree_of
from coview.summary.values import (
    Cluster,
    Feature,
    FeatureMeans,
    Points,
    SampleMap,
    Samples,
    Similarities,
    Summary,
    Truth,
    Uncertain,
    View,
    reading_order,
)
from coview.views import Array, Matrix, Views, check_row_labels

DRAWN = 5000
LISTED = 20_000
COMPARED = 200
COMPONENTS = 10
VIEW_COMPONENTS = 30  # of all views together
FEATURES = 10
MEANS = 40  # columns in the table of standardised means
UNCERTAIN = 20
CERTAINTY_DIGITS = 3  # of memberships and novelties; the errors of both are larger


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
    return summarize_with_positions(
        model,
        views,
        ids=ids,
        truth=truth,
        seconds=seconds,
        notes=notes,
        command=command,
        on_map=on_map,
        stability=stability,
    )[0]


def summarize_with_positions(
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
) -> tuple[Summary, Array | None]:
    """Return the summary, and the positions of all samples on the map; it has those of the plotted ones only."""
    if not isinstance(model, MultiViewClusterer):
        raise InputTypeError(f"model is {kind_of(model)}; give a fitted method or wrapper of this library")
    views = model._views_to_predict(views)
    found = _find(model, views, _names("ids", ids, views.n_samples))
    check_stability(stability, found.labels, found.names)
    check_row_labels("truth", truth, views)
    support = _support(model, found)  # before there is more to keep, because it needs most memory
    classes = None if truth is None else _names("truth", truth, views.n_samples)
    if classes is not None:
        check_classes("truth", classes)
    separation = _separation(found.scores, found.numbers, found.drawn)
    features, means, constant = _features(found)
    known, method = None if classes is None else _truth(found, classes), found.nested.method
    k = len(found.names)
    arranged, positions = map_positions(found.nested, found.scores, found.labels, found.fitted, on_map)
    listed = draw_by_cluster(found.numbers, LISTED)
    contributions = gather_contributions(model, views, found.numbers, listed, k)
    least = _smallest_margins(separation)
    shown = np.unique(np.concatenate([listed, found.drawn, least]))
    certainty = gather_certainty(model, found.nested, views, found.labels, shown)
    summary = Summary(
        method=nested_name(model),
        parameters=parameters(model),
        n_samples=views.n_samples,
        n_train=n_training_samples(model, views.n_samples),
        n_clusters=k,
        of_training=found.fitted,
        views=_describe_views(model, found, constant),
        clusters=_describe_clusters(
            found,
            separation,
            features,
            known,
            stability_by_cluster(stability, k),
            contributions,
            certainty.cluster_memberships(listed, found.numbers[listed]),
        ),
        support=support,
        refits=refits_of(stability),
        silhouette=separation.silhouette,
        rho=float(method.rho) if isinstance(method, TMvKSCR) else None,
        eigenvalues=_significant_numbers(getattr(method, "eigenvalues_", None)),
        explained_variance_ratio=_significant_numbers(getattr(method, "explained_variance_ratio_", None)),
        further_eigenvalues=_significant_numbers(getattr(method, "_further_eigenvalues", None)),
        tree=tree_of(model),
        feature_means=means,
        uncertain=_uncertain(found, least, separation, certainty),
        truth=known,
        samples=_listed(found, listed, separation, classes, stability, contributions.best_views, certainty),
        points=_plotted(found, separation, positions, classes, certainty),
        map=arranged,
        similarities=_sample_similarities(found),
        number=_selected_number(model),
        notes=(*map(str, notes), *_notes(found), *_notes_on_missing(found, separation)),
        seconds={str(stage): float(time) for stage, time in (seconds or {}).items()},
        versions=versions(),
        command=command,
    )
    return summary, positions


def training_silhouette(model: MultiViewClusterer, views: Views) -> float | None:
    """Return the mean silhouette of the training samples, as `summarize` does; None without a score space."""
    numbers = np.unique(model.labels_, return_inverse=True)[1]
    scores = all_scores(Nested(model), views, fitted=True)
    return _separation(scores, numbers, draw_by_cluster(numbers, DRAWN)).silhouette


class _Found(NamedTuple):
    """The samples, their clusters, and the method with its scores."""

    views: Views
    samples: tuple[str, ...]
    fitted: bool  # these are the training samples
    labels: Labels
    names: Labels  # the labels that occur
    numbers: Numbers  # index of each label among the names
    drawn: Numbers  # rows for what costs too much for all rows
    nested: Nested
    scores: Array | None
    view_labels: Mapping[str, Labels]
    labelled: Numbers  # the rows of view_labels


def _find(model: Any, views: Views, samples: tuple[str, ...]) -> _Found:
    nested = Nested(model)
    labels, fitted = labels_of(model, views)
    names, numbers = np.unique(labels, return_inverse=True)
    drawn = draw_by_cluster(numbers, DRAWN)
    scores = all_scores(nested, views, fitted)
    by_view, labelled = view_labels(model, views, fitted, drawn)
    return _Found(views, samples, fitted, labels, names, numbers, drawn, nested, scores, by_view, labelled)


def _names(parameter: str, given: Any, n: int) -> tuple[str, ...]:
    values = list(range(n) if given is None else given)
    if len(values) != n:
        raise InputError(f"{parameter} has {len(values)} entries, but the views have {n} samples; give one for each")
    for i, value in enumerate(values):
        if np.ndim(value):
            raise InputError(f"{parameter} has more than one dimension; give one entry for each sample, as in ravel()")
        if value is None or value != value:  # NaN
            raise InputError(f"{parameter} has no entry in row {i} ({value}); give one for each sample")
    return tuple(map(str, values))


class _Separation(NamedTuple):
    """How well samples and clusters are separated; None without scores or with a single cluster."""

    margins: Array | None = None
    nearest_others: Numbers | None = None
    cluster_margins: tuple[float, ...] | None = None  # medians
    silhouettes: tuple[float, ...] | None = None  # by cluster
    silhouette: float | None = None


def _separation(scores: Array | None, numbers: Numbers, drawn: Numbers) -> _Separation:
    from sklearn.metrics import silhouette_samples

    sizes = np.bincount(numbers)
    if scores is None or len(sizes) < 2:
        return _Separation()
    points = shortened_directions(scores, numbers)
    by_sample, nearest_others = margins(points, numbers, len(sizes))
    medians = _significant_numbers(np.median(by_sample[numbers == c]) for c in range(len(sizes)))
    if len(sizes) == len(drawn):  # each sample is a cluster
        return _Separation(by_sample, nearest_others, medians)
    silhouettes = silhouette_samples(points[drawn], numbers[drawn])
    by_cluster = np.bincount(numbers[drawn], silhouettes) / np.bincount(numbers[drawn])
    overall = _significant(by_cluster @ sizes / len(numbers))
    return _Separation(by_sample, nearest_others, medians, _significant_numbers(by_cluster), overall)


def _support(model: Any, found: _Found) -> Support | None:
    """Return the support of the clusters, which `Coview` has measured if it has selected their number.

    That of new samples is not measured: a small batch has no valleys, however distant its clusters are.
    """
    *outer, method = nested_models(model)
    if not found.fitted:
        return None
    if isinstance(method, Coview) and method.support_ and not any(isinstance(each, PerView) for each in outer):
        return method.support_
    kernels = getattr(method, "kernels_", {})
    if len(found.names) < 2 or any(isinstance(kernel, Precomputed) for kernel in kernels.values()):
        return None
    views = found.views
    filled = {name: FillMedian.learn(views.observed(name))(views[name]) for name in views.empty_cells}
    complete = Views.trusted({**views, **filled}, views.columns, present=views.present, encoded=views.encoded)
    with Workers(None) as workers:
        return measure_support(complete, found.labels, workers)


def _describe_views(model: Any, found: _Found, constant: Mapping[str, Sequence[int]]) -> tuple[View, ...]:
    from sklearn.metrics import adjusted_rand_score

    preprocessing = describe_preprocessing(model)
    kernels = {name: repr(kernel) for name, kernel in found.nested.kernels.items()}
    joint = found.labels[found.labelled]
    without = agreements_without(model, found.views.take(found.drawn), found.labels[found.drawn])
    weights = found.nested.method._kappa if isinstance(found.nested.method, TMvKSCR) else {}
    kappa = {name: float(weights[name]) for name in found.nested.view_names if name in weights}
    complete = len(found.labelled) == found.views.n_samples
    sizes = {
        n: tuple(np.bincount(theirs).tolist())
        for n, theirs in found.view_labels.items()
        if complete and theirs.min() >= 0  # labels of -1 are no cluster, or of samples that lack the view
    }
    agreement = {}
    if len(found.names) > 1:  # one cluster agrees with anything
        for n, theirs in found.view_labels.items():
            rows = _rows_with(found, n)
            if len(rows):
                agreement[n] = _significant(adjusted_rand_score(theirs[rows], joint[rows]))
    return tuple(
        View(
            name=name,
            n_features=x.shape[1],
            n_samples=found.views.n_present(name),
            sparse=sp.issparse(x),
            preprocessing=preprocessing[name],
            kernel=kernels.get(name),
            kappa=kappa.get(name),
            agreement=agreement.get(name),
            agreement_without=_significant_or_none(without.get(name)),
            sizes=sizes.get(name),
            notes=_column_notes(found, name, constant[name]),
        )
        for name, x in found.views.items()
    )


def _rows_with(found: _Found, view: str) -> Numbers:
    """Return the places among the labelled samples of those that have a view."""
    present = found.views.present.get(view)
    return np.arange(len(found.labelled)) if present is None else np.flatnonzero(present[found.labelled])


def _describe_clusters(
    found: _Found,
    separation: _Separation,
    features: Sequence[tuple[Feature, ...]],
    truth: Truth | None,
    stability: Sequence[float | None],
    contributions: Contributions,
    memberships: Array | None,
) -> tuple[Cluster, ...]:
    sizes, numbers = np.bincount(found.numbers), found.numbers[found.labelled]
    by_view = found.view_labels if len(sizes) > 1 else {}  # one cluster agrees with anything
    kept = {}
    for name, theirs in by_view.items():
        rows = _rows_with(found, name)
        if len(rows):
            kept[name] = _kept_together(numbers[rows], theirs[rows], len(sizes))
    return tuple(
        Cluster(
            label=int(label),
            size=int(sizes[c]),
            fraction=_significant(sizes[c] / len(found.numbers)),
            stability=_significant_or_none(stability[c]),
            silhouette=None if separation.silhouettes is None else separation.silhouettes[c],
            margin=None if separation.cluster_margins is None else separation.cluster_margins[c],
            membership=None if memberships is None else _significant(memberships[c]),
            kept_together={
                name: _significant(fractions[c]) for name, fractions in kept.items() if not np.isnan(fractions[c])
            },
            contributions=contributions.means[c],
            contradicted=contributions.contradicted[c],
            features=features[c],
            classes=None if truth is None else _most_frequent(truth, c),
        )
        for c, label in enumerate(found.names)
    )


def _features(found: _Found) -> tuple[list[tuple[Feature, ...]], FeatureMeans | None, dict[str, list[int]]]:
    """Return the columns of largest effect for each cluster, their means, and the constant columns of each view."""
    n_clusters, kernels = len(found.names), found.nested.kernels
    largest: list[list[tuple[Feature, int]]] = [[] for _ in range(n_clusters)]  # with the column
    constant: dict[str, list[int]] = {name: [] for name in found.views}
    for name in found.views:
        if isinstance(kernels.get(name), Precomputed) or not found.views.n_present(name):
            continue  # columns are samples, or no sample has the view
        of_view = found.numbers[found.views.present.get(name, slice(None))]
        for part in effects(_in_units(found, name), of_view, n_clusters):
            constant[name] += part.columns[part.constant].tolist()
            for c in range(n_clusters):
                order = np.argsort(-abs(part.values[c]), kind="stable")[:FEATURES]
                for j in order[part.values[c, order] != 0]:
                    feature = Feature(
                        view=name,
                        name=_column_name(found.views, name, int(part.columns[j])),
                        effect=_significant(part.values[c, j]),
                        inside=_significant(part.inside[c, j]),
                        outside=_significant(part.outside[c, j]),
                    )
                    largest[c].append((feature, int(part.columns[j])))
    ranked = [sorted(some, key=lambda each: -abs(each[0].effect))[:FEATURES] for some in largest]
    features = [tuple(feature for feature, _ in some) for some in ranked]
    return features, _feature_means(found, [[(f.view, column) for f, column in some] for some in ranked]), constant


def _feature_means(found: _Found, ranked: Sequence[Sequence[tuple[str, int]]]) -> FeatureMeans | None:
    """Return the means of the best columns of each cluster, as many of each as fit, in the order of the clusters."""
    n_clusters, chosen, rank = len(found.names), set[tuple[str, int]](), 0
    while len(chosen) < MEANS and rank < FEATURES:  # the best of every cluster, then the second best, and so on
        chosen |= {some[rank] for some in ranked[: MEANS - len(chosen)] if rank < len(some)}
        rank += 1
    columns = [each for each in dict.fromkeys(each for some in ranked for each in some[:rank]) if each in chosen]
    if not columns:
        return None
    values = np.empty((n_clusters, len(columns)))
    for name in dict.fromkeys(view for view, _ in columns):
        places = [i for i, (view, _) in enumerate(columns) if view == name]
        wanted = [columns[i][1] for i in places]
        of_view = found.numbers[found.views.present.get(name, slice(None))]
        values[:, places] = effects_of_columns(_in_units(found, name), wanted, of_view, n_clusters).standardised
    names = tuple(_column_name(found.views, view, column) for view, column in columns)
    return FeatureMeans(tuple(view for view, _ in columns), names, _as_tuples(values, digits=3))


def _in_units(found: _Found, name: str) -> Matrix:
    """Return the rows of the samples that have a view, in the units of the data.

    Empty cells have the median of the column. Columns of categories are fractions.
    """
    rows, encodings = found.views.observed(name), found.nested.models[0]._encodings
    rows = FillMedian.learn(rows)(rows) if name in found.views.empty_cells else rows
    return encodings[name].in_units(rows) if name in encodings else rows


def _column_name(views: Views, view: str, column: int) -> str:
    names = views.columns[view]
    return f"column {column}" if names is None else names[column]


def _column_notes(found: _Found, view: str, constant: Sequence[int]) -> tuple[str, ...]:
    if isinstance(found.nested.kernels.get(view), Precomputed):
        return ("The columns are similarities to samples, not features.",)
    encodings = found.nested.models[0]._encodings
    notes = (encodings[view].in_words,) if view in encodings else ()
    if not constant:
        return notes
    named = ", ".join(_column_name(found.views, view, column) for column in constant[:5])
    more = f" and {len(constant) - 5} more" if len(constant) > 5 else ""
    return (*notes, f"{len(constant)} of {found.views[view].shape[1]} columns are constant: {named}{more}")


def _kept_together(numbers: Numbers, theirs: Labels, n_clusters: int) -> Array:
    """Return the fraction of each cluster's members that are in the view's cluster matched to it."""
    from scipy.optimize import linear_sum_assignment

    counts = _counts_by_cluster(numbers, np.unique(theirs, return_inverse=True)[1])
    fractions = np.zeros(n_clusters)
    rows, matched = linear_sum_assignment(counts, maximize=True)
    sizes = counts.sum(axis=1)
    fractions[rows] = counts[rows, matched] / np.maximum(sizes[rows], 1)
    fractions[: len(sizes)][sizes == 0] = np.nan  # clusters without a sample that has the view
    fractions[len(sizes) :] = np.nan
    return fractions


def _counts_by_cluster(numbers: Numbers, groups: Numbers) -> Array:
    """Return how many members of each cluster (rows) are in each group (columns)."""
    counts = np.zeros((numbers.max() + 1, groups.max() + 1), dtype=np.int64)
    np.add.at(counts, (numbers, groups), 1)
    return counts


def _most_frequent(truth: Truth, c: int) -> dict[str, int]:
    """Return the number of members of a cluster in each class that occurs in it, the most frequent first."""
    counts = zip(truth.classes, truth.contingency[c], strict=True)
    return {name: count for name, count in sorted(counts, key=lambda pair: -pair[1]) if count}


def _truth(found: _Found, classes: Sequence[str]) -> Truth:
    ordered = tuple(sorted(set(classes), key=reading_order))
    place = {name: column for column, name in enumerate(ordered)}
    counts = _counts_by_cluster(found.numbers, np.array([place[name] for name in classes]))
    measures = {name: _significant(value) for name, value in metrics.scores(classes, found.labels).items()}
    largest = _significant(counts.sum(axis=0).max() / len(classes))
    return Truth(ordered, tuple(map(tuple, counts.tolist())), **measures, largest_class=largest)


def _smallest_margins(separation: _Separation) -> Numbers:
    if separation.margins is None:
        return np.array([], dtype=np.intp)
    return np.argsort(separation.margins, kind="stable")[:UNCERTAIN]


def _uncertain(found: _Found, least: Numbers, separation: _Separation, certainty: Certainty) -> tuple[Uncertain, ...]:
    if separation.margins is None or separation.nearest_others is None:
        return ()
    memberships, _ = certainty.at(least)
    return tuple(
        Uncertain(
            row=row,
            sample=found.samples[row],
            label=int(found.labels[row]),
            nearest_other=int(found.names[separation.nearest_others[row]]),
            margin=_significant(separation.margins[row]),
            membership=None if memberships is None else _significant(memberships[i], CERTAINTY_DIGITS),
        )
        for i, row in enumerate(least.tolist())
    )


def _listed(
    found: _Found,
    rows: Numbers,
    separation: _Separation,
    classes: Sequence[str] | None,
    stability: Stability | None,
    best_views: tuple[str, ...] | None,
    certainty: Certainty,
) -> Samples:
    others = separation.nearest_others
    memberships, novelties = certainty.at(rows)
    return Samples(
        rows=tuple(rows.tolist()),
        names=tuple(found.samples[row] for row in rows),
        labels=tuple(found.labels[rows].tolist()),
        classes=None if classes is None else tuple(classes[row] for row in rows),
        nearest_others=None if others is None else tuple(found.names[others[rows]].tolist()),
        margins=_significant_numbers(None if separation.margins is None else separation.margins[rows]),
        memberships=_significant_numbers(memberships, CERTAINTY_DIGITS),
        novelties=_known_numbers(novelties),
        best_views=best_views,
        stability=None if stability is None else tuple(_significant_or_none(stability.samples[row]) for row in rows),
    )


def map_positions(
    nested: Nested, scores: Array | None, labels: Labels, fitted: bool, given: SampleMap | None = None
) -> tuple[SampleMap | None, Array | None]:
    """Return the map of the training samples, and the positions of these samples on it; None without score space.

    `fitted` says whether these are the training samples.
    """
    if scores is None:
        return None, None
    method, of_training = nested.method, kept_scores(nested.method)
    fingerprint = nested.models[0]._fingerprint
    if given is not None:
        n_training = 0 if of_training is None else len(of_training)
        if given.fingerprint != fingerprint or not set(given.rows) <= set(range(n_training)):
            raise InputError("on_map is not a map of this model; give the map of the summary of its training samples")
    trained = scores if of_training is None else of_training
    if given is None:
        rows = draw_by_cluster(labels if of_training is None else method.labels_, ARRANGED)
        given = SampleMap(fingerprint, tuple(rows.tolist()), _as_tuples(arrange(trained[rows])))
    arranged, positions = list(given.rows), np.array(given.positions)
    placed = place(scores, trained[arranged], positions)
    same = trained is scores or (fitted and len(trained) == len(scores))
    if same and trained.shape[1] == 1:  # samples of equal score are apart along y, which neighbours cannot tell
        placed[arranged] = positions
    return given, placed


def _plotted(
    found: _Found,
    separation: _Separation,
    positions: Array | None,
    classes: Sequence[str] | None,
    certainty: Certainty,
) -> Points:
    drawn, rows = found.drawn, found.drawn.tolist()
    memberships, novelties = certainty.at(drawn)
    places = np.searchsorted(found.labelled, drawn)
    by_view = view_scores(found.nested, found.views, found.fitted, drawn)
    view_components = min(COMPONENTS, max(2, VIEW_COMPONENTS // len(found.views)))
    return Points(
        rows=tuple(rows),
        samples=tuple(found.samples[row] for row in rows),
        labels=tuple(found.labels[drawn].tolist()),
        classes=None if classes is None else tuple(classes[row] for row in rows),
        margins=_significant_numbers(None if separation.margins is None else separation.margins[drawn]),
        memberships=_significant_numbers(memberships, CERTAINTY_DIGITS),
        novelties=_known_numbers(novelties),
        scores=() if found.scores is None else _as_tuples(found.scores[drawn, :COMPONENTS]),
        positions=() if positions is None else _as_tuples(positions[drawn]),
        view_labels={name: tuple(theirs[places].tolist()) for name, theirs in found.view_labels.items()},
        view_scores={name: _known_or_none(theirs[:, :view_components]) for name, theirs in by_view.items()},
    )


def _known_or_none(scores: Array) -> tuple[tuple[float | None, ...], ...]:
    """Return rows of numbers; None instead of NaN, for samples that lack the view."""
    present = ~np.isnan(scores).all(axis=1, keepdims=True).ravel()
    known = iter(_as_tuples(scores[present]))
    return tuple(next(known) if each else (None,) * scores.shape[1] for each in present.tolist())


def _sample_similarities(found: _Found) -> Similarities | None:
    """Return the fused similarities of some samples, or the mean of the views' similarities for methods without rho.

    For `Coview`, these are the inner products of the scores.
    """
    drawn = found.drawn[found.views.has_all()[found.drawn]]
    if len(drawn) < 2:
        return None
    some = drawn[draw_by_cluster(found.numbers[drawn], COMPARED)]
    some = some[np.argsort(found.numbers[some], kind="stable")]
    if isinstance(found.nested.method, Coview) and found.scores is not None:
        scores, labels = found.scores[some], tuple(found.labels[some].tolist())
        return Similarities("cosine similarity of the scores", labels, _as_tuples(scores @ scores.T, digits=3))
    method, kernels = found.nested.method, getattr(found.nested.method, "kernels_", {})
    precomputed = any(isinstance(kernel, Precomputed) for kernel in kernels.values())
    if not kernels or (precomputed and not found.fitted):  # similarities among new samples are then not available
        return None
    seen = found.nested.method_input(found.views.take(some))
    grams = [_kernel_matrix(found, name, kernel, seen[name], some) for name, kernel in kernels.items()]
    grams = [gram.toarray() if sp.issparse(gram) else np.asarray(gram, dtype=np.float64) for gram in grams]
    name, values = "mean similarity", np.mean([_normalised(gram) for gram in grams], axis=0)
    if isinstance(method, TMvKSCR):
        name, kappa = "fused similarity", np.array([method._kappa[view] for view in kernels])
        centred = np.array([_centred(gram, method.regularization_) for gram in grams])
        with np.errstate(over="ignore", invalid="ignore"):  # kernels of huge values
            fused = method.rho * np.tensordot(kappa, centred, 1) + (1 - method.rho) * centred.prod(axis=0)
            values = _normalised(fused)
    if not np.isfinite(values).all():
        return None
    return Similarities(name, tuple(found.labels[some].tolist()), _as_tuples(values, digits=3))


def _kernel_matrix(found: _Found, view: str, kernel: Kernel, seen: Matrix, some: Numbers) -> Matrix:
    """Return the similarities among some samples; those of a neighbour graph are the model's own, if it has them."""
    if isinstance(kernel, Precomputed):
        return seen[:, some]
    learnt = getattr(found.nested.method, "_score_maps", {}).get(view)
    if kernel.sparse and found.fitted and learnt is not None and learnt.n_training == found.views.n_present(view):
        if view in found.views.present:
            some = np.searchsorted(np.flatnonzero(found.views.present[view]), some)
        return learnt.similarity.gram[some][:, some]
    return kernel(seen)


def _centred(gram: Array, regularization: float) -> Array:
    """Return the matrix centred as TMvKSCR does, with weights 1 / degree, if all degrees are positive."""
    degree, centred, every = gram.sum(axis=1), gram.copy(), slice(None)
    degree = degree + regularization * degree.mean()
    weights = degree.min() / degree if degree.min() > 0 else np.ones(len(degree))
    Centering.learn(gram, weights).centre(centred, every, every)
    return centred


def _normalised(gram: Array) -> Array:
    """Return the matrix scaled to ones on the diagonal; rows without a positive diagonal become zeros."""
    own = np.sqrt(np.maximum(gram.diagonal(), 0))
    own[own == 0] = np.inf
    return gram / own[:, None] / own


def _selected_number(model: Any) -> ClusterNumber | None:
    *_, method = nested_models(model)
    return method.number_ if isinstance(method, Coview) else None


def _notes(found: _Found) -> list[str]:
    notes = []
    n, method = found.views.n_samples, found.nested.method
    # `Coview` selects its number, and may be asked for several.
    requested = getattr(method, "n_clusters_", None) or getattr(method, "n_clusters", None)
    if requested is not None and len(found.names) < requested:
        words = f"{requested} clusters were requested" if found.fitted else f"The model has {requested} clusters"
        notes.append(f"{words}, and {len(found.names)} have members.")
    dominant = _dominant_rows(method)
    if dominant:
        same_rows = found.fitted and len(method.labels_) == n  # not for FixedSize
        named = f": {', '.join(found.samples[row] for row in dominant[:10])}" if same_rows else ""
        notes.append(
            f"The degrees are regularised, because {len(dominant)} training samples, possibly outliers, dominate a "
            f"component otherwise{named}."
        )
    if found.scores is None:
        notes.append(f"{type(method).__name__} has no score space, so there are no margins and no silhouettes.")
    elif found.scores.shape[1] > COMPONENTS:
        notes.append(f"Points have the first {COMPONENTS} of {found.scores.shape[1]} components.")
    if len(found.drawn) < n:
        partly = found.view_labels and len(found.labelled) < n
        parts = "Points, silhouettes and the agreement of the views" if partly else "Points and silhouettes"
        notes.append(
            f"{parts} are those of {len(found.drawn):,} of the {n:,} samples, drawn at random with some from every "
            "cluster; all other numbers are of all samples."
        )
    return notes


def _notes_on_missing(found: _Found, separation: _Separation) -> list[str]:
    """Return how many samples lack views, and how clearly they are assigned in comparison with the others."""
    views = found.views
    if views.complete:
        return []
    complete = views.has_all()
    lacking = ", ".join(f"{name} {views.n_samples - views.n_present(name):,}" for name in views.present)
    notes = [f"{(~complete).sum():,} of {views.n_samples:,} samples lack views ({lacking})."]
    if separation.margins is not None and complete.any():
        medians = [decimals(float(np.median(separation.margins[rows]))) for rows in (~complete, complete)]
        notes.append(f"Their median margin is {medians[0]}, that of samples with all views is {medians[1]}.")
    return notes


def _dominant_rows(method: Any) -> list[int]:
    """Return the training samples for which degrees are regularised."""
    return sorted(method.dominant_rows_) if getattr(method, "regularization_", 0) else []


def _significant(number: Any, digits: int = 5) -> float:
    """Return the number with a few significant digits, which keep the file small, but without rounding it to 1."""
    rounded = float(f"{number:.{digits}g}")
    return float(f"{number:.9g}") if abs(rounded) == 1 else rounded


def _significant_or_none(number: float | None) -> float | None:
    return None if number is None else _significant(number)


def _significant_numbers(values: Any, digits: int = 5) -> tuple[float, ...] | None:
    return None if values is None else tuple(_significant(value, digits) for value in values)


def _known_numbers(novelties: Array | None) -> tuple[float | None, ...] | None:
    """Return the numbers; None instead of NaN."""
    if novelties is None:
        return None
    return tuple(None if np.isnan(each) else _significant(each, CERTAINTY_DIGITS) for each in novelties.tolist())


def _as_tuples(values: Array, digits: int = 5) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(_significant(value, digits) for value in row) for row in values.tolist())
