"""Certainty: whether memberships are calibrated, and whether novel samples have low scores.

`python -m benchmarks.certainty` measures the data sets of the folder COVIEW_DATA and writes the tables of
docs/certainty.md. Of data sets with more than 2,000 samples it draws 1,000. Rows are stored as they are computed, so an
interrupted run resumes. Known classes are used only to set the number of clusters and to leave out classes.
"""

from __future__ import annotations

import argparse
import os
import sys
import tracemalloc
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

# Before NumPy is imported: data sets run in parallel processes, with one thread each.
for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np  # noqa: E402
from scipy.optimize import linear_sum_assignment  # noqa: E402
from sklearn.base import clone  # noqa: E402
from sklearn.ensemble import IsolationForest  # noqa: E402
from sklearn.metrics import confusion_matrix, roc_auc_score  # noqa: E402
from sklearn.neighbors import LocalOutlierFactor  # noqa: E402
from sklearn.preprocessing import StandardScaler  # noqa: E402

from benchmarks.data import HOW_TO_SET, load, stored_names  # noqa: E402
from benchmarks.markdown import ROOT, table, write_block  # noqa: E402
from benchmarks.quality.paired import halves  # noqa: E402
from benchmarks.quality.rows import Row, Stage, code_hash  # noqa: E402
from coview import KSC, RBF, Coview, FuzzyGraph, TMvKSCR  # noqa: E402
from coview.data.rows import as_array  # noqa: E402
from coview.data.view import Array  # noqa: E402
from coview.data.views import Views  # noqa: E402

HERE = Path(__file__).parent
PAGE = ROOT / "docs" / "certainty.md"
MAX_SAMPLES, DRAWN_SAMPLES = 2000, 1000
FRACTIONS = ("0.8", "0.5")
RESAMPLES = range(100, 110)  # seeds of the subsets
REFITS = 3  # from which a temperature is learnt, for comparison
BINS = 10
MOST_CLASSES = 10  # that are left out, one at a time
FALSE_ALARMS = 0.05
MODELS: Mapping[str, Callable[[int], Any]] = {
    "TMvKSCR": lambda k: TMvKSCR(k, n_jobs=1, random_state=0),
    "Coview": lambda k: Coview(k, n_jobs=1, random_state=0),
    "TMvKSCR.as_published": lambda k: TMvKSCR.as_published(k, n_jobs=1, random_state=0),
}
OURS, LOF, FOREST = ("Coview", "TMvKSCR"), "LocalOutlierFactor", "IsolationForest"
MEASURED_CODE = ("neighbors", "kernels", "core", "model", "methods", "compose", "evaluate", "data")


def matched(labels: Array, others: Array) -> Array:
    """Return the other labels in terms of the first ones, matched by the best overlap; -1 for clusters left over."""
    counts = confusion_matrix(labels, others)
    mine, theirs = linear_sum_assignment(counts, maximize=True)
    name = np.full(len(counts), -1)
    name[theirs] = np.where(counts[mine, theirs] > 0, mine, -1)
    return name[others]


def resampled(model: Any, views: Views, labels: Array, fraction: float) -> Array:
    """Return which samples keep their cluster in models of random subsets of the samples, (resamples, samples)."""
    kept = []
    for seed in RESAMPLES:
        part = np.sort(np.random.default_rng(seed).permutation(len(labels))[: int(fraction * len(labels))])
        try:
            again = clone(model).fit(views.take(part))
        except ValueError:  # a subset that cannot be clustered, as one in which a view is constant
            continue
        kept.append(matched(labels, np.asarray(again.predict(views))) == labels)
    return np.array(kept)


def reliability(membership: Array, kept: Array) -> list[list[float]]:
    """Return for each bin of memberships its number of samples, and sums of the memberships and of what is kept."""
    place = np.minimum((membership * BINS).astype(int), BINS - 1)
    sums = [np.bincount(place, weights, minlength=BINS) for weights in (None, membership, kept)]
    return np.column_stack(sums).tolist()


def calibration_error(bins: Sequence[Sequence[float]]) -> float:
    """Return the expected calibration error: the mean difference of both means, weighted by the samples of a bin."""
    count, expected, kept = np.array(bins).T
    return float(np.abs(expected - kept).sum() / count.sum())


def with_learnt_temperature(membership: Array, kept: Array) -> Array:
    """Return the largest memberships with the temperature at which their mean is that of a few refits."""
    best, logs = np.zeros(len(membership)), np.log(np.maximum(membership, 1e-300))
    for power in np.geomspace(0.02, 50, 200):
        scaled = power * (logs - logs.max(axis=1, keepdims=True))
        largest = 1 / np.exp(scaled).sum(axis=1)
        if abs(largest.mean() - kept.mean()) < abs(best.mean() - kept.mean()):
            best = largest
    return best


