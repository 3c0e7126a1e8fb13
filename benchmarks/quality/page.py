"""The page on quality without labels, from measured rows and the text of template.md; it states what is missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from string import Template
from typing import Any

import numpy as np

from benchmarks.markdown import reflow, table
from benchmarks.quality import situation_tables
from benchmarks.quality.baselines import BASELINES, DEFAULT, KM_L2, NN_L2, UMAP_L2
from benchmarks.quality.numbers import LEAST_ARI, Quality, selections
from benchmarks.quality.paired import BOOTSTRAP_SEED, RESAMPLES, mean_with_interval
from benchmarks.quality.rows import Row
from benchmarks.quality.scores import TRAINING_PART
from benchmarks.quality.situation_tables import LEAST_GROUP, NONE, NOT_MEASURED
from benchmarks.real_data import MAX_SAMPLES
from benchmarks.situations import GAP, SEEDS
from coview.base.text import plural
from coview.evaluate.support import LEVELS

HERE = Path(__file__).parent
COVIEW = "`Coview`"
LEAST_BASELINE = 0.05  # of the best baseline, for a comparison with half of it
FAR = 0.1  # below the best baseline

Scores = dict[str, dict[str, float]]  # by method and data set, means over the seeds


def write(rows: Mapping[str, list[Row]], path: Path) -> None:
    """Write the page from the rows of all stages, of which some may not be measured."""
    scores = mean_scores(rows["known"], rows["baselines"])
    tables = situation_tables.tables(rows["situations"])
    values = {
        "n_sets": len(scores[COVIEW]) or "the",
        "known": _known(scores),
        "baselines": _baselines(scores),
        "new": _new(rows["new"]),
        "auto": _auto(rows),
        "situations": situation_tables.headline(rows["situations"]),
        "means": _means_table(scores),
        "data": _data_table(rows, scores),
        "least_ari": LEAST_ARI,
        "numbers": _numbers_table(rows),
        "levels": _levels_table(rows["auto"]),
        "n_situation_seeds": plural(len({row["seed"] for row in rows["situations"]}) or len(SEEDS), "seed"),
        "gap": f"{GAP:g}",
        "least_group": LEAST_GROUP,
        **{f"situations_{key}": "\n".join(lines) for key, lines in tables.items()},
        "max_samples": f"{MAX_SAMPLES:,}",
        "training_part": f"{TRAINING_PART:.0%}".replace("%", " %"),
        "resamples": f"{RESAMPLES:,}",
        "bootstrap_seed": BOOTSTRAP_SEED,
        "measured": _measured(rows),
        "far": FAR,
        "least_baseline": LEAST_BASELINE,
        "failures": _failures(scores),
    }
    path.write_text(reflow(Template((HERE / "template.md").read_text()).substitute(values)))


def mean_scores(known: Iterable[Row], baselines: Iterable[Row] = ()) -> Scores:
    """Return the mean scores of all methods."""
    found: Scores = {COVIEW: means_of(known, lambda row: row["ari"])}
    methods = list(baselines)
    for title in dict.fromkeys(title for row in methods for title in row["scores"]):
        found[title] = means_of(methods, lambda row, title=title: row["scores"][title])
    return found


def means_of(rows: Iterable[Row], value: Callable[[Row], float]) -> dict[str, float]:
    """Return the mean of a value over the seeds of each data set."""
    found: dict[str, list[float]] = {}
    for row in rows:
        found.setdefault(row["data"], []).append(value(row))
    return {name: float(np.mean(values)) for name, values in found.items()}


def both(scores: Scores) -> list[str]:
    """Return the data sets on which `Coview` and the baselines are measured."""
    return [name for name in scores[COVIEW] if all(name in scores.get(title, {}) for title in BASELINES)]


def best_baseline(scores: Scores, name: str) -> str:
    """Return the baseline with the largest score on a data set."""
    return max(BASELINES, key=lambda title: scores[title][name])


def below_half(scores: Scores) -> list[str]:
    """Return the data sets on which `Coview` has less than half of the best baseline."""
    best = {name: scores[best_baseline(scores, name)][name] for name in both(scores)}
    return [name for name, most in best.items() if most >= LEAST_BASELINE and scores[COVIEW][name] < most / 2]


def _mean(values: Iterable[float]) -> str:
    some = list(values)
    return f"{np.mean(some):.3f}" if some else NONE


def _percent(value: float) -> str:
    return NONE if np.isnan(value) else f"{100 * value:.0f} %"


def _difference(one: Mapping[str, float], other: Mapping[str, float]) -> str:
    """Return the mean difference on the data sets of both, with its interval."""
    differences = [one[name] - other[name] for name in one if name in other]
    return mean_with_interval(differences) if differences else NONE


def _table(head: Sequence[str], body: Iterable[Iterable[Any]]) -> str:
    lines = [list(line) for line in body]
    return "\n".join(table(head, lines)) if lines else NOT_MEASURED


def _known(scores: Scores) -> str:
    if not scores[COVIEW]:
        return NOT_MEASURED
    words = f"{COVIEW} has a mean ARI of {_mean(scores[COVIEW].values())}."
    if DEFAULT not in scores:
        return words
    return f"{words} `TMvKSCR` with its defaults has {_mean(scores[DEFAULT].values())}."


def _baselines(scores: Scores) -> str:
    names = both(scores)
    if not names:
        return NOT_MEASURED
    best = max(BASELINES, key=lambda title: np.mean([scores[title][name] for name in names]))
    return (
        f"the best baseline by its mean is {best}, with {_mean(scores[best].values())}. The difference of {COVIEW} to "
        f"it is {_difference(scores[COVIEW], scores[best])}. Below half of the best baseline of the data set: "
        f"{', '.join(below_half(scores)) or 'none'}."
    )


def _new(rows: Sequence[Row]) -> str:
    if not rows:
        return NOT_MEASURED
    training, new = (means_of(rows, lambda row, column=column: row[column]) for column in ("ari", "new_ari"))
    return (
        f"new samples have a mean ARI of {_mean(new.values())}, and the training samples of the same models "
        f"{_mean(training.values())}. The difference is {_difference(new, training)}."
    )


def _auto(rows: Mapping[str, list[Row]]) -> str:
    quality = Quality.of(selections(rows["auto"], rows["known"]))
    if np.isnan(quality.within_1):
        return NOT_MEASURED
    return (
        f'the number that `Coview("auto")` selects is within 1 of the true number in {_percent(quality.within_1)} of '
        f"the runs, and 1 in {_percent(quality.one)}. The mean ratio of the ARI to that at the true number is "
        f"{_percent(quality.ari_kept)}."
    )


def _means_table(scores: Scores) -> str:
    lines = [
        (title, len(of), _mean(of.values()), NONE if title == COVIEW else _difference(scores[COVIEW], of))
        for title, of in scores.items()
        if of
    ]
    return _table(["method", "data sets", "mean ARI", f"{COVIEW} minus it"], lines)


def _data_table(rows: Mapping[str, list[Row]], scores: Scores) -> str:
    columns = [scores.get(title, {}) for title in (COVIEW, DEFAULT, UMAP_L2, NN_L2, KM_L2)]
    columns.append(means_of(rows["new"], lambda row: row["new_ari"]))
    auto = means_of(rows["auto"], lambda row: row["ari"])
    clusters = {row["data"]: row["clusters"] for of in ("known", "new", "auto", "baselines") for row in rows[of]}
    lines = [
        (
            name,
            clusters[name],
            *(of.get(name, NONE) for of in columns),
            _short([row["number"] for row in rows["auto"] if row["data"] == name]),
            auto.get(name, NONE),
        )
        for name in sorted(clusters)
    ]
    return _table(
        ["data", "k", "Coview", "TMvKSCR", "UMAP + KM", "SC NN", "KM", "new samples", "selected k", "its ARI"], lines
    )


def _short(numbers: Sequence[int]) -> str:
    """Return the numbers in increasing order, such as "4 (3×), 6"."""
    counts = sorted(Counter(numbers).items())
    return ", ".join(f"{number} ({count}×)" if count > 1 else str(number) for number, count in counts) or NONE


def _numbers_table(rows: Mapping[str, list[Row]]) -> str:
    found = selections(rows["auto"], rows["known"])
    n_sets = len({each.data for each in found})
    head = ["data sets", "runs", "within 1", "exact", "below", "above", "one cluster", "ARI kept"]
    return _table(head, [(n_sets, len(found), *map(_percent, Quality.of(found)))] if found else [])


def _levels_table(auto: Sequence[Row]) -> str:
    lines = []
    for level in LEVELS:
        some = [row for row in auto if row["level"] == level]
        lines.append((level, len(some), len({row["data"] for row in some}), _mean(row["ari"] for row in some)))
    return _table(["support", "runs", "data sets", "mean ARI"], lines if auto else [])


def _failures(scores: Scores) -> str:
    """Return the table of data sets on which `Coview` is far below the best baseline or below half of it."""
    if not both(scores):
        return NOT_MEASURED
    lines = []
    for name in both(scores):
        best, own = best_baseline(scores, name), scores[COVIEW][name]
        if own < scores[best][name] - FAR or name in below_half(scores):
            lines.append((name, own, scores[best][name], best))
    return _table(["data", "Coview", "best baseline", "which"], lines) if lines else "none."


def _measured(rows: Mapping[str, list[Row]]) -> str:
    lines = [
        (
            stage,
            len(some),
            ", ".join(map(str, sorted({row["seed"] for row in some}))) or NONE,
            ", ".join(sorted({row["commit"] for row in some})) or NONE,
        )
        for stage, some in rows.items()
    ]
    return _table(["stage", "rows", "seeds", "measured at commit"], lines)
