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
from dataclasses import asdict
from importlib import import_module
from itertools import islice
from pathlib import Path

# Before NumPy is imported: commands are forked, and threads do not survive a fork.
for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

from benchmarks.fuzz.case import outcome_of  # noqa: E402

PARTS = {"files": 5000, "models": 5000, "faults": 200}  # numbers of cases; `estimators` is to be added here
_CASE_SECONDS = {"files": 20.0, "models": 20.0, "faults": 300.0}


def run_part(part: str, seed: int, n_cases: int, out: Path, seconds: float, only: int | None = None) -> list[dict]:
    """Run the cases of a part that are not recorded yet; return the records of all."""
    out.mkdir(parents=True, exist_ok=True)
    record = out / f"{part}-{seed}.jsonl"
    known = [json.loads(line) for line in record.read_text().splitlines()] if record.exists() and only is None else []
    end = time.monotonic() + seconds
    with tempfile.TemporaryDirectory() as folder:
        cases = import_module(f"benchmarks.fuzz.{part}").cases(seed, Path(folder))
        first = len(known) if only is None else only
        for number, case in enumerate(islice(cases, n_cases if only is None else only + 1)):
            if number < first:
                continue
            if time.monotonic() > end:
                break
            outcome = {"number": number, **asdict(outcome_of(case, _CASE_SECONDS[part]))}
            known.append(outcome)
            if only is None:
                with record.open("a") as file:
                    file.write(json.dumps(outcome) + "\n")
            if outcome["finding"]:
                print(f"{part} {seed} {number}: {outcome['words']}: {outcome['finding']}", flush=True)
    return known


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=PARTS, action="append", help="a part; by default all")
    parser.add_argument("--cases", type=int, help="number of cases of each part")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=5.0, help="limit of each part")
    parser.add_argument("--out", type=Path, default=Path("fuzz"))
    parser.add_argument("--only", type=int, help="run this case alone")
    given = parser.parse_args()
    failed = False
    print("| part | cases | outcomes | longest case | findings |\n|---|---|---|---|---|")
    for part in given.part or PARTS:
        rows = run_part(part, given.seed, given.cases or PARTS[part], given.out, 60 * given.minutes, given.only)
        counts = ", ".join(f"{name} {count}" for name, count in Counter(row["result"] for row in rows).most_common())
        longest, found = max((row["seconds"] for row in rows), default=0.0), sum(bool(row["finding"]) for row in rows)
        print(f"| {part} | {len(rows)} | {counts} | {longest:.1f} s | {found} |", flush=True)
        failed |= found > 0
    sys.exit(failed)


if __name__ == "__main__":
    main()
