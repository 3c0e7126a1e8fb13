"""Generated views for the fuzz tests of estimators: patterns, types and forms of tables, and containers of them."""

from __future__ import annotations

import pickle
import random
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import scipy.sparse as sp

from coview import Views

_PATTERNS = ("blobs", "blobs", "noise", "noise", "integers", "binary", "duplicates", "constant column", "constant",
             "zeros", "sparse", "outlier", "two values", "line", "gram", "mixed scales")  # fmt: skip
_DTYPES = ("float64",) * 9 + ("float32",) * 4 + (
    "float16", "longdouble", "int8", "int64", "uint64", "bool", "object", ">f8", "complex128", "str")  # fmt: skip
_SPARSE = ("csr", "csc", "coo", "lil", "dok", "bsr", "dia")
_FORMS = ("C",) * 6 + (
    "F", "negative strides", "read-only", "memmap", "broadcast", "lists", "every second column", *_SPARSE, "csr_matrix",
    "int64 indices", "unsorted indices", "duplicate entries", "pandas", "nullable", "MultiIndex", "column MultiIndex",
    "categorical", "ids", "pandas sparse", "polars", "polars categorical", "arrow")  # fmt: skip
_SOME_TYPES = {*_SPARSE, "csr_matrix", "int64 indices", "unsorted indices", "duplicate entries", "nullable", "polars",
               "pandas sparse", "polars categorical", "arrow", "memmap"}  # fmt: skip
_OTHER_VALUES = ("broadcast", "categorical", "polars categorical")  # forms that replace some values
_ROW_LABELS = ("MultiIndex", "ids")
_BLEMISHES = ("",) * 20 + ("NaN", "inf", "-inf", "NaN rows", "NaN rows", "NaN rows", "NaN column", "all NaN")
_CONTAINERS = ("mapping",) * 5 + ("list", "tuple", "stacked", "Views", "integer keys")


