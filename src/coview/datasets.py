"""Data that coview can make by itself, to try things out."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from coview.views import Array, Views, as_views


def digits_views() -> tuple[Views, NDArray[np.int64]]:
    """Return three views of scikit-learn's 1797 handwritten digits, and the digit that each image shows.

    The views see different things: `pixels` where the ink is, `fourier` which strokes repeat, wherever they are
    (magnitudes of the 2-D Fourier transform do not change when the image moves), `gradients` which way edges run
    (orientation histograms in the four quarters of the image).

    Examples
    --------
    >>> views, digit = digits_views()
    >>> views
    Views(1797 samples; pixels: 64, fourier: 40, gradients: 32)
    """
    from sklearn.datasets import load_digits

    digits = load_digits()
    images = digits.images / 16
    views = {
        "pixels": images.reshape(len(images), -1),
        "fourier": _fourier_magnitudes(images),
        "gradients": _edge_orientations(images),
    }
    return as_views(views), digits.target


def _fourier_magnitudes(images: Array) -> Array:
    """Magnitudes of the Fourier transform; those of the other half-plane are the same."""
    return np.abs(np.fft.rfft2(images)).reshape(len(images), -1)


def _edge_orientations(images: Array, n_bins: int = 8) -> Array:
    """Edge strength by orientation, summed over each quarter of the image."""
    down, right = np.gradient(images, axis=(1, 2))
    strength = np.hypot(down, right)
    turn = np.arctan2(down, right) / (2 * np.pi) % 1
    bins = np.minimum((turn * n_bins).astype(int), n_bins - 1)
    half = images.shape[1] // 2
    histograms = [
        (strength * (bins == b)).reshape(-1, 2, half, 2, half).sum(axis=(2, 4)).reshape(len(images), -1)
        for b in range(n_bins)
    ]
    return np.hstack(histograms)
