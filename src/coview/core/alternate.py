"""Alternating optimisation: one loop for the methods that improve one unknown at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from coview.views import Array

State = TypeVar("State")


@dataclass(frozen=True)
class Alternation(Generic[State]):
    """How a loop ended: its last state, the objective after every round, and whether it settled."""

    state: State
    objective: Array
    settled: bool


def alternate(
    step: Callable[[State], tuple[State, float]],
    state: State,
    *,
    max_iter: int,
    settled: Callable[[Sequence[float]], bool],
) -> Alternation[State]:
    """Repeat a step, which returns the next state and its objective, until the objectives so far have settled."""
    trace: list[float] = []
    for _ in range(max_iter):
        state, value = step(state)
        trace.append(float(value))
        if settled(trace):
            return Alternation(state, np.array(trace), True)
    return Alternation(state, np.array(trace), False)


def steady(tol: float, at_least: int = 2) -> Callable[[Sequence[float]], bool]:
    """The usual rule: after so many rounds, the objective changed by less than this part of itself."""

    def settled(trace: Sequence[float]) -> bool:
        return len(trace) >= max(at_least, 2) and abs(trace[-1] - trace[-2]) <= tol * abs(trace[-1])

    return settled
