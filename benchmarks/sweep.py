"""Many fits on the same views: methods × settings × seeds, one row for each answer, kept in a file that can be resumed.

A `Trial` is one fit. Its answers (by each assigner, by each view's own scores) are rows of one table, which is a file
with a JSON object on each line. What is in the file is not done again, so a sweep that was stopped goes on where it
was. A fit that fails is a row too, with its reason.

Rows say to which of two protocols they belong. "oracle" rows are a grid, of which `best` takes what matches the true
labels best: an upper bound, as published tables often are. "fixed" rows have one setting for all data sets.
"""

from __future__ import annotations

import ctypes
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

from coview.core.assign import as_assigner
from coview.errors import InputError
from coview.kernels import Kernel, kernel_per_view
from coview.metrics import scores as truth_scores
from coview.views import Array, Matrix, Views, as_views, stack_views

Row = dict[str, Any]

PROTOCOLS = ("oracle", "fixed")
MEASURES = ("ari", "nmi", "accuracy", "purity")
ALL_VIEWS, EACH_VIEW = "all views", "each view"

KEY = ("dataset", "protocol", "method", "settings", "assigner", "labels", "seed")
_SCALES = ("none", "standard", "l2")
_SIDE_BY_SIDE = "side by side"
_MOST_FITS = 48  # of one task: what is lost when a sweep is stopped
_NOT_SETTINGS = ("n_clusters", "random_state", "assigner", "views", "n_jobs", "progress")


@dataclass(frozen=True)
class Data:
    """Views with their true clusters: a column of them, or one column for each view if rows are not paired.

    With one column for each view, a measure is the mean over the columns.
    """

    name: str
    views: Views
    truth: Array
    n_clusters: int

    @classmethod
    def of(cls, name: str, views: Any, truth: Any) -> Data:
        """Check views and true clusters; there are as many clusters as the truth names."""
        views, truth = as_views(views), np.asarray(truth)
        if truth.shape not in ((views.n_samples,), (views.n_samples, len(views))):
            raise InputError(
                f"the truth of {name!r} has the shape {truth.shape}; give one class for each of the "
                f"{views.n_samples} samples, or a column of them for each of the {len(views)} views"
            )
        return cls(name, views, truth, len(np.unique(truth)))

    def shuffled(self, seed: int) -> Data:
        """Return the samples in another order: some methods read the order of the rows, and files are often sorted."""
        order = np.random.default_rng(seed).permutation(self.views.n_samples)
        return Data(self.name, self.views.take(order), self.truth[order], self.n_clusters)

    def first(self, n_samples: int) -> Data:
        """Return the first samples only; with shuffled rows, a random part."""
        rows = slice(0, n_samples)
        return Data(self.name, self.views.take(rows), self.truth[rows], self.n_clusters)


