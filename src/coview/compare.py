"""Comparison of methods on the same views: clusters, times, and agreement between methods."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from html import escape
from inspect import signature
from itertools import combinations
from time import perf_counter
from typing import Any

import numpy as np

from coview._version import __version__
from coview.base.html import html_table
from coview.base.parameters import check_integer
from coview.base.progress import ProgressParameter, reporting
from coview.base.text import decimals
from coview.compose import Concat, Preprocessed
from coview.data.as_views import as_views, check_row_labels
from coview.data.mistakes import check_classes, likely_mistakes
from coview.data.view import Array
from coview.data.views import Views
from coview.errors import InputError, warn
from coview.evaluate.coview import Coview
from coview.kernels import RBF, kernel_per_view
from coview.metrics import scores as truth_scores
from coview.model.clusterer import Clusterer
from coview.model.fitting import note_on_many_clusters
from coview.preprocess.steps import parse_steps, preprocessing_per_view
from coview.registry import IMPUTATIONS, METHODS, check_name
from coview.summary.gather import training_silhouette

__all__ = ["Comparison", "MethodResult", "compare"]


@dataclass(frozen=True)
class MethodResult:
    """The result of one method. A method that fails has an error instead, and its measures are None."""

    name: str  # in METHODS
    estimator: str  # with its parameters
    seconds: float | None = None  # time of the fit
    error: str | None = None
    n_found: int | None = None  # number of clusters
    sizes: tuple[int, ...] | None = None  # of the clusters
    silhouette: float | None = None  # mean in the method's own score space, not comparable between methods
    ari: float | None = None  # this and the next three: agreement with known classes
    nmi: float | None = None
    accuracy: float | None = None
    purity: float | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Comparison:
    """The results of several methods, as plain values that can be written as JSON.

    Attributes
    ----------
    methods : tuple of MethodResult
    agreements : tuple of tuples
        Adjusted Rand index between the labels of two methods, in their order; None if one has no labels.
    labels : dict
        Labels by method, for methods without an error.
    n_clusters, n_samples : int
    views : dict
        Number of columns by view.
    preprocess : dict
        Preprocessing steps by view, as given; None is the usual preprocessing of each method.
    random_state : int
    largest_class : float or None
        Fraction of the samples in the largest known class, which is the accuracy of a single cluster; None without
        known classes.
    version : str
    """

    methods: tuple[MethodResult, ...]
    agreements: tuple[tuple[float | None, ...], ...]
    labels: dict[str, tuple[int, ...]]
    n_clusters: int
    n_samples: int
    views: dict[str, int]
    preprocess: dict[str, str | None]
    random_state: int
    largest_class: float | None
    version: str

    @property
    def has_truth(self) -> bool:
        """Whether known classes were given."""
        return self.largest_class is not None

    def to_dict(self) -> dict[str, Any]:
        """Return all values as dictionaries, tuples, numbers and strings."""
        return asdict(self)

    def to_json(self) -> str:
        """Return all values as JSON."""
        return json.dumps(self.to_dict(), indent=2, allow_nan=False) + "\n"

    def table(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        """Return the header and the rows of a table of the methods; the best by known classes comes first.

        The column `agreement` is the mean adjusted Rand index with the other methods.
        """
        measures = ("ari", "nmi", "accuracy", "purity") if self.has_truth else ()
        header = "method", "seconds", "clusters", "agreement", *(n.upper() if len(n) == 3 else n for n in measures)
        ordered = sorted(self.methods, key=lambda m: (m.error is not None, -(m.ari or 0.0) if self.has_truth else 0.0))
        agreements = dict(zip((m.name for m in self.methods), map(_mean_with_others, self.agreements), strict=True))
        rows = []
        for m in ordered:
            measured = (decimals(value, 3) for value in (agreements[m.name], *(getattr(m, x) for x in measures)))
            rows.append((m.name, decimals(m.seconds), str(m.n_found or "–"), *measured))
        return header, rows

    def __repr__(self) -> str:
        header, rows = self.table()
        widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
        lines = [
            f"Comparison({len(self.methods)} methods; {self.n_samples} samples; "
            f"{', '.join(f'{name}: {width}' for name, width in self.views.items())})"
        ]
        for row in (header, *rows):
            cells = [row[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True))]
            lines.append("  ".join(cells).rstrip())
        lines += [f"{m.name}: {m.error}" for m in self.methods if m.error]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """Return the table for notebooks."""
        failed = "".join(f"<li>{escape(m.name)}: {escape(m.error)}</li>" for m in self.methods if m.error)
        return html_table(*self.table()) + (f"<ul>{failed}</ul>" if failed else "")


def compare(
    views: Any,
    n_clusters: int,
    *,
    methods: str | Sequence[str] = "all",
    truth: Any = None,
    preprocess: Any = "none",
    impute: Any = "none",
    random_state: int = 0,
    progress: ProgressParameter = None,
) -> Comparison:
    """Return the results of several methods on the same views, each with its default settings.

    A method that fails is recorded with its error, and the others go on. Methods of one view cluster the columns of all
    views (`Concat`). COMIC finds the number of clusters itself. Methods that take very long are left out, with a note,
    above a number of samples: TSVDMSC above 3,000, COMIC above 5,000, CoReg above 10,000.

    Parameters
    ----------
    views : views, as in `as_views`
    n_clusters : int
    methods : "all", or names in METHODS
    truth : list of length n_samples, optional
        Known classes to compare with. The clusters do not depend on them.
    preprocess : name, list or mapping
        Preprocessing steps, such as "standard" or {"text": "tfidf+l2"}: the `steps` of `Preprocessed`. None, also for
        single views of a mapping, is the preprocessing of the command: standardised columns, except for methods whose
        kernel is not RBF. `Coview` has its own.
    impute : name, list or mapping
        "median" or "nearest": the step that fills empty cells before all others, also for `Coview`. The default is the
        first step of `preprocess`, if it is one of these. Other empty cells are refused.
    random_state : int
    progress : bool or callable, optional
        True shows a bar. A function is called as progress(method, done, total) before each method.

    Returns
    -------
    Comparison

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
    checked = as_views(views, None, lambda view: True)
    if checked is not views:
        for sentence in likely_mistakes(checked):
            warn(sentence)
    views = checked
    steps = _steps_per_view(preprocess, views.names)
    filled = imputation_per_view(impute, steps)
    as_views(views, None, lambda view: filled[view] != "none")  # refuses other empty cells
    if check_integer("n_clusters", n_clusters, 2) > views.n_samples:
        raise InputError(f"n_clusters={n_clusters}: expected an integer of at most n_samples={views.n_samples}")
    for note in note_on_many_clusters(n_clusters, views.n_samples):
        warn(*note)
    check_row_labels("truth", truth, views)
    known = None if truth is None else np.asarray(truth)
    if known is not None and known.shape != (views.n_samples,):
        raise InputError(f"truth has shape {known.shape}; give one class for each of the {views.n_samples} samples")
    if known is not None:
        check_classes("truth", [str(label) for label in known])

    results, labels = [], {}
    with reporting(progress) as report:
        for done, name in enumerate(names):
            report(name, done, len(names))
            estimator = preprocessed(_estimator(name, n_clusters, steps, random_state), filled)
            result, found = _run_method(name, estimator, views, n_clusters, known)
            results.append(result)
            if found is not None:
                labels[name] = found
        report("agreement", len(names), len(names))
    return Comparison(
        methods=tuple(results),
        agreements=_agreements(names, labels),
        labels={name: tuple(found.tolist()) for name, found in labels.items()},
        n_clusters=int(n_clusters),
        n_samples=views.n_samples,
        views=views.n_features,
        preprocess=steps,
        random_state=random_state,
        largest_class=None if known is None else float(np.unique(known, return_counts=True)[1].max() / len(known)),
        version=__version__,
    )


