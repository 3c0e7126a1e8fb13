"""What fits have in common: seeds, weights of views, warnings, and the results of methods that only label."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from coview.base.parameters import check_integer, check_number, is_number
from coview.base.text import plural
from coview.core.alternate import Alternation
from coview.core.assign import number_by_size
from coview.data.view import Array
from coview.data.views import Views
from coview.errors import InputError, Note
from coview.kernels import Kernel, Precomputed, by_view_name
from coview.model.model import Model
from coview.registry import check_name

Seed: TypeAlias = int | np.integer[Any] | np.random.Generator | np.random.RandomState | None
WeightsParameter: TypeAlias = float | Sequence[float] | Array | Mapping[str, float] | None

_LEAST_PER_CLUSTER = 2  # samples with a view


def check_iteration_limits(estimator: Any) -> None:
    """Raise an InputError if `max_iter` or `tol` of an estimator is no limit of iterations."""
    check_integer("max_iter", estimator.max_iter, 1)
    if not (is_number(estimator.tol) and estimator.tol == np.inf):  # which stops as early as possible
        check_number("tol", estimator.tol, 0)


def objective_of(loop: Alternation[Any]) -> dict[str, Any]:
    """Return the attributes with the objective of every iteration."""
    return {"objective_": loop.objective, "n_iter_": len(loop.objective)}


def note_on_convergence(estimator: Any, loop: Alternation[Any]) -> tuple[Note, ...]:
    """Return a warning if the iterations have not converged."""
    if loop.settled:
        return ()
    sentence = (
        f"{type(estimator).__name__} has not converged after max_iter={estimator.max_iter} iterations; "
        f"increase max_iter, or tol above {estimator.tol:g}"
    )
    return (Note(sentence, ConvergenceWarning),)


def model_of_labels(labels: Array, wanted: int, learnt: Mapping[str, Any], *notes: Note) -> Model:
    """Return the model of a method that only labels the training samples, by clusters of decreasing size."""
    numbered, order = number_by_size(labels)
    return Model(numbered, learnt, notes=(*notes, *note_on_fewer(len(order), wanted)))


def as_generator(random_state: Seed) -> np.random.Generator:
    """Return a generator of random numbers; an InputError says what `random_state` may be."""
    seed = random_state
    if isinstance(seed, np.random.RandomState):
        seed = seed.randint(2**31)
    try:
        if isinstance(seed, (bool, np.bool_, np.random.SeedSequence)):  # a SeedSequence could not be saved
            raise TypeError
        return np.random.default_rng(seed)
    except (TypeError, ValueError):
        raise InputError(
            f"random_state={seed!r}: expected an integer of at least 0, a NumPy Generator or RandomState, or None"
        ) from None


def as_part(estimator: Any, seed: int) -> Any:
    """Return an estimator for some of the samples: the same parameters with this seed, one thread and no messages."""
    copy = clone(estimator)
    own = copy.get_params(deep=False)
    fixed = {"random_state": seed, "n_jobs": 1, "progress": None, "verbose": 0}
    return copy.set_params(**{name: value for name, value in fixed.items() if name in own})


def require_enough_samples(n_clusters: int, n_samples: int) -> None:
    """Raise an InputError if there are more clusters than samples."""
    if n_samples < max(2, n_clusters):
        raise InputError(
            f"n_samples={n_samples} is too few for n_clusters={n_clusters}; give more samples or ask for fewer clusters"
        )


def note_on_many_clusters(n_clusters: int, n_samples: int) -> tuple[Note, ...]:
    """Return a warning if there are more clusters than half of the samples, so that some have only one sample."""
    if 2 * n_clusters <= n_samples:
        return ()
    sentence = (
        f"{n_clusters} clusters are requested for {n_samples} training samples, so some clusters can have only one "
        "sample; ask for fewer clusters or give more samples"
    )
    return (Note(sentence, ConvergenceWarning),)


def note_on_fewer(found: int, wanted: int) -> tuple[Note, ...]:
    """Return a warning if there are fewer clusters than requested."""
    if found >= wanted:
        return ()
    sentence = f"found {found} distinct clusters instead of n_clusters={wanted}: the samples may not differ enough"
    return (Note(sentence, ConvergenceWarning),)


def weights_per_view(
    parameter: str,
    weights: Any,
    names: tuple[str, ...],
    default: float,
    *,
    unnamed: float | None = None,
    may_vanish: bool = False,
) -> dict[str, float]:
    """Return the weight of each view, given as one number, a list in the order of the views, or a mapping by name.

    Views that a mapping does not name have the weight `unnamed`; if it is None, a mapping must name all views.
    """
    if weights is None:
        return dict.fromkeys(names, default)
    if is_number(weights):
        weights = [weights] * len(names)
    elif isinstance(weights, Mapping):
        given = {str(name): weight for name, weight in weights.items()}
        if unnamed is not None:
            for name in given:
                check_name(f"{parameter}: view", name, names)
            given = dict.fromkeys(names, unnamed) | given
        weights = list(by_view_name(parameter, given, names).values())
    elif isinstance(weights, (str, bool)) or not np.iterable(weights):
        raise InputError(f"{parameter}={weights!r}: expected a number, or one number for each view")
    if len(weights) != len(names):
        raise InputError(
            f"{parameter} has {len(weights)} numbers for {len(names)} views ({', '.join(names)}); give one for each"
        )
    checked = {
        name: check_number(f"{parameter}[{name!r}]", weight, 0) for name, weight in zip(names, weights, strict=True)
    }
    if not (may_vanish or any(checked.values())):
        raise InputError(f"{parameter}={list(checked.values())}: expected weights that are not all zero")
    return checked


def least_samples(n_clusters: int) -> int:
    """Return the least number of samples that need to have a view."""
    return _LEAST_PER_CLUSTER * n_clusters


def check_coverage(views: Views, n_clusters: int, kernels: Mapping[str, Kernel]) -> None:
    """Raise an InputError if a view has too few samples, or if no sample connects some views with the others."""
    least = least_samples(n_clusters)
    for name in views.present:
        if views.n_present(name) < least:
            raise InputError(
                f"view {name!r} has {views.n_present(name)} of {views.n_samples} samples, and "
                f"{plural(n_clusters, 'cluster')} {'need' if n_clusters > 1 else 'needs'} at least {least}; drop the "
                "view, or give more samples that have it (if n_train is set, increase it)"
            )
        if isinstance(kernels.get(name), Precomputed):
            raise InputError(
                f"view {name!r} has a precomputed kernel, which needs all samples, and "
                f"{views.n_samples - views.n_present(name)} lack it; drop these samples or give a table of features"
            )
    connected, others = _connected(views)
    if others:
        raise InputError(
            f"no sample has one of the views {', '.join(connected)} and also one of {', '.join(others)}, so nothing "
            "relates their clusters; cluster them separately, or add samples that have both"
        )


def _connected(views: Views) -> tuple[list[str], list[str]]:
    """Return the views that samples with several views connect to the first one, and the others."""
    everywhere = np.ones(views.n_samples, dtype=bool)
    masks = {name: views.present.get(name, everywhere) for name in views}
    first, *others = masks
    connected, reached = [first], masks[first].copy()
    while found := [name for name in others if (masks[name] & reached).any()]:
        for name in found:
            reached |= masks[name]
        connected += found
        others = [name for name in others if name not in found]
    return connected, others
