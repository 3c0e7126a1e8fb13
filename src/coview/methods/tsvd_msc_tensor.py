"""Singular value shrinkage of tensors in the t-SVD algebra: one square matrix for each view."""

from __future__ import annotations

import numpy as np

from coview.base.runtime import Workers
from coview.data.view import Array

_BLOCK_COLUMNS = 128  # of every matrix at a time, so that a block fits into the cache


def shrink(tensor: Array, threshold: float, out: Array, workers: Workers) -> float:
    """Reduce the singular values of every Fourier slice by the threshold, at most to zero.

    The transform runs along the columns, and slice f is the matrix (columns, views) of their entries at frequency f.
    The tensor is real, so slices f and -f are conjugate, and only half of them are computed. A slice has many rows and
    few columns: its singular values and right vectors are those of its triangular factor, which is combined from the
    factors of blocks. (Gram matrices of the slices would be as cheap, but lose half of the digits.) Blocks are
    transformed twice, so that no array of the tensor's size is stored in Fourier space. Costs
    O(views n² (log n + views)).

    The result, in other memory than the tensor (views, n, n), is the G that minimises threshold · ‖G‖ +
    ½ ‖G - tensor‖_F². Returned is ‖G‖, the t-SVD nuclear norm: the mean over slices of the sum of singular values.
    """
    from scipy.fft import irfft, rfft

    n = tensor.shape[1]
    blocks = [slice(start, start + _BLOCK_COLUMNS) for start in range(0, n, _BLOCK_COLUMNS)]

    def slices(block: slice) -> Array:
        """Return these columns of every slice, (frequencies, columns, views)."""
        return rfft(tensor[:, :, block], axis=1).transpose(1, 2, 0)

    factors = workers.map(lambda block: np.linalg.qr(slices(block), mode="r"), blocks)
    _, values, right = np.linalg.svd(np.concatenate(factors, axis=1), full_matrices=False)
    lowered = np.maximum(values - threshold, 0.0)
    kept = lowered / np.where(values > 0, values, 1.0)
    change = (right.conj().transpose(0, 2, 1) * kept[:, None, :]) @ right

    def fill(block: slice) -> None:
        out[:, :, block] = irfft((slices(block) @ change).transpose(2, 0, 1), n=n, axis=1)

    workers.map(fill, blocks)
    times = np.full(len(values), 2.0)  # a slice counts for its conjugate as well
    times[0] = 1.0
    if n % 2 == 0:
        times[-1] = 1.0  # the highest frequency is its own conjugate
    return float(times @ lowered.sum(axis=1) / n)