def method_names(methods: str | Sequence[str]) -> tuple[str, ...]:
    """Return the names of methods without duplicates, all of them for "all", or raise an InputError."""
    if isinstance(methods, str):
        methods = tuple(METHODS) if methods == "all" else (methods,)
    if not methods:
        raise InputError(f"methods is empty; name some of {', '.join(METHODS)}, or 'all'")
    return tuple(dict.fromkeys(check_name("method", name, METHODS) for name in methods))


def for_views(estimator: Clusterer, n_views: int) -> Clusterer:
    """Return the estimator, wrapped as Concat if it is of one view and there are several."""
    return Concat(estimator) if n_views > 1 and "views" not in estimator.get_params(deep=False) else estimator


def preprocessed(estimator: Clusterer, steps: Mapping[str, str]) -> Clusterer:
    """Return the estimator, wrapped as Preprocessed if any view has preprocessing."""
    names = set(steps.values())
    return estimator if names == {"none"} else Preprocessed(estimator, names.pop() if len(names) == 1 else dict(steps))


def _steps_per_view(preprocess: Any, names: Sequence[str]) -> dict[str, str | None]:
    """Return the names of the steps of each view; None for the usual preprocessing."""
    if preprocess is None:
        return dict.fromkeys(names)
    usual = [view for view, steps in preprocess.items() if steps is None] if isinstance(preprocess, Mapping) else []
    given = {view: steps or "none" for view, steps in preprocess.items()} if usual else preprocess
    parsed = preprocessing_per_view(given, names, "preprocess")
    return {name: None if name in usual else each.name for name, each in parsed.items()}


