"""Labels, scores and memberships of views in blocks of rows: a block is one task, and the model is sent once."""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from coview.base.runtime import Workers
from coview.data.view import Array
from coview.distributed.cluster import active_client, submit
from coview.distributed.tasks import sent
from coview.distributed.views import DaskArray, DaskViews, RowBlock, as_dask_views, checked
from coview.errors import InputError


def predict(model: Any, views: DaskViews | Mapping[str, Any]) -> DaskArray:
    """Return the cluster of each sample as a lazy dask array of int64, one task for each block of rows.

    The labels are those of model.predict in memory. The model is sent once, to the workers of the active `distributed`
    client, which must still exist when the labels are computed. Without a client it is part of the graph.

    Parameters
    ----------
    model : fitted estimator with predict
    views : DaskViews, or mapping as for DaskViews

    Returns
    -------
    dask array of int64 of shape (n_samples,)
    """
    return _lazily("predict", model, as_dask_views(views))


def predict_proba(model: Any, views: DaskViews | Mapping[str, Any]) -> DaskArray:
    """Return the membership of each sample in each cluster as a lazy dask array; see `predict`.

    Parameters
    ----------
    model : fitted estimator with predict_proba
    views : DaskViews, or mapping as for DaskViews

    Returns
    -------
    dask array of shape (n_samples, n_clusters)
    """
    return _lazily("predict_proba", model, as_dask_views(views))


def score_samples(model: Any, views: DaskViews | Mapping[str, Any]) -> DaskArray:
    """Return how usual each sample is among the training samples, as a lazy dask array; see `predict`.

    Parameters
    ----------
    model : fitted estimator with score_samples
    views : DaskViews, or mapping as for DaskViews

    Returns
    -------
    dask array of shape (n_samples,)
    """
    return _lazily("score_samples", model, as_dask_views(views))


def transform(model: Any, views: DaskViews | Mapping[str, Any]) -> DaskArray:
    """Return the score variables of each sample as a lazy dask array, one task for each block of rows; see `predict`.

    Parameters
    ----------
    model : fitted estimator with transform
    views : DaskViews, or mapping as for DaskViews

    Returns
    -------
    dask array of shape (n_samples, n_components)
    """
    return _lazily("transform", model, as_dask_views(views))


def _lazily(method: str, model: Any, views: DaskViews) -> DaskArray:
    import cloudpickle

    if not hasattr(model, method):
        raise InputError(f"{type(model).__name__} has no {method}; use a method that has one, such as TMvKSCR")
    views = views.filled_by(model)
    # One row of arbitrary numbers: the model refuses unsuitable views here, not later on a worker.
    like = np.asarray(getattr(model, method)(views.example), dtype=np.int64 if method == "predict" else None)
    settings = views.cells_may_be_empty, method, like.dtype.str
    return views.lazily(f"coview-{method}", _label, settings, _model(cloudpickle.dumps(model)), like)


def _model(pickled: bytes) -> Any:
    """Return the task that loads the model, or its future result if there is a cluster."""
    from dask.base import tokenize
    from dask.task_spec import Task

    key, load, client = f"coview-model-{tokenize(pickled)}", sent(_load), active_client()
    # Submitted, so that it is sent once.
    return Task(key, load, pickled) if client is None else submit(client, load, pickled, key=key)


def _load(pickled: bytes) -> Any:
    return pickle.loads(pickled)


def _label(empty_cells: Sequence[str], method: str, dtype: str, model: Any, block: RowBlock) -> Array:
    """Return the labels or scores of one block of rows."""
    from joblib import parallel_config

    rows, of_views = block
    views = checked(of_views, empty_cells, rows)
    # One thread: Dask runs as many blocks at the same time as there are processors.
    with Workers(1), parallel_config("sequential"):
        try:
            return np.asarray(getattr(model, method)(views), dtype=dtype)
        except InputError as error:
            raise InputError(f"rows {rows[0]} to {rows[-1]}: {error}") from error
