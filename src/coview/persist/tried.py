"""What a search has tried: the rows of `Tuned.evaluations_`, in plain values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from coview.persist.kinds import (
    InViewOrder,
    Json,
    Kind,
    Number,
    OrNone,
    Sizes,
    Tensors,
    Text,
    Whole,
    fields_of,
    part,
    require,
)
from coview.tune.record import EvaluatedSetting

_MEASURE = OrNone(Number())


_COLUMNS: Mapping[str, Kind] = {
    "round": Whole(least=1),
    "n_samples": Whole(least=1),
    "steps": InViewOrder(Text()),
    "kernel": Text(),
    "rho": Number(),
    "kappa": InViewOrder(Number(least=0.0)),
    "n_clusters": Whole(least=2),
    "criterion": _MEASURE,
    "consensus": _MEASURE,
    "stability": _MEASURE,
    "agreement": _MEASURE,
    "size_entropy": _MEASURE,
    "line_fit": _MEASURE,
    "membership": _MEASURE,
    "eigengap": _MEASURE,
    "error": OrNone(Text()),
}


class TriedTable(Kind):
    """A row for each candidate, number of clusters and round."""

    def write(self, value: Any, tensors: Tensors, sizes: Sizes) -> Json:
        rows = [{k: list(v) if isinstance(v, tuple) else v for k, v in vars(row).items()} for row in value]
        return _rows(rows, lambda kind, item: kind.write(item, tensors, sizes))

    def read(self, node: Json, tensors: Tensors, sizes: Sizes) -> tuple[EvaluatedSetting, ...]:
        rows = _rows(node, lambda kind, item: kind.read(item, tensors, sizes))
        plain: list[dict[str, Any]] = [
            {key: tuple(v) if isinstance(v, list) else v for key, v in row.items()} for row in rows
        ]
        return tuple(EvaluatedSetting(**row) for row in plain)


def _rows(rows: Any, one: Callable[[Kind, Any], Any]) -> list[dict[str, Any]]:
    require(isinstance(rows, list), "is not a list of rows")
    done: list[dict[str, Any]] = []
    for row in rows:
        given = fields_of(row, list(_COLUMNS))
        done.append({})
        for name, item in given.items():
            with part(name):
                done[-1][name] = one(_COLUMNS[name], item)
    return done
