"""Nearest-neighbour search: exact, by k-d tree, by cells of projected rows; duplicate rows."""
