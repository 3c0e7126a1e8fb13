"""Wrappers around any method: scaled views, views as one table, one model for each view, a model of some samples."""

from coview.compose.fixed_size import FixedSize
from coview.compose.per_view import PerView
from coview.compose.scaled import Scaled
from coview.compose.side_by_side import Concat

__all__ = ["Concat", "FixedSize", "PerView", "Scaled"]
