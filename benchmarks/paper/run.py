"""Reproduction of the paper's tables and figures: `make paper`, or `make paper-quick`.

Rows are stored in a folder as they are computed, so an interrupted run resumes; remove the folder to start again. The
paper's data sets are run first and the wider table last. Pages are written after every stage, from the rows computed by
then. The run takes hours on two processors; the index page has the total time of all fits.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from math import inf
from pathlib import Path
from time import perf_counter
from typing import Any

# Before NumPy is imported: data sets run in parallel processes, with one thread each.
for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

from benchmarks.paper import figures, optimise, plan, tables  # noqa: E402
from benchmarks.sweep import KEY, Data, Experiment, Row, rows_on_file, sweep  # noqa: E402

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
EDGE_REPEATS = 2  # each narrows the interval of thresholds several times
QUICK_SETS = ("synth1_appendix", "3sources")


class Run:
    """Sweeps with their rows in one folder, one file per data set.

    Only rows of planned experiments are used; other rows in the folder are ignored.
    """

    def __init__(self, rows: Path, size: str, n_jobs: int) -> None:
        self.rows, self.size, self.n_jobs = rows, size, n_jobs
        self.only_read = False  # use stored rows, and run nothing
        self._found: dict[Any, Row] = {}

    def do(self, stage: str, data: Data, experiments: list[Experiment], *, kind: str = "") -> list[Row]:
        """Run experiments, or read their rows. Each kind has separate files; times are measured one after another."""
        if not experiments:
            return []
        start, name = perf_counter(), f"{kind}-{data.name.replace(', ', '-')}" if kind else data.name
        path = self.rows / f"{name}.jsonl"
        if self.only_read:
            found = rows_on_file(data, experiments, path)
        else:
            found = sweep(data, experiments, path, n_jobs=1 if kind == "times" else self.n_jobs)
            failed = sum(row["error"] is not None for row in found)
            print(
                f"{data.name}: {stage}, {len(experiments)} fits in {perf_counter() - start:.0f} s"
                + (f", {failed} rows failed" if failed else ""),
                flush=True,
            )
        self._keep(kind, found)
        return found

    def _keep(self, kind: str, rows: list[Row]) -> None:
        self._found.update({(kind, *(row[part] for part in KEY)): row | {"kind": kind} for row in rows})

    def paper_set(self, name: str) -> None:
        """Run all stages on one data set of the paper."""
        data = plan.data_set(name, self.size)
        first = self.do("grids", data, plan.paper_experiments(data, self.size))
        self.do("search", data, plan.refined_experiments(data, first, self.size))
        self.do("curves", data, plan.curve_experiments(data, first, self.size))
        for _ in range(EDGE_REPEATS):
            first += self.do("edge", data, plan.edge_experiments(data, first, self.size))
        self.do("authors", data, plan.authors_experiments(data, self.size), kind="authors")
        self.do("fixed", data, plan.fixed_experiments(data, self.size) + plan.baselines(data))

    def optimised(self, name: str) -> None:
        """Search settings by the true labels, with the same number of evaluations for each method."""
        for method in optimise.METHODS:
            search = optimise.Search(plan.data_set(name), method, optimise.path_of(self.rows, name, method))
            search.run(optimise.SEARCH["evaluations"], self.n_jobs, until=-inf if self.only_read else inf)
            self._keep(optimise.KIND, search.rows)

    def row_order(self, name: str) -> None:
        """Run tSVD-MSC on three row orders; these are not quality numbers."""
        for order in (plan.SHUFFLED, plan.STORED, plan.SORTED):
            self.do("order", plan.in_order(name, order), plan.order_experiments(), kind="order")

    def times(self, name: str) -> None:
        data = plan.data_set(name, self.size)
        experiments = plan.timing_experiments(data, self.size)
        if not self.only_read:  # the first call imports modules, which is not part of the time
            sweep(data.first(100), [experiment for experiment in experiments if experiment.seed == 0])
        self.do("times", data, experiments, kind="times")

    def fixed_size(self, name: str) -> None:
        data = plan.data_set(name, self.size)
        self.do("m", data, plan.fixed_size_experiments(data, self.size))

    def other_set(self, name: str) -> None:
        """Run all stages on a data set that is not the paper's."""
        data = plan.data_set(name, self.size)
        self.do("fixed", data, plan.fixed_experiments(data, self.size))
        self.do("grids", data, plan.wider_experiments(data, self.size))

    def all_rows(self) -> list[Row]:
        """Return all rows in a fixed order, which breaks ties between equal settings."""
        return sorted(self._found.values(), key=lambda row: [str(row[name]) for name in ("kind", *KEY)])


