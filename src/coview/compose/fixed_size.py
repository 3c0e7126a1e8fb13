"""FixedSize: a model of some samples, which labels all of them."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Annotated, Any, Self

import numpy as np
from sklearn.base import clone

from coview.compose.wrapper import Wrapper, setting
from coview.core.agreement import mean_agreements
from coview.core.assign import Labels
from coview.core.select import Rows, Source, as_selector, draw_rows
from coview.errors import InputError, InputTypeError
from coview.state import OPTIONAL, FloatArray, IntegerArray, Sizes, require
from coview.views import Array, Views

_MORE_ROWS = 10_000


class FixedSize(Wrapper):
    """Train on some of the samples, and label all of them by the method's own rule for new samples.

    A kernel method learns its latent space from the training samples, and its clusters, if these are fewer than 10,000,
    from the scores of up to 10,000 samples: scores cost little, and the clusters depend less on which samples were
    chosen. A fit costs what the method costs for n_train samples, and then time and memory linear in all of them:
    labels are made in blocks. Views may be memory-mapped files: they are never read whole.

    Parameters
    ----------
    estimator : clusterer with predict
        What is trained, for example TMvKSCR(6).
    n_train : int, float or "auto"
        Number of training samples, or their share. "auto" is 2000, or 50 for each cluster if that is more.
    select : selector or name
        How training samples are chosen: "uniform" (at random), "entropy" (far apart), "kmeans" (near k-means centres),
        or a value such as Stratified(days). See `coview.core.select`.
    n_repeats : int
        Train on so many choices of samples and keep the model whose labels agree best with those of the others (on at
        most 10,000 samples): a choice can be unlucky.
    views : list or mapping, optional
        How to cut a stacked X into views; see `as_views`.
    random_state : int, Generator, RandomState or None
        Source of randomness of the choice; the estimator has its own.

    Attributes
    ----------
    estimator_ : clusterer
        The trained estimator. What it has learnt can be had from this object as well, as in model.eigenvalues_.
    train_rows_ : array of shape (n_train,)
        The samples that it was trained on, in increasing order.
    labels_ : array of shape (n_samples,)
        Clusters of all samples.
    agreements_ : array of shape (n_repeats,)
        Mean adjusted Rand index of each repeat's labels with those of the others; 1 for a single repeat.

    Examples
    --------
    >>> import numpy as np
    >>> from coview import TMvKSCR
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.integers(3, size=5000)
    >>> text, image = (rng.normal(size=(3, d))[truth] * 4 + rng.normal(size=(5000, d)) for d in (5, 8))
    >>> model = FixedSize(TMvKSCR(3, random_state=0), n_train=300, random_state=0).fit([text, image])
    >>> model.labels_.shape, model.train_rows_.shape, model.latent_.shape
    ((5000,), (300,), (300, 2))
    """

    labels_: Annotated[Labels, IntegerArray("samples", least=0, below="samples"), OPTIONAL]
    train_rows_: Annotated[Rows, IntegerArray("train", least=0, increasing=True)]
    agreements_: Annotated[Array, FloatArray("repeats")]

    def __init__(
        self,
        estimator: Any,
        *,
        n_train: Any = "auto",
        select: Any = "uniform",
        n_repeats: int = 1,
        views: Any = None,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.n_train = n_train
        self.select = select
        self.n_repeats = n_repeats
        self.views = views
        self.random_state = random_state

    def _fit(self, X: Any) -> None:
        if _hands_out_rows(X) and not isinstance(X, Views):
            raise InputTypeError(
                f"X is a {type(X).__name__}, whose rows may not fit into memory; train() learns from it without "
                "labelling all rows"
            )
        views = self._views_to_fit(X)
        self._train(views)
        self.labels_ = self.estimator_.predict(views)

    def train(self, source: Source) -> Self:
        """Train on rows of any source, without labelling the others: then there is no labels_, use predict.

        Parameters
        ----------
        source : object with n_samples and take(rows)
            `take` returns the chosen rows as Views; increasing row numbers are asked for.
        """
        if not _hands_out_rows(source):
            raise InputTypeError(
                f"source is a {type(source).__name__}; give Views, a ViewsReader or DaskViews, or call fit with tables"
            )
        before = self.__dict__.copy()
        try:
            self.__dict__.pop("labels_", None)
            self._views_to_fit(source.take(np.arange(1)))
            self._train(source)
        except BaseException:
            self.__dict__ = before
            raise
        return self

    def _train(self, source: Source) -> None:
        self._check_settings()
        count, rng, selector = self._count(source.n_samples), self._generator(), as_selector(self.select)
        trained = []
        for _ in range(self.n_repeats):
            rows = selector.rows(source, count, rng, self._kernels())
            trained.append((rows, clone(self.estimator).fit(source.take(rows))))
        more = hasattr(self.estimator, "recluster") and count < min(source.n_samples, _MORE_ROWS)
        some = source.take(draw_rows(source.n_samples, _MORE_ROWS, rng)) if more or len(trained) > 1 else None
        if more:
            for _, estimator in trained:
                estimator.recluster(some)
        self.agreements_ = np.ones(1)
        if len(trained) > 1:
            self.agreements_ = mean_agreements([estimator.predict(some) for _, estimator in trained])
        self.train_rows_, self.estimator_ = trained[int(self.agreements_.argmax())]

    def _check_state(self, sizes: Sizes) -> None:
        super()._check_state(sizes)
        n_labels = len(vars(self.estimator_).get("labels_", self.train_rows_))
        require(n_labels == len(self.train_rows_), f"expected an estimator of {len(self.train_rows_)} training samples")

    def _check_settings(self) -> None:
        self._require_method("trains")
        if not hasattr(self.estimator, "predict"):
            raise InputError(
                f"{type(self.estimator).__name__} cannot label new samples, and FixedSize needs a method that can, "
                "such as TMvKSCR, MvKSC, OPMC or MVSCBP"
            )
        if not (isinstance(self.n_repeats, Integral) and self.n_repeats >= 1):
            raise InputError(f"n_repeats={self.n_repeats!r} must be a whole number of at least 1")

    def _count(self, n: int) -> int:
        wanted, n_clusters = self.n_train, setting(self.estimator, "n_clusters", 1)
        n_clusters = int(n_clusters) if isinstance(n_clusters, Integral) else 1  # the method itself refuses others
        if isinstance(wanted, str) and wanted == "auto":
            return min(n, max(2000, 50 * n_clusters))
        whole = isinstance(wanted, Integral) and not isinstance(wanted, bool)
        share = isinstance(wanted, Real) and not isinstance(wanted, Integral) and 0 < float(wanted) <= 1
        count = int(wanted) if whole else round(float(wanted) * n) if share else 0
        least = min(max(2, n_clusters), n)
        if not least <= count <= n:
            raise InputError(
                f"n_train={wanted!r} must be 'auto', or a number of samples, or a share of them, that comes to at "
                f"least {least} (n_clusters) and at most n_samples={n}"
            )
        return count


def _hands_out_rows(source: Any) -> bool:
    """Whether this is a `Source`; arrays have a take of their own."""
    return hasattr(source, "take") and hasattr(source, "n_samples")
