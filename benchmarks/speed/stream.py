"""Prediction of rows from files: time against the lower bound, peak memory, Parquet against memory-mapped files.

Every run is a separate child process, which separates their peak memory. The lower bound is that of `run.py`, measured
before and after on at most 100,000 rows in memory and scaled to all rows.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

import numpy as np

from benchmarks.memory import resident_bytes
from benchmarks.speed.run import CLUSTERS, WIDTHS, make_views, model, predict_lower_bound, seconds
from coview.io.stream import ViewsReader, label_file

N_TRAIN = 1000
CHUNK = 50_000
BOUND_ROWS = 100_000


def write_sources(folder: Path, n: int) -> None:
    """Write the views as float32, as .npy and as Parquet files; all views have the same clusters."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    truth = np.random.default_rng(0).integers(CLUSTERS, size=n)
    for number, width in enumerate(WIDTHS):
        rng = np.random.default_rng(number + 1)
        centres = rng.standard_normal((CLUSTERS, width), dtype=np.float32)
        npy = np.lib.format.open_memmap(folder / f"view{number}.npy", "w+", np.float32, (n, width))
        names = [f"x{j}" for j in range(width)]
        schema = pa.schema([(name, pa.float32()) for name in names])
        with pq.ParquetWriter(folder / f"view{number}.parquet", schema) as parquet:
            for start in range(0, n, CHUNK):
                some = truth[start : start + CHUNK]
                x = centres[some] + 2 * rng.standard_normal((len(some), width), dtype=np.float32)
                npy[start : start + CHUNK] = x
                parquet.write_table(pa.table([np.ascontiguousarray(column) for column in x.T], names=names))
        del npy


def sources(folder: Path, ending: str) -> ViewsReader:
    return ViewsReader({f"view{number}": folder / f"view{number}.{ending}" for number in range(len(WIDTHS))})


def child(task: str, folder: Path, ending: str) -> None:
    """Read or label all rows in this process; print the seconds and the peak memory."""
    reader = sources(folder, ending)
    if task == "label":
        train = sources(folder, "npy").take(np.arange(N_TRAIN))
        fitted = model(list(train.values()), dtype="float32").fit(train)
        fitted.predict(train)
        start = perf_counter()
        label_file(fitted, reader, folder / f"labels_{ending}.npy")
    else:
        start = perf_counter()
        for _ in reader:  # input validation checks every value, so memory-mapped files are read completely
            pass
    took = perf_counter() - start
    print(json.dumps({"seconds": took, "bytes": resident_bytes("VmHWM")}))


def measured(task: str, folder: Path, ending: str) -> dict[str, float]:
    command = [sys.executable, "-m", __spec__.name, "--child", task, str(folder), ending]
    run = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(run.stdout.splitlines()[-1])


def lower_bound(n: int) -> float:
    """Return the seconds of the products and exponentials alone for n rows, with the best of three block sizes."""
    rows = min(n, BOUND_ROWS)
    views = make_views(rows, dtype="float32")
    times = [seconds(predict_lower_bound(views, N_TRAIN, np.float32, size), repeats=3) for size in (128, 256, 512)]
    return min(float(np.median(t)) for t in times) * n / rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        task, folder, ending = options.child
        child(task, Path(folder), ending)
        return
    n = options.rows
    needed, free = 2.5 * 4 * sum(WIDTHS) * n, shutil.disk_usage(tempfile.gettempdir()).free
    if needed > free:
        parser.error(f"{n} rows need {needed / 1e9:.1f} GB in {tempfile.gettempdir()}, which has {free / 1e9:.1f} GB")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_sources(folder, n)
        bounds = [lower_bound(n)]
        npy, parquet = (measured("label", folder, ending) for ending in ("npy", "parquet"))
        read_npy, read_parquet = (measured("read", folder, ending) for ending in ("npy", "parquet"))
        bounds.append(lower_bound(n))
        same = np.array_equal(np.load(folder / "labels_npy.npy"), np.load(folder / "labels_parquet.npy"))
    bound = float(np.mean(bounds))
    over = (parquet["seconds"] - read_parquet["seconds"]) / npy["seconds"]
    print(f"{n} rows, V={len(WIDTHS)}, m={N_TRAIN}, float32")
    print(f"lower bound: {bound:.2f} s (before {bounds[0]:.2f}, after {bounds[1]:.2f})")
    print(f"npy: {npy['seconds']:.2f} s, / lower bound {npy['seconds'] / bound:.2f}  (target: at most 2)")
    print(f"npy: peak memory {npy['bytes'] / 1e9:.2f} GB  (target: under 1.5)")
    print(f"parquet: {parquet['seconds']:.2f} s, peak memory {parquet['bytes'] / 1e9:.2f} GB")
    print(f"reading only: npy {read_npy['seconds']:.2f} s, parquet {read_parquet['seconds']:.2f} s")
    print(f"(parquet - reading only) / npy: {over:.2f}  (target: at most 1.6)")
    print(f"labels from npy and parquet are equal: {same}")


if __name__ == "__main__":
    main()
