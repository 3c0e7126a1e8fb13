"""The Internet Advertisements data set, in the text format of the UCI repository or as a MATLAB file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.data.cells import checked, read_cells, require_file
from benchmarks.data.shapes import PAPER_TABLE, Labelled
from coview.errors import InputError

# The columns of ad.data in order: the size of the image, whether it is local, and binary terms. The name of a term's
# column starts with the field in which it occurs: "url*images+buttons".
COLUMNS = {
    "height": 1,
    "width": 1,
    "aratio": 1,
    "local": 1,
    "url": 457,
    "origurl": 495,
    "ancurl": 472,
    "alt": 111,
    "caption": 19,
}
_NO_TERMS = ("height", "width", "aratio", "local")
_CLASSES = ("nonad", "ad")


def read_ads(path: str | Path, names: str | Path | None = None) -> Labelled:
    """Read `ad.data` of the UCI repository, or `ad_data.mat`: 3279 images in web pages, advertisements or not.

    The views are the terms of the image's URL, alternative text and caption; those of the page's URL; and those of the
    URL that the image links to. The size of the image, which is often missing, is not used, so the views have the
    numbers of columns in the paper's table.

    Parameters
    ----------
    path : str or Path
        Text with one image per line, or a MATLAB file (.mat) in the layout of `read_imgc` with the names `X`, `Y`,
        `Xt` and `Yt` of the authors' program.
    names : str or Path, optional
        `ad.names`, with a line such as `url*ads: 0,1.` for each column, which determines its view. Without it the
        columns are in the order of the UCI repository.
    """
    path = Path(path)
    if path.suffix.lower() == ".mat":
        return read_cells("ads", path)
    places = _named(Path(names)) if names is not None else [place for place, n in COLUMNS.items() for _ in range(n)]
    rows, truth = _occurrences(path, places)
    matrices = [_view(rows, places, title.split("+")) for title in PAPER_TABLE["ads"].widths]
    return checked(path, PAPER_TABLE["ads"], matrices, truth, _CLASSES)


def _named(path: Path) -> list[str]:
    """Return the field of each column, from the list of names."""
    require_file(path)
    lines = (line.split("|")[0] for line in path.read_text(encoding="latin-1").splitlines())
    places = [line.split(":")[0].split("*")[0].strip() for line in lines if ":" in line]
    unknown = sorted(set(places) - set(COLUMNS))
    if unknown or not places:
        raise InputError(f"{path} is not ad.names: expected names such as url*ads, found {unknown[:3] or 'no names'}")
    return places


def _occurrences(path: Path, places: list[str]) -> tuple[list[Any], list[bool]]:
    """Return the columns that are 1 for each image, and whether it is an advertisement."""
    require_file(path)
    terms = [i for i, place in enumerate(places) if place not in _NO_TERMS]
    rows, truth = [], []
    for number, line in enumerate(path.read_text(encoding="latin-1").splitlines(), start=1):
        if not line.strip():
            continue
        fields = [field.strip() for field in line.split(",")]
        if len(fields) != len(places) + 1 or fields[-1] not in ("ad.", "nonad."):
            raise InputError(
                f"{path} is not ad.data: expected {len(places)} values and then 'ad.' or 'nonad.', "
                f"found {len(fields)} fields that end in {fields[-1][:20]!r} in line {number}"
            )
        invalid = next((fields[i] for i in terms if fields[i] not in ("0", "1")), None)
        if invalid is not None:
            raise InputError(f"{path}, line {number}: expected 0 or 1 for a term, found {invalid[:20]!r}")
        rows.append([i for i in terms if fields[i] == "1"])
        truth.append(fields[-1] == "ad.")
    return rows, truth


def _view(rows: list[Any], places: list[str], wanted: list[str]) -> Any:
    chosen = [i for i, place in enumerate(places) if place in wanted]
    position = {column: i for i, column in enumerate(chosen)}
    kept = [[position[i] for i in row if i in position] for row in rows]
    ends = np.cumsum([0, *map(len, kept)])
    columns = np.array([i for row in kept for i in row], dtype=np.int32)
    return sp.csr_array((np.ones(len(columns)), columns, ends), shape=(len(rows), len(chosen)))
