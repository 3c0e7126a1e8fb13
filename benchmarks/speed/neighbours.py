"""Nearest-neighbour search of all rows: seconds, recall and excess distance, as a table.

    python -m benchmarks.speed.neighbours cloud clusters tanh sine --rows 200000 --seeds 3
    python -m benchmarks.speed.neighbours fashion3v_20000_pool hdigit10000 --threads 1 2

Generated rows have 64 columns by default:

- cloud: one Gaussian cloud;
- clusters: ten Gaussian clusters with centres from a Gaussian of 1.5 times their standard deviation;
- tanh: a curved surface, tanh(Z W) with Gaussian Z (8 columns) and W;
- sine: a curved surface, sin(1.5 Z W + b) with Z uniform on [-1, 1] (8 columns), Gaussian W and uniform phases b;
- waves: a surface that is curved more strongly, sin(Z W + b) with Gaussian Z;
- network: a curved surface, tanh(2 Z W) W' / 6 with Z uniform on [-1, 1], 32 hidden columns, and noise of 0.01.

Recall is the part of the 10 nearest neighbours that is found, for 400 rows; excess distance is how much further away
the tenth neighbour found is than the true tenth neighbour, on average.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from time import perf_counter, process_time

import numpy as np

from benchmarks.data import load
from coview.base.runtime import Workers
from coview.neighbors.duplicates import Duplicates
from coview.neighbors.exact import ExactSearch
from coview.neighbors.nearest import nearest_neighbors

K = 10
QUERIES = 400
LATENT = 8


def cloud(n: int, width: int, rng: np.random.Generator) -> np.ndarray:
    return rng.standard_normal((n, width))


def clusters(n: int, width: int, rng: np.random.Generator) -> np.ndarray:
    return 1.5 * rng.standard_normal((10, width))[rng.integers(10, size=n)] + rng.standard_normal((n, width))


def tanh(n: int, width: int, rng: np.random.Generator) -> np.ndarray:
    return np.tanh(rng.normal(size=(n, LATENT)) @ rng.normal(size=(LATENT, width)))


def sine(n: int, width: int, rng: np.random.Generator) -> np.ndarray:
    latent, phases = rng.uniform(-1, 1, size=(n, LATENT)), rng.uniform(0, 2 * np.pi, size=width)
    return np.sin(1.5 * latent @ rng.normal(size=(LATENT, width)) + phases)


def waves(n: int, width: int, rng: np.random.Generator) -> np.ndarray:
    latent, phases = rng.normal(size=(n, LATENT)), rng.uniform(0, 2 * np.pi, size=width)
    return np.sin(latent @ rng.normal(size=(LATENT, width)) + phases)


def network(n: int, width: int, rng: np.random.Generator) -> np.ndarray:
    hidden = np.tanh(2 * rng.uniform(-1, 1, size=(n, LATENT)) @ rng.normal(size=(LATENT, 32)))
    return hidden @ rng.normal(size=(32, width)) / 6 + 0.01 * rng.standard_normal((n, width))


GENERATORS: dict[str, Callable[[int, int, np.random.Generator], np.ndarray]] = {
    f.__name__: f for f in (cloud, clusters, tanh, sine, waves, network)
}


def data_sets(name: str, rows: list[int], width: int, seeds: int) -> Iterator[tuple[str, np.ndarray]]:
    """Yield the draws of a generator, or the views of a stored data set, with their names."""
    if name in GENERATORS:
        for n in rows:
            for seed in range(seeds):
                generated = GENERATORS[name](n, width, np.random.default_rng(seed)).astype(np.float32)
                yield f"{name}, seed {seed}", generated
    else:
        for view, x in load(name)[0].items():
            yield f"{name}, {view}", x


def search_times(x: np.ndarray, threads: int, **settings: float) -> tuple[float, float, object]:
    """Return wall-clock and processor seconds of a search, and the neighbours."""
    duplicates = Duplicates(x)
    with Workers(threads) as workers:
        start = perf_counter(), process_time()
        near = nearest_neighbors(x, duplicates, K, workers.map, **settings)
        return perf_counter() - start[0], process_time() - start[1], near


def quality(x: np.ndarray, near: object) -> tuple[float, float]:
    """Return recall and excess distance on evenly spaced rows that are searched exactly."""
    queries = np.linspace(1, len(x) - 2, QUERIES).astype(np.int64)  # others than those of the estimate
    exact = ExactSearch(x).near(x[queries], K, own=queries)
    first = np.searchsorted(exact.queries, np.arange(len(queries)))[:, None] + np.arange(K)
    found, distances = near.rows[queries], near.distances[queries]
    recall = (exact.rows[first][:, :, None] == found[:, None, :]).any(axis=2).mean()
    return float(recall), float((distances[:, -1] / exact.distances[first][:, -1] - 1).mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="+", help=f"{', '.join(GENERATORS)}, or stored data sets")
    parser.add_argument("--rows", type=int, nargs="+", default=[200_000])
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--threads", type=int, nargs="+", default=[2])
    parser.add_argument("--recall", type=float, nargs="+", help="targets; by default that of the search")
    given = parser.parse_args()
    print("| data | rows | columns | threads | seconds | processor seconds | recall | excess distance |")
    print("|---|---|---|---|---|---|---|---|")
    for name in given.data:
        for label, x in data_sets(name, given.rows, given.width, given.seeds):
            for settings in [{"recall": each} for each in given.recall or []] or [{}]:
                for threads in given.threads:
                    wall, spent, near = search_times(x, threads, **settings)
                    recall, excess = quality(x, near)
                    target = f", target {settings['recall']}" if settings else ""
                    cells = [label + target, f"{len(x):,}", x.shape[1], threads, f"{wall:.2f}", f"{spent:.2f}"]
                    print("|", " | ".join(map(str, cells)), f"| {recall:.3f} | {excess:.2%} |", flush=True)


if __name__ == "__main__":
    main()
