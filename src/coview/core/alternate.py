"""Alternating optimisation: the loop of all methods that update one unknown at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from coview.base.progress import report_iteration
from coview.data.view import Array

State = TypeVar("State")


@dataclass(frozen=True)
class Alternation(Generic[State]):
    """The result of a loop: its last state, the objective after every iteration, and whether it converged."""

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
    """Repeat a step, which returns the next state and its objective, until the objectives so far have converged."""
    trace: list[float] = []
    for done in range(1, max_iter + 1):
        state, value = step(state)
        trace.append(float(value))
        report_iteration(done, max_iter)
        if settled(trace):
            return Alternation(state, np.array(trace), True)
    return Alternation(state, np.array(trace), False)


def steady(tol: float, at_least: int = 2) -> Callable[[Sequence[float]], bool]:
    """Return the rule that the relative change of the objective is at most `tol`, after `at_least` iterations."""

    def settled(trace: Sequence[float]) -> bool:
        return len(trace) >= max(at_least, 2) and abs(trace[-1] - trace[-2]) <= tol * abs(trace[-1])

    return settled
