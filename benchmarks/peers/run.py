"""Every method of other libraries and of coview on the same data: `make peers`.

Each method runs in a process of its own, with one thread, a time limit for each data set and a memory limit. A failure
is a row with its error. Rows are stored as they are computed, so an interrupted run resumes; remove a row, or the file,
to compute it again. A method that exceeds the time limit is not run on data sets with as many samples, columns, views
and clusters or more, nor if its expected time is over the limit, by its times on fewer samples with the same columns,
views and clusters, nor on as many samples or more after three data sets in a row. A method that cannot be imported, or
that crashes or exceeds its limit in the first fit of a few samples, is not run again.

    python -m benchmarks.peers.run                                 everything, and docs/peers.md
    python -m benchmarks.peers.run --parts quality --data ngs      a part; the page states what is missing
    python -m benchmarks.peers.run --page-only                     the page from the stored rows
    python -m benchmarks.peers.run --from-csv docs/peers.csv       rows of a published page are not computed again
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from math import log
from pathlib import Path
from queue import SimpleQueue
from threading import Event
from time import perf_counter

# Before NumPy is imported, here and in the processes of the methods.
for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[variable] = "1"
os.environ["NUMBA_THREADING_LAYER"] = "workqueue"  # may be forked after its first use, unlike OpenMP

from benchmarks.peers import data, page  # noqa: E402
from benchmarks.peers.peers import PEERS  # noqa: E402
from benchmarks.peers.worker import IN_A_ROW, LIMITS, NOT_INSTALLED, TIME_LIMIT, WARM_UP, Row, Worker  # noqa: E402
from benchmarks.provenance import commit  # noqa: E402
from benchmarks.sweep import Ledger  # noqa: E402

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PARTS = {
    "quality": data.quality_sets,
    "missing": data.missing_sets,
    "speed": data.speed_sets,
    "large": data.large_sets,
}
KEY = ("part", "peer", "data", "seed")
HOPELESS = (*NOT_INSTALLED, WARM_UP)  # errors of a method on any data
SizeOf = Callable[[str], tuple[int, ...]]


def stored(path: Path) -> list[Row]:
    """Return the rows of a file, without an incomplete line of an interrupted run."""
    lines = path.read_text().split("\n")[:-1] if path.exists() else []
    return [json.loads(line) for line in lines]


def add_published(path: Path, table: Path) -> None:
    """Add the rows of a published table that the file does not have."""
    known = {tuple(row[key] for key in KEY) for row in stored(path)}
    with Ledger(path) as ledger:
        ledger.add(row for row in page.read_csv(table) if tuple(row[key] for key in KEY) not in known)


def rows_left(
    names: Sequence[str],
    known: Mapping[str, Row],
    measure: Callable[[str, float], Row],
    limit: float,
    size_of: SizeOf = data.size_of,
    is_linear: bool = False,
) -> Iterator[Row]:
    """Yield the rows of one method that are not known, in the order of the data sets."""
    rows = dict(known)  # also those of earlier parts
    for name in names:
        row = known.get(name)
        if row is None:
            row = {"data": name} | (_reason_to_skip(rows, name, limit, size_of, is_linear) or measure(name, limit))
            yield row
        rows[name] = row


def _reason_to_skip(rows: Mapping[str, Row], name: str, limit: float, size_of: SizeOf, is_linear: bool) -> Row:
    """Return the error of a method that is not installed, fails at once, or is too slow for less data; or nothing."""
    for other, row in rows.items():
        error = row.get("error", "")
        if error.startswith(HOPELESS):
            return {"error": error}
        if error.startswith(TIME_LIMIT) and _is_at_most(size_of(other), size_of(name)):
            return {"error": f"{page.NOT_RUN}: {error} on {other}"}
    n, *others = size_of(name)
    was_run = [other for other, row in rows.items() if not row.get("error", "").startswith(page.NOT_RUN)]
    no_larger = sorted((other for other in was_run if size_of(other)[0] <= n), key=lambda other: size_of(other)[0])
    largest = no_larger[-IN_A_ROW:]
    if len(largest) == IN_A_ROW and all(rows[other].get("error", "").startswith(TIME_LIMIT) for other in largest):
        return {"error": f"{page.NOT_RUN}: {TIME_LIMIT} on {', '.join(largest)}"}
    alike = {other: row for other, row in rows.items() if [*size_of(other)[1:]] == others and "seconds" in row}
    seconds = {size_of(other)[0]: row["seconds"] for other, row in alike.items()}
    if (expected := expected_seconds(seconds, n, is_linear)) > limit:
        why = f"{expected:.0f} s are expected from its times on fewer samples, the limit is {limit:g} s"
        return {"error": f"{page.NOT_RUN}: {why}", "expected": round(expected)}
    return {}


def _is_at_most(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    """Return whether none of the numbers of a size is larger than that of another one."""
    return all(a <= b for a, b in zip(one, other, strict=True))


def expected_seconds(seconds: Mapping[int, float], n: int, is_linear: bool = False) -> float:
    """Return the seconds for n samples by the power law through the two largest numbers of samples.

    The law is linear if the method is known to be, because two times are too noisy for a factor of ten, and if there is
    only one time. Without any time the result is 0.
    """
    if not seconds:
        return 0.0
    *fewer, many = sorted(seconds)
    few = fewer[-1] if fewer else many
    first, last = (max(seconds[m], 1e-3) for m in (few, many))  # the rows have milliseconds
    power = log(last / first) / log(many / few) if fewer and not is_linear else 1.0
    return float(last * (n / many) ** power)


def _counts_in(part: str, row: Row) -> bool:
    """Return whether a row may decide which fits of a part are skipped.

    Rows of later parts do not count. Rows of earlier parts count if their limit is not shorter, or if the error would
    be the same on any data.
    """
    order = list(PARTS)
    is_comparable = LIMITS[row["part"]] >= LIMITS[part] or row.get("error", "").startswith(HOPELESS)
    return order.index(row["part"]) <= order.index(part) and is_comparable


def run_all(path: Path, parts: Mapping[str, Sequence[str]], peers: Sequence[str], options: argparse.Namespace) -> None:
    """Run methods on the data sets of each part; each method is one task of a pool, with the parts in order."""
    on_file = [row for row in stored(path) if row["seed"] == options.seed]
    # Rows, None after the last row of a task, or an error of this script.
    queue: SimpleQueue[Row | BaseException | None] = SimpleQueue()
    at, stopped = commit(), Event()

    def run_peer(peer: str) -> None:
        rows = [row for row in on_file if row["peer"] == peer]
        try:
            with closing(Worker(peer, options.seed, options.memory / options.jobs)) as worker:
                start = perf_counter()
                for part in filter(PEERS[peer].runs_in, parts):
                    same = {"part": part, "peer": peer, "seed": options.seed, "commit": at}
                    known = {row["data"]: row for row in rows if _counts_in(part, row)}
                    for left in rows_left(parts[part], known, worker, LIMITS[part], is_linear=PEERS[peer].linear):
                        now = perf_counter()
                        row = same | left | {"elapsed": round(now - start, 3)}
                        rows.append(row)
                        queue.put(row)
                        start = now
                        if stopped.is_set():
                            return
            queue.put(None)
        except BaseException as error:
            queue.put(error)

    with ThreadPoolExecutor(options.jobs) as pool, Ledger(path) as ledger:
        left = len([pool.submit(run_peer, peer) for peer in peers])
        try:
            while left:
                row = queue.get()
                if row is None:
                    left -= 1
                    continue
                if isinstance(row, BaseException):
                    raise row
                ledger.add([row])
                shown = row.get("error") or f"ARI {row['ari']:.3f} in {row['seconds']:.1f} s"
                print(f"{row['part']}, {row['peer']}, {row['data']}: {shown}", flush=True)
        finally:  # after an error, the other tasks end with the present fit
            stopped.set()
            pool.shutdown(wait=False, cancel_futures=True)


def main() -> None:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--peers", nargs="+", choices=PEERS, default=list(PEERS), metavar="NAME")
    parser.add_argument("--data", nargs="+", metavar="NAME", help="only these data sets")
    parser.add_argument("--seed", type=int, default=0, help="of the samples, the masks and the methods")
    parser.add_argument("--memory", type=float, default=round(0.8 * memory), help="GB of all processes")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="number of processes at a time")
    parser.add_argument("--rows", type=Path, default=HERE / "rows.jsonl", help="file of the rows, to resume a run")
    parser.add_argument("--out", type=Path, default=ROOT / "docs", help="folder of peers.md and its pictures")
    parser.add_argument("--note", default="", help="a sentence for the page, on the circumstances of the run")
    parser.add_argument("--from-csv", type=Path, help="a published table, such as docs/peers.csv, whose rows are used")
    parser.add_argument("--page-only", action="store_true")
    options = parser.parse_args()
    expected = {part: PARTS[part]() for part in PARTS}
    known = {name for names in expected.values() for name in names}
    if unknown := [name for name in options.data or () if name not in known]:
        sys.exit(f"--data {unknown[0]}: expected names among {', '.join(sorted(known))}")
    if options.from_csv:
        add_published(options.rows, options.from_csv)
    if not options.page_only:
        parts = {
            part: [name for name in names if options.data is None or name in options.data]
            for part, names in expected.items()
            if part in options.parts
        }
        run_all(options.rows, parts, options.peers, options)
    rows = [row for row in stored(options.rows) if row["seed"] == options.seed]
    page.write(rows, expected, options.out, options.note)


if __name__ == "__main__":
    main()
