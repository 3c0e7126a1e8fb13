"""Situations in which clusterings fail: groups of unequal size, curves, overlapping groups, and data without groups.

    python -m benchmarks.situations --out situations.jsonl --jobs 2
    python -m benchmarks.situations --out situations.jsonl --n 200 600 --seeds 100 101

Each row has one generated data set and seed: the adjusted Rand index of `Coview` with the true number of groups, and
what `Coview("auto")` finds. All data sets with one number of samples are measured before the next number. Rows are
stored as they are computed, so an interrupted run resumes. At the end the tables of docs/quality.md are printed, of the
seeds with which all data sets of a number of samples were measured. Nothing was chosen on the seeds from 100 on, which
are the default.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

# Before NumPy is imported: data sets run in parallel processes, with one thread each.
for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np  # noqa: E402
from scipy.linalg import toeplitz  # noqa: E402
from sklearn.datasets import make_circles, make_moons, make_swiss_roll  # noqa: E402
from sklearn.metrics import adjusted_rand_score  # noqa: E402

from benchmarks.provenance import commit  # noqa: E402
from benchmarks.quality.rows import Row, Stage, code_hash  # noqa: E402
from coview import Coview  # noqa: E402
from coview.core.agreement import jaccard_indices  # noqa: E402
from coview.data.view import Array  # noqa: E402

ROWS = Path(__file__).parent / "quality" / "situations.jsonl"  # where `make quality` looks for them
SEEDS = range(100, 105)
UNEQUAL, SHAPES, MANY, OVERLAPPING, WITHOUT = "unequal sizes", "shapes", "many groups", "overlapping", "without groups"
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
N_OTHERS = (200, 600, 2000)  # of the other kinds
N_MANY, SIZE_OF_MANY = 20, 75
GAP = 14.0  # standard deviations between unequal groups
# What the rows depend on. The words of the support and of the selection have no effect on them.
MEASURED_CODE = ("evaluate", "neighbors", "kernels", "core", "preprocess", "data")
NOT_MEASURED = ("evaluate/words.py",)


class Data(NamedTuple):
    """Two views and the true groups."""

    views: list[Array]
    truth: Array


class Situation(NamedTuple):
    """A generated data set: its kind and title, the number of samples, and a function of a random generator."""

    kind: str
    title: str
    n: int
    draw: Callable[[np.random.Generator], Data]

    @property
    def name(self) -> str:
        return f"{self.kind}, n = {self.n}, {self.title}"


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


def plane(draw: Callable[..., tuple[Array, Array]], n: int, rng: np.random.Generator, **settings: float) -> Data:
    """Return a set of points of scikit-learn in the plane, and the same rotated with a little noise."""
    x, truth = draw(n, random_state=int(rng.integers(2**31)), **settings)
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


def situations() -> list[Situation]:
    """Return all situations, those with few samples first."""
    found = []
    for n in N_SAMPLES:
        for sizes in SIZES:
            now, title = scaled(sizes, n), "/".join(map(str, sizes))
            found.append(Situation(UNEQUAL, title, n, lambda rng, now=now: groups(now, GAP, (5, 8), rng)))
    for n in N_OTHERS:
        for noise in (0.04, 0.06):
            moons = Situation(
                SHAPES, f"moons, noise {noise}", n, lambda rng, n=n, s=noise: plane(make_moons, n, rng, noise=s)
            )
            found.append(moons)
        rings = Situation(SHAPES, "rings", n, lambda rng, n=n: plane(make_circles, n, rng, noise=0.04, factor=0.45))
        found.append(rings)
        for gap in (2.5, 3.0, 4.0):
            now = scaled((1, 1, 1), n)
            title = f"3 groups, {gap} sd apart"
            found.append(
                Situation(OVERLAPPING, title, n, lambda rng, now=now, gap=gap: groups(now, gap, (10, 15), rng))
            )
        for title, draw in WITHOUT_GROUPS.items():
            alone = Situation(WITHOUT, title, n, lambda rng, n=n, draw=draw: Data(draw(n, rng), np.zeros(n, dtype=int)))
            found.append(alone)
    many = (SIZE_OF_MANY,) * N_MANY
    title = f"{N_MANY} groups of {SIZE_OF_MANY}"
    found.append(Situation(MANY, title, sum(many), lambda rng: groups(many, GAP, (20, 25), rng)))
    kinds = (UNEQUAL, SHAPES, MANY, OVERLAPPING, WITHOUT)
    return sorted(found, key=lambda each: (each.n, kinds.index(each.kind)))


def measure(name: str, seed: int) -> Row:
    """Return what is found in one situation; seeds of `Coview` are 0, and those of the data differ."""
    start = perf_counter()
    situation = next(each for each in situations() if each.name == name)
    views, truth = situation.draw(np.random.default_rng(seed))
    sizes = np.bincount(truth)
    known = smallest = None
    if len(sizes) > 1:
        labels = Coview(len(sizes), random_state=0, n_jobs=1).fit(views).labels_
        known = round(float(adjusted_rand_score(truth, labels)), 4)
        smallest = round(float(jaccard_indices(truth, labels, len(sizes))[sizes.argmin()].max()), 4)
    auto = Coview("auto", random_state=0, n_jobs=1).fit(views)
    return {
        "commit": commit(),
        "kind": situation.kind,
        "title": situation.title,
        "sizes": sizes.tolist(),
        "n": situation.n,
        "known_ari": known,  # with the true number of groups
        "smallest": smallest,  # Jaccard index of the smallest group with the most similar of these clusters
        "auto_number": auto.n_clusters_,
        "auto_ari": round(float(adjusted_rand_score(truth, auto.labels_)), 4),
        "auto_level": auto.support_.level if auto.support_ is not None else None,
        "seconds": round(perf_counter() - start, 1),
    }


def stages(path: Path, numbers: Iterable[int] | None = None) -> list[Stage]:
    """Return a stage for each number of samples, or for some of them."""
    version = code_hash(__file__, MEASURED_CODE, without=NOT_MEASURED)
    by_number: dict[int, list[str]] = {}
    for each in situations():
        if numbers is None or each.n in numbers:
            by_number.setdefault(each.n, []).append(each.name)
    return [Stage(path, measure, version, names) for names in by_number.values()]


def complete_rows(path: Path) -> list[Row]:
    """Return the stored rows of seeds with which all situations of a number of samples were measured."""
    return [row for stage in stages(path) for row in stage.complete_rows()]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    known = sorted({each.n for each in situations()})
    parser.add_argument("--out", type=Path, default=ROWS, help="file of the rows, to resume a run")
    parser.add_argument("--n", type=int, nargs="+", choices=known, help="only these numbers of samples")
    parser.add_argument("--seeds", type=int, nargs="+", default=list(SEEDS))
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="number of processes")
    options = parser.parse_args(arguments)
    for stage in stages(options.out, options.n):
        stage.resume(options.seeds, options.jobs)
    # The tables are in another file, because a change of their layout must not invalidate the rows.
    from benchmarks.quality import situation_tables

    for key, lines in situation_tables.tables(complete_rows(options.out)).items():
        print(f"\n{situation_tables.TITLES[key]}:\n", *lines, sep="\n")


if __name__ == "__main__":
    main()
