"""Consensus: one clustering from the scores of several models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from coview.compose.concat import stacks_views
from coview.compose.wrapper import require_clusterer, require_method, setting
from coview.core.assign import FEW_STARTS, Assigner, Deferred, Labels, as_assigner
from coview.core.contributions import normalised_parts
from coview.core.eigen import with_fixed_signs
from coview.errors import InputError
from coview.methods.base import MultiViewClusterer, Seed, require_enough_samples, warn_if_many_clusters
from coview.methods.coverage import check_coverage
from coview.methods.kernel_clusterer import KernelClusterer
from coview.methods.nested import nested_models
from coview.methods.score_clusterer import ScoreClusterer
from coview.parameters import check_integer, check_number, is_integer, short
from coview.parts import part_of_fit
from coview.rows import l2_normalize, narrowed
from coview.state import FITTED, FloatArray, Range, Sizes, require
from coview.views import Array, Layout, Views

_DECIMALS = 6  # of scores, some of which may be computed in float32
_LEAST_FRACTION = 1e-12  # of the squared norm of the scores
_DIFFUSION = 3  # the power of the eigenvalues by which scores are multiplied; scores contain their first power


class Consensus(ScoreClusterer):
    """Cluster by the scores of several models of the same views.

    Each model is fitted. Its scores are multiplied by the third power of their eigenvalues relative to the largest, so
    that components without clusters count little. The scores of a kernel method contain the first power already, so
    components have the weights of a diffusion map after four steps. The scores of a sample are then L2-normalised, so
    that each model contributes a direction, and set side by side. The inner product of two samples is the weighted mean
    of their cosine similarities in the models. k-means on these directions finds clusters that the models have in
    common; errors of a single model have little effect.

    Parameters
    ----------
    estimators : list of estimators
        Methods or wrappers with `transform`, such as [TMvKSCR(3), Concat(KSC(3))].
    n_clusters : int, optional
        Number of clusters; by default that of the estimators, which must then be the same for all.
    weights : list of numbers, optional
        The weight of each model; equal by default.
    assigner : assigner or name
        As in `TMvKSCR`.
    views : list or mapping, optional
        How a stacked X is split into views; see `as_views`.
    random_state : int, Generator, RandomState or None
        Seed of the assigner. The models have their own.

    Attributes
    ----------
    estimators_ : list
        The fitted models.
    n_clusters_ : int
        The number of clusters.
    scores_ : array of shape (n_samples, n_components)
        The normalised scores of all models, rotated to their principal axes.
    eigenvalues_ : array of shape (n_components,)
        The fraction of the squared norm of the scores along each axis, in decreasing order. If all models agree, a few
        are large.
    view_labels_ : dict
        Clusters of the training samples by each view's own scores, by view name, if a model has these.
    labels_ : array of shape (n_samples,)
        Clusters of the training samples, numbered by decreasing size.

    See Also
    --------
    Tuned : The consensus of models that are selected without labels.

    Examples
    --------
    >>> import numpy as np
    >>> from coview import Concat, TMvKSCR
    >>> rng = np.random.default_rng(0)
    >>> truth = np.repeat([0, 1, 2], 20)
    >>> text, image = (rng.normal(size=(3, d))[truth] * 4 + rng.normal(size=(60, d)) for d in (5, 8))
    >>> model = Consensus([TMvKSCR(3), Concat(TMvKSCR(3))], random_state=0).fit({"text": text, "image": image})
    >>> np.bincount(model.labels_)
    array([20, 20, 20])
    """

    estimators_: list[Annotated[Any, FITTED]]
    eigenvalues_: Annotated[Array, FloatArray("components")]
    _weights: Annotated[Array, FloatArray("_models", least=0)]
    _axes: Annotated[Array, FloatArray("components", "components")]
    n_clusters_: Annotated[int, Range(least=1)]
    _diffusion: Annotated[Array, FloatArray("components", least=0, most=1)]
    _widths: tuple[Annotated[int, Range(least=1)], ...]

    def __init__(
        self,
        estimators: Sequence[Any],
        n_clusters: int | None = None,
        *,
        weights: Sequence[float] | None = None,
        assigner: Assigner | str = "directions",
        views: Layout = None,
        random_state: Seed = None,
    ) -> None:
        self.estimators = estimators
        self.n_clusters = n_clusters  # type: ignore[assignment]
        self.weights = weights
        self.assigner = assigner
        self.views = views
        self.random_state = random_state

    @property
    def kernels_(self) -> dict[str, Any]:
        """The kernel of each view in the first model that has scores of each view."""
        return next((dict(method.kernels_) for method in self._methods_of_views() if method is not None), {})

    def _methods_of_views(self) -> list[KernelClusterer | None]:
        return [_method_of_views(model, len(self.scores_)) for model in self.estimators_]

    @property
    def _samples_may_lack_views(self) -> bool:
        models = self.estimators if isinstance(self.estimators, (list, tuple)) else []
        weights = vars(self).get("_weights", np.ones(len(models)))
        return any(
            weight > 0 and isinstance(each, MultiViewClusterer) and each._samples_may_lack_views
            for each, weight in zip(models, weights, strict=False)
        )

    def _check_n_clusters(self, views: Views) -> None:
        """It is checked with the models."""

    def _check_state(self, sizes: Sizes) -> None:
        super()._check_state(sizes)
        same = len(self.estimators_) == len(self._weights) == len(self._widths)
        require(same, "expected a weight and the number of components of each model")
        require(0 < self._weights.sum() < np.inf, "expected weights with a positive sum")
        require(sum(self._widths) == len(self._axes), f"expected {len(self._axes)} components of all models")
        wanted = self._view_assigner.n_clusters
        require(wanted == self.n_clusters_, f"_view_assigner has {wanted} clusters, not n_clusters_={self.n_clusters_}")
        for model, width in zip(self.estimators_, self._widths, strict=True):
            same = model.view_n_features_ == self.view_n_features_
            require(same, f"estimators_ expect views with {model.view_n_features_}, not {self.view_n_features_}")
            *_, method = nested_models(model)
            found = getattr(method, "_n_features_out", None) if hasattr(model, "transform") else None
            require(found == width, f"expected {type(model).__name__} with {width} components in estimators_")

    def _fit(self, X: Any) -> None:
        views = self._views_to_fit(X)
        self.n_clusters_ = n_clusters = self._number_of_clusters()
        self._weights = self._checked_weights()
        require_enough_samples(n_clusters, views.n_samples)
        warn_if_many_clusters(n_clusters, views.n_samples)
        check_coverage(views, n_clusters, {})
        with part_of_fit():  # the scores of the models are used, and not their clusters
            self.estimators_ = [clone(each).fit(views) for each in self.estimators]
        rng = self._generator()
        kept = [_kept_scores(model, views.n_samples) for model in self.estimators_]
        scores = [
            np.asarray(model.transform(views)) if known is None else known
            for model, known in zip(self.estimators_, kept, strict=True)
        ]
        diffusion = [diffusion_weights(*each) for each in zip(self.estimators_, scores, strict=True)]
        self._diffusion = np.concatenate(diffusion)
        self._widths = tuple(each.shape[1] for each in scores)
        combined = self._combined(scores)
        values, axes = np.linalg.eigh(combined.T @ combined)
        order = np.argsort(-values, kind="stable")
        self.eigenvalues_ = np.maximum(values[order], 0) / max(values.sum(), 1e-300)
        self._axes = with_fixed_signs(axes[:, order])
        self._n_features_out = len(values)
        rotated = self._rotated(combined)
        self.scores_ = narrowed(rotated, views.dtype)
        assigner = as_assigner(self.assigner)
        self._assignment = assigner.fit(rotated, n_clusters, rng, _DECIMALS)
        self.labels_ = self._assignment.assign(rotated)
        self._view_assigner = Deferred(assigner, n_clusters, _DECIMALS, seed=int(rng.integers(2**31)))
        self._view_assignments, self._computed = {}, {}
        self._warn_if_fewer(self._assignment.n_found, self.n_clusters_)

    def _number_of_clusters(self) -> int:
        """Return the number of clusters, after the models are checked."""
        if not isinstance(self.estimators, (list, tuple)) or not self.estimators:
            raise InputError(f"estimators={self.estimators!r}: expected a list such as [TMvKSCR(3), Concat(KSC(3))]")
        for each in self.estimators:
            require_clusterer(each)
            if not hasattr(each, "transform"):
                raise InputError(
                    f"{type(each).__name__} has no scores; Consensus needs models with transform, such as TMvKSCR, "
                    "MvKSC, or KSC and KPCA in Concat"
                )
            require_method(each, "Consensus combines")
        if self.n_clusters is not None:
            return check_integer("n_clusters", self.n_clusters, 1)
        numbers = [setting(each, "n_clusters", None) for each in self.estimators]
        if not all(map(is_integer, numbers)) or len({int(number) for number in numbers}) > 1:
            raise InputError(
                f"estimators have the numbers of clusters {', '.join(map(short, numbers))}; give n_clusters, or "
                "methods with the same number"
            )
        return int(numbers[0])

    def _checked_weights(self) -> Array:
        given: Any = self.weights
        if given is None:
            return np.ones(len(self.estimators))
        if isinstance(given, (str, Mapping)) or not np.iterable(given):
            raise InputError(f"weights={short(given)}: expected a list with one number for each estimator")
        weights = [check_number("weights", weight, 0) for weight in given]
        if len(weights) != len(self.estimators):
            raise InputError(f"weights has {len(weights)} entries for {len(self.estimators)} estimators; give one each")
        if not any(weights):
            raise InputError("weights are all zero; give one estimator a positive weight")
        return np.array(weights) / max(weights)  # the sum of huge weights is then finite

    def _combined(self, scores: Sequence[Array]) -> Array:
        """Return the normalised and weighted scores of all models side by side; rows have at most norm 1."""
        roots = np.sqrt(self._weights / self._weights.sum())
        models = zip(roots, np.split(self._diffusion, np.cumsum(self._widths)[:-1]), scores, strict=True)
        return np.hstack([root * l2_normalize(each * diffusion) for root, diffusion, each in models])

    def _first_components(self, scores: Array, n_dropped: int) -> Array:
        """Return the scores of all models without the last components of each, normalised and side by side."""
        parts = np.split(scores @ self._axes.T, np.cumsum(self._widths)[:-1], axis=1)
        roots = np.sqrt(self._weights / self._weights.sum())
        return np.hstack(
            [
                root * l2_normalize(super(Consensus, self)._first_components(part, n_dropped))
                for root, part in zip(roots, parts, strict=True)
            ]
        )

    def _ensemble(self, views: Views) -> Array:
        scores = [_scores_by(model, width, views) for model, width in zip(self.estimators_, self._widths, strict=True)]
        return self._rotated(self._combined(scores))

    def _rotated(self, combined: Array) -> Array:
        """Return the scores along the principal axes."""
        # Along an axis without variance they are rounding errors, whose signs depend on the batch.
        rotated: Array = (combined @ self._axes) * (self.eigenvalues_ > _LEAST_FRACTION)
        return rotated

    def _scores_of(self, views: Views) -> tuple[Array, dict[str, Array]]:
        return self._ensemble(views), self._scores_of_views(views)

    def _scores_of_views(self, views: Views) -> dict[str, Array]:
        found = [
            None if method is None else model._scores_of_views(views)
            for model, method in zip(self.estimators_, self._methods_of_views(), strict=True)
        ]
        return {
            name: self._of_view([None if scores is None else scores[name] for scores in found], views.n_samples)
            for name in self._scored_views
        }

    def _parts_of(self, views: Views) -> dict[str, Array]:
        """Return each view's summand of the scores, in the components of the models that have scores of each view."""
        complete, roots = views.has_all()[:, None], np.sqrt(self._weights / self._weights.sum())
        diffusions = np.split(self._diffusion, np.cumsum(self._widths)[:-1])
        of_models = []
        for model, method, root, diffusion in zip(
            self.estimators_, self._methods_of_views(), roots, diffusions, strict=True
        ):
            if method is None:
                of_models.append(dict.fromkeys(self._scored_views, np.zeros((views.n_samples, len(diffusion)))))
                continue
            parts = {name: part * diffusion for name, part in model._parts_of(views).items()}
            if not model._samples_may_lack_views:  # as in `_scores_by`
                parts = {name: np.where(complete, part, 0.0) for name, part in parts.items()}
            whole = np.sum([np.nan_to_num(part) for part in parts.values()], axis=0)
            of_models.append({name: root * part for name, part in normalised_parts(parts, whole).items()})
        return {name: np.hstack([parts[name] for parts in of_models]) @ self._axes for name in self._scored_views}

    @property
    def _weights_of_views(self) -> dict[str, float]:
        methods = zip(self._weights, self._methods_of_views(), strict=True)
        betas = [(weight / sum(each._beta.values()), each._beta) for weight, each in methods if each is not None]
        return {name: float(sum(weight * beta[name] for weight, beta in betas)) for name in self._scored_views}

    @property
    def _centres_of_parts(self) -> Array:
        kept = np.repeat([method is not None for method in self._methods_of_views()], self._widths)
        centres: Array = (self._assignment.centres @ self._axes.T * kept) @ self._axes
        return centres

    @property
    def _quick_up_to(self) -> int:
        methods = (method for method in self._methods_of_views() if method is not None)
        return min((method._quick_up_to for method in methods), default=super()._quick_up_to)

    def _training_scores(self, name: str) -> Array:
        scores = [None if method is None else method._training_scores(name) for method in self._methods_of_views()]
        return self._of_view(scores, len(self.scores_))

    def _of_view(self, scores: Sequence[Array | None], n_samples: int) -> Array:
        """Return the scores of one view in the space of the ensemble scores; models that have none contribute zeros."""
        filled = [
            np.zeros((n_samples, width)) if each is None else each
            for each, width in zip(scores, self._widths, strict=True)
        ]
        return self._combined(filled) @ self._axes

    @property
    def _scored_views(self) -> tuple[str, ...]:
        return self.view_names_ if any(self._methods_of_views()) else ()

    @property
    def _has_novelty(self) -> bool:
        models = self.estimators if isinstance(self.estimators, (list, tuple)) else []
        return any(hasattr(each, "score_samples") for each in models)

    def _quantiles_of(self, views: Views, per_view: bool) -> Any:
        """Return the quantiles by one model, the same for all samples; {} for each view if no model compares views.

        Models with a weight come first, then those that accept samples without some views, then those that compare
        each view.
        """
        models = zip(self.estimators_, self._methods_of_views(), self._weights, strict=True)
        scoring = [each for each in models if hasattr(each[0], "score_samples")]
        if not scoring:
            raise InputError(
                "novel_below needs a model with novelty scores among the estimators; leave it out, or add TMvKSCR(3)"
            )

        def preference(each: tuple[Any, KernelClusterer | None, float]) -> tuple[bool, ...]:
            model, method, weight = each
            return weight > 0, model._samples_may_lack_views, method is not None

        if not per_view:
            return max(scoring, key=preference)[0].score_samples(views)  # the first of several
        of_views = [each for each in scoring if each[1] is not None]
        return max(of_views, key=preference)[0].score_samples(views, per_view=True) if of_views else {}

    def model_labels(self) -> list[Labels]:
        """Return the clusters of the training samples by the scores of each model.

        A model with weight 0 has one cluster if it does not keep its scores, as in Concat(KMeans(3)).

        Returns
        -------
        list of arrays of shape (n_samples,), in the order of estimators_
        """
        check_is_fitted(self)
        places = np.cumsum(self._widths)[:-1]
        weighted = np.split(self.scores_ @ self._axes.T, places, axis=1)
        labels = []
        for model, diffusion, scores in zip(self.estimators_, np.split(self._diffusion, places), weighted, strict=True):
            known = _kept_scores(model, len(self.scores_))
            own = scores if known is None else known * diffusion
            labels.append(FEW_STARTS.fit(own, self.n_clusters_, np.random.default_rng(0)).assign(own))
        return labels


