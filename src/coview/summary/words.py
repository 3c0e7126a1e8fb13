"""Parts of a summary in words, for the report and the terminal."""

from __future__ import annotations

from collections import Counter, defaultdict

from coview.certainty.stability import READINGS, hennig_reading
from coview.certainty.which_view import NOVEL
from coview.formats import count, decimals, listed, percent, plural
from coview.summary.values import Cluster, Summary

_MOST = 0.5  # fraction of the samples of a cluster
UNCERTAIN = 0.5  # membership
_FAR_ABOVE_EQUAL = 1.5  # the contribution of a view over the mean of all views


def has_support(summary: Summary) -> bool:
    """Return whether the clusters are supported, as far as it is known; otherwise agreement does not support them."""
    return summary.support is None or summary.support.level != "none"


def refits_in_words(summary: Summary) -> list[str]:
    """Return how many clusters and samples models of half of the samples find again; nothing if it is not measured."""
    refits, stays = summary.refits, [each for each in summary.samples.stability or () if each is not None]
    known = [cluster.stability for cluster in summary.clusters if cluster.stability is not None]
    if refits is None or not stays or not known:
        return []
    readings = Counter(map(hennig_reading, known))
    words = [f"{n} {'is' if n == 1 else 'are'} {name}" for name in READINGS if (n := readings[name])]
    no_evidence = "" if has_support(summary) else " Clusters without support can be stable, too."
    labelled = "" if refits.predicts else " that label it"
    models = f"{plural(refits.n_repeats, 'model')} with the same settings, each of {plural(refits.n_drawn, 'sample')}"
    return [
        f"In {models}: of {plural(len(known), 'cluster')}, {listed(words)}. On average, a sample stays in its cluster "
        f"in {percent(sum(stays) / len(stays))} of the models{labelled}.{no_evidence}"
    ]


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


def certainty_in_words(summary: Summary) -> list[str]:
    """Return how many of the listed samples have a low membership or a high novelty; nothing without these."""
    memberships, novelties = summary.samples.memberships, summary.samples.novelties
    n_listed, sentences = len(summary.samples.rows), []
    listed_only = " of the table" if n_listed < summary.n_samples else ""

    def some(n: int) -> str:
        if n == 0:
            return f"No sample{listed_only} has"
        total = f"{count(n)} of {plural(n_listed, 'sample')}{listed_only} ({percent(n / n_listed)})"
        return f"{total} {'has' if n == 1 else 'have'}"

    if memberships is not None:
        n = sum(each < UNCERTAIN for each in memberships)
        sentences.append(f"{some(n)} a membership below {UNCERTAIN}. {membership_in_words(summary)}")
    if novelties is not None:
        n = sum(each > NOVEL for each in novelties if each is not None)
        expected = (
            " By definition, at most about 1% of the training samples have such a novelty."
            if summary.of_training
            else ""
        )
        sentences.append(
            f"{some(n)} a novelty above {NOVEL}: such a sample is less similar to the training samples than "
            f"{percent(NOVEL)} of these are to each other.{expected}"
        )
    return sentences


def contribution_fractions(cluster: Cluster) -> dict[str, float]:
    """Return the contribution of each view as a fraction of their sum; nothing if the sum is not positive."""
    total = sum(cluster.contributions.values())
    return {name: value / total for name, value in cluster.contributions.items()} if total > 0 else {}


def contributions_in_words(summary: Summary) -> list[str]:
    """Return which views contribute most to which clusters, and which contradict them."""
    clusters = [cluster for cluster in summary.clusters if cluster.contributions and cluster.size]
    if not clusters:
        return []
    carried, contradicted, others = defaultdict(list), defaultdict(list), []
    for cluster in clusters:
        fractions = contribution_fractions(cluster)
        best = max(fractions, key=lambda name: fractions[name], default=None)
        if best is not None and fractions[best] * len(fractions) >= _FAR_ABOVE_EQUAL:
            carried[best].append(cluster)
        else:
            others.append(cluster)
        for name, fraction in cluster.contradicted.items():
            if fraction > _MOST:
                contradicted[name].append(cluster)
    sentences = [f"View {view} contributes most to {_clusters_by_number(some)}." for view, some in carried.items()]
    if others:
        where = _clusters_by_number(others) if carried else "any cluster"
        sentences.append(f"No view contributes far more than the others to {where}.")
    for view, some in contradicted.items():
        numbers = _clusters_by_number(some)
        sentences.append(
            f"View {view} contradicts the labels of most samples of {numbers}: it supports another cluster."
        )
    return sentences


def loss_in_words(summary: Summary) -> list[str]:
    """Return how well the labels that are predicted without each view agree with the joint labels."""
    without = {view.name: view.agreement_without for view in summary.views if view.agreement_without is not None}
    if not without:
        return []
    by_view = listed([f"{decimals(value)} without {name}" for name, value in _descending(without).items()])
    return [
        "The adjusted Rand index between the joint labels and the labels that the same model predicts without a view "
        f"is {by_view}. A view with an index near 1 could be dropped at little loss. The model is not fitted again."
    ]


def _descending(values: dict[str, float]) -> dict[str, float]:
    return dict(sorted(values.items(), key=lambda pair: -pair[1]))


def _clusters_by_number(clusters: list[Cluster]) -> str:
    noun = "cluster" if len(clusters) == 1 else "clusters"
    return f"{noun} {listed([str(cluster.label) for cluster in clusters])}"
