"""The page about quality without labels, from measured rows and the prose of template.md."""

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

Row = dict[str, Any]

HERE = Path(__file__).parent
FOUR = (
    "k-means, standardised",
    "k-means, row-normalised",
    "spectral, rbf, standardised",
    "spectral, nearest neighbours, standardised",
)
FIFTH = "spectral, nearest neighbours, row-normalised"
NOTHING = 0.02
# Stability, agreement, consensus, power of size_entropy; and between numbers of clusters per logarithm, per eigengap.
USED, GIVEN = (1, 2, 1, 1.5), (1, 1, 0, 1)
SHARES = [w for w in product((0, 1, 2, 4), repeat=3) if gcd(*w) == 1]  # those of the same proportions are the same
WEIGHTS = [(*shares, power) for shares in SHARES for power in (0, 0.5, 1, 1.5, 2)]
USED_FOR_NUMBERS = (0.75, 0.5)
FOR_NUMBERS = list(product((0, 0.25, 0.5, 0.75, 1), repeat=2))


def read(path: Path, version: str) -> list[Row]:
    """Rows on file of this version of the search; a line that was cut off when a run was stopped is left out."""
    rows: list[Row] = []
    for line in path.read_text().splitlines() if path.exists() else []:
        try:
            rows.append(json.loads(line))
        except json.JSONDecodeError:
            continue
    rows = [row for row in rows if row["version"] == version]
    return sorted(rows, key=lambda row: (row["data"].lower(), row["seed"]))


def write(rows: list[Row], evidence: list[Row], path: Path) -> None:
    """Write the page, from rows of quality and of the evidence."""
    values = {
        "n_sets": len(_sets(rows)),
        "n_seeds": len({row["seed"] for row in rows}),
        "nothing": NOTHING,
        "baseline": best_baseline(rows),
        "errors": _errors(rows),
    }
    values |= _known(rows) | _unknown([row for row in rows if "auto" in row])
    values |= _constants(evidence)
    shown = {name: f"{value:.3f}" if isinstance(value, float) else value for name, value in values.items()}
    path.write_text(Template((HERE / "template.md").read_text()).substitute(shown))


def _sets(rows: Iterable[Row]) -> dict[str, list[Row]]:
    sets: dict[str, list[Row]] = {}
    for row in rows:
        sets.setdefault(row["data"], []).append(row)
    return sets


def _mean(rows: Iterable[Row], value: Callable[[Row], float]) -> float:
    return float(np.mean([value(row) for row in rows]))


def _best(row: Row) -> float:
    return max(one["ari"] for one in row["candidates"])


def _even(row: Row) -> float:
    """What the chosen candidate reaches with even weights of the views."""
    return next(float(one["ari"]) for one in row["candidates"] if one["candidate"] == row["chosen"]["candidate"])


def _ratio(reached: float, best: float) -> float:
    return max(reached, 0.0) / best if best > NOTHING else 1.0


def _table(head: list[str], lines: Iterable[Iterable[Any]]) -> str:
    def line(cells: Iterable[Any]) -> str:
        return "| " + " | ".join(f"{cell:.3f}" if isinstance(cell, float) else str(cell) for cell in cells) + " |"

    return "\n".join([line(head), line(["---"] * len(head)), *map(line, lines)])


def best_baseline(rows: list[Row]) -> str:
    """The one of the four baselines that is best on average over the data sets."""
    sets = _sets(rows).values()
    return max(FOUR, key=lambda title: np.mean([_mean(of, lambda row: row["baselines"][title]) for of in sets]))


