"""Several methods on the same views: who finds what, in which time, and who agrees with whom."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from difflib import get_close_matches
from html import escape
from inspect import signature
from itertools import combinations
from numbers import Integral
from time import perf_counter
from typing import Any

import numpy as np

from coview._version import __version__
from coview.compose import Concat, Preprocessed
from coview.errors import InputError
from coview.methods import METHODS
from coview.methods.base import MultiViewClusterer
from coview.metrics import scores as truth_scores
from coview.preprocess.steps import preprocessing_per_view
from coview.tune import Tuned
from coview.views import Array, Views, as_views

# What can be compared: every method as it comes, and TMvKSCR with settings chosen from the data.
COMPARABLE: Mapping[str, type[MultiViewClusterer]] = {"tuned": Tuned, **METHODS}

# Beyond these numbers of samples a method would need many minutes, or hours: it is left out rather than waited for.
MOST_SAMPLES: Mapping[str, int] = {"tsvdmsc": 3_000, "comic": 5_000, "coreg": 10_000}

_SILHOUETTE_ROWS = 2_000


@dataclass(frozen=True)
class MethodResult:
    """What one method made of the views; without labels there is an error, a sentence that says why."""

    name: str
    estimator: str  # as it was called
    seconds: float | None
    error: str | None
    n_found: int | None  # clusters
    sizes: tuple[int, ...] | None
    silhouette: float | None  # in the method's own score space, so of no use to rank different methods by
    ari: float | None  # this and what follows: beside known classes
    nmi: float | None
    accuracy: float | None
    purity: float | None
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Comparison:
    """Methods side by side, as plain values that can be written as JSON.

    `agreements` has a row and a column for each method, in their order: the adjusted Rand index of their labels, None
    where one has none. `labels` has the methods that have labels.
    """

    methods: tuple[MethodResult, ...]
    agreements: tuple[tuple[float | None, ...], ...]
    labels: dict[str, tuple[int, ...]]
    n_clusters: int
    n_samples: int
    views: dict[str, int]  # columns of each
    preprocess: dict[str, str]  # how each was prepared, but for `Tuned`
    random_state: int
    has_truth: bool
    version: str

    def to_dict(self) -> dict[str, Any]:
        """Return everything as dictionaries, lists, numbers and text."""
        return asdict(self)

    def to_json(self) -> str:
        """Return everything as JSON."""
        return json.dumps(self.to_dict(), indent=2, allow_nan=False) + "\n"

    def table(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        """Return the headings and the rows of a table of the methods; the best by known classes comes first.

        The column `agreement` is the mean adjusted Rand index with the other methods.
        """
        measures = ("ari", "nmi", "accuracy", "purity") if self.has_truth else ()
        headings = (
            "method",
            "seconds",
            "clusters",
            "agreement",
            *(name.upper() if len(name) == 3 else name for name in measures),
        )
        ordered = sorted(self.methods, key=lambda m: (m.error is not None, -(m.ari or 0.0) if self.has_truth else 0.0))
        agreements = dict(zip((m.name for m in self.methods), map(_mean_with_others, self.agreements), strict=True))
        rows = []
        for m in ordered:
            measured = (_number(value, 3) for value in (agreements[m.name], *(getattr(m, x) for x in measures)))
            rows.append((m.name, _number(m.seconds, 2), str(m.n_found or "–"), *measured))
        return headings, rows

    def __repr__(self) -> str:
        headings, rows = self.table()
        widths = [max(map(len, column)) for column in zip(headings, *rows, strict=True)]
        lines = [
            f"Comparison({len(self.methods)} methods; {self.n_samples} samples; "
            f"{', '.join(f'{name}: {width}' for name, width in self.views.items())})"
        ]
        for row in (headings, *rows):
            cells = [row[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True))]
            lines.append("  ".join(cells).rstrip())
        lines += [f"{m.name}: {m.error}" for m in self.methods if m.error]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """Show the table in a notebook."""
        headings, rows = self.table()
        head = "".join(f"<th>{escape(cell)}</th>" for cell in headings)
        body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
        failed = "".join(f"<li>{escape(m.name)}: {escape(m.error)}</li>" for m in self.methods if m.error)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>" + (
            f"<ul>{failed}</ul>" if failed else ""
        )


def compare(
    views: Any,
    n_clusters: int,
    *,
    methods: str | Sequence[str] = "all",
    truth: Any = None,
    preprocess: Any = "none",
    random_state: int = 0,
    progress: Callable[[str, int, int], object] | None = None,
) -> Comparison:
    """Run methods one after another on the same views, each with its default settings, and `Tuned` beside them.

    A method that fails is recorded with its reason, and the others go on. Methods that know one view get the columns of
    all views side by side (`Concat`). COMIC finds the number of clusters by itself. Methods that would take very long
    are left out, with a note, above a number of samples: TSVDMSC above 3,000, COMIC above 5,000, CoReg above 10,000.

    Parameters
    ----------
    views : views, as in `as_views`
    n_clusters : int
    methods : "all", or names of COMPARABLE
    truth : list of length n_samples, optional
        Known classes to compare with. They play no part in the clustering.
    preprocess : name, list or mapping
        How views are prepared, such as "standard" or {"text": "tfidf+l2"}: the `steps` of `Preprocessed`. `Tuned`
        chooses its own.
    random_state : int
    progress : function, optional
        Is told the method that starts, how many are done, and how many there are.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> truth = np.repeat([0, 1, 2], 20)
    >>> text, image = (rng.normal(size=(3, d))[truth] * 9 + rng.normal(size=(60, d)) for d in (5, 8))
    >>> found = compare({"text": text, "image": image}, 3, methods=["tmvkscr", "opmc"], truth=truth)
    >>> [(method.name, method.sizes, method.ari) for method in found.methods]
    [('tmvkscr', (20, 20, 20), 1.0), ('opmc', (20, 20, 20), 1.0)]
    """
    names = method_names(methods)
    views = as_views(views)
    if not (isinstance(n_clusters, Integral) and 2 <= n_clusters <= views.n_samples):
        raise InputError(f"n_clusters={n_clusters!r} must be a whole number from 2 to n_samples={views.n_samples}")
    prepared = {name: each.name for name, each in preprocessing_per_view(preprocess, views.names, "preprocess").items()}
    known = None if truth is None else np.asarray(truth)
    if known is not None and known.shape != (views.n_samples,):
        raise InputError(f"truth has shape {known.shape}; give one class for each of the {views.n_samples} samples")

    results, labels = [], {}
    for done, name in enumerate(names):
        if progress is not None:
            progress(name, done, len(names))
        result, found = _run(name, views, n_clusters, prepared, random_state, known)
        results.append(result)
        if found is not None:
            labels[name] = found
    if progress is not None:
        progress("agreement", len(names), len(names))
    return Comparison(
        methods=tuple(results),
        agreements=_agreements(names, labels),
        labels={name: tuple(found.tolist()) for name, found in labels.items()},
        n_clusters=int(n_clusters),
        n_samples=views.n_samples,
        views=views.n_features,
        preprocess=prepared,
        random_state=random_state,
        has_truth=known is not None,
        version=__version__,
    )


def method_names(methods: str | Sequence[str]) -> tuple[str, ...]:
    """Check names of methods, and return them without repeats; "all" is all of them."""
    if isinstance(methods, str):
        methods = tuple(COMPARABLE) if methods == "all" else (methods,)
    if not methods:
        raise InputError(f"methods is empty; name some of {', '.join(COMPARABLE)}, or 'all'")
    for name in methods:
        if name not in COMPARABLE:
            close = get_close_matches(str(name).lower(), COMPARABLE, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else "."
            raise InputError(f"there is no method {name!r}{hint} Known methods: {', '.join(COMPARABLE)}")
    return tuple(dict.fromkeys(methods))


def for_views(estimator: MultiViewClusterer, n_views: int) -> MultiViewClusterer:
    """Return the estimator, wrapped as Concat where it knows one view and there are several."""
    return Concat(estimator) if n_views > 1 and "views" not in estimator.get_params(deep=False) else estimator


def preprocessed(estimator: MultiViewClusterer, steps: Mapping[str, str]) -> MultiViewClusterer:
    """Return the estimator, wrapped as Preprocessed if any view has preprocessing."""
    names = set(steps.values())
    return estimator if names == {"none"} else Preprocessed(estimator, names.pop() if len(names) == 1 else dict(steps))


def _estimator(name: str, n_clusters: int, steps: dict[str, str], random_state: int) -> MultiViewClusterer:
    method: Any = COMPARABLE[name]
    if method is Tuned:
        return Tuned(n_clusters, random_state=random_state)
    given = {"n_clusters": n_clusters} if "n_clusters" in signature(method).parameters else {}
    return preprocessed(for_views(method(**given, random_state=random_state), len(steps)), steps)


def _run(
    name: str, views: Views, n_clusters: int, steps: dict[str, str], random_state: int, truth: Array | None
) -> tuple[MethodResult, Array | None]:
    """Run one method; whatever goes wrong becomes part of the result."""
    estimator = _estimator(name, n_clusters, steps, random_state)
    called = " ".join(repr(estimator).split())
    most = MOST_SAMPLES.get(name)
    if most is not None and views.n_samples > most:
        return _failed(name, called, f"left out: it would take very long for more than {most} samples"), None
    start = perf_counter()
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            estimator.fit(views)
    except Exception as error:
        reason = str(error) or type(error).__name__
        return _failed(name, called, " ".join(reason.split())), None
    seconds = perf_counter() - start
    labels = np.asarray(estimator.labels_)
    sizes = np.unique(labels, return_counts=True)[1]
    notes = list(dict.fromkeys(" ".join(str(warning.message).split()) for warning in caught))
    if "Concat(" in called:
        notes.insert(0, "knows one view: the columns of all views were put side by side")
    if "n_clusters" not in signature(COMPARABLE[name]).parameters:
        notes.insert(0, "finds the number of clusters by itself")
    if isinstance(estimator, Tuned):
        notes.insert(0, estimator.reason_)
    beside = {} if truth is None else truth_scores(truth, labels)
    result = MethodResult(
        name=name,
        estimator=called,
        seconds=seconds,
        error=None,
        n_found=len(sizes),
        sizes=tuple(sizes.tolist()),
        silhouette=_silhouette(estimator, labels, random_state),
        ari=beside.get("ari"),
        nmi=beside.get("nmi"),
        accuracy=beside.get("accuracy"),
        purity=beside.get("purity"),
        notes=tuple(notes),
    )
    return result, labels


def _failed(name: str, called: str, reason: str) -> MethodResult:
    return MethodResult(name, called, None, reason, None, None, None, None, None, None, None, ())


def _silhouette(estimator: Any, labels: Array, random_state: int) -> float | None:
    """Mean silhouette of some samples in the space of the method's scores, where it has such a space."""
    from sklearn.metrics import silhouette_score

    while not hasattr(estimator, "scores_") and hasattr(estimator, "estimator_"):
        estimator = estimator.estimator_
    scores = getattr(estimator, "scores_", None)
    if scores is None:
        return None
    rows = np.random.default_rng(random_state).permutation(len(labels))[:_SILHOUETTE_ROWS]
    if not 2 <= len(np.unique(labels[rows])) < len(rows):
        return None
    return float(silhouette_score(np.asarray(scores)[rows], labels[rows]))


def _agreements(names: Sequence[str], labels: Mapping[str, Array]) -> tuple[tuple[float | None, ...], ...]:
    from sklearn.metrics import adjusted_rand_score

    between: dict[tuple[str, str], float] = {(name, name): 1.0 for name in labels}
    for a, b in combinations(labels, 2):
        between[a, b] = between[b, a] = float(adjusted_rand_score(labels[a], labels[b]))
    return tuple(tuple(between.get((a, b)) for b in names) for a in names)


def _mean_with_others(agreements: Sequence[float | None]) -> float | None:
    known = [value for value in agreements if value is not None]
    return (sum(known) - 1) / (len(known) - 1) if len(known) > 1 else None  # without the method itself


def _number(value: float | None, digits: int) -> str:
    return "–" if value is None else f"{value:.{digits}f}"
