"""Prediction of many rows with Dask: two workers against one, and both against one process.

The views are .npy files, which the workers read in blocks. Each worker has one thread. The clusters of one and of two
workers alternate, and the ratio is the median over the repetitions. The machine needs two idle processors: with other
load, two workers get a larger share of the processors than one, and the ratio can fall below one half.
"""

from __future__ import annotations

import argparse
import logging
import os
import tempfile
from pathlib import Path
from time import perf_counter

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")  # before NumPy is imported: the single process also has one thread

import dask  # noqa: E402
import dask.array as da  # noqa: E402
import numpy as np  # noqa: E402
from distributed import Client, LocalCluster  # noqa: E402

from coview import RBF, FixedSize, TMvKSCR  # noqa: E402
from coview.distributed import DaskViews, fit, predict  # noqa: E402

WIDTHS = {"a": 64, "b": 225, "c": 144, "d": 73, "e": 128}
CLUSTERS = 10
GOAL = 0.65


def write_views(folder: Path, rows: int, block: int) -> dict[str, Path]:
    """Write Gaussian clusters that overlap in each view and are separable in all views together."""
    rng = np.random.default_rng(0)
    truth = rng.integers(CLUSTERS, size=rows)
    paths = {}
    for name, width in WIDTHS.items():
        paths[name] = folder / f"{name}.npy"
        file = np.lib.format.open_memmap(paths[name], mode="w+", dtype=np.float32, shape=(rows, width))
        centres = rng.standard_normal((CLUSTERS, width), dtype=np.float32)
        for start in range(0, rows, block):
            part = truth[start : start + block]
            file[start : start + block] = centres[part] + 2 * rng.standard_normal((len(part), width), dtype=np.float32)
        file.flush()
    return paths


def open_view(path: Path, block: int) -> da.Array:
    """Return a view whose blocks are read by the workers; Dask would send the values of a memory map."""
    rows, width = np.load(path, mmap_mode="r").shape
    heights = [min(block, rows - start) for start in range(0, rows, block)]

    def read(block_info=None):
        (start, stop), _ = block_info[None]["array-location"]
        return np.load(path, mmap_mode="r")[start:stop]

    return da.map_blocks(read, chunks=(tuple(heights), (width,)), dtype=np.float32, meta=np.empty((0, 0), np.float32))


def local_cluster(workers: int) -> LocalCluster:
    return LocalCluster(
        n_workers=workers,
        threads_per_worker=1,
        processes=True,
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
        silence_logs=logging.CRITICAL,
    )


def timed(cluster: LocalCluster, model: FixedSize, views: DaskViews) -> tuple[float, np.ndarray]:
    with Client(cluster):
        start = perf_counter()
        labels = predict(model, views).compute()
        return perf_counter() - start, labels


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--block", type=int, default=10_000, help="rows in a block")
    parser.add_argument("--train", type=int, default=1000, help="training rows (m)")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--folder", help="folder of the temporary views")
    parser.add_argument(
        "--keep-memory",
        action="store_true",
        help="let workers keep freed memory; by default they return it, and every block allocates new pages",
    )
    settings = parser.parse_args()
    if settings.keep_memory:
        for variable in ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_"):
            dask.config.set({f"distributed.nanny.pre-spawn-environ.{variable}": str(2**28)})

    with tempfile.TemporaryDirectory(dir=settings.folder) as folder:
        paths = write_views(Path(folder), settings.rows, settings.block)
        views = DaskViews({name: open_view(path, settings.block) for name, path in paths.items()})
        kernels = {name: RBF(2.0 * 5 * width) for name, width in WIDTHS.items()}  # each column has a variance of 5
        inner = TMvKSCR(CLUSTERS, kernel=kernels, rho=0.5, dtype="float32", random_state=0)
        model = fit(FixedSize(inner, n_train=settings.train, random_state=0), views)

        start = perf_counter()
        expected = model.predict({name: np.load(path, mmap_mode="r") for name, path in paths.items()})
        alone = perf_counter() - start
        print(f"{settings.rows} rows, m={settings.train}, blocks of {settings.block} rows, {os.cpu_count()} processors")
        print(f"one process, one thread   {alone:8.2f} s")

        few = DaskViews({name: open_view(path, settings.block)[: 2 * settings.block] for name, path in paths.items()})
        ratios = []
        for _ in range(settings.repeats):
            times = {}
            for workers in (1, 2):
                with local_cluster(workers) as cluster:
                    timed(cluster, model, few)  # the workers import their modules
                    times[workers], labels = timed(cluster, model, views)
                assert np.array_equal(labels, expected), f"the labels of {workers} worker(s) differ"
                print(f"{workers} worker(s), one thread each {times[workers]:5.2f} s, the same labels")
            ratios.append(times[2] / times[1])
        print(f"two workers over one      {np.median(ratios):8.3f}   (goal: at most {GOAL})")
        busy = ", ".join(f"{load:.1f}" for load in os.getloadavg())
        print(f"load of the machine in the last 1, 5 and 15 minutes, this program included: {busy}")


if __name__ == "__main__":
    main()
