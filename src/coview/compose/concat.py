"""Concat: early fusion, the columns of all views in one table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from coview.base.progress import Progress
from coview.compose.wrapper import Wrapper, learn
from coview.data.as_views import Layout, stacked
from coview.data.view import View
from coview.data.views import Views
from coview.model.model import Model, Stage

_TABLE = "all"


class Concat(Wrapper):
    """Cluster one table that has the columns of all views (early fusion).

    Columns are not rescaled: preprocess the views first if their units differ.

    Parameters
    ----------
    estimator : clusterer
        The estimator of the stacked table, such as KSC(3) or a clusterer of scikit-learn. The name of the table is
        "all".
    views : list or mapping, optional
        How a stacked X is split into views; see `as_views`. Only the validation of new samples depends on it.

    Attributes
    ----------
    model_ : Model
        What is learnt.
    labels_ : array of shape (n_samples,)
        Clusters of the training samples.

    See Also
    --------
    PerView : One model for each view.
    Preprocessed : Scale the views before they are stacked.

    Examples
    --------
    >>> import numpy as np
    >>> from coview import KSC
    >>> height = np.array([[1.0], [1.1], [1.2], [1.8], [1.9]])
    >>> weight = np.array([[20.0], [21.0], [25.0], [80.0], [81.0]])
    >>> Concat(KSC(2)).fit([height, weight]).labels_
    array([0, 0, 0, 1, 1])
    """

    kept_abilities = frozenset({"predict", "transform", "fit_transform", "predict_proba", "score_samples"})
    may_lack_views = False

    def __init__(self, estimator: Any, *, views: Layout = None) -> None:
        self.estimator = estimator
        self.views = views

    def fit_model(self, views: Views, report: Progress) -> Model:
        stage = Stack()
        return learn(self.estimator, stage(views), report).after(stage)


@dataclass(frozen=True)
class Stack(Stage):
    """The columns of all views become one table."""

    joins_views = True

    def __call__(self, views: Views) -> Views:
        # If all views are encoded, so is the table.
        all_widths = [view.widths for view in views.tables.values()]
        widths = tuple(width for each in all_widths for width in each) if all(all_widths) else ()
        table = View(stacked(views), widths=widths, has_empty_cells=len(views.empty_cells) > 0)
        return Views.of({_TABLE: table}, views.index)

    def inner_name(self, view: str) -> str:
        return _TABLE
