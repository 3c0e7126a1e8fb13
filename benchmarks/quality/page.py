"""The page on quality without labels, from measured rows and the text of template.md."""

from __future__ import annotations

import json
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import gcd
from pathlib import Path
from string import Template
from typing import Any

import numpy as np

from benchmarks.markdown import reflow, table

Row = dict[str, Any]

HERE = Path(__file__).parent
FOUR = (
    "k-means, standardised",
    "k-means, L2-normalised",
    "spectral, rbf, standardised",
    "spectral, nearest neighbours, standardised",
)
FIFTH = "spectral, nearest neighbours, L2-normalised"
LOW_ARI = 0.02  # below it, no clusters are found
# Weights of stability, agreement and consensus, and power of the size entropy.
USED, UNWEIGHTED = (1, 2, 1, 1.5), (1, 1, 0, 1)
PROPORTIONS = [w for w in product((0, 1, 2, 4), repeat=3) if gcd(*w) == 1]  # multiples give the same ranking
WEIGHTS = [(*proportions, power) for proportions in PROPORTIONS for power in (0, 0.5, 1, 1.5, 2)]
# For numbers of clusters: factors of ln k and of the eigengap.
USED_FOR_NUMBERS = (0.75, 0.5)
FOR_NUMBERS = list(product((0, 0.25, 0.5, 0.75, 1), repeat=2))


def read(path: Path, version: str) -> list[Row]:
    """Return the stored rows of this version of the search, without an incomplete line of an interrupted run."""
    rows: list[Row] = []
    for line in path.read_text().splitlines() if path.exists() else []:
        try:
            rows.append(json.loads(line))
        except json.JSONDecodeError:
            continue
    rows = [row for row in rows if row["version"] == version]
    return sorted(rows, key=lambda row: (row["data"].lower(), row["seed"]))


def write(rows: list[Row], evaluations: list[Row], path: Path) -> None:
    """Write the page from the rows of both stages."""
    reasons = tomllib.loads((HERE / "reasons.toml").read_text())
    commits = sorted({row["commit"] for row in rows})
    values = {
        "n_sets": len(_sets(rows)),
        "n_seeds": len({row["seed"] for row in rows}),
        "commits": ", ".join(commits),
        "notes": " ".join(reasons["notes"].get(commit, "") for commit in commits),
        "nothing": LOW_ARI,
        "baseline": _in_words(best_baseline(rows)),
        "fifth": _in_words(FIFTH),
        "errors": _low_scores(rows, reasons["data"]),
    }
    values |= _known_number(rows) | _unknown_number([row for row in rows if "auto" in row])
    values |= _constants(evaluations)
    shown = {name: f"{value:.3f}" if isinstance(value, float) else value for name, value in values.items()}
    path.write_text(reflow(Template((HERE / "template.md").read_text()).substitute(shown)))


def _sets(rows: Iterable[Row]) -> dict[str, list[Row]]:
    sets: dict[str, list[Row]] = {}
    for row in rows:
        sets.setdefault(row["data"], []).append(row)
    return sets


def _mean(rows: Iterable[Row], value: Callable[[Row], float]) -> float:
    return float(np.mean([value(row) for row in rows]))


def _best(row: Row) -> float:
    return max(one["ari"] for one in row["candidates"])


def _equal_weights(row: Row) -> float:
    """Return the ARI of the selected candidate with equal weights of the views."""
    return next(float(one["ari"]) for one in row["candidates"] if one["candidate"] == row["selected"]["candidate"])


def _ratio(reached: float, best: float) -> float:
    return max(reached, 0.0) / best if best > LOW_ARI else 1.0


def _table(head: list[str], body: Iterable[Iterable[Any]]) -> str:
    return "\n".join(table(head, body))


def best_baseline(rows: list[Row]) -> str:
    """Return the best of the first four baselines by the mean over the data sets."""
    sets = _sets(rows).values()
    return max(FOUR, key=lambda title: np.mean([_mean(of, lambda row: row["baselines"][title]) for of in sets]))


def _in_words(title: str) -> str:
    """Return the name of a baseline for the text, such as "k-means (L2-normalised)"."""
    method, _, settings = title.partition(", ")
    return f"{method.replace('spectral', 'spectral clustering')} ({settings})"