def measure_membership(views: Views, k: int) -> Row:
    """Return the reliability of all models and fractions."""
    found: Row = {}
    for title, make in MODELS.items():
        model = make(k)
        fitted = clone(model).fit(views)
        membership = fitted.predict_proba(views)
        assert (membership.argmax(axis=1) == fitted.labels_).all()
        for fraction in FRACTIONS:
            kept = resampled(model, views, fitted.labels_, float(fraction))
            if len(kept) <= REFITS:
                continue
            learnt = with_learnt_temperature(membership, kept[:REFITS])
            found[f"{title} {fraction}"] = {
                "bins": reliability(membership.max(axis=1), kept.mean(axis=0)),
                "learnt": calibration_error(reliability(learnt, kept[REFITS:].mean(axis=0))),
            }
    return found


def measure_novelty(views: Views, truth: Array, seed: int) -> Row:
    """Return the mean AUROC of left-out classes by method, and the fraction of usual samples with low scores."""
    rng = np.random.default_rng(seed)
    classes = rng.permutation(np.unique(truth))[:MOST_CLASSES]
    found: dict[str, list[float]] = {title: [] for title in (*OURS, LOF, FOREST)}
    low: dict[str, list[float]] = {f"{title}: usual samples below {FALSE_ALARMS}": [] for title in OURS}
    for left_out in classes:
        usual = rng.permutation(np.flatnonzero(truth != left_out))
        cut = len(usual) // 5
        train, new = np.sort(usual[cut:]), np.concatenate([usual[:cut], np.flatnonzero(truth == left_out)])
        stacked = np.hstack([as_array(x).astype(np.float64) for x in views.values()])
        scaler = StandardScaler().fit(stacked[train])
        known, unknown = scaler.transform(stacked[train]), scaler.transform(stacked[new])
        neighbours = min(20, len(train) - 1)  # the default, or all
        scores = {
            **{
                title: MODELS[title](len(np.unique(truth)) - 1).fit(views.take(train)).score_samples(views.take(new))
                for title in OURS
            },
            LOF: LocalOutlierFactor(novelty=True, n_neighbors=neighbours).fit(known).score_samples(unknown),
            FOREST: IsolationForest(random_state=seed).fit(known).score_samples(unknown),
        }
        for title, each in scores.items():
            found[title].append(roc_auc_score(np.arange(len(new)) < cut, each))
        for title, fractions in zip(OURS, low.values(), strict=True):
            fractions.append(float((scores[title][:cut] < FALSE_ALARMS).mean()))
    return {title: round(float(np.mean(values)), 5) for title, values in (found | low).items()}


def measure(name: str, seed: int) -> Row:
    """Return the reliability of memberships and the AUROC of novelty on one data set."""
    views, truth, _ = load(name)
    rows = np.random.default_rng(seed).permutation(views.n_samples)
    rows = rows[:DRAWN_SAMPLES] if len(rows) > MAX_SAMPLES else rows
    views, truth = views.take(rows), np.asarray(truth)[rows]
    k = len(np.unique(truth))
    return {
        "clusters": k,
        "samples": len(truth),
        "membership": measure_membership(views, k),
        "novelty": measure_novelty(views, truth, seed),
    }


def median_scores() -> list[tuple[str, float]]:
    """Return the median score of new samples like the training samples, by kernel; means over ten generated sets."""
    kernels = {f"FuzzyGraph({k})": FuzzyGraph(k) for k in (5, 15)} | {"RBF()": RBF()}
    found: dict[str, list[float]] = {title: [] for title in kernels}
    for seed in range(10):
        train, new = np.random.default_rng(seed).normal(size=(2, 600, 5))
        for title, kernel in kernels.items():
            model = KSC(2, kernel=kernel, n_jobs=1, random_state=0).fit(train)
            found[title].append(float(np.median(model.score_samples(new))))
    return [(title, float(np.mean(medians))) for title, medians in found.items()]


def write_median_scores() -> None:
    """Write the table of median scores."""
    lines = table(["kernel", "median score"], median_scores())
    write_block(PAGE, "<!-- begin: median -->", "<!-- end: median -->", lines)