@dataclass(frozen=True)
class Trial:
    """One fit, and how labels are read from it.

    Parameters
    ----------
    method : str
        Its name in the table.
    estimator : clusterer
        With its settings; the number of clusters and the seed are filled in.
    protocol : "oracle" or "fixed"
    seed : int
    layout : "views", "side by side", or the name of a view
        What the estimator gets: all views, one table of all columns, or one view.
    scale : "none", "standard" or "l2", or one of them for each view
        Columns of mean 0 and standard deviation 1 (sparse ones are only divided), or rows of length 1.
    assigners : names of assigners
        For methods with score variables: one fit, and labels by each of them.
    per_view : bool
        Read labels from each view's own scores as well.
    shared : bool
        Take Gram matrices that other trials use too. Without, the estimator makes its own, and they are in its time.
    """

    method: str
    estimator: Any
    protocol: str = "oracle"
    seed: int = 0
    layout: str = "views"
    scale: str | tuple[str, ...] = "none"
    assigners: tuple[str, ...] = ()
    per_view: bool = False
    shared: bool = True

    def __post_init__(self) -> None:
        scales = (self.scale,) if isinstance(self.scale, str) else self.scale
        for parameter, values, known in (("protocol", (self.protocol,), PROTOCOLS), ("scale", scales, _SCALES)):
            for value in values:
                if value not in known:
                    raise InputError(f"{parameter}={value!r} of {self.method!r} must be one of {', '.join(known)}")

    @property
    def settings(self) -> str:
        """All that was chosen, as JSON; parameters at their defaults are left out."""
        chosen = _named(self.estimator)
        if self.scale != "none":
            chosen["scale"] = self.scale
        if self.layout != "views":
            chosen["layout"] = self.layout
        return json.dumps(chosen, sort_keys=True)

    def answers(self, data: Data) -> list[Row]:
        """Return the rows that this fit will have, without their numbers."""
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
) -> list[Trial]:
    """Return a trial for every combination of parameters and every seed.

    Parameters
    ----------
    method : str
    estimator : clusterer
    parameters : mapping
        By name, the values that each takes.
    seeds : numbers
    same : what all trials have in common, see `Trial`

    Examples
    --------
    >>> from coview import TMvKSCR
    >>> [trial.settings for trial in grid("ours", TMvKSCR(), {"rho": [0.25, 1.0]})]
    ['{"estimator": "TMvKSCR", "rho": 0.25}', '{"estimator": "TMvKSCR", "rho": 1.0}']
    """
    from sklearn.base import clone
    from sklearn.model_selection import ParameterGrid

    for name in parameters:
        if name in _NOT_SETTINGS:
            raise InputError(
                f"{name!r} of {method!r} cannot be a parameter of a grid: the number of clusters is that of the truth, "
                "seeds are given as `seeds`, assigners as `assigners`"
            )
    return [
        Trial(method, clone(estimator).set_params(**values), seed=seed, **same)
        for values in ParameterGrid(dict(parameters))
        for seed in seeds
    ]


def prepared(views: Views, scale: str | Sequence[str] = "none", layout: str = "views") -> Views:
    """Return the views as a trial wants them: scaled, and all of them, or one, or side by side; see `Trial`."""
    from sklearn.preprocessing import StandardScaler, normalize

    scales = (scale,) * len(views) if isinstance(scale, str) else scale
    if len(scales) != len(views):
        raise InputError(f"scale lists {len(scales)} entries for {len(views)} views ({', '.join(views)})")

    def scaled(x: Matrix, how: str) -> Matrix:
        if how == "standard":
            return StandardScaler(with_mean=not sp.issparse(x)).fit_transform(x)
        return normalize(x) if how == "l2" else x

    tables = {name: scaled(x, how) for (name, x), how in zip(views.items(), scales, strict=True)}
    if layout == "views":
        return as_views(tables)
    if layout == _SIDE_BY_SIDE:
        return as_views({"columns": stack_views(tables)[0]})
    if layout not in tables:
        raise InputError(f"layout={layout!r} must be 'views', 'side by side' or one of {', '.join(views)}")
    return as_views({layout: tables[layout]})


