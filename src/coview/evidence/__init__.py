"""Evidence for clusters: measures that are low if the samples do not form clusters, and their levels."""

from coview.evidence.measure import measure_evidence
from coview.evidence.values import Evidence

__all__ = ["Evidence", "measure_evidence"]
