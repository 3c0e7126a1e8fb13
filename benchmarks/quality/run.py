"""Clustering quality without labels: `make quality` measures it and writes docs/quality.md.

    python -m benchmarks.quality.run                                   everything
    python -m benchmarks.quality.run --only known,auto --jobs 2        some stages; the page states what is missing
    python -m benchmarks.quality.run --only page                       the page from the stored rows

The stages are known (`Coview` with the number of classes), new (new samples), auto (the number is selected), baselines
(other methods), and situations (generated data, see benchmarks/situations.py). Rows are stored as they are computed,
one for each data set and seed, so an interrupted run resumes. Real data sets are those in the folder COVIEW_DATA. The
true labels are used only to compute scores.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

# Before NumPy is imported: data sets run in parallel processes, with one thread each.
for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[variable] = "1"

from benchmarks import situations  # noqa: E402
from benchmarks.data import HOW_TO_SET, stored_names  # noqa: E402
from benchmarks.quality import baselines, page, scores  # noqa: E402
from benchmarks.quality.rows import Stage  # noqa: E402

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "quality.md"
SEEDS = 5
SITUATIONS, PAGE_ONLY = "situations", "page"


def stages(folder: Path, data: Sequence[str] | None = None) -> dict[str, Stage]:
    """Return the stages of the stored data sets, for all of these or some."""

    def wanted(names: Sequence[str]) -> list[str]:
        return [name for name in names if data is None or name in data]

    every, version = wanted(stored_names()), scores.version()
    return {
        "known": Stage(folder / "known.jsonl", scores.measure_known, version, every),
        "new": Stage(folder / "new.jsonl", scores.measure_new, version, every),
        "auto": Stage(folder / "auto.jsonl", scores.measure_auto, version, wanted(scores.names_for_auto())),
        "baselines": Stage(folder / "baselines.jsonl", baselines.measure, baselines.version(), every),
    }


def names_of_stages(words: str) -> list[str]:
    """Return the stages of an option such as "known,auto"."""
    names, known = words.split(","), (*stages(HERE, []), SITUATIONS, PAGE_ONLY)
    if unknown := [name for name in names if name not in known]:
        raise argparse.ArgumentTypeError(f"{unknown[0]!r}: expected names among {', '.join(known)}")
    return names


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--only", type=names_of_stages, metavar="STAGES", help="measure only these stages, as known,auto"
    )
    parser.add_argument("--seeds", type=int, default=SEEDS, help="number of seeds of the stored data sets")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="number of processes")
    parser.add_argument("--rows", type=Path, default=HERE, help="folder of the rows, to resume a run")
    parser.add_argument("--data", nargs="+", metavar="NAME", help="only these stored data sets; needs --out")
    parser.add_argument("--out", type=Path, help="the page; docs/quality.md by default")
    options = parser.parse_args(arguments)
    chosen = options.only or [*stages(options.rows, []), SITUATIONS]
    if not stored_names() and not {*chosen} <= {SITUATIONS, PAGE_ONLY}:
        sys.exit(f"no data sets are found; {HOW_TO_SET}")
    if unknown := [name for name in options.data or () if name not in stored_names()]:
        sys.exit(f"--data {unknown[0]}: expected names among {', '.join(stored_names())}")
    if options.data and options.out is None:
        sys.exit("--data needs --out, because docs/quality.md has all data sets")
    if "baselines" in chosen and find_spec("umap") is None:
        sys.exit("the baseline with UMAP needs umap-learn: pip install -c constraints.txt -e '.[bench]'")
    of_data, of_situations = stages(options.rows, options.data), options.rows / "situations.jsonl"
    for name, stage in of_data.items():
        if name in chosen:
            stage.resume(range(options.seeds), options.jobs)
    if SITUATIONS in chosen:
        for stage in situations.stages(of_situations):
            stage.resume(situations.SEEDS, options.jobs)
    rows = {name: stage.complete_rows() for name, stage in of_data.items()}
    page.write(rows | {SITUATIONS: situations.complete_rows(of_situations)}, options.out or PAGE)


if __name__ == "__main__":
    main()
