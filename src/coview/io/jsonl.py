"""JSON lines (.jsonl): one object for each sample, with the same keys in each."""

from __future__ import annotations

import json
from collections import Counter
from contextlib import closing
from functools import partial
from typing import Any

from coview.errors import InputError
from coview.io.cells import CellRows, from_cells, text_lines
from coview.io.table import AsStrings, InputFile, RawTable, check_names

_TEXTS = {None: "", True: "true", False: "false"}


def read_jsonl(source: InputFile, as_strings: AsStrings) -> RawTable:
    """Return the table whose columns are the keys; strings that are numbers are read as in text tables."""
    return from_cells(source, partial(_object_rows, source), as_strings, header=True)


def _object_rows(source: InputFile) -> CellRows:
    """Yield the keys, then the values of each line as text."""
    # Pairs instead of dictionaries, because these hide a key that is there twice; numbers keep their digits.
    decode = json.JSONDecoder(object_pairs_hook=_Object, parse_float=str, parse_int=str, parse_constant=str).decode
    keys: list[str] = []
    with closing(text_lines(source)) as lines:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                found = decode(line)
            except (ValueError, RecursionError) as error:
                reason = getattr(error, "msg", None) or "nested too deeply"
                raise InputError(f"{source.where} is not JSON in line {number} ({reason}); correct that line") from None
            if not isinstance(found, _Object):
                what = "list" if isinstance(found, list) else "value"
                raise InputError(f"{source.where} has a {what} in line {number}; write one object per line")
            names = [name for name, _ in found]
            if not keys:
                keys = names
                check_names(source.where, names)
                if not keys:
                    raise InputError(f"{source.where} has an object without keys in line {number}; give it values")
                yield keys
            if names != keys:
                found = _in_order(source, number, found, keys)
            yield [value if type(value) is str else _value_text(source, number, name, value) for name, value in found]


class _Object(list[tuple[str, Any]]):
    """The keys and values of a JSON object."""


def _in_order(source: InputFile, number: int, found: _Object, keys: list[str]) -> _Object:
    values = dict(found)
    lacking = next((key for key in keys if key not in values), None)
    if lacking is not None:
        raise InputError(
            f"{source.where} lacks the key {lacking!r} in line {number}; write null if its value is missing"
        )
    if len(found) > len(keys):
        counts = Counter(name for name, _ in found)
        name = next(name for name, count in counts.items() if count > 1 or name not in keys)
        fault = "twice" if name in keys else "which the lines before lack"
        raise InputError(f"{source.where} has the key {name!r} in line {number}, {fault}; use the same keys in all")
    return _Object((key, values[key]) for key in keys)


def _value_text(source: InputFile, number: int, key: str, value: Any) -> str:
    if isinstance(value, list):  # or an object
        what = "an object" if isinstance(value, _Object) else "a list"
        raise InputError(
            f"{source.where} has {what} under the key {key!r} in line {number}; expected a number, a string, true, "
            "false or null: give every number a key of its own"
        )
    return _TEXTS[value]
