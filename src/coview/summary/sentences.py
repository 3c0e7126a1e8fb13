"""A summary in sentences, for the report and the terminal: method, result, reliability and what to check."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from coview.base.text import count, decimals, listed, percent, plural
from coview.certainty.stability import DOUBTFUL, READINGS, hennig_reading
from coview.certainty.which_view import NOVEL
from coview.evaluate.words import NO_STRUCTURE, number_in_words, support_in_words
from coview.summary.values import Cluster, Summary

UNCERTAIN = 0.5  # membership
LOW_SILHOUETTE = 0.25
AGREEMENT_BOUNDS = _LOW_AGREEMENT, _HIGH_AGREEMENT = 0.5, 0.8
ARI = "adjusted Rand index; 1 is identical, 0 is chance"
_TINY_CLUSTER = 0.01  # fraction of all samples
_MOST = 0.5  # fraction of the samples of a cluster
_FAR_ABOVE_EQUAL = 1.5  # the contribution of a view over the mean of all views
_MOST_NAMED = 6  # clusters; more are counted


class Overview(NamedTuple):
    """A title, and the sentences under each heading."""

    title: str
    parts: dict[str, list[str]]


def overview(summary: Summary) -> Overview:
    """Return the overview of a fitted model, without sentences on parts of the summary that are None."""
    n_found = sum(cluster.size > 0 for cluster in summary.clusters)
    supported = _has_support(summary)
    parts = {"Method": _method, "Result": _result, "Reliability": _reliability, "What to check": _checks}
    if not supported:
        parts = {"Reliability": _reliability, **parts}  # before what it restricts
    found = NO_STRUCTURE if n_found == 1 and not supported else plural(n_found, "cluster")
    sentences = {heading: [*part(summary)] for heading, part in parts.items()}
    return Overview(f"{found} in {plural(summary.n_samples, 'sample')}", sentences)


def _has_support(summary: Summary) -> bool:
    """Return whether the clusters are supported, as far as it is known; otherwise agreement does not support them."""
    return summary.support is None or summary.support.level != "none"


def _method(summary: Summary) -> Iterator[str]:
    views = {view.name: view.n_features for view in summary.views}
    yield (
        f"{summary.method} assigns {plural(summary.n_samples, 'sample')} to {plural(summary.n_clusters, 'cluster')}, "
        f"based on {described_views(views)}."
    )
    if summary.number:
        yield number_in_words(summary.number)
    lacking = {view.name: summary.n_samples - view.n_samples for view in summary.views}
    if any(lacking.values()):
        named = listed([f"{name} ({plural(number, 'sample')})" for name, number in lacking.items() if number])
        yield f"Some samples lack views: {named}. They are clustered by the views that they have."
    if summary.n_train < summary.n_samples:
        yield (
            f"The model was trained on {plural(summary.n_train, 'sample')}. The labels of all other samples are "
            "predicted."
        )
    if summary.truth:
        yield "The known classes were not used for clustering, only to evaluate the result."


def described_views(n_features: Mapping[str, int]) -> str:
    """Return the number of views, and their names and numbers of columns."""
    columns = listed([f"{name} ({plural(width, 'column')})" for name, width in n_features.items()])
    return f"{plural(len(n_features), 'view')}: {columns}"


def _result(summary: Summary) -> Iterator[str]:
    occupied = sorted((cluster for cluster in summary.clusters if cluster.size), key=lambda cluster: -cluster.size)
    if len({cluster.size for cluster in occupied}) > 1:
        largest, smallest = (
            f"cluster {each.label} with {plural(each.size, 'sample')} ({percent(each.fraction)})"
            for each in (occupied[0], min(occupied, key=lambda cluster: cluster.size))
        )
        yield f"The largest is {largest}; the smallest is {smallest}."
    elif len(occupied) > 1:
        yield f"All clusters have the same size: {plural(occupied[0].size, 'sample')}."
    if truth := summary.truth:
        yield (
            f"Agreement with the known classes is {decimals(truth.ari)} ({ARI}). The normalised mutual information is "
            f"{decimals(truth.nmi)}."
        )
        yield (
            f"The accuracy is {percent(truth.accuracy)} if clusters and classes are matched one to one. A single "
            f"cluster would reach {percent(truth.largest_class)}, the fraction of the largest class."
        )
    if _has_support(summary):
        yield from _agreement(summary)
    yield from contributions_in_words(summary)
    yield from loss_in_words(summary)


def _agreement(summary: Summary) -> Iterator[str]:
    """Yield how well the labels by each view alone agree with the joint labels."""
    known = [(view.agreement, view.name) for view in summary.views if view.agreement is not None]
    if len(known) < 2:
        return
    (least, worst), (most, best) = min(known), max(known)
    lowest, highest = (decimals(each, bounds=AGREEMENT_BOUNDS) for each in (least, most))
    measure = "adjusted Rand index" if summary.truth else ARI  # explained once
    if least >= _HIGH_AGREEMENT:
        yield f"The labels by each view alone agree with the joint labels: {lowest} to {highest} ({measure})."
    elif most < _LOW_AGREEMENT:
        yield (
            f"The labels by no single view agree with the joint labels. The closest are those by {best}: {highest} "
            f"({measure})."
        )
    else:
        yield (
            f"The joint labels agree most with those by view {best} alone, {highest} ({measure}), and least with those "
            f"by {worst}, {lowest}."
        )


def contribution_fractions(cluster: Cluster) -> dict[str, float]:
    """Return the contribution of each view as a fraction of their sum; nothing if the sum is not positive."""
    total = sum(cluster.contributions.values())
    return {name: value / total for name, value in cluster.contributions.items()} if total > 0 else {}


def contributions_in_words(summary: Summary) -> Iterator[str]:
    """Yield which views contribute most to which clusters, and which contradict them."""
    carried: dict[str, list[Cluster]] = defaultdict(list)  # by view
    contradicted: dict[str, list[Cluster]] = defaultdict(list)
    others: list[Cluster] = []
    for cluster in summary.clusters:
        if not (cluster.contributions and cluster.size):
            continue
        fractions = contribution_fractions(cluster)
        best = max(fractions, key=lambda name: fractions[name], default="")
        far_above = best and fractions[best] * len(fractions) >= _FAR_ABOVE_EQUAL
        (carried[best] if far_above else others).append(cluster)
        for name, fraction in cluster.contradicted.items():
            if fraction > _MOST:
                contradicted[name].append(cluster)
    for view, some in carried.items():
        yield f"View {view} contributes most to {_named(some)}."
    if others:
        yield f"No view contributes far more than the others to {_named(others) if carried else 'any cluster'}."
    for view, some in contradicted.items():
        yield f"View {view} contradicts the labels of most samples of {_named(some)}: it supports another cluster."


def loss_in_words(summary: Summary) -> Iterator[str]:
    """Yield how well the labels that are predicted without each view agree with the joint labels."""
    without = [(view.agreement_without, view.name) for view in summary.views if view.agreement_without is not None]
    if without:
        ranked = sorted(without, key=lambda pair: -pair[0])
        by_view = listed([f"{decimals(value)} without {name}" for value, name in ranked])
        yield (
            "The adjusted Rand index between the joint labels and the labels that the same model predicts without a "
            f"view is {by_view}. A view with an index near 1 could be dropped at little loss. The model is not fitted "
            "again."
        )


def _reliability(summary: Summary) -> Iterator[str]:
    if summary.support is not None:
        yield from support_in_words(summary.support)
    yield from refits_in_words(summary)
    yield from _certainty(summary)
    if summary.silhouette is not None:
        yield (
            f"The mean silhouette in score space is {decimals(summary.silhouette)}. It is optimistic, because the "
            "method computes this space to separate clusters."
        )


def refits_in_words(summary: Summary) -> Iterator[str]:
    """Yield how many clusters and samples models of half of the samples find again, if it is measured."""
    refits, stays = summary.refits, [each for each in summary.samples.stability or () if each is not None]
    known = [cluster.stability for cluster in summary.clusters if cluster.stability is not None]
    if refits is None or not stays or not known:
        return
    readings = Counter(map(hennig_reading, known))
    words = [f"{n} {'is' if n == 1 else 'are'} {name}" for name in READINGS if (n := readings[name])]
    no_evidence = "" if _has_support(summary) else " Clusters without support can be stable, too."
    labelled = "" if refits.predicts else " that label it"
    models = f"{plural(refits.n_repeats, 'model')} with the same settings, each of {plural(refits.n_drawn, 'sample')}"
    yield (
        f"In {models}: of {plural(len(known), 'cluster')}, {listed(words)}. On average, a sample stays in its cluster "
        f"in {percent(sum(stays) / len(stays))} of the models{labelled}.{no_evidence}"
    )


def membership_in_words(summary: Summary) -> str:
    """Return what the membership of a sample in its cluster is."""
    if "Coview" in summary.method:  # alone or in wrappers
        return (
            "Membership is the mean of two fractions: of the neighbours of a sample that are in its cluster, and of "
            "the samples of the cluster to which the clusterings assign the same label."
        )
    return (
        "Membership estimates the fraction of models of random subsets of the training samples that assign a sample to "
        "the same cluster."
    )


def _certainty(summary: Summary) -> Iterator[str]:
    """Yield how many of the listed samples have a low membership or a high novelty."""
    memberships, novelties = summary.samples.memberships, summary.samples.novelties
    n_listed = len(summary.samples.rows)
    of_table = " of the table" if n_listed < summary.n_samples else ""

    def some(n: int) -> str:
        if n == 0:
            return f"No sample{of_table} has"
        total = f"{count(n)} of {plural(n_listed, 'sample')}{of_table} ({percent(n / n_listed)})"
        return f"{total} {'has' if n == 1 else 'have'}"

    if memberships is not None:
        n = sum(each < UNCERTAIN for each in memberships)
        yield f"{some(n)} a membership below {UNCERTAIN}. {membership_in_words(summary)}"
    if novelties is not None:
        n = sum(each > NOVEL for each in novelties if each is not None)
        expected = " By definition, at most about 1% of the training samples have such a novelty."
        yield (
            f"{some(n)} a novelty above {NOVEL}: such a sample is less similar to the training samples than "
            f"{percent(NOVEL)} of these are to each other.{expected if summary.of_training else ''}"
        )


def _checks(summary: Summary) -> Iterator[str]:
    occupied = [cluster for cluster in summary.clusters if cluster.size]
    low = [each for each in occupied if each.silhouette is not None and each.silhouette < LOW_SILHOUETTE]
    if low:
        yield f"{_have(low)} a silhouette below {LOW_SILHOUETTE}."
    unstable = [each for each in occupied if hennig_reading(each.stability) == READINGS[-1]]
    if unstable:
        yield f"{_have(unstable)} a stability below {DOUBTFUL}, too low to be trusted."
    tiny = [each for each in occupied if 0 < each.fraction < _TINY_CLUSTER]
    if tiny:
        yield f"{_have(tiny)} less than 1% of the samples, possibly outliers."
    different = [v.name for v in summary.views if v.agreement is not None and v.agreement < _LOW_AGREEMENT]
    if different and len(summary.views) > 1:
        subject = "View {} has" if len(different) == 1 else "Views {} have"
        yield (
            f"{subject.format(listed(different))} different labels, because of noise or because of structure that the "
            "other views lack. Colour the samples by view to see them."
        )
    if summary.uncertain:
        least, n_listed = summary.uncertain[0], len(summary.uncertain)
        more = f" The {n_listed} samples with the smallest margins are listed below." if n_listed > 1 else ""
        between = f"between clusters {least.label} and {least.nearest_other}"
        yield f"Sample {least.sample} has the smallest margin, {between}.{more}"
    if summary.notes:
        yield f"Notes lists {plural(len(summary.notes), 'remark')} on the data and the run."


def _named(clusters: Sequence[Cluster]) -> str:
    return f"cluster{'' if len(clusters) == 1 else 's'} {listed([str(cluster.label) for cluster in clusters])}"


def _have(clusters: Sequence[Cluster]) -> str:
    """Return the clusters as the subject of a sentence; many are only counted."""
    subject = _named(clusters).capitalize() if len(clusters) <= _MOST_NAMED else plural(len(clusters), "cluster")
    return f"{subject} {'has' if len(clusters) == 1 else 'have'}"