def sweep(
    data: Data,
    trials: Sequence[Trial],
    path: Path | None = None,
    *,
    n_jobs: int | None = 1,
    progress: Callable[[int, int], object] | None = None,
) -> list[Row]:
    """Run the trials that the file does not have yet, and return the rows of all, in the order of the trials.

    Trials that differ only in how they use the same Gram matrices (rho, kappa, the assigner, the method) share them,
    up to 48 fits at a time. Work is shared out by joblib, so `joblib.parallel_config` decides where it runs.

    Each row has the data set, the protocol, the method, its settings as JSON, the assigner, whose labels they are (of
    all views together, or of one), the seed; the four measures of `coview.metrics`, the number of clusters; the seconds
    of the fit, and those of its Gram matrices where they were shared; how far memory rose above what the process had,
    in bytes (on Linux; where several fits run in threads of one process, they cannot be told apart); a warning, if
    there was one; and what went wrong, if anything did.

    Parameters
    ----------
    data : Data
    trials : list of Trial
    path : Path, optional
        The file of rows, which is created, or read and added to. A last line that was cut off is dropped.
    n_jobs : int, optional
        As in joblib.
    progress : function, optional
        Is told how many fits are done, and how many there are, whenever a few are.

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
    wanted = _wanted(data, trials)
    open_trials: dict[Any, list[Trial]] = defaultdict(list)
    for trial in trials:
        if any(_key(row) not in known for row in trial.answers(data)):
            open_trials[(trial.layout, trial.scale, _shared_kernels(trial))].append(trial)
    tasks = []
    for (_, _, kernels), same in open_trials.items():
        most = 1 if kernels is None else _MOST_FITS  # those that share nothing are shared out one by one
        tasks += [same[i : i + most] for i in range(0, len(same), most)]
    tasks.sort(key=len)  # single ones are often the slow ones: first, so that nobody waits for them at the end
    done, total = 0, sum(map(len, tasks))
    # One task at a time: joblib would put a slow one behind others in a batch, because those before were fast.
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


def rows_on_file(data: Data, trials: Sequence[Trial], path: Path) -> list[Row]:
    """Return the rows of trials that a sweep has left in a file, in the order of the trials; nothing is run."""
    known = {_key(row): row for row in read_rows(path)}
    return [known[key] for key in _wanted(data, trials) if key in known]


def best(rows: Iterable[Row], by: str = "ari") -> list[Row]:
    """Return for each data set and method its best setting, by the mean over seeds of a measure of the true labels.

    Only rows of the oracle protocol take part. The answer has the means of all measures over the seeds, and as
    `spread` the standard deviation of the measure; equals are decided in favour of the first.
    """
    of_grids = averaged((row for row in rows if row["protocol"] == "oracle"), by)
    return _first_of_each(sorted(of_grids, key=lambda row: -row[by]))


def averaged(rows: Iterable[Row], by: str = "ari") -> list[Row]:
    """Return one row for all seeds of a setting, with the means of its numbers, and `spread` of this measure.

    Settings that failed for a seed are left out.
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
    """Return the rows of a file; a last line that was cut off is left out, and a file that is not there has none."""
    rows = []
    lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []  # what follows the last line end was cut off
    for number, line in enumerate(lines, start=1):
        try:
            row = json.loads(line)
            missing = [name for name in KEY if name not in row]
        except (ValueError, TypeError):
            missing = ["everything"]
        if missing:
            raise InputError(f"{path} is damaged in line {number} (no {missing[0]}); remove that line and go on")
        rows.append(row)
    return rows


class Ledger:
    """A file of rows that is added to; every row is written at once, so that at most the last can be cut off."""

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
        """Write rows, each as one line."""
        if self._file is not None:
            for row in rows:
                self._file.write(json.dumps(row, allow_nan=False).encode() + b"\n")

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            os.fsync(self._file.fileno())
            self._file.close()


@dataclass
class _Grams:
    """Gram matrices of the views, computed for the first trial that asks, and kept for the others."""

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


def _run(data: Data, trials: Sequence[Trial]) -> tuple[int, list[Row]]:
    """Do trials that get the same views and kernels; return how many, and their rows."""
    rows: list[Row] = []
    try:
        views = prepared(data.views, trials[0].scale, trials[0].layout)
    except Exception as error:
        return len(trials), [row for trial in trials for row in _failed(trial, data, error)]
    grams = _Grams(views)
    for trial in trials:
        try:
            rows += _fit(trial, data, views, grams)
        except Exception as error:  # whatever a method does, the others go on
            rows += _failed(trial, data, error)
    return len(trials), rows


