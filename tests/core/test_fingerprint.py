"""Fingerprints of views that are in several blocks."""

import numpy as np
import pytest

from coview import Views
from coview.core import fingerprint as module
from coview.core.fingerprint import block_checksum, fingerprint, fingerprint_of_blocks, hashed_rows


@pytest.mark.parametrize("most", [2**24, 150])
def test_blocks_give_the_fingerprint_of_the_whole(monkeypatch, most):
    monkeypatch.setattr(module, "_MOST_VALUES", most)
    rng = np.random.default_rng(0)
    views = Views({"a": rng.normal(size=(50, 4)), "b": rng.normal(size=(50, 7)).astype(np.float32)})
    parts = []
    for x in views.values():
        hashed = hashed_rows(*x.shape)
        blocks = [x[hashed[(hashed >= start) & (hashed < start + 20)]] for start in (0, 20, 40)]
        parts.append((x.shape, [block_checksum(block) for block in blocks]))
    assert fingerprint_of_blocks(parts) == fingerprint(views)
    assert fingerprint_of_blocks(parts[::-1]) != fingerprint(views)
