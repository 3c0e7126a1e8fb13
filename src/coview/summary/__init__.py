"""Summaries: all numbers of a report as plain values; plots and report only read them."""

from coview.summary.gather import summarize
from coview.summary.values import (
    Cluster,
    Feature,
    FeatureMeans,
    Points,
    Refits,
    SampleMap,
    Samples,
    Similarities,
    Summary,
    Truth,
    Uncertain,
    View,
)

__all__ = [
    "Cluster",
    "Feature",
    "FeatureMeans",
    "Points",
    "Refits",
    "SampleMap",
    "Samples",
    "Similarities",
    "Summary",
    "Truth",
    "Uncertain",
    "View",
    "summarize",
]
