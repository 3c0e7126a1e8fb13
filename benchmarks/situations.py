"""Situations in which clusterings fail: groups of unequal size, curves, overlapping groups, and data without groups.

`python -m benchmarks.situations` prints a table of generated data sets: how often the number of clusters is right, and
the adjusted Rand index with the true number. Nothing was chosen on the seeds from 100 on, which are the default.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from typing import NamedTuple

# Before NumPy is imported: data sets run in parallel processes, with one thread each.
for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np  # noqa: E402
from scipy.linalg import toeplitz  # noqa: E402
from sklearn.datasets import make_circles, make_moons, make_swiss_roll  # noqa: E402
from sklearn.metrics import adjusted_rand_score  # noqa: E402

from benchmarks.markdown import table  # noqa: E402
from coview.evaluate.coview import Coview  # noqa: E402
from coview.views import Array  # noqa: E402

FIRST_SEED, SEEDS = 100, 5
SIZES = (
    (588, 12),
    (570, 30),
    (540, 60),
    (480, 90, 30),
    (480, 90, 24, 6),
    (5, 50, 500),
    (20, 60, 300),
    (200, 200, 200),
)
N_SAMPLES = (200, 600, 2000, 20_000)
LEAST_GROUP = 15  # samples, about the number of neighbours: smaller groups may be lost
GAP = 14.0  # standard deviations between unequal groups


class Data(NamedTuple):
    """Two views and the true groups."""

    views: list[Array]
    truth: Array


class Situation(NamedTuple):
    """A family of data sets: a name, the number of groups, and a function of a random generator."""

    family: str
    name: str
    n_clusters: int
    draw: Callable[[np.random.Generator], Data]


def groups(sizes: tuple[int, ...], gap: float, widths: tuple[int, int], rng: np.random.Generator) -> Data:
    """Return Gaussian groups in two views; the distance between two centres is `gap` standard deviations."""
    truth = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    views = []
    for width in widths:
        axes = np.linalg.qr(rng.normal(size=(max(width, len(sizes)),) * 2))[0][: len(sizes)]
        views.append((axes[:, :width] * gap / np.sqrt(2))[truth] + rng.normal(size=(len(truth), width)))
    return Data(views, truth)


def scaled(sizes: tuple[int, ...], n_samples: int) -> tuple[int, ...]:
    """Return sizes in these proportions, of at least two samples each."""
    return tuple(max(2, round(size * n_samples / sum(sizes))) for size in sizes)


def plane(draw: Callable[..., tuple[Array, Array]], rng: np.random.Generator, **settings: float) -> Data:
    """Return a set of points of scikit-learn in the plane, and the same rotated with a little noise."""
    x, truth = draw(600, random_state=int(rng.integers(2**31)), **settings)
    turned = x @ np.linalg.qr(rng.normal(size=(2, 2)))[0]
    return Data([x, turned + 0.01 * rng.normal(size=x.shape)], truth)


def lifted(points: Array, rng: np.random.Generator) -> list[Array]:
    """Return points of a curve or surface in two views of more columns, with noise."""
    n, d = points.shape
    return [
        points @ rng.normal(size=(d, width)) / np.sqrt(d) + 0.02 * rng.normal(size=(n, width)) for width in (10, 15)
    ]


def _series(n: int, width: int, rng: np.random.Generator) -> Array:
    x = rng.normal(size=(n, width))
    for i in range(1, n):
        x[i] += 0.95 * x[i - 1]
    return x


def _same(n: int, rng: np.random.Generator) -> list[Array]:
    x = rng.normal(size=(n, 10))
    return [y + 0.1 * rng.normal(size=y.shape) for y in (x, x @ np.linalg.qr(rng.normal(size=(10, 10)))[0])]


def _circle(n: int, rng: np.random.Generator) -> list[Array]:
    angle = rng.uniform(0, 2 * np.pi, n)
    return lifted(np.column_stack([np.cos(angle), np.sin(angle)]), rng)


def _curve(n: int, rng: np.random.Generator) -> list[Array]:
    t = rng.uniform(size=n)
    return lifted(np.column_stack([np.sin(3 * t), np.cos(5 * t), t]), rng)


def _factors(n: int, rng: np.random.Generator) -> list[Array]:
    factors = rng.normal(size=(n, 3))
    return [factors @ rng.normal(size=(3, width)) + rng.normal(size=(n, width)) for width in (20, 30)]


def _gradient(n: int, rng: np.random.Generator) -> list[Array]:
    t = rng.uniform(size=(n, 1))
    return [3 * t * rng.normal(size=(1, width)) + 0.5 * rng.normal(size=(n, width)) for width in (10, 15)]


def _correlated(n: int, width: int, rng: np.random.Generator) -> Array:
    return rng.normal(size=(n, width)) @ np.linalg.cholesky(toeplitz(0.8 ** np.arange(width))).T


# Views without groups: functions of the number of samples and the generator.
WITHOUT_GROUPS: dict[str, Callable[[int, np.random.Generator], list[Array]]] = {
    "Gaussian, independent views": lambda n, rng: [rng.normal(size=(n, width)) for width in (10, 15)],
    "Gaussian, equal views": _same,
    "uniform": lambda n, rng: [rng.uniform(size=(n, width)) for width in (5, 8)],
    "t, 2 degrees of freedom": lambda n, rng: [rng.standard_t(2, size=(n, width)) for width in (10, 15)],
    "log-normal": lambda n, rng: [np.exp(rng.normal(size=(n, width))) for width in (10, 15)],
    "Poisson": lambda n, rng: [rng.poisson(mean, size=(n, width)) * 1.0 for mean, width in ((3, 20), (1, 30))],
    "gradient": _gradient,
    "three factors": _factors,
    "circle": _circle,
    "open curve": _curve,
    "Swiss roll": lambda n, rng: lifted(make_swiss_roll(n, random_state=int(rng.integers(2**31)))[0] / 10, rng),
    "AR(1), independent views": lambda n, rng: [_series(n, width, rng) for width in (6, 8)],
    "multinomial words": lambda n, rng: [
        rng.multinomial(60, rng.dirichlet(np.ones(width)), size=n) * 1.0 for width in (300, 200)
    ],
    "correlated columns": lambda n, rng: [_correlated(n, width, rng) for width in (15, 25)],
}


def situations() -> Iterator[Situation]:
    """Yield all situations."""
    for n, sizes in product(N_SAMPLES, SIZES):
        now = scaled(sizes, n)
        name = "/".join(map(str, now))
        yield Situation(f"unequal, n = {n:,}", name, len(now), lambda rng, now=now: groups(now, GAP, (5, 8), rng))
    for noise in (0.04, 0.06):
        yield Situation("shapes", f"moons, noise {noise}", 2, lambda rng, s=noise: plane(make_moons, rng, noise=s))
    yield Situation("shapes", "rings", 2, lambda rng: plane(make_circles, rng, noise=0.04, factor=0.45))
    yield Situation("shapes", "20 groups of 75", 20, lambda rng: groups((75,) * 20, GAP, (20, 25), rng))
    for gap in (2.5, 3.0, 4.0):
        yield Situation("overlapping", f"{gap} sd", 3, lambda rng, gap=gap: groups((200,) * 3, gap, (10, 15), rng))
    for name, draw in WITHOUT_GROUPS.items():
        yield Situation("no groups", name, 1, lambda rng, draw=draw: Data(draw(600, rng), np.zeros(600, dtype=int)))


class Result(NamedTuple):
    """The adjusted Rand index with the true number, and the selected number."""

    known: float | None
    selected: int


def measure(place: int, seed: int) -> Result:
    """Return the result of one situation and seed."""
    situation = list(situations())[place]
    views, truth = situation.draw(np.random.default_rng(seed))
    known = None
    if situation.n_clusters > 1:
        labels = Coview(situation.n_clusters, random_state=0, n_jobs=1).fit(views).labels_
        known = float(adjusted_rand_score(truth, labels))
    return Result(known, Coview("auto", random_state=0, n_jobs=1).fit(views).n_clusters_)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--first-seed", type=int, default=FIRST_SEED)
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="number of processes")
    parser.add_argument("--family", help="only situations whose family starts with this")
    options = parser.parse_args()
    chosen = [(place, each) for place, each in enumerate(situations()) if each.family.startswith(options.family or "")]
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    with ProcessPoolExecutor(options.jobs) as pool:
        tasks = [(place, seed) for place, _ in chosen for seed in seeds]
        found = dict(zip(tasks, pool.map(measure, *zip(*tasks, strict=True)), strict=True))
    rows = []
    for place, each in chosen:
        results = [found[place, seed] for seed in seeds]
        known = [result.known for result in results if result.known is not None]
        numbers = [result.selected for result in results]
        right = sum(number == each.n_clusters for number in numbers)
        shown = ", ".join(map(str, numbers))
        rows.append((each.family, each.name, min(known) if known else "–", f"{right} of {len(numbers)}", shown))
    head = ("family", "data", "lowest ARI, number given", "number right", "selected")
    print("\n".join(table(head, rows)))


if __name__ == "__main__":
    main()
