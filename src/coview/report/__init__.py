"""Reports as single HTML files that need no network connection."""

from __future__ import annotations

from pathlib import Path

from coview.base.atomic import write_complete
from coview.compare import Comparison
from coview.report.charts import chart_data, has_scores
from coview.report.comparison import comparison_overview, preprocessing_descriptions
from coview.report.page import fill
from coview.report.tables import cross_table, divisions, sample_table, short_names, splits, valleys_by_cluster
from coview.summary import Summary
from coview.summary.sentences import membership_in_words, overview

__all__ = ["render", "write_report"]


def render(result: Summary | Comparison) -> str:
    """Return the report of a fitted model, or of a comparison of methods, as an HTML page.

    Parameters
    ----------
    result : Summary or Comparison
        The result of `summarize` or of `compare`. The page omits the parts of a summary that are None.

    Returns
    -------
    str
        The page, including its styles, scripts and data.
    """
    if isinstance(result, Comparison):
        steps = preprocessing_descriptions(result)
        return fill("comparison.html", comparison=result, steps=steps, overview=comparison_overview(result))
    plots = chart_data(result)
    return fill(
        "report.html",
        plots=plots,
        support=plots and plots["support"],
        valleys=valleys_by_cluster(result),
        samples=sample_table(result.samples),
        summary=result,
        steps={view.name: view.preprocessing for view in result.views},
        short=short_names(result),
        has_scores=has_scores(result),
        overview=overview(result),
        membership=membership_in_words(result),
        splits=splits(result),
        divisions=divisions(result.tree or ()),
        crossed=cross_table(result.truth) if result.truth else None,
    )


def write_report(result: Summary | Comparison, path: str | Path) -> Path:
    """Write the report of a fitted model, or of a comparison of methods, and return its path.

    Parameters
    ----------
    result : Summary or Comparison
        The result of `summarize` or of `compare`.
    path : str or Path
        The file, such as "report.html". It appears only if it is complete.

    Returns
    -------
    Path
    """
    path = Path(path)
    write_complete(path, render(result).encode())
    return path
