"""Preprocessed: the views are preprocessed before the method sees them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from operator import ne
from typing import Any, Self, TypeAlias

import numpy as np
from sklearn.base import clone
from sklearn.utils import gen_batches

from coview.compose.wrapper import Wrapper, inner_has
from coview.core.assign import Labels
from coview.errors import InputError
from coview.preprocess.steps import FittedPreprocessing, Preprocessing, parse_steps, preprocessing_per_view, step_spec
from coview.state import ByView, Sizes, require
from coview.views import Layout, Views, among_all, as_views

StepsParameter: TypeAlias = str | Sequence[str] | Mapping[str, str]
_BLOCK_OF_ROWS = 16_384


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
    estimator_ : clusterer
        The fitted estimator. Its fitted attributes are also attributes of this object, as in model.eigenvalues_.
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

    preprocessing_: ByView[FittedPreprocessing]

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
        tags.input_tags.allow_nan = fills and self._samples_may_lack_views
        tags.input_tags.sparse &= not fills  # cells of sparse views are not filled
        return tags

    def inner_views(self, views: Views) -> Views:
        # The preprocessed views.
        changed = {}
        for name in views:
            if views.n_present(name):
                rows = self.preprocessing_[name](views.observed(name), name)
            else:
                rows = np.empty((0, self.preprocessing_[name].width(self.view_n_features_[name])), dtype=views.dtype)
            changed[name] = among_all(rows, views.present[name]) if name in views.present else rows
        columns = {name: views.columns[name] if self.preprocessing_[name].keeps_columns else None for name in views}
        scaled = {name: widths for name, widths in views.encoded.items() if self.preprocessing_[name].keeps_columns}
        unchanged = frozenset(name for name in views.empty_cells if not self.preprocessing_[name].steps)
        return Views.trusted(changed, columns, views.index, views.present, unchanged, encoded=scaled)

    def _fills_cells(self, view: str) -> bool:
        # The steps of a list belong to the views in their order; they are compared with these, and with the order of
        # the steps, after validation.
        steps: Any = self.steps
        if isinstance(steps, Mapping):
            steps = steps.get(view, "none")
        several = steps if isinstance(steps, (list, tuple)) else [steps]
        return any(_filling_step(parse_steps(each)) for each in several) or super()._fills_cells(view)

    def _check_cells(self, views: Views, steps: Mapping[str, Preprocessing]) -> None:
        """Raise an InputError if a step would see empty cells that are filled later, or not at all."""
        for name in views.empty_cells:
            own, filling = steps[name].steps, _filling_step(steps[name])
            later = super()._fills_cells(name)
            if steps[name].fills_cells or (later and not own):
                continue
            if filling is None and not later:
                as_views(views, None, partial(ne, name))  # refuses the cells
            by = repr(filling) if filling else f"the inner {type(self.estimator).__name__}"
            order = "+".join([filling or "median", *(step for step in own if step != filling)])
            raise InputError(
                f"view {name!r} has empty cells (NaN), and the step {own[0]!r} is applied before {by} fills them; fill "
                f"them first, as in {order!r}"
            )

    def _views_to_predict(self, X: Any) -> Views:
        views = super()._views_to_predict(X)
        self._check_cells(views, {name: each.preprocessing for name, each in self.preprocessing_.items()})
        return views

    def _fit(self, X: Any) -> None:
        views = self._views_to_fit(X)
        steps = preprocessing_per_view(self.steps, views.names)
        self._check_cells(views, steps)
        self._require_method("preprocesses the views of")
        for name in views.present:
            if not views.n_present(name):
                raise InputError(f"view {name!r} has no samples, because all of its rows are NaN; drop the view")
        self.preprocessing_ = {
            name: steps[name].learn(views.observed(name), name, standardised=name in views.encoded) for name in views
        }
        self.estimator_ = clone(self.estimator).fit(self.inner_views(views))
        self.labels_ = self.estimator_.labels_

    def _check_state(self, sizes: Sizes) -> None:
        super()._check_state(sizes)
        steps = preprocessing_per_view(self.steps, self.view_names_)
        fits = all(self.preprocessing_[name].preprocessing == steps[name] for name in steps)
        require(fits, "preprocessing_ differs from steps")

    def _inner_n_features(self) -> dict[str, int]:
        return {name: self.preprocessing_[name].width(width) for name, width in self.view_n_features_.items()}

    @inner_has("recluster")
    def recluster(self, X: Any) -> Self:
        """Learn the clusters again, from the scores of these samples; the latent space does not change.

        Parameters
        ----------
        X : views, as in `as_views`
            Samples among which all clusters occur.

        Returns
        -------
        self
        """
        self._recluster(X)
        return self

    def _recluster(self, X: Any) -> Labels:
        """Learn the clusters again, and return `_labels_and_ties` of these samples."""
        found: Labels = self.estimator_._recluster(self.inner_views(self._views_to_predict(X)))
        self.labels_ = self.estimator_.labels_
        return found

    def _ask(self, method: str, views: Views, **settings: Any) -> Any:
        """Work in blocks of rows, because a preprocessed copy of all rows may not fit into memory."""
        blocks = map(views.take, gen_batches(views.n_samples, _BLOCK_OF_ROWS))
        return _concatenate([super(Preprocessed, self)._ask(method, block, **settings) for block in blocks])


def _filling_step(preprocessing: Preprocessing) -> str | None:
    """Return the first step that fills empty cells, if there is one."""
    return next((step for step in preprocessing.steps if step_spec(step).kind.fills_cells), None)


def _concatenate(blocks: Sequence[Any]) -> Any:
    """Return the results of all blocks as one array or data frame, or as one array by view."""
    if isinstance(blocks[0], Mapping):
        return {name: _concatenate([block[name] for block in blocks]) for name in blocks[0]}
    if len(blocks) == 1:
        return blocks[0]
    if isinstance(blocks[0], np.ndarray):
        return np.concatenate(blocks)
    import narwhals as nw

    return nw.concat([nw.from_native(block) for block in blocks]).to_native()  # data frames of `set_output`
