"""The measures of the selected model on all samples, and whether they are far below those of the search."""

from __future__ import annotations

import numpy as np

from coview.compose import Consensus
from coview.core.agreement import mean_agreements, size_entropy
from coview.tune.record import EvaluatedModel, FinalMeasures


def final_measures(model: Consensus) -> FinalMeasures:
    """Return the measures of a consensus on its training samples."""
    agreement = None
    if len(model.estimators_) > 1:
        agreement = float(np.mean(mean_agreements(model.model_labels())))
    return FinalMeasures(len(model.labels_), agreement, size_entropy(model.labels_, model.n_clusters_))


def fall_in_words(final: FinalMeasures, found: EvaluatedModel) -> str | None:
    """Return which measures on all samples are far below those of the search, or None.

    On all samples, a few outliers can dominate a component that they did not dominate among the samples of the search.
    """
    words = {"model_agreement": "agreement between models", "size_entropy": "size entropy"}
    falls = [f"{words[name]} {now:.2f} instead of {before:.2f}" for name, (before, now) in final.falls(found).items()]
    if not falls:
        return None
    return (
        f"on all {final.n_samples} samples the clusters are worse than on the {found.n_samples} of the search: "
        f"{', '.join(falls)}; check for outliers"
    )
