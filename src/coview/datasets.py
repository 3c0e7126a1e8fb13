"""Data that coview makes by itself: views of handwritten digits, and the two synthetic sets of the paper."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from coview.views import Array, Views, as_views

Labels = NDArray[np.int64]


@dataclass(frozen=True)
class _Gaussian:
    """One cluster of one view, with the numbers as the appendix prints them."""

    mean: tuple[float, float]
    covariance: tuple[tuple[float, float], tuple[float, float]]

    def draw(self, size: int, rng: np.random.Generator) -> Array:
        return rng.multivariate_normal(self.mean, np.array(self.covariance), size=size)


# One row for each view, one entry for each cluster.
SYNTH1 = (
    (_Gaussian((1, 1), ((1, 0.5), (0.5, 1.5))), _Gaussian((3, 4), ((0.3, 0.2), (0.2, 0.6)))),
    (_Gaussian((1, 2), ((1, -0.2), (-0.2, 1))), _Gaussian((2, 2), ((0.6, 0.1), (0.1, 0.5)))),
    (_Gaussian((1, 1), ((1.2, 0.2), (0.2, 1))), _Gaussian((3, 3), ((1, 0.4), (0.4, 0.7)))),
)
SYNTH2 = (
    (_Gaussian((1, 1), ((0.1, 0), (0, 0.3))), _Gaussian((2, 2), ((1.5, 0.4), (0.4, 1.2)))),
    (_Gaussian((2, 2), ((0.3, 0), (0, 0.6))), _Gaussian((1, 1), ((1, 0.5), (0.5, 0.9)))),
)


def make_synth1(random_state: int | np.random.Generator | None = 0) -> tuple[Views, Labels]:
    """Return Synth 1 of the paper's appendix: 1000 samples of two Gaussian clusters in three views of two features.

    The appendix prints means and covariances, but not how many samples each cluster has: here it is half of them.
    The authors' own file is another one, with 575 and 425 samples: `load("synth1")`, see docs/paper/data.md.

    Parameters
    ----------
    random_state : int, Generator or None
        Where the randomness comes from. Rows are shuffled, so their order tells nothing.

    Examples
    --------
    >>> views, labels = make_synth1(0)
    >>> views
    Views(1000 samples; view1: 2, view2: 2, view3: 2)
    """
    return _paired(SYNTH1, (500, 500), random_state)


def make_synth2(random_state: int | np.random.Generator | None = 0) -> tuple[Views, Labels]:
    """Return Synth 2 of the paper's appendix: a compact cluster of 800 samples and a loose one of 200, in two views.

    Row i of both views is the same sample, as the appendix says. In the authors' program it is not:
    `make_synth2_unpaired` makes what they clustered.

    Parameters
    ----------
    random_state : int, Generator or None
        Where the randomness comes from. Rows are shuffled, so their order tells nothing.

    Examples
    --------
    >>> views, labels = make_synth2(0)
    >>> views
    Views(1000 samples; view1: 2, view2: 2)
    """
    return _paired(SYNTH2, (800, 200), random_state)


def make_synth2_unpaired(random_state: int | np.random.Generator | None = 0) -> tuple[Views, Labels]:
    """Return Synth 2 as the paper's numbers were made: each view is shuffled by itself, so rows do not belong together.

    There is one column of labels for each view, and a partition is scored by the mean over the columns. The first 1000
    of 1300 rows are kept, as in the authors' program, whose seed is 0: the clusters have about 800 and 200 samples.

    Parameters
    ----------
    random_state : int, Generator or None
        Where the randomness comes from; 0 gives the very numbers of the authors.

    Examples
    --------
    >>> views, labels = make_synth2_unpaired(0)
    >>> labels.shape, round(float((labels[:, 0] == labels[:, 1]).mean()), 3)
    ((1000, 2), 0.666)
    """
    rng = np.random.default_rng(random_state)
    sizes, kept = (1040, 260), 1000
    tables, columns = {}, []
    for number, clusters in enumerate(SYNTH2, start=1):
        rows = [cluster.draw(size, rng) for cluster, size in zip(clusters, sizes, strict=True)]
        order = rng.permutation(sum(sizes))[:kept]
        tables[f"view{number}"] = np.vstack(rows)[order]
        columns.append(np.repeat(np.arange(2), sizes)[order])
    return as_views(tables), np.column_stack(columns)


def _paired(
    views: Sequence[Sequence[_Gaussian]], sizes: tuple[int, ...], random_state: int | np.random.Generator | None
) -> tuple[Views, Labels]:
    """Draw all views, and shuffle their rows together."""
    rng = np.random.default_rng(random_state)
    drawn = [np.vstack([c.draw(n, rng) for c, n in zip(clusters, sizes, strict=True)]) for clusters in views]
    order = rng.permutation(sum(sizes))
    labels = np.repeat(np.arange(len(sizes)), sizes)
    return as_views({f"view{v}": x[order] for v, x in enumerate(drawn, start=1)}), labels[order]


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
