"""Scaled: views are scaled before the method sees them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.preprocessing import StandardScaler, normalize

from coview.compose.around import Around, inner_has
from coview.errors import InputError
from coview.views import Matrix, Views

_SCALED_ROWS = 16_384


class Scaled(Around):
    """Scale the views before the method sees them, new samples like those of the training.

    Parameters
    ----------
    estimator : clusterer
        What is trained on the scaled views, for example TMvKSCR(6).
    how : "standard" or "l2"
        "standard" gives every column mean 0 and standard deviation 1 over the training samples; columns of sparse views
        are only divided, so that zeros stay zeros. "l2" gives every row of every view length 1, as is usual for counts
        of words.
    views : list or mapping, optional
        How to cut a stacked X into views; see `as_views`.

    Attributes
    ----------
    estimator_ : clusterer
        The trained estimator. What it has learnt can be had from this object as well, as in model.eigenvalues_.
    means_, spreads_ : dict
        What is subtracted from the columns of each view, and what they are divided by; only for "standard".
    labels_ : array of shape (n_samples,)
        Clusters of the training samples.

    Examples
    --------
    >>> import numpy as np
    >>> from coview import OPMC
    >>> height = np.array([[1.0], [1.1], [1.2], [1.8], [1.9]])
    >>> noise = 1e6 * np.array([[3.0], [3.1], [3.0], [3.1], [3.0]])
    >>> model = Scaled(OPMC(2, random_state=0)).fit({"height": height, "noise": noise})
    >>> model.spreads_["noise"].round()
    array([48990.])
    """

    def __init__(self, estimator: Any, how: str = "standard", *, views: Any = None) -> None:
        self.estimator = estimator
        self.how = how
        self.views = views

    def _fit(self, X: Any) -> None:
        views = self._views_to_fit(X)
        self._require_method("scales the views of")
        if self.how not in ("standard", "l2"):
            raise InputError(f"how={self.how!r} must be 'standard' or 'l2'")
        for learnt in ("means_", "spreads_"):
            self.__dict__.pop(learnt, None)
        if self.how == "standard":
            scalers = {name: StandardScaler(with_mean=not sp.issparse(x)).fit(x) for name, x in views.items()}
            self.means_ = {
                name: np.zeros(views[name].shape[1]) if sp.issparse(views[name]) else scaler.mean_
                for name, scaler in scalers.items()
            }
            self.spreads_ = {name: scaler.scale_ for name, scaler in scalers.items()}
        self.estimator_ = clone(self.estimator).fit(self._scaled(views))
        self.labels_ = self.estimator_.labels_

    def _scaled(self, views: Views) -> Views:
        return Views.trusted({name: self._scaled_view(name, x) for name, x in views.items()}, views.columns)

    def _scaled_view(self, name: str, x: Matrix) -> Matrix:
        if self.how == "l2":
            return normalize(x)
        if sp.issparse(x):
            if not self.means_[name].any():
                return sp.csr_array(x.multiply(1 / self.spreads_[name]), dtype=x.dtype)
            x = x.toarray()  # the training views were dense, and their means are no zeros
        return ((x - self.means_[name]) / self.spreads_[name]).astype(x.dtype, copy=False)

    @inner_has("recluster")  # type: ignore[untyped-decorator]
    def recluster(self, X: Any) -> Self:
        """Find the clusters again, among the scores of these samples; the latent space stays as it is.

        Parameters
        ----------
        X : views, as in `as_views`
        """
        self.estimator_.recluster(self._scaled(self._views_to_predict(X)))
        self.labels_ = self.estimator_.labels_
        return self

    def _ask(self, method: str, views: Views, settings: Mapping[str, Any]) -> Any:
        """In blocks: a scaled copy of everything may not fit into memory."""
        starts = range(0, views.n_samples, _SCALED_ROWS)
        blocks = (views.take(slice(start, start + _SCALED_ROWS)) for start in starts)
        return _joined([super(Scaled, self)._ask(method, self._scaled(block), settings) for block in blocks])


def _joined(blocks: Sequence[Any]) -> Any:
    """Answers for blocks of rows as one, whether they come as arrays or by view."""
    if isinstance(blocks[0], Mapping):
        return {name: _joined([block[name] for block in blocks]) for name in blocks[0]}
    return blocks[0] if len(blocks) == 1 else np.concatenate(blocks)
