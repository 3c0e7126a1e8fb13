"""Wrappers around any method: scaled views, views as one table, one model for each view, a model of some samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.preprocessing import StandardScaler, normalize
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if

from coview.core.assign import Labels
from coview.core.select import Source, as_selector, draw_rows
from coview.errors import InputError, InputTypeError
from coview.kernels import RBF, Kernel, Precomputed, by_view_name, kernel_per_view
from coview.methods.base import MultiViewClusterer
from coview.views import Array, Matrix, Views, stack_views

_MORE_ROWS = 10_000
_SCALED_ROWS = 16_384


def _inner_has(method: str) -> Any:
    """Offer a method only when the wrapped estimators have it."""

    def check(wrapper: Any) -> bool:
        inner = wrapper.estimator
        return all(hasattr(e, method) for e in (inner.values() if isinstance(inner, Mapping) else [inner]))

    return available_if(check)


class Concat(MultiViewClusterer):
    """Cluster the columns of all views side by side, as one table (early fusion).

    Columns count as they are: scale the views first when their units differ.

    Parameters
    ----------
    estimator : clusterer
        What clusters the table, for example KSC(3); clusterers of scikit-learn serve as well.
    views : list or mapping, optional
        How to cut a stacked X into views; see `as_views`. It changes nothing but the checks of new samples.

    Attributes
    ----------
    estimator_ : clusterer
        The fitted estimator.
    labels_ : array of shape (n_samples,)
        Clusters of the training samples.

    Examples
    --------
    >>> import numpy as np
    >>> from coview import KSC
    >>> height = np.array([[1.0], [1.1], [1.2], [1.8], [1.9]])
    >>> weight = np.array([[20.0], [21.0], [25.0], [80.0], [81.0]])
    >>> Concat(KSC(2)).fit([height, weight]).labels_
    array([0, 0, 0, 1, 1])
    """

    def __init__(self, estimator: Any, *, views: Any = None) -> None:
        self.estimator = estimator
        self.views = views

    def _check_n_clusters(self, views: Views) -> None:
        """The wrapped estimator does."""

    def _fit(self, X: Any) -> None:
        _require_clusterer(self.estimator)
        views = self._views_to_fit(X)
        self.estimator_ = clone(self.estimator)
        self.labels_ = self.estimator_.fit_predict(_side_by_side(views))

    @_inner_has("predict")  # type: ignore[untyped-decorator]
    def predict(self, X: Any) -> Labels:
        """Return the cluster of each sample.

        Parameters
        ----------
        X : views, as in `as_views`
        """
        views = self._views_to_predict(X)
        labels: Labels = self.estimator_.predict(_side_by_side(views))
        return labels


class PerView(MultiViewClusterer):
    """Cluster each view by itself, and choose the view whose clusters the others confirm best.

    No labels are needed: a view's merit is the mean adjusted Rand index between its clusters and those of every other
    view (0 if negative), times the balance of its clusters (entropy of their sizes over that of equal ones), since a
    split into one huge cluster and some crumbs tells little. Two views confirm each other equally, so balance decides.
    `view_labels_` has every view's clusters, for those who choose otherwise.

    Parameters
    ----------
    estimator : clusterer, or mapping from view name to clusterer
        What clusters a view, for example KSC(3); clusterers of scikit-learn serve as well.
    views : list or mapping, optional
        How to cut a stacked X into views; see `as_views`.

    Attributes
    ----------
    estimators_ : dict
        The fitted estimator of each view.
    view_labels_ : dict
        Clusters of the training samples by each view.
    merits_ : dict
        The merit of each view.
    best_view_ : str
        The view with the highest merit.
    labels_ : array of shape (n_samples,)
        Clusters of the training samples by the best view.

    Examples
    --------
    >>> import numpy as np
    >>> from coview import KSC
    >>> height = np.array([[1.0], [1.1], [1.2], [1.8], [1.9]])
    >>> weight = np.array([[20.0], [21.0], [25.0], [80.0], [81.0]])
    >>> noise = np.array([[3.0], [9.0], [3.0], [9.0], [3.0]])
    >>> model = PerView(KSC(2)).fit({"noise": noise, "height": height, "weight": weight})
    >>> model.best_view_, model.labels_
    ('height', array([0, 0, 0, 1, 1]))
    """

    def __init__(self, estimator: Any, *, views: Any = None) -> None:
        self.estimator = estimator
        self.views = views

    def _check_n_clusters(self, views: Views) -> None:
        """The wrapped estimators do."""

    def _fit(self, X: Any) -> None:
        views = self._views_to_fit(X)
        estimators = dict.fromkeys(views, self.estimator)
        if isinstance(self.estimator, Mapping):
            estimators = by_view_name("estimator", self.estimator, views.names)
        for estimator in estimators.values():
            _require_clusterer(estimator)
        self.estimators_ = {name: clone(estimators[name]) for name in views}
        self.view_labels_ = {
            name: estimator.fit_predict(_one(views, name, estimator)) for name, estimator in self.estimators_.items()
        }
        self.merits_, balances = _merits(self.view_labels_)
        self.best_view_ = max(views, key=lambda name: (self.merits_[name], balances[name]))
        self.labels_ = self.view_labels_[self.best_view_]

    @_inner_has("predict")  # type: ignore[untyped-decorator]
    def predict(self, X: Any, per_view: bool = False) -> Any:
        """Return the cluster of each sample by the best view.

        Parameters
        ----------
        X : views, as in `as_views`
        per_view : bool
            Return a dictionary of labels by every view instead.
        """
        views = self._views_to_predict(X)
        names = views.names if per_view else [self.best_view_]
        labels = {name: self.estimators_[name].predict(_one(views, name, self.estimators_[name])) for name in names}
        return labels if per_view else labels[self.best_view_]


class _Around(MultiViewClusterer):
    """A wrapper whose trained estimator answers for it: it predicts, transforms and shows what it has learnt."""

    estimator: Any
    estimator_: Any

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if hasattr(self.estimator, "transform"):
            tags.transformer_tags = get_tags(self.estimator).transformer_tags
        return tags

    def _check_n_clusters(self, views: Views) -> None:
        """The wrapped estimator does."""

    def _require_method(self, purpose: str) -> None:
        _require_clusterer(self.estimator)
        if not isinstance(self.estimator, MultiViewClusterer):
            kind = type(self.estimator).__name__
            raise InputTypeError(
                f"{type(self).__name__} {purpose} methods of this library; wrap {kind}, as in Concat({kind}(…))"
            )
        if any(isinstance(kernel, Precomputed) for kernel in self._kernels().values()):
            raise InputError(
                f"{type(self).__name__} needs views of features; with kernel='precomputed' fit the method itself"
            )

    def _kernels(self) -> dict[str, Kernel]:
        """The kernels of the innermost method, which may be wrapped more than once."""
        kernel = _setting(self.estimator, "kernel", RBF())
        if isinstance(kernel, (Mapping, list, tuple)) and len(kernel) == 1:
            # Of the one view that the method sees: inside Concat it is not one of these views.
            (kernel,) = kernel.values() if isinstance(kernel, Mapping) else kernel
        return kernel_per_view(kernel, self.view_names_)

    def __getattr__(self, name: str) -> Any:
        """What the trained estimator has learnt is learnt here, too."""
        learnt = name.endswith("_") and not name.startswith("_") and name != "labels_"  # theirs may be of some samples
        if learnt and "estimator_" in self.__dict__:
            return getattr(self.estimator_, name)
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")

    def _ask(self, method: str, views: Views, settings: Mapping[str, Any]) -> Any:
        """What the trained estimator says about new samples."""
        return getattr(self.estimator_, method)(views, **settings)

    @_inner_has("predict")  # type: ignore[untyped-decorator]
    def predict(self, X: Any, **settings: Any) -> Any:
        """Return the cluster of each sample, as the trained estimator gives it.

        Parameters
        ----------
        X : views, as in `as_views`
        **settings : passed on, such as per_view=True
        """
        return self._ask("predict", self._views_to_predict(X), settings)

    @_inner_has("transform")  # type: ignore[untyped-decorator]
    def transform(self, X: Any, **settings: Any) -> Any:
        """Return the score variables of these samples, as the trained estimator gives them.

        Parameters
        ----------
        X : views, as in `as_views`
        **settings : passed on, such as per_view=True
        """
        return self._ask("transform", self._views_to_predict(X), settings)

    @_inner_has("transform")  # type: ignore[untyped-decorator]
    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Fit, and return the score variables of all samples."""
        return self.fit(X).transform(X)


