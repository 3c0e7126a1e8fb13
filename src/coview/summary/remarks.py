"""Notes on a run: missing clusters, outliers, and which numbers are those of some samples only."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from coview.base.text import decimals
from coview.summary.clustering import Clustering

COMPONENTS = 10  # of points


def remarks(found: Clustering) -> Iterator[str]:
    """Yield what a reader needs to know besides the numbers."""
    learnt, n, n_drawn = found.model.learnt, len(found.labels), len(found.drawn)
    # `Coview` selects its number, and may be asked for several.
    requested = learnt.get("n_clusters_") or getattr(found.method, "n_clusters", None)
    if requested is not None and found.n_clusters < requested:
        words = f"{requested} clusters were requested" if found.of_training else f"The model has {requested} clusters"
        yield f"{words}, and {found.n_clusters} have members."
    dominant = sorted(learnt["dominant_rows_"]) if learnt.get("regularization_") else []
    if dominant:
        same_rows = found.of_training and found.model.method_labels is None  # not for FixedSize
        named = f": {', '.join(found.samples[row] for row in dominant[:10])}" if same_rows else ""
        yield (
            f"The degrees are regularised, because {len(dominant)} training samples, possibly outliers, dominate a "
            f"component otherwise{named}."
        )
    if found.scores is None:
        yield f"{type(found.method).__name__} has no score space, so there are no margins and no silhouettes."
    elif found.scores.shape[1] > COMPONENTS:
        yield f"Points have the first {COMPONENTS} of {found.scores.shape[1]} components."
    if n_drawn < n:
        partly = found.view_labels and len(found.labelled) < n
        parts = "Points, silhouettes and the agreement of the views" if partly else "Points and silhouettes"
        yield (
            f"{parts} are those of {n_drawn:,} of the {n:,} samples, drawn at random with some from every cluster; all "
            "other numbers are of all samples."
        )
    if not found.views.complete:
        yield from _on_missing(found)


def _on_missing(found: Clustering) -> Iterator[str]:
    """Yield how many samples lack views, and how clearly they are assigned in comparison with the others."""
    views, complete, margins = found.views, found.views.has_all(), found.separation.margins
    lacking = ", ".join(f"{name} {views.n_samples - views.n_present(name):,}" for name in views.present)
    yield f"{(~complete).sum():,} of {views.n_samples:,} samples lack views ({lacking})."
    if margins is not None and complete.any():
        those, others = (decimals(float(np.median(margins[rows]))) for rows in (~complete, complete))
        yield f"Their median margin is {those}, that of samples with all views is {others}."
