"""What an installation of coview weighs, and what its entry points load: installed sizes and import times, as tables.

    python -m benchmarks.install_size

Sizes are those of the files that pip has recorded for each package in this environment, without bytecode. Seconds are
the median of five new processes, with bytecode, minus the median of an empty process.
"""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import distribution, requires
from statistics import median
from time import perf_counter

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from benchmarks.markdown import table

EXTRAS = ("", "io", "report", "dask", "scverse", "zarr", "all")
HEAVY = ("sklearn", "scipy", "numpy", "pandas", "matplotlib", "plotly", "dask", "pyarrow", "mudata", "anndata", "rich")
ENTRY_POINTS = {
    "import coview": "import coview",
    "coview --help": "from coview.cli import app\ntry:\n    app(['--help'])\nexcept SystemExit:\n    pass",
    "from coview import read_views": "from coview import read_views",
    "from coview import TMvKSCR": "from coview import TMvKSCR",
    "from coview import Coview": "from coview import Coview",
    "import coview.plots": "import coview.plots",
    "import coview.report": "import coview.report",
    "import coview.scverse": "import coview.scverse",
    "import coview.distributed": "import coview.distributed",
    "import sklearn.base": "import sklearn.base",  # for comparison
}
REPEATS = 5


def requirements(package: str, extra: str) -> set[tuple[str, str]]:
    """Return the packages that a package with an extra requires here, each once for every extra of it."""
    found = set()
    for requirement in map(Requirement, requires(package) or []):
        if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
            found |= {(canonicalize_name(requirement.name), each) for each in ("", *requirement.extras)}
    return found


def closure(package: str, extra: str) -> set[str]:
    """Return the packages that are installed with a package and an extra, without the package itself."""
    found: set[tuple[str, str]] = set()
    left = {(package, extra)}
    while left:
        each = left.pop()
        found.add(each)
        left |= requirements(*each) - found
    return {name for name, _ in found} - {package}


def megabytes(name: str) -> float:
    files = distribution(name).files or []
    paths = (file.locate() for file in files if not str(file).endswith(".pyc"))
    return sum(path.stat().st_size for path in paths if path.is_file()) / 1e6


def sizes() -> list[tuple[str, ...]]:
    base = closure("coview", "")
    rows = []
    for extra in EXTRAS:
        packages = closure("coview", extra) - base if extra else base
        largest = sorted(packages, key=megabytes, reverse=True)[:3]
        named = ", ".join(f"{name} {megabytes(name):.0f}" for name in largest)
        what = f"`coview[{extra}]`, in addition" if extra else "`coview`"
        rows.append((what, str(len(packages)), f"{sum(map(megabytes, packages)):.0f}", named))
    return rows


def seconds(code: str) -> float:
    times = []
    for _ in range(REPEATS):
        start = perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
        times.append(perf_counter() - start)
    return median(times)


def loaded(code: str) -> set[str]:
    lines = f"{code}\nimport sys\nprint('loaded:', *sys.modules)"
    output = subprocess.run([sys.executable, "-c", lines], check=True, capture_output=True, text=True).stdout
    return set(output.rpartition("loaded:")[2].split())


def import_times() -> list[tuple[str, ...]]:
    empty = seconds("pass")
    rows = []
    for name, code in ENTRY_POINTS.items():
        heavy = ", ".join(each for each in HEAVY if each in loaded(code))
        rows.append((f"`{name}`", f"{seconds(code) - empty:.2f}", heavy or "–"))
    return rows


def main() -> None:
    print("\n".join(table(("installed", "packages", "MB", "largest, MB"), sizes())) + "\n", flush=True)
    print("\n".join(table(("entry point", "seconds", "loads"), import_times())))


if __name__ == "__main__":
    main()
