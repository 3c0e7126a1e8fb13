"""Reports that open in any browser: one file each, complete in itself, which asks the network for nothing."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from coview.io.atomic import complete_or_absent
from coview.report.charts import chart_data, has_scores
from coview.report.page import fill
from coview.report.tables import agreements, best_tried, cross_table, splits
from coview.report.words import comparison_story, preparations_in_words, story
from coview.tune.record import mean_criteria

if TYPE_CHECKING:
    from coview.compare import Comparison
    from coview.summary import Summary

__all__ = ["render", "render_comparison", "write_comparison", "write_report"]


def render(summary: Summary) -> str:
    """Return the report of one fitted model as an HTML page that needs no other file.

    Parameters
    ----------
    summary : Summary
        What `summarize` gathered; parts that are None are left out of the page.
    """
    data = chart_data(summary)
    return fill(
        "report.html",
        data=data,
        summary=summary,
        steps={view.name: view.preprocessing for view in summary.views},
        has_scores=has_scores(summary),
        story=story(summary),
        agreements=agreements(summary),
        splits=splits(summary),
        crossed=cross_table(summary.truth) if summary.truth else None,
        tried=best_tried(summary.tuning) if summary.tuning else [],
        so_far=mean_criteria(summary.tuning.evaluations) if summary.tuning else {},
        numbers=bool(data and data["tuning"] and data["tuning"]["numbers"]),
    )


def write_report(summary: Summary, path: str | Path) -> Path:
    """Write the report of one fitted model; the file appears when it is complete.

    Parameters
    ----------
    summary : Summary
        What `summarize` gathered.
    path : str or Path
        Where the page shall appear, such as "report.html".
    """
    return _write(render(summary), path)


def render_comparison(comparison: Comparison) -> str:
    """Return several methods side by side as an HTML page that needs no other file.

    Parameters
    ----------
    comparison : Comparison
        What `compare` measured.
    """
    return fill(
        "comparison.html",
        comparison=comparison,
        steps=preparations_in_words(comparison),
        story=comparison_story(comparison),
    )


def write_comparison(comparison: Comparison, path: str | Path) -> Path:
    """Write several methods side by side; the file appears when it is complete.

    Parameters
    ----------
    comparison : Comparison
        What `compare` measured.
    path : str or Path
        Where the page shall appear, such as "comparison.html".
    """
    return _write(render_comparison(comparison), path)


def _write(html: str, path: str | Path) -> Path:
    path = Path(path)
    with complete_or_absent(path) as file:
        file.write(html.encode())
    return path
