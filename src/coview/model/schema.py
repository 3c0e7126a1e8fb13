"""Schema: what the training views look like, with which new views are compared."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from coview.data.as_views import Layout, as_views, holds_several, require_full_cells, with_new_row_numbers
from coview.data.views import Views
from coview.errors import InputError
from coview.preprocess.encode import Encoding, encoded


@dataclass(frozen=True)
class Schema:
    """The names, columns and encodings of the training views, and what new samples may lack."""

    n_features: Mapping[str, int]  # by view, after the encoding
    columns: Mapping[str, tuple[str, ...] | None]
    encodings: Mapping[str, Encoding]  # of views with categories
    filled: tuple[str, ...]  # the views whose empty cells are filled
    may_lack_views: bool
    has_row_numbers: bool  # some views had, beside others with labels

    @classmethod
    def learn(cls, given: Views, fills_cells: Callable[[str], bool], may_lack_views: bool) -> tuple[Schema, Views]:
        """Return the schema of validated training views, and these views with their categories encoded."""
        # A view that no sample has is refused later.
        encodings = {name: Encoding.learn(given, name) for name in given.categories if given.n_present(name)}
        views = encoded(given, encodings)
        filled = tuple(filter(fills_cells, views))
        return cls(views.n_features, views.columns, encodings, filled, may_lack_views, given.has_row_numbers), views

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.n_features)

    def fills_cells(self, view: str) -> bool:
        """Return whether empty cells of a view are filled; they are refused otherwise."""
        return view in self.filled

    def read(self, X: Any, layout: Layout) -> Views:
        """Return new samples as validated views; those of a list or one table get the names of the training views."""
        named = isinstance(X, Mapping) and holds_several(X)
        X = with_new_row_numbers(X) if self.has_row_numbers else X
        fills = self.fills_cells if named else lambda view: bool(self.filled)
        views = as_views(X, None if holds_several(X) else layout, fills)
        if not named and len(views) == len(self.names):
            views = views.rename(self.names)  # a list or one table has no names: the order counts
            require_full_cells(views, self.fills_cells)
        return views

    def matched(self, views: Views, X: Any, kind: str) -> Views:
        """Return views that were read from X in the order of the training views, with their categories encoded.

        Raise an InputError if they differ from the training views of a `kind` of estimator.
        """
        views = self._encoded(views, kind)
        known, named = set(self.names), isinstance(X, Mapping) and holds_several(X)
        if named and self.may_lack_views and set(views) < known:
            views = self.completed(views)
        if set(views) != known:
            missing = f"; missing: {', '.join(sorted(known - set(views)))}" if known - set(views) else ""
            unknown = f"; unknown: {', '.join(sorted(set(views) - known))}" if set(views) - known else ""
            raise InputError(
                f"{kind} was fitted on the views {', '.join(self.names)}{missing}{unknown}; give the same views under "
                "the same names"
            )
        for name in views:
            self._check_columns(views, name, kind, compare_names=holds_several(X))
        return views.select(self.names)

    def completed(self, views: Views) -> Views:
        """Return these samples with all training views; they lack those that are not given."""
        absent = {name: self.n_features[name] for name in self.names if name not in views}
        return views.with_absent(absent, self.columns).select(self.names)

    def _encoded(self, views: Views, kind: str) -> Views:
        for name, found in views.categories.items():
            if name in self.names and name not in self.encodings:
                raise InputError(
                    f"view {name!r} has categories in the column {next(iter(found))!r}, but {kind} was fitted on "
                    "numbers; give the same columns"
                )
        return encoded(views, self.encodings)

    def _check_columns(self, views: Views, name: str, kind: str, compare_names: bool) -> None:
        if views[name].shape[1] != self.n_features[name]:
            raise InputError(
                f"view {name!r} has {views[name].shape[1]} columns, but it had {self.n_features[name]} when {kind} was "
                "fitted; use the same columns in the same order"
            )
        before, now = self.columns[name], views.columns[name]
        if compare_names and before is not None and now is not None and before != now:
            first = next((a, b) for a, b in zip(before, now, strict=True) if a != b)
            raise InputError(
                f"view {name!r} has the column {first[1]!r} where {first[0]!r} was when {kind} was fitted; use the "
                "same columns in the same order"
            )
