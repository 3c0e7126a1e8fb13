"""Exact search by a k-d tree."""

import numpy as np

from coview import NeighborGraph
from coview.neighbors.exact import ExactSearch
from tests import naive


def test_the_tree_resolves_the_ties_of_a_grid(monkeypatch):
    rows = np.stack(np.meshgrid(np.arange(12.0), np.arange(12.0)), axis=-1).reshape(-1, 2)
    expected = naive.neighbour_graph(rows, 10, 7)[0]
    monkeypatch.setattr(ExactSearch, "near", None)  # quadratic in the number of rows
    np.testing.assert_allclose(NeighborGraph().against(rows).gram.toarray(), expected, rtol=1e-12, atol=1e-14)
