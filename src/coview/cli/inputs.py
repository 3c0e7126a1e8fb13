"""Files as they were typed: views, known classes, and what it takes to write labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from coview.cli.settings import chosen
from coview.errors import InputError


@dataclass(frozen=True)
class Sources:
    """Files as they were typed: views by name, how they fit together, and known classes."""

    files: Mapping[str, str]
    ids: str | None
    align: str
    categories: str
    truth: str | None

    def read(self) -> tuple[Any, Any]:
        """Return what `read_views` found, and the classes."""
        loaded = read(self.files, ids=self.ids, align=self.align, categories=self.categories)
        return loaded, read_truth(self.truth, loaded, self.ids)


def read(files: Mapping[str, str], *, ids: str | None, align: str, categories: str, columns: Any = None) -> Any:
    """Read views from files; the choices are checked here, in the words of the command."""
    from coview.io import read_views

    how = chosen("--align", align, ("strict", "inner")), chosen("--categories", categories, ("refuse", "onehot"))
    if align == "inner" and ids is None:
        raise InputError("--align inner keeps the samples that all views have; say which column names them with --ids")
    if ids == "cluster":
        raise InputError("--ids cluster is what the labels are called; rename the column of the ids")
    return read_views(files, ids=ids, align=how[0], categories=how[1], columns=columns)


def require_writer(ending: str) -> None:
    """Miss what is needed to write such a file before the work rather than after it."""
    from coview.extras import load_extra

    if ending == ".parquet":
        load_extra("pyarrow", "io", "writing Parquet files")


def read_truth(typed: str | None, loaded: Any, ids: str | None) -> Any:
    """Read known classes, one for each sample."""
    from coview.io import read_labels

    if typed is None:
        return None
    file, _, column = typed.partition("::")
    classes = read_labels(file, column=column or None, ids=ids, order=loaded.ids)
    if len(classes) != loaded.views.n_samples:
        raise InputError(f"{file} has {len(classes)} classes (--truth) for {loaded.views.n_samples} samples")
    return classes
