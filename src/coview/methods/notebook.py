"""Fitted models in notebooks: what was learnt, as a small table below the diagram of scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np

from coview.html import first_few, html_table

_LISTED = 20


def fitted_facts(model: Any) -> str:
    """Return clusters, views and the selection of a fitted model as an HTML table; "" before a fit."""
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
    return html_table(("fitted", ""), facts)
