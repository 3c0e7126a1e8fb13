"""Sweeps over methods × settings × seeds on the same views, stored row by row in a file that can be resumed.

An `Experiment` is one fit. Its results (one per assigner and per source of labels) are rows of a table, stored as a
file with one JSON object per line. Rows that the file already has are not computed again, so an interrupted sweep
resumes. A fit that fails is also a row, with its error message.

Each row belongs to one of two protocols. "oracle" rows form a grid from which `best` selects the setting with the
highest score against the true labels: an upper bound, as published tables often are. "fixed" rows use one setting for
all data sets.
"""

from __future__ import annotations

import json
import os
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, pstdev
from time import perf_counter
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.memory import MemoryRise
from coview.core.assign import as_assigner
from coview.data.as_views import as_views, stack_views
from coview.data.view import Array, Matrix
from coview.data.views import Views
from coview.errors import InputError
from coview.kernels import Kernel, kernel_per_view
from coview.metrics import scores as truth_scores

Row = dict[str, Any]

PROTOCOLS = ("oracle", "fixed")
MEASURES = ("ari", "nmi", "accuracy", "purity")
ALL_VIEWS, EACH_VIEW = "all views", "each view"

KEY = ("dataset", "protocol", "method", "settings", "assigner", "labels", "seed")
STEPS = ("none", "standard", "l2", "minmax")
_SIDE_BY_SIDE = "side by side"
_MAX_FITS_PER_TASK = 48  # an interrupted sweep loses at most this many fits per process
_NOT_SETTINGS = ("n_clusters", "random_state", "assigner", "views", "n_jobs", "progress")


@dataclass(frozen=True)
class Data:
    """Views with their true labels: one column, or one column per view if the rows of the views are not paired.

    With one column per view, each measure is the mean over the columns.
    """

    name: str
    views: Views
    truth: Array
    n_clusters: int

    @classmethod
    def of(cls, name: str, views: Any, truth: Any) -> Data:
        """Return validated data; the number of clusters is the number of distinct true labels."""
        views, truth = as_views(views), np.asarray(truth)
        if truth.shape not in ((views.n_samples,), (views.n_samples, len(views))):
            raise InputError(
                f"the truth of {name!r} has the shape {truth.shape}: expected one label for each of the "
                f"{views.n_samples} samples, or one column of labels for each of the {len(views)} views"
            )
        return cls(name, views, truth, len(np.unique(truth)))

    def shuffled(self, seed: int) -> Data:
        """Return the samples in random order, because some methods depend on the order and files are often sorted."""
        order = np.random.default_rng(seed).permutation(self.views.n_samples)
        return Data(self.name, self.views.take(order), self.truth[order], self.n_clusters)

    def first(self, n_samples: int) -> Data:
        """Return the first samples: a random subset if the rows are shuffled."""
        rows = slice(0, n_samples)
        return Data(self.name, self.views.take(rows), self.truth[rows], self.n_clusters)


