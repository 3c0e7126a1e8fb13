"""Print the oldest versions that pyproject.toml allows, as constraints for pip."""

import re
import sys
import tomllib
from pathlib import Path

project = tomllib.loads(Path(sys.argv[1]).read_text())["project"]
extras = project["optional-dependencies"]
requirements = [
    *project["dependencies"],
    *(r for name in ("io", "report", "dask", "scverse", "zarr") for r in extras[name]),
]
requirements += [r for r in extras["dev"] if re.match("pandas|polars", r)]
for requirement in requirements:
    if found := re.fullmatch(r"([\w.-]+)(?:\[.*\])?>=([\d.]+)", requirement):
        print("==".join(found.groups()))
    else:
        sys.exit(f"{requirement!r} has no lowest version")
