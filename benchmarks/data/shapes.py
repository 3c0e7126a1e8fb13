"""The paper's table of data sets, and the result of every reader."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from coview.data.views import Views


class Labelled(NamedTuple):
    """Views, the true label of each sample (from 0), and the names of the classes if they are known."""

    views: Views
    labels: NDArray[np.int64]
    classes: tuple[str, ...] | None


@dataclass(frozen=True)
class Shape:
    """Numbers of samples, of clusters, and of columns by view."""

    paper_name: str
    samples: int
    clusters: int
    widths: dict[str, int]

    def __str__(self) -> str:
        views = ", ".join(map(str, self.widths.values()))
        return f"{self.samples} samples, {len(self.widths)} views of {views} columns, and {self.clusters} clusters"


# The paper's table of data sets, by the names of coview. Readers check every file against it.
PAPER_TABLE: dict[str, Shape] = {
    "synth1": Shape("Synth 1", 1000, 2, {"view1": 2, "view2": 2, "view3": 2}),
    "synth2": Shape("Synth 2", 1000, 2, {"view1": 2, "view2": 2}),
    "3sources": Shape("3Sources", 169, 6, {"bbc": 3560, "guardian": 3631, "reuters": 3068}),
    "reuters600": Shape("Reuters", 600, 6, {"english": 9749, "french": 9109, "german": 7774}),
    "ads": Shape("Ads", 3279, 2, {"url+alt+caption": 587, "origurl": 495, "ancurl": 472}),
    "imgc": Shape("ImgC", 1200, 3, {"colour": 768, "texture": 192, "text": 3522}),
    "youtube_games": Shape("YT-VG", 2100, 7, {"text": 1000, "image": 512, "audio": 2000}),
    "nus_wide": Shape(
        "NUS", 5970, 10, {"histogram": 64, "moments": 225, "correlogram": 144, "edges": 73, "wavelets": 128}
    ),
    "reuters_large": Shape(
        "L-Reuters", 18758, 6, {"english": 21531, "french": 24892, "german": 34251, "italian": 15506, "spanish": 11547}
    ),
}
