"""One published method, one file; METHODS is the table that the command, the tests and the benchmarks read."""

from coview.registry import METHODS

__all__ = ["METHODS"]
