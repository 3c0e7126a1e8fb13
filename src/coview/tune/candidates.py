"""Candidates: the settings that a search evaluates, which depend on the profiles of the views."""

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
    """A setting: preprocessing steps of each view, one kernel, the weight of the sum, and weights of the views."""

    steps: tuple[str, ...]
    kernel: Kernel
    rho: float
    kappa: tuple[float, ...]


def _normalised_steps(profile: ViewProfile) -> str:
    return "standard" if profile.no_direction else "l2"


def _count_steps(profile: ViewProfile) -> str:
    return "tfidf+l2" if profile.word_counts else _normalised_steps(profile)


def _log_steps(profile: ViewProfile) -> str:
    return "log1p+" * profile.wide_range + _normalised_steps(profile)


# Rules that give the steps of a view. Rules that give the same steps for all views count once.
RULES: tuple[Callable[[ViewProfile], str], ...] = (_normalised_steps, _count_steps, _log_steps)


def candidates(views: Views) -> list[Candidate]:
    """Return neighbour graphs on views preprocessed by each rule, and RBF kernels on views preprocessed by two rules.

    More rules, kernels and values of rho make the best candidate slightly better and the selection much worse
    (docs/quality.md).
    """
    profiles = [ViewProfile.of(x) for x in views.values()]
    steps = list(dict.fromkeys(tuple(rule(profile) for profile in profiles) for rule in RULES))
    # The product of a single view is the view itself, so rho has no effect.
    graph_rhos, rbf_rhos = ((1.0, 0.25), (0.25,)) if len(views) > 1 else ((1.0,), (1.0,))
    kappa = (1.0,) * len(views)
    graphs = [Candidate(each, NeighborGraph(), rho, kappa) for each in steps for rho in graph_rhos]
    return graphs + [Candidate(each, RBF(), rho, kappa) for each in steps[:2] for rho in rbf_rhos]


def affordable(candidate: Candidate, n_samples: int) -> bool:
    """Return whether the candidate can be fitted on all samples in the available memory."""
    sparse = fuses_sparse([candidate.kernel.sparse] * len(candidate.steps))
    return sparse or fits_in_memory(bytes_to_fit(n_samples))


def bytes_to_fit(n_samples: int) -> int:
    """Return the memory of a dense fit: a few n×n matrices."""
    return 3 * SymmetricTiles.nbytes(n_samples, np.float32)