@dataclass(frozen=True)
class Table:
    """How one view is generated."""

    pattern: str
    width: int
    dtype: str = "float64"
    form: str = "C"
    power: int = 0  # the values are multiplied by 2 to this power
    blemish: str = ""

    def __str__(self) -> str:
        scale = f"×2^{self.power}" if self.power else ""
        words = (f"{self.width} columns", self.pattern, scale, self.blemish, self.dtype, self.form)
        return " ".join(filter(None, words))

    def values(self, truth: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return float64 values of samples that belong to these clusters."""
        n, d = len(truth), self.width
        x = rng.normal(size=(n, d))
        blobs = x + 20 * np.random.default_rng(d).normal(size=(9, d))[truth]
        if self.pattern in ("blobs", "duplicates", "constant column", "outlier"):
            x = blobs
        if self.pattern == "integers":
            x = np.round(2 * x)
        elif self.pattern == "binary":
            x = (x > 0).astype(float)
        elif self.pattern == "duplicates":
            x = x[rng.integers(max(1, n // 2), size=n)]
        elif self.pattern == "constant column":
            x[:, 0] = 7.0
        elif self.pattern == "constant":
            x[:] = 3.0
        elif self.pattern == "zeros":
            x[:] = 0.0
        elif self.pattern == "sparse":
            x = np.where(rng.random((n, d)) < 0.2, np.abs(x), 0.0)
        elif self.pattern == "outlier":
            x[0] = 1e9
        elif self.pattern == "two values":
            x[:] = (truth % 2)[:, None]
        elif self.pattern == "line":
            x[:] = np.arange(n)[:, None]
        elif self.pattern == "mixed scales":
            x *= 2.0 ** rng.integers(-900, 900, size=d)
        elif self.pattern == "gram":
            x = np.exp(-((blobs[:, None] - blobs) ** 2).sum(axis=2) / 500)
        with np.errstate(all="ignore"):
            return np.asarray(x * 2.0**self.power)

    def blemished(self, x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Replace some values by NaN or infinity."""
        rows = rng.random(len(x)) < 0.2
        if self.blemish in ("NaN", "inf", "-inf"):
            x[rng.integers(len(x)), rng.integers(x.shape[1])] = float(self.blemish)
        elif self.blemish == "NaN rows":
            x[rows] = np.nan
        elif self.blemish == "NaN column":
            x[rows, 0] = np.nan
        elif self.blemish == "all NaN":
            x[:] = np.nan
        return x

    def formed(self, x: np.ndarray, folder: Path, rows: np.ndarray) -> Any:
        """Return the values as a table of this type and form; `rows` are their numbers, for labels of rows."""
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of pandas
            kind = np.dtype(self.dtype)
            if kind.kind in "iu":
                bounds = np.iinfo(kind)
                x = np.clip(np.nan_to_num(x), bounds.min // 2, bounds.max // 2)
            return _FORMED[self.form](x.astype(kind), folder, rows)


def _frame(x: np.ndarray, index: Any = None) -> pd.DataFrame:
    return pd.DataFrame(x, columns=[f"c{j}" for j in range(x.shape[1])], index=index)


def _polars(x: np.ndarray) -> pl.DataFrame:
    return pl.DataFrame({f"c{j}": x[:, j] for j in range(x.shape[1])})


def _categorical(x: np.ndarray, folder: Path, rows: np.ndarray) -> pd.DataFrame:
    kind = pd.CategoricalDtype(["u", "v", "w"], ordered=x.shape[1] % 2 == 0)
    return _frame(x).assign(c0=pd.Categorical.from_codes(rows % 3, dtype=kind))


def _polars_categorical(x: np.ndarray, folder: Path, rows: np.ndarray) -> pl.DataFrame:
    return _polars(x).with_columns(kind=pl.Series([("u", "v", "w")[row % 3] for row in rows], dtype=pl.Categorical))


def _memmap(x: np.ndarray, folder: Path, rows: np.ndarray) -> np.ndarray:
    path = folder / "mapped.npy"
    np.save(path, x)
    mapped: np.ndarray = np.load(path, mmap_mode="r")
    path.unlink()  # the map stays readable
    return mapped


def _read_only(x: np.ndarray, folder: Path, rows: np.ndarray) -> np.ndarray:
    x.flags.writeable = False
    return x


def _csr(x: np.ndarray, kind: Any = np.int32, *, reverse: bool = False, twice: bool = False) -> sp.csr_array:
    """Return a CSR array with indices of this type, in decreasing order, or with each entry as a sum of two."""
    columns = [np.flatnonzero(row)[:: -1 if reverse else 1].repeat(1 + twice) for row in x]
    entries = np.concatenate([row[chosen] for row, chosen in zip(x, columns, strict=True)])
    if twice and x.dtype.kind == "f":
        entries /= 2
    starts = np.cumsum([0, *map(len, columns)]).astype(kind)
    return sp.csr_array((entries, np.concatenate(columns).astype(kind), starts), shape=x.shape)


_FORMED: dict[str, Callable[[np.ndarray, Path, np.ndarray], Any]] = {
    "C": lambda x, folder, rows: np.ascontiguousarray(x),
    "F": lambda x, folder, rows: np.asfortranarray(x),
    "negative strides": lambda x, folder, rows: np.ascontiguousarray(x[::-1, ::-1])[::-1, ::-1],
    "read-only": _read_only,
    "memmap": _memmap,
    "broadcast": lambda x, folder, rows: np.broadcast_to(x[:, :1], x.shape),
    "lists": lambda x, folder, rows: x.tolist(),
    "every second column": lambda x, folder, rows: np.repeat(x, 2, axis=1)[:, ::2],
    **{name: lambda x, folder, rows, name=name: getattr(sp, f"{name}_array")(x) for name in _SPARSE},
    "csr_matrix": lambda x, folder, rows: sp.csr_matrix(x),
    "int64 indices": lambda x, folder, rows: _csr(x, np.int64),
    "unsorted indices": lambda x, folder, rows: _csr(x, reverse=True),
    "duplicate entries": lambda x, folder, rows: _csr(x, np.int64, twice=True),
    "pandas": lambda x, folder, rows: _frame(x),
    "nullable": lambda x, folder, rows: _frame(x).convert_dtypes(),
    "MultiIndex": lambda x, folder, rows: _frame(x, pd.MultiIndex.from_arrays([rows // 3, rows % 3])),
    "column MultiIndex": lambda x, folder, rows: pd.DataFrame(
        x, columns=pd.MultiIndex.from_product([["u"], range(x.shape[1])])
    ),
    "categorical": _categorical,
    "ids": lambda x, folder, rows: _frame(x, [f"s{row}" for row in rows]),
    "pandas sparse": lambda x, folder, rows: _frame(x).astype(pd.SparseDtype(x.dtype, 0)),
    "polars": lambda x, folder, rows: _polars(x),
    "polars categorical": _polars_categorical,
    "arrow": lambda x, folder, rows: _polars(x).to_arrow(),
}


@dataclass
class Problem:
    """Several views of the same samples."""

    seed: int
    n: int
    k: int  # number of true clusters
    tables: dict[str, Table]
    container: str
    folder: Path
    truth: np.ndarray = field(init=False)
    values: dict[str, np.ndarray] = field(init=False)

    def __str__(self) -> str:
        return f"{self.n} rows as {self.container}: " + "; ".join(map(str, self.tables.values()))

    def generate(self) -> None:
        """Make the values, which is left out for cases that are only counted."""
        rng = np.random.default_rng(self.seed)
        self.truth = np.arange(self.n) % self.k
        self.values = {name: table.blemished(table.values(self.truth, rng), rng) for name, table in self.tables.items()}

    def rows(self, rows: Any = slice(None)) -> Any:
        """Return some rows of all views."""
        return self._contained(self.values, np.arange(self.n)[rows])

    def new(self, n_rows: int) -> Callable[[Any], Any]:
        """Return a function that gives rows of new samples, which may be far from the training samples."""
        rng = np.random.default_rng(self.seed + 1)
        far, values = 2.0 ** int(rng.choice([0, 0, 10, 60])), {}
        for name, table in self.tables.items():
            x = table.values(np.arange(n_rows) % self.k, rng)
            if table.pattern == "gram":
                x = self.values[name][rng.integers(self.n, size=n_rows)]
            with np.errstate(over="ignore"):
                values[name] = np.where(np.isfinite(x * far), x * far, x)
        return lambda rows: self._contained(values, np.arange(n_rows)[rows])

    def _contained(self, values: Mapping[str, np.ndarray], rows: np.ndarray) -> Any:
        if self.container == "stacked":
            return np.hstack([x[rows] for x in values.values()])
        tables = {name: table.formed(values[name][rows], self.folder, rows) for name, table in self.tables.items()}
        if self.container == "mapping":
            return tables
        kind: Any = {"list": list, "tuple": tuple, "integer keys": lambda each: dict(enumerate(each))}
        return Views(tables) if self.container == "Views" else kind[self.container](tables.values())

    @property
    def layout(self) -> list[int] | None:
        """The widths of the views, if they are stacked."""
        return [table.width for table in self.tables.values()] if self.container == "stacked" else None

    def has_clear_clusters(self) -> bool:
        """Return whether all views have the clusters, and no form or blemish hides them."""
        return all(
            (table.pattern, table.dtype, table.blemish) == ("blobs", "float64", "")
            and table.width > 1
            and (table.form not in _OTHER_VALUES or self.container == "stacked")
            for table in self.tables.values()
        )

    def at_scale_1(self) -> dict[str, np.ndarray]:
        """Return the same values as plain arrays without the power of two."""
        plain = replace(self, tables={name: replace(table, power=0) for name, table in self.tables.items()})
        plain.generate()
        return plain.values


def contents(data: Any) -> bytes:
    """Return all values of views in any container, to notice changes; SciPy's notes on their order are left out."""
    tables = data.values() if isinstance(data, Mapping) else data if isinstance(data, (list, tuple)) else [data]
    parts = [
        {name: part for name, part in vars(table).items() if "has_" not in name} if sp.issparse(table) else table
        for table in tables
    ]
    return pickle.dumps(parts)


def drawn_table(rng: random.Random, n_rows: int, *, gram: bool) -> Table:
    """Return a random table; `gram` asks for a Gram matrix."""
    pattern = "gram" if gram else rng.choice(_PATTERNS)
    width = n_rows if pattern == "gram" else rng.choice((1, 2, 2, 3, 3, 4, 5, 8, 70))
    form, dtype = rng.choice(_FORMS), rng.choice(_DTYPES)
    if form in _SOME_TYPES and dtype not in ("float32", "int64"):
        dtype = "float64"
    power = rng.choice((0,) * 12 + (-20, 20, rng.randint(-1000, 1000)))
    return Table(pattern, width, dtype, form, power, rng.choice(_BLEMISHES))


def drawn_problem(rng: random.Random, n_views: int, folder: Path, *, gram: bool) -> Problem:
    """Return random views, of which about a third have clear clusters."""
    n = rng.choice((1, 2, 3, 5, 9)) if rng.random() < 0.08 else rng.randint(10, 40)
    tables = {name: drawn_table(rng, n, gram=gram) for name in "abc"[:n_views]}
    if rng.random() < 0.35 and not gram:
        n, power, form = max(n, 30), rng.choice((0, rng.randint(-1000, 1000))), rng.choice(_FORMS)
        tables = {name: Table("blobs", rng.randint(2, 5), form=form, power=power) for name in tables}
    labelled = [table.form for table in tables.values() if table.form in _ROW_LABELS]
    if labelled and rng.random() < 0.8:  # otherwise the views may have different row labels
        tables = {name: replace(table, form=labelled[0]) for name, table in tables.items()}
    return Problem(rng.getrandbits(40), n, rng.choice((2, 3)), tables, rng.choice(_CONTAINERS), folder)
