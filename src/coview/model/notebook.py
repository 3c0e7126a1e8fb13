"""Fitted models in notebooks: what was learnt, as a small table and a map below the diagram of scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np

from coview.base.html import first_few, html_map, html_table
from coview.base.text import count
from coview.core.drawn import draw_by_cluster
from coview.core.plane import histogram_plane, principal_plane, scaled
from coview.data.rows import l2_normalize

_LISTED = 20
_DRAWN = 1000


def fitted_facts(model: Any) -> str:
    """Return clusters, views, the selection and a map of a fitted model in HTML; "" before a fit."""
    learnt = vars(model)
    if "view_names_" not in learnt:
        return ""
    facts = []
    if "labels_" in learnt:  # FixedSize.train labels no samples
        sizes = np.unique(learnt["labels_"], return_counts=True)[1].tolist()
        facts += [("samples", f"{sum(sizes):,}"), ("clusters", str(len(sizes))), ("sizes", first_few(sizes, _LISTED))]
    if "train_rows_" in learnt:
        facts.append(("training samples", f"{len(learnt['train_rows_']):,}"))
    widths = [f"{name}: {width:,}" for name, width in learnt["view_n_features_"].items()]
    facts.append(("columns by view", first_few(widths, _LISTED)))
    if "best_view_" in learnt:
        facts.append(("best view", learnt["best_view_"]))
    if "reason_" in learnt:
        facts.append(("selection", learnt["reason_"]))
    names = sorted(name for name in learnt if name.endswith("_") and not name.startswith("_") and name != "model_")
    facts.append(("attributes", ", ".join(names)))
    return html_table(("fitted", ""), facts) + _small_map(learnt["model_"])


def _small_map(model: Any) -> str:
    """Return the principal plane of some of the scores that the model keeps; a t-SNE would take a second."""
    scores, labels = model.kept_scores, model.trained_labels
    if scores is None or scores.ndim != 2:
        return ""
    rows = draw_by_cluster(labels, _DRAWN)
    if scores.shape[1] == 1:
        what, positions = "Scores, with samples of similar score stacked", histogram_plane(scores[rows, 0])
    else:
        what = "First two principal components of the directions of the scores"
        positions = scaled(principal_plane(l2_normalize(scores[rows])))
    groups = [(int(label), positions[labels[rows] == label].tolist()) for label in np.unique(labels[rows])]
    some = "" if len(rows) == len(labels) else f"{count(len(rows))} of "
    more = " model.plot() draws their t-SNE." if scores.shape[1] > 1 else ""
    return html_map(groups, f"{what}; {some}{count(len(labels))} training samples.{more}")
