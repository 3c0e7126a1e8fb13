"""Data sets: those that coview makes, those stored in a folder, and readers of the files that the paper used."""

from coview.datasets.ads import read_ads
from coview.datasets.catalogue import Dataset, list_datasets
from coview.datasets.folder import data_folder, stored_names
from coview.datasets.made import _edge_orientations as _edge_orientations
from coview.datasets.made import _fourier_magnitudes as _fourier_magnitudes
from coview.datasets.made import digits_views, make_synth1, make_synth2, make_synth2_unpaired
from coview.datasets.public import (
    read_3sources,
    read_imgc,
    read_nus_wide,
    read_reuters600,
    read_reuters_large,
    read_synth1,
    read_youtube_games,
)
from coview.datasets.shapes import PAPER_TABLE, Labelled, Shape
from coview.datasets.stored import load

__all__ = [
    "PAPER_TABLE",
    "Dataset",
    "Labelled",
    "Shape",
    "data_folder",
    "digits_views",
    "list_datasets",
    "load",
    "make_synth1",
    "make_synth2",
    "make_synth2_unpaired",
    "read_3sources",
    "read_ads",
    "read_imgc",
    "read_nus_wide",
    "read_reuters600",
    "read_reuters_large",
    "read_synth1",
    "read_youtube_games",
    "stored_names",
]
