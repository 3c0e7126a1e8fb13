"""Speed and memory as ratios, measured in one process: `make bench` writes them into docs/performance.md.

The two functions of a ratio alternate, and the ratio is the median over the repetitions, so that other load of the
machine affects both or is an outlier. Peak memory is the largest resident size of a child process during the call,
minus its size before.

A column of the table has the figures of the version before, measured by the same script on the same machine:
`PYTHONPATH=<sources before> python -m benchmarks.speed.run --out before.json`, then `make bench BEFORE=before.json`.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from time import perf_counter

import numpy as np
import scipy.sparse as sp

from benchmarks.markdown import ROOT, write_block
from benchmarks.memory import reset_peak, resident_bytes
from coview import RBF, Coview, FixedSize, TMvKSCR, read_views
from coview.base.runtime import Workers, count_threads
from coview.core.tiles import SymmetricTiles
from tests import naive

WIDTHS = (64, 225, 144, 73, 128)  # the views of NUS, the data set of the paper's table with the most views
CLUSTERS = 10
RHO = 0.25


def make_views(n: int, widths: tuple[int, ...] = WIDTHS, dtype: str = "float64", seed: int = 0) -> list[np.ndarray]:
    """Return Gaussian clusters that overlap in each view and are separable in all views together."""
    rng = np.random.default_rng(seed)
    cluster = rng.integers(CLUSTERS, size=n)
    return [
        (rng.standard_normal((CLUSTERS, d))[cluster] + 2 * rng.standard_normal((n, d))).astype(dtype) for d in widths
    ]


def without_some(views: list[np.ndarray], rate: float = 0.3, seed: int = 0) -> list[np.ndarray]:
    """Return the views with missing rows; each sample keeps at least one view."""
    rng = np.random.default_rng(seed)
    lacks = rng.random((len(views[0]), len(views))) < rate
    lacks[lacks.all(axis=1), 0] = False
    return [np.where(lacks[:, [v]], x.dtype.type(np.nan), x) for v, x in enumerate(views)]


def bandwidths(views: list[np.ndarray]) -> list[float]:
    return [2 * x.shape[1] * float(x.var()) for x in views]


def model(views: list[np.ndarray], **settings) -> TMvKSCR:
    kernels = [RBF(s) for s in bandwidths(views)]
    return TMvKSCR(CLUSTERS, rho=RHO, kernel=kernels, random_state=0, **settings)


def seconds(*functions: Callable[[], object], repeats: int = 5) -> np.ndarray:
    """Return the times of functions that alternate, as an array of shape (repeats, functions)."""
    times = np.empty((repeats, len(functions)))
    for row in times:
        for i, function in enumerate(functions):
            start = perf_counter()
            function()
            row[i] = perf_counter() - start
    return times


def ratio(above: Callable[[], object], below: Callable[[], object], repeats: int) -> float:
    """Return the time of one function over that of another: the median over the repetitions."""
    times = seconds(above, below, repeats=repeats)
    return float(np.median(times[:, 0] / times[:, 1]))


def three_ratios(above: Callable[[], object], below: Callable[[], object], repeats: int, digits: int = 1) -> str:
    """Return the ratio of three runs, to show how much it varies; a target holds for each of them."""
    return ", ".join(f"{ratio(above, below, repeats):.{digits}f}" for _ in range(3))


def record_products(function: Callable[[], object]) -> list[tuple[int, ...]]:
    """Run a fit and return the shapes of the arrays that its tiles are multiplied with."""
    shapes: list[tuple[int, ...]] = []
    original = SymmetricTiles.__matmul__

    def recorded(self, x):
        shapes.append(np.shape(x))
        return original(self, x)

    SymmetricTiles.__matmul__ = recorded
    try:
        function()
    finally:
        SymmetricTiles.__matmul__ = original
    return shapes


def augmented(x: np.ndarray, dtype: type) -> np.ndarray:
    """Return the rows with two more columns, as in the products of RBF."""
    return np.hstack([x, np.ones((len(x), 2))]).astype(dtype)


def fit_lower_bound(views: list[np.ndarray], dtype: type, shapes: list[tuple[int, ...]]) -> Callable[[], None]:
    """Return a function with only the products of rows, the exponentials and the products with vectors of a fit."""
    n = len(views[0])
    rows = [augmented(x, dtype) for x in views]
    workers = Workers(None)
    tiles = SymmetricTiles(n, dtype, workers)
    for tile in tiles.tiles:
        tile.fill(0.5)
    exponents = np.full(2**15, -0.5, dtype)
    thread = threading.local()  # each thread has a buffer that stays in its cache: the bound excludes memory traffic

    def product(x: np.ndarray, t: int, r: slice, c: slice) -> None:
        if not hasattr(thread, "products"):
            thread.products = np.empty(1024 * 1024, dtype)
        np.matmul(x[r], x[c].T, out=thread.products[: tiles.tiles[t].size].reshape(tiles.tiles[t].shape))

    def exponential(t: int, r: slice, c: slice) -> None:
        if not hasattr(thread, "similarities"):
            thread.similarities = np.empty_like(exponents)
        for start in range(0, tiles.tiles[t].size, len(exponents)):
            some = min(len(exponents), tiles.tiles[t].size - start)
            np.exp(exponents[:some], out=thread.similarities[:some])

    def run() -> None:
        with workers:
            for x in rows:
                tiles.for_each(partial(product, x))
            for _ in rows:
                tiles.for_each(exponential)
            for shape in shapes:
                tiles @ np.ones(shape)

    return run


def predict_lower_bound(views: list[np.ndarray], m: int, dtype: type, rows: int) -> Callable[[], None]:
    """Return a function with only the products and exponentials of predicting these rows."""
    views = [augmented(x, dtype) for x in views]
    train = [x[:m] / 100 for x in views]  # exponents stay small
    coefficients = np.ones((m, CLUSTERS - 1), dtype)
    blocks = [slice(start, start + rows) for start in range(0, len(views[0]), rows)]

    def block(part: slice) -> None:
        for x, t in zip(views, train, strict=True):
            similarities = x[part] @ t.T
            np.exp(similarities, out=similarities)
            similarities @ coefficients

    def run() -> None:
        with Workers(None) as workers:
            workers.map(block, blocks)

    return run


def sparse_views(n: int, seed: int = 0) -> list[sp.csr_array]:
    rng = np.random.default_rng(seed)
    cluster = rng.integers(CLUSTERS, size=n)
    views = []
    for d in (5000, 8000):
        counts = sp.random_array((n, d), density=0.01, rng=rng, format="csr")
        topics = sp.csr_array(np.kron(np.eye(CLUSTERS), np.ones(d // CLUSTERS))[cluster] * (rng.random((n, d)) < 0.05))
        views.append(sp.csr_array(counts + topics))
    return views


def peak_memory(task: str, *arguments: object) -> dict[str, float]:
    """Run a task in a child process and return its measurements, with the growth of its peak memory in bytes."""
    command = [sys.executable, "-m", __spec__.name, "--child", task, *map(str, arguments)]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(run.stdout.splitlines()[-1])


def child(task: str, *arguments: str) -> None:
    """Measure the peak memory of one task in this process."""
    import sklearn.cluster  # noqa: F401 - loaded before the measurement starts

    def growth(function: Callable[[], object]) -> str:
        reset_peak()
        before = resident_bytes("VmRSS")
        function()
        return json.dumps({"bytes": resident_bytes("VmHWM") - before})

    if task == "fit":
        n, n_views, width, dtype = int(arguments[0]), int(arguments[1]), int(arguments[2]), arguments[3]
        views = make_views(n, (width,) * n_views, dtype)
        fitted = model(views, dtype=dtype)
        model([x[:50] for x in views], dtype=dtype).fit([x[:50] for x in views])
        views = without_some(views, float(arguments[4])) if len(arguments) > 4 else views
        print(growth(partial(fitted.fit, views)))
    elif task == "coview":
        views = make_views(int(arguments[0]))
        Coview(CLUSTERS, random_state=0).fit([x[:500] for x in views])
        print(growth(partial(Coview(CLUSTERS, random_state=0).fit, views)))
    elif task == "predict":
        n, m = int(arguments[0]), int(arguments[1])
        with tempfile.TemporaryDirectory() as folder:
            files = []
            for i, d in enumerate(WIDTHS):
                file = np.lib.format.open_memmap(f"{folder}/{i}.npy", "w+", np.float32, (n, d))
                for rows in range(0, n, 20_000):
                    file[rows : rows + 20_000] = make_views(min(20_000, n - rows), (d,), "float32", seed=rows)[0]
                files.append(file)
            views = [np.array(x[:m]) for x in files]
            fitted = model(views, dtype="float32").fit(views)
            inputs = [np.array(x) for x in files]  # in memory before the measurement, which excludes the inputs
            fitted.predict([x[:10] for x in inputs])
            print(growth(partial(fitted.predict, inputs)))


def megabytes(n: float) -> str:
    return f"{n / 1e6:.0f} MB"


def measure(quick: bool) -> list[tuple[str, str, str]]:
    """Return all cases as (what, figure, target)."""
    repeats = 2 if quick else 7
    rows: list[tuple[str, str, str]] = []

    def add(what: str, figure: str, target: str = "") -> None:
        rows.append((what, figure, target))
        print(f"{what}: {figure}" + (f"  (target: {target})" if target else ""), flush=True)

    n = 1000 if quick else 4000
    views = make_views(n)
    s2 = bandwidths(views)
    for dtype, kind in (("float32", np.float32), ("float64", np.float64)):
        ours = model(views, dtype=dtype)
        shapes = record_products(partial(ours.fit, views))
        fit, bound = partial(ours.fit, views), fit_lower_bound(views, kind, shapes)
        plain = three_ratios(lambda: naive.plain_fit(views, s2, RHO, CLUSTERS), fit, repeats)
        targets = ("at least 8", "at most 1.6") if dtype == "float32" else ("", "")
        add(f"fit, N={n}, V=5, {dtype}: plain NumPy / ours, three runs", plain, targets[0])
        above = three_ratios(fit, bound, 2 * repeats, digits=2)
        add(f"fit, N={n}, V=5, {dtype}: ours / lower bound, three runs", above, targets[1])
    add_scaling(add, quick, repeats)
    add_predict(add, quick, repeats)
    add_defaults(add, quick, repeats)
    add_memory(add, quick)
    add_others(add, quick, repeats, views)
    add_coview(add, quick, repeats)
    add_missing(add, quick, repeats)
    add_neighbours(add, quick, repeats)
    add_reading(add, quick, repeats)
    return rows


def add_reading(add: Callable[..., None], quick: bool, repeats: int) -> None:
    """Add the time of reading a table of few rows and many columns, such as genes."""
    width = 5_000 if quick else 50_000
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "genes.npy"
        np.save(path, np.random.default_rng(0).normal(size=(24, width)))
        ours, theirs = np.median(
            seconds(lambda: read_views({"a": path}), lambda: np.load(path), repeats=repeats), axis=0
        )
    add(f"read_views, .npy, 24 rows of {width} columns, and numpy.load", f"{ours:.2f} s, {theirs:.2f} s", "under 1 s")


def add_scaling(add: Callable[..., None], quick: bool, repeats: int) -> None:
    sizes = (500, 1000) if quick else (1000, 2000, 4000, 8000)
    data = [make_views(n) for n in sizes]
    for dtype in ("float32", "float64"):
        models = [model(views, dtype=dtype) for views in data]
        for i, (small, large) in enumerate(pairwise(sizes)):
            fits = [partial(models[j].fit, data[j]) for j in (i + 1, i)]
            grown = ratio(*fits, repeats=repeats)
            add(f"fit, V=5, {dtype}: N={large} / N={small}", f"{grown:.2f}", "at most 4.4")
    n = sizes[-2]
    few, many = (make_views(n, (650 // n_views,) * n_views) for n_views in (5, 10))
    times = np.array([[eigen_seconds(many), eigen_seconds(few)] for _ in range(2 * repeats)])
    step = f"{np.median(times[:, 0] / times[:, 1]):.2f}"
    add(f"eigen step, N={n}, 650 columns in total: V=10 / V=5", step, "at most 1.15")
    for n_views in (2, 10):
        views, five = make_views(n, (130,) * n_views), make_views(n, (130,) * 5)
        grown = ratio(*(partial(model(v, dtype="float32").fit, v) for v in (views, five)), repeats=repeats)
        add(f"fit, N={n}, 130 columns each, float32: V={n_views} / V=5", f"{grown:.2f}")


def eigen_seconds(views: list[np.ndarray]) -> float:
    """Fit and return the seconds from the last Gram matrix to the eigenvectors."""
    marks: dict[str, float] = {}
    model(views, dtype="float32", progress=lambda stage, done, total: marks.update({stage: perf_counter()})).fit(views)
    return marks["eigenvectors"] - marks[f"similarities of view{len(views) - 1}"]


def add_predict(add: Callable[..., None], quick: bool, repeats: int) -> None:
    n, m = (20_000, 500) if quick else (200_000, 1000)
    views = make_views(2 * n, dtype="float32")
    half = [x[:n] for x in views]
    fitted = model([x[:m] for x in views], dtype="float32").fit([x[:m] for x in views])
    bounds = {rows: predict_lower_bound(half, m, np.float32, rows) for rows in (128, 256, 512)}
    once = max(ratio(lambda: fitted.predict(half), bound, 3) for bound in bounds.values())  # the tightest bound
    twice = ratio(lambda: fitted.predict(views), lambda: fitted.predict(half), max(repeats // 2, 2))
    add(f"predict, {n} rows, m={m}, V=5, float32: ours / lower bound", f"{once:.2f}", "at most 2")
    add(f"predict: {2 * n} / {n} rows", f"{twice:.2f}", "at most 2.2")
    peak = megabytes(peak_memory("predict", n, m)["bytes"])
    add(f"predict: peak memory above the inputs, {n} rows", peak, "under 400 MB")


def add_defaults(add: Callable[..., None], quick: bool, repeats: int) -> None:
    """Add the times of models with dtype="auto"."""
    n, m = (20_000, 500) if quick else (1_000_000, 1000)
    views = make_views(n, dtype="float32")
    fixed = FixedSize(model([x[:m] for x in views]), n_train=m, random_state=0)
    bound = predict_lower_bound(views, m, np.float32, 512)
    times = seconds(partial(fixed.fit, views), partial(fixed.predict, views), bound, repeats=2)
    for what, figure in zip(("fit and labels", "predict"), np.median(times[:, :2] / times[:, 2:], axis=0), strict=True):
        add(f"FixedSize, {n} rows, m={m}, V=5: {what} / lower bound of predict", f"{figure:.2f}", "at most 1.5")
    some = [x[:10_000] for x in views]
    del views, bound
    longer = ratio(partial(fixed.fit, some), partial(fixed.predict, some), repeats)
    add(f"FixedSize, {len(some[0])} rows, m={m}, V=5: fit and labels / predict", f"{longer:.2f}")
    few = make_views(500 if quick else 2000)
    slower = ratio(*(partial(model(few, dtype=dtype).fit, few) for dtype in ("auto", "float32")), repeats=3 * repeats)
    add(f"fit, N={len(few[0])}, V=5: dtype auto / float32", f"{slower:.2f}")


def add_memory(add: Callable[..., None], quick: bool) -> None:
    n = 4000 if quick else 8000
    for dtype in ("float32", "float64"):
        grown = {}
        for n_views in (2, 10):
            grown[n_views] = peak_memory("fit", n, n_views, 650 // n_views, dtype)["bytes"]
            one = SymmetricTiles.nbytes(n, dtype)
            multiple = grown[n_views] / one
            rows = 650 * n * np.dtype(dtype).itemsize / one
            add(
                f"fit, N={n}, V={n_views}, {dtype}: peak memory / one matrix of symmetric tiles",
                f"{multiple:.2f}",
                f"at most about 3.2, including {rows:.2f} for copied rows",
            )
        add(f"fit, N={n}, {dtype}: peak memory V=10 / V=2", f"{grown[10] / grown[2]:.2f}", "at most 1.1")
    if not quick:
        big = peak_memory("fit", 30_000, 3, 130, "float32")
        add("fit, N=30000, V=3, float32: peak memory", f"{big['bytes'] / 1e9:.1f} GB", "at most 8 GB")


def add_others(add: Callable[..., None], quick: bool, repeats: int, views: list[np.ndarray]) -> None:
    from sklearn.cluster import SpectralClustering

    stacked = np.hstack(views)
    gamma = 1 / (2 * stacked.shape[1] * stacked.var())
    other = SpectralClustering(CLUSTERS, affinity="rbf", gamma=gamma, random_state=0)
    ours = model(views)
    times = three_ratios(lambda: other.fit(stacked), lambda: ours.fit(views), max(repeats // 2, 2))
    what = f"N={len(stacked)}, V=5: SpectralClustering of scikit-learn, stacked views / ours, three runs"
    add(what, times, "at least 5")
    n = 1000 if quick else 4000
    sparse = sparse_views(n)
    dense = [x.toarray() for x in sparse]
    settings = {"kernel": RBF(2.0), "rho": 0.5, "random_state": 0, "dtype": "float32"}
    models = [TMvKSCR(CLUSTERS, **settings) for _ in range(2)]
    slower = ratio(lambda: models[0].fit(sparse), lambda: models[1].fit(dense), 3)
    add(f"fit, N={n}, 5000 and 8000 columns, 6 % filled: sparse / dense", f"{slower:.2f}")
    start = perf_counter()
    try:
        TMvKSCR(2, kernel=RBF(1.0)).fit(np.zeros((2_000_000, 1), np.float32) + np.arange(2_000_000)[:, None])
    except MemoryError as error:
        add("a fit of 2,000,000 samples is refused", f"{perf_counter() - start:.2f} s: {error}", "under a second")


def add_coview(add: Callable[..., None], quick: bool, repeats: int) -> None:
    """Add the times of `Coview` as multiples of others, and its memory."""
    repeats = min(repeats, 3)
    small, middle, large = (200, 400, 1000) if quick else (2000, 20_000, 100_000)

    def fit(n: int, n_clusters: int | str = CLUSTERS, n_jobs: int | None = None) -> Callable[[], object]:
        estimator, views = Coview(n_clusters, n_jobs=n_jobs, random_state=0), data[n]
        return lambda: estimator.fit(views)

    data = {n: make_views(n) for n in (small, middle, large)}
    for n in (small, middle):
        single = TMvKSCR(CLUSTERS, random_state=0)
        multiple = ratio(fit(n), lambda n=n, single=single: single.fit(data[n]), repeats)
        add(f"Coview(k), N={n}, V=5: fit / one fit of TMvKSCR", f"{multiple:.1f}")
    for n in (small, middle):
        multiple = ratio(fit(n, "auto"), fit(n), repeats)
        add(f'Coview, N={n}, V=5: fit with "auto" / fit with k', f"{multiple:.1f}")
    grown = ratio(fit(large), fit(middle), 1 if quick else 2)
    add(f"Coview(k), V=5: fit, N={large} / N={middle}", f"{grown:.1f}", f"at most {1.2 * large / middle:g}")
    faster = ratio(fit(middle, n_jobs=2), fit(middle, n_jobs=1), repeats)
    add(f"Coview(k), N={middle}, V=5: two threads / one thread", f"{faster:.2f}", "below 1")
    for n in (middle, large):
        peak = peak_memory("coview", n)["bytes"] / sum(x.nbytes for x in data[n])
        add(f"Coview(k), N={n}, V=5: peak memory of a fit / views", f"{peak:.1f}")


def add_missing(add: Callable[..., None], quick: bool, repeats: int) -> None:
    n = 1000 if quick else 4000
    views = make_views(n)
    some = without_some(views)
    for rho in (0.5, 1.0):
        dense = model(views, dtype="float32").set_params(rho=rho)
        longer = ratio(lambda dense=dense: dense.fit(some), lambda dense=dense: dense.fit(views), 3 * repeats)
        what = f"fit, N={n}, V=5, float32, rho={rho:g}: 30 % of missing views / complete"
        add(what, f"{longer:.2f}", "at most 1.2")
    n = 2000 if quick else 20_000
    views = make_views(n, (10,) * 3)
    some = without_some(views)
    graphs = TMvKSCR(CLUSTERS, random_state=0)
    longer = ratio(lambda: graphs.fit(some), lambda: graphs.fit(views), repeats)
    add(f"fit, N={n}, V=3, neighbour graphs: 30 % of missing views / complete", f"{longer:.2f}", "at most 1.2")
    n = 4000 if quick else 8000
    peaks = [peak_memory("fit", n, 5, 130, "float32", *rate)["bytes"] for rate in ([0.3], [])]
    what = f"fit, N={n}, V=5, float32: peak memory with 30 % of missing views / complete"
    add(what, f"{peaks[0] / peaks[1]:.2f}", "at most 1.1")


def add_neighbours(add: Callable[..., None], quick: bool, repeats: int) -> None:
    from benchmarks.speed import neighbours

    n = 12_000 if quick else 20_000
    x = neighbours.sine(n, 64, np.random.default_rng(0)).astype(np.float32)
    threads = [partial(neighbours.search_times, x, count) for count in (2, 1)]
    faster = ratio(*threads, repeats=repeats)
    add(f"neighbours, {n} rows on a curved surface: two threads / one thread", f"{faster:.2f}", "below 1")
    n = 12_000 if quick else 100_000
    for name, least in (("sine", 0.95), ("cloud", 0.6)):
        x = neighbours.GENERATORS[name](n, 64, np.random.default_rng(0)).astype(np.float32)
        found = {}

        def search(x: np.ndarray = x, found: dict[str, object] = found) -> None:
            found["near"] = neighbours.search_times(x, 2)[2]

        def product(x: np.ndarray = x) -> None:
            with Workers(2) as workers:
                workers.map(lambda start: x[start : start + 256] @ x.T, range(0, len(x) // 8, 256))

        part = ratio(search, product, 1 if quick else 2) / 8
        recall, _ = neighbours.quality(x, found["near"])
        add(f"neighbours, {n} rows, {name}: search / product of all rows", f"{part:.2f}", "at most 1")
        add(f"neighbours, {n} rows, {name}: recall", f"{recall:.3f}", f"at least {least}")


def describe_machine() -> str:
    model_name = next(
        (line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line),
        platform.processor(),
    )
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    import scipy
    import sklearn

    return (
        f"{count_threads(None)} threads on {os.cpu_count()} × {model_name}, {memory:.0f} GiB; "
        f"Python {platform.python_version()}, NumPy {np.__version__}, SciPy {scipy.__version__}, "
        f"scikit-learn {sklearn.__version__}"
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="small sizes, as a test of the script; writes nothing")
    parser.add_argument("--out", type=Path, help="write the figures to this JSON file, and not into the page")
    parser.add_argument("--before", type=Path, help="such a file of the version before, for a column of the table")
    parser.add_argument("--child", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(*options.child)
        return
    rows = measure(options.quick)
    if options.out:
        options.out.write_text(json.dumps({what: figure for what, figure, _ in rows}, indent=1))
    if options.quick or options.out:
        return
    before = json.loads(options.before.read_text()) if options.before else {}
    table = ["| what | before | measured | target |", "|---|---|---|---|"]
    table += [f"| {what} | {before.get(what, '')} | {figure} | {target} |" for what, figure, target in rows]
    lines = [f"{describe_machine()}.", "", *table]
    write_block(ROOT / "docs" / "performance.md", "<!-- measured -->", "<!-- end -->", lines)


if __name__ == "__main__":
    main()
