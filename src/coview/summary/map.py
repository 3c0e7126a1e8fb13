"""The map: positions in two dimensions at which samples of similar scores are close, so that all clusters show at once.

t-SNE arranges some training samples, and every sample is placed by the nearest of these. The position of a sample
depends on its own scores only, so it is the same alone and in any batch, and new samples have a place on the same map.
"""

from __future__ import annotations

import numpy as np

from coview.base.runtime import one_sklearn_thread
from coview.core.assign import Labels
from coview.core.drawn import draw_by_cluster
from coview.core.plane import histogram_plane, principal_plane, scaled
from coview.data.rows import l2_normalize
from coview.data.view import Array
from coview.errors import InputError
from coview.model.model import Model
from coview.neighbors.exact import ExactSearch
from coview.summary.plain import plain_record
from coview.summary.values import SampleMap

ARRANGED = 1000  # training samples; docs/reading-a-summary.md has the cost and the quality of other numbers
_ITERATIONS = 500
_PERPLEXITY = 30
_FEWEST = 8  # t-SNE of fewer distinct points is arbitrary
_NEIGHBOURS = 5
_DECIMALS = 6  # of points: scores may be computed in float32
_NEAREST = 1e-5  # at a smaller distance two points count as the same


def map_positions(
    model: Model, scores: Array | None, labels: Labels, of_training: bool, given: SampleMap | None = None
) -> tuple[SampleMap | None, Array | None]:
    """Return the map of the training samples, and the positions of these samples on it; None without score space."""
    if scores is None:
        return None, None
    kept = model.kept_scores
    trained = scores if kept is None else kept
    if given is None:
        rows = draw_by_cluster(labels if kept is None else model.trained_labels, ARRANGED)
        given = plain_record(SampleMap, fingerprint=model.fingerprint, rows=rows, positions=arrange(trained[rows]))
    elif given.fingerprint != model.fingerprint or not {*given.rows} <= {*range(0 if kept is None else len(kept))}:
        raise InputError("on_map is not a map of this model; give the map of the summary of its training samples")
    arranged, positions = list(given.rows), np.array(given.positions)
    placed = place(scores, trained[arranged], positions)
    same = trained is scores or (of_training and len(trained) == len(scores))
    if same and trained.shape[1] == 1:  # samples of equal score are apart along y, which neighbours cannot tell
        placed[arranged] = positions
    return given, placed


def arrange(scores: Array) -> Array:
    """Return positions of samples (n, 2) from their scores (n, components), centred and at most 1 from the centre.

    The directions of the scores are arranged by t-SNE, which starts at their first two principal components. Equal
    directions have the same position. Takes O(n log n) time: about 1 s for 1,000 samples.

    One component has two directions only. Then x is the score, and samples of similar score are stacked along y.
    """
    if scores.shape[1] == 1:
        return histogram_plane(_points(scores, scores).ravel())
    points, of_sample = np.unique(_points(scores, scores), axis=0, return_inverse=True)
    plane = principal_plane(points)
    if len(points) >= _FEWEST:
        from sklearn.manifold import TSNE

        # The first iterations move little, whatever the scale of the scores.
        start = (1e-4 / np.std(plane[:, 0]) * plane).astype(np.float32)
        perplexity = min(_PERPLEXITY, (len(points) - 1) / 3)
        # One thread: the sum over all pairs is rounded in the order in which threads end.
        with one_sklearn_thread():
            plane = TSNE(2, perplexity=perplexity, init=start, max_iter=_ITERATIONS, random_state=0).fit_transform(
                points
            )
    return scaled(np.asarray(plane, dtype=np.float64))[of_sample.ravel()]


def place(scores: Array, arranged: Array, positions: Array) -> Array:
    """Return the positions of samples by the nearest arranged samples, given the scores and positions of these.

    The position is the mean of the positions of the five nearest ones, weighted by the inverse square of their
    distances, which are those of the directions of scores.
    """
    search = ExactSearch(_points(arranged, arranged))
    near = search.near(_points(scores, arranged), min(_NEIGHBOURS, len(arranged)))
    weights = np.maximum(near.distances, _NEAREST) ** -2.0
    sums = [np.bincount(near.queries, weights * axis[near.rows], len(scores)) for axis in positions.T]
    return np.column_stack(sums) / np.bincount(near.queries, weights, len(scores))[:, None]


def _points(scores: Array, arranged: Array) -> Array:
    """Return the directions of scores; of a single component the scores, relative to the largest arranged one."""
    if scores.shape[1] == 1:
        points = scores.astype(np.float64) / (float(np.abs(arranged).max()) or 1.0)
    else:
        points = l2_normalize(scores)
    return np.round(points, _DECIMALS) + 0.0  # without -0.0
