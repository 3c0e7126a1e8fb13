"""Clustering quality without labels on real data sets: `make quality` measures it and writes docs/quality.md.

Rows are stored as they are computed, one for each data set and seed, so an interrupted run resumes. The data sets are
those in the folder COVIEW_DATA. The true labels are used only to compute scores.
"""

from __future__ import annotations

import argparse
import os
import sys
from importlib.util import find_spec
from pathlib import Path

# Before NumPy is imported: data sets run in parallel processes, with one thread each.
for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[variable] = "1"

from benchmarks.data import HOW_TO_SET, stored_names  # noqa: E402
from benchmarks.quality import evaluations, page, scores  # noqa: E402
from benchmarks.quality.paired import halves  # noqa: E402
from benchmarks.quality.rows import Stage  # noqa: E402

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "quality.md"
SEEDS = 5


def stages(folder: Path, data: list[str] | None) -> dict[str, Stage]:
    """Return both stages, for all data sets or some of them."""

    def wanted(names: list[str]) -> list[str]:
        return [name for name in names if data is None or name in data]

    quality = Stage(folder / "quality.jsonl", scores.measure, scores.version(), wanted(list(stored_names())))
    of_numbers = Stage(
        folder / "evaluations.jsonl", evaluations.measure, evaluations.version(), wanted(evaluations.names())
    )
    return {"evaluations": of_numbers, "quality": quality}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="number of processes")
    parser.add_argument("--rows", type=Path, default=HERE, help="folder of the rows, to resume a run")
    parser.add_argument("--data", nargs="+", metavar="NAME", help="only these data sets; needs --out")
    parser.add_argument("--out", type=Path, help="the page; docs/quality.md by default")
    parser.add_argument("--stage", choices=["evaluations", "quality", "page"], help="run only this stage, and the page")
    options = parser.parse_args()
    known = {*stored_names(), *evaluations.names()}
    if not stored_names():
        sys.exit(f"no data sets are found; {HOW_TO_SET}")
    if unknown := [name for name in options.data or () if name not in known]:
        sys.exit(f"--data {unknown[0]}: expected names among {', '.join(sorted(known))}")
    if options.data and options.out is None:
        sys.exit("--data needs --out, because docs/quality.md has all data sets")
    if options.stage in (None, "quality") and find_spec("umap") is None:
        sys.exit("the baseline with UMAP needs umap-learn: pip install -c constraints.txt -e '.[bench]'")
    found = stages(options.rows, options.data)
    for name, stage in found.items():
        if options.stage in (None, name):
            stage.resume(options.seeds, options.jobs)
    rows = {name: stage.complete_rows() for name, stage in found.items()}
    if missing := [name for name, some in rows.items() if not some]:
        sys.exit(f"the page needs one seed with all data sets; rows are missing of: {', '.join(missing)}")
    page.write(rows["quality"], rows["evaluations"], halves(stored_names()), options.out or PAGE)


if __name__ == "__main__":
    main()