@dataclass(frozen=True)
class Experiment:
    """One fit and the labels that are computed from it.

    Parameters
    ----------
    method : str
        The name of the method in the table.
    estimator : clusterer
        The estimator with its settings; `sweep` sets the number of clusters and the seed.
    protocol : "oracle" or "fixed"
    seed : int
    layout : "views", "side by side", or the name of a view
        The input of the estimator: all views, one table of all columns, or one view.
    preprocess : "none", "standard", "l2" or "minmax", or one of them for each view
        Standardised columns (those of sparse views are not centred), L2-normalised rows, or columns scaled to [0, 1]
        (those of sparse views are divided by their largest absolute value).
    assigners : names of assigners
        For methods with score variables: the labels of each assigner, from one fit.
    per_view : bool
        Also compute labels from the scores of each view.
    shared : bool
        Share Gram matrices with other experiments. If False, the estimator computes its own within its time.
    """

    method: str
    estimator: Any
    protocol: str = "oracle"
    seed: int = 0
    layout: str = "views"
    preprocess: str | tuple[str, ...] = "none"
    assigners: tuple[str, ...] = ()
    per_view: bool = False
    shared: bool = True

    def __post_init__(self) -> None:
        steps = (self.preprocess,) if isinstance(self.preprocess, str) else self.preprocess
        for parameter, values, known in (("protocol", (self.protocol,), PROTOCOLS), ("preprocess", steps, STEPS)):
            for value in values:
                if value not in known:
                    raise InputError(f"{parameter}={value!r} of {self.method!r}: expected one of {', '.join(known)}")

    @property
    def settings(self) -> str:
        """All settings that are not defaults, as JSON: parameters in alphabetical order, then the preprocessing."""
        chosen = _named(self.estimator)
        if self.layout != "views":
            chosen["layout"] = self.layout
        chosen = dict(sorted(chosen.items()))
        if self.preprocess != "none":
            chosen["preprocess"] = self.preprocess
        return json.dumps(chosen)

    def results(self, data: Data) -> list[Row]:
        """Return the rows of this fit without their measures."""
        sources = [ALL_VIEWS]
        if self.per_view:
            sources += [EACH_VIEW] if data.truth.ndim == 2 else data.views.names
        same = {"dataset": data.name, "protocol": self.protocol, "method": self.method, "settings": self.settings}
        return [
            {**same, "assigner": assigner, "labels": source, "seed": self.seed}
            for assigner in self.assigners or (None,)
            for source in sources
        ]


def grid(
    method: str, estimator: Any, parameters: Mapping[str, Sequence[Any]], seeds: Iterable[int] = (0,), **same: Any
) -> list[Experiment]:
    """Return an experiment for every combination of parameters and every seed.

    Parameters
    ----------
    method : str
    estimator : clusterer
    parameters : mapping
        The values of each parameter, by name.
    seeds : integers
    same : the settings that all experiments share, see `Experiment`

    Examples
    --------
    >>> from coview import TMvKSCR
    >>> [experiment.settings for experiment in grid("ours", TMvKSCR(), {"rho": [0.25, 0.5]})]
    ['{"estimator": "TMvKSCR", "rho": 0.25}', '{"estimator": "TMvKSCR", "rho": 0.5}']
    """
    from sklearn.base import clone
    from sklearn.model_selection import ParameterGrid

    for name in parameters:
        if name in _NOT_SETTINGS:
            raise InputError(
                f"{name!r} of {method!r} cannot be a parameter of a grid: the number of clusters is that of the true "
                "labels; pass seeds as `seeds` and assigners as `assigners`"
            )
    return [
        Experiment(method, clone(estimator).set_params(**values), seed=seed, **same)
        for values in ParameterGrid(dict(parameters))
        for seed in seeds
    ]


def preprocessed(views: Views, preprocess: str | Sequence[str] = "none", layout: str = "views") -> Views:
    """Return the input of an experiment: preprocessed views, all of them, one, or side by side; see `Experiment`."""
    # scikit-learn's steps, because the published rows were computed with them. Those of coview.preprocess differ by
    # rounding, on which the anchors of SFMC depend, and normalise rows of norm below 1e-15, which ccv6773 has.
    from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler, normalize

    steps = (preprocess,) * len(views) if isinstance(preprocess, str) else preprocess
    if len(steps) != len(views):
        raise InputError(f"preprocess lists {len(steps)} entries for {len(views)} views ({', '.join(views)})")

    def apply(x: Matrix, step: str) -> Matrix:
        if step == "standard":
            return StandardScaler(with_mean=not sp.issparse(x)).fit_transform(x)
        if step == "minmax":
            return (MaxAbsScaler() if sp.issparse(x) else MinMaxScaler()).fit_transform(x)
        return normalize(x) if step == "l2" else x

    tables = {name: apply(x, step) for (name, x), step in zip(views.items(), steps, strict=True)}
    if layout == "views":
        return as_views(tables)
    if layout == _SIDE_BY_SIDE:
        return as_views({"columns": stack_views(tables)[0]})
    if layout not in tables:
        raise InputError(f"layout={layout!r}: expected 'views', 'side by side' or one of {', '.join(views)}")
    return as_views({layout: tables[layout]})


