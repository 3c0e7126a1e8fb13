"""The page about quality without labels, from measured rows and the prose of template.md."""

from __future__ import annotations

import json
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable
from itertools import product
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
# Stability, agreement, consensus, power of balance; and power of balance between numbers of clusters, per logarithm of
# their number, per eigengap.
USED, GIVEN = (1.0, 4.0, 1.0, 2.0), (1.0, 1.0, 0.0, 1.0)
_SHARES = (0.0, 0.5, 1.0, 2.0, 4.0)
WEIGHTS = [w for w in product(_SHARES, _SHARES, _SHARES, (0.0, 1.0, 2.0, 3.0)) if any(w[:3])]
USED_FOR_NUMBERS = (0.5, 0.3, 0.2)
FOR_NUMBERS = list(product((0.5, 1.0, 2.0), (0.0, 0.1, 0.2, 0.3, 0.4), (0.0, 0.1, 0.2, 0.5)))


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


def write(rows: list[Row], path: Path) -> None:
    """Write the page."""
    values = {
        "n_sets": len(_sets(rows)),
        "n_seeds": len({row["seed"] for row in rows}),
        "nothing": NOTHING,
        "baseline": best_baseline(rows),
        "errors": _errors(rows),
    }
    values |= _known(rows) | _unknown([row for row in rows if "auto" in row]) | _weights(rows)
    values |= _numbers([row for row in rows if "auto" in row])
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
        "below": ", ".join(name for name, of in measures.items() if of["tuned"] < of[best] / 2) or "none",
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
        "auto_ratio_most_1": float(
            np.mean([_mean(of, lambda row: min(_ratio(row["auto"], row["tuned"]), 1.0)) for of in sets.values()])
        ),
    }


def _first_round(table: list[Row]) -> list[Row]:
    """The candidates of the first round, without the trials of weights that come after them."""
    return [one for one in table if one["round"] == 1 and one["error"] is None and set(one["kappa"]) == {1.0}]


def _weights(rows: list[Row]) -> dict[str, Any]:
    picks = np.zeros((len(WEIGHTS), len(rows)))
    for j, row in enumerate(rows):
        first = _first_round(row["table"])
        stability, agreement, consensus, balance = (
            np.array([one[name] for one in first]) for name in ("stability", "agreement", "consensus", "balance")
        )
        aris = {json.dumps(one["candidate"]): one["ari"] for one in row["candidates"]}
        reached = [aris[json.dumps([one["preparations"], one["kernel"].split("(")[0], one["rho"]])] for one in first]
        for i, (s, a, c, p) in enumerate(WEIGHTS):
            picks[i, j] = reached[int(((s * stability + a * agreement + c * consensus) * balance**p).argmax())]
    left_out, chosen = _left_out(picks, rows)
    shown = [*np.argsort(-picks.mean(axis=1), kind="stable")[:5], WEIGHTS.index(USED), WEIGHTS.index(GIVEN)]
    notes = {USED: "used", GIVEN: "(stability + agreement) × balance"}
    lines = [
        (*(f"{x:g}" for x in WEIGHTS[i]), float(picks[i].mean()), chosen[i], notes.get(WEIGHTS[i], ""))
        for i in dict.fromkeys(map(int, shown))
    ]
    return {
        "weights": _table(["s", "a", "c", "p", "mean ARI of the pick", "best without a set", ""], lines),
        "weights_left_out": left_out,
    }


def _numbers(rows: list[Row]) -> dict[str, Any]:
    near = np.zeros((len(FOR_NUMBERS), len(rows)))
    for j, row in enumerate(rows):
        first = _first_round(row["auto_table"])
        keys = [json.dumps([one["preparations"], one["kernel"], one["rho"]]) for one in first]
        gaps, numbers, balances, judged = (
            np.array([one[name] for one in first]) for name in ("eigengap", "n_clusters", "balance", "criterion")
        )
        judged = judged / np.where(balances > 0, balances, 1.0) ** USED[3]
        largest = np.array([max(gap for gap, other in zip(gaps, keys, strict=True) if other == key) for key in keys])
        steep = np.divide(gaps, largest, out=np.zeros_like(gaps), where=largest > 0)
        for i, (power, per_log, per_gap) in enumerate(FOR_NUMBERS):
            best = (judged * balances**power * (1 + per_log * np.log(numbers)) * (1 + per_gap * steep)).argmax()
            near[i, j] = abs(numbers[best] - row["clusters"]) <= 1
    left_out, chosen = _left_out(near, rows)
    shown = [*np.argsort(-near.mean(axis=1), kind="stable")[:4], FOR_NUMBERS.index(USED_FOR_NUMBERS), 0]
    notes = {USED_FOR_NUMBERS: "used"}
    lines = [
        (*(f"{x:g}" for x in FOR_NUMBERS[i]), float(near[i].mean()), chosen[i], notes.get(FOR_NUMBERS[i], ""))
        for i in dict.fromkeys(map(int, shown))
    ]
    return {
        "numbers": _table(["q", "l", "g", "share within 1 of the truth", "best without a set", ""], lines),
        "numbers_left_out": f"{left_out:.0%}",
    }


def _left_out(values: np.ndarray, rows: list[Row]) -> tuple[float, Counter[int]]:
    """The mean over data sets if the best setting is chosen on the others, and how often each one is."""
    names = np.array([row["data"] for row in rows])
    reached, chosen = [], Counter[int]()
    for name in dict.fromkeys(names.tolist()):
        best = int(values[:, names != name].mean(axis=1).argmax())
        chosen[best] += 1
        reached.append(values[best, names == name].mean())
    return float(np.mean(reached)), chosen


def _errors(rows: list[Row]) -> str:
    reasons, baseline = tomllib.loads((HERE / "reasons.toml").read_text()), best_baseline(rows)
    lines = []
    for name, of in _sets(rows).items():
        tuned, best = _mean(of, lambda row: row["tuned"]), _mean(of, _best)
        simple = _mean(of, lambda row: row["baselines"][baseline])
        if _ratio(tuned, best) < 0.85 or tuned < simple:
            lines.append((name, tuned, best, simple, reasons.get(name, "Not explained yet.")))
    return _table(["data", "tuned", "best", "baseline", "why"], lines)
