"""The validity in words: one statement for each level, and the measures behind it."""

from __future__ import annotations

from coview.formats import decimals, decimals_apart
from coview.validity.values import Validity

STATEMENTS = {
    "none": "These data show no clusters that a second half of the samples would confirm.",
    "weak": "The support for these clusters is weak.",
    "moderate": "The support for these clusters is moderate.",
    "strong": "The support for these clusters is strong.",
}


UNRELATED_VIEWS = (
    "The clusters of the views are unrelated; check that a row, or an id, is the same sample in all views, or cluster "
    "the views separately."
)


def why_one_cluster(validity: Validity) -> str:
    """Return why one cluster is selected although several were evaluated, without a full stop."""
    return "No common clusters found" if validity.is_stable else "No cluster structure found"


def statement(validity: Validity) -> str:
    """Return how well the clusters are supported."""
    if validity.only_stable_view is not None:
        return (
            f"The support for these clusters is weak: only the view {validity.only_stable_view!r} has stable clusters, "
            "and no other view agrees with it."
        )
    unrelated = validity.is_stable and not validity.views_agree
    return UNRELATED_VIEWS if unrelated else STATEMENTS[validity.level]


def stability_in_words(validity: Validity) -> str:
    """Return the stability and its reference in a sentence."""
    stability, reference = decimals(validity.stability), "; the stability of data without clusters is not known"
    if validity.reference_maximum is not None:  # with which the stability is compared
        stability, maximum = decimals_apart(validity.stability, validity.reference_maximum)
        reference = (
            f", compared with {decimals(validity.reference_stability)} (at most {maximum}) on samples with the same "
            "covariance and without clusters"
        )
    return (
        f"Two models, fitted on halves of {validity.n_samples:,} samples, agree with an adjusted Rand index of "
        f"{stability}{reference}."
    )


def agreement_in_words(validity: Validity) -> str | None:
    """Return the agreement of single views in a sentence; None for a single view."""
    if validity.views_agreement is None:
        return None
    comparison = "some views agree more than" if validity.views_agree else "no two views agree more than"
    return (
        "The mean adjusted Rand index between two views, each clustered alone, is "
        f"{decimals(validity.views_agreement)}; {comparison} with rows that are paired at random."
    )


def silhouette_in_words(validity: Validity) -> str | None:
    """Return the silhouette in the input in a sentence."""
    if validity.silhouette is None:
        return None
    return f"The mean silhouette in the input is {decimals(validity.silhouette)}, on a scale from −1 to 1."


def validity_in_words(validity: Validity) -> list[str]:
    """Return the statement and the measures, one sentence each."""
    measures = (stability_in_words(validity), agreement_in_words(validity), silhouette_in_words(validity))
    return [statement(validity), *(sentence for sentence in measures if sentence)]
