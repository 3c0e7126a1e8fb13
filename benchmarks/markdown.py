"""Tables and generated blocks of the documentation pages that benchmarks write."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from textwrap import wrap
from typing import Any

ROOT = Path(__file__).parents[1]


def table(head: Sequence[str], body: Iterable[Iterable[Any]]) -> list[str]:
    """Return the lines of a Markdown table; floats have three decimals, and bars within cells are escaped."""

    def line(cells: Iterable[Any]) -> str:
        shown = (f"{cell:.3f}" if isinstance(cell, float) else str(cell).replace("|", "\\|") for cell in cells)
        return "| " + " | ".join(shown) + " |"

    return [line(head), line(["---"] * len(head)), *map(line, body)]


def reflow(page: str) -> str:
    """Return the page with paragraphs and list items filled to 120 characters; tables, headings and code are kept."""
    lines: list[str] = []
    block: list[str] = []
    fenced = False

    def flush() -> None:
        indent = "  " if block and block[0].startswith("- ") else ""
        text = " ".join(block)
        lines.extend(wrap(text, 120, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False))
        block.clear()

    for line in page.split("\n"):
        fence = line.startswith("```")
        fenced ^= fence
        if fence or fenced or not line or line.startswith(("|", "#", "<!--", "![")):
            flush()
            lines.append(line)
            continue
        if line.startswith("- "):
            flush()
        block.append(line.strip())
    flush()
    return "\n".join(lines)


def replace_block(page: str, first: str, last: str, text: str) -> str:
    """Return the page with the text between two markers replaced; a page without the markers stays as it is."""
    before, begins, rest = page.partition(first)
    _, ends, after = rest.partition(last)
    return f"{before}{first}{text}{last}{after}" if begins and ends else page


def write_block(page: Path, first: str, last: str, lines: Iterable[str]) -> None:
    """Replace the lines between two markers of a page on file.

    Parameters
    ----------
    page : Path
    first, last : str
        The markers, which are kept.
    lines : strings
        The new lines.
    """
    page.write_text(replace_block(page.read_text(), first, last, "\n" + "\n".join(lines) + "\n"))
