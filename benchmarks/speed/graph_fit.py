"""Exact fits on neighbour graphs: time per stage, memory and agreement with the truth, as a table.

    python -m benchmarks.speed.graph_fit 20000 100000 1000000     generated samples, three views, ten clusters
    python -m benchmarks.speed.graph_fit --dense fashion3v_20000_pool     a stored set, with graphs and with RBF

Seconds are wall clock, with processor seconds in parentheses, which depend less on other load of the machine. Memory is
the largest resident size of the process up to then.
"""

from __future__ import annotations

import argparse
import resource
from time import perf_counter, process_time
from typing import Any

import numpy as np
from sklearn.metrics import adjusted_rand_score

from benchmarks.data import load
from coview import RBF, NeighborGraph, TMvKSCR

WIDTHS = (32, 64, 16)
CLUSTERS = 10
RHO = 0.25


def make_views(n: int, seed: int = 0) -> tuple[list[np.ndarray], np.ndarray]:
    """Return Gaussian clusters that overlap in every view, in float32."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(CLUSTERS, size=n)
    return [
        (1.5 * rng.standard_normal((CLUSTERS, d))[truth] + rng.standard_normal((n, d))).astype(np.float32)
        for d in WIDTHS
    ], truth


class Clock:
    """Wall clock and processor seconds of each stage, from the `progress` calls of a fit."""

    def __init__(self) -> None:
        self.stages: dict[str, tuple[float, float]] = {}
        self._last = perf_counter(), process_time()

    def __call__(self, stage: str, done: int, total: int) -> None:
        now = perf_counter(), process_time()
        name = stage.split(" of ")[0]
        before = self.stages.get(name, (0.0, 0.0))
        self.stages[name] = (before[0] + now[0] - self._last[0], before[1] + now[1] - self._last[1])
        self._last = now


def row(name: str, views: list[Any], truth: np.ndarray, n_clusters: int, **settings: Any) -> float:
    """Fit, print a row of the table, and return the processor seconds."""
    clock, start = Clock(), (perf_counter(), process_time())
    model = TMvKSCR(n_clusters, rho=RHO, random_state=0, progress=clock, **settings).fit(views)
    wall, spent = perf_counter() - start[0], process_time() - start[1]
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    stages = " | ".join(f"{s[0]:.1f} ({s[1]:.1f})" for s in clock.stages.values())
    ari = adjusted_rand_score(truth, model.labels_)
    print(f"| {name} | {stages} | {wall:.1f} ({spent:.1f}) | {memory:.1f} | {ari:.3f} |", flush=True)
    return spent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sizes", nargs="*", type=int, help="numbers of generated samples")
    parser.add_argument("--dense", metavar="SET", help="a stored data set, fitted with graphs and with RBF")
    parser.add_argument("--jobs", type=int, default=-1)
    given = parser.parse_args()
    TMvKSCR(CLUSTERS, kernel=NeighborGraph(), random_state=0).fit(make_views(500)[0])  # imports modules
    print("| fit | graphs | eigenvectors | scores | labels | all | GiB | ARI |\n|---|---|---|---|---|---|---|---|")
    for n in given.sizes:
        row(f"{n:,} generated", *make_views(n), CLUSTERS, kernel=NeighborGraph(), n_jobs=given.jobs)
    if given.dense:
        named, truth, _ = load(given.dense)
        views = list(named.values())
        settings: dict[str, Any] = {"n_jobs": given.jobs}
        k = len(np.unique(truth))
        graph = row(f"{given.dense}, graphs", views, truth, k, kernel=NeighborGraph(), **settings)
        single = row(f"{given.dense}, RBF, float32", views, truth, k, kernel=RBF(), dtype="float32", **settings)
        double = row(f"{given.dense}, RBF, float64", views, truth, k, kernel=RBF(), dtype="float64", **settings)
        print(f"\nprocessor seconds, RBF over graphs: {single / graph:.1f} in float32, {double / graph:.1f} in float64")


if __name__ == "__main__":
    main()
