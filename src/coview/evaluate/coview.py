"""Coview: the consensus of many clusterings, with the number of clusters selected from the data."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, Self

from coview.base.parameters import is_integer, short
from coview.base.progress import Progress, ProgressParameter
from coview.base.runtime import Workers
from coview.data.as_views import Layout
from coview.data.rows import narrowed
from coview.data.view import Array
from coview.data.views import Views
from coview.errors import InputError, Note
from coview.evaluate.fitted import fit_consensus, fit_with_selected_number
from coview.evaluate.number import ClusterNumber
from coview.evaluate.support import Support
from coview.evaluate.words import number_in_words
from coview.model.clusterer import SCORES, Clusterer
from coview.model.fitting import Seed, as_generator, check_coverage, note_on_fewer, note_on_many_clusters
from coview.model.model import Model
from coview.preprocess.profile import varies


class Coview(Clusterer):
    """Cluster by the consensus of many clusterings of all views, with the number of clusters selected from the data.

    Neighbour graphs of each view and of all views side by side, by the directions of rows and by standardised columns,
    give random walks between the samples. Their components, and the columns themselves, are clustered by k-means.
    Average linkage of the labels by all of these clusterings gives a tree, of which the clusters are a level.

    The number of clusters is found on at most 2,000 samples: clusters are merged unless the graph has a valley between
    them, and what has no valley is divided if it has more structure than data of the same covariance without groups.

    Parameters
    ----------
    n_clusters : int, "auto", or several integers such as range(3, 9)
        Number of clusters, or the numbers of which the nearest to the one that is found is used. "auto" may find 1.
    views : list or mapping, optional
        How a stacked X is split into views; see `as_views`.
    n_jobs : int, optional
        Number of threads: -1 for all processors; by default as many as BLAS may use.
    progress : bool or callable, optional
        True shows a bar. A function is called as progress(stage, done, total).
    random_state : int, Generator, RandomState or None
        Seed of the initial centres of k-means.

    Attributes
    ----------
    n_clusters_ : int
        The number of clusters.
    labels_ : array of shape (n_samples,)
        Clusters of the training samples, numbered by decreasing size.
    number_ : ClusterNumber or None
        How the number of clusters was selected; None if it is given.
    support_ : Support or None
        What supports the clusters; None if their number is given, or is not the one that was found. `summarize`
        measures it otherwise.
    reason_ : str
        The selection in words.
    scores_ : array of shape (n_samples, n_components)
        Coordinates of the training samples in the latent space: directions of the components of the walk on all graphs.
    eigenvalues_ : array of shape (n_components,)
        Eigenvalues of this walk, without the first, which is 1.
    model_ : Model
        What is learnt; `model_.level(n_clusters)` has the clusters for another number.

    See Also
    --------
    TMvKSCR : One model, which is faster.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> truth = np.repeat([0, 1, 2], [100, 40, 20])
    >>> text, image = (rng.normal(size=(3, d))[truth] * 4 + rng.normal(size=(160, d)) for d in (15, 20))
    >>> model = Coview(n_clusters="auto", random_state=0).fit({"text": text, "image": image})
    >>> model.n_clusters_, np.bincount(model.labels_)
    (3, array([100,  40,  20]))
    """

    abilities = SCORES
    may_lack_views = True
    n_clusters_: int
    number_: ClusterNumber | None
    support_: Support | None
    reason_: str
    scores_: Array
    eigenvalues_: Array

    def __init__(
        self,
        n_clusters: int | Iterable[int] | Literal["auto"] = "auto",
        *,
        views: Layout = None,
        n_jobs: int | None = None,
        progress: ProgressParameter = None,
        random_state: Seed = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.views = views
        self.n_jobs = n_jobs
        self.progress = progress
        self.random_state = random_state

    def check_views(self, views: Views) -> tuple[Note, ...]:
        numbers = self._numbers(views.n_samples)
        for name in views:
            if not views.n_present(name):
                raise InputError(f"view {name!r} has no samples, because all of its rows are NaN; drop the view")
            if views.n_samples > 1 and not varies(views.observed(name)):
                raise InputError(
                    f"view {name!r} has the same values in all {views.n_present(name)} samples; drop the view"
                )
        return note_on_many_clusters(max(numbers, default=1), views.n_samples)

    def check_coverage(self, views: Views) -> None:
        check_coverage(views, max(self._numbers(views.n_samples), default=2), {})

    def fit_model(self, views: Views, report: Progress) -> Model:
        numbers, seed = self._numbers(views.n_samples), int(as_generator(self.random_state).integers(2**31))
        with Workers(self.n_jobs) as workers:
            if len(numbers) == 1:
                fit = fit_consensus(views, numbers[0], seed, workers, report)
            else:

                def nearest(found: int) -> int:
                    return min(numbers, key=lambda number: abs(number - found)) if numbers else found

                fit = fit_with_selected_number(views, seed, workers, report, nearest)
            scores = fit.model.scores(views)
        learnt = {
            "n_clusters_": fit.model.n_clusters,
            "number_": fit.number,
            "support_": fit.support,
            "reason_": "The number of clusters is given." if fit.number is None else number_in_words(fit.number),
            "scores_": narrowed(scores, views.dtype),
            "eigenvalues_": fit.model.walks[-1].eigenvalues,
        }
        return Model(fit.labels, learnt, fit.model, notes=note_on_fewer(fit.model.n_clusters, fit.n_clusters))

    def of_part(self, found: Model, rows: Array, seed: int) -> Self:
        return super().of_part(found, rows, seed).set_params(n_clusters=found.learnt["n_clusters_"])

    def _numbers(self, n_samples: int) -> list[int]:
        """Return the numbers of clusters to select from in increasing order; [] for "auto"."""
        wanted: Any = self.n_clusters
        if n_samples < 2:
            raise InputError(f"n_samples={n_samples} is too few to find clusters; give more samples")
        if isinstance(wanted, str) and wanted == "auto":
            return []
        several = isinstance(wanted, Iterable) and not isinstance(wanted, str) and getattr(wanted, "ndim", 1) > 0
        numbers = list(wanted) if several else [wanted]
        if not numbers or not all(is_integer(k) and k >= 1 for k in numbers):
            raise InputError(
                f"n_clusters={short(wanted)}: expected an integer of at least 1, 'auto', or several integers such as "
                "range(2, 9)"
            )
        if max(numbers) > n_samples:
            raise InputError(
                f"n_samples={n_samples} is too few for n_clusters={max(numbers)}; give more samples or ask for fewer "
                "clusters"
            )
        return sorted({int(k) for k in numbers})
