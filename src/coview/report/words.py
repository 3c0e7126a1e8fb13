"""The numbers in plain words: what was done, what came out, how sure it is, what to look at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from coview.preprocess.steps import parse_steps
from coview.report.formats import count, decimals, listed, percent, plural

if TYPE_CHECKING:
    from coview.compare import Comparison, MethodResult
    from coview.summary import Cluster, Summary, View

# Lower ends, and what a mean silhouette above them means in words.
_CLEARNESS = (
    (0.7, "stand clearly apart"),
    (0.5, "stand apart, with some samples between them"),
    (0.25, "overlap at their borders"),
    (-1.0, "hardly stand apart"),
)
_TINY = 0.01  # share of all samples
_UNCLEAR = 0.25  # silhouette
_LOOSE = 0.5  # agreement of a view


@dataclass(frozen=True)
class Story:
    """A headline, and sentences under a few headings."""

    headline: str
    parts: tuple[tuple[str, tuple[str, ...]], ...]


def story(summary: Summary) -> Story:
    """Tell a summary in short sentences.

    Parameters
    ----------
    summary : Summary
        Sentences about parts that are None are left out.
    """
    n_found = sum(cluster.size > 0 for cluster in summary.clusters)
    parts = {
        "What was done": _done(summary),
        "What came out": _came_out(summary),
        "How sure it is": _sure(summary),
        "What to look at": _look_at(summary),
    }
    return Story(
        f"{plural(n_found, 'cluster')} in {plural(summary.n_samples, 'sample')}",
        tuple((heading, tuple(sentences)) for heading, sentences in parts.items() if sentences),
    )


def _done(summary: Summary) -> list[str]:
    views = listed([f"{view.name} ({plural(view.n_features, 'column')})" for view in summary.views])
    several = "one view" if len(summary.views) == 1 else f"{len(summary.views)} views of the same samples"
    sentences = [
        f"{summary.method} sorted {plural(summary.n_samples, 'sample')} into {plural(summary.n_clusters, 'cluster')}, "
        f"using {several}: {views}."
    ]
    if summary.tuning:
        settings = {row.setting for row in summary.tuning.evaluations}
        numbers = {row.n_clusters for row in summary.tuning.evaluations}
        also = f" and the number of clusters from {min(numbers)} to {max(numbers)}" if len(numbers) > 1 else ""
        sentences.append(
            f"The settings were chosen from the data among {count(len(settings))}{also}, without labels: "
            "see How the settings were chosen."
        )
    if summary.n_train < summary.n_samples:
        sentences.append(
            f"It learnt from {count(summary.n_train)} of the samples and placed the others by what it had learnt."
        )
    if summary.truth:
        sentences.append("The known classes were not used for this; they are only compared with the result.")
    return sentences


def _came_out(summary: Summary) -> list[str]:
    occupied = [cluster for cluster in summary.clusters if cluster.size]
    sentences = []
    if len(occupied) > 1:
        largest = max(occupied, key=lambda cluster: cluster.size)
        smallest = min(occupied, key=lambda cluster: cluster.size)
        if largest.size == smallest.size:
            sentences.append(f"All clusters have the same size, {plural(largest.size, 'sample')}.")
        else:
            sentences.append(
                f"The largest is cluster {largest.label} with {_size(largest)}, "
                f"the smallest cluster {smallest.label} with {_size(smallest)}."
            )
    if summary.truth:
        sentences.append(
            f"With clusters and known classes matched as well as possible, {percent(summary.truth.accuracy)} of the "
            f"samples are where their class is (adjusted Rand index {decimals(summary.truth.ari)}; 1 is the same "
            "grouping, 0 is chance)."
        )
    return sentences + _views(summary)


def _views(summary: Summary) -> list[str]:
    known = [(view, view.agreement) for view in summary.views if view.agreement is not None]
    if len(known) < 2:
        return []
    (best, most), (worst, least) = max(known, key=lambda x: x[1]), min(known, key=lambda x: x[1])
    if least >= 0.8:
        return [
            f"The views tell the same story: each alone gives nearly these clusters (agreement {decimals(least)} to "
            f"{decimals(most)}; 1 is the same grouping, 0 is chance)."
        ]
    if most < _LOOSE:
        return [
            f"No view alone gives these clusters; they come from the views together. Nearest is {best.name} "
            f"(agreement {decimals(most)}; 1 is the same grouping, 0 is chance)."
        ]
    return [
        f"The clusters follow {best.name} most closely (agreement {decimals(most)}; 1 is the same grouping, 0 is "
        f"chance) and {worst.name} least ({decimals(least)})."
    ]


def _sure(summary: Summary) -> list[str]:
    sentences = []
    if summary.silhouette is not None:
        words = next(words for low, words in _CLEARNESS if summary.silhouette >= low)
        sentences.append(
            f"The clusters {words}: their mean silhouette is {decimals(summary.silhouette)}, between −1 and 1. It is "
            "measured in the space that the method made to pull clusters apart, so it tends to flatter."
        )
    sentences.append(
        "A method returns clusters whether or not the samples fall into groups. Other numbers of clusters, other "
        "methods and new samples are the test."
    )
    return sentences


def _look_at(summary: Summary) -> list[str]:
    sentences = []
    unclear = [c for c in summary.clusters if c.silhouette is not None and c.silhouette < _UNCLEAR and c.size]
    if unclear:
        sentences.append(f"{_clusters(unclear)} less clear than the others (silhouette below {_UNCLEAR}).")
    tiny = [c for c in summary.clusters if 0 < c.share < _TINY]
    if tiny:
        sentences.append(f"{_clusters(tiny)} very small, and may be outliers rather than a group.")
    loose = [v for v in summary.views if v.agreement is not None and v.agreement < _LOOSE]
    if loose and len(summary.views) > 1:
        sentences.append(_loose_views(loose))
    if summary.uncertain:
        least = summary.uncertain[0]
        sentences.append(
            f"Sample {least.sample} is the least certain, between clusters {least.label} and {least.runner_up}; "
            f"the {len(summary.uncertain)} least certain samples are listed below."
            if len(summary.uncertain) > 1
            else f"Sample {least.sample} is the least certain, between clusters {least.label} and {least.runner_up}."
        )
    if summary.notes:
        sentences.append(f"{plural(len(summary.notes), 'note')} about the data and the run: see Notes.")
    return sentences


def _size(cluster: Cluster) -> str:
    return f"{plural(cluster.size, 'sample')} ({percent(cluster.share)})"


def _clusters(clusters: list[Cluster]) -> str:
    """Some clusters as the subject of a sentence; a long list is only counted."""
    if len(clusters) == 1:
        return f"Cluster {clusters[0].label} is"
    if len(clusters) > 6:
        return f"{len(clusters)} clusters are"
    return f"Clusters {listed([str(cluster.label) for cluster in clusters])} are"


def _loose_views(views: list[View]) -> str:
    names = listed([view.name for view in views])
    subject = f"The view {names} groups" if len(views) == 1 else f"The views {names} group"
    return (
        f"{subject} the samples otherwise. That can be noise, or something that the other views do not see: "
        "colour the picture of the samples by it."
    )


def preparations_in_words(comparison: Comparison) -> dict[str, str]:
    """Return what was done to each view before the methods saw it."""
    return {view: parse_steps(name).words for view, name in comparison.preprocess.items()}


def comparison_story(comparison: Comparison) -> Story:
    """Tell a comparison in short sentences.

    Parameters
    ----------
    comparison : Comparison
        What `compare` measured.
    """
    ran = [method for method in comparison.methods if method.error is None]
    views = listed([f"{name} ({plural(width, 'column')})" for name, width in comparison.views.items()])
    tuned = any(method.name == "tuned" for method in comparison.methods)
    chosen = ", or for tuned with settings chosen from the data," if tuned else ""
    others = ", but for tuned, which has its own way" if tuned else ""
    done = [
        f"{plural(len(comparison.methods), 'method')} with default settings{chosen} looked for "
        f"{plural(comparison.n_clusters, 'cluster')} among {plural(comparison.n_samples, 'sample')} of {views}."
    ]
    prepared = preparations_in_words(comparison)
    if len(set(prepared.values())) > 1:
        each = "; ".join(f"{view}: {words}" for view, words in prepared.items())
        done.append(f"The views were prepared first ({each}){others}.")
    elif set(comparison.preprocess.values()) != {"none"}:
        done.append(f"The views were prepared first ({next(iter(prepared.values()))}){others}.")
    if len(ran) < len(comparison.methods):
        missing = [method.name for method in comparison.methods if method.error is not None]
        done.append(f"{listed(missing)} gave no labels; the reason is in the table.")
    parts = {"What was done": done, "What came out": _compared(comparison, ran), "How sure it is": _caution(comparison)}
    return Story(
        f"{plural(len(comparison.methods), 'method')} side by side",
        tuple((heading, tuple(sentences)) for heading, sentences in parts.items() if sentences),
    )


def _compared(comparison: Comparison, ran: list[MethodResult]) -> list[str]:
    sentences = []
    timed = [(method.seconds, method.name) for method in ran if method.seconds is not None]
    known = sorted(((method.ari, method.name) for method in ran if method.ari is not None), reverse=True)
    if known:
        second = f", then {known[1][1]} ({decimals(known[1][0])})" if len(known) > 1 else ""
        sentences.append(
            f"{known[0][1]} is nearest to the known classes (adjusted Rand index {decimals(known[0][0])}; 1 is the "
            f"same grouping, 0 is chance){second}."
        )
    if len(timed) > 1:
        sentences.append(f"{min(timed)[1]} was quickest, {max(timed)[1]} slowest.")
    names = [method.name for method in comparison.methods]
    pairs = [
        (value, names[i], names[j])
        for i, row in enumerate(comparison.agreements)
        for j, value in enumerate(row[:i])
        if value is not None
    ]
    if len(pairs) > 1:
        (most, a, b), (least, c, d) = max(pairs), min(pairs)
        sentences.append(
            f"{a} and {b} agree most with one another ({decimals(most)}), {c} and {d} least ({decimals(least)})."
        )
    return sentences


def _caution(comparison: Comparison) -> list[str]:
    if comparison.has_truth:
        return ["This is one data set and one random state; small differences between methods mean little."]
    return [
        "Without known classes no method can be called best. Where several methods agree, the grouping is likely to be "
        "in the data rather than in the method."
    ]