def standard_or_l2(views: Views) -> tuple[str, ...]:
    """Return the preprocessing of the fixed protocol: dense views standardised, sparse views L2-normalised."""
    return tuple("l2" if sp.issparse(x) else "standard" for x in views.values())


def sweep(
    data: Data,
    experiments: Sequence[Experiment],
    path: Path | None = None,
    *,
    n_jobs: int | None = 1,
    progress: Callable[[int, int], object] | None = None,
) -> list[Row]:
    """Run the experiments that the file does not have yet, and return the rows of all, in the order of the experiments.

    Experiments that differ only in their use of the same Gram matrices (rho, kappa, the assigner, the method) share
    them, up to 48 fits at a time. joblib runs the tasks, so `joblib.parallel_config` selects the backend.

    Each row has the data set, the protocol, the method, its settings as JSON, the assigner, the source of the labels
    (all views or one view) and the seed; the four measures of `coview.metrics` and the number of clusters; the seconds
    of the fit, and those of its Gram matrices if they are shared; the peak memory above that before the fit, in bytes
    (on Linux; fits in threads of one process cannot be distinguished); the first warning; and the error, if the fit
    failed.

    Parameters
    ----------
    data : Data
    experiments : list of Experiment
    path : Path, optional
        The file of rows, which is created or extended. An incomplete last line is dropped.
    n_jobs : int, optional
        As in joblib.
    progress : function, optional
        Called with the number of finished fits and the total after each task.

    Returns
    -------
    list of rows
        One dictionary per result.

    Examples
    --------
    >>> from coview import TMvKSCR
    >>> from coview.datasets import make_synth1
    >>> data = Data.of("synth1", *make_synth1(0))
    >>> rows = sweep(data, grid("ours", TMvKSCR(), {"rho": [0.25, 1.0]}, assigners=("codebook",)))
    >>> [(row["assigner"], row["error"], row["ari"] > 0.8) for row in rows]
    [('codebook', None, True), ('codebook', None, True)]
    """
    from joblib import Parallel, delayed

    known = {_key(row): row for row in (read_rows(path) if path else [])}
    wanted = _wanted(data, experiments)
    groups: dict[Any, list[Experiment]] = defaultdict(list)
    for experiment in experiments:
        if any(_key(row) not in known for row in experiment.results(data)):
            groups[(experiment.layout, experiment.preprocess, _shared_kernels(experiment))].append(experiment)
    tasks = []
    for (_, _, kernels), same in groups.items():
        size = 1 if kernels is None else _MAX_FITS_PER_TASK
        tasks += [same[i : i + size] for i in range(0, len(same), size)]
    tasks.sort(key=len)  # single fits are often the slow ones; run last, one of them would leave other processes idle
    done, total = 0, sum(map(len, tasks))
    # Without batches: joblib sizes them by the fast tasks before, and would queue others behind a slow one.
    pool = Parallel(n_jobs=n_jobs, batch_size=1, return_as="generator_unordered")
    running = pool(delayed(_run)(data, task) for task in tasks)
    with Ledger(path) as ledger:
        for n_fits, rows in running:
            new = [row for row in rows if _key(row) not in known]
            ledger.add(new)
            known.update({_key(row): row for row in new})
            done += n_fits
            if progress is not None:
                progress(done, total)
    return [known[key] for key in wanted]


def rows_on_file(data: Data, experiments: Sequence[Experiment], path: Path) -> list[Row]:
    """Return the stored rows of experiments, in the order of the experiments; nothing is run."""
    known = {_key(row): row for row in read_rows(path)}
    return [known[key] for key in _wanted(data, experiments) if key in known]


def best(rows: Iterable[Row], by: str = "ari") -> list[Row]:
    """Return the best setting of each data set and method, by the mean over seeds of a measure against the true labels.

    Only rows of the oracle protocol are used. Each returned row has the means of all measures over the seeds, and as
    `spread` the standard deviation of the measure; the first of equal settings is returned.
    """
    found: dict[Any, Row] = {}
    of_grids = averaged((row for row in rows if row["protocol"] == "oracle"), by)
    for row in sorted(of_grids, key=lambda row: -row[by]):
        found.setdefault((row["dataset"], row["method"]), row)
    return list(found.values())


