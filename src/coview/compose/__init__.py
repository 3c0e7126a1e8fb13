"""Wrappers around methods: views prepared, as one table, or each by itself; models of some samples; tuned ones."""

from coview.compose.fixed_size import FixedSize
from coview.compose.per_view import PerView
from coview.compose.scaled import Scaled
from coview.compose.side_by_side import Concat
from coview.compose.tuned import Tuned

__all__ = ["Concat", "FixedSize", "PerView", "Scaled", "Tuned"]
