"""What wrappers share: which estimators they take, and how a trained one answers for its wrapper."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if

from coview.errors import InputError, InputTypeError
from coview.kernels import RBF, Kernel, Precomputed, kernel_per_view
from coview.methods.base import MultiViewClusterer
from coview.state import FITTED, Sizes, require
from coview.views import Views


def inner_has(method: str) -> Any:
    """Offer a method only when the wrapped estimators have it."""

    def check(wrapper: Any) -> bool:
        inner = wrapper.estimator
        return all(hasattr(e, method) for e in (inner.values() if isinstance(inner, Mapping) else [inner]))

    return available_if(check)


def require_clusterer(estimator: Any) -> None:
    """Refuse what cannot be wrapped."""
    if not (hasattr(estimator, "fit_predict") and hasattr(estimator, "get_params")):
        raise InputTypeError(f"estimator={estimator!r} must be a clusterer such as KSC(3)")
    if isinstance(estimator, type):
        raise InputError(f"estimator={estimator.__name__} is a class; give an instance such as {estimator.__name__}(3)")


def setting(estimator: Any, name: str, default: Any) -> Any:
    """A parameter of the innermost method of one or more wrappers."""
    while not hasattr(estimator, name) and isinstance(getattr(estimator, "estimator", None), MultiViewClusterer):
        estimator = estimator.estimator
    return getattr(estimator, name, default)


class Wrapper(MultiViewClusterer):
    """A wrapper whose trained estimator answers for it: it predicts, transforms and shows what it has learnt."""

    estimator: Any
    estimator_: Annotated[Any, FITTED]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if hasattr(self.estimator, "transform"):
            tags.transformer_tags = get_tags(self.estimator).transformer_tags
        return tags

    def _check_n_clusters(self, views: Views) -> None:
        """The wrapped estimator does."""

    def _check_state(self, sizes: Sizes) -> None:
        super()._check_state(sizes)
        inner, widths = self.estimator_.view_n_features_, self._inner_n_features()
        require(inner == widths, f"estimator_ expects views with {inner} features, not {widths}")

    def _inner_n_features(self) -> dict[str, int]:
        """Return the number of features of each view that the wrapped estimator sees."""
        return self.view_n_features_

    def _require_method(self, purpose: str) -> None:
        require_clusterer(self.estimator)
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
        kernel = setting(self.estimator, "kernel", RBF())
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

    @inner_has("predict")  # type: ignore[untyped-decorator]
    def predict(self, X: Any, **settings: Any) -> Any:
        """Return the cluster of each sample, as the trained estimator gives it.

        Parameters
        ----------
        X : views, as in `as_views`
        **settings : passed on, such as per_view=True
        """
        return self._ask("predict", self._views_to_predict(X), settings)

    @inner_has("transform")  # type: ignore[untyped-decorator]
    def transform(self, X: Any, **settings: Any) -> Any:
        """Return the score variables of these samples, as the trained estimator gives them.

        Parameters
        ----------
        X : views, as in `as_views`
        **settings : passed on, such as per_view=True
        """
        return self._ask("transform", self._views_to_predict(X), settings)

    @inner_has("transform")  # type: ignore[untyped-decorator]
    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Fit, and return the score variables of all samples."""
        return self.fit(X).transform(X)