def averaged(rows: Iterable[Row], by: str = "ari") -> list[Row]:
    """Return one row per setting: means over the seeds, and the standard deviation of this measure as `spread`.

    Settings that failed for a seed are omitted.
    """
    groups: dict[Any, list[Row]] = defaultdict(list)
    for row in rows:
        groups[tuple(row[name] for name in KEY[:-1])].append(row)
    numbers = (*MEASURES, "seconds", "n_found")
    return [
        same[0]
        | {name: fmean(row[name] for row in same) for name in numbers}
        | {"seed": None, "n_seeds": len(same), "spread": pstdev(row[by] for row in same)}
        for same in groups.values()
        if all(row["error"] is None for row in same)
    ]


def read_rows(path: Path) -> list[Row]:
    """Return the rows of a file without an incomplete last line; an absent file has no rows."""
    rows = []
    lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []  # what follows the last newline is incomplete
    for number, line in enumerate(lines, start=1):
        try:
            row = json.loads(line)
            missing = [name for name in KEY if name not in row]
        except (ValueError, TypeError):
            missing = ["a JSON object"]
        if missing:
            raise InputError(f"{path}, line {number}: {missing[0]} is missing; remove the line and run the sweep again")
        rows.append(row)
    return rows


class Ledger:
    """A file that rows are appended to, unbuffered, so that at most the last line can be incomplete."""

    def __init__(self, path: Path | None) -> None:
        self._path = path

    def __enter__(self) -> Ledger:
        self._file = None
        if self._path is not None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._file = self._path.open("ab+", buffering=0)
            self._file.seek(0)
            complete = self._file.read().rfind(b"\n") + 1
            self._file.truncate(complete)
        return self

    def add(self, rows: Iterable[Row]) -> None:
        """Append rows, one line each."""
        if self._file is not None:
            for row in rows:
                self._file.write(json.dumps(row, allow_nan=False).encode() + b"\n")

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            os.fsync(self._file.fileno())
            self._file.close()


@dataclass
class _Grams:
    """Gram matrices of the views, computed at the first request."""

    views: Views
    seconds: float = 0.0
    _matrices: Views | None = None

    def of(self, kernels: Any) -> Views:
        if self._matrices is None:
            start = perf_counter()
            by_view = kernel_per_view(list(kernels) if isinstance(kernels, tuple) else kernels, self.views.names)
            self._matrices = as_views({name: by_view[name](x) for name, x in self.views.items()})
            self.seconds = perf_counter() - start
        return self._matrices


def _run(data: Data, experiments: Sequence[Experiment]) -> tuple[int, list[Row]]:
    """Run experiments with the same views and kernels; return their number and their rows."""
    rows: list[Row] = []
    try:
        views = preprocessed(data.views, experiments[0].preprocess, experiments[0].layout)
    except Exception as error:
        return len(experiments), [row for experiment in experiments for row in _failed(experiment, data, error)]
    grams = _Grams(views)
    for experiment in experiments:
        try:
            rows += _fit(experiment, data, views, grams)
        except Exception as error:  # the error of one method does not stop the others
            rows += _failed(experiment, data, error)
    return len(experiments), rows


def _fit(experiment: Experiment, data: Data, views: Views, grams: _Grams) -> list[Row]:
    from sklearn.base import clone

    from coview.model.clusterer import Clusterer

    estimator = clone(experiment.estimator)
    names = estimator.get_params(deep=True)
    values = {"n_clusters": data.n_clusters, "random_state": experiment.seed}
    estimator.set_params(**{name: values[last] for name in names if (last := name.rpartition("__")[2]) in values})
    kernels, given = _shared_kernels(experiment), views
    if kernels is not None:
        given = grams.of(kernels)
        estimator.set_params(kernel="precomputed")
    memory = MemoryRise()
    start = perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        estimator.fit(given if isinstance(estimator, Clusterer) else stack_views(given)[0])
    seconds, rise = perf_counter() - start, memory.rise()
    rows = []
    for result in experiment.results(data):
        labels = _labels(estimator, given, experiment, result, data.n_clusters)
        rows.append(
            result
            | _measures(data.truth, labels)
            | {
                "n_found": int(max(len(np.unique(column)) for column in labels.T)),
                "seconds": seconds,
                "gram_seconds": None if kernels is None else grams.seconds,
                "memory": rise,
                "warning": " ".join(str(caught[0].message).split()) if caught else None,
                "error": None,
            }
        )
    return rows


