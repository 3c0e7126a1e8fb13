"""Candidates: settings worth trying on views that look like these."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from coview.core.fuse import fuses_sparse
from coview.core.tiles import SymmetricTiles
from coview.kernels import RBF, Kernel, NeighborGraph
from coview.preprocess.profile import ViewProfile
from coview.runtime import fits_in_memory
from coview.views import Views


@dataclass(frozen=True)
class Candidate:
    """One setting: a preparation for each view, a kernel for all, the balance of sum and product, weights of views."""

    steps: tuple[str, ...]
    kernel: Kernel
    rho: float
    kappa: tuple[float, ...]


def _directions(look: ViewProfile) -> str:
    return "standard" if look.no_direction else "l2"


def _rare_columns(look: ViewProfile) -> str:
    return "tfidf+l2" if look.word_counts else _directions(look)


def _small_values(look: ViewProfile) -> str:
    return "log1p+" + _directions(look) if look.wide_range else _directions(look)


# What each way of looking at data makes of a view. Ways that come to the same for all views count once.
WAYS: tuple[Callable[[ViewProfile], str], ...] = (_directions, _rare_columns, _small_values)


def candidates(views: Views) -> list[Candidate]:
    """Return what to try: neighbour graphs on views prepared in each way, and similarities at large on some of them.

    More ways, kernels and balances were measured (docs/quality.md): they make the best candidate a little better and
    the choice much worse.
    """
    looks = [ViewProfile.of(x) for x in views.values()]
    ways = list(dict.fromkeys(tuple(way(look) for look in looks) for way in WAYS))
    even = (1.0,) * len(views)
    graphs = [Candidate(way, NeighborGraph(), rho, even) for way in ways for rho in _balances(views, (1.0, 0.25))]
    at_large = [Candidate(way, RBF(), rho, even) for way in ways[:2] for rho in _balances(views, (0.25,))]
    return graphs + at_large


def affordable(candidate: Candidate, n_samples: int) -> bool:
    """Return whether the candidate can be fitted on all samples in the available memory."""
    sparse = fuses_sparse([candidate.kernel.sparse] * len(candidate.steps))
    return sparse or fits_in_memory(bytes_to_fit(n_samples))


def bytes_to_fit(n_samples: int) -> int:
    """Return the memory of a dense fit: a few n×n matrices."""
    return 3 * SymmetricTiles.nbytes(n_samples, np.float32)


def _balances(views: Views, rhos: tuple[float, ...]) -> tuple[float, ...]:
    """One view is its own product: rho says nothing there."""
    return rhos if len(views) > 1 else (1.0,)
