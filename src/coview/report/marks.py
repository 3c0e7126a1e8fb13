"""The mark of a cluster: a colour and a shape, the same in every table, legend and plot."""

from __future__ import annotations

from dataclasses import dataclass

from coview.plots import PALETTE

# Plotly's names of `plots.MARKERS`, and the same shapes drawn in a box of 12 by 12. Every ten clusters the colours
# begin again with the next shape, so that a hundred clusters have marks of their own.
SHAPES = {
    "circle": "M6 1a5 5 0 1 0 0 10a5 5 0 1 0 0-10z",
    "square": "M1.5 1.5h9v9h-9z",
    "diamond": "M6 0.5L11.5 6L6 11.5L0.5 6z",
    "triangle-up": "M6 1L11.5 10.5H0.5z",
    "cross": "M4 1h4v3h3v4h-3v3h-4v-3h-3v-4h3z",
    "x": "M1 3L3 1L6 4L9 1L11 3L8 6L11 9L9 11L6 8L3 11L1 9L4 6z",
    "triangle-down": "M6 11L0.5 1.5H11.5z",
    "pentagon": "M6 0.8L11.4 4.7L9.3 11H2.7L0.6 4.7z",
    "hexagon2": "M3.2 1.2H8.8L11.6 6L8.8 10.8H3.2L0.4 6z",
    "star": "M6 0.5L7.4 4.4L11.5 4.5L8.2 7L9.4 11L6 8.6L2.6 11L3.8 7L0.5 4.5L4.6 4.4z",
}


@dataclass(frozen=True)
class Mark:
    """One colour and one shape."""

    colour: str
    shape: str
    path: str  # the shape as the outline of an SVG


def mark(number: int) -> Mark:
    """Return the mark of a cluster; numbers a hundred apart share it.

    Examples
    --------
    >>> mark(0).shape, mark(10).shape, mark(0).colour == mark(10).colour
    ('circle', 'square', True)
    """
    shape = list(SHAPES)[number // len(PALETTE) % len(SHAPES)]
    return Mark(PALETTE[number % len(PALETTE)], shape, SHAPES[shape])
