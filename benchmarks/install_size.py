"""What an installation of coview weighs, and what its entry points load: installed sizes and import times, as tables.

    python -m benchmarks.install_size

Sizes are those of the files that pip has recorded for each package in this environment, without bytecode. Seconds are
the median of five new processes, with bytecode, minus the median of an empty process.
"""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, distribution, requires
from statistics import median
from time import perf_counter

from benchmarks.markdown import table

EXTRAS = ("", "io", "report", "dask", "scverse", "zarr")
HEAVY = ("sklearn", "scipy", "numpy", "pandas", "matplotlib", "plotly", "dask", "pyarrow", "mudata", "anndata", "rich")
ENTRY_POINTS = {
    "import coview": "import coview",
    "coview --help": "from coview.cli import app\ntry:\n    app(['--help'])\nexcept SystemExit:\n    pass",
    "from coview import TMvKSCR": "from coview import TMvKSCR",
    "from coview import Tuned": "from coview import Tuned",
    "from coview import read_views": "from coview import read_views",
    "import coview.plots": "import coview.plots",
    "import coview.report": "import coview.report",
    "import coview.scverse": "import coview.scverse",
    "import coview.distributed": "import coview.distributed",
}
REPEATS = 5


def direct(package: str, extra: str) -> set[str]:
    """Return the names of the packages that a package, or one of its extras, requires here."""
    found = set()
    for line in requires(package) or []:
        requirement, _, condition = line.partition(";")
        wanted = re.search(r"extra == ['\"]([\w-]+)['\"]", condition)
        if (wanted[1] if wanted else "") != extra or "platform" in condition or "python_version <" in condition:
            continue
        name = re.match(r"[\w.-]+", requirement)
        if name is not None and name[0].lower() != "coview":
            found.add(name[0].lower().replace("_", "-"))
    return found


def closure(names: set[str]) -> set[str]:
    """Return the installed packages among these and all that they require."""
    found, left = set(), set(names)
    while left:
        name = left.pop()
        if name in found or not is_installed(name):
            continue
        found.add(name)
        left |= direct(name, "") - found
    return found


def is_installed(name: str) -> bool:
    try:
        return distribution(name) is not None
    except PackageNotFoundError:
        return False


def megabytes(name: str) -> float:
    files = distribution(name).files or []
    paths = (file.locate() for file in files if not str(file).endswith(".pyc"))
    return sum(path.stat().st_size for path in paths if path.is_file()) / 1e6


def sizes() -> list[tuple[str, ...]]:
    base = closure(direct("coview", ""))
    rows = []
    for extra in EXTRAS:
        packages = base if not extra else closure(direct("coview", extra)) - base
        largest = sorted(packages, key=megabytes, reverse=True)[:4]
        named = ", ".join(f"{name} {megabytes(name):.0f}" for name in largest)
        what = f"coview[{extra}], in addition" if extra else "coview"
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
    print("\n".join(table(("installed", "packages", "MB", "largest, MB"), sizes())) + "\n")
    print("\n".join(table(("entry point", "seconds", "loads"), import_times())))


if __name__ == "__main__":
    main()