def _known_number(rows: list[Row]) -> dict[str, Any]:
    sets, best = _sets(rows), best_baseline(rows)
    measures = {
        name: {
            "default": _mean(of, lambda row: row["default"]),
            "tuned": _mean(of, lambda row: row["tuned"]),
            "best": _mean(of, _best),
            "ratio": _mean(of, lambda row: _ratio(row["tuned"], _best(row))),
        }
        | {title: _mean(of, lambda row, title=title: row["baselines"][title]) for title in (*FOUR, FIFTH)}
        for name, of in sets.items()
    }
    means = {title: float(np.mean([of[title] for of in measures.values()])) for title in next(iter(measures.values()))}
    lines = [(name, of[0]["samples"], of[0]["clusters"], *measures[name].values()) for name, of in sets.items()]
    head = [
        "data",
        "samples",
        "k",
        "default",
        "tuned",
        "best",
        "ratio",
        "KM std",
        "KM L2",
        "SC RBF std",
        "SC NN std",
        "SC NN L2",
    ]
    return {
        "known": _table(head, [*lines, ("**mean**", "", "", *means.values())]),
        "ratio": means["ratio"],
        "tuned_mean": means["tuned"],
        "best_mean": means["best"],
        "baseline_mean": means[best],
        "fifth_mean": means[FIFTH],
        "gain": f"{means['tuned'] - means[best]:+.3f}",
        "gain_fifth": f"{means['tuned'] - means[FIFTH]:+.3f}",
        "below": ", ".join(name for name, of in measures.items() if of["tuned"] < of[best] / 2 and of[best] > LOW_ARI)
        or "none",
        "even_mean": float(np.mean([_mean(of, _equal_weights) for of in sets.values()])),
    }


def _unknown_number(rows: list[Row]) -> dict[str, Any]:
    sets = _sets(rows)
    near = {name: _mean(of, lambda row: abs(row["auto_clusters"] - row["clusters"]) <= 1) for name, of in sets.items()}
    ratios = {name: _mean(of, lambda row: _ratio(row["auto"], row["tuned"])) for name, of in sets.items()}
    lines = [
        (
            name,
            of[0]["clusters"],
            ", ".join(str(row["auto_clusters"]) for row in of),
            _mean(of, lambda row: row["auto"]),
            _mean(of, lambda row: row["tuned"]),
            ratios[name],
        )
        for name, of in sets.items()
    ]
    return {
        "unknown": _table(["data", "true k", "selected, by seed", "ARI", "ARI at the true k", "ratio"], lines),
        "n_auto": len(sets),
        "near": f"{np.mean(list(near.values())):.0%}",
        "near_sets": sum(fraction > 0.5 for fraction in near.values()),
        "auto_ratio": float(np.mean(list(ratios.values()))),
        "auto_quotient": _mean(rows, lambda row: row["auto"]) / _mean(rows, lambda row: row["tuned"]),
        "auto_ratio_most_1": float(
            np.mean([_mean(of, lambda row: min(_ratio(row["auto"], row["tuned"]), 1.0)) for of in sets.values()])
        ),
    }


MEASURES = ("stability", "agreement", "consensus", "size_entropy", "eigengap", "ari")


def _measures(row: Row) -> tuple[np.ndarray, ...]:
    """Return the numbers of clusters, and each measure as an array of shape (numbers, candidates)."""
    numbers = np.unique([one["n_clusters"] for one in row["table"]])
    return numbers, *(np.array([one[name] for one in row["table"]]).reshape(len(numbers), -1) for name in MEASURES)


@dataclass(frozen=True)
class LeaveOneOut:
    """The value of each setting on each run, and the selection of a setting on all data sets but that of the run."""

    values: np.ndarray  # of shape (settings, runs)
    names: np.ndarray  # the data set of each run

    @cached_property
    def choice(self) -> dict[str, int]:
        """For each data set, the setting that is best on all others."""
        every = dict.fromkeys(self.names.tolist())
        return {name: int(self.values[:, self.names != name].mean(axis=1).argmax()) for name in every}

    def reached(self, values: np.ndarray, among: np.ndarray) -> float:
        """Return the mean of values over some runs, each with the setting selected without its data set."""
        return float(np.mean([values[self.choice[name], j] for j, name in enumerate(self.names) if among[j]]))


def _of_weights(evaluations: list[Row]) -> LeaveOneOut:
    """Return the ARI of the selected candidate at the true number of clusters, for each weighting."""
    reached = np.zeros((len(WEIGHTS), len(evaluations)))
    for j, row in enumerate(evaluations):
        numbers, *measures = _measures(row)
        at = numbers == row["clusters"]
        for i, weights in enumerate(WEIGHTS):
            reached[i, j] = measures[-1][at][0, _criterion(weights, measures)[at][0].argmax()]
    return LeaveOneOut(reached, np.array([row["data"] for row in evaluations]))


def _criterion(weights: tuple[float, ...], measures: list[np.ndarray]) -> np.ndarray:
    """Return the criterion with these weights, of shape (numbers, candidates)."""
    (s, a, c, p), (stability, agreement, consensus, size_entropy, *_) = weights, measures
    criterion: np.ndarray = np.maximum(s * stability + a * agreement + c * consensus, 0) * size_entropy**p
    return criterion


