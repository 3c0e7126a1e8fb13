"""The contents of a summary: plain, frozen values that are written as JSON and read back."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass, field
from html import escape
from typing import Any

from coview.base.html import html_table
from coview.base.records import record_from_json, record_to_json, refuse_nan
from coview.base.text import count, decimals, percent, plural, shortened
from coview.core.tree import Branch
from coview.errors import InputError
from coview.evaluate.number import ClusterNumber
from coview.evaluate.support import Support
from coview.summary.consistency import require_consistent
from coview.summary.plain import EXACT, THREE_DIGITS

_FORMAT = "coview summary 12"
_LISTED = 20


@dataclass(frozen=True)
class Feature:
    """A column of a view that separates a cluster from the other samples."""

    view: str
    name: str
    effect: float  # mean inside minus mean outside, over the pooled standard deviation
    inside: float
    outside: float


@dataclass(frozen=True)
class Cluster:
    """One cluster: its size, its separation, the views that agree with it, and its distinguishing features."""

    label: int
    size: int
    fraction: float
    stability: float | None  # mean Jaccard index with the most similar cluster of a model of half of the samples
    silhouette: float | None  # mean over the members, in score space
    margin: float | None  # median over the members; below 0 if another cluster is nearer to most of them
    membership: float | None  # mean over the members that are listed
    kept_together: dict[str, float]  # by view: fraction of the members in the matching cluster of the view's own labels
    contributions: dict[str, float]  # by view: mean part of the decision margin of the members
    contradicted: dict[str, float]  # by view: fraction of the members with the view to which it contributes negatively
    features: tuple[Feature, ...]  # largest effects first
    classes: dict[str, int] | None  # known classes of the members, most frequent first


@dataclass(frozen=True)
class ViewSummary:
    """One view: its size, preprocessing, kernel and weight, and the labels that it yields alone."""

    name: str
    n_features: int
    n_samples: int  # that have the view
    sparse: bool
    preprocessing: str  # in words
    kernel: str | None
    kappa: float | None = field(metadata=EXACT)  # its weight in the sum of kernel matrices, for methods with weights
    agreement: float | None  # adjusted Rand index between its own labels and the joint labels
    agreement_without: float | None  # the same between the joint labels and those predicted without the view
    sizes: tuple[int, ...] | None  # number of samples with each of its own labels, if all samples have one
    notes: tuple[str, ...]  # such as constant columns


@dataclass(frozen=True)
class Refits:
    """The models of half of the samples by which `stability` has measured the stability of clusters and samples."""

    n_repeats: int  # number of models
    n_drawn: int  # samples of each model
    predicts: bool  # whether each model labels all samples, and not only its own
    dissolved: tuple[int, ...]  # by cluster: number of models in which the Jaccard index is at most 0.5


@dataclass(frozen=True)
class Truth:
    """Agreement of the clusters with known classes."""

    classes: tuple[str, ...]
    contingency: tuple[tuple[int, ...], ...]  # one row per cluster, one column per class
    ari: float
    nmi: float
    accuracy: float
    purity: float
    largest_class: float  # fraction of the samples in the largest class: the accuracy of a single cluster


@dataclass(frozen=True)
class FeatureMeans:
    """Standardised means by cluster of the columns that distinguish the clusters most.

    Columns are standardised over all samples, so a mean of 1 is one standard deviation above the mean of all samples.
    """

    views: tuple[str, ...]  # one entry per column, as in names
    names: tuple[str, ...]
    values: tuple[tuple[float, ...], ...] = field(metadata=THREE_DIGITS)  # one row per cluster


@dataclass(frozen=True)
class Uncertain:
    """A sample near the border between two clusters."""

    row: int
    sample: str
    label: int
    nearest_other: int
    margin: float  # below 0 if the other cluster is nearer
    membership: float | None = field(metadata=THREE_DIGITS)  # in its cluster


@dataclass(frozen=True, repr=False)
class Samples:
    """The samples by name: all of them, or a random subset if there are many. It includes the plotted ones."""

    rows: tuple[int, ...]
    names: tuple[str, ...]
    labels: tuple[int, ...]
    classes: tuple[str, ...] | None
    nearest_others: tuple[int, ...] | None  # the nearest cluster besides the own one
    margins: tuple[float, ...] | None
    memberships: tuple[float, ...] | None = field(metadata=THREE_DIGITS)  # in the own cluster
    novelties: tuple[float | None, ...] | None = field(metadata=THREE_DIGITS)  # 0 to 1; None without a common view
    best_views: tuple[str, ...] | None  # the view that contributes most to the label
    stability: tuple[float | None, ...] | None  # fraction of the refits in which the sample stays in its cluster

    def __repr__(self) -> str:
        return f"Samples({len(self.rows)} samples)"


@dataclass(frozen=True, repr=False)
class Points:
    """The samples to plot: all of them, or a random subset if there are many."""

    rows: tuple[int, ...]
    samples: tuple[str, ...]
    labels: tuple[int, ...]
    classes: tuple[str, ...] | None
    margins: tuple[float, ...] | None  # from -1 to 1; below 0 if the nearest other cluster is nearer than the own one
    memberships: tuple[float, ...] | None = field(metadata=THREE_DIGITS)
    novelties: tuple[float | None, ...] | None = field(metadata=THREE_DIGITS)
    scores: tuple[tuple[float, ...], ...]  # one row per sample, one column per component
    positions: tuple[tuple[float, ...], ...]  # x and y of each sample on the map
    view_labels: dict[str, tuple[int, ...]]
    view_scores: dict[str, tuple[tuple[float | None, ...], ...]]  # None for samples that lack the view

    def __repr__(self) -> str:
        components = len(self.scores[0]) if self.scores else 0
        return f"Points({len(self.rows)} samples, {components} components)"


@dataclass(frozen=True, repr=False)
class SampleMap:
    """The training samples that t-SNE has arranged in two dimensions; others are placed by the nearest of these."""

    fingerprint: str  # of the training samples of the model
    rows: tuple[int, ...]  # among the training samples of the method, or all samples if it does not keep their scores
    positions: tuple[tuple[float, ...], ...]  # x and y of each, from -1 to 1

    def __repr__(self) -> str:
        return f"SampleMap({len(self.rows)} arranged samples)"


@dataclass(frozen=True, repr=False)
class Similarities:
    """Similarities of some samples, ordered by cluster.

    "fused similarity" is the fused matrix of the method: rho times the sum of the centred kernel matrices, weighted by
    kappa, plus 1 - rho times their elementwise product. "mean similarity", for methods without rho, is the mean of the
    kernel matrices. Both are computed among these samples and scaled to ones on the diagonal; the neighbour graph of
    the training samples is that of the model. "cosine similarity of the scores" is that of `Coview`.
    """

    name: str
    labels: tuple[int, ...]
    values: tuple[tuple[float, ...], ...] = field(metadata=THREE_DIGITS)

    def __repr__(self) -> str:
        return f"Similarities({self.name} of {len(self.labels)} samples)"


@dataclass(frozen=True, repr=False)
class Summary:
    """What a fitted model found, as plain values that are written as JSON and read back.

    Attributes
    ----------
    method : str
        The class, with the classes inside wrappers.
    parameters : dict
    n_samples, n_train, n_clusters : int
    of_training : bool
        Whether these are the samples of the fit, and not new ones.
    views : tuple of ViewSummary
    clusters : tuple of Cluster
    support : Support or None
        What supports the clusters; None for new samples, for one cluster that is given, and for precomputed kernels.
    refits : Refits or None
        The models from which the stability of clusters and samples is computed, if it is given to `summarize`.
    silhouette : float or None
        Mean silhouette in score space.
    rho : float or None
        Weight of the sum of the kernel matrices against their product, for methods with this parameter.
    eigenvalues, explained_variance_ratio : tuple of float, or None
    further_eigenvalues : tuple of float, or None
        The next few eigenvalues, which the method does not use.
    tree : tuple of Branch, or None
        Which cluster splits into which as the number of clusters grows; pandas.DataFrame(summary.tree) is a table.
    feature_means : FeatureMeans or None
    uncertain : tuple of Uncertain
        The samples of smallest margin.
    truth : Truth or None
        Comparison with known classes, if they are given.
    samples : Samples
    points : Points
    map : SampleMap or None
        The arranged samples of the map, on which `summarize` can place new samples; None without scores.
    similarities : Similarities or None
    number : ClusterNumber or None
        How the number of clusters was selected, if it was.
    notes : tuple of str
    seconds, versions : dict
        Times by stage, and versions by package.
    command : str or None
        The command that repeats the run.

    See Also
    --------
    summarize : Compute a summary.

    Examples
    --------
    >>> import numpy as np
    >>> from coview import TMvKSCR, summarize
    >>> rng = np.random.default_rng(0)
    >>> rows = np.repeat([[0.0, 0.0], [9.0, 9.0]], 20, axis=0) + rng.normal(size=(40, 2))
    >>> summary = summarize(TMvKSCR(2, random_state=0).fit([rows]), [rows])
    >>> Summary.from_json(summary.to_json()) == summary
    True
    """

    method: str
    parameters: dict[str, Any] = field(metadata=EXACT)
    n_samples: int
    n_train: int
    n_clusters: int
    of_training: bool
    views: tuple[ViewSummary, ...]
    clusters: tuple[Cluster, ...]
    support: Support | None
    refits: Refits | None
    silhouette: float | None
    rho: float | None = field(metadata=EXACT)
    eigenvalues: tuple[float, ...] | None
    explained_variance_ratio: tuple[float, ...] | None
    further_eigenvalues: tuple[float, ...] | None
    tree: tuple[Branch, ...] | None
    feature_means: FeatureMeans | None
    uncertain: tuple[Uncertain, ...]
    truth: Truth | None
    samples: Samples
    points: Points
    map: SampleMap | None
    similarities: Similarities | None
    number: ClusterNumber | None
    notes: tuple[str, ...]
    seconds: dict[str, float] = field(metadata=EXACT)
    versions: dict[str, str]
    command: str | None

    def to_dict(self) -> dict[str, Any]:
        """Return all values as dictionaries, lists, strings and numbers.

        Returns
        -------
        dict
        """
        return {"format": _FORMAT, **record_to_json(self)}

    def to_json(self) -> str:
        """Return all values as one line of JSON without NaN, which `from_json` reads.

        Returns
        -------
        str
        """
        return json.dumps(self.to_dict(), allow_nan=False, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str | bytes) -> Summary:
        """Return the summary that `to_json` has written; other text is refused.

        Parameters
        ----------
        text : str or bytes
            Contents of a summary.json.

        Returns
        -------
        Summary
        """
        try:
            plain = json.loads(text, parse_constant=refuse_nan)
        except (ValueError, RecursionError) as error:
            raise InputError(f"the summary is not valid JSON ({error}); write it again with Summary.to_json") from None
        if not isinstance(plain, dict) or plain.get("format") != _FORMAT:
            raise InputError(f"expected a summary of the format {_FORMAT!r}; fit again with this version to get one")
        del plain["format"]
        summary: Summary = record_from_json(cls, plain, "the summary")
        require_consistent(summary)
        return summary

    def __repr__(self) -> str:
        return f"Summary({self.method}: {', '.join(self._headline())})"

    def _headline(self) -> list[str]:
        clusters, views = plural(self.n_clusters, "cluster"), plural(len(self.views), "view")
        parts = [f"{count(self.n_samples)} samples in {clusters} from {views}"]
        if self.silhouette is not None:
            parts.append(f"silhouette {decimals(self.silhouette)}")
        if self.truth is not None:
            parts.append(f"ARI with known classes {decimals(self.truth.ari)}")
        return parts

    def _repr_html_(self) -> str:
        """Return the clusters as a small table for notebooks."""
        views = [view.name for view in self.views if view.agreement is not None]
        kept = (f"kept together: {name}" for name in views)
        header = ("cluster", "size", "fraction", "silhouette", "margin", *kept, "features")
        rows = [
            (
                str(cluster.label),
                f"{cluster.size:,}",
                percent(cluster.fraction),
                decimals(cluster.silhouette),
                decimals(cluster.margin),
                *(percent(cluster.kept_together.get(name)) for name in views),
                ", ".join(
                    f"{each.view}: {shortened(each.name)} ({decimals(each.effect, 1, sign=True)})"
                    for each in cluster.features[:3]
                ),
            )
            for cluster in self.clusters[:_LISTED]
        ]
        more = f"<p>… and {len(self.clusters) - _LISTED} more clusters</p>" if len(self.clusters) > _LISTED else ""
        title = escape(f"{self.method}: {', '.join(self._headline())}")
        return f"<p><b>{title}</b></p>{html_table(header, rows)}{more}"


def reading_order(name: str) -> tuple[Any, ...]:
    """Return a sort key by which numbers come before words, 2 before 10, and gene2 before gene10."""
    try:
        number = float(name)
    except ValueError:
        number = math.nan
    if math.isfinite(number):
        return 0, number, name
    parts = re.split("([0-9]+)", name)  # words and numbers alternate, so that like is compared with like
    return 1, [float(part) if i % 2 else part for i, part in enumerate(parts)], name