def cost() -> list[tuple[str, float, float]]:
    """Return time and peak memory, with the views, of predict_proba in units of predict, for 20,000 new samples."""
    rng = np.random.default_rng(0)
    truth, widths = rng.integers(10, size=22_000), {"a": 50, "b": 100}
    views = {name: rng.normal(size=(10, d))[truth] + rng.normal(size=(len(truth), d)) for name, d in widths.items()}
    train, new = ({name: x[rows] for name, x in views.items()} for rows in (slice(2000), slice(2000, None)))
    lines = []
    for title, kernel in (("neighbour graphs", "auto"), ("RBF", RBF())):
        model = TMvKSCR(10, kernel=kernel, n_jobs=1, random_state=0).fit(train)
        functions = (model.predict, model.predict_proba)
        seconds = np.array([[_seconds(function, new) for function in functions] for _ in range(5)]).min(axis=0)
        peaks = [sum(x.nbytes for x in new.values()) + _peak(function, new) for function in functions]
        lines.append((title, float(seconds[1] / seconds[0]), peaks[1] / peaks[0]))
    return lines


def _seconds(function: Callable[[Any], Any], views: Any) -> float:
    start = perf_counter()
    function(views)
    return perf_counter() - start


def _peak(function: Callable[[Any], Any], views: Any) -> int:
    tracemalloc.start()
    function(views)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="number of processes")
    parser.add_argument("--rows", type=Path, default=HERE / "certainty.jsonl", help="file of the rows, to resume a run")
    options = parser.parse_args()
    names = list(stored_names())
    if not names:
        sys.exit(f"no data sets are found; {HOW_TO_SET}")
    stage = Stage(options.rows, measure, code_hash(__file__, MEASURED_CODE), names)
    stage.resume(range(1), options.jobs)
    write_page(stage.complete_rows(), cost())
    write_median_scores()


def write_page(rows: list[Row], costs: Sequence[tuple[str, float, float]]) -> None:
    """Write the tables of the page."""
    parts = dict(zip(("fixing", "reporting"), halves([row["data"] for row in rows]), strict=True))

    def means(value: Callable[[Row], float | None]) -> list[float]:
        found = {row["data"]: value(row) for row in rows}
        known = {name: each for name, each in found.items() if each is not None}
        return [float(np.mean([known[name] for name in part if name in known])) for part in (*parts.values(), known)]

    def error(title: str, fraction: str, learnt: bool = False) -> Callable[[Row], float | None]:
        def value(row: Row) -> float | None:
            each = row["membership"].get(f"{title} {fraction}")
            return None if each is None else each["learnt"] if learnt else calibration_error(each["bins"])

        return value

    errors = []
    for title in MODELS:
        for fraction in FRACTIONS:
            share = f"{float(fraction):.0%}"
            learnt = means(error(title, fraction, learnt=True))[-1]
            errors.append((title, share, *means(error(title, fraction)), learnt))
    lines = ["Expected calibration error, mean over the data sets:", ""]
    head = ["model", "samples of a refit", *parts, "all", f"all, temperature from {REFITS} refits"]
    lines += table(head, errors)
    for title in ("TMvKSCR", "Coview"):
        bins = np.sum([row["membership"][f"{title} {FRACTIONS[0]}"]["bins"] for row in rows], axis=0)
        body = [
            (f"{i / BINS:.1f} to {(i + 1) / BINS:.1f}", f"{int(count):,}", expected / count, kept / count)
            for i, (count, expected, kept) in enumerate(bins)
            if count
        ]
        lines += ["", f"Reliability of `{title}`, all samples of {len(rows)} data sets, refits of 80 %:", ""]
        lines += table(["membership", "samples", "mean membership", "mean fraction of refits"], body)
    of_sets = []
    for row in rows:
        known = [error(title, FRACTIONS[0])(row) for title in MODELS]
        mark = " \\*" if row["data"] in parts["fixing"] else ""
        of_sets.append(
            (row["data"] + mark, row["clusters"], row["samples"], *("" if each is None else each for each in known))
        )
    lines += ["", "Expected calibration error by data set, refits of 80 % (\\*: fixing half):", ""]
    lines += table(["data", "clusters", "samples", *MODELS], of_sets)
    write_block(PAGE, "<!-- begin: membership -->", "<!-- end: membership -->", lines)

    titles = list(rows[0]["novelty"])
    body = [(row["data"], *(row["novelty"][title] for title in titles)) for row in rows]
    columns = [means(lambda row, title=title: row["novelty"][title]) for title in titles]
    body += [(f"**mean, {part}**", *(column[i] for column in columns)) for i, part in enumerate([*parts, "all"])]
    lines = ["AUROC of the classes that are left out:", "", *table(["data", *titles], body)]
    write_block(PAGE, "<!-- begin: novelty -->", "<!-- end: novelty -->", lines)
    lines = table(
        ["kernel", "time", "peak memory"], [(title, *(f"{each:.2f}" for each in line)) for title, *line in costs]
    )
    write_block(PAGE, "<!-- begin: cost -->", "<!-- end: cost -->", lines)


if __name__ == "__main__":
    main()
