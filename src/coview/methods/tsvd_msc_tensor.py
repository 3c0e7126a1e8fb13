"""Tensors in the t-SVD algebra: one square matrix per view, shrunk together in Fourier space."""

from __future__ import annotations

import numpy as np

from coview.runtime import Workers
from coview.views import Array

_BLOCK_COLUMNS = 128  # of every matrix at a time: what is worked on stays in the cache


def shrink(tensor: Array, threshold: float, out: Array, workers: Workers) -> float:
    """Lower the singular values of every Fourier slice by the threshold, at most to zero.

    What is written to `out` is the tensor G with the least threshold · ‖G‖ + ½ ‖G - tensor‖_F²; returned is ‖G‖, the
    t-SVD nuclear norm: the sum of a slice's singular values, averaged over all slices.

    The transform runs down the columns, and slice f is the matrix (columns, views) of their entries at frequency f.
    The tensor is real, so slices f and -f are conjugates and only those up to half are looked at. Each is long and
    thin: its singular values and right vectors are those of its triangular factor, put together from the factors of
    blocks of columns. (Products of a slice with itself would be as cheap, and lose half of the digits.) Blocks are
    transformed twice, so that nothing of the tensor's size is ever held in Fourier space. Costs
    O(views n² (log n + views)).

    Parameters
    ----------
    tensor, out : (views, n, n)
        Not the same memory.
    """
    from scipy.fft import irfft, rfft

    n = tensor.shape[1]
    blocks = [slice(start, start + _BLOCK_COLUMNS) for start in range(0, n, _BLOCK_COLUMNS)]

    def slices(block: slice) -> Array:
        """These columns of every slice: (frequencies, columns, views)."""
        transformed: Array = rfft(tensor[:, :, block], axis=1).transpose(1, 2, 0)
        return transformed

    factors = workers.map(lambda block: np.linalg.qr(slices(block), mode="r"), blocks)
    _, values, right = np.linalg.svd(np.concatenate(factors, axis=1), full_matrices=False)
    lowered = np.maximum(values - threshold, 0.0)
    kept = lowered / np.where(values > 0, values, 1.0)
    change = (right.conj().transpose(0, 2, 1) * kept[:, None, :]) @ right

    def fill(block: slice) -> None:
        out[:, :, block] = irfft((slices(block) @ change).transpose(2, 0, 1), n=n, axis=1)

    workers.map(fill, blocks)
    times = np.full(len(values), 2.0)  # a slice stands for its conjugate too
    times[0] = 1.0
    if n % 2 == 0:
        times[-1] = 1.0  # the highest frequency is its own conjugate
    return float(times @ lowered.sum(axis=1) / n)
