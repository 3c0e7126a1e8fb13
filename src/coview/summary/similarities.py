"""The similarities of some samples: those that the method fuses, or the mean of the views' similarities."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from coview.core.drawn import draw_by_cluster
from coview.core.gram import Centering
from coview.data.view import Array, Matrix
from coview.kernels import Kernel, Precomputed
from coview.methods.tmvkscr import TMvKSCR
from coview.summary.clustering import Clustering
from coview.summary.margins import Numbers
from coview.summary.plain import plain_record
from coview.summary.values import Similarities

COMPARED = 200


def sample_similarities(found: Clustering) -> Similarities | None:
    """Return the fused similarities of some samples, or the mean of the views' similarities for methods without rho.

    For `Coview`, these are the inner products of the scores.
    """
    drawn = found.drawn[found.views.has_all()[found.drawn]]
    if len(drawn) < 2:
        return None
    some = drawn[draw_by_cluster(found.numbers[drawn], COMPARED)]
    some = some[np.argsort(found.numbers[some], kind="stable")]
    learnt, name, values = found.model.learnt, "mean similarity", None
    if "number_" in learnt and found.scores is not None:
        name, values = "cosine similarity of the scores", found.scores[some] @ found.scores[some].T
    elif grams := _kernel_matrices(found, some):
        values = np.mean([with_unit_diagonal(gram) for gram in grams.values()], axis=0)
        if isinstance(found.method, TMvKSCR):
            name, rho = "fused similarity", found.method.rho
            kappa = np.array([learnt["kappa_"][view] for view in grams])
            centred = np.array([_centred(gram, learnt["regularization_"]) for gram in grams.values()])
            with np.errstate(over="ignore", invalid="ignore"):  # kernels of huge values
                values = with_unit_diagonal(rho * np.tensordot(kappa, centred, 1) + (1 - rho) * centred.prod(axis=0))
    if values is None or not np.isfinite(values).all():
        return None
    return plain_record(Similarities, name=name, labels=found.labels[some], values=values)


def _kernel_matrices(found: Clustering, some: Numbers) -> dict[str, Array]:
    """Return the similarities among some samples by view; those among new samples are unknown if precomputed."""
    kernels = found.model.learnt.get("kernels_", {})
    if not found.of_training and any(isinstance(kernel, Precomputed) for kernel in kernels.values()):
        return {}
    seen = found.model.seen(found.views.take(some))
    grams = {name: _kernel_matrix(found, name, kernel, seen[name], some) for name, kernel in kernels.items()}
    return {name: x.toarray() if sp.issparse(x) else np.asarray(x, dtype=np.float64) for name, x in grams.items()}


def _kernel_matrix(found: Clustering, view: str, kernel: Kernel, seen: Matrix, some: Numbers) -> Matrix:
    """Return the similarities among some samples; those of a neighbour graph are the model's own, if it has them."""
    if isinstance(kernel, Precomputed):
        return seen[:, some]
    learnt, present = getattr(found.model.predictor, "score_maps", {}).get(view), found.views.present.get(view)
    n_present = found.views.n_samples if present is None else present.sum()
    if kernel.sparse and found.of_training and learnt is not None and learnt.n_training == n_present:
        some = some if present is None else np.searchsorted(np.flatnonzero(present), some)
        return learnt.similarity.gram[some][:, some]
    return kernel(seen)


def _centred(gram: Array, regularization: float) -> Array:
    """Return the matrix centred as TMvKSCR does, with weights 1 / degree, if all degrees are positive."""
    degree, centred, every = gram.sum(axis=1), gram.copy(), slice(None)
    degree = degree + regularization * degree.mean()
    weights = degree.min() / degree if degree.min() > 0 else np.ones(len(degree))
    Centering.learn(gram, weights).centre(centred, every, every)
    return centred


def with_unit_diagonal(gram: Array) -> Array:
    """Return the matrix scaled to ones on the diagonal; rows without a positive diagonal become zeros."""
    own = np.sqrt(np.maximum(gram.diagonal(), 0))
    own[own == 0] = np.inf
    return gram / own[:, None] / own
