"""Preprocessed: the views are preprocessed before the method sees them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import ne
from typing import Any, TypeAlias

import numpy as np

from coview.base.progress import Progress
from coview.compose.wrapper import Wrapper, learn
from coview.data.as_views import Layout, require_full_cells
from coview.data.view import View
from coview.data.views import Views
from coview.errors import InputError, Note
from coview.model.model import Model, Stage
from coview.preprocess.steps import FittedPreprocessing, Preprocessing, parse_steps, preprocessing_per_view, step_spec

StepsParameter: TypeAlias = str | Sequence[str] | Mapping[str, str]


class Preprocessed(Wrapper):
    """Preprocess the views before the method sees them, new samples like the training samples.

    Parameters
    ----------
    estimator : clusterer
        The method that is fitted on the preprocessed views, such as TMvKSCR(6).
    steps : name, list of names in the order of the views, or mapping from view name to name
        Views that a mapping does not list are not changed. Steps joined by "+" are applied in that order:

        - "standard": every column has mean 0 and standard deviation 1 over the training samples; columns of sparse
          views are divided by the standard deviation only, so that zeros stay zeros;
        - "l2": rows are L2-normalised;
        - "tfidf": columns of counts are weighted by inverse document frequency; "tfidf+l2" is usual for words;
        - "log1p": log(1 + x) of every value;
        - "total": every row of counts has the median total of the training samples; "total+log1p+pca50" is usual for
          single-cell data;
        - "block": all values are divided by one number, so that the training rows have a mean squared norm of 1; views
          of different width then have the same weight when they are stacked (block scaling);
        - "pcaN", such as "pca50": at most N principal components, or for sparse views those of the truncated singular
          value decomposition, without centring;
        - "none": no change.
    views : list or mapping, optional
        How a stacked X is split into views; see `as_views`.

    Attributes
    ----------
    model_ : Model
        What is learnt. The attributes of the method are also attributes of this object, as in model.eigenvalues_.
    preprocessing_ : dict
        The fitted preprocessing of each view, by view name: a function of rows of that view.
    labels_ : array of shape (n_samples,)
        Clusters of the training samples.

    See Also
    --------
    Coview : Has its own preprocessing.

    Examples
    --------
    >>> import numpy as np
    >>> from coview import OPMC
    >>> height = np.array([[1.0], [1.1], [1.2], [1.8], [1.9]])
    >>> words = np.array([[3.0, 0.0], [6.0, 0.0], [1.0, 0.0], [0.0, 2.0], [0.0, 9.0]])
    >>> model = Preprocessed(OPMC(2, random_state=0), {"words": "tfidf+l2"}).fit({"height": height, "words": words})
    >>> model.preprocessing_["words"](words[:1])
    array([[1., 0.]])
    """

    preprocessing_: dict[str, FittedPreprocessing]

    def __init__(self, estimator: Any, steps: StepsParameter = "standard", *, views: Layout = None) -> None:
        self.estimator = estimator
        self.steps = steps
        self.views = views

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        steps = self.steps if isinstance(self.steps, (list, tuple)) else [self.steps]
        try:
            fills = bool(steps) and all(parse_steps(each).fills_cells for each in steps)
        except InputError:  # of unknown steps, or steps by view name: cells of views that are not named are refused
            fills = False
        tags.input_tags.allow_nan = fills and self.may_lack_views
        tags.input_tags.sparse &= not fills  # cells of sparse views are not filled
        return tags

    def fills_cells(self, view: str) -> bool:
        # The steps of a list belong to the views in their order; they are compared with these, and with the order of
        # the steps, after validation.
        steps: Any = self.steps
        if isinstance(steps, Mapping):
            steps = steps.get(view, "none")
        several = steps if isinstance(steps, (list, tuple)) else [steps]
        return any(_filling_step(parse_steps(each)) for each in several) or super().fills_cells(view)

    def check_views(self, views: Views) -> tuple[Note, ...]:
        for name, steps in preprocessing_per_view(self.steps, views.names).items():
            if name in views.empty_cells and not steps.fills_cells:
                later = super().fills_cells(name)
                if not (later or _filling_step(steps)):
                    require_full_cells(views, partial(ne, name))  # refuses the cells
                if steps.steps:
                    raise _cells_before_filling(name, steps, f"the inner {type(self.estimator).__name__}")
        self.require_method("preprocesses the views of", views.names)
        for name in views.present:
            if not views.n_present(name):
                raise InputError(f"view {name!r} has no samples, because all of its rows are NaN; drop the view")
        return super().check_views(views)

    def fit_model(self, views: Views, report: Progress) -> Model:
        steps = preprocessing_per_view(self.steps, views.names)
        fitted = {
            name: steps[name].learn(views.observed(name), name, standardised=name in views.encoded) for name in views
        }
        stage = Preprocess(fitted)
        found = learn(self.estimator, stage(views), report).after(stage)
        return replace(found, learnt={**found.learnt, "preprocessing_": fitted})


@dataclass(frozen=True)
class Preprocess(Stage):
    """The preprocessing of each view."""

    by_view: Mapping[str, FittedPreprocessing]

    def __call__(self, views: Views) -> Views:
        dtype = views.dtype

        def preprocessed(name: str, view: View) -> View:
            fitted = self.by_view[name]
            if view.has_empty_cells and fitted.steps and not fitted.preprocessing.fills_cells:
                raise _cells_before_filling(name, fitted.preprocessing, "a later step")
            if view.n_present:
                rows = fitted(view.observed, name)
            else:
                rows = np.empty((0, fitted.width(view.matrix.shape[1])), dtype=dtype)
            found = view.with_observed(rows)
            if fitted.keeps_columns:
                found = replace(found, columns=view.columns, widths=view.widths)
            return replace(found, has_empty_cells=view.has_empty_cells and not fitted.steps)

        return views.map(preprocessed)

    def words(self, view: str) -> list[str]:
        return [self.by_view[view].preprocessing.description] if self.by_view[view].steps else []


def _filling_step(preprocessing: Preprocessing) -> str | None:
    """Return the first step that fills empty cells, if there is one."""
    return next((step for step in preprocessing.steps if step_spec(step).kind.fills_cells), None)


def _cells_before_filling(view: str, preprocessing: Preprocessing, later: str) -> InputError:
    """Return the error that a step sees empty cells, which another step, or an estimator inside, fills later."""
    first, filling = preprocessing.steps[0], _filling_step(preprocessing)
    order = "+".join([filling or "median", *(step for step in preprocessing.steps if step != filling)])
    return InputError(
        f"view {view!r} has empty cells (NaN), and the step {first!r} is applied before "
        f"{repr(filling) if filling else later} fills them; fill them first, as in {order!r}"
    )
