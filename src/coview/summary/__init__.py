"""Every number that a report shows, gathered once into plain values; plots and report only read them."""

from coview.summary.gather import summarize
from coview.summary.values import Cluster, Feature, Points, Similarities, Summary, Tried, Truth, Tuning, Uncertain, View

__all__ = [
    "Cluster",
    "Feature",
    "Points",
    "Similarities",
    "Summary",
    "Tried",
    "Truth",
    "Tuning",
    "Uncertain",
    "View",
    "summarize",
]
