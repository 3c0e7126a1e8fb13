"""Stages of a benchmark and their stored rows, one for each data set and seed; an interrupted stage resumes."""

from __future__ import annotations

import json
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from joblib import Parallel, delayed

import coview
from benchmarks.sweep import Ledger

Row = dict[str, Any]


@dataclass(frozen=True)
class Stage:
    """What is measured on each data set with each seed."""

    path: Path  # of the rows
    measure: Callable[[str, int], Row]
    version: str  # of the measured code; rows of another version are not used
    names: Sequence[str]  # of the data sets

    def rows(self) -> list[Row]:
        """Return the stored rows in the order of the names, without an incomplete line of an interrupted run."""
        rows: list[Row] = []
        for line in self.path.read_text().splitlines() if self.path.exists() else []:
            try:
                rows.append(json.loads(line))
            except json.JSONDecodeError:
                continue
        places = {name: place for place, name in enumerate(self.names)}
        rows = [row for row in rows if row["version"] == self.version and row["data"] in places]
        return sorted(rows, key=lambda row: (places[row["data"]], row["seed"]))

    def resume(self, seeds: Iterable[int], jobs: int) -> None:
        """Measure all data sets with all seeds, except for the rows that are stored."""
        done = {(row["data"], row["seed"]) for row in self.rows()}
        left = [(name, seed) for seed in seeds for name in self.names if (name, seed) not in done]
        # Without batches: joblib sizes them by the fast data sets before, and would queue others behind a slow one.
        pool = Parallel(n_jobs=jobs, batch_size=1, return_as="generator_unordered")
        rows = pool(delayed(self._row)(name, seed) for name, seed in left)
        with Ledger(self.path) as ledger:
            for number, row in enumerate(rows, start=1):
                ledger.add([row])
                print(f"{self.path.stem}: {number} of {len(left)}, {row['data']} with seed {row['seed']}", flush=True)

    def complete_rows(self) -> list[Row]:
        """Return the rows of seeds with which all data sets were measured, so that means are over the same ones."""
        rows = self.rows()
        counts = Counter(row["seed"] for row in rows)
        return [row for row in rows if counts[row["seed"]] == len(self.names)]

    def _row(self, name: str, seed: int) -> Row:
        with warnings.catch_warnings(action="ignore"):
            return {"version": self.version, "data": name, "seed": seed} | self.measure(name, seed)


def code_hash(script: str, parts: Iterable[str], more: str = "", without: Iterable[str] = ()) -> str:
    """Return a hash of a script, of files and folders of coview without some files, and of further text."""
    home = Path(coview.__file__).parent
    places = [home / part for part in parts]
    files = [path for place in places for path in (sorted(place.rglob("*.py")) if place.is_dir() else [place])]
    left_out = {home / part for part in without}
    content = b"".join(path.read_bytes() for path in [*files, Path(script)] if path not in left_out)
    return sha256(content + more.encode()).hexdigest()[:12]
