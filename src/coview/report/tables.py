"""Small tables that are worked out from a summary when the page is made."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from coview.tune.record import ranked_evaluations

if TYPE_CHECKING:
    from coview.summary import Summary, Truth
    from coview.tune.record import EvaluatedSetting, Tuning

MOST_CLASSES = 40  # columns beside the clusters; a table of more is not read
MOST_SPLITS = 5
MOST_TRIED = 20


@dataclass(frozen=True)
class CrossTable:
    """Clusters down, classes across; rare classes are counted together when there are very many."""

    classes: tuple[str, ...]
    rows: tuple[tuple[int, ...], ...]
    shares: tuple[tuple[float, ...], ...]  # of the cluster
    n_other: int  # classes that are counted together in the last column


@dataclass(frozen=True)
class Split:
    """A cluster that one view alone would cut in pieces."""

    label: int
    drawn: int  # members among the drawn samples
    largest: float  # share in the view's largest piece
    second: float


def agreements(summary: Summary) -> list[tuple[str, list[float | None]]]:
    """Return by view the share of each cluster that this view alone keeps together, for views with own labels."""
    rows = [(v.name, [cluster.agreement.get(v.name) for cluster in summary.clusters]) for v in summary.views]
    return [row for row in rows if any(share is not None for share in row[1])]


def splits(summary: Summary) -> dict[str, list[Split]]:
    """Return by view the clusters that this view alone would cut, the most divided first.

    It does not matter how the view numbers its own groups.
    """
    found = {}
    for view, own in summary.points.view_labels.items():
        groups: dict[int, Counter[int]] = defaultdict(Counter)
        for label, group in zip(summary.points.labels, own, strict=True):
            groups[label][group] += 1
        pieces = []
        for label, counts in groups.items():
            (_, first), (_, second) = [*counts.most_common(2), (None, 0)][:2]
            drawn = counts.total()
            if second:
                pieces.append(Split(label, drawn, first / drawn, second / drawn))
        found[view] = sorted(pieces, key=lambda piece: piece.largest)[:MOST_SPLITS]
    return found


def best_tried(tuning: Tuning) -> list[EvaluatedSetting]:
    """Return the best of what was tried, those of the last round first, and the chosen one among them."""
    chosen = tuning.evaluations[tuning.selected]
    shown = ranked_evaluations(tuning.evaluations, chosen.n_clusters)[:MOST_TRIED]
    return shown if chosen in shown else [*shown[:-1], chosen]


def cross_table(truth: Truth) -> CrossTable:
    """Return clusters beside classes, the most frequent classes if there are very many."""
    totals = [sum(column) for column in zip(*truth.contingency, strict=True)]
    kept = list(range(len(truth.classes)))
    if len(kept) > MOST_CLASSES:
        kept = sorted(sorted(kept, key=lambda column: -totals[column])[:MOST_CLASSES])
    n_other = len(truth.classes) - len(kept)
    rows = []
    for row in truth.contingency:
        shown = [row[column] for column in kept]
        rows.append((*shown, sum(row) - sum(shown)) if n_other else tuple(shown))
    return CrossTable(
        classes=tuple(truth.classes[column] for column in kept),
        rows=tuple(rows),
        shares=tuple(tuple(value / max(sum(row), 1) for value in row) for row in rows),
        n_other=n_other,
    )
