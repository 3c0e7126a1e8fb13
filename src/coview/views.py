"""Views: several feature tables that describe the same samples, and the one gate they come in through."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from numbers import Integral
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from coview.errors import InputError, InputTypeError

Array: TypeAlias = NDArray[Any]
Matrix: TypeAlias = Any  # a float ndarray or csr_array; SciPy's sparse arrays have no types
Layout: TypeAlias = Sequence[Any] | Mapping[str, Any] | None


class Views(Mapping[str, Matrix]):
    """Checked, aligned views: a read-only mapping from view name to a float array or CSR array.

    Make one with `as_views`; past that gate nothing doubts the data again.
    """

    def __init__(
        self,
        matrices: Mapping[str, Matrix],
        columns: Mapping[str, tuple[str, ...] | None] | None = None,
    ) -> None:
        self._matrices = dict(matrices)
        self.columns = dict(columns) if columns else dict.fromkeys(self._matrices)

    def __getitem__(self, name: str) -> Matrix:
        return self._matrices[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._matrices)

    def __len__(self) -> int:
        return len(self._matrices)

    def __repr__(self) -> str:
        shapes = ", ".join(f"{name}: {x.shape[1]}" for name, x in self.items())
        return f"Views({self.n_samples} samples; {shapes})"

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._matrices)

    @property
    def n_samples(self) -> int:
        return int(next(iter(self._matrices.values())).shape[0])

    @property
    def n_features(self) -> dict[str, int]:
        return {name: int(x.shape[1]) for name, x in self.items()}

    @property
    def dtype(self) -> np.dtype[Any]:
        """float32 when every view is float32, otherwise float64."""
        return np.result_type(*(x.dtype for x in self.values()))

    def take(self, rows: Any) -> Views:
        """Return the chosen rows of every view."""
        return Views({name: x[rows] for name, x in self.items()}, self.columns)


def as_views(data: Any, views: Layout = None) -> Views:
    """Check whatever the caller has and return it as `Views`; nothing of the caller's is changed.

    Parameters
    ----------
    data : list, tuple or mapping of 2-D tables, a Views, or one stacked 2-D table
        Tables may be NumPy arrays, SciPy sparse, or pandas, polars and Arrow tables. A list counts as several
        views only when its elements are themselves 2-D: a list of lists of numbers is one stacked table.
    views : list of widths, list of columns, or mapping from view name to columns
        How to cut one stacked table into views. Columns are a slice, positions, a boolean mask, or column names.

    Examples
    --------
    >>> import numpy as np
    >>> as_views({"text": np.eye(3), "image": np.ones((3, 2))})
    Views(3 samples; text: 3, image: 2)
    >>> as_views(np.ones((4, 5)), views=[2, 3])
    Views(4 samples; view0: 2, view1: 3)
    """
    if not isinstance(data, Views) and not holds_several(data):
        return _checked(_cut(*_table("X", data), views))
    if views is not None:
        raise InputError(
            "views= says how to cut one stacked table, but several views were given; leave views=None or "
            "stack them first with stack_views"
        )
    if isinstance(data, Views):
        return data
    named = _named(data)
    tables = {name: _table(f"view {name!r}", table) for name, table in named.items()}
    _check_index(named)
    return _checked(tables)


def stack_views(views: Any) -> tuple[Matrix, dict[str, slice]]:
    """Put all views side by side and return the table with the `views=` that takes it apart again.

    The stacked form is what scikit-learn's own tools split by samples; `as_views(X, views)` is the inverse.

    Examples
    --------
    >>> import numpy as np
    >>> X, views = stack_views([np.zeros((3, 2)), np.ones((3, 1))])
    >>> X.shape, views
    ((3, 3), {'view0': slice(0, 2, None), 'view1': slice(2, 3, None)})
    """
    checked = as_views(views)
    ends = np.cumsum([0, *checked.n_features.values()]).tolist()
    layout = {name: slice(a, b) for name, a, b in zip(checked.names, ends[:-1], ends[1:], strict=True)}
    matrices = list(checked.values())
    if any(sp.issparse(x) for x in matrices):
        return sp.csr_array(sp.hstack(matrices, format="csr")), layout
    return np.hstack(matrices), layout


def holds_several(data: Any) -> bool:
    """Whether the data are several views rather than one stacked table."""
    if sp.issparse(data):  # before Mapping: a DOK matrix is a dict
        return False
    if isinstance(data, Mapping):
        return True
    if isinstance(data, (list, tuple)):
        return len(data) == 0 or any(_dimensions(table) >= 2 for table in data)
    return False


def _dimensions(table: Any) -> int:
    shape = getattr(table, "shape", None)
    if shape is not None:
        return len(shape)
    if isinstance(table, (list, tuple)):
        return 1 + (_dimensions(table[0]) if table else 0)
    return 0


def _named(data: Mapping[Any, Any] | Sequence[Any]) -> dict[str, Any]:
    if len(data) == 0:
        raise InputError("there are no views; give at least one 2-D table")
    pairs = data.items() if isinstance(data, Mapping) else ((f"view{i}", x) for i, x in enumerate(data))
    named: dict[str, Any] = {}
    for key, table in pairs:
        if str(key) in named:
            raise InputError(f"two views are named {str(key)!r}; give every view its own name")
        named[str(key)] = table
    return named


def _table(label: str, table: Any) -> tuple[Matrix, tuple[str, ...] | None]:
    """Turn one table into a float array or CSR array, with its column names if it has them."""
    columns = None
    if sp.issparse(table):
        if table.ndim != 2:
            raise _not_2d(label, table.ndim)
        matrix: Any = sp.csr_array(table)
        if not matrix.has_canonical_format:
            matrix = matrix.copy()  # sum_duplicates works in place, and these may be the caller's buffers
            matrix.sum_duplicates()
    elif np.ma.isMaskedArray(table) and np.ma.getmaskarray(table).any():
        raise InputError(f"{label} has masked values; fill them in or drop those samples")
    elif isinstance(table, (np.ndarray, list, tuple)) or np.isscalar(table) or table is None:
        try:
            matrix = np.asarray(table)
        except ValueError:
            raise InputError(f"{label} has rows of different lengths; every row needs the same columns") from None
    else:
        matrix, columns = _from_frame(label, table)
    if matrix.ndim != 2:
        raise _not_2d(label, matrix.ndim)
    return _as_float(label, matrix), columns


def _not_2d(label: str, ndim: int) -> InputError:
    advice = (
        "reshape(-1, 1) makes one column, reshape(1, -1) one sample" if ndim < 2 else "flatten each sample to a row"
    )
    return InputError(f"{label} is {ndim}-D and must be 2-D, samples by features. Reshape your data: {advice}")


def _from_frame(label: str, table: Any) -> tuple[Any, tuple[str, ...] | None]:
    """Read a pandas, polars or Arrow table, or anything else that NumPy can read."""
    import narwhals as nw

    if nw.dependencies.is_pandas_dataframe(table):
        counts = Counter(str(name) for name in table.columns)
        twice = next((name for name, count in counts.items() if count > 1), None)
        if twice is not None:
            raise InputError(f"{label} has two columns named {twice!r}; rename one")
    frame = nw.from_native(table, eager_only=True, pass_through=True)
    if not isinstance(frame, nw.DataFrame):
        return np.asarray(table), None
    for name, kind in frame.schema.items():
        if isinstance(kind, (nw.String, nw.Categorical, nw.Enum, nw.Datetime, nw.Date, nw.Duration, nw.Time)):
            raise InputError(f"{label} has the column {name!r} of type {kind}; encode it as numbers or drop it")
    return frame.to_numpy(), tuple(str(name) for name in frame.columns)


def _as_float(label: str, matrix: Any) -> Matrix:
    kind = matrix.dtype.kind
    if kind == "c":
        raise InputError(f"Complex data not supported: {label} is {matrix.dtype}; give real features")
    if kind not in "fiubO":
        what = {"U": "text", "S": "text", "M": "dates", "m": "time differences"}.get(kind, str(matrix.dtype))
        raise InputError(f"{label} holds {what}; encode it as numbers or drop those columns")
    if kind == "f" and matrix.dtype.itemsize <= 4:
        wanted: type[np.floating[Any]] = np.float32
    else:
        wanted = np.float64
    try:
        return matrix.astype(wanted, copy=False)
    except TypeError as error:
        raise InputTypeError(f"{label} holds objects that are not numbers ({error}); encode or drop them") from None
    except OverflowError:
        raise InputError(f"{label} holds numbers too large for a float; scale them down") from None
    except ValueError:
        raise InputError(f"{label} holds text; encode it as numbers or drop those columns") from None


def _cut(
    matrix: Matrix, columns: tuple[str, ...] | None, views: Layout
) -> dict[str, tuple[Matrix, tuple[str, ...] | None]]:
    """Cut a stacked table into views."""
    width = matrix.shape[1]
    if views is None:
        return {"view0": (matrix, columns)}
    if not isinstance(views, (Mapping, list, tuple, np.ndarray)) or len(views) == 0:
        raise InputError(f"views={views!r} must be a list of widths, or a mapping from view name to columns")
    if not isinstance(views, Mapping) and all(isinstance(w, Integral) for w in views):
        if sum(views) != width or any(w < 1 for w in views):
            raise InputError(f"views={list(views)} must be positive widths that add up to the {width} columns of X")
        ends = np.cumsum([0, *views]).tolist()
        views = [slice(a, b) for a, b in pairwise(ends)]
    tables = {}
    for name, chosen in _named(views).items():
        positions = _positions(name, chosen, columns, width)
        names = None if columns is None else tuple(columns[i] for i in positions)
        contiguous = len(positions) > 0 and np.array_equal(positions, np.arange(positions[0], positions[-1] + 1))
        keep = slice(positions[0], positions[-1] + 1) if contiguous else positions  # a slice makes no copy
        tables[name] = (matrix[:, keep], names)
    return tables


def _positions(name: str, chosen: Any, columns: tuple[str, ...] | None, width: int) -> NDArray[np.intp]:
    """Column numbers of one view in a stacked table."""
    try:
        if isinstance(chosen, slice):
            return np.arange(width)[chosen]
        wanted = [chosen] if isinstance(chosen, str) else list(chosen)
    except TypeError:
        raise InputError(
            f"views={{{name!r}: {chosen!r}}} is not a choice of columns; give a slice, positions or column names"
        ) from None
    if any(isinstance(c, str) for c in wanted):
        if columns is None:
            raise InputError(f"view {name!r} is chosen by column names, but X has none; pass a DataFrame or positions")
        position = {column: i for i, column in enumerate(columns)}
        unknown = [c for c in wanted if c not in position]
        if unknown:
            raise InputError(f"view {name!r} asks for columns that X does not have: {unknown[:5]}")
        return np.array([position[c] for c in wanted], dtype=np.intp)
    if wanted and all(isinstance(c, (bool, np.bool_)) for c in wanted):
        if len(wanted) != width:
            raise InputError(f"view {name!r} is a mask of {len(wanted)} columns, but X has {width}")
        return np.flatnonzero(wanted)
    if not all(isinstance(c, Integral) and -width <= int(c) < width for c in wanted):
        raise InputError(f"view {name!r} asks for columns outside the {width} columns of X: {wanted[:5]}")
    return np.array(wanted, dtype=np.intp) % width


def _checked(tables: Mapping[str, tuple[Matrix, tuple[str, ...] | None]]) -> Views:
    """Compare the views with each other, and look for values that no method can use."""
    first = next(iter(tables))
    expected = tables[first][0].shape[0]
    for name, (x, _) in tables.items():
        if x.shape[0] != expected:
            raise InputError(
                f"view {name!r} has {x.shape[0]} samples but view {first!r} has {expected}; "
                "every view needs the same samples in the same order"
            )
        for what, count in zip(("sample", "feature"), x.shape, strict=True):
            if count == 0:
                raise InputError(f"view {name!r} has 0 {what}(s) (shape={x.shape}) while a minimum of 1 is required.")
        _check_finite(name, x)
    return Views({name: x for name, (x, _) in tables.items()}, {name: c for name, (_, c) in tables.items()})


def _check_finite(name: str, x: Matrix) -> None:
    values = x.data if isinstance(x, sp.csr_array) else x
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(values.sum(dtype=np.float64)):  # one pass, no temporary; the rare rest is looked at closely
            return
    bad = ~np.isfinite(values)
    if not bad.any():
        return
    if isinstance(x, sp.csr_array):
        rows = np.unique(np.searchsorted(x.indptr, np.flatnonzero(bad), side="right") - 1)
    else:
        rows = np.flatnonzero(bad.any(axis=1))
    what = "NaN" if np.isnan(values).any() else "infinity (inf)"
    raise InputError(
        f"view {name!r} contains {what} in {len(rows)} of {x.shape[0]} samples (first: row {rows[0]}); "
        "fill these values in or drop those samples"
    )


def _check_index(named: Mapping[str, Any]) -> None:
    """Refuse pandas tables whose row labels say that the samples are not in the same order."""
    first: tuple[str, Any] | None = None
    for name, table in named.items():
        index = getattr(table, "index", None)
        if index is None or callable(index) or type(index).__name__ == "RangeIndex":
            continue  # no row labels, or only row numbers
        if first is None:
            first = (name, index)
        elif len(index) == len(first[1]) and not index.equals(first[1]):
            same = set(index) == set(first[1])
            what = "the same row labels in another order" if same else "other row labels"
            raise InputError(
                f"view {name!r} has {what} than view {first[0]!r}; align them first, for example "
                f"{name} = {name}.loc[{first[0]}.index]"
            )
