"""Read one table of any kind as a `View`: a matrix of numbers, names of columns, and categories."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from coview.base.parameters import short
from coview.data.view import Array, Categories, Matrix, View
from coview.errors import InputError, InputTypeError, kind_of

# Data frames keep the names of the cells, so cells that differ between views are refused; arrays have no names.
_SCVERSE = {
    "AnnData": "use coview.scverse.cluster, or give its table with the cells, as in {'rna': adata.to_df()}",
    "MuData": "use coview.scverse.cluster, or give tables with the cells, as in {'rna': mdata['rna'].to_df()}",
}
MOST_CATEGORIES = 10  # with more, and more than one per two samples, they are taken for names


def as_table(label: str, table: Any) -> View:
    """Return one table as a float array or CSR array; columns of categories become codes."""
    columns: tuple[str, ...] | None = None
    categories: Mapping[str, Categories] = {}
    if sp.issparse(table):
        if table.ndim != 2:
            raise _not_2d(label, table.ndim)
        matrix: Any = sp.csr_array(table)
        if not matrix.has_canonical_format:
            matrix = matrix.copy()  # sum_duplicates works in place, and the buffers may be the caller's
            matrix.sum_duplicates()
        if matrix.indices.dtype.itemsize > 4 and max(matrix.nnz, *matrix.shape) < 2**31:
            # scikit-learn accepts indices of 32 bits only.
            indices, ends = (part.astype(np.int32) for part in (matrix.indices, matrix.indptr))
            matrix = sp.csr_array((matrix.data, indices, ends), shape=matrix.shape)
    elif np.ma.isMaskedArray(table) and np.ma.getmaskarray(table).any():
        raise InputError(f"{label} has masked values; impute them or drop those samples")
    elif any(isinstance(each, (str, os.PathLike)) for each in (table if isinstance(table, (list, tuple)) else [table])):
        raise InputTypeError(
            f"{label} is {short(table)}, which may be the path of a file; read files with read_views, as in "
            "read_views({'text': 'text.csv'}).views"
        )
    elif isinstance(table, (list, tuple)) and any(hasattr(row, "to_frame") for row in table):  # Series
        raise InputTypeError(
            f"{label} is a list of columns ({kind_of(table[0])}); give a 2-D table, such as frame[['a', 'b']]"
        )
    elif isinstance(table, (np.ndarray, list, tuple)) or np.isscalar(table) or table is None:
        try:
            matrix = np.asarray(table)
        except ValueError:
            raise InputError(
                f"{label} has rows of different lengths; every row needs the same columns, and every view of a list "
                "needs two dimensions, also for one sample, as in [text[:1], image[:1]]"
            ) from None
    else:
        found = _from_frame(label, table)
        matrix, columns, categories = found.matrix, found.columns, found.categories
    if matrix.ndim != 2:
        raise _not_2d(label, matrix.ndim)
    return View(_as_float(label, matrix), columns, categories)


def _not_2d(label: str, ndim: int) -> InputError:
    advice = "reshape(-1, 1) makes one column, reshape(1, -1) one sample"
    if ndim > 2:
        advice = "flatten each sample to a row, or give several views as a list of 2-D tables"
    return InputError(f"{label} is {ndim}-D; expected a 2-D table, samples by features. Reshape your data: {advice}")


def _from_frame(label: str, table: Any) -> View:
    """Return a pandas, polars or Arrow table, or any other object that NumPy can read, as an array."""
    if type(table).__name__ in _SCVERSE:
        raise InputTypeError(f"{label} is {kind_of(table)}; {_SCVERSE[type(table).__name__]}")
    import narwhals.stable.v1 as nw  # later versions take objects whose first 100 are NaN for strings

    # narwhals refuses duplicate column names with a less specific message, or not at all, depending on the table.
    labels = table.columns if nw.dependencies.is_pandas_dataframe(table) else getattr(table, "column_names", ())
    twice = next((name for name, count in Counter(map(str, labels)).items() if count > 1), None)
    if twice is not None:
        raise InputError(f"{label} has two columns named {twice!r}; rename one")
    frame = nw.from_native(table, pass_through=True)
    if isinstance(frame, nw.LazyFrame):
        raise InputError(f"{label} is a lazy table; collect() it first")
    if not isinstance(frame, nw.DataFrame):
        if not hasattr(table, "__array__"):
            raise InputTypeError(f"{label} is {kind_of(table)}, which is not a table; give a 2-D array or data frame")
        return View(np.asarray(table))
    names = tuple(str(name) for name in frame.columns)
    codes, categories = {}, {}
    for (name, kind), column in zip(frame.schema.items(), frame.iter_columns(), strict=True):
        if isinstance(kind, (nw.Categorical, nw.Enum)):
            codes[name], categories[str(name)] = _codes_of(label, column)
        elif not (kind.is_numeric() or isinstance(kind, (nw.Boolean, nw.Object, nw.Unknown))):
            raise InputError(_refused_column(label, str(name), kind, column))
    numbers = _without(label, frame, list(codes))
    matrix = numbers.to_numpy()
    if matrix.dtype.kind == "O":  # nullable booleans and other objects: missing values become NaN and are reported
        matrix = numbers.with_columns(nw.selectors.boolean().cast(nw.Float64)).to_numpy()
    if not codes:
        return View(matrix, names)
    together = np.empty((len(frame), len(names)))
    together[:, [name not in codes for name in frame.columns]] = _as_float(label, matrix)
    together[:, [name in codes for name in frame.columns]] = np.column_stack(list(codes.values()))
    return View(together, names, categories)


def _without(label: str, frame: Any, names: Sequence[Any]) -> Any:
    """Return the other columns of a table."""
    try:
        return frame.drop(names) if names else frame
    except ValueError as error:  # as pandas with numbers in the byte order of another machine
        raise InputError(
            f"{label} cannot be split into columns ({error}); convert its numbers, as in astype(float)"
        ) from None


def _codes_of(label: str, series: Any) -> tuple[Array, Categories]:
    """Return the codes and the categories of a categorical column."""
    try:
        order = _declared_order(series)
    except InputError as error:
        raise InputError(f"{label} has {error} in the column {str(series.name)!r}") from None
    empty = series.is_null().to_list()  # None, NaN, NA or NaT
    cells = [None if lacks else as_string(cell) for lacks, cell in zip(empty, series.to_list(), strict=True)]
    return encoded_cells(cells, order)


def encoded_cells(cells: Sequence[str | None], order: Sequence[str] | None = None) -> tuple[Array, Categories]:
    """Return the codes of cells that are strings, None if empty, and the categories: sorted, or in this order."""
    values = sorted({cell for cell in cells if cell is not None}) if order is None else order
    code = {value: float(i) for i, value in enumerate(values)}
    return np.array([np.nan if cell is None else code[cell] for cell in cells]), Categories(
        tuple(values), order is not None
    )


def look_like_names(n_values: int, n_cells: int) -> bool:
    """Return whether so many different strings are probably names of the samples rather than categories."""
    return n_values > max(MOST_CATEGORIES, n_cells / 2)


def _declared_order(series: Any) -> list[str] | None:
    """Return the categories of an ordered column in their order; None for a column without an order.

    Ordered are categoricals of pandas and dictionaries of Arrow that are declared so, and the type Enum of polars.
    """
    native = series.to_native()
    kind = native.type if hasattr(native, "unify_dictionaries") else native.dtype
    if getattr(kind, "pyarrow_dtype", None) is not None:  # a dictionary of Arrow in pandas
        native, kind = series.to_arrow(), kind.pyarrow_dtype
    if not getattr(kind, "ordered", type(kind).__name__ == "Enum"):
        return None
    return _different(kind.categories) if hasattr(kind, "categories") else category_order(native)


def category_order(column: Any) -> list[str]:
    """Return the categories of an ordered column of Arrow, whose chunks may have different dictionaries."""
    order: list[str] = []
    for chunk in getattr(column, "chunks", [column]):
        order = extended_order(order, _different(chunk.dictionary.to_pylist()))
    return order


def extended_order(known: Sequence[str], more: Sequence[str]) -> list[str]:
    """Return the order of both; one must contain all categories of the other, in the same order."""
    short_one, long_one = sorted((list(known), list(more)), key=len)
    if not is_part_of_order(short_one, long_one):
        raise InputError(f"categories in contradictory orders ({', '.join(known)}; {', '.join(more)})")
    return long_one


def is_part_of_order(some: Sequence[str], order: Sequence[str]) -> bool:
    """Return whether all of these categories are in the order, and come in this order."""
    place = {value: i for i, value in enumerate(order)}
    places = [place.get(value, -1) for value in some]
    return -1 not in places and places == sorted(places)


def _different(values: Iterable[Any]) -> list[str]:
    found = (as_string(value) for value in values)
    return list(dict.fromkeys(value for value in found if value is not None))


def _refused_column(label: str, name: str, kind: Any, cells: Any) -> str:
    """Return what is wrong with a column that is neither numbers nor categories, and how to fix it."""
    import narwhals.stable.v1 as nw

    if isinstance(kind, nw.String):
        first = next((cell for cell in cells.to_list() if cell is not None), "")
        return (
            f"{label} has strings in the column {name!r}, such as {short(first)}; if they are categories, convert it "
            f"(astype('category') in pandas, cast(pl.Categorical) in polars), otherwise encode it as numbers or drop it"
        )
    if isinstance(kind, (nw.Date, nw.Datetime, nw.Time, nw.Duration)):
        return (
            f"{label} has dates or times in the column {name!r} ({kind}); encode it as numbers, such as days since the "
            "first date, or drop it"
        )
    return f"{label} has the column {name!r} of type {kind}; encode it as numbers or drop it"


def as_string(value: Any) -> str | None:
    """Return a category, an id or a class as a string, integers without a fraction; None if it is missing.

    Values of several formats are then equal: 1, 1.0 and "1".
    """
    if value is None or (isinstance(value, (float, np.floating)) and np.isnan(value)):
        return None
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        return str(int(value))
    if isinstance(value, bytes):
        return value.decode("utf-8", errors="replace")
    return str(value)


def _as_float(label: str, matrix: Any) -> Matrix:
    kind = matrix.dtype.kind
    if kind == "c":
        raise InputError(f"Complex data not supported: {label} is {matrix.dtype}; give real features")
    if kind not in "fiubO":
        what = {"U": "strings", "S": "strings", "M": "dates", "m": "time differences"}.get(kind, str(matrix.dtype))
        raise InputError(f"{label} holds {what}; encode them as numbers or drop those columns")
    wanted: Any = np.float32 if kind == "f" and matrix.dtype.itemsize <= 4 else np.float64
    try:
        return matrix.astype(wanted, copy=False)
    except TypeError as error:
        raise InputTypeError(f"{label} holds objects that are not numbers ({error}); encode or drop them") from None
    except OverflowError:
        raise InputError(f"{label} holds numbers too large for a float; scale them down") from None
    except ValueError:
        raise InputError(f"{label} holds strings; encode them as numbers or drop those columns") from None
