"""Validity of clusters: measures that are low for most data without clusters, and their levels."""

from coview.validity.measure import measure_validity
from coview.validity.values import Validity

__all__ = ["Validity", "measure_validity"]