def _fit(trial: Trial, data: Data, views: Views, grams: _Grams) -> list[Row]:
    from sklearn.base import clone

    from coview.methods.base import MultiViewClusterer

    estimator = clone(trial.estimator)
    names = estimator.get_params(deep=True)
    values = {"n_clusters": data.n_clusters, "random_state": trial.seed}
    estimator.set_params(**{name: values[last] for name in names if (last := name.rpartition("__")[2]) in values})
    kernels, given = _shared_kernels(trial), views
    if kernels is not None:
        given = grams.of(kernels)
        estimator.set_params(kernel="precomputed")
    memory = _Memory()
    start = perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        estimator.fit(given if isinstance(estimator, MultiViewClusterer) else stack_views(given)[0])
    seconds, rise = perf_counter() - start, memory.rise()
    rows = []
    for answer in trial.answers(data):
        labels = _labels(estimator, given, trial, answer, data.n_clusters)
        rows.append(
            answer
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


def _failed(trial: Trial, data: Data, error: Exception) -> list[Row]:
    reason = " ".join(str(error).split()) or type(error).__name__
    numbers = dict.fromkeys((*MEASURES, "n_found", "seconds", "gram_seconds", "memory", "warning"))
    return [{**answer, **numbers, "error": reason} for answer in trial.answers(data)]


def _labels(estimator: Any, views: Views, trial: Trial, answer: Row, n_clusters: int) -> Array:
    """Labels as columns: one, or one for each view."""
    source = answer["labels"]
    if answer["assigner"] is None:
        return np.column_stack(
            [estimator.labels_] if source == ALL_VIEWS else _of_views(estimator.view_labels_, source)
        )
    scores = [estimator.scores_] if source == ALL_VIEWS else _of_views(_view_scores(estimator, views), source)
    assigner = as_assigner(answer["assigner"])
    # The same numbers as the estimator itself would draw: labels are those that it gives with this assigner.
    return np.column_stack([assigner.fit(e, n_clusters, np.random.default_rng(trial.seed)).assign(e) for e in scores])


def _of_views(by_view: Mapping[str, Array], source: str) -> list[Array]:
    return list(by_view.values()) if source == EACH_VIEW else [by_view[source]]


def _view_scores(estimator: Any, views: Views) -> dict[str, Array]:
    scores: dict[str, Array] = estimator.transform(views, per_view=True)
    return scores


def _measures(truth: Array, labels: Array) -> dict[str, float]:
    """The four measures; of several columns of truth, their means."""
    columns = truth.reshape(len(truth), -1).T
    found = [truth_scores(t, labels[:, min(v, labels.shape[1] - 1)]) for v, t in enumerate(columns)]
    return {name: fmean(one[name] for one in found) for name in MEASURES}


def _shared_kernels(trial: Trial) -> Any:
    """The kernels whose Gram matrices can be shared, in a form that can be compared; None if there are none.

    A kernel that leaves something open, such as RBF() its bandwidth, is filled in by the estimator itself.
    """
    kernel = trial.estimator.get_params(deep=False).get("kernel") if trial.shared else None
    kernels = tuple(kernel) if isinstance(kernel, (list, tuple)) else (kernel,)
    if not all(isinstance(one, Kernel) and None not in vars(one).values() for one in kernels):
        return None
    return kernels if isinstance(kernel, (list, tuple)) else kernel


def _named(estimator: Any) -> dict[str, Any]:
    """The class, and its parameters that are not at their defaults; what a class wraps is called `inside`."""
    parameters = _not_default(estimator)
    renamed = {"inside" if name == "estimator" else name: value for name, value in parameters.items()}
    return {"estimator": type(estimator).__name__, **renamed}


def _not_default(estimator: Any) -> dict[str, Any]:
    """Parameters that differ from what the class has by default, as values that JSON can hold."""
    from inspect import signature

    parameters = signature(type(estimator)).parameters
    return {
        name: _json(value)
        for name, value in estimator.get_params(deep=False).items()
        if name not in _NOT_SETTINGS and not _same(value, parameters[name].default)
    }


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


def _wanted(data: Data, trials: Sequence[Trial]) -> dict[tuple[Any, ...], None]:
    """The keys of all rows that trials have, each once."""
    return {_key(row): None for trial in trials for row in trial.answers(data)}


def _key(row: Row) -> tuple[Any, ...]:
    return tuple(row[name] for name in KEY)


def _first_of_each(rows: Iterable[Row]) -> list[Row]:
    found: dict[Any, Row] = {}
    for row in rows:
        found.setdefault((row["dataset"], row["method"]), row)
    return list(found.values())


class _Memory:
    """How far this process's resident memory rises from now on, by the system's own high-water mark."""

    def __init__(self) -> None:
        try:
            # What was freed but kept for later would hide what the next fit takes.
            ctypes.CDLL(None).malloc_trim(0)
            Path("/proc/self/clear_refs").write_text("5")  # sets the mark to what is in use now
            self._before: int | None = self._mark()
        except (OSError, AttributeError, TypeError):  # another system
            self._before = None

    def rise(self) -> int | None:
        return None if self._before is None else self._mark() - self._before

    def _mark(self) -> int:
        lines = Path("/proc/self/status").read_text().splitlines()
        return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
