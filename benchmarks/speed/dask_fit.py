"""A graph fit with all rows on a Dask cluster: against the fit in memory, with killed workers, and memory by workers.

The views are .npy files, which the workers read in blocks. Each worker is a process with one thread. `memory` is the
largest resident memory of a worker in MiB above that of an idle one: the mean over the workers, and the largest. A kill
ends one worker process of the cluster that this script has started, at a moment that moves through the fit from run
to run; the nanny of the worker then starts another process.
"""

from __future__ import annotations

import argparse
import os
import signal
import tempfile
from pathlib import Path
from threading import Event, Thread
from time import perf_counter

import numpy as np
from distributed import Client, LocalCluster

from benchmarks.speed.dask_predict import local_cluster, open_view
from coview import NeighborGraph, TMvKSCR
from coview.distributed import DaskViews, fit

WIDTHS = {"a": 64, "b": 100, "c": 36}
CLUSTERS = 10
COMPARED = ("labels_", "scores_", "latent_", "eigenvalues_")


def write_views(folder: Path, rows: int) -> dict[str, Path]:
    """Write Gaussian clusters that overlap in each view: two views of full dimension, and one of a few dimensions."""
    rng = np.random.default_rng(0)
    truth = rng.integers(CLUSTERS, size=rows)
    paths = {}
    for name, width in WIDTHS.items():
        dimensions = 8 if name == "b" else width
        centres = rng.standard_normal((CLUSTERS, dimensions))
        x = centres[truth] + rng.standard_normal((rows, dimensions))
        if dimensions < width:
            x = np.tanh(x / 2) @ rng.standard_normal((dimensions, width)) + 0.01 * rng.standard_normal((rows, width))
        paths[name] = folder / f"{name}.npy"
        np.save(paths[name], x.astype(np.float32))
    return paths


def method(kernel: str) -> TMvKSCR:
    graph = NeighborGraph() if kernel == "neighbors" else "auto"
    return TMvKSCR(CLUSTERS, kernel=graph, n_jobs=1, random_state=0)


def compare(model: TMvKSCR, expected: TMvKSCR) -> str:
    """Return which attributes are equal bit by bit."""
    same = [name for name in COMPARED if np.array_equal(getattr(model, name), getattr(expected, name))]
    assert "labels_" in same, "the labels differ"
    return "all equal bit by bit" if len(same) == len(COMPARED) else f"equal: {', '.join(same)}"


def peak_memory(client: Client) -> list[float]:
    """Return the largest resident memory of each worker process so far, in MiB."""

    def peak() -> float:
        lines = Path("/proc/self/status").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) / 1024

    return list(client.run(peak).values())


def timed_fit(client: Client, views: DaskViews, kernel: str, workers: int) -> tuple[TMvKSCR, float]:
    client.wait_for_workers(workers, timeout=120)
    start = perf_counter()
    model = fit(method(kernel), views)
    return model, perf_counter() - start


def killed_fit(
    cluster: LocalCluster, client: Client, views: DaskViews, kernel: str, after: float
) -> tuple[TMvKSCR, float]:
    """Return a model and the seconds of its fit, during which one worker is killed, after so many events of tasks."""
    client.wait_for_workers(2, timeout=120)
    victim = sorted(client.run(os.getpid).values())[0]
    start, ended = cluster.scheduler.transition_counter, Event()

    def kill() -> None:
        while cluster.scheduler.transition_counter < start + after:
            if ended.wait(0.01):
                return
        os.kill(victim, signal.SIGKILL)

    killer = Thread(target=kill)
    killer.start()
    try:
        model, seconds = timed_fit(client, views, kernel, 2)
    finally:
        ended.set()
        killer.join()
    assert victim not in client.run(os.getpid).values(), "the fit ended before the worker was killed"
    return model, seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--block", type=int, default=8192, help="rows in a block")
    parser.add_argument("--kernel", choices=["auto", "neighbors"], default="auto")
    parser.add_argument("--workers", type=int, nargs="*", default=[1, 2, 4])
    parser.add_argument("--kills", type=int, default=10, help="fits on two workers of which one is killed")
    parser.add_argument("--folder", help="folder of the temporary views")
    settings = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=settings.folder) as folder:
        paths = write_views(Path(folder), settings.rows)
        start = perf_counter()
        expected = method(settings.kernel).fit({name: np.load(path, mmap_mode="r") for name, path in paths.items()})
        alone = perf_counter() - start
        print(f"{settings.rows} rows of {len(WIDTHS)} views, {sum(WIDTHS.values())} columns of float32")
        print(*expected.kernels_.values(), sep=", ")
        print(f"in memory, one thread: {alone:.1f} s", flush=True)
        views = DaskViews({name: open_view(path, settings.block) for name, path in paths.items()})
        for workers in settings.workers:
            with local_cluster(workers) as cluster, Client(cluster) as client:
                client.run(__import__, "coview.distributed")
                idle = peak_memory(client)
                model, seconds = timed_fit(client, views, settings.kernel, workers)
                used = [after - min(idle) for after in peak_memory(client)]
                memory = f"{np.mean(used):.0f} (largest {max(used):.0f}) MiB above {np.mean(idle):.0f}"
                print(f"{workers} worker(s): {seconds:.1f} s, memory {memory}, {compare(model, expected)}", flush=True)
        events = 0
        for kill in range(settings.kills):
            with local_cluster(2) as cluster, Client(cluster) as client:
                if kill == 0:  # how many events a fit has
                    timed_fit(client, views, settings.kernel, 2)
                    events = cluster.scheduler.transition_counter
                part = (kill + 0.5) / settings.kills
                model, seconds = killed_fit(cluster, client, views, settings.kernel, part * events)
                print(f"killed after {part:.0%}: {seconds:.1f} s, {compare(model, expected)}", flush=True)
                del model  # its rows on the cluster


if __name__ == "__main__":
    main()
