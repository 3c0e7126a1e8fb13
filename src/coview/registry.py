"""Registries: the names of all methods, wrappers, kernels, assigners, selectors and preprocessing steps.

A class is imported at its first lookup, so the command line lists all names without importing NumPy.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, MutableMapping
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import import_module
from typing import Any

from coview.errors import InputError, InputTypeError, kind_of


@dataclass(frozen=True)
class Entry:
    """The location of a class, and a phrase about it for lists of names."""

    path: str  # module and class, such as "coview.methods.ksc:KSC"
    summary: str
    cost: str = ""  # of methods: the time to fit n samples of V views
    most_samples: int | None = None  # of methods: `compare` leaves it out for more, which take minutes or hours

    @property
    def module(self) -> str:
        return self.path.partition(":")[0]

    @property
    def class_name(self) -> str:
        return self.path.partition(":")[2]


class Registry(MutableMapping[str, Any]):
    """Classes by name; each is imported at its first lookup."""

    def __init__(self, entries: Mapping[str, Entry]) -> None:
        self.entries = dict(entries)

    def __getitem__(self, name: str) -> Any:
        entry = self.entries[name]
        return getattr(import_module(entry.module), entry.class_name)

    def __setitem__(self, name: str, entry: Entry) -> None:
        if not isinstance(entry, Entry):
            raise InputTypeError(f"{name!r} is {kind_of(entry)}; give Entry('module:Class', 'what it does')")
        self.entries[name] = entry

    def __delitem__(self, name: str) -> None:
        del self.entries[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)

    @property
    def homes(self) -> dict[str, str]:
        """The module of each class, by the name of the class."""
        return {entry.class_name: entry.module for entry in self.entries.values()}


METHODS = Registry(
    {
        "coview": Entry("coview.evaluate.coview:Coview", "consensus of many clusterings, selects the number", "n"),
        "tmvkscr": Entry("coview.methods.tmvkscr:TMvKSCR", "one latent space that all views share", "n²"),
        "ksc": Entry("coview.methods.ksc:KSC", "kernel spectral clustering of one view", "n²"),
        "kpca": Entry("coview.methods.kpca:KPCA", "kernel principal components of one view", "n²"),
        "mvksc": Entry("coview.methods.mvksc:MvKSC", "coupled kernel spectral clustering of each view", "V n²"),
        "coreg": Entry("coview.methods.coreg:CoReg", "co-regularised spectral embeddings", "V n² per sweep", 10_000),
        "tsvdmsc": Entry(
            "coview.methods.tsvd_msc:TSVDMSC",
            "low-rank tensor of self-representations",
            "V n³ per iteration at most",
            3_000,
        ),
        "comic": Entry(
            "coview.methods.comic:COMIC", "clustering without a given number of clusters", "n², iterative", 5_000
        ),
        "oplfmvc": Entry("coview.methods.op_lfmvc:OPLFMVC", "late fusion of the views' partitions", "n² once, then n"),
        "opmc": Entry("coview.methods.opmc:OPMC", "multi-view k-means by matrix factorisation", "n"),
        "sfmc": Entry("coview.methods.sfmc:SFMC", "fused graph to m anchors with k components", "n m"),
        "mvscbp": Entry("coview.methods.mvscbp:MVSCBP", "spectral clustering of graphs to m anchors", "n m"),
    }
)
WRAPPERS = Registry(
    {
        "preprocessed": Entry("coview.compose.preprocessed:Preprocessed", "preprocesses the views"),
        "concat": Entry("coview.compose.concat:Concat", "stacks the columns of all views"),
        "perview": Entry("coview.compose.per_view:PerView", "one model for each view"),
        "fixedsize": Entry("coview.compose.fixed_size:FixedSize", "trains on some of the samples"),
    }
)
KERNELS = Registry(
    {
        "auto": Entry("coview.kernels.fuzzy:AutoKernel", "fuzzy graph with a metric that suits the view"),
        "rbf": Entry("coview.kernels.rbf:RBF", "Gaussian kernel"),
        "linear": Entry("coview.kernels.products:Linear", "inner product"),
        "poly": Entry("coview.kernels.products:Polynomial", "polynomial kernel"),
        "normpoly": Entry("coview.kernels.products:NormalizedPolynomial", "normalised polynomial kernel"),
        "cosine": Entry("coview.kernels.products:Cosine", "cosine similarity"),
        "fuzzy": Entry("coview.kernels.fuzzy:FuzzyGraph", "fuzzy neighbour graph, sparse"),
        "graph": Entry("coview.kernels.self_tuning:NeighborGraph", "self-tuning neighbour graph, sparse"),
        "precomputed": Entry("coview.kernels.precomputed:Precomputed", "the view is a Gram matrix"),
    }
)
ASSIGNERS = Registry(
    {
        "directions": Entry("coview.core.assign:Directions", "k-means on the directions of the scores"),
        "codebook": Entry("coview.core.assign:Codebook", "nearest of the most frequent sign patterns"),
    }
)
SELECTORS = Registry(
    {
        "uniform": Entry("coview.core.select:Uniform", "rows drawn at random"),
        "entropy": Entry("coview.core.select:Entropy", "rows of large quadratic Rényi entropy"),
        "kmeans": Entry("coview.core.select:KMeansRows", "rows nearest to k-means centres"),
    }
)
STEPS = Registry(
    {
        "standard": Entry("coview.preprocess.steps:Standardize", "standardised columns"),
        "l2": Entry("coview.preprocess.steps:L2Normalize", "L2-normalised rows"),
        "tfidf": Entry("coview.preprocess.steps:TfIdf", "tf-idf"),
        "log1p": Entry("coview.preprocess.steps:Log1p", "log(1 + x)"),
        "total": Entry("coview.preprocess.steps:NormalizeTotal", "rows scaled to equal sums"),
        "block": Entry("coview.preprocess.steps:BlockScale", "rows scaled to a mean squared norm of 1"),
        "median": Entry("coview.preprocess.impute:FillMedian", "empty cells filled with medians"),
        "nearest": Entry("coview.preprocess.impute:FillNearest", "empty cells filled from nearest samples"),
        "pca": Entry("coview.preprocess.steps:PrincipalComponents", "principal components"),
    }
)
FIGURES = Registry({"model": Entry("coview.plots.maps:model_map", "the clusters of a fitted model")})


ALIGNMENTS = ("strict", "inner", "outer")  # of samples by ids: refuse, drop or keep those that are not in every view
IMPUTATIONS = ("median", "nearest")  # steps that fill empty cells
CATEGORIES = ("refuse", "onehot")  # columns of strings
DECIMAL_MARKS = (".", ",")  # of numbers in text tables
CLUSTER_COLUMN = "cluster"
# The columns of label files after that of the ids, which cannot have one of these names, and what they mean.
LABEL_COLUMNS = {
    CLUSTER_COLUMN: "The cluster of the sample. Clusters are numbered by decreasing size among the training samples, "
    "or among up to 10,000 samples if FixedSize (--n-train) trains on fewer.",
    "membership": "The membership in the cluster, at most 1: for Coview the mean of the fraction of the sample's "
    "neighbours in the cluster and of the fraction of the cluster with the sample's labels by the members, for other "
    "methods an estimate of the fraction of models of random subsets that assign the sample to the same cluster.",
    "second_cluster": "The cluster with the second largest membership.",
    "novelty": "From 0 to 1: the fraction of training samples that are more similar to the other training samples than "
    "the sample is. A sample with 0.99 is as far from the training samples as the last 1 % of these.",
    "best_view": "The view that contributes most to the decision between the cluster and the next nearest one.",
    "stability": "The fraction of models, refitted on halves of the training samples, in which the sample stays in its "
    "cluster; blank unless the stability was measured.",
}


def check_name(parameter: str, name: Any, known: Collection[str]) -> str:
    """Return the name, or raise an InputError that lists the known names and suggests the closest."""
    if isinstance(name, str) and name in known:
        return name
    raise InputError(f"{parameter} {name!r} is unknown{suggestion(name, known)} Known: {', '.join(known)}")


def as_instance(parameter: str, value: Any, kind: type, known: Registry, example: str) -> Any:
    """Return the value, or an instance with default parameters of the class that it names."""
    if isinstance(value, kind):
        return value
    if isinstance(value, str) and value in known:
        return known[value]()
    raise InputError(f"{parameter}={value!r}: expected one of {', '.join(known)}, or a value such as {example}")


def suggestion(name: Any, known: Collection[str]) -> str:
    """Return the end of a sentence about an unknown name: a question with the closest known name, or a full stop."""
    known = list(known)
    close = get_close_matches(str(name), known, n=1) or get_close_matches(str(name).lower(), known, n=1)
    return f"; did you mean {close[0]!r}?" if close else "."
