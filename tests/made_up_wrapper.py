"""A made-up wrapper in one file, as a contributor would write it: each view is multiplied by a learnt number.

`register` has the one line for WRAPPERS, without which models of the wrapper cannot be saved.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from coview.compose.wrapper import Wrapper, learn
from coview.data.rows import largest_value
from coview.model.model import Stage
from coview.registry import WRAPPERS, Entry


class Scaled(Wrapper):
    """Multiply each view by a number, so that the largest value of the training samples has a size of 1.

    Parameters
    ----------
    estimator : clusterer
        The method that is fitted on the multiplied views.
    views : list or mapping, optional
        How a stacked X is split into views.

    Attributes
    ----------
    factors_ : dict
        The number of each view.
    """

    def __init__(self, estimator, *, views=None):
        self.estimator = estimator
        self.views = views

    def check_views(self, views):
        self.require_method("multiplies the views of", views.names)
        return super().check_views(views)

    def fit_model(self, views, report):
        factors = {name: 1 / (largest_value(view.observed) or 1.0) for name, view in views.tables.items()}
        stage = Multiply(factors)
        model = learn(self.estimator, stage(views), report).after(stage)
        return replace(model, learnt={**model.learnt, "factors_": factors})


@dataclass(frozen=True)
class Multiply(Stage):
    """Each view times its number."""

    factors: Mapping[str, float]

    def __call__(self, views):
        return views.map(lambda name, view: replace(view, matrix=view.matrix * self.factors[name]))

    def words(self, view):
        return [f"multiplied by {self.factors[view]:.3g}"]


def register():
    WRAPPERS["scaled"] = Entry("tests.made_up_wrapper:Scaled", "multiplies each view by a number")
