"""The evidence in words: one statement for each level, and the measures behind it."""

from __future__ import annotations

from coview.evidence.values import Evidence
from coview.formats import decimals

STATEMENTS = {
    "none": "These data show no clusters that a second half of the samples would confirm.",
    "weak": "The evidence for these clusters is weak.",
    "moderate": "The evidence for these clusters is moderate.",
    "strong": "The evidence for these clusters is strong.",
}


def statement(evidence: Evidence) -> str:
    """Return what the evidence says about the clusters."""
    return STATEMENTS[evidence.level]


def stability_in_words(evidence: Evidence) -> str:
    """Return the stability and its reference in a sentence."""
    reference = (
        ""
        if evidence.reference_stability is None
        else f", compared with {decimals(evidence.reference_stability)} (at most "
        f"{decimals(evidence.reference_maximum)}) on normal or uniform samples with the same covariance, which have no "
        "clusters"
    )
    return (
        f"Two models, fitted on halves of {evidence.n_samples:,} samples, agree with an adjusted Rand index of "
        f"{decimals(evidence.stability)}{reference}."
    )


def agreement_in_words(evidence: Evidence) -> str | None:
    """Return the agreement of single views in a sentence; None for a single view."""
    if evidence.agreement is None:
        return None
    comparison = "some views agree more than" if evidence.views_agree else "no two views agree more than"
    return (
        f"The mean adjusted Rand index between two views, each clustered alone, is {decimals(evidence.agreement)}; "
        f"{comparison} with rows that are paired at random."
    )


def silhouette_in_words(evidence: Evidence) -> str | None:
    """Return the silhouette in the input in a sentence."""
    if evidence.silhouette is None:
        return None
    return f"The mean silhouette in the input is {decimals(evidence.silhouette)}, on a scale from −1 to 1."


def evidence_in_words(evidence: Evidence) -> list[str]:
    """Return the statement and the measures, one sentence each."""
    measures = (stability_in_words(evidence), agreement_in_words(evidence), silhouette_in_words(evidence))
    return [statement(evidence), *(sentence for sentence in measures if sentence)]
