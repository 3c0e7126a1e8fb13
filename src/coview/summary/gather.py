"""Gather every number of a summary from a fitted model and its views."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from coview import metrics
from coview.core.assign import Labels
from coview.errors import InputError, InputTypeError
from coview.kernels import Precomputed
from coview.methods.base import MultiViewClusterer
from coview.summary.effects import effects
from coview.summary.margins import Numbers, directions_with_doubt, margins
from coview.summary.settings import n_train, nested_name, parameters, prepared_in_words, versions
from coview.summary.space import Inner, all_scores, innermost, is_of_the_fit, view_labels, view_scores
from coview.summary.values import (
    Cluster,
    Feature,
    Points,
    Similarities,
    Summary,
    Truth,
    Uncertain,
    View,
    reading_order,
)
from coview.tune.record import tuning
from coview.views import Array, Matrix, Views

DRAWN = 5000
COMPARED = 200
COMPONENTS = 10
VIEW_COMPONENTS = 30  # of all views together
FEATURES = 10
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
) -> Summary:
    """Return what a fitted model found in these views: clusters, how clear they are, and what makes them so.

    What each number means is explained in docs/reading-a-summary.md. Views are read in blocks, and what would grow
    with the square of the samples is computed for a random part of them, which is noted.

    Parameters
    ----------
    model : fitted estimator of this library
    views : views, as in `as_views`
        The samples of the fit, in their order; or others, for models that can label them.
    ids : sequence, optional
        Names of the samples; by default their row numbers.
    truth : sequence, optional
        Known class of each sample, to compare the clusters with.
    seconds : mapping, optional
        Times to report, by stage.
    notes : texts, optional
        What the reader should know besides.
    command : str, optional
        How to repeat the run.

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
    if not isinstance(model, MultiViewClusterer):
        raise InputTypeError(f"model is a {type(model).__name__}; give a fitted method or wrapper of this library")
    views = model._views_to_predict(views)
    found = _find(model, views, _names("ids", ids, views.n_samples))
    classes = None if truth is None else _names("truth", truth, views.n_samples)
    clear = _clearness(found)
    features, constant = _features(found)
    return Summary(
        method=nested_name(model),
        parameters=parameters(model),
        n_samples=views.n_samples,
        n_train=n_train(model, views.n_samples),
        n_clusters=len(found.names),
        views=_views(found, constant, prepared_in_words(model)),
        clusters=_clusters(found, clear, features, classes),
        silhouette=None if clear.silhouettes is None else _rounded(clear.silhouettes @ found.shares),
        eigenvalues=_numbers(getattr(found.inner.method, "eigenvalues_", None)),
        explained_variance_ratio=_numbers(getattr(found.inner.method, "explained_variance_ratio_", None)),
        uncertain=_uncertain(found, clear),
        truth=None if classes is None else _truth(found, classes),
        points=_points(found, clear, classes),
        similarities=_similarities(found),
        tuning=tuning(model),
        notes=(*map(str, notes), *_notes(found)),
        seconds={str(stage): float(time) for stage, time in (seconds or {}).items()},
        versions=versions(),
        command=command,
    )


class _Found(NamedTuple):
    """The samples, their clusters, and where the method sees them."""

    views: Views
    samples: tuple[str, ...]
    fitted: bool  # these are the samples of the fit
    labels: Labels
    names: Labels  # the labels that occur
    numbers: Numbers  # the place of each label among the names
    drawn: Numbers  # rows for what would be too much for all of them
    inner: Inner
    scores: Array | None
    view_labels: Mapping[str, Labels]
    labelled: Numbers  # the rows that these are of

    @property
    def shares(self) -> Array:
        """The share of the samples that each cluster has."""
        shares: Array = np.bincount(self.numbers) / len(self.numbers)
        return shares

    @property
    def kernels(self) -> dict[str, Any]:
        """The kernels of views that the method sees as such."""
        kernels = getattr(self.inner.method, "kernels_", {})
        return {name: kernels[name] for name in self.inner.view_names if name in kernels}