def imputation_per_view(impute: Any, steps: Mapping[str, str | None]) -> dict[str, str]:
    """Return the step that fills the empty cells of each view before its other steps, or "none"."""
    found = {}
    for view, given in preprocessing_per_view(impute, tuple(steps), "impute").items():
        check_name("impute", given.name, ("none", *IMPUTATIONS))
        first = parse_steps(f"{given.name}+{steps[view] or 'none'}")
        found[view] = first.steps[0] if first.fills_cells else "none"
    return found


def usual_preprocessing(method: Any, names: Sequence[str]) -> dict[str, str]:
    """Return the steps of each view by default: "standard" or "none".

    Standardised columns are centred, so their inner products are negative, which only RBF kernels allow. The kernel
    auto scales columns itself if they need it.
    """
    kernels = kernel_per_view(getattr(method, "kernel", RBF()), tuple(names))
    return {name: "standard" if isinstance(kernel, RBF) else "none" for name, kernel in kernels.items()}


def _estimator(name: str, n_clusters: int, steps: Mapping[str, str | None], random_state: int) -> Clusterer:
    kind: Any = METHODS[name]
    if kind is Coview:
        return Coview(n_clusters, random_state=random_state)
    given = {"n_clusters": n_clusters} if "n_clusters" in signature(kind).parameters else {}
    method = kind(**given, random_state=random_state)
    usual = usual_preprocessing(method, tuple(steps))
    return preprocessed(for_views(method, len(steps)), {view: each or usual[view] for view, each in steps.items()})


def _run_method(
    name: str, estimator: Clusterer, views: Views, n_clusters: int, truth: Array | None
) -> tuple[MethodResult, Array | None]:
    """Return the result of one method, or its error, and its labels."""
    result = MethodResult(name, " ".join(repr(estimator).split()))
    most = METHODS.entries[name].most_samples
    if most is not None and views.n_samples > most:
        return replace(result, error=f"left out: it takes very long for more than {most} samples"), None
    start = perf_counter()
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            estimator.fit(views)
    except Exception as error:
        return replace(result, error=" ".join((str(error) or type(error).__name__).split())), None
    seconds = perf_counter() - start
    labels = np.asarray(estimator.labels_)
    sizes = np.unique(labels, return_counts=True)[1]
    notes = list(dict.fromkeys(" ".join(str(warning.message).split()) for warning in caught))
    warned = [note.message for note in note_on_many_clusters(n_clusters, views.n_samples)]  # `compare` warns once
    notes = [note for note in notes if note not in warned]
    if estimator.model_.seen_names != estimator.model_.names:
        notes.insert(0, "clusters one table with the columns of all views")
    if "n_clusters" not in signature(METHODS[name]).parameters:
        notes.insert(0, "finds the number of clusters itself")
    measures: dict[str, Any] = {} if truth is None else dict(truth_scores(truth, labels))
    result = replace(
        result,
        seconds=seconds,
        n_found=len(sizes),
        sizes=tuple(sizes.tolist()),
        silhouette=training_silhouette(estimator.model_, views),
        notes=tuple(notes),
        **measures,
    )
    return result, labels


def _agreements(names: Sequence[str], labels: Mapping[str, Array]) -> tuple[tuple[float | None, ...], ...]:
    from sklearn.metrics import adjusted_rand_score

    between: dict[tuple[str, str], float] = {(name, name): 1.0 for name in labels}
    for a, b in combinations(labels, 2):
        between[a, b] = between[b, a] = float(adjusted_rand_score(labels[a], labels[b]))
    return tuple(tuple(between.get((a, b)) for b in names) for a in names)


def _mean_with_others(agreements: Sequence[float | None]) -> float | None:
    known = [value for value in agreements if value is not None]
    return (sum(known) - 1) / (len(known) - 1) if len(known) > 1 else None  # without the method itself