def _known(rows: list[Row]) -> dict[str, Any]:
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
        "KM s",
        "KM r",
        "SC rbf s",
        "SC nn s",
        "SC nn r",
    ]
    return {
        "known": _table(head, [*lines, ("**mean**", "", "", *means.values())]),
        "ratio": means["ratio"],
        "tuned_mean": means["tuned"],
        "baseline_mean": means[best],
        "gain": f"{means['tuned'] - means[best]:+.3f}",
        "gain_fifth": f"{means['tuned'] - means[FIFTH]:+.3f}",
        "below": ", ".join(name for name, of in measures.items() if of["tuned"] < of[best] / 2 and of[best] > NOTHING)
        or "none",
        "even_mean": float(np.mean([_mean(of, _even) for of in sets.values()])),
    }


def _unknown(rows: list[Row]) -> dict[str, Any]:
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
        "unknown": _table(["data", "true k", "chosen, by seed", "ARI", "ARI at the true k", "ratio"], lines),
        "n_auto": len(sets),
        "near": f"{np.mean(list(near.values())):.0%}",
        "near_sets": sum(share > 0.5 for share in near.values()),
        "auto_ratio": float(np.mean(list(ratios.values()))),
        "auto_quotient": _mean(rows, lambda row: row["auto"]) / _mean(rows, lambda row: row["tuned"]),
        "auto_ratio_most_1": float(
            np.mean([_mean(of, lambda row: min(_ratio(row["auto"], row["tuned"]), 1.0)) for of in sets.values()])
        ),
    }


MEASURES = ("stability", "agreement", "consensus", "size_entropy", "eigengap", "ari")


def _measures(row: Row) -> tuple[np.ndarray, ...]:
    """Numbers of clusters, and the measures of the evidence, each as an array of numbers by candidates."""
    numbers = np.unique([one["n_clusters"] for one in row["table"]])
    return numbers, *(np.array([one[name] for one in row["table"]]).reshape(len(numbers), -1) for name in MEASURES)


@dataclass(frozen=True)
class LeftOut:
    """What each setting has on each run, and what comes of choosing one on all data sets but that of the run."""

    values: np.ndarray  # settings by runs
    names: np.ndarray  # the data set of each run

    @cached_property
    def choice(self) -> dict[str, int]:
        """By data set, the setting that is best on all the others."""
        every = dict.fromkeys(self.names.tolist())
        return {name: int(self.values[:, self.names != name].mean(axis=1).argmax()) for name in every}

    def reached(self, values: np.ndarray, among: np.ndarray) -> float:
        """The mean of these values over some runs, each with the setting that was chosen without its data set."""
        return float(np.mean([values[self.choice[name], j] for j, name in enumerate(self.names) if among[j]]))


def _of_weights(evidence: list[Row]) -> LeftOut:
    """The ARI of the pick at the true number of clusters, for each weighting."""
    reached = np.zeros((len(WEIGHTS), len(evidence)))
    for j, row in enumerate(evidence):
        numbers, *measures = _measures(row)
        at = numbers == row["clusters"]
        for i, weights in enumerate(WEIGHTS):
            reached[i, j] = measures[-1][at][0, _judged(weights, measures)[at][0].argmax()]
    return LeftOut(reached, np.array([row["data"] for row in evidence]))


def _judged(weights: tuple[float, ...], measures: list[np.ndarray]) -> np.ndarray:
    """The criterion with these weights, by number of clusters and candidate."""
    (s, a, c, p), (stability, agreement, consensus, size_entropy, *_) = weights, measures
    judged: np.ndarray = np.maximum(s * stability + a * agreement + c * consensus, 0) * size_entropy**p
    return judged


