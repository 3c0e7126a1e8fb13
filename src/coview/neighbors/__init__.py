"""Nearest-neighbour search: exact by products, exact by k-d tree, approximate by projections; duplicate rows."""