def _find(model: Any, views: Views, samples: tuple[str, ...]) -> _Found:
    inner = innermost(model)
    fitted = is_of_the_fit(model, inner, views)
    labels = np.asarray(model.labels_) if fitted else _new_labels(model, views)
    names, numbers = np.unique(labels, return_inverse=True)
    drawn = _draw(numbers, DRAWN)
    scores = all_scores(inner, views, fitted)
    by_view, labelled = view_labels(model, views, fitted, drawn)
    return _Found(views, samples, fitted, labels, names, numbers, drawn, inner, scores, by_view, labelled)


def _names(parameter: str, given: Any, n: int) -> tuple[str, ...]:
    names = tuple(map(str, range(n) if given is None else given))
    if len(names) != n:
        raise InputError(f"{parameter} has {len(names)} entries, but the views have {n} samples; give one for each")
    return names


def _new_labels(model: Any, views: Views) -> Labels:
    if not hasattr(model, "predict"):
        raise InputError(
            f"{type(model).__name__} cannot label new samples: it was fitted on {len(model.labels_)}, and the views "
            f"have {views.n_samples}; give the views of the fit"
        )
    return np.asarray(model.predict(views))


def _draw(numbers: Numbers, most: int) -> Numbers:
    """Rows for what would be too much for all of them: at random, but some of every cluster, in increasing order."""
    if len(numbers) <= most:
        return np.arange(len(numbers))
    mixed = np.random.default_rng(0).permutation(len(numbers))
    by_cluster = mixed[np.argsort(numbers[mixed], kind="stable")]
    sizes = np.bincount(numbers)
    place = np.arange(len(numbers)) - np.repeat(np.cumsum(sizes) - sizes, sizes)  # within the cluster
    first = place < max(1, most // (4 * len(sizes)))
    chosen = np.concatenate([by_cluster[first], mixed[~np.isin(mixed, by_cluster[first])]])
    return np.sort(chosen[:most])


class _Clearness(NamedTuple):
    """How clearly samples and clusters stand apart, where there are scores and more than one cluster."""

    margins: Array | None = None
    runners_up: Numbers | None = None
    silhouettes: Array | None = None  # by cluster


def _clearness(found: _Found) -> _Clearness:
    from sklearn.metrics import silhouette_samples

    scores, numbers, drawn, n_clusters = found.scores, found.numbers, found.drawn, len(found.names)
    if scores is None or n_clusters < 2:
        return _Clearness()
    points = directions_with_doubt(scores, numbers)
    by_sample, runners_up = margins(points, numbers, n_clusters)
    if n_clusters == len(drawn):  # every sample by itself
        return _Clearness(by_sample, runners_up)
    silhouettes = silhouette_samples(points[drawn], numbers[drawn])
    return _Clearness(by_sample, runners_up, np.bincount(numbers[drawn], silhouettes) / np.bincount(numbers[drawn]))


def _views(found: _Found, constant: Mapping[str, Sequence[int]], prepared: Mapping[str, str]) -> tuple[View, ...]:
    consensus = found.labels[found.labelled]
    return tuple(
        View(
            name=name,
            n_features=x.shape[1],
            sparse=sp.issparse(x),
            preprocessing=prepared[name],
            kernel=repr(found.kernels[name]) if name in found.kernels else None,
            agreement=_rand_index(found.view_labels[name], consensus) if name in found.view_labels else None,
            notes=_column_notes(found, name, constant[name]),
        )
        for name, x in found.views.items()
    )


def _clusters(
    found: _Found, clear: _Clearness, features: Sequence[tuple[Feature, ...]], classes: Sequence[str] | None
) -> tuple[Cluster, ...]:
    n_clusters, sizes = len(found.names), np.bincount(found.numbers)
    contingency = None if classes is None else _contingency(classes, found.numbers)
    agreement = {
        name: _agreement(found.numbers[found.labelled], theirs, n_clusters)
        for name, theirs in found.view_labels.items()
    }
    return tuple(
        Cluster(
            label=int(label),
            size=int(sizes[c]),
            share=_rounded(found.shares[c]),
            silhouette=None if clear.silhouettes is None else _rounded(clear.silhouettes[c]),
            margin=None if clear.margins is None else _rounded(np.median(clear.margins[found.numbers == c])),
            agreement={name: _rounded(shares[c]) for name, shares in agreement.items()},
            features=features[c],
            classes=None if contingency is None else _most_frequent(*contingency, c),
        )
        for c, label in enumerate(found.names)
    )


def _features(found: _Found) -> tuple[list[tuple[Feature, ...]], dict[str, list[int]]]:
    """The columns with the largest effects for each cluster, over all views; and each view's constant columns."""
    n_clusters = len(found.names)
    largest: list[list[Feature]] = [[] for _ in range(n_clusters)]
    constant: dict[str, list[int]] = {name: [] for name in found.views}
    for name, x in found.views.items():
        if isinstance(found.kernels.get(name), Precomputed):
            continue  # columns are samples
        for part in effects(x, found.numbers, n_clusters):
            constant[name] += part.columns[part.constant].tolist()
            for c in range(n_clusters):
                order = np.argsort(-abs(part.values[c]), kind="stable")[:FEATURES]
                largest[c] += [
                    Feature(
                        view=name,
                        name=_column_name(found.views, name, int(part.columns[j])),
                        effect=_rounded(part.values[c, j]),
                        inside=_rounded(part.inside[c, j]),
                        outside=_rounded(part.outside[c, j]),
                    )
                    for j in order
                    if part.values[c, j] != 0
                ]
    ranked = (sorted(some, key=lambda feature: -abs(feature.effect)) for some in largest)
    return [tuple(some[:FEATURES]) for some in ranked], constant


def _column_name(views: Views, view: str, column: int) -> str:
    names = views.columns[view]
    return f"column {column}" if names is None else names[column]


def _column_notes(found: _Found, view: str, constant: Sequence[int]) -> tuple[str, ...]:
    if isinstance(found.kernels.get(view), Precomputed):
        return ("its columns are similarities to samples, not features",)
    if not constant:
        return ()
    named = ", ".join(_column_name(found.views, view, column) for column in constant[:5])
    more = f" and {len(constant) - 5} more" if len(constant) > 5 else ""
    return (f"{len(constant)} of {found.views[view].shape[1]} columns are constant: {named}{more}",)


def _agreement(numbers: Numbers, theirs: Labels, n_clusters: int) -> Array:
    """Share of each cluster's members that are in the one cluster of the view that is matched to it."""
    from scipy.optimize import linear_sum_assignment

    columns, their_numbers = np.unique(theirs, return_inverse=True)
    counts = np.zeros((n_clusters, len(columns)))
    np.add.at(counts, (numbers, their_numbers), 1)
    shares = np.zeros(n_clusters)
    rows, matched = linear_sum_assignment(counts, maximize=True)
    shares[rows] = counts[rows, matched] / counts.sum(axis=1)[rows]
    return shares


def _rand_index(a: Any, b: Any) -> float:
    from sklearn.metrics import adjusted_rand_score

    return _rounded(adjusted_rand_score(a, b))


def _contingency(classes: Sequence[str], numbers: Numbers) -> tuple[tuple[str, ...], Array]:
    """The classes in reading order, and how many members of each cluster (rows) are of each class (columns)."""
    ordered = tuple(sorted(set(classes), key=reading_order))
    place = {name: column for column, name in enumerate(ordered)}
    counts = np.zeros((numbers.max() + 1, len(ordered)), dtype=np.int64)
    np.add.at(counts, (numbers, np.array([place[name] for name in classes])), 1)
    return ordered, counts


def _most_frequent(ordered: Sequence[str], counts: Array, c: int) -> dict[str, int]:
    ranked = sorted(range(len(ordered)), key=lambda column: -counts[c, column])
    return {ordered[column]: int(counts[c, column]) for column in ranked if counts[c, column]}


def _truth(found: _Found, classes: Sequence[str]) -> Truth:
    ordered, counts = _contingency(classes, found.numbers)
    measures = {name: _rounded(value) for name, value in metrics.scores(classes, found.labels).items()}
    return Truth(ordered, tuple(map(tuple, counts.tolist())), **measures)


def _uncertain(found: _Found, clear: _Clearness) -> tuple[Uncertain, ...]:
    if clear.margins is None or clear.runners_up is None:
        return ()
    return tuple(
        Uncertain(
            row=row,
            sample=found.samples[row],
            label=int(found.labels[row]),
            runner_up=int(found.names[clear.runners_up[row]]),
            margin=_rounded(clear.margins[row]),
        )
        for row in np.argsort(clear.margins, kind="stable")[:UNCERTAIN].tolist()
    )


def _points(found: _Found, clear: _Clearness, classes: Sequence[str] | None) -> Points:
    drawn, rows = found.drawn, found.drawn.tolist()
    places = np.searchsorted(found.labelled, drawn)
    by_view = view_scores(found.inner, found.views, found.fitted, drawn)
    view_components = min(COMPONENTS, max(2, VIEW_COMPONENTS // len(found.views)))
    return Points(
        rows=tuple(rows),
        samples=tuple(found.samples[row] for row in rows),
        labels=tuple(found.labels[drawn].tolist()),
        classes=None if classes is None else tuple(classes[row] for row in rows),
        margins=None if clear.margins is None else tuple(map(_rounded, clear.margins[drawn])),
        scores=() if found.scores is None else _table(found.scores[drawn, :COMPONENTS]),
        view_labels={name: tuple(theirs[places].tolist()) for name, theirs in found.view_labels.items()},
        view_scores={name: _table(theirs[:, :view_components]) for name, theirs in by_view.items()},
    )


def _similarities(found: _Found) -> Similarities | None:
    """Mean over the views of the kernels' similarities, each divided by the self-similarities."""
    kernels = getattr(found.inner.method, "kernels_", {})
    given = any(isinstance(kernel, Precomputed) for kernel in kernels.values())
    if not kernels or (given and not found.fitted):  # then the samples' similarities with each other are not known
        return None
    some = found.drawn[_draw(found.numbers[found.drawn], COMPARED)]
    some = some[np.argsort(found.numbers[some], kind="stable")]
    rows = found.inner.rows(found.views.take(some))
    grams = [
        _normalised(rows[name][:, some] if isinstance(kernel, Precomputed) else kernel(rows[name]))
        for name, kernel in kernels.items()
    ]
    return Similarities(tuple(found.labels[some].tolist()), _table(np.mean(grams, axis=0), digits=3))


def _normalised(gram: Matrix) -> Array:
    gram = gram.toarray() if sp.issparse(gram) else np.asarray(gram, dtype=np.float64)
    own = np.sqrt(np.maximum(gram.diagonal(), 0))
    own[own == 0] = np.inf
    normalised: Array = gram / own[:, None] / own
    return normalised


def _notes(found: _Found) -> list[str]:
    notes = []
    n, method, asked = found.views.n_samples, found.inner.method, getattr(found.inner.method, "n_clusters", None)
    if asked is not None and len(found.names) < asked:
        notes.append(f"{asked} clusters were asked for, and {len(found.names)} have members.")
    if found.scores is None:
        notes.append(f"{type(method).__name__} has no score space: there are no margins and no silhouettes.")
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


def _rounded(number: Any, digits: int = 5) -> float:
    """Five digits say all there is to say, and keep the file small."""
    return float(f"{number:.{digits}g}")


def _numbers(values: Any) -> tuple[float, ...] | None:
    return None if values is None else tuple(map(_rounded, values))


def _table(values: Array, digits: int = 5) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(_rounded(value, digits) for value in row) for row in values.tolist())
