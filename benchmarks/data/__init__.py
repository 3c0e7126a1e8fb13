"""Real data sets of the benchmarks: the stored ones, and readers of the files that the paper used."""

from benchmarks.data.ads import read_ads
from benchmarks.data.catalogue import Dataset, list_datasets
from benchmarks.data.folder import HOW_TO_SET, data_folder, stored_names
from benchmarks.data.public import (
    read_3sources,
    read_imgc,
    read_nus_wide,
    read_reuters600,
    read_reuters_large,
    read_synth1,
    read_youtube_games,
)
from benchmarks.data.shapes import PAPER_TABLE, Labelled, Shape
from benchmarks.data.stored import load

__all__ = [
    "HOW_TO_SET",
    "PAPER_TABLE",
    "Dataset",
    "Labelled",
    "Shape",
    "data_folder",
    "list_datasets",
    "load",
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