def _failed(experiment: Experiment, data: Data, error: Exception) -> list[Row]:
    reason = " ".join(str(error).split()) or type(error).__name__
    numbers = dict.fromkeys((*MEASURES, "n_found", "seconds", "gram_seconds", "memory", "warning"))
    return [{**result, **numbers, "error": reason} for result in experiment.results(data)]


def _labels(estimator: Any, views: Views, experiment: Experiment, result: Row, n_clusters: int) -> Array:
    """Return labels as columns: one, or one per view."""
    source = result["labels"]
    if result["assigner"] is None:
        return np.column_stack(
            [estimator.labels_] if source == ALL_VIEWS else _of_views(estimator.view_labels_, source)
        )
    scores = [estimator.scores_] if source == ALL_VIEWS else _of_views(_view_scores(estimator, views), source)
    assigner = as_assigner(result["assigner"])
    # The estimator's own random numbers, so that the labels are those of the estimator with this assigner.
    return np.column_stack(
        [assigner.fit(e, n_clusters, np.random.default_rng(experiment.seed)).assign(e) for e in scores]
    )


def _of_views(by_view: Mapping[str, Array], source: str) -> list[Array]:
    return list(by_view.values()) if source == EACH_VIEW else [by_view[source]]


def _view_scores(estimator: Any, views: Views) -> dict[str, Array]:
    scores: dict[str, Array] = estimator.transform(views, per_view=True)
    return scores


def _measures(truth: Array, labels: Array) -> dict[str, float]:
    """Return the four measures, averaged over the columns of true labels."""
    columns = truth.reshape(len(truth), -1).T
    found = [truth_scores(t, labels[:, min(v, labels.shape[1] - 1)]) for v, t in enumerate(columns)]
    return {name: fmean(one[name] for one in found) for name in MEASURES}


def _shared_kernels(experiment: Experiment) -> Any:
    """Return the kernels whose Gram matrices can be shared, in a hashable form, or None.

    The estimator resolves kernels with open parameters, such as RBF() without a bandwidth.
    """
    kernel = experiment.estimator.get_params(deep=False).get("kernel") if experiment.shared else None
    kernels = tuple(kernel) if isinstance(kernel, (list, tuple)) else (kernel,)
    if not all(isinstance(one, Kernel) and None not in vars(one).values() for one in kernels):
        return None
    return kernels if isinstance(kernel, (list, tuple)) else kernel


def _named(estimator: Any) -> dict[str, Any]:
    """Return the class and its parameters that are not defaults, as JSON values; a wrapped estimator is `inside`."""
    from inspect import signature

    defaults = signature(type(estimator)).parameters
    settings = {
        "inside" if name == "estimator" else name: _json(value)
        for name, value in estimator.get_params(deep=False).items()
        if name not in _NOT_SETTINGS and not _same(value, defaults[name].default)
    }
    return dict(sorted({"estimator": type(estimator).__name__, **settings}.items()))


def _same(value: Any, default: Any) -> bool:
    return type(value) is type(default) and bool(np.all(value == default))


def _json(value: Any) -> Any:
    if hasattr(value, "get_params"):
        return _named(value)
    if isinstance(value, (list, tuple)):
        return [_json(one) for one in value]
    if isinstance(value, np.generic):
        return value.item()
    return value if isinstance(value, (str, int, float, bool, type(None))) else repr(value)


def _wanted(data: Data, experiments: Sequence[Experiment]) -> dict[tuple[Any, ...], None]:
    """Return the distinct keys of the rows of experiments, in order."""
    return {_key(row): None for experiment in experiments for row in experiment.results(data)}


def _key(row: Row) -> tuple[Any, ...]:
    return tuple(row[name] for name in KEY)
