"""The validity of the clusters of a model, and its level."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from coview.state import Range

LEVELS = ("none", "weak", "moderate", "strong")
# Lower bounds of the excess stability: over the mean of data without clusters, and over their largest value.
WEAK, MODERATE, STRONG = 0.1, 0.25, 0.6
SAME = 0.5  # lower bound of the adjusted Rand index between clusters that are called the same

Index = Annotated[float, Range(-1, 1)]


@dataclass(frozen=True)
class Validity:
    """Measures of the clusters of a model, on a random subset of the samples.

    Attributes
    ----------
    n_samples : int
        Size of the subset.
    stability : float
        Mean adjusted Rand index between the labels that models of two halves give to the same samples.
    reference_stability, reference_maximum : float or None
        Mean and largest stability on data without clusters: normal, uniform and log-normal samples with the same
        covariance. None if the method cannot be fitted on such data, or if a kernel is precomputed.
    permuted_stability : float or None
        The mean stability of a single view with columns permuted independently; None for several views.
    views_agreement : float or None
        Mean adjusted Rand index between the clusters of two views, each clustered alone; None for a single view.
    agreement_ratio, random_ratio : float or None
        The largest such index of two views, in standard deviations of its values for rows paired at random, and the
        largest such ratio among the random pairings.
    stable_views : tuple of str, or None
        The views whose clusters are stable if the view is clustered alone; None unless the clusters of all views
        together are stable and no two views agree.
    stable_agreement : float or None
        If exactly one view is stable: the adjusted Rand index between its clusters and those of all views together.
    silhouette : float or None
        Mean silhouette of the labels in the input, averaged over the views.
    cluster_stability : tuple of float
        For each cluster, the mean Jaccard index with the most similar cluster of a half's model; None if the subset has
        fewer than five of its samples.
    """

    n_samples: Annotated[int, Range(least=0)]
    stability: Index
    reference_stability: Index | None
    reference_maximum: Index | None
    permuted_stability: Index | None
    views_agreement: Index | None
    agreement_ratio: float | None
    random_ratio: float | None
    stable_views: tuple[str, ...] | None
    stable_agreement: Index | None
    silhouette: Index | None
    cluster_stability: tuple[Annotated[float, Range(0, 1)] | None, ...]

    @property
    def excess_stability(self) -> float:
        """The stability above that of data without clusters, as a fraction of the largest possible excess."""
        return self._excess_over(self.reference_stability or 0.0)

    def _excess_over(self, reference: float) -> float:
        return (self.stability - reference) / (1 - reference) if reference < 1 else 0.0

    @property
    def is_stable(self) -> bool:
        """Whether the stability is above that of data without clusters."""
        above = self.reference_maximum is None or self.stability > self.reference_maximum
        return above and self.excess_stability >= WEAK

    @property
    def views_agree(self) -> bool:
        """Whether two views agree more than with rows paired at random; True for a single view."""
        if self.agreement_ratio is None or self.random_ratio is None:
            return True
        return self.agreement_ratio > self.random_ratio

    @property
    def only_stable_view(self) -> str | None:
        """The only view with stable clusters, if these are the clusters of all views; None otherwise."""
        same = self.stable_agreement is not None and self.stable_agreement >= SAME
        return self.stable_views[0] if self.stable_views and same else None

    @property
    def level(self) -> str:
        """How well the clusters are supported, one of LEVELS."""
        if not self.is_stable:
            return "none"
        if not self.views_agree:  # clusters of several unrelated views are not common to them
            return "none" if self.only_stable_view is None else "weak"
        if self.reference_stability is None:  # stable clusters of data without clusters cannot be excluded
            return "weak"
        # The setting may be selected for its stability, and columns of a single view may be skewed or discrete.
        excess = min(self._excess_over(each or 0.0) for each in (self.reference_maximum, self.permuted_stability))
        return "strong" if excess >= STRONG else "moderate" if excess >= MODERATE else "weak"
