"""Runs of the command: all files with numbers, without times and paths."""

from __future__ import annotations

import contextlib
import io
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.nets.settings import DATA, N_NEW, N_TRAINING

RUNS: Mapping[str, tuple[str, ...]] = {
    "coview": ("fit", "-o", "run"),
    "coview k": ("fit", "-k", "3", "-o", "run", "--stability", "2"),
    "tmvkscr": ("fit", "-k", "3", "-m", "tmvkscr", "--kernel", "rbf", "--rho", "0.5", "-o", "run"),
    "ksc": ("fit", "-k", "3", "-m", "ksc", "-o", "run"),
    "opmc": ("fit", "-k", "3", "-m", "opmc", "--preprocess", "standard", "-o", "run"),
    "fixed size": ("fit", "-k", "3", "-m", "tmvkscr", "--n-train", "60", "-o", "run"),
}
_NOT_COMPARED = ("seconds", "versions", "command")


def results() -> dict[str, str]:
    """Return the texts that all runs write, by run and file."""
    found = {}
    for name, typed in RUNS.items():
        with _folder_with_files():
            _call(*typed, "--ids=id", *_views("train"))
            _call("predict", "run/model.safetensors", "--ids=id", *_views("new"), "-o", "new.csv")
            for file in ("run/summary.json", "run/labels.csv", "run/map.csv", "new.csv"):
                if Path(file).exists():
                    found[f"{name}: {file}"] = _comparable(Path(file))
    return found


def _comparable(path: Path) -> str:
    text = path.read_text()
    if path.suffix != ".json":
        return text
    summary: dict[str, Any] = {key: value for key, value in json.loads(text).items() if key not in _NOT_COMPARED}
    return json.dumps(summary, indent=1)


@contextlib.contextmanager
def _folder_with_files() -> Iterator[None]:
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as folder, contextlib.chdir(folder):
        for part, n, seed in (("train", N_TRAINING, 0), ("new", N_NEW, 1)):
            for view, x in DATA["dense"](n, seed).items():
                names = [f"s{i:03}" for i in range(n)]
                header = ["id", *(f"{view}{j}" for j in range(x.shape[1]))]
                rows = [[name, *map(repr, row)] for name, row in zip(names, x.tolist(), strict=True)]
                lines = [",".join(row) for row in (header, *rows)]
                Path(f"{part}-{view}.csv").write_text("\n".join(lines) + "\n")
        yield


def _views(part: str) -> list[str]:
    return [f"--view={name}={part}-{name}.csv" for name in ("text", "image")]


def _call(*typed: str) -> None:
    from coview.cli import app

    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        try:
            app([*typed])
        except SystemExit as stop:
            assert stop.code == 0 or not Path("run/model.safetensors").exists(), printed.getvalue()


def first_difference(name: str, before: str, now: str) -> str:
    """Return the first line that differs."""
    for number, (old, new) in enumerate(zip(before.splitlines(), now.splitlines(), strict=False), start=1):
        if old != new:
            return f"{name}, line {number}: {re.sub(' +', ' ', old)[:90]!r} is now {re.sub(' +', ' ', new)[:90]!r}"
    return f"{name}: {len(before.splitlines())} lines are now {len(now.splitlines())}"
