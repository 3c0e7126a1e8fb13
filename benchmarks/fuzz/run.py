"""Fuzz tests: seeded, bounded in time or number, and resumed if interrupted.

    python -m benchmarks.fuzz.run                          # every part for a few minutes
    python -m benchmarks.fuzz.run --part files --cases 5000 --seed 7
    python -m benchmarks.fuzz.run --part files --seed 7 --only 1234   # one case again

Outcomes are appended to PART-SEED.jsonl in the folder of --out; a run with the same seed continues there. The exit code
is 1 if there are findings.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from importlib import import_module
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from typing import Any

# Before NumPy is imported: commands are forked, and threads do not survive a fork.
for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

from benchmarks.fuzz.case import outcome_of  # noqa: E402


@dataclass(frozen=True)
class Part:
    """How many cases a part has, and the seconds that one may take."""

    n_cases: int
    seconds: float = 20.0
    n_processes: int = 2  # one for parts that start processes or measure them


PARTS = {
    "estimators": Part(20_000, 60.0),  # COMIC takes seconds for clear clusters
    "numerics": Part(300),
    "memory": Part(4, 300.0, 1),
    "files": Part(5000),
    "models": Part(5000),
    "faults": Part(400, 300.0, 1),
    "environment": Part(120, 300.0, 1),
    "dask": Part(24, 120.0, 1),
}


def _known(record: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in record.read_text().splitlines()] if record.exists() else []


def run_part(
    part: str,
    seed: int,
    n_cases: int,
    out: Path,
    seconds: float,
    only: int | None = None,
    share: tuple[int, int] = (0, 1),
) -> list[dict[str, Any]]:
    """Run the cases of a part that are not recorded yet; return the records of all.

    `share` is the number of this process and that of all processes, which share the cases.
    """
    out.mkdir(parents=True, exist_ok=True)
    record = out / f"{part}-{seed}.jsonl"
    known = _known(record) if only is None else []
    done, end = {row["number"] for row in known}, time.monotonic() + seconds
    with tempfile.TemporaryDirectory() as folder:
        cases = import_module(f"benchmarks.fuzz.{part}").cases(seed, Path(folder))
        for number, case in enumerate(islice(cases, n_cases if only is None else only + 1)):
            if number in done or number % share[1] != share[0] or only not in (None, number):
                continue
            if time.monotonic() > end:
                break
            outcome = {"number": number, **asdict(outcome_of(case, PARTS[part].seconds))}
            known.append(outcome)
            if only is None:
                with record.open("a") as file:  # one line in one write, because other processes append as well
                    file.write(json.dumps(outcome) + "\n")
            if outcome["finding"]:
                print(f"{part} {seed} {number}: {outcome['words']}: {outcome['finding']}", flush=True)
    return known


def run_in_processes(part: str, seed: int, n_cases: int, out: Path, seconds: float) -> list[dict[str, Any]]:
    """Run the cases of a part in its number of processes; return the records of all."""
    n = PARTS[part].n_processes
    with ProcessPoolExecutor(n, get_context("spawn")) as pool:
        for running in [pool.submit(run_part, part, seed, n_cases, out, seconds, None, (i, n)) for i in range(n)]:
            running.result()
    return _known(out / f"{part}-{seed}.jsonl")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=PARTS, action="append", help="a part; by default all")
    parser.add_argument("--cases", type=int, help="number of cases of each part")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=15.0, help="limit of each part")
    parser.add_argument("--out", type=Path, default=Path("fuzz"))
    parser.add_argument("--only", type=int, help="run this case alone")
    given = parser.parse_args()
    failed = False
    print("| part | cases | outcomes | longest case | findings |\n|---|---|---|---|---|")
    for part in given.part or PARTS:
        settings = (part, given.seed, given.cases or PARTS[part].n_cases, given.out, 60 * given.minutes)
        alone = given.only is not None or PARTS[part].n_processes == 1
        rows = run_part(*settings, given.only) if alone else run_in_processes(*settings)
        counts = ", ".join(f"{name} {count}" for name, count in Counter(row["result"] for row in rows).most_common())
        longest, found = max((row["seconds"] for row in rows), default=0.0), sum(bool(row["finding"]) for row in rows)
        print(f"| {part} | {len(rows)} | {counts} | {longest:.1f} s | {found} |", flush=True)
        failed |= found > 0
    sys.exit(failed)


if __name__ == "__main__":
    main()