def diffusion_weights(model: Any, scores: Array) -> Array:
    """Return the weight of each component of the scores of a fitted model; 1 if the model has no eigenvalues."""
    *_, method = nested_models(model)
    eigenvalues = getattr(method, "eigenvalues_", np.zeros(0))
    if len(eigenvalues) != scores.shape[1] or not 0 < eigenvalues[0] < np.inf:
        return np.ones(scores.shape[1])
    weights: Array = np.clip(eigenvalues / eigenvalues[0], 0, 1) ** _DIFFUSION
    return weights


def _scores_by(model: Any, width: int, views: Views) -> Array:
    """Return the scores by one model; zeros for samples that lack views if the model needs all of them.

    A sample is then assigned by the other models.
    """
    if views.complete or model._samples_may_lack_views:
        return np.asarray(model.transform(views))
    complete, scores = np.flatnonzero(views.has_all()), np.zeros((views.n_samples, width))
    if len(complete):
        scores[complete] = model.transform(views.take(complete))
    return scores


def _method_of_views(model: Any, n_samples: int) -> KernelClusterer | None:
    """Return the method inside a model; None if it has no scores of each view, or not of all training samples."""
    *_, method = nested_models(model)
    if not isinstance(method, KernelClusterer) or stacks_views(model) or len(method.scores_) != n_samples:
        return None
    return method


def _kept_scores(model: Any, n_samples: int) -> Array | None:
    """Return the scores of the training samples, which most methods keep; None if there are none of all samples."""
    *_, method = nested_models(model)
    known: Array | None = getattr(method, "scores_", None)
    return known if known is not None and len(known) == n_samples else None
