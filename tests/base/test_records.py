"""Dataclasses of plain values as JSON, and back by their type hints."""

import json
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pytest

from coview.base.records import record_from_json, record_to_json
from coview.errors import InputError


@dataclass(frozen=True)
class Item:
    name: str
    size: int
    share: float | None


@dataclass(frozen=True)
class Whole:
    items: tuple[Item, ...]
    rows: tuple[tuple[float, ...], ...]
    by_name: dict[str, Item]
    names: tuple[str, ...]
    flag: bool
    unit: Literal["m", "km"]
    other: dict[str, Any]


WHOLE = Whole((Item("a", 1, None), Item("b", 2, 0.5)), ((1.0,), ()), {"c": Item("c", 3, 1.0)}, ("x",), True, "m", {})


def test_dataclasses_of_plain_values_come_back():
    node = record_to_json(WHOLE)
    assert node["items"][1] == {"name": "b", "size": 2, "share": 0.5}
    assert record_from_json(Whole, json.loads(json.dumps(node)), "whole") == WHOLE


def test_numbers_of_numpy_are_written_as_plain_numbers():
    node = record_to_json(Item("a", np.int64(3), np.float32(0.5)))
    assert [type(value) for value in node.values()] == [str, int, float]


@pytest.mark.parametrize("value", [np.nan, np.inf, b"x", {1}, np.zeros(2)], ids=repr)
def test_other_values_are_not_written(value):
    with pytest.raises(InputError, match="is not a plain value"):
        record_to_json(Item("a", 1, value))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"items": [{"name": "a", "size": 1}]}, r"whole\.items\[0\]: missing: 'share'"),
        ({"items": [{"name": "a", "size": 1.0, "share": None}]}, r"items\[0\]\.size: expected an integer, got float"),
        ({"items": [{"name": "a", "size": 2**53 + 1, "share": None}]}, r"size: expected an integer within ±2\^53"),
        ({"items": {}}, r"whole\.items: expected a list, got dict"),
        ({"rows": [[1.0], [True]]}, r"whole\.rows\[1\]\[0\]: expected a finite number, got bool"),
        ({"rows": [[float("inf")]]}, r"rows\[0\]\[0\]: expected a finite number, got inf"),
        ({"by_name": {"c": 3}}, r"whole\.by_name\.c: expected an object, got int"),
        ({"names": ["x", None]}, r"whole\.names\[1\]: expected a string, got NoneType"),
        ({"flag": 1}, "whole.flag: expected true or false, got int"),
        ({"unit": "mm"}, "whole.unit: expected one of m, km, got mm"),
        ({"other": {"x": [float("nan")]}}, r"whole\.other\.x\[0\]: expected a finite number"),
        ({"extra": 1}, "whole: unknown: 'extra'"),
    ],
    ids=str,
)
def test_changed_records_say_what_was_expected(change, message):
    with pytest.raises(InputError, match=message):
        record_from_json(Whole, {**record_to_json(WHOLE), **change}, "whole")
