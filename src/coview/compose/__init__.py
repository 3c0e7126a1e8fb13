"""Wrappers: preprocessing, one stacked table, one model per view, several models, training on a subset."""

from coview.compose.concat import Concat
from coview.compose.fixed_size import FixedSize
from coview.compose.per_view import PerView
from coview.compose.preprocessed import Preprocessed

__all__ = ["Concat", "FixedSize", "PerView", "Preprocessed"]
