"""Parquet, Feather and Arrow files, read with pyarrow."""

from __future__ import annotations

from typing import Any

import numpy as np

from coview.base.extras import load_extra
from coview.data.table import as_string, category_order
from coview.io.isolate import isolated
from coview.io.table import EXACT, STRING_BYTES, TOO_LARGE, AsStrings, InputFile, RawTable, check_names

_BITS_OF_OFFSET = 32  # by which a string or a category is found; its text is counted once it is read


def read_parquet(source: InputFile, as_strings: AsStrings) -> RawTable:
    """Return the table of a Parquet file."""
    parquet, types = load_arrow("pyarrow.parquet"), load_arrow("pyarrow.types")
    with parquet.ParquetFile(source.path) as file:
        source.require_memory((file.metadata.num_rows, file.metadata.num_columns), 16)  # stored and converted
        texts = [field.name for field in file.schema_arrow if types.is_string(field.type)]
    # Each different string once, as a file may store a long one and its number for millions of rows.
    with parquet.ParquetFile(source.path, read_dictionary=texts) as file:
        return _from_arrow(source, file.read(), as_strings, frozenset(texts))


def read_ipc(source: InputFile, as_strings: AsStrings) -> RawTable:
    """Return the table of an Arrow file, in the file format (Feather, most .arrow files) or the stream format."""
    pa = load_arrow()
    with pa.OSFile(str(source.path)) as file:
        try:
            opened = pa.ipc.open_file(file)
        except pa.ArrowInvalid as not_a_file:
            file.seek(0)
            try:
                batches = opened = pa.ipc.open_stream(file)
            except (pa.ArrowException, OSError):
                raise not_a_file from None
            source.require_memory((_bytes_of_stream(source),), 2)  # stored and converted
        else:
            is_number = pa.types.is_primitive
            bits = sum(kind.bit_width if is_number(kind) else _BITS_OF_OFFSET for kind in opened.schema.types)
            source.require_memory((count_rows(opened) * bits // 8,), 2)  # stored and converted
            batches = map(opened.get_batch, range(opened.num_record_batches))
        before, stored = pa.total_allocated_bytes(), []
        for batch in batches:
            stored.append(batch)
            source.require_memory((pa.total_allocated_bytes() - before,), 1)  # converted, as all before are stored
        return _from_arrow(source, pa.Table.from_batches(stored, opened.schema), as_strings)


@isolated
def _bytes_of_stream(source: InputFile) -> int:
    """Return the bytes of the batches of a stream, which are not known before it is decompressed."""
    pa = load_arrow()
    with pa.OSFile(str(source.path)) as file:
        return sum(batch.nbytes for batch in pa.ipc.open_stream(file))


def count_rows(opened: Any) -> int:
    """Return the number of rows of an open Arrow file, from the metadata of its batches."""
    if hasattr(opened, "count_rows"):  # since pyarrow 26
        return int(opened.count_rows())
    return sum(opened.get_batch(i).num_rows for i in range(opened.num_record_batches))


def _from_arrow(source: InputFile, table: Any, as_strings: AsStrings, texts: frozenset[str] = frozenset()) -> RawTable:
    """Return an Arrow table as a table; `texts` are strings that are encoded as categories but are none."""
    pa, pc, types = load_arrow(), load_arrow("pyarrow.compute"), load_arrow("pyarrow.types")
    numeric = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal, types.is_null)
    table.validate(full=True)  # offsets out of range would crash the process
    check_names(source.where, table.column_names)
    index, numbered = index_columns(table.schema), numbered_categories(table.schema)
    numbers: dict[str, Any] = {}
    strings: dict[str, list[str | None]] = {}
    others: dict[str, str] = {}
    categories: dict[str, list[str] | None] = {}
    row_names = None
    for name, column in zip(table.column_names, table.columns, strict=True):
        kind = column.type
        if index == {name}:  # a multi-index gives no row names
            row_names = tuple(cell or "" for cell in _cells_of(source, column))
        is_text = types.is_string(kind) or types.is_large_string(kind) or str(kind) == "string_view"
        if as_strings(name) or (name not in index and (is_text or name in texts)):
            strings[name] = _cells_of(source, column)
        elif name in index:
            continue
        elif types.is_dictionary(kind) or name in numbered:
            strings[name] = _cells_of(source, column)
            categories[name] = category_order(column) if types.is_dictionary(kind) and kind.ordered else None
        elif any(is_kind(kind) for is_kind in numeric):
            limits = pc.min_max(column).as_py().values() if types.is_integer(kind) else ()
            if any(limit is not None and abs(limit) > EXACT for limit in limits):
                others[name] = TOO_LARGE
            else:
                numbers[name] = column
        else:
            what = "dates or times" if types.is_temporal(kind) else "values"
            others[name] = f"{what} of type {kind}"
    single = bool(numbers) and all(types.is_float32(x.type) or types.is_float16(x.type) for x in numbers.values())
    values = np.empty((table.num_rows, len(numbers)), np.float32 if single else np.float64)
    for j, column in enumerate(numbers.values()):
        values[:, j] = column.cast(pa.float32() if single else pa.float64(), safe=False).to_numpy()
    return RawTable(values, tuple(numbers), strings, others, row_names, categories=categories)


def _cells_of(source: InputFile, column: Any) -> list[str | None]:
    """Return a column as strings; rows of the same category share one string."""
    cells: list[str | None] = []
    for chunk in column.chunks:
        n_bytes = 2 * chunk.get_total_buffer_size()
        if not hasattr(chunk, "dictionary"):
            source.require_memory((n_bytes + STRING_BYTES * len(chunk),), 1)
            cells += [as_string(value) for value in chunk.to_pylist()]
            continue
        source.require_memory((n_bytes + 16 * len(chunk) + STRING_BYTES * len(chunk.dictionary),), 1)
        values = [as_string(value) for value in chunk.dictionary.to_pylist()]
        cells += [None if code is None else values[code] for code in chunk.indices.to_pylist()]
    return cells


def index_columns(schema: Any) -> set[str]:
    """Return the columns that store the index of a pandas data frame."""
    return {name for name in (schema.pandas_metadata or {}).get("index_columns", ()) if isinstance(name, str)}


def numbered_categories(schema: Any) -> set[str]:
    """Return the columns of numbers that were categories of pandas without an order; Parquet stores their numbers."""
    described = (schema.pandas_metadata or {}).get("columns", ())
    of_pandas = {each.get("name"): each for each in described if each.get("pandas_type") == "categorical"}
    ordered = {name for name, each in of_pandas.items() if (each.get("metadata") or {}).get("ordered")}
    return {name for name in schema.names if name in of_pandas and name not in ordered}


def load_arrow(module: str = "pyarrow", purpose: str = "reading Parquet, Feather and Arrow files") -> Any:
    """Return a module of pyarrow, or raise an ImportError that names the extra."""
    return load_extra(module, "io", purpose)
