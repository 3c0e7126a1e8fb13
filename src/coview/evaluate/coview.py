"""Coview: the consensus of many clusterings, with the number of clusters selected from the data."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Annotated, Any, Literal, overload

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin

from coview.core.assign import Labels, new_numbers
from coview.errors import InputError
from coview.evaluate.consensus import ConsensusModel
from coview.evaluate.fit import fit_consensus, fit_with_selected_number
from coview.evaluate.members import Located
from coview.evaluate.number import ClusterNumber
from coview.evaluate.support import Support
from coview.evaluate.words import number_in_words
from coview.methods.base import MultiViewClusterer, Seed, warn_if_many_clusters
from coview.methods.coverage import check_coverage
from coview.parameters import check_number, is_integer, short
from coview.preprocess.profile import varies
from coview.progress import ProgressParameter, reporting
from coview.rows import narrowed
from coview.runtime import Workers
from coview.state import FloatArray, Range, Size, Sizes, require
from coview.views import Array, Layout, Views, row_labels

_BLOCK_ROWS = 8192


class Coview(ClassNamePrefixFeaturesOutMixin, TransformerMixin, MultiViewClusterer):
    """Cluster by the consensus of many clusterings of all views, with the number of clusters selected from the data.

    Neighbour graphs of each view and of all views side by side, by the directions of rows and by standardised columns,
    give random walks between the samples. Their components, and the columns themselves, are clustered by k-means.
    Average linkage of the labels by all of these clusterings gives a tree, of which the clusters are a level.

    The number of clusters is found on at most 2,000 samples: clusters are merged unless the graph has a valley between
    them, and what has no valley is divided if it has more structure than data of the same covariance without groups.

    Parameters
    ----------
    n_clusters : int, "auto", or several integers such as range(3, 9)
        Number of clusters, or the numbers of which the nearest to the one that is found is used. "auto" may find 1.
    views : list or mapping, optional
        How a stacked X is split into views; see `as_views`.
    n_jobs : int, optional
        Number of threads: -1 for all processors; by default as many as BLAS may use.
    progress : bool or callable, optional
        True shows a bar. A function is called as progress(stage, done, total).
    random_state : int, Generator, RandomState or None
        Seed of the initial centres of k-means.

    Attributes
    ----------
    n_clusters_ : int
        The number of clusters.
    labels_ : array of shape (n_samples,)
        Clusters of the training samples, numbered by decreasing size.
    number_ : ClusterNumber or None
        How the number of clusters was selected; None if it is given.
    support_ : Support or None
        What supports the clusters; None if their number is given, or is not the one that was found. `summarize`
        measures it otherwise.
    reason_ : str
        The selection in words.
    scores_ : array of shape (n_samples, n_components)
        Coordinates of the training samples in the latent space: directions of the components of the walk on all graphs.
    eigenvalues_ : array of shape (n_components,)
        Eigenvalues of this walk, without the first, which is 1.
    model_ : ConsensusModel
        What is learnt.

    See Also
    --------
    TMvKSCR : One model, which is faster.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> truth = np.repeat([0, 1, 2], [100, 40, 20])
    >>> text, image = (rng.normal(size=(3, d))[truth] * 4 + rng.normal(size=(160, d)) for d in (15, 20))
    >>> model = Coview(n_clusters="auto", random_state=0).fit({"text": text, "image": image})
    >>> model.n_clusters_, np.bincount(model.labels_)
    (3, array([100,  40,  20]))
    """

    n_clusters: Any
    n_clusters_: Annotated[int, Range(least=1)]
    number_: ClusterNumber | None
    support_: Support | None
    reason_: str
    model_: ConsensusModel
    scores_: Annotated[Array, FloatArray("train", "components")]
    eigenvalues_: Annotated[Array, FloatArray("components")]
    _n_features_out: Annotated[int, Size("components")]

    def __init__(
        self,
        n_clusters: int | Iterable[int] | Literal["auto"] = "auto",
        *,
        views: Layout = None,
        n_jobs: int | None = None,
        progress: ProgressParameter = None,
        random_state: Seed = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.views = views
        self.n_jobs = n_jobs
        self.progress = progress
        self.random_state = random_state

    @property
    def _samples_may_lack_views(self) -> bool:
        return True

    def _check_n_clusters(self, views: Views) -> None:
        """It is checked with the numbers to select from."""

    def _fit(self, X: Any) -> None:
        views = self._views_to_fit(X)
        numbers = self._numbers(views.n_samples)
        for name in views:
            if not views.n_present(name):
                raise InputError(f"view {name!r} has no samples, because all of its rows are NaN; drop the view")
            if views.n_samples > 1 and not varies(views.observed(name)):
                raise InputError(
                    f"view {name!r} has the same values in all {views.n_present(name)} samples; drop the view"
                )
        check_coverage(views, max(numbers, default=2), {})
        warn_if_many_clusters(max(numbers, default=1), views.n_samples)
        seed = int(self._generator().integers(2**31))
        with reporting(self.progress) as report, Workers(self.n_jobs) as workers:
            if len(numbers) == 1:
                fit = fit_consensus(views, numbers[0], seed, workers, report)
            else:

                def nearest(found: int) -> int:
                    return min(numbers, key=lambda number: abs(number - found)) if numbers else found

                fit = fit_with_selected_number(views, seed, workers, report, nearest)
            scores = fit.model.scores(fit.model.located(views))
        self.labels_, self.model_, self.number_, self.support_ = fit.labels, fit.model, fit.number, fit.support
        self.reason_ = "The number of clusters is given." if fit.number is None else number_in_words(fit.number)
        self.n_clusters_ = self.model_.n_clusters
        self.eigenvalues_ = self.model_.walks[-1].eigenvalues
        self.scores_ = narrowed(scores, views.dtype)
        self._n_features_out = self.scores_.shape[1]
        self._warn_if_fewer(self.n_clusters_, fit.n_clusters)

    def _labels_and_ties(self, X: Any) -> Labels:
        def found(model: ConsensusModel, samples: Located) -> dict[str, Array]:
            memberships = model.membership(samples)
            tied = (memberships == memberships.max(axis=1, keepdims=True)).sum(axis=1) > 1
            return {"": np.column_stack([memberships.argmax(axis=1), tied])}

        return self._by_block(found, X)[""]

    def _renumber(self, order: Labels) -> bool:
        numbers = new_numbers(order, self.n_clusters_)[1]
        self.model_ = self.model_.renumbered(order)
        self.labels_ = self.model_.labels
        self.support_ = self.support_ and self.support_.renumbered(numbers)
        return True

    def _numbers(self, n_samples: int) -> list[int]:
        """Return the numbers of clusters to select from in increasing order; [] for "auto"."""
        wanted: Any = self.n_clusters
        if n_samples < 2:
            raise InputError(f"n_samples={n_samples} is too few to find clusters; give more samples")
        if isinstance(wanted, str) and wanted == "auto":
            return []
        several = isinstance(wanted, Iterable) and not isinstance(wanted, str) and getattr(wanted, "ndim", 1) > 0
        numbers = list(wanted) if several else [wanted]
        if not numbers or not all(is_integer(k) and k >= 1 for k in numbers):
            raise InputError(
                f"n_clusters={short(wanted)}: expected an integer of at least 1, 'auto', or several integers such as "
                "range(2, 9)"
            )
        if max(numbers) > n_samples:
            raise InputError(
                f"n_samples={n_samples} is too few for n_clusters={max(numbers)}; give more samples or ask for fewer "
                "clusters"
            )
        return sorted({int(k) for k in numbers})

    def _check_state(self, sizes: Sizes) -> None:
        super()._check_state(sizes)
        found = self.model_.n_clusters
        require(found == self.n_clusters_, f"model_ has {found} clusters, not n_clusters_={self.n_clusters_}")
        require(self.labels_.max() < found, f"labels_: expected numbers below {found}")

    def _by_block(self, function: Callable[[ConsensusModel, Located], dict[str, Array]], X: Any) -> dict[str, Array]:
        """Return arrays that are a function of the samples, computed in blocks of rows."""
        views = self._views_to_predict(X)
        starts = range(0, views.n_samples, _BLOCK_ROWS)
        blocks = (views.take(slice(start, start + _BLOCK_ROWS)) for start in starts)
        found = [function(self.model_, self.model_.located(block)) for block in blocks]
        return {name: np.concatenate([each[name] for each in found]) for name in found[0]}

    @overload
    def predict(self, X: Any, per_view: Literal[False] = False, novel_below: float | None = None) -> Labels: ...

    @overload
    def predict(self, X: Any, per_view: Literal[True], novel_below: float | None = None) -> dict[str, Labels]: ...

    def predict(self, X: Any, per_view: bool = False, novel_below: float | None = None) -> Labels | dict[str, Labels]:
        """Return the cluster of each sample; a sample gets the same label alone and in any batch.

        Parameters
        ----------
        X : views, as in `as_views`
        per_view : bool
            Return labels by the neighbours in each view alone; -1 for samples that lack the view.
        novel_below : float in [0, 1], optional
            Samples whose `score_samples` is below this have the label -1.

        Returns
        -------
        array of shape (n_samples,), or a dictionary of such arrays by view name
        """
        if novel_below is not None:
            check_number("novel_below", novel_below, 0, 1)

        def labels(model: ConsensusModel, samples: Located) -> dict[str, Array]:
            found = {"": model.membership(samples).argmax(axis=1)}
            if per_view:
                found = {name: _first_largest(votes) for name, votes in model.votes_by_view(samples).items()}
            if novel_below is None:
                return found
            usual = model.usualness(samples)
            usual = usual if per_view else {"": model.joint_usualness(usual)}
            return {name: np.where(usual[name] < novel_below, -1, each) for name, each in found.items()}

        found = self._by_block(labels, X)
        return found if per_view else found[""]

    def predict_proba(self, X: Any) -> Array:
        """Return the membership of each sample in each cluster.

        It is the mean of two fractions: of the sample's neighbours in all graphs that are in the cluster, and of the
        cluster's samples that have the same labels by the members as the sample, divided by the sum over the clusters.
        The largest membership, the first of several, is that of the cluster in `predict`. If a cluster is so small that
        the neighbours of all its samples are in others, the second fraction alone counts.

        Parameters
        ----------
        X : views, as in `as_views`

        Returns
        -------
        array of shape (n_samples, n_clusters)
        """
        return self._by_block(lambda model, samples: {"": model.membership(samples)}, X)[""]

    def transform(self, X: Any) -> Any:
        """Return the coordinates of the samples in the latent space.

        Parameters
        ----------
        X : views, as in `as_views`

        Returns
        -------
        array of shape (n_samples, n_components)
        """
        scores = self._by_block(lambda model, samples: {"": model.scores(samples)}, X)[""]
        return self._labelled(narrowed(scores, self.scores_.dtype), row_labels(X))

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Fit, and return the coordinates of the training samples in the latent space.

        Parameters
        ----------
        X : views, as in `as_views`
        y : ignored

        Returns
        -------
        array of shape (n_samples, n_components)
        """
        return self._labelled(self.fit(X).scores_, row_labels(X))

    @overload
    def score_samples(self, X: Any, per_view: Literal[False] = False) -> Array: ...

    @overload
    def score_samples(self, X: Any, per_view: Literal[True]) -> dict[str, Array]: ...

    def score_samples(self, X: Any, per_view: bool = False) -> Array | dict[str, Array]:
        """Return how usual each sample is among the training samples, from 0 to 1; a low score means a novel sample.

        The score is a quantile: the fraction of training samples that lie farther from their neighbours than this
        sample does, in each view or over all views of the sample.

        Parameters
        ----------
        X : views, as in `as_views`
        per_view : bool
            Return the score in each view instead; NaN for samples that lack the view.

        Returns
        -------
        array of shape (n_samples,), or a dictionary of such arrays by view name
        """
        of_views = self._by_block(lambda model, samples: model.usualness(samples), X)
        return of_views if per_view else self.model_.joint_usualness(of_views)

    def view_contributions(self, X: Any) -> dict[str, Array]:
        """Return how much the neighbours of each sample in each view support its cluster, from -1 to 1.

        It is the fraction of the neighbours that are in the sample's cluster, minus the fraction in the cluster with
        the second largest membership. A view with a negative contribution contradicts the label.

        Parameters
        ----------
        X : views, as in `as_views`

        Returns
        -------
        dict
            Arrays of shape (n_samples,) by view name, NaN for samples that lack the view.
        """
        return self._by_block(lambda model, samples: model.contributions(samples), X)


def _first_largest(votes: Array) -> Labels:
    """Return the cluster with the most votes, the first of several; -1 for samples that lack the view."""
    return np.where(np.isnan(votes[:, 0]), -1, np.nan_to_num(votes).argmax(axis=1))