class Scaled(_Around):
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

    @_inner_has("recluster")  # type: ignore[untyped-decorator]
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


class FixedSize(_Around):
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
        How training samples are chosen: "uniform" (at random), "entropy" (far apart), "anchors" (near k-means centres),
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
            self.agreements_ = _agreements([estimator.predict(some) for _, estimator in trained])
        self.train_rows_, self.estimator_ = trained[int(self.agreements_.argmax())]

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
        wanted, n_clusters = self.n_train, _setting(self.estimator, "n_clusters", 1)
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


def _setting(estimator: Any, name: str, default: Any) -> Any:
    """A parameter of the innermost method of one or more wrappers."""
    while not hasattr(estimator, name) and isinstance(getattr(estimator, "estimator", None), MultiViewClusterer):
        estimator = estimator.estimator
    return getattr(estimator, name, default)


def _hands_out_rows(source: Any) -> bool:
    """Whether this is a `Source`; arrays have a take of their own."""
    return hasattr(source, "take") and hasattr(source, "n_samples")


def _joined(blocks: Sequence[Any]) -> Any:
    """Answers for blocks of rows as one, whether they come as arrays or by view."""
    if isinstance(blocks[0], Mapping):
        return {name: _joined([block[name] for block in blocks]) for name in blocks[0]}
    return blocks[0] if len(blocks) == 1 else np.concatenate(blocks)


