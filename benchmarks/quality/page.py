"""The page on quality without labels, from measured rows and the text of template.md."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from string import Template
from typing import Any

import numpy as np

from benchmarks.markdown import reflow, table
from benchmarks.quality.evaluations import GENERATED
from benchmarks.quality.numbers import (
    LEAST_ARI,
    Quality,
    Selection,
    ranked_constants,
    selected_by_tuned,
)
from benchmarks.quality.paired import BOOTSTRAP_SEED, RESAMPLES, SPLIT_SEED, mean_with_interval
from benchmarks.quality.rows import Row
from benchmarks.quality.scores import BASELINES, BEST_MODEL, DEFAULT, KM_L2, MAX_SAMPLES, NN_L2, TUNED, UMAP_L2
from coview.tune.criterion import USED, Constants

HERE = Path(__file__).parent
LEAST_BASELINE = 0.05  # of the best baseline, for a comparison with half of it
FAR = 0.1  # below the best baseline
NONE = "–"

Halves = tuple[Sequence[str], Sequence[str]]


def write(rows: list[Row], evaluations: list[Row], halves: Halves, path: Path) -> None:
    """Write the page from the rows of both stages, with means on both halves of the data sets."""
    reasons: dict[str, str] = tomllib.loads((HERE / "reasons.toml").read_text())["data"]
    scores = mean_scores(rows)
    n_seeds = len({row["seed"] for row in rows})
    values = {
        "n_sets": len(scores[TUNED]),
        "seeds": "of one seed" if n_seeds == 1 else f"means over {n_seeds} seeds",
        "commits": ", ".join(sorted({row["commit"] for row in rows})),
        "max_samples": f"{MAX_SAMPLES:,}",
        "least_ari": LEAST_ARI,
        "least_baseline": LEAST_BASELINE,
        "far": FAR,
        "resamples": f"{RESAMPLES:,}",
        "bootstrap_seed": BOOTSTRAP_SEED,
        "split_seed": SPLIT_SEED,
        "data": _data_table(rows, scores, halves[0]),
        "means": _means_table(scores, halves),
        "failures": _failures(scores, reasons),
    }
    values |= _headline(scores, halves) | _numbers(selected_by_tuned(rows), halves) | _constants(evaluations, halves)
    path.write_text(reflow(Template((HERE / "template.md").read_text()).substitute(values)))


def mean_scores(rows: Iterable[Row]) -> dict[str, dict[str, float]]:
    """Return by method and data set the mean over the seeds; a model may not exist for each data set."""
    found: dict[str, dict[str, list[float]]] = {}
    for row in rows:
        for title, score in row["scores"].items():
            found.setdefault(title, {}).setdefault(row["data"], []).append(score)
    return {title: {name: float(np.mean(of)) for name, of in by_set.items()} for title, by_set in found.items()}


def below_half(scores: Mapping[str, Mapping[str, float]]) -> list[str]:
    """Return the data sets on which `Tuned` has less than half of the best baseline."""
    best = {name: scores[best_baseline(scores, name)][name] for name in scores[TUNED]}
    return [name for name, tuned in scores[TUNED].items() if best[name] >= LEAST_BASELINE and tuned < best[name] / 2]


def best_baseline(scores: Mapping[str, Mapping[str, float]], name: str) -> str:
    """Return the baseline with the largest score on a data set."""
    return max(BASELINES, key=lambda title: scores[title][name])


def _mean(by_set: Mapping[str, float], names: Iterable[str]) -> float:
    known = [by_set[name] for name in names if name in by_set]
    return float(np.mean(known)) if known else float("nan")


def _number(value: float) -> str:
    return NONE if np.isnan(value) else f"{value:.3f}"


def _percent(value: float) -> str:
    return NONE if np.isnan(value) else f"{100 * value:.0f} %"


def _difference(scores: Mapping[str, Mapping[str, float]], title: str, names: Iterable[str]) -> str:
    """Return the mean difference of `Tuned` to another method on the same data sets, with its interval."""
    differences = [scores[TUNED][name] - scores[title][name] for name in names if name in scores[title]]
    return mean_with_interval(differences) if differences else NONE


def _table(head: Sequence[str], body: Iterable[Iterable[Any]]) -> str:
    return "\n".join(table(head, body))


def _data_table(rows: list[Row], scores: Mapping[str, Mapping[str, float]], fixing: Sequence[str]) -> str:
    shown = (DEFAULT, TUNED, BEST_MODEL, UMAP_L2, NN_L2, KM_L2)
    first = {row["data"]: row for row in reversed(rows)}
    lines = [
        (
            f"{name} \\*" if name in fixing else name,
            first[name]["clusters"],
            *(scores[title][name] for title in shown),
            _short([row["auto"]["n_clusters"] for row in rows if row["data"] == name and "auto" in row]),
        )
        for name in scores[TUNED]
    ]
    head = ["data", "k", "default", "tuned", "best model", "UMAP + KM", "SC NN", "KM", "selected k"]
    return _table(head, lines)


def _short(numbers: Sequence[int]) -> str:
    """Return the numbers in increasing order, such as "4 (3×), 6"."""
    counts = sorted(Counter(numbers).items())
    return ", ".join(f"{number} ({count}×)" if count > 1 else str(number) for number, count in counts) or NONE


def _means_table(scores: Mapping[str, Mapping[str, float]], halves: Halves) -> str:
    fixing, reporting = halves
    lines = [
        (
            title,
            len(by_set),
            *(_number(_mean(by_set, names)) for names in (fixing, reporting, by_set)),
            *(NONE if title == TUNED else _difference(scores, title, names) for names in (reporting, by_set)),
        )
        for title, by_set in scores.items()
    ]
    differences = ["`Tuned` minus it, reporting", "`Tuned` minus it, all"]
    return _table(["method", "data sets", "fixing", "reporting", "all", *differences], lines)


def _headline(scores: Mapping[str, Mapping[str, float]], halves: Halves) -> dict[str, Any]:
    reporting, names = halves[1], list(scores[TUNED])
    best = max(BASELINES, key=lambda title: _mean(scores[title], names))
    means = {"tuned": TUNED, "default": DEFAULT, "best_model": BEST_MODEL, "baseline": best}
    found = {f"{key}_all": _number(_mean(scores[title], names)) for key, title in means.items()}
    found |= {f"{key}_reporting": _number(_mean(scores[title], reporting)) for key, title in means.items()}
    return found | {
        "baseline": best,
        "gain_all": _difference(scores, best, names),
        "gain_reporting": _difference(scores, best, reporting),
        "below_half": ", ".join(below_half(scores)) or "none",
    }


def _failures(scores: Mapping[str, Mapping[str, float]], reasons: Mapping[str, str]) -> str:
    """Return the table of data sets on which `Tuned` is far below the best baseline or below half of it."""
    lines = []
    for name, tuned in scores[TUNED].items():
        best = best_baseline(scores, name)
        if tuned < scores[best][name] - FAR or name in below_half(scores):
            lines.append((name, tuned, scores[BEST_MODEL][name], scores[best][name], best, reasons.get(name, NONE)))
    head = ["data", "tuned", "best model", "best baseline", "which", "reason"]
    return _table(head, lines) if lines else "none."


def _numbers(selections: Sequence[Selection], halves: Halves) -> dict[str, Any]:
    """Return the table of selected numbers of clusters, and the values of the headline."""
    parts = {"fixing": halves[0], "reporting": halves[1], "all": [*halves[0], *halves[1]]}
    lines, shown = [], {}
    for part, names in parts.items():
        some = [each for each in selections if each.data in names]
        quality = Quality.of(some)
        lines.append((part, len({each.data for each in some}), *map(_percent, quality)))
        if part != "fixing":
            shown |= {
                f"within_1_{part}": _percent(quality.within_1),
                f"kept_{part}": _percent(quality.ari_kept),
            }
    head = ["half", "data sets", "within 1", "exact", "below", "above", "ARI kept"]
    return shown | {"numbers": _table(head, lines)}


def _constants(evaluations: Sequence[Row], halves: Halves) -> dict[str, Any]:
    """Return the table of constants, and how often the number of generated clusters is found."""
    parts = {"fixing": halves[0], "reporting": halves[1], "generated": list(GENERATED)}
    rows = {part: [row for row in evaluations if row["data"] in names] for part, names in parts.items()}
    qualities = dict(ranked_constants(rows, "fixing"))
    order, unweighted = list(qualities), Constants(0.0, 0.0, 0.0)
    lines = [
        (
            order.index(each) + 1,
            *(f"{value:g}" for value in each),
            *(_percent(getattr(of[part], i)) for part in ("fixing", "reporting") for i in ("within_1", "ari_kept")),
            _percent(of["generated"].exact),
            "used" if each == USED else "",
        )
        for each, of in qualities.items()
        if each in (*order[:2], USED, unweighted)
    ]
    head = ["rank", "p", "l", "g", "within 1, fixing", "ARI kept, fixing"]
    head += ["within 1, reporting", "ARI kept, reporting", "exact, generated", ""]
    return {
        "constants": _table(head, lines),
        "n_constants": len(order),
        "n_generated": len(GENERATED),
        "exact_generated": _percent(qualities[USED]["generated"].exact),
    }
