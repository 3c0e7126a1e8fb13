"""Preprocessed: views are prepared before the method sees them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import clone

from coview.compose.wrapper import Wrapper, inner_has
from coview.preprocess.steps import FittedPreprocessing, preprocessing_per_view
from coview.state import ByView, Sizes, require
from coview.views import Views

_SCALED_ROWS = 16_384


class Preprocessed(Wrapper):
    """Prepare the views before the method sees them, new samples like those of the training.

    Parameters
    ----------
    estimator : clusterer
        What is trained on the prepared views, for example TMvKSCR(6).
    steps : name, list of names in the order of the views, or mapping from view name to name
        Views that a mapping does not list stay as they are. Names can be joined by "+", for one after another:

        - "standard": every column has mean 0 and standard deviation 1 over the training samples; columns of sparse
          views are only divided, so that zeros stay zeros;
        - "l2": every row has length 1;
        - "tfidf": columns of counts are weighted by how few training samples have them; "tfidf+l2" is usual for words;
        - "log1p": log(1 + x) of every value;
        - "total": every row of counts has the median sum of the training samples; "total+log1p+pca50" is usual for
          single cells;
        - "pcaN", such as "pca50": at most so many principal components; of sparse views those of the truncated singular
          value decomposition, which does not centre them;
        - "none": as it is.
    views : list or mapping, optional
        How to cut a stacked X into views; see `as_views`.

    Attributes
    ----------
    estimator_ : clusterer
        The trained estimator. What it has learnt can be had from this object as well, as in model.eigenvalues_.
    preprocessing_ : dict
        How each view is prepared, with what was learnt: call one with rows of its view to get them prepared.
    labels_ : array of shape (n_samples,)
        Clusters of the training samples.

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

    def __init__(self, estimator: Any, steps: Any = "standard", *, views: Any = None) -> None:
        self.estimator = estimator
        self.steps = steps
        self.views = views

    def _fit(self, X: Any) -> None:
        views = self._views_to_fit(X)
        self._require_method("prepares the views of")
        chosen = preprocessing_per_view(self.steps, views.names)
        self.preprocessing_ = {name: chosen[name].learn(x, name) for name, x in views.items()}
        self.estimator_ = clone(self.estimator).fit(self._prepared(views))
        self.labels_ = self.estimator_.labels_

    def _check_state(self, sizes: Sizes) -> None:
        super()._check_state(sizes)
        steps = preprocessing_per_view(self.steps, self.view_names_)
        fits = all(self.preprocessing_[name].preprocessing == steps[name] for name in steps)
        require(fits, f"preprocessing_ differs from steps={self.steps!r}")

    def _inner_n_features(self) -> dict[str, int]:
        return {name: self.preprocessing_[name].width(width) for name, width in self.view_n_features_.items()}

    def _prepared(self, views: Views) -> Views:
        prepared = {name: self.preprocessing_[name](x, name) for name, x in views.items()}
        columns = {name: views.columns[name] if self.preprocessing_[name].keeps_columns else None for name in views}
        return Views.trusted(prepared, columns)

    @inner_has("recluster")  # type: ignore[untyped-decorator]
    def recluster(self, X: Any) -> Self:
        """Find the clusters again, among the scores of these samples; the latent space stays as it is.

        Parameters
        ----------
        X : views, as in `as_views`
        """
        self.estimator_.recluster(self._prepared(self._views_to_predict(X)))
        self.labels_ = self.estimator_.labels_
        return self

    def _ask(self, method: str, views: Views, settings: Mapping[str, Any]) -> Any:
        """In blocks: a prepared copy of everything may not fit into memory."""
        starts = range(0, views.n_samples, _SCALED_ROWS)
        blocks = (views.take(slice(start, start + _SCALED_ROWS)) for start in starts)
        return _joined([super(Preprocessed, self)._ask(method, self._prepared(block), settings) for block in blocks])


def _joined(blocks: Sequence[Any]) -> Any:
    """Answers for blocks of rows as one, whether they come as arrays or by view."""
    if isinstance(blocks[0], Mapping):
        return {name: _joined([block[name] for block in blocks]) for name in blocks[0]}
    return blocks[0] if len(blocks) == 1 else np.concatenate(blocks)