def stages(run: Run) -> list[tuple[str, list[str], Callable[[str], None]]]:
    """Return the stages in order, with their data sets."""
    of_paper = [name for names in plan.paper_sets().values() for name in names]
    if run.size == "quick":
        sets = plan.available(QUICK_SETS)
        return [("paper", sets, run.paper_set), ("times", sets, run.times), ("fixed size", sets[:1], run.fixed_size)]
    figure_sets = plan.SETTINGS["figures"]["fixed_size"]["datasets"]
    others = [name for name in plan.wider_sets() if name not in of_paper]
    stand_ins = [name for name in plan.SETTINGS["stand_ins"] if name in others]
    return [
        ("paper", plan.available(of_paper), run.paper_set),
        ("times", plan.available(plan.SETTINGS["timing"]["datasets"]), run.times),
        ("optimised", plan.available([names[0] for names in plan.paper_sets().values()]), run.optimised),
        ("row order", plan.available(list(plan.SETTINGS["row_order"]["datasets"])), run.row_order),
        ("stand-ins", plan.available(stand_ins), run.other_set),
        ("fixed size", plan.available(figure_sets), run.fixed_size),
        ("wider", [name for name in others if name not in stand_ins], run.other_set),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a few points of each grid, on two small data sets")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "paper", help="folder of the pages")
    parser.add_argument("--rows", type=Path, default=HERE / "rows", help="folder of the rows, to resume a run")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="number of processes")
    parser.add_argument("--sets", nargs="*", help="run only these data sets (names as in benchmarks.data)")
    parser.add_argument("--pages-only", action="store_true", help="write the pages from the rows that exist")
    options = parser.parse_args()
    run = Run(options.rows, "quick" if options.quick else "full", options.jobs)
    tables.note_start(options.rows)
    broken = []
    for stage, names, action in stages(run):
        start = perf_counter()
        for name in names:
            run.only_read = options.pages_only or (options.sets is not None and name not in options.sets)
            try:
                action(name)
            except Exception as error:  # the error of one data set does not stop the others
                print(f"{name}: {stage} failed: {error}", file=sys.stderr, flush=True)
                broken.append(f"{name} ({stage})")
        if not options.pages_only:
            print(f"== {stage}: {perf_counter() - start:.0f} s", flush=True)
            tables.write(options.out, run.all_rows(), options.rows, run.size)
    rows = run.all_rows()
    drawn = figures.draw(options.out, rows, run.size)
    tables.write(options.out, rows, options.rows, run.size)
    missing = [path for path in (*tables.PAGES, *drawn) if not (options.out / path).stat().st_size]
    if missing:
        sys.exit(f"empty: {', '.join(map(str, missing))}")
    print(f"{len(tables.PAGES)} pages and {len(drawn)} figures in {options.out}")
    unexplained = tables.unexplained(rows)
    if unexplained and run.size == "full":
        print(f"reasons.toml does not explain {len(unexplained)} cells: {'; '.join(unexplained)}")
    if broken:
        sys.exit(f"failed, and omitted from the pages: {', '.join(broken)}")


if __name__ == "__main__":
    main()
