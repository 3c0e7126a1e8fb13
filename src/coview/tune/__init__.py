"""Settings selected without labels: candidates, their evaluation, the criterion and the search."""

from coview.tune.tuned import Tuned

__all__ = ["Tuned"]
