"""JSON lines (.jsonl): one object for each sample, with the same keys in each."""

from __future__ import annotations

import json
from collections import Counter
from contextlib import closing
from functools import partial
from typing import Any

from coview.errors import InputError
from coview.io.cells import CellRows, from_cells, text_lines
from coview.io.table import AsStrings, InputFile, RawTable

_TEXTS = {None: "", True: "true", False: "false"}


def read_jsonl(source: InputFile, as_strings: AsStrings) -> RawTable:
    """Return the table whose columns are the keys; strings that are numbers are read as in text tables."""
    return from_cells(source, partial(_object_rows, source), as_strings, header=True)


def _object_rows(source: InputFile) -> CellRows:
    """Yield the keys, then the values of each line as text."""
    # Numbers keep their digits.
    decode = json.JSONDecoder(object_pairs_hook=_object, parse_float=str, parse_int=str, parse_constant=str).decode
    first: dict[str, Any] = {}
    with closing(text_lines(source)) as lines:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                found = decode(line)
            except (ValueError, RecursionError) as error:
                reason = getattr(error, "msg", str(error))
                raise InputError(f"{source.where} is not JSON in line {number} ({reason}); correct that line") from None
            if not isinstance(found, dict) or not found:
                what = "an object without keys" if found == {} else "a list" if isinstance(found, list) else "a value"
                raise InputError(f"{source.where} has {what} in line {number}; write one object per line")
            if not first:
                first = found
                yield list(first)
            if found.keys() != first.keys():
                for key in first:
                    if key not in found:
                        raise InputError(
                            f"{source.where} lacks the key {key!r} in line {number}; write null if its value is missing"
                        )
                key = next(key for key in found if key not in first)
                raise InputError(
                    f"{source.where} has the key {key!r} in line {number}, which the lines before lack; use the same "
                    "keys in all"
                )
            values = ((key, found[key]) for key in first)
            yield [value if type(value) is str else _text(source, number, key, value) for key, value in values]


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object; json would keep the last of two values of a key."""
    found = dict(pairs)
    if len(found) < len(pairs):
        ((twice, _),) = Counter(name for name, _ in pairs).most_common(1)
        raise ValueError(f"the key {twice!r} is there twice")
    return found


def _text(source: InputFile, number: int, key: str, value: Any) -> str:
    if isinstance(value, (list, dict)):
        what = "an object" if isinstance(value, dict) else "a list"
        raise InputError(
            f"{source.where} has {what} under the key {key!r} in line {number}; expected a number, a string, true, "
            "false or null: give every number a key of its own"
        )
    return _TEXTS[value]
