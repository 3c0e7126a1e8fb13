"""Summaries: all numbers of a report as plain values; plots and report only read them."""

from coview.summary.gather import summarize as summarize
from coview.summary.values import Cluster as Cluster
from coview.summary.values import Feature as Feature
from coview.summary.values import FeatureMeans as FeatureMeans
from coview.summary.values import Points as Points
from coview.summary.values import Refits as Refits
from coview.summary.values import SampleMap as SampleMap
from coview.summary.values import Samples as Samples
from coview.summary.values import Similarities as Similarities
from coview.summary.values import Summary as Summary
from coview.summary.values import Truth as Truth
from coview.summary.values import Uncertain as Uncertain
from coview.summary.values import ViewSummary as ViewSummary