def _agreements(labels: Sequence[Labels]) -> Array:
    """Mean adjusted Rand index of each with the others; 1 where there are no others."""
    from sklearn.metrics import adjusted_rand_score

    if len(labels) == 1:
        return np.ones(1)
    between = np.eye(len(labels))
    for i, j in combinations(range(len(labels)), 2):
        between[i, j] = between[j, i] = adjusted_rand_score(labels[i], labels[j])
    means: Array = (between.sum(axis=1) - 1) / (len(labels) - 1)
    return means


def _merits(view_labels: Mapping[str, Labels]) -> tuple[dict[str, float], dict[str, float]]:
    """Agreement with the other views times balance, for each view; and the balance itself, which decides ties."""
    most = max(len(np.unique(labels)) for labels in view_labels.values())
    balances = {name: _balance(labels, most) for name, labels in view_labels.items()}
    # No agreement at all is as bad as any disagreement: below zero, balance would count against a view.
    agreements = np.maximum(_agreements(list(view_labels.values())), 0.0)
    return {name: float(a * balances[name]) for name, a in zip(view_labels, agreements, strict=True)}, balances


def _balance(labels: Labels, n_clusters: int) -> float:
    """Entropy of the cluster sizes over its largest value for so many clusters: 1 for equal sizes."""
    shares = np.unique(labels, return_counts=True)[1] / len(labels)
    return float(-(shares * np.log(shares)).sum() / np.log(n_clusters)) if n_clusters > 1 else 0.0


def _side_by_side(views: Views) -> Matrix:
    return stack_views(views)[0]


def _one(views: Views, name: str, estimator: Any) -> Any:
    """One view, under its name where the estimator knows views: its messages then say which."""
    return views.select([name]) if isinstance(estimator, MultiViewClusterer) else views[name]


def _require_clusterer(estimator: Any) -> None:
    if not (hasattr(estimator, "fit_predict") and hasattr(estimator, "get_params")):
        raise InputTypeError(f"estimator={estimator!r} must be a clusterer such as KSC(3)")
    if isinstance(estimator, type):
        raise InputError(f"estimator={estimator.__name__} is a class; give an instance such as {estimator.__name__}(3)")
