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
from coview.distributed.views import DaskArray, DaskViews, as_dask_views, checked, compute_block
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
    import dask.array as da
    from dask.base import tokenize

    if not hasattr(model, method):
        raise InputError(f"{type(model).__name__} has no {method}; use a method that has one, such as TMvKSCR")
    views = views.filled_by(model)
    # One row of arbitrary numbers: the model refuses unsuitable views here, not later on a worker.
    like = np.asarray(getattr(model, method)(views._example))
    dtype = np.dtype(np.int64) if method == "predict" else like.dtype
    pickled = cloudpickle.dumps(model)
    name = f"coview-{method}-{tokenize(pickled, views._token)}"
    model_key = f"coview-model-{tokenize(pickled)}"
    columns = [0] * (like.ndim - 1)
    tasks = {
        (name, i, *columns): views._task(i, _label, [tuple(views._empty_cells), method, dtype.str], model_key)
        for i in range(len(views._heights))
    }
    tasks[model_key] = _model(model_key, pickled)  # type: ignore[index]
    return da.Array(views._graph(name, tasks), name, (views._heights, *((n,) for n in like.shape[1:])), dtype)


def _model(key: str, pickled: bytes) -> Any:
    """Return the task that loads the model, or its future result if there is a cluster."""
    load, client = sent(_load), active_client()
    # Submitted, so that it is sent once.
    return (load, pickled) if client is None else submit(client, load, pickled, key=key)


def _load(pickled: bytes) -> Any:
    return pickle.loads(pickled)


def _label(parts: list[Any], empty_cells: Sequence[str], method: str, dtype: str, model: Any, *given: Any) -> Array:
    """Return the labels or scores of one block of rows."""
    from joblib import parallel_config

    blocks, rows = compute_block(parts, given)
    views = checked(blocks, empty_cells, rows)
    # One thread: Dask runs as many blocks at the same time as there are processors.
    with Workers(1), parallel_config("sequential"):
        try:
            return np.asarray(getattr(model, method)(views), dtype=dtype)
        except InputError as error:
            raise InputError(f"rows {rows[0]} to {rows[-1]}: {error}") from error
