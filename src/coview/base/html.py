"""Tables and maps in HTML for notebooks: one string without references to other files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from coview.base.palette import PALETTE

_WIDTH, _HEIGHT, _MARGIN = 300, 200, 12  # of a map, in pixels


def html_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table whose cells are escaped."""
    head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def first_few(values: Sequence[object], most: int) -> str:
    """Return the first of these values, separated by commas, and how many follow."""
    more = [f"and {len(values) - most:,} more"] if len(values) > most else []
    return ", ".join([*map(str, values[:most]), *more])


def html_map(groups: Sequence[tuple[int, Sequence[tuple[float, float]]]], caption: str) -> str:
    """Return samples as dots in the colours of their clusters, an SVG; coordinates are from -1 to 1.

    `groups` has the number of each cluster and the positions of its samples. The number is at their mean.
    """
    dots, texts = [], []
    for number, positions in groups:
        xs = [_WIDTH / 2 + x * (_WIDTH / 2 - _MARGIN) for x, _ in positions]
        ys = [_HEIGHT / 2 - y * (_HEIGHT / 2 - _MARGIN) for _, y in positions]
        # A line of length 0 with round ends is a dot, and takes a fifth of the characters of a circle.
        path = "".join(f"M{x:.0f} {y:.0f}h0" for x, y in zip(xs, ys, strict=True))
        dots.append(f'<path d="{path}" stroke="{PALETTE[number % len(PALETTE)]}"/>')
        texts.append(f'<text x="{sum(xs) / len(xs):.0f}" y="{sum(ys) / len(ys) + 4:.0f}">{number}</text>')
    return (
        f'<figure style="margin:0.5em 0"><svg width="{_WIDTH}" height="{_HEIGHT}" role="img" '
        f'aria-label="{escape(caption)}"><g fill="none" stroke-width="4" stroke-linecap="round" stroke-opacity="0.6">'
        f'{"".join(dots)}</g><g font-size="12" font-weight="bold" font-family="sans-serif" text-anchor="middle" '
        f'stroke="white" stroke-width="3" paint-order="stroke">{"".join(texts)}</g></svg>'
        f"<figcaption>{escape(caption)}</figcaption></figure>"
    )
