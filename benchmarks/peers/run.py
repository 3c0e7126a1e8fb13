"""Every method of other libraries and of coview on the same data: `make peers`.

Each method and data set run in a process of their own, with one thread, a time limit and a memory limit. A failure is a
row with its error. Rows are stored as they are computed, so an interrupted run resumes; remove a row, or the file, to
compute it again. Data sets are run by size: a method that exceeds the time limit is not run on larger ones, and a
method that cannot be imported is not run again.

    python -m benchmarks.peers.run                                 everything, and docs/peers.md
    python -m benchmarks.peers.run --parts quality --data ngs      a part; the page states what is missing
    python -m benchmarks.peers.run --page-only                     the page from the stored rows
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from benchmarks.peers import data, page
from benchmarks.peers.peers import PEERS
from benchmarks.provenance import commit
from benchmarks.sweep import Ledger

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
PARTS = {"quality": data.quality_sets, "missing": data.missing_sets, "speed": data.speed_sets}
LIMITS = {"quality": 180.0, "missing": 180.0, "speed": 600.0}  # seconds of one process
Row = dict[str, Any]


def stored(path: Path) -> list[Row]:
    """Return the rows of a file, without an incomplete line of an interrupted run."""
    lines = path.read_text().split("\n")[:-1] if path.exists() else []
    return [json.loads(line) for line in lines]


def run_one(peer: str, name: str, seed: int, limit: float, gigabytes: float) -> Row:
    """Return the row of a method on a data set, measured in a process of its own."""
    environment = os.environ | dict.fromkeys(THREADS, "1")
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "row.json"
        arguments = [peer, name, str(seed), f"{gigabytes:g}", str(out)]
        command = [sys.executable, "-m", "benchmarks.peers.child", *arguments]
        try:
            ended = subprocess.run(command, env=environment, capture_output=True, timeout=limit, check=False)
        except subprocess.TimeoutExpired:
            return {"error": f"{page.TIME_LIMIT} of {limit:g} s"}
        if out.exists():
            found: Row = json.loads(out.read_text())
            return found
        last = ended.stderr.decode(errors="replace").strip().split("\n")[-1]
        return {"error": f"the process ended with code {ended.returncode}: {last}".rstrip(": ")}


def chain(
    peer: str, names: Sequence[str], known: dict[str, Row], measure: Callable[[str, str], Row]
) -> Iterator[tuple[str, Row]]:
    """Yield the rows of a method that are not known, by the size of the data sets."""
    stopped = ""
    for name in names:
        if name not in known:
            yield name, {"error": stopped} if stopped else measure(peer, name)
        error = known[name].get("error", "") if name in known else ""
        stopped = stopped or _reason_to_stop(error, name)


def _reason_to_stop(error: str, name: str) -> str:
    if error.startswith(page.TIME_LIMIT):
        return f"not run: {error} on the smaller {name}"
    return error if error.startswith((page.NOT_INSTALLED, "not run")) else ""


def run_part(path: Path, part: str, peers: Sequence[str], names: Sequence[str], options: argparse.Namespace) -> None:
    """Run the methods on the data sets of one part; each method is one task of a pool."""
    limit = options.limit or LIMITS[part]
    everything = {(row["peer"], row["data"], row["seed"]): row for row in stored(path)}
    rows: SimpleQueue[Row | None] = SimpleQueue()

    def run_peer(peer: str) -> None:
        known = {d: row for (p, d, seed), row in everything.items() if (p, seed) == (peer, options.seed)}
        try:
            measured = lambda p, d: run_one(p, d, options.seed, limit, options.memory)  # noqa: E731
            for name, row in chain(peer, names, known, measured):
                known[name] = {"part": part, "peer": peer, "data": name, "seed": options.seed, "commit": commit()} | row
                rows.put(known[name])
        finally:
            rows.put(None)

    chosen = [peer for peer in peers if part != "missing" or PEERS[peer].missing]
    with ThreadPoolExecutor(options.jobs) as pool, Ledger(path) as ledger:
        for peer in chosen:
            pool.submit(run_peer, peer)
        left = len(chosen)
        while left:
            row = rows.get()
            if row is None:
                left -= 1
            else:
                ledger.add([row])
                shown = row.get("error") or f"ARI {row['ari']:.3f} in {row['seconds']:.1f} s"
                print(f"{part}, {row['peer']}, {row['data']}: {shown}", flush=True)


def main() -> None:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--peers", nargs="+", choices=PEERS, default=list(PEERS), metavar="NAME")
    parser.add_argument("--data", nargs="+", metavar="NAME", help="only these data sets")
    parser.add_argument("--seed", type=int, default=0, help="of the samples, the masks and the methods")
    parser.add_argument("--limit", type=float, help="seconds of one process; 180, and 600 for the part speed")
    parser.add_argument("--memory", type=float, default=round(0.6 * memory), help="address space of a process, in GB")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="number of processes at a time")
    parser.add_argument("--rows", type=Path, default=HERE / "rows.jsonl", help="file of the rows, to resume a run")
    parser.add_argument("--out", type=Path, default=ROOT / "docs", help="folder of peers.md and its pictures")
    parser.add_argument("--page-only", action="store_true")
    options = parser.parse_args()
    expected = {part: PARTS[part]() for part in PARTS}
    known = {name for names in expected.values() for name in names}
    if unknown := [name for name in options.data or () if name not in known]:
        sys.exit(f"--data {unknown[0]}: expected names among {', '.join(sorted(known))}")
    for part in options.parts if not options.page_only else ():
        names = [name for name in expected[part] if options.data is None or name in options.data]
        run_part(options.rows, part, options.peers, names, options)
    page.write(stored(options.rows), expected, options.out)


if __name__ == "__main__":
    main()
