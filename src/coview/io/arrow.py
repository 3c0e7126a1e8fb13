"""Parquet, Feather and Arrow files, read with pyarrow."""

from __future__ import annotations

from typing import Any

import numpy as np

from coview.extras import load_extra
from coview.io.table import EXACT, TOO_LARGE, AsText, Source, Table, check_names, spelt


def read_parquet(source: Source, as_text: AsText) -> Table:
    """Read a Parquet file."""
    source.refuse_variable()
    with _arrow("pyarrow.parquet").ParquetFile(source.path) as file:
        source.require_memory((file.metadata.num_rows, file.metadata.num_columns), 16)  # as stored, and as numbers
        return _table(source, file.read(), as_text)


def read_ipc(source: Source, as_text: AsText) -> Table:
    """Read the file format that Feather and most .arrow files have, or the stream format."""
    source.refuse_variable()
    pa = _arrow("pyarrow")
    source.require_memory((source.path.stat().st_size,), 2)
    with pa.OSFile(str(source.path)) as file:
        try:
            opened = pa.ipc.open_file(file)
        except pa.ArrowInvalid as not_a_file:
            file.seek(0)
            try:
                opened = pa.ipc.open_stream(file)
            except (pa.ArrowException, OSError):
                raise not_a_file from None
        with opened:
            return _table(source, pa.Table.from_batches(_batches(source, opened), opened.schema), as_text)


def _batches(source: Source, opened: Any) -> list[Any]:
    """All record batches; a packed file does not say beforehand how large it is."""
    stored: Any = opened
    if hasattr(opened, "num_record_batches"):
        stored = (opened.get_batch(i) for i in range(opened.num_record_batches))
    batches, n_rows = [], 0
    for batch in stored:
        n_rows += batch.num_rows
        source.require_memory((n_rows, batch.num_columns))
        batches.append(batch)
    return batches


def _table(source: Source, table: Any, as_text: AsText) -> Table:
    pa, pc = _arrow("pyarrow"), _arrow("pyarrow.compute")
    table.validate(full=True)  # offsets that point outside would crash what reads the values
    check_names(source, table.column_names)
    index = index_columns(table.schema)
    numbers: dict[str, Any] = {}
    texts: dict[str, list[str | None]] = {}
    others: dict[str, str] = {}
    row_names = None
    for name, column in zip(table.column_names, table.columns, strict=True):
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        kind = column.type
        if index == {name}:  # several label the rows together, and none of them alone
            row_names = tuple(spelt(value) or "" for value in column.to_pylist())
        if as_text(name):
            texts[name] = [spelt(value) for value in column.to_pylist()]
        elif name in index:
            continue
        elif _is_number(kind):
            if pa.types.is_integer(kind) and _beyond(pc.min_max(column).as_py()):
                others[name] = TOO_LARGE
            else:
                numbers[name] = column
        elif pa.types.is_string(kind) or pa.types.is_large_string(kind) or str(kind) == "string_view":
            texts[name] = column.to_pylist()
        else:
            others[name] = f"values of type {kind}"
    single = bool(numbers) and all(pa.types.is_float32(x.type) or pa.types.is_float16(x.type) for x in numbers.values())
    values = np.empty((table.num_rows, len(numbers)), np.float32 if single else np.float64)  # as the gate has it
    for j, column in enumerate(numbers.values()):
        values[:, j] = column.cast(pa.float32() if single else pa.float64(), safe=False).to_numpy()
    return Table(values, tuple(numbers), texts, others, row_names)


def _is_number(kind: Any) -> bool:
    types = _arrow("pyarrow").types
    return any(
        is_kind(kind)
        for is_kind in (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal, types.is_null)
    )


def _beyond(limits: dict[str, int | None]) -> bool:
    return any(limit is not None and abs(limit) > EXACT for limit in limits.values())


def index_columns(schema: Any) -> set[str]:
    """Columns that hold the row labels of a pandas table."""
    return {name for name in (schema.pandas_metadata or {}).get("index_columns", ()) if isinstance(name, str)}


def _arrow(module: str) -> Any:
    return load_extra(module, "io", "reading Parquet, Feather and Arrow files")
