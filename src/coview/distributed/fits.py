"""Fits of models: with all rows on a cluster, or on some rows in this process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from coview.base.parameters import check_integer
from coview.base.progress import reporting
from coview.base.runtime import require_memory
from coview.core.fuse import fuses_sparse
from coview.core.score import ScoreMap
from coview.core.select import Rows, as_selector
from coview.distributed.cluster import DaskCluster
from coview.distributed.graphs import OnCluster, ViewsOnCluster
from coview.distributed.views import DaskViews, as_dask_views
from coview.errors import InputError, InputTypeError
from coview.kernels import RBF, AutoKernel, Graph, Kernel, kernel_per_view
from coview.methods.kernel_method import KernelMethod
from coview.model.clusterer import Clusterer
from coview.model.schema import Schema

Model = TypeVar("Model", bound=Any)


def select_rows(
    views: DaskViews | Mapping[str, Any],
    n_train: int,
    *,
    select: Any = "uniform",
    random_state: Any = None,
    kernel: Any = RBF(),  # noqa: B008 - a frozen value
) -> Rows:
    """Return the numbers of the rows that `FixedSize` would train on, in increasing order.

    `FixedSize` exchanges some of them if they have too few samples of a view for its number of clusters.

    Parameters
    ----------
    views : DaskViews, or mapping as for DaskViews
    n_train : int
        Number of rows, at most the number of samples.
    select : selector or name
        As in `FixedSize`.
    random_state : int, Generator or None
        Source of randomness.
    kernel : kernel, list or mapping
        The kernel of selectors that compare rows, such as the kernel of the method that will be trained.

    Returns
    -------
    array of int of shape (n_train,)
    """
    views = as_dask_views(views)
    n_train = check_integer("n_train", n_train, 1, views.n_samples)
    rng = np.random.default_rng(random_state)
    return as_selector(select).rows(views, n_train, rng, kernel_per_view(kernel, views.names))


def fit(model: Model, views: DaskViews | Mapping[str, Any]) -> Model:
    """Return the fitted model: with all rows on the cluster, or for `FixedSize` on the rows that it chooses.

    A kernel method with neighbour graphs is fitted on all rows, with the labels of a fit in memory. It needs an active
    client of `distributed`. Rows and graphs stay on the workers; this process receives a few numbers of each row. If a
    worker fails, its results are computed again. The model refers to the cluster until `gather` is called.

    Parameters
    ----------
    model : FixedSize, or TMvKSCR, KSC or KPCA with neighbour graphs
        Other models need all rows in memory.
    views : DaskViews, or mapping as for DaskViews

    Returns
    -------
    the model
        The same object.
    """
    if isinstance(model, Clusterer) and model.trains_on_some_rows:
        return model.train(as_dask_views(views))
    kind = getattr(model, "__name__", type(model).__name__)
    if not (isinstance(model, KernelMethod) and model.fuses_sparse):
        raise InputTypeError(
            f"{kind} needs all samples in memory; FixedSize({kind}(…), n_train=1000) trains on some of them"
        )
    views = as_dask_views(views)
    _check_kernels(kind, kernel_per_view(model.kernel, views.names))
    cluster = DaskCluster.active(kind)
    _fit_on_cluster(model, views.in_large_blocks(), cluster)
    return model


def gather(model: Model) -> Model:
    """Return the model, after its training rows and graphs are brought into this process.

    It is then the same model as one that was fitted in memory: it can be saved, and it does not need the cluster. A
    MemoryError says how much memory it needs if there is not enough.

    Parameters
    ----------
    model : model that `fit` has fitted on a cluster

    Returns
    -------
    the model
        The same object.
    """
    check_is_fitted(model)
    predictor = model.model_.predictor
    maps: dict[str, ScoreMap] = dict(getattr(predictor, "score_maps", {}))
    remote = {name: each.similarity for name, each in maps.items() if isinstance(each.similarity, OnCluster)}
    require_memory(
        sum(similarity.nbytes for similarity in remote.values()),
        f"gathering the training rows of {type(model).__name__}",
        "label new samples while the cluster exists, or fit FixedSize(…), whose model is small",
    )
    if remote:
        maps |= {name: replace(maps[name], similarity=each.gathered()) for name, each in remote.items()}
        model.publish(replace(model.model_, predictor=replace(predictor, score_maps=maps)))
    return model


def _check_kernels(kind: str, kernels: Mapping[str, Kernel]) -> None:
    """Raise an InputError if some similarities are not neighbour graphs, or if there are too many views."""
    for name, kernel in kernels.items():
        if not isinstance(kernel, (Graph, AutoKernel)):
            raise InputError(
                f"view {name!r} has the kernel {kernel}, and {kind} on all samples needs neighbour graphs; "
                f"use kernel='auto' or NeighborGraph(), or train on some samples: FixedSize({kind}(…), n_train=1000)"
            )
    if not fuses_sparse([True] * len(kernels)):
        raise InputError(
            f"{len(kernels)} views are too many for {kind} on all samples of a cluster; give at most 8, or train on "
            f"some samples: FixedSize({kind}(…), n_train=1000)"
        )


def _fit_on_cluster(model: KernelMethod, views: DaskViews, cluster: DaskCluster) -> None:
    on_cluster = ViewsOnCluster(views.on(cluster), cluster)
    fingerprint = on_cluster.fingerprint()
    # The shapes without values, which the checks of a fit in memory need.
    shapes = views.example.map(
        lambda name, view: replace(
            view, matrix=np.broadcast_to(view.matrix[:, :1], (views.n_samples, view.matrix.shape[1]))
        )
    )
    schema, given = Schema.learn(shapes, model.fills_cells, model.may_lack_views)
    notes = model.check_views(given)
    with reporting(model.progress) as report:
        found = model.fit_model(given, report, on_cluster.grams)
    model.n_features_in_ = sum(given.n_features.values())
    notes = (*notes, *found.notes)
    model.publish(replace(found, schema=schema, fingerprint=fingerprint, notes=notes))
