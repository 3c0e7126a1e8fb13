"""Settings optimised by the true labels, with the same number of evaluations for each method and data set.

    python -m benchmarks.paper.optimise                                 all methods on all data sets of the paper
    python -m benchmarks.paper.optimise --sets imgc --methods TMvKSCR   some of them

The first evaluations are random settings, half of them the same for all views. The next ones combine two of the best
settings so far and change a few parameters; the last ones change numbers of the best settings a little. Three of four
start from the best by the labels that are compared with the published number, and one from the best by both assigners
and all sources of labels. The parameters are the scaling of each view, its kernel, the bandwidth or offset of this
kernel in units of the median distance, and those of the method. Rows are stored as they are computed, and proposals
depend only on the seed and on earlier rows, so an interrupted search resumes to the same result. The script replaces
one block of docs/paper/ari.md if there are rows of all searches.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, product
from math import exp, inf
from operator import itemgetter
from pathlib import Path
from time import perf_counter
from typing import Any
from zlib import crc32

# Before NumPy is imported: evaluations run in parallel processes, with one thread each.
for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np  # noqa: E402

from benchmarks.markdown import reflow  # noqa: E402
from benchmarks.paper import plan, tables  # noqa: E402
from benchmarks.paper.tables import comparable  # noqa: E402
from benchmarks.sweep import KEY, STEPS, Data, Experiment, Row, preprocessed, read_rows, sweep  # noqa: E402
from coview.kernels import RBF, Kernel, NormalizedPolynomial  # noqa: E402

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "paper" / "ari.md"
SEARCH: Mapping[str, Any] = plan.SETTINGS["optimised"]
METHODS: tuple[str, ...] = tuple(SEARCH["methods"])
SIDE_BY_SIDE = "side by side"
KIND = "optimised"  # of the rows
Point = dict[str, Any]  # the value of each parameter


@dataclass(frozen=True)
class Choice:
    """A parameter with a few values."""

    values: tuple[Any, ...]

    def draw(self, rng: np.random.Generator) -> Any:
        return self.values[rng.integers(len(self.values))]

    def near(self, value: Any, rng: np.random.Generator) -> Any:
        """Return another value."""
        others = [one for one in self.values if one != value]
        return others[rng.integers(len(others))] if others else value


@dataclass(frozen=True)
class Real:
    """A number between two ends; the lower end itself has the probability `at_low`."""

    low: float
    high: float
    at_low: float = 0.0

    def draw(self, rng: np.random.Generator) -> float:
        value = rng.uniform(self.low, self.high)
        return self.low if rng.random() < self.at_low else round(value, 4)

    def near(self, value: float, rng: np.random.Generator) -> float:
        """Return a number at a distance from hundredths to a third of the range: coarse and fine steps."""
        return self.low if rng.random() < self.at_low / 2 else self._moved(value, rng, -2.2, -0.4)

    def very_near(self, value: float, rng: np.random.Generator) -> float:
        """Return a number at a distance of at most some hundredths of the range."""
        return self._moved(value, rng, -3.5, -1.5)

    def _moved(self, value: float, rng: np.random.Generator, *log10_steps: float) -> float:
        step = (self.high - self.low) * 10 ** rng.uniform(*log10_steps)
        return round(float(np.clip(value + rng.normal(0, step), self.low, self.high)), 4)


Space = dict[str, Choice | Real]


def space(method: str, data: Data) -> Space:
    """Return the parameters of a method on a data set."""
    views = data.views.names
    kernel = {"kernel": Choice(tuple(SEARCH["kernels"])), "scale": Real(*SEARCH["log_scale"])}
    if method == "KSC (best)":
        return {"view": Choice(tuple(views)), "scaling": Choice(STEPS), **kernel}
    found: Space = {f"scaling of {view}": Choice(STEPS) for view in views}
    if method == "KSC (concat)":
        return found | kernel
    found |= {f"{name} of {view}": kind for view in views for name, kind in kernel.items()}
    if method == "TMvKSCR":
        return found | {"rho": Real(0, 1)} | {f"kappa of {view}": Real(0, 3, at_low=1 / 3) for view in views}
    if method == "MvKSC":
        return found | {"log_gamma": Real(*SEARCH["log_gamma"])}
    return found | {
        "scheme": Choice(("pairwise", "centroid")),
        "embedding": Choice((None, *views)),
        "log_coupling": Real(*SEARCH["log_coupling"]),
    }


@dataclass(frozen=True)
class Distances:
    """Median squared distances of a data set, each computed once."""

    data: Data
    _known: dict[Any, float] = field(default_factory=dict)

    def median(self, steps: tuple[str, ...], layout: str) -> float:
        """Return the median between two rows of a view, or of all columns side by side, after preprocessing."""
        if layout != SIDE_BY_SIDE:  # other views do not matter
            steps = tuple(step if view == layout else "none" for view, step in zip(self.data.views, steps, strict=True))
        if (steps, layout) not in self._known:
            [x] = preprocessed(self.data.views, steps, layout).values()
            sigma2 = RBF().resolve(x, np.random.default_rng(0)).sigma2
            assert sigma2 is not None
            self._known[steps, layout] = sigma2
        return self._known[steps, layout]


def experiment(method: str, distances: Distances, point: Point) -> Experiment:
    """Return the fit at a point."""
    views = distances.data.views.names

    def kernel(steps: tuple[str, ...], layout: str, suffix: str = "") -> Kernel:
        return _kernel(point[f"kernel{suffix}"], point[f"scale{suffix}"], distances.median(steps, layout))

    steps = tuple(point.get(f"scaling of {view}", point.get("scaling")) for view in views)
    same: dict[str, Any] = {"preprocess": steps, "assigners": plan.assigners(distances.data)}
    if method.startswith("KSC"):
        layout = point.get("view", SIDE_BY_SIDE)
        return Experiment(method, plan.as_published("ksc", kernel=kernel(steps, layout)), layout=layout, **same)
    of_views = [kernel(steps, view, f" of {view}") for view in views]
    if method == "TMvKSCR":
        kappa = [point[f"kappa of {view}"] for view in views]
        own = {"rho": point["rho"], "kappa": kappa if any(kappa) else [1.0] * len(views)}
        return Experiment(method, plan.as_published("tmvkscr", kernel=of_views, **own), per_view=True, **same)
    if method == "MvKSC":
        estimator = plan.as_published("mvksc", kernel=of_views, gamma=_rounded(exp(point["log_gamma"])))
        return Experiment(method, estimator, per_view=True, **same)
    own = {"scheme": point["scheme"], "embedding": point["embedding"], "max_iter": SEARCH["sweeps"]}
    own["coupling"] = _rounded(exp(point["log_coupling"]))
    return Experiment(method, plan.as_published("coreg", kernel=of_views, **own), preprocess=steps)


def _kernel(kind: str, log_scale: float, median: float) -> Kernel:
    """Return a kernel with its bandwidth or offset in units of the median squared distance, or of its square root."""
    if kind == "rbf":
        return RBF(_rounded(exp(log_scale) * median))
    return NormalizedPolynomial(int(kind.removeprefix("normpoly")), _rounded(exp(log_scale) * median**0.5))


def _rounded(value: float) -> float:
    return float(f"{value:.5g}")


def propose(number: int, places: Space, ranked: Sequence[Point], rng: np.random.Generator) -> Point:
    """Return the point of an evaluation: random, then made of two of the best points so far, then near one of them."""
    if number < SEARCH["random"] or not ranked:
        drawn = {name: place.draw(rng) for name, place in places.items()}
        return _same_for_all_views(drawn) if rng.random() < SEARCH["same"] else drawn
    refines = number >= SEARCH["random"] + SEARCH["recombined"]
    best = ranked[: SEARCH["refined" if refines else "parents"]]
    pair = [best[int(len(best) * rng.random() ** 2)] for _ in range(2)]  # better points more often
    if refines:
        numbers = {name: place for name, place in places.items() if isinstance(place, Real)}
        return pair[0] | {name: numbers[name].very_near(pair[0][name], rng) for name in _some(numbers, rng)}
    groups = {name: name.partition(" of ")[2] or name for name in places}  # those of a view are inherited together
    chosen = {group: pair[rng.integers(2)] for group in dict.fromkeys(groups.values())}
    point = {name: chosen[groups[name]][name] for name in places}
    return point | {name: places[name].near(point[name], rng) for name in _some(places, rng)}


def _same_for_all_views(point: Point) -> Point:
    """Return a point whose views all have the parameters of the first one."""
    first: Point = {}
    for name, value in point.items():
        first.setdefault(name.partition(" of ")[0], value)
    return {name: first[name.partition(" of ")[0]] for name in point}


def _some(places: Mapping[str, Choice | Real], rng: np.random.Generator) -> list[str]:
    """Return the names of a few parameters, at least one."""
    some = rng.random(len(places)) < SEARCH["changes"] / len(places)
    some[rng.integers(len(places))] = True
    return [name for name, one in zip(places, some, strict=True) if one]


@dataclass
class Search:
    """One method on one data set, with the rows of its evaluations in a file."""

    data: Data
    method: str
    path: Path
    rows: list[Row] = field(default_factory=list)
    points: dict[str, Point] = field(default_factory=dict)  # by settings, because two points can have the same

    def run(self, evaluations: int, n_jobs: int | None = 1, until: float = inf) -> None:
        """Evaluate settings in batches until a time of the clock; rows in the file are not computed again."""
        key = itemgetter(*KEY)
        on_file = {key(row): row for row in read_rows(self.path)}
        for batch in self._batches(evaluations):
            keys = [key(result) for one in batch for result in one.results(self.data)]
            if all(one in on_file for one in keys):
                self.rows += [on_file[one] for one in keys]
            elif perf_counter() < until:
                self.rows += sweep(self.data, batch, self.path, n_jobs=n_jobs)
            else:
                break

    def _batches(self, evaluations: int) -> Iterator[list[Experiment]]:
        """Yield the experiments of each batch; the next batch needs their rows."""
        places, distances = space(self.method, self.data), Distances(self.data)
        stream = crc32(f"{self.data.name} {self.method}".encode())
        for start in range(0, evaluations, SEARCH["batch"]):
            ranked = self._ranked(comparable(self.method, self.data.name)), self._ranked(lambda row: True)
            batch: dict[str, Experiment] = {}
            for number in range(start, min(start + SEARCH["batch"], evaluations)):
                rng = np.random.default_rng([SEARCH["seed"], stream, number])
                point = propose(number, places, ranked[number % 4 == 3], rng)
                one = experiment(self.method, distances, point)
                batch[one.settings] = one
                self.points.setdefault(one.settings, point)
            yield list(batch.values())

    def _ranked(self, keep: Callable[[Row], bool]) -> list[Point]:
        """Return the points by the best ARI of their rows; ties by the settings, so the order of rows is irrelevant."""
        best: dict[str, float] = {}
        for row in self.rows:
            if row["error"] is None and keep(row):
                best[row["settings"]] = max(row["ari"], best.get(row["settings"], -inf))
        return [self.points[settings] for settings in sorted(best, key=lambda one: (-best[one], one))]


def path_of(folder: Path, dataset: str, method: str) -> Path:
    """Return the file of the rows of one search."""
    name = re.sub("[^a-z]+", "-", method.lower()).strip("-")
    return folder / f"{KIND}-{dataset}-{name}.jsonl"


def stored(folder: Path, name: str, method: str) -> list[Row]:
    """Return the rows on file of one search, without those of other settings.toml files."""
    search = Search(plan.data_set(name), method, path_of(folder, name, method))
    search.run(SEARCH["evaluations"], until=-inf)
    return [row | {"kind": KIND} for row in search.rows]


def main() -> None:
    sets = [names[0] for names in plan.paper_sets().values()]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="*", default=sets, choices=sets, metavar="NAME", help="names of data sets")
    parser.add_argument("--methods", nargs="*", default=METHODS, choices=METHODS, metavar="NAME")
    parser.add_argument("--evaluations", type=int, default=SEARCH["evaluations"], help="fewer are an unfinished search")
    parser.add_argument("--seconds", type=float, default=inf, help="stop after the batch that reaches this time")
    parser.add_argument("--rows", type=Path, default=HERE / "rows", help="folder of the rows, to resume a search")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="number of processes")
    parser.add_argument("--page", type=Path, default=PAGE, help="the page with the block of optimised settings")
    options = parser.parse_args()
    end = perf_counter() + options.seconds
    for name, method in product(plan.available(options.sets), options.methods):
        if perf_counter() > end:
            break
        search = Search(plan.data_set(name), method, path_of(options.rows, name, method))
        search.run(options.evaluations, options.jobs, until=end)
        kept = {"compared": comparable(method, name), "any": lambda row: True}
        best = {rule: tables.best_row(search.rows, name, method, "ari", keep) for rule, keep in kept.items()}
        shown = ", ".join(f"{rule} {row['ari']:.3f}" for rule, row in best.items() if row is not None)
        print(f"{name}, {method}: ARI {shown} after {tables.n_settings(search.rows)} evaluations", flush=True)
    rows = {each: stored(options.rows, *each) for each in product(plan.available(sets), METHODS)}
    if missing := [", ".join(each) for each, found in rows.items() if not found]:  # the block would lose their lines
        sys.exit(f"{options.page.name} is not written: no rows of {missing[0]} and {len(missing) - 1} more")
    every = list(chain.from_iterable(rows.values()))
    options.page.write_text(reflow(tables.with_optimised(options.page.read_text(), every)))


if __name__ == "__main__":
    main()
