"""A comparison of methods in sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coview.base.text import decimals, listed, plural
from coview.preprocess.steps import parse_steps
from coview.summary.sentences import ARI, Overview, described_views

if TYPE_CHECKING:
    from coview.compare import Comparison


def preprocessing_descriptions(comparison: Comparison) -> dict[str, str]:
    """Return for each view a description of its preprocessing."""
    return {
        view: "the default of each method" if steps is None else parse_steps(steps).description
        for view, steps in comparison.preprocess.items()
    }


def comparison_overview(comparison: Comparison) -> Overview:
    """Return the overview of a comparison of methods."""
    n_methods = plural(len(comparison.methods), "method")
    failed = [method.name for method in comparison.methods if method.error is not None]
    done = [
        f"{n_methods} with default settings assign{'s' * (len(comparison.methods) == 1)} "
        f"{plural(comparison.n_samples, 'sample')} to {plural(comparison.n_clusters, 'cluster')}, "
        f"based on {described_views(comparison.views)}."
    ]
    described = preprocessing_descriptions(comparison)
    if len(set(described.values())) > 1:
        done.append(f"Preprocessing: {'; '.join(f'{steps} ({view})' for view, steps in described.items())}.")
    elif set(comparison.preprocess.values()) != {"none"}:
        done.append(f"Preprocessing of all views: {next(iter(described.values()))}.")
    if any(method.name == "coview" for method in comparison.methods):
        done.append("The method coview is the consensus of many clusterings with their own preprocessing.")
    if failed:
        done.append(f"There are no labels of {listed(failed)}; the table gives the reason.")
    caution = (
        "The comparison uses one data set and one random state; small differences are not meaningful."
        if comparison.has_truth
        else "Without known classes, the methods cannot be ranked. Clusters on which several methods agree are more "
        "likely to be a property of the data than of the method."
    )
    parts = {"Method": done, "Result": _ranking(comparison), "Reliability": [caution]}
    return Overview(f"Comparison of {n_methods}", parts)


def _ranking(comparison: Comparison) -> list[str]:
    sentences, methods = [], comparison.methods
    timed = [(method.seconds, method.name) for method in methods if method.seconds is not None]
    known = sorted(((method.ari, method.name) for method in methods if method.ari is not None), reverse=True)
    if known:
        second = f", followed by {known[1][1]} ({decimals(known[1][0])})" if len(known) > 1 else ""
        sentences.append(f"{known[0][1]} agrees most with the known classes: {decimals(known[0][0])} ({ARI}){second}.")
    if len(timed) > 1:
        sentences.append(f"{min(timed)[1]} is the fastest method, {max(timed)[1]} the slowest.")
    pairs = [
        (value, methods[i].name, methods[j].name)
        for i, row in enumerate(comparison.agreements)
        for j, value in enumerate(row[:i])
        if value is not None
    ]
    if len(pairs) > 1:
        (most, a, b), (least, c, d) = max(pairs), min(pairs)
        sentences.append(
            f"The labels of {a} and {b} agree most ({decimals(most)}), those of {c} and {d} least ({decimals(least)})."
        )
    return sentences
