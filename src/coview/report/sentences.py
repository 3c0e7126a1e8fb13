"""The overview of a report: a title and short sentences on method, result, reliability and what to check."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from coview.certainty.stability import DOUBTFUL, READINGS, hennig_reading
from coview.evaluate.words import NO_STRUCTURE, number_in_words, support_in_words
from coview.formats import decimals, listed, percent, plural
from coview.preprocess.steps import parse_steps
from coview.summary.words import certainty_in_words, contributions_in_words, has_support, loss_in_words, refits_in_words

if TYPE_CHECKING:
    from coview.compare import Comparison
    from coview.summary import Cluster, Summary

_TINY_CLUSTER = 0.01  # fraction of all samples
LOW_SILHOUETTE = 0.25
AGREEMENT_BOUNDS = _LOW_AGREEMENT, _HIGH_AGREEMENT = 0.5, 0.8
_ARI = "adjusted Rand index; 1 is identical, 0 is chance"


class Overview(NamedTuple):
    """A title, and the sentences under each heading."""

    title: str
    parts: dict[str, list[str]]


def overview(summary: Summary) -> Overview:
    """Return the overview of a fitted model, without sentences on parts of the summary that are None."""
    n_found = sum(cluster.size > 0 for cluster in summary.clusters)
    parts = {
        "Method": _method(summary),
        "Result": _result(summary),
        "Reliability": _reliability(summary),
        "What to check": _checks(summary),
    }
    title = f"{plural(n_found, 'cluster')} in {plural(summary.n_samples, 'sample')}"
    if not has_support(summary):
        parts = {"Reliability": parts.pop("Reliability"), **parts}  # before what it restricts
        if n_found == 1:
            title = f"{NO_STRUCTURE} in {plural(summary.n_samples, 'sample')}"
    return Overview(title, parts)


def _method(summary: Summary) -> list[str]:
    views = {view.name: view.n_features for view in summary.views}
    sentences = [
        f"{summary.method} assigns {plural(summary.n_samples, 'sample')} to {plural(summary.n_clusters, 'cluster')}, "
        f"based on {_described_views(views)}."
    ]
    if summary.number:
        sentences.append(number_in_words(summary.number))
    lacking = {view.name: summary.n_samples - view.n_samples for view in summary.views}
    if any(lacking.values()):
        named = listed([f"{name} ({plural(count, 'sample')})" for name, count in lacking.items() if count])
        sentences.append(f"Some samples lack views: {named}. They are clustered by the views that they have.")
    if summary.n_train < summary.n_samples:
        trained = plural(summary.n_train, "sample")
        sentences.append(f"The model was trained on {trained}. The labels of all other samples are predicted.")
    if summary.truth:
        sentences.append("The known classes were not used for clustering, only to evaluate the result.")
    return sentences


def _result(summary: Summary) -> list[str]:
    sentences = []
    occupied = [cluster for cluster in summary.clusters if cluster.size]
    if len({cluster.size for cluster in occupied}) > 1:
        largest = max(occupied, key=lambda cluster: cluster.size)
        smallest = min(occupied, key=lambda cluster: cluster.size)
        sentences.append(
            f"The largest is {_described_cluster(largest)}; the smallest is {_described_cluster(smallest)}."
        )
    elif len(occupied) > 1:
        sentences.append(f"All clusters have the same size: {plural(occupied[0].size, 'sample')}.")
    if summary.truth:
        truth = summary.truth
        sentences += [
            f"Agreement with the known classes is {decimals(truth.ari)} ({_ARI}). The normalised mutual information is "
            f"{decimals(truth.nmi)}.",
            f"The accuracy is {percent(truth.accuracy)} if clusters and classes are matched one to one. A single "
            f"cluster would reach {percent(truth.largest_class)}, the fraction of the largest class.",
        ]
    known = [(view.agreement, view.name) for view in summary.views if view.agreement is not None]
    if len(known) > 1 and has_support(summary):
        (least, worst), (most, best) = min(known), max(known)
        lowest, highest = (decimals(each, bounds=AGREEMENT_BOUNDS) for each in (least, most))
        measure = "adjusted Rand index" if summary.truth else _ARI  # explained once
        if least >= _HIGH_AGREEMENT:
            sentence = f"The labels by each view alone agree with the joint labels: {lowest} to {highest} ({measure})."
        elif most < _LOW_AGREEMENT:
            sentence = (
                f"The labels by no single view agree with the joint labels. The closest are those by {best}: "
                f"{highest} ({measure})."
            )
        else:
            sentence = (
                f"The joint labels agree most with those by view {best} alone, {highest} ({measure}), and least with "
                f"those by {worst}, {lowest}."
            )
        sentences.append(sentence)
    return sentences + contributions_in_words(summary) + loss_in_words(summary)


def _reliability(summary: Summary) -> list[str]:
    sentences = [] if summary.support is None else support_in_words(summary.support)
    sentences += refits_in_words(summary) + certainty_in_words(summary)
    if summary.silhouette is not None:
        sentences.append(
            f"The mean silhouette in score space is {decimals(summary.silhouette)}. It is optimistic, because the "
            "method computes this space to separate clusters."
        )
    return sentences


def _checks(summary: Summary) -> list[str]:
    sentences = []
    low = [c for c in summary.clusters if c.silhouette is not None and c.silhouette < LOW_SILHOUETTE and c.size]
    if low:
        sentences.append(f"{_clusters_have(low)} a silhouette below {LOW_SILHOUETTE}.")
    unstable = [c for c in summary.clusters if hennig_reading(c.stability) == READINGS[-1] and c.size]
    if unstable:
        sentences.append(f"{_clusters_have(unstable)} a stability below {DOUBTFUL}, too low to be trusted.")
    tiny = [c for c in summary.clusters if 0 < c.fraction < _TINY_CLUSTER]
    if tiny:
        sentences.append(f"{_clusters_have(tiny)} less than 1% of the samples, possibly outliers.")
    different = [v.name for v in summary.views if v.agreement is not None and v.agreement < _LOW_AGREEMENT]
    if different and len(summary.views) > 1:
        subject = "View {} has" if len(different) == 1 else "Views {} have"
        sentences.append(
            f"{subject.format(listed(different))} different labels, because of noise or because of structure that "
            "the other views lack. Colour the samples by view to see them."
        )
    if summary.uncertain:
        least, n_listed = summary.uncertain[0], len(summary.uncertain)
        more = f" The {n_listed} samples with the smallest margins are listed below." if n_listed > 1 else ""
        between = f"between clusters {least.label} and {least.nearest_other}"
        sentences.append(f"Sample {least.sample} has the smallest margin, {between}.{more}")
    if summary.notes:
        sentences.append(f"Notes lists {plural(len(summary.notes), 'remark')} on the data and the run.")
    return sentences


def _described_views(n_features: dict[str, int]) -> str:
    columns = listed([f"{name} ({plural(width, 'column')})" for name, width in n_features.items()])
    return f"{plural(len(n_features), 'view')}: {columns}"


def _described_cluster(cluster: Cluster) -> str:
    return f"cluster {cluster.label} with {plural(cluster.size, 'sample')} ({percent(cluster.fraction)})"


def _clusters_have(clusters: list[Cluster]) -> str:
    """The clusters as the subject of a sentence; more than six are only counted."""
    if len(clusters) == 1:
        return f"Cluster {clusters[0].label} has"
    if len(clusters) > 6:
        return f"{len(clusters)} clusters have"
    return f"Clusters {listed([str(cluster.label) for cluster in clusters])} have"


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
        f"based on {_described_views(comparison.views)}."
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
        sentences.append(f"{known[0][1]} agrees most with the known classes: {decimals(known[0][0])} ({_ARI}){second}.")
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
