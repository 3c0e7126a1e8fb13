"""Readers of the files that the paper's authors used, in the authors' layouts; the files are not part of coview.

Each reader checks a file against `PAPER_TABLE`. File and variable names are those of the authors' program; a few other
spellings, from files that other programs distribute, are accepted too. The authors' own files were not available, so
each reader is tested on small generated files of the same layout. No reader preprocesses the views. Views are returned
in the order of the paper's table, whatever their order in the file.
"""

from __future__ import annotations

from pathlib import Path

from benchmarks.data.cells import read_cells
from benchmarks.data.shapes import Labelled


def read_synth1(path: str | Path) -> Labelled:
    """Read `synth3views_2clusters.mat`, the source of the paper's numbers on Synth 1.

    The views are in the cell array `X`, or in `X1`, `X2` and `X3`; the labels are in `truth`.
    """
    return read_cells("synth1", path, ("X1", "X2", "X3"))


def read_3sources(path: str | Path) -> Labelled:
    """Read `data3Sources.mat`: 169 news stories as reported by three newspapers, as word counts.

    The views are in the cell array `X`; `Y` repeats the labels for each view.
    """
    return read_cells("3sources", path)


def read_reuters600(path: str | Path) -> Labelled:
    """Read `reutersMulSubset.mat`: 600 documents in English, French and German.

    The views are in `En`, `Fr` and `Gr` with the labels in `GND`, or in the cell array `X` with the labels in `gt`.
    """
    return read_cells("reuters600", path, ("En", "Fr", "Gr"))


def read_reuters_large(path: str | Path) -> Labelled:
    """Read `Reuters.mat`: 18758 documents in five languages, as sparse views.

    The views are in the cell array `X`, the labels in `Y`.
    """
    return read_cells("reuters_large", path)


def read_imgc(path: str | Path) -> Labelled:
    """Read `Kolenda_data.mat` or `Kolenda_split1.mat`: 1200 images from the web with their captions.

    `Xs` and `Ys` are for training, `Xts` and `Yts` for testing, each a cell array of random splits; the two parts of
    the first split are joined. In the file of one split they are `X`, `Y`, `Xt` and `Yt`.
    """
    return read_cells("imgc", path)


def read_youtube_games(path: str | Path) -> Labelled:
    """Read `GameData.mat`: 2100 videos of seven games, described by text, image and audio.

    The layout, that of `read_imgc`, is known only from the authors' program.
    """
    return read_cells("youtube_games", path)


def read_nus_wide(path: str | Path) -> Labelled:
    """Read `NUSWIDE_dataset.mat`: 5970 images of ten classes in five views.

    The layout, that of `read_imgc`, is known only from the authors' program. The views are named after the features of
    NUS-WIDE that have these numbers of columns; the paper's text names other features.
    """
    return read_cells("nus_wide", path)