def _of_numbers(evidence: list[Row], weights: Callable[[str], tuple[float, ...]]) -> tuple[np.ndarray, np.ndarray]:
    """Whether the chosen number is within 1 of the truth, and the ARI there over that at the truth, at most 1."""
    near, ratio = np.zeros((2, len(FOR_NUMBERS), len(evidence)))
    for j, row in enumerate(evidence):
        numbers, *measures = _measures(row)
        *_, gaps, ari = measures
        judged = _judged(weights(row["data"]), measures)
        reached = ari[range(len(numbers)), judged.argmax(axis=1)]  # by number of clusters
        at_truth = reached[numbers == row["clusters"]][0]
        steep = np.divide(gaps, gaps.max(axis=0), out=np.zeros_like(gaps), where=gaps.max(axis=0) > 0)
        for i, (per_log, per_gap) in enumerate(FOR_NUMBERS):
            compared = judged * (1 + per_log * np.log(numbers)[:, None]) * (1 + per_gap * steep)
            best = compared.max(axis=1).argmax()
            near[i, j] = abs(numbers[best] - row["clusters"]) <= 1
            ratio[i, j] = min(_ratio(reached[best], at_truth), 1.0)
    return near, ratio


def _constants(evidence: list[Row]) -> dict[str, Any]:
    """The two tables of how constants were fixed, and what is left where each data set is left out of the choice."""
    real = [row for row in evidence if not _generated(row["data"])]
    weights = _of_weights(real)
    means, chosen = weights.values.mean(axis=1), Counter(weights.choice.values())
    shown = [*np.argsort(-means, kind="stable")[:5], WEIGHTS.index(USED), WEIGHTS.index(GIVEN)]
    notes = {USED: "used", GIVEN: "(stability + agreement) × size_entropy"}
    of_weights = [
        (*(f"{x:g}" for x in WEIGHTS[i]), float(means[i]), chosen[i], notes.get(WEIGHTS[i], ""))
        for i in dict.fromkeys(map(int, shown))
    ]

    few = [row for row in evidence if row["clusters"] <= 12]
    names = np.array([row["data"] for row in few])
    near, ratio = _of_numbers(few, lambda name: USED)
    numbers = LeftOut((near + ratio) / 2, names)
    means, chosen = numbers.values.mean(axis=1), Counter(numbers.choice.values())
    is_real = np.array([not _generated(name) for name in names])
    shown = [*np.argsort(-means, kind="stable")[:5], FOR_NUMBERS.index(USED_FOR_NUMBERS), 0]
    of_numbers = [
        (
            *(f"{x:g}" for x in FOR_NUMBERS[i]),
            *(float(of[i, where].mean()) for where in (is_real, ~is_real) for of in (near, ratio)),
            chosen[i],
            "used" if FOR_NUMBERS[i] == USED_FOR_NUMBERS else "",
        )
        for i in dict.fromkeys(map(int, shown))
    ]
    # Now with the weights, too, chosen without the data set.
    near, ratio = _of_numbers(few, lambda name: WEIGHTS[weights.choice[name]] if name in weights.choice else USED)
    nested = LeftOut((near + ratio) / 2, names)
    return {
        "weights": _table(["s", "a", "c", "p", "mean ARI of the pick", "best without a set", ""], of_weights),
        "weights_used": float(weights.values[WEIGHTS.index(USED)].mean()),
        "weights_given": float(weights.values[WEIGHTS.index(GIVEN)].mean()),
        "weights_left_out": weights.reached(weights.values, np.ones(len(real), dtype=bool)),
        "numbers": _table(
            ["l", "g", "within 1", "ratio", "within 1, generated", "ratio, generated", "best without a set", ""],
            of_numbers,
        ),
        "near_left_out": nested.reached(near, is_real),
        "ratio_left_out": nested.reached(ratio, is_real),
    }


def _generated(name: str) -> bool:
    return " " in name


def _errors(rows: list[Row]) -> str:
    reasons, baseline = tomllib.loads((HERE / "reasons.toml").read_text()), best_baseline(rows)
    lines = []
    for name, of in _sets(rows).items():
        tuned, best = _mean(of, lambda row: row["tuned"]), _mean(of, _best)
        simple = _mean(of, lambda row: row["baselines"][baseline])
        if _ratio(tuned, best) < 0.85 or tuned < simple or best < NOTHING:
            lines.append((name, tuned, best, simple, reasons.get(name, "Not explained yet.")))
    return _table(["data", "tuned", "best", "baseline", "why"], lines)
