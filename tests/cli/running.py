"""Running commands, and files for them."""

import csv
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from coview.cli import app
from tests.conftest import make_blobs

SCRIPT = Path(sys.executable).with_name("coview")
ONE_THREAD = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}


def write_files(folder, views, names, truth=None):
    """Three views in three formats; the ids are in the two tables."""
    import pyarrow as pa
    from pyarrow import parquet

    folder.mkdir()
    columns = {"id": names, **{f"a{j}": x for j, x in enumerate(views["a"].T)}}
    parquet.write_table(pa.table(columns), folder / "a.parquet")
    np.save(folder / "b.npy", views["b"])
    with (folder / "c.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["id", *(f"c{j}" for j in range(views["c"].shape[1]))])
        rows.writerows([name, *map(repr, row)] for name, row in zip(names, views["c"].tolist(), strict=True))
    if truth is not None:
        (folder / "truth.csv").write_text(
            "id,kind\n" + "".join(f"{n},k{t}\n" for n, t in zip(names, truth, strict=True))
        )
    return [f"--view={name}={folder / file}" for name, file in {"a": "a.parquet", "b": "b.npy", "c": "c.csv"}.items()]


def split_blobs(folder):
    """Training samples, and new samples of the same clusters."""
    views, truth = make_blobs(120)
    names = [f"s{i:03}" for i in range(120)]
    old, new = slice(0, 90), slice(90, None)
    return {
        "folder": folder,
        "train": {name: x[old] for name, x in views.items()},
        "new": {name: x[new] for name, x in views.items()},
        "truth": truth[old],
        "train_files": write_files(folder / "train", {n: x[old] for n, x in views.items()}, names[old], truth[old]),
        "new_files": write_files(folder / "new", {n: x[new] for n, x in views.items()}, names[new]),
        "new_names": names[new],
        "train_names": names[old],
    }


def call(capsys, *typed):
    """Run a command in this process; return its exit code, standard output and standard error."""
    with pytest.raises(SystemExit) as stop:
        app([str(word) for word in typed])
    printed = capsys.readouterr()
    return stop.value.code, printed.out, printed.err


def refused(capsys, *typed, code=2):
    """Return the error line of a command that fails and leaves its folder unchanged."""
    before = sorted(Path.cwd().rglob("*"))
    found, out, err = call(capsys, *typed)
    assert found == code, err
    assert out == ""
    assert err.startswith("Error: ")
    assert err.count("\n") == 1
    assert "Traceback" not in err
    assert sorted(Path.cwd().rglob("*")) == before
    return err


def script(*typed):
    return subprocess.run([SCRIPT, *map(str, typed)], capture_output=True, text=True, env=ONE_THREAD, timeout=120)
