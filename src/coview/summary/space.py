"""Where a fitted model tells clusters apart: the method inside any wrappers, its scores, and its views' own labels."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any, NamedTuple

import numpy as np

from coview.compose import Concat, FixedSize, PerView, Preprocessed
from coview.core.assign import Labels
from coview.methods.base import MultiViewClusterer
from coview.methods.kernel_clusterer import KernelClusterer
from coview.summary.margins import Numbers
from coview.tune import Tuned
from coview.views import Array, Views, stack_views

_BLOCK_ROWS = 16_384
_ASKED = 50  # samples that tell whether these are the ones of the fit


class Inner(NamedTuple):
    """The method inside any wrappers, how rows reach it, and which views it sees as such."""

    method: Any
    prepared: Callable[[Views], Views]
    view_names: tuple[str, ...]

    def rows(self, views: Views) -> Any:
        """Return rows in the form that the method was fitted on."""
        prepared = self.prepared(views)
        if isinstance(self.method, MultiViewClusterer):
            return prepared.rename(self.method.view_names_)
        return next(iter(prepared.values()))


def innermost(model: Any) -> Inner:
    """Return the method inside wrappers: the one that has the scores, the kernels and the eigenvalues."""
    if isinstance(model, PerView):
        best = model.best_view_
        inner = innermost(model.estimators_[best])
        return Inner(inner.method, lambda views: inner.prepared(views.select([best])), (best,))
    if not isinstance(model, (FixedSize, Preprocessed, Tuned, Concat)):
        return Inner(model, lambda views: views, getattr(model, "view_names_", ()))
    inner = innermost(model.estimator_)
    if isinstance(model, Preprocessed):
        # Inside Concat, the one table has another name.
        return inner._replace(prepared=lambda views: inner.prepared(model._prepared(views.rename(model.view_names_))))
    if isinstance(model, Concat):
        return Inner(inner.method, lambda views: inner.prepared(_side_by_side(views)), ())
    return inner


def _side_by_side(views: Views) -> Views:
    return Views.trusted({"all": stack_views(views)[0]}, {"all": None})


def is_of_the_fit(model: Any, inner: Inner, views: Views) -> bool:
    """Say whether these are the samples of the fit: as many, and a few of them found where the fit has left them."""
    labels = getattr(model, "labels_", ())
    if len(labels) != views.n_samples or not hasattr(model, "predict"):
        return len(labels) == views.n_samples
    rows = np.unique(np.linspace(0, views.n_samples - 1, _ASKED).astype(int))
    some, known = views.take(rows), getattr(inner.method, "scores_", ())
    if len(known) == views.n_samples and hasattr(inner.method, "transform"):
        found, known = _plain_output(inner.method).transform(inner.rows(some)), np.asarray(known)
        return bool(np.allclose(found, known[rows], rtol=0, atol=1e-2 * abs(known).max()))
    # Some methods label a few of their own samples otherwise when they see them again.
    return bool(np.mean(np.asarray(model.predict(some)) == np.asarray(labels)[rows]) >= 0.5)


def all_scores(inner: Inner, views: Views, fitted: bool) -> Array | None:
    """Return the samples in the space in which the method tells clusters apart, where it has one.

    Parameters
    ----------
    inner : Inner
    views : Views
    fitted : bool
        Whether these are the samples of the fit, of which the method may know the scores.
    """
    for name in ("scores_", "consensus_", "embedding_"):
        known = getattr(inner.method, name, None)
        if fitted and known is not None and len(known) == views.n_samples:
            return np.asarray(known)
    if not hasattr(inner.method, "transform"):
        return None
    method, starts = _plain_output(inner.method), range(0, views.n_samples, _BLOCK_ROWS)
    blocks = (views.take(slice(start, start + _BLOCK_ROWS)) for start in starts)
    return np.concatenate([method.transform(inner.rows(block)) for block in blocks])


def _plain_output(method: Any) -> Any:
    """The same method, giving arrays even if its owner has asked it for data frames."""
    plain = copy(method)
    plain._sklearn_output_config = {"transform": "default"}
    return plain


def view_scores(inner: Inner, views: Views, fitted: bool, drawn: Numbers) -> dict[str, Array]:
    """Return the drawn samples in each view's own space, for the views that have one."""
    if isinstance(inner.method, KernelClusterer):
        scores = _plain_output(inner.method).transform(inner.rows(views.take(drawn)), per_view=True)
    else:
        known = getattr(inner.method, "embeddings_", None) or getattr(inner.method, "partitions_", {})
        scores = {name: table[drawn] for name, table in known.items()} if fitted else {}
    return {name: scores[name] for name in inner.view_names if name in scores}


def view_labels(model: Any, views: Views, fitted: bool, drawn: Numbers) -> tuple[dict[str, Labels], Numbers]:
    """Return the labels by each view alone, and the rows that have them: all if they are known, or those drawn."""
    known = getattr(model, "view_labels_", {})
    if fitted and all(len(labels) == views.n_samples for labels in known.values()):
        return dict(known), np.arange(views.n_samples)
    return (model.predict(views.take(drawn), per_view=True) if known else {}), drawn