def _of_numbers(evaluations: list[Row], weights: Callable[[str], tuple[float, ...]]) -> tuple[np.ndarray, np.ndarray]:
    """Return whether the selected number is within 1 of the true one, and the ratio of the ARI there, at most 1."""
    near, ratio = np.zeros((2, len(FOR_NUMBERS), len(evaluations)))
    for j, row in enumerate(evaluations):
        numbers, *measures = _measures(row)
        *_, gaps, ari = measures
        criterion = _criterion(weights(row["data"]), measures)
        reached = ari[range(len(numbers)), criterion.argmax(axis=1)]  # by number of clusters
        at_truth = reached[numbers == row["clusters"]][0]
        steep = np.divide(gaps, gaps.max(axis=0), out=np.zeros_like(gaps), where=gaps.max(axis=0) > 0)
        for i, (per_log, per_gap) in enumerate(FOR_NUMBERS):
            compared = criterion * (1 + per_log * np.log(numbers)[:, None]) * (1 + per_gap * steep)
            best = compared.max(axis=1).argmax()
            near[i, j] = abs(numbers[best] - row["clusters"]) <= 1
            ratio[i, j] = min(_ratio(reached[best], at_truth), 1.0)
    return near, ratio


def _constants(evaluations: list[Row]) -> dict[str, Any]:
    """Return the two tables of constants, and the leave-one-out scores."""
    real = [row for row in evaluations if not _generated(row["data"])]
    weights = _of_weights(real)
    means, chosen = weights.values.mean(axis=1), Counter(weights.choice.values())
    shown = [*np.argsort(-means, kind="stable")[:5], WEIGHTS.index(USED), WEIGHTS.index(UNWEIGHTED)]
    notes = {USED: "used", UNWEIGHTED: "(stability + agreement) × size entropy"}
    of_weights = [
        (*(f"{x:g}" for x in WEIGHTS[i]), float(means[i]), chosen[i], notes.get(WEIGHTS[i], ""))
        for i in dict.fromkeys(map(int, shown))
    ]

    few = [row for row in evaluations if row["clusters"] <= 12]
    names = np.array([row["data"] for row in few])
    near, ratio = _of_numbers(few, lambda name: USED)
    numbers = LeaveOneOut((near + ratio) / 2, names)
    means, chosen = numbers.values.mean(axis=1), Counter(numbers.choice.values())
    is_real = np.array([not _generated(name) for name in names])
    shown = [*np.argsort(-means, kind="stable")[:5], FOR_NUMBERS.index(USED_FOR_NUMBERS), 0]
    of_numbers = [
        (
            *(f"{x:g}" for x in FOR_NUMBERS[i]),
            *(float(of[i, runs].mean()) for runs in (is_real, ~is_real) for of in (near, ratio)),
            chosen[i],
            "used" if FOR_NUMBERS[i] == USED_FOR_NUMBERS else "",
        )
        for i in dict.fromkeys(map(int, shown))
    ]
    # The weights are also selected without the data set.
    near, ratio = _of_numbers(few, lambda name: WEIGHTS[weights.choice[name]] if name in weights.choice else USED)
    nested = LeaveOneOut((near + ratio) / 2, names)
    return {
        "weights": _table(["s", "a", "c", "p", "mean ARI", "selected in leave-one-out", ""], of_weights),
        "weights_used": float(weights.values[WEIGHTS.index(USED)].mean()),
        "weights_given": float(weights.values[WEIGHTS.index(UNWEIGHTED)].mean()),
        "weights_left_out": weights.reached(weights.values, np.ones(len(real), dtype=bool)),
        "numbers": _table(
            ["l", "g", "within 1", "ratio", "within 1, generated", "ratio, generated", "selected in leave-one-out", ""],
            of_numbers,
        ),
        "near_left_out": nested.reached(near, is_real),
        "ratio_left_out": nested.reached(ratio, is_real),
    }


def _generated(name: str) -> bool:
    return " " in name


def _low_scores(rows: list[Row], reasons: dict[str, str]) -> str:
    """Return the table of data sets with low scores."""
    baseline, lines = best_baseline(rows), []
    for name, of in _sets(rows).items():
        tuned, best = _mean(of, lambda row: row["tuned"]), _mean(of, _best)
        simple = _mean(of, lambda row: row["baselines"][baseline])
        if _ratio(tuned, best) < 0.85 or tuned < simple or best < LOW_ARI:
            lines.append((name, tuned, best, simple, reasons.get(name, "Not explained yet.")))
    return _table(["data", "tuned", "best", "baseline", "reason"], lines)
