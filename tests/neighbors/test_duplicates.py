"""Duplicate rows and their fingerprints."""

import numpy as np
import pytest
import scipy.sparse as sp

from coview.neighbors.duplicates import Duplicates, fingerprints


@pytest.mark.parametrize("make", [np.array, sp.csr_array], ids=["dense", "csr"])
def test_equal_rows_are_found_in_any_format_and_precision(make):
    rows = np.array([[0.0, 1.0], [2.0, 0.0], [-0.0, 1.0], [1.0, 2.0], [2.0, 0.0], [0.0, 1.0]])
    duplicates = Duplicates(make(rows))
    assert duplicates.first.tolist() == [0, 1, 3]
    assert duplicates.of_row.tolist() == [0, 1, 0, 2, 1, 0]
    assert duplicates.find(rows[[4, 3]].astype(np.float32)).tolist() == [1, 2]
    assert duplicates.find(sp.csr_array(np.array([[0.0, 1.0], [1.0, 0.0], [0.0, 0.0]]))).tolist() == [0, -1, -1]
    position, row = duplicates.members(np.array([1, 0]), np.array([9, 2]))
    assert position.tolist() == [0, 0, 1, 1]
    assert row.tolist() == [1, 4, 0, 2]


def test_different_small_integers_have_different_fingerprints():
    rows = np.stack(np.meshgrid(*[np.arange(-4.0, 5.0)] * 5), axis=-1).reshape(-1, 5)
    assert len(np.unique(fingerprints(rows))) == 9**5
