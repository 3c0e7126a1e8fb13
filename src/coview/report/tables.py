"""Tables of the report that are computed from a summary."""

from __future__ import annotations

from base64 import b64encode
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from coview.base.text import shortened, shortened_apart
from coview.core.agreement import matched

if TYPE_CHECKING:
    from coview.core.tree import Branch
    from coview.summary import Samples, Summary, Truth

MAX_CLASSES = 40  # columns of the contingency table; a wider table is unreadable
MAX_SPLITS = 5
MAX_TREE_CLUSTERS = 20  # more are too narrow to draw
LEAST_BRANCH = 0.005  # fraction of all samples; smaller branches are not drawn
LEAST_PART = 0.1  # fraction of a cluster; a cluster with two larger parts is divided
MAX_NAME_LENGTH = 200  # of a sample or class in the table of samples


class CrossTable(NamedTuple):
    """Counts by cluster (rows) and class (columns), the class that matches each cluster in the column of its number.

    The last column sums up rare classes if there are many.
    """

    classes: list[str]
    rows: list[list[int]]
    n_other: int  # classes in the last column


class Split(NamedTuple):
    """A cluster that one view divides, with the fractions of its two largest parts."""

    label: int
    largest: float
    second: float


class Division(NamedTuple):
    """A cluster that is divided as the number of clusters grows, and the fractions of its parts, the largest first."""

    n_clusters: int
    next_n_clusters: int
    cluster: int
    parts: list[tuple[int, float]]


def short_names(summary: Summary) -> dict[str, dict[str, str]]:
    """Return the short forms of the names of views, columns and classes, for tables without room for long names."""
    features = [(feature.view, feature.name) for cluster in summary.clusters for feature in cluster.features]
    if means := summary.feature_means:
        features += zip(means.views, means.names, strict=True)
    classes = [name for cluster in summary.clusters for name in cluster.classes or {}]
    return {
        "views": shortened_apart([*(view.name for view in summary.views), *(view for view, _ in features)], 12),
        "features": shortened_apart((name for _, name in features), 20),
        "classes": shortened_apart([*classes, *(summary.truth.classes if summary.truth else ())], 18),
    }


def valleys_by_cluster(summary: Summary) -> dict[int, tuple[float, int | None]]:
    """Return the valley ratio of each cluster that has one, and the other cluster of this ratio."""
    if summary.support is None:
        return {}
    rows = zip(summary.support.clusters, summary.support.valleys, summary.support.nearest, strict=True)
    return {label: (ratio, nearest) for label, ratio, nearest in rows if ratio is not None}


def sample_table(samples: Samples) -> list[dict[str, Any]]:
    """Return the columns of the table of samples, which a script shows page by page."""
    columns: list[tuple[str, str, Sequence[Any] | None]] = [
        ("Sample", "text", samples.names),
        ("Row", "number", samples.rows),
        ("Cluster", "cluster", samples.labels),
        ("Membership", "number", samples.memberships),
        ("Novelty", "number", samples.novelties),
        ("Nearest other", "cluster", samples.nearest_others),
        ("Margin", "number", samples.margins),
        ("Best view", "text", samples.best_views),
        ("Stability", "number", samples.stability),
        ("Class", "text", samples.classes),
    ]
    return [
        {"name": name, "kind": kind, **_coded(kind, values)} for name, kind, values in columns if values is not None
    ]


def _coded(kind: str, values: Sequence[Any]) -> dict[str, Any]:
    """Return the values of a column; if few differ, these are listed once as names, with the places of all as codes.

    A code has one byte, or two if there are more than 256 names.
    """
    if kind == "text":
        values = [shortened(text, MAX_NAME_LENGTH) for text in values]
    place = {name: i for i, name in enumerate(dict.fromkeys(values))}
    if 2 * len(place) > len(values) or len(place) > 65536:
        return {"values": values}
    codes = np.array([place[value] for value in values], dtype="<u2" if len(place) > 256 else "u1")
    return {"names": list(place), "codes": b64encode(codes.tobytes()).decode()}


def splits(summary: Summary) -> dict[str, list[Split]]:
    """Return for each view the clusters that its own labels divide most, independent of the numbers of the labels."""
    found = {}
    lacking = {view.name for view in summary.views if view.n_samples < summary.n_samples}
    for view, view_labels in summary.points.view_labels.items():
        parts = defaultdict(list)
        for (label, own), size in Counter(zip(summary.points.labels, view_labels, strict=True)).most_common():
            if own >= 0 or view not in lacking:
                parts[label].append(size)
        divided = [Split(c, *(size / sum(sizes) for size in sizes[:2])) for c, sizes in parts.items() if len(sizes) > 1]
        found[view] = sorted(divided, key=lambda split: (split.largest, split.label))[:MAX_SPLITS]
    return found


def drawn_branches(tree: Sequence[Branch]) -> list[Branch]:
    """Return the branches that a diagram has room for."""
    first = [branch for branch in tree if branch.n_clusters == tree[0].n_clusters]
    least = LEAST_BRANCH * sum(branch.size for branch in first)
    return [b for b in tree if b.size >= least and b.next_n_clusters <= MAX_TREE_CLUSTERS] or first


def divisions(tree: Sequence[Branch]) -> list[Division]:
    """Return the clusters with at least two parts of some size, in increasing number of clusters."""
    branches: dict[tuple[int, int, int], list[Branch]] = defaultdict(list)
    for branch in sorted(tree, key=lambda each: -each.size):
        if branch.next_n_clusters <= MAX_TREE_CLUSTERS:
            branches[branch.n_clusters, branch.next_n_clusters, branch.cluster].append(branch)
    found = []
    for place, some in sorted(branches.items()):
        total = sum(branch.size for branch in some)
        parts = [(b.next_cluster, b.size / total) for b in some if b.size >= LEAST_PART * total]
        if len(parts) > 1:
            found.append(Division(*place, parts))
    return found


def cross_table(truth: Truth) -> CrossTable:
    """Return the counts by cluster and class, with the most frequent classes if there are many."""
    counts = np.array(truth.contingency)
    kept = np.sort(np.argsort(-counts.sum(axis=0), kind="stable")[:MAX_CLASSES])
    _, columns = matched(counts[:, kept])  # in the order of the clusters; classes without a cluster come last
    kept = kept[[*columns, *(column for column in range(len(kept)) if column not in columns)]]
    rows, n_other = counts[:, kept], counts.shape[1] - len(kept)
    if n_other:
        rows = np.column_stack([rows, counts.sum(axis=1) - rows.sum(axis=1)])
    return CrossTable([truth.classes[column] for column in kept], rows.tolist(), n_other)
