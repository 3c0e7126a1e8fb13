"""Data sets that ship with coview: views of handwritten digits, and the two synthetic data sets of the paper."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from coview.core.assign import Labels
from coview.data.as_views import as_views
from coview.data.view import Array
from coview.data.views import Views

__all__ = ["digits_views", "make_synth1", "make_synth2", "make_synth2_unpaired"]


class _Gaussian(NamedTuple):
    """One cluster of one view, with the parameters that the appendix prints."""

    mean: tuple[float, float]
    covariance: tuple[tuple[float, float], tuple[float, float]]


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

    The appendix prints means and covariances but not the cluster sizes; here each cluster has half of the samples. The
    authors' file has 575 and 425 samples, see docs/paper/data.md.

    Parameters
    ----------
    random_state : int, Generator or None
        Source of randomness. Rows are shuffled.

    Returns
    -------
    views : Views
    labels : array of shape (1000,)
        The cluster of each sample.

    Examples
    --------
    >>> views, labels = make_synth1(0)
    >>> views
    Views(1000 samples; view1: 2, view2: 2, view3: 2)
    """
    return _paired(SYNTH1, (500, 500), random_state)


def make_synth2(random_state: int | np.random.Generator | None = 0) -> tuple[Views, Labels]:
    """Return Synth 2 of the paper's appendix: a compact cluster of 800 samples and a loose one of 200, in two views.

    Row i of both views is the same sample, as in the appendix. The authors' program shuffles each view separately;
    `make_synth2_unpaired` returns such data.

    Parameters
    ----------
    random_state : int, Generator or None
        Source of randomness. Rows are shuffled.

    Returns
    -------
    views : Views
    labels : array of shape (1000,)
        The cluster of each sample.

    Examples
    --------
    >>> views, labels = make_synth2(0)
    >>> views
    Views(1000 samples; view1: 2, view2: 2)
    """
    return _paired(SYNTH2, (800, 200), random_state)


def make_synth2_unpaired(random_state: int | np.random.Generator | None = 0) -> tuple[Views, Labels]:
    """Return Synth 2 as in the authors' program: each view is shuffled separately, so rows are not aligned.

    There is one column of labels for each view, and a partition is scored by the mean over the columns. The first 1000
    of 1300 rows are kept, as in the authors' program, so the clusters have about 800 and 200 samples.

    Parameters
    ----------
    random_state : int, Generator or None
        Source of randomness; 0 gives the data of the authors.

    Returns
    -------
    views : Views
    labels : array of shape (1000, 2)
        The cluster of each row in each view.

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
        rows = _draw(clusters, sizes, rng)
        order = rng.permutation(sum(sizes))[:kept]
        tables[f"view{number}"] = rows[order]
        columns.append(np.repeat(np.arange(2), sizes)[order])
    return as_views(tables), np.column_stack(columns)


def _draw(clusters: Sequence[_Gaussian], sizes: tuple[int, ...], rng: np.random.Generator) -> Array:
    """Return the rows of one view, cluster by cluster."""
    return np.vstack([rng.multivariate_normal(*each, size) for each, size in zip(clusters, sizes, strict=True)])


def _paired(
    views: Sequence[Sequence[_Gaussian]], sizes: tuple[int, ...], random_state: int | np.random.Generator | None
) -> tuple[Views, Labels]:
    """Return views whose rows are drawn cluster by cluster and shuffled together, and their labels."""
    rng = np.random.default_rng(random_state)
    drawn = [_draw(clusters, sizes, rng) for clusters in views]
    order = rng.permutation(sum(sizes))
    labels = np.repeat(np.arange(len(sizes)), sizes)
    return as_views({f"view{v}": x[order] for v, x in enumerate(drawn, start=1)}), labels[order]


def digits_views() -> tuple[Views, Labels]:
    """Return three views of scikit-learn's 1797 handwritten digits, and the digit that each image shows.

    The views are `pixels` (intensities), `fourier` (magnitudes of the 2-D Fourier transform, which do not depend on the
    position of the digit) and `gradients` (histograms of edge orientations in the four quarters of the image).

    Returns
    -------
    views : Views
    labels : array of shape (1797,)
        The digits 0 to 9.

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
    """Return the magnitudes of the Fourier transform in one half-plane; the other half is equal."""
    return np.abs(np.fft.rfft2(images)).reshape(len(images), -1)


def _edge_orientations(images: Array, n_bins: int = 8) -> Array:
    """Return the edge strength by orientation, summed over each quarter of the image."""
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
