"""Stability: which clusters, and which samples of them, are found again by models of half of the samples."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from threading import Lock
from typing import Any

import numpy as np

from coview.base.html import html_table
from coview.base.parameters import check_integer
from coview.base.progress import ProgressParameter, reporting
from coview.base.runtime import Workers
from coview.base.text import MOST_DECIMALS, decimals, plural
from coview.certainty.columns import labels_of
from coview.certainty.refits import labels_by_part
from coview.core.agreement import jaccard_indices, matched
from coview.core.assign import Labels
from coview.core.select import Stratified
from coview.data.view import Array
from coview.errors import InputError, InputTypeError, kind_of
from coview.evaluate.linkage import LEAST_SAMPLES
from coview.kernels import Kernel, Precomputed
from coview.model.clusterer import Clusterer
from coview.model.fitting import Seed, as_generator

# Hennig: lower bounds of the mean Jaccard index of clusters that are doubtful, and of those that are stable.
READING_BOUNDS = DOUBTFUL, STABLE = 0.6, 0.75
READINGS = ("stable", "doubtful", "not to be trusted")
DISSOLVED = 0.5  # Hennig: up to this Jaccard index, a cluster is not found again

HEADER = ("cluster", "samples", "Jaccard index", "dissolved", "reading")
_LISTED = 20

# The rows that a model of half of the samples labels, and their labels.
HalfLabels = tuple[Array, Labels]


def hennig_reading(jaccard: float | None) -> str:
    """Return how to read the stability of a cluster, as Hennig (2007) does; nothing if it is not known."""
    if jaccard is None:
        return ""
    return READINGS[sum(round(jaccard, MOST_DECIMALS) < bound for bound in READING_BOUNDS)]  # rounded as it is shown


@dataclass(frozen=True)
class ClusterStability:
    """The stability of one cluster.

    Attributes
    ----------
    label : int
    size : int
        The number of its samples.
    jaccard : float or None
        Mean over the models of the Jaccard index with the most similar cluster; None if no model labels a member.
    dissolved : int
        The number of models in which this index is at most 0.5.
    """

    label: int
    size: int
    jaccard: float | None
    dissolved: int


@dataclass(frozen=True, repr=False)
class Stability:
    """Which clusters and samples are found again by models of half of the samples.

    Attributes
    ----------
    n_repeats : int
        The number of models that could be fitted.
    n_drawn : int
        The number of samples of each model, one less for every second one if the number of all samples is odd.
    predicts : bool
        Whether each model labels all samples; methods that cannot label new samples label their own half only.
    clusters : tuple of ClusterStability
    samples : tuple of float or None
        For each sample, the fraction of the models in which it stays in its cluster, among those that label it; None
        if there are none.
    """

    n_repeats: int
    n_drawn: int
    predicts: bool
    clusters: tuple[ClusterStability, ...]
    samples: tuple[float | None, ...]

    def table(self) -> list[dict[str, Any]]:
        """Return a row for each cluster; pandas.DataFrame(result.table()) is a table.

        Returns
        -------
        list of dict
            With the keys label, size, jaccard, dissolved and reading.
        """
        return [vars(each) | {"reading": hennig_reading(each.jaccard)} for each in self.clusters]

    def __repr__(self) -> str:
        shown = self.clusters[:_LISTED]
        by_cluster = ", ".join(f"{each.label}: {decimals(each.jaccard, bounds=READING_BOUNDS)}" for each in shown)
        more = ", …" if len(self.clusters) > _LISTED else ""
        return f"Stability({self._models()}; {by_cluster}{more})"

    def _models(self) -> str:
        return f"{plural(self.n_repeats, 'model')} of {plural(self.n_drawn, 'sample')}"

    def _repr_html_(self) -> str:
        """Return the clusters as a small table for notebooks."""
        hidden = len(self.clusters) - _LISTED
        more = f"<p>… and {hidden} more clusters</p>" if hidden > 0 else ""
        rows = stability_rows((each.label, each.size, each.jaccard, each.dissolved) for each in self.clusters[:_LISTED])
        return f"<p><b>Stability in {self._models()}</b></p>{html_table(HEADER, rows)}{more}"


def stability_rows(clusters: Iterable[tuple[int, int, float | None, int]]) -> list[tuple[str, ...]]:
    """Return the cells of a table with this header, from label, size, Jaccard index and models without each cluster."""
    return [
        (str(label), f"{size:,}", decimals(jaccard, bounds=READING_BOUNDS), str(dissolved), hennig_reading(jaccard))
        for label, size, jaccard, dissolved in clusters
    ]


def stability(
    model: Any,
    views: Any,
    n_repeats: int = 20,
    *,
    n_jobs: int | None = None,
    progress: ProgressParameter = None,
    random_state: Seed = None,
) -> Stability:
    """Return which clusters of a fitted model, and which of their samples, models of half of the samples find again.

    The same settings are fitted on random halves of the samples, drawn without replacement, because duplicate rows of
    a bootstrap sample would be neighbours of each other. Each pair of models uses both halves of the samples. `Coview`
    is fitted with the number of clusters that it has selected.
    Every model labels all samples, so that each sample counts in all models; methods that cannot label new samples
    label their own half.

    The stability of a cluster is its mean Jaccard index with the most similar cluster of each model. Hennig reads it
    as follows: below 0.6 a cluster is not to be trusted, from 0.6 to 0.75 it is doubtful which samples belong to it,
    and from 0.75 on it is stable. A sample stays in its cluster if it is in the cluster of the model that is matched to
    it, where clusters are matched one to one with the largest sum of Jaccard indices.

    Parameters
    ----------
    model : fitted estimator of this library
    views : views, as in `as_views`
        The training samples, or new samples for models that can label them.
    n_repeats : int
        Number of models.
    n_jobs : int, optional
        Number of threads, each of which fits one model at a time: -1 for all processors; by default as many as BLAS may
        use. The result does not depend on it.
    progress : bool or callable, optional
        True shows a bar. A function is called as progress(stage, done, total) after each model.
    random_state : int, Generator, RandomState or None
        Seed of the halves and of all models.

    Returns
    -------
    Stability

    See Also
    --------
    summarize : Add the result to a report.

    References
    ----------
    Hennig: Cluster-wise assessment of cluster stability. Computational Statistics & Data Analysis 52 (2007), 258-271.

    Examples
    --------
    >>> import numpy as np
    >>> from coview import TMvKSCR
    >>> rng = np.random.default_rng(0)
    >>> truth = np.repeat([0, 1, 2], 20)
    >>> text, image = (rng.normal(size=(3, d))[truth] * 4 + rng.normal(size=(60, d)) for d in (5, 8))
    >>> views = {"text": text, "image": image}
    >>> model = TMvKSCR(3, random_state=0).fit(views)
    >>> found = stability(model, views, n_repeats=4, random_state=0)
    >>> found
    Stability(4 models of 30 samples; 0: 1.00, 1: 1.00, 2: 1.00)
    >>> min(found.samples)
    1.0
    """
    if not isinstance(model, Clusterer):
        raise InputTypeError(f"model is {kind_of(model)}; give a fitted method or wrapper of this library")
    checked = model.check(views)
    n_repeats = check_integer("n_repeats", n_repeats, 1)
    rng = as_generator(random_state)
    for name in checked:
        if not checked.n_present(name):
            raise InputError(f"no sample has the view {name!r}, and stability fits the model again; give all its views")
    labels, is_training = labels_of(model, checked)
    n, kernels = checked.n_samples, model.model_.kernels
    if not is_training:
        _refuse_new_samples(model, kernels)
    tasks = [(half, int(rng.integers(2**31))) for half in _halves(n, n_repeats, rng)]
    predicts = model.model_.predictor is not None
    done, lock = count(1), Lock()

    def fit(task: tuple[Array, int]) -> HalfLabels | ValueError:
        half, seed = task
        shared = np.arange(n) if predicts else half
        try:
            found = labels_by_part(model.of_part(model.model_, half, seed), checked, kernels, half, shared)
        except ValueError as error:  # also of methods of other libraries
            return error
        finally:
            with lock:  # reports come from several threads
                report("stability", next(done), n_repeats)
        return shared, found

    # Warnings are about halves of the samples. The filters belong to the process, so they are set before all threads.
    with reporting(progress) as report, warnings.catch_warnings(), Workers(n_jobs) as workers:
        warnings.simplefilter("ignore")
        results = workers.map(fit, tasks)
    fitted = [each for each in results if not isinstance(each, ValueError)]
    if not fitted:
        raise InputError(
            f"the model cannot be fitted on half of the {n} samples ({results[0]}); stability needs more samples"
        )
    clusters, samples = summarize_halves(labels, fitted)
    return Stability(len(fitted), (n + 1) // 2, predicts, large_clusters_only(clusters), samples)


def _refuse_new_samples(model: Any, kernels: Mapping[str, Kernel]) -> None:
    """Raise an InputError if parameters of the model have an entry for each training sample."""
    precomputed = [name for name, kernel in kernels.items() if isinstance(kernel, Precomputed)]
    parameter = f"kernel of view {precomputed[0]!r}" if precomputed else ""
    if any(isinstance(value, Stratified) for value in model.get_params().values()):
        parameter = "select=Stratified(…)"
    if parameter:
        raise InputError(f"the {parameter} is given for the training samples; give these for their stability")


def summarize_halves(
    labels: Labels, halves: Sequence[HalfLabels]
) -> tuple[tuple[ClusterStability, ...], tuple[float | None, ...]]:
    """Return the stability of each cluster, and for each sample the fraction of models in which it stays."""
    names, numbers, sizes = np.unique(labels, return_inverse=True, return_counts=True)
    best, stays, labelled = [], np.zeros(len(labels)), np.zeros(len(labels))
    for rows, found in halves:
        theirs = np.unique(found, return_inverse=True)[1]
        indices = jaccard_indices(numbers[rows], theirs, len(names))
        best.append(indices.max(axis=1))
        match = np.full(len(names), -1)  # also of clusters that are matched to none, because the model has fewer
        ours, columns = matched(np.nan_to_num(indices))
        match[ours] = columns
        labelled[rows] += 1
        stays[rows] += match[numbers[rows]] == theirs
    known = [of_cluster[~np.isnan(of_cluster)] for of_cluster in np.array(best).T]
    clusters = tuple(
        ClusterStability(int(name), int(size), float(each.mean()) if len(each) else None, int(sum(each <= DISSOLVED)))
        for name, size, each in zip(names, sizes, known, strict=True)
    )
    fractions = (stayed / n if n else None for stayed, n in zip(stays.tolist(), labelled.tolist(), strict=True))
    return clusters, tuple(fractions)


def large_clusters_only(clusters: Iterable[ClusterStability]) -> tuple[ClusterStability, ...]:
    """Return the clusters without the Jaccard index of those that a few samples decide."""
    return tuple(each if each.size >= LEAST_SAMPLES else replace(each, jaccard=None) for each in clusters)


def _halves(n_samples: int, n_repeats: int, rng: np.random.Generator) -> list[Array]:
    """Return increasing row numbers of random halves, each followed by that of the other samples."""
    halves: list[Array] = []
    while len(halves) < n_repeats:
        order = rng.permutation(n_samples)
        halves += [np.sort(order[::2]), np.sort(order[1::2])]
    return halves[:n_repeats]
