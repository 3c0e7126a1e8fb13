"""Tables in HTML for notebooks: one string without references to other files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape


def html_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table whose cells are escaped."""
    head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def first_few(values: Sequence[object], most: int) -> str:
    """Return the first of these values, separated by commas, and how many follow."""
    more = [f"and {len(values) - most:,} more"] if len(values) > most else []
    return ", ".join([*map(str, values[:most]), *more])
