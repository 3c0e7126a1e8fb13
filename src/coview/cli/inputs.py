"""Input files of a command: views and known classes."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import coview.cli.options as options
from coview.cli.parse import parse_columns, parse_views
from coview.errors import InputError
from coview.registry import ALIGNMENTS, CATEGORIES, DECIMAL_MARKS, check_name


@dataclass(frozen=True)
class ViewInputs:
    """The options of the files of the views."""

    view: Annotated[list[str], options.VIEW]
    ids: Annotated[str | None, options.IDS] = None
    no_ids: Annotated[bool, options.NO_IDS] = False
    align: Annotated[str, options.ALIGN] = "strict"
    categories: Annotated[str, options.ENCODING] = "refuse"
    decimal: Annotated[str | None, options.DECIMAL] = None
    transpose: Annotated[list[str] | None, options.TRANSPOSE] = None
    drop: Annotated[list[str] | None, options.DROP] = None
    keep: Annotated[list[str] | None, options.COLUMNS] = None

    @property
    def files(self) -> dict[str, str]:
        """The file of each view."""
        return parse_views(self.view)

    @property
    def ids_or_false(self) -> str | Literal[False] | None:
        """The argument `ids` of the readers."""
        if self.no_ids and self.ids is not None:
            raise InputError(f"--ids {self.ids} and --no-ids exclude each other; leave out one of them")
        return False if self.no_ids else self.ids

    @property
    def keeps_rows_and_columns(self) -> bool:
        """Whether no sample or column is dropped, no column encoded and no table transposed, to read blocks."""
        changed = self.transpose or self.drop or self.keep
        return (self.align, self.categories) == (ALIGNMENTS[0], CATEGORIES[0]) and not changed

    def read(self, columns: Any = None, categories: Any = None, empty_cells: Collection[str] = ()) -> Any:
        """Return what `read_views` returns; `columns` and `categories` are those that a model was trained on."""
        from coview.io import read_views
        from coview.io.labels import check_ids_name

        check_name("--align", self.align, ALIGNMENTS)
        check_name("--categories", self.categories, CATEGORIES)
        check_ids_name(self.ids or "", "--ids ")
        if self.decimal is not None and self.decimal not in DECIMAL_MARKS:
            raise InputError(f"--decimal {self.decimal}: expected a point or a comma, as in --decimal ,")
        for name in self.transpose or ():
            check_name("--transpose", name, self.files)
        return read_views(
            self.files,
            ids=self.ids_or_false,
            align=self.align,
            categories=self.categories if categories is None else categories,
            columns=columns,
            decimal=self.decimal,
            transpose=self.transpose or (),
            empty_cells=empty_cells,
            keep=parse_columns(self.keep or (), tuple(self.files)),
            drop=self.drop or (),
        )


@dataclass(frozen=True)
class LabelledInputs(ViewInputs):
    """The options of the files of the views and of known classes."""

    truth: Annotated[str | None, options.TRUTH] = None

    def read_truth(self, loaded: Any) -> tuple[tuple[str, ...] | None, list[str]]:
        """Return the known class of each sample, if --truth is given, and notes."""
        from coview.data.mistakes import check_classes, classes_among_features
        from coview.io.labels import read_classes

        if self.truth is None:
            return None, []
        file, mark, column = self.truth.rpartition("::")  # the file may keep a ::SHEET
        if not mark:
            file, column = column, ""
        classes, notes = read_classes(file, column or None, self.ids_or_false, loaded.ids, self.decimal)
        if len(classes) != loaded.views.n_samples:
            raise InputError(f"{file} has {len(classes)} classes (--truth) for {loaded.views.n_samples} samples")
        check_classes(f"{file} (--truth)", classes)
        return classes, [*notes, *classes_among_features(loaded.views, classes)]
