"""Tuned: the consensus of several models, with the number of clusters selected without known classes."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np

from coview.compose import Consensus, Preprocessed
from coview.compose.wrapper import Wrapper
from coview.core.assign import Labels, new_numbers
from coview.errors import InputError
from coview.formats import decimals, listed, number_range, plural
from coview.kernels import Kernel
from coview.methods.base import Seed
from coview.methods.coverage import check_coverage, most_clusters
from coview.methods.tmvkscr import TMvKSCR
from coview.parameters import check_number, is_integer, short
from coview.parts import warn
from coview.preprocess.profile import varies
from coview.progress import Progress, ProgressParameter, reporting
from coview.state import IntegerArray, Range, Sizes, require
from coview.tune.final import fall_in_words, final_measures
from coview.tune.models import models_of, number_of_components
from coview.tune.record import EvaluatedModel, FinalMeasures, at_limit, evaluated_numbers, is_complete
from coview.tune.search import Search, SearchResult
from coview.validity import Validity, measure_validity
from coview.validity.words import statement, why_one_cluster
from coview.views import Array, Layout, Views

_AUTO = range(1, 13)
_SEARCH_SEED = 0  # always the same: a number that is selected by chance would change with the seed
_NEXT_NUMBERS = 2  # numbers of clusters that are named beside the selected one


class Tuned(Wrapper):
    """Cluster by the consensus of several models, with the number of clusters selected from the data.

    The models are TMvKSCR with graphs of each view (by the directions of rows, and by standardised columns) and with
    one graph of all columns side by side (by both), each with as many components as there are clusters. `Consensus`
    combines their scores. A model has a larger weight if its labels are stable, that is, similar for random subsets of
    the samples.

    Numbers of clusters are compared on at most 600 samples (20 for each cluster if that is more), by the stability of
    the consensus, the agreement between models, the entropy of the cluster sizes and the eigengap. docs/quality.md
    has results. No known classes are used.

    Parameters
    ----------
    n_clusters : int, "auto", or several integers such as range(3, 9)
        Number of clusters, or the numbers to select from, which a pair does not bound; "auto" is 1 to 12. One cluster
        is selected if more are not supported (docs/validity.md).
    views : list or mapping, optional
        How a stacked X is split into views; see `as_views`.
    n_jobs : int, optional
        Number of threads: -1 for all processors; by default as many as BLAS may use.
    progress : bool or callable, optional
        True shows a bar, one for the search, one for each final fit, and one for the validity. A function is called as
        progress(stage, done, total).
    verbose : int or bool
        As in scikit-learn: 0 prints nothing, 1 the stages of the search and the selection, 2 or more also each model.
    random_state : int, Generator, RandomState or None
        Seed of the final fits. The samples and subsets of the search are always the same for the same views, so the
        selection does not depend on it.

    Attributes
    ----------
    estimator_ : Consensus
        The consensus, fitted on all samples; of one model for one cluster. Its fitted attributes are also attributes of
        this object, as in model.eigenvalues_.
    n_clusters_ : int
        The number of clusters.
    evaluations_ : tuple of EvaluatedModel
        One record for each model and number of clusters; pandas.DataFrame(model.evaluations_) is a table.
    selected_ : int
        Index of the consensus with the selected number in evaluations_; of that with the best number above 1 if one
        cluster is selected from several numbers, and 0 if n_clusters is 1, which needs no evaluation.
    final_ : FinalMeasures or None
        The measures of the consensus on all samples; None if n_clusters is 1.
    validity_ : Validity or None
        What supports the clusters: measures that are low if the samples do not form clusters. None if n_clusters is 1
        or if there are too few samples.
    reason_ : str
        The selection in words, with the numbers of clusters that come next.
    labels_ : array of shape (n_samples,)
        Clusters of the training samples, numbered by decreasing size among the samples that the clusters are learnt
        from.

    See Also
    --------
    TMvKSCR : The method of the models.
    Consensus : The consensus of models of your own.
    stability : Which clusters and samples other samples confirm.
    summarize : All numbers of a report.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> truth = np.repeat([0, 1, 2], 40)
    >>> text, image = (rng.normal(size=(3, d))[truth] * 4 + rng.normal(size=(120, d)) for d in (15, 20))
    >>> model = Tuned("auto", random_state=0).fit({"text": text, "image": image})
    >>> model.n_clusters_, np.bincount(model.labels_)
    (3, array([40, 40, 40]))
    """

    estimator = TMvKSCR()  # the method of the models
    n_clusters_: Annotated[int, Range(least=1)]
    n_clusters: Any  # a number, several numbers, or "auto"
    evaluations_: tuple[EvaluatedModel, ...]
    selected_: Annotated[int, Range(least=0)]
    final_: FinalMeasures | None
    validity_: Validity | None
    reason_: str
    # What the search has found for each number of clusters, for the tree of clusters.
    _searched_rows: Annotated[Array, IntegerArray("_searched", least=0, empty=True)]
    _searched_labels: Annotated[Array, IntegerArray("_numbers", "_searched", least=0, empty=True)]
    if TYPE_CHECKING:  # what `Wrapper` reads from the fitted estimator, for type checkers
        estimator_: Any
        scores_: Array
        eigenvalues_: Array
        kernels_: dict[str, Kernel]
        view_labels_: dict[str, Labels]

    def __init__(
        self,
        n_clusters: int | Iterable[int] | Literal["auto"] = 2,
        *,
        views: Layout = None,
        n_jobs: int | None = None,
        progress: ProgressParameter = None,
        verbose: int = 0,
        random_state: Seed = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.views = views
        self.n_jobs = n_jobs
        self.progress = progress
        self.verbose = verbose
        self.random_state = random_state

    @property
    def _samples_may_lack_views(self) -> bool:
        fitted = vars(self).get("estimator_")
        return True if fitted is None else bool(fitted._samples_may_lack_views)

    def _fit(self, X: Any) -> None:
        views = self._views_to_fit(X)
        verbose = check_number("verbose", int(self.verbose) if isinstance(self.verbose, bool) else self.verbose, 0)
        seed = int(self._generator().integers(2**31))
        _require_variation(views)
        numbers = self._cluster_numbers(views)
        if numbers == [1]:
            self._fit_one_cluster(views, seed)
            self.evaluations_, self.selected_, self.final_, self.validity_ = (), 0, None, None
            self._searched_rows, self._searched_labels = np.zeros(0, dtype=np.int64), np.zeros((0, 0), dtype=np.int64)
            self.reason_ = "One cluster needs no selection."
        else:
            with reporting(self.progress) as report:
                several = [k for k in numbers if k > 1]
                search = Search.run(views, several, _SEARCH_SEED, self.n_jobs, _printing(report, verbose))
            result = search.evaluate(several)
            self._fit_selected(result, views, seed, may_be_one=1 in numbers)
            self._searched_rows = search.rows
            self._searched_labels = np.array([result.labels[k] for k in several])
        if verbose:
            print(f"[Tuned] {self.reason_}")

    def _fit_selected(self, result: SearchResult, views: Views, seed: int, may_be_one: bool) -> None:
        """Fit the consensus on all samples; if its clusters are not valid, one cluster if that may be."""
        models = self._models(views, result.n_clusters, seed)
        # Models of all samples that are none of those of the search have no weight.
        weights = {name: result.weights[name] for name in models if name in result.weights}
        if not weights:
            raise MemoryError(
                f"the models of {views.n_samples} samples do not fit into memory ({listed(list(result.weights))}); "
                "train on some of them, as in FixedSize(Tuned(…), n_train=5000)"
            )
        consensus = Consensus(
            [models[name] for name in weights], result.n_clusters, weights=list(weights.values()), random_state=seed
        ).fit(views)
        self.evaluations_, self.selected_ = result.evaluations, result.selected
        self.final_ = final_measures(consensus)
        with reporting(self.progress) as report:
            report("validity", 0, 1)
            self.validity_ = measure_validity(consensus, views, consensus.labels_, n_jobs=self.n_jobs)
            report("validity", 1, 1)
        self.reason_ = _reason(result, weights, self.final_, self.validity_) + _about_missing_views(views)
        fall = fall_in_words(self.final_, result.evaluations[result.selected])
        if may_be_one and self.validity_ is not None and self.validity_.level == "none":
            self._fit_one_cluster(views, seed)
            self.reason_ = (
                f"{why_one_cluster(self.validity_)}. {statement(self.validity_)} The best of several clusters would be "
                f"{self.reason_}"
            )
            return
        if fall is not None:
            warnings.warn(fall, UserWarning, stacklevel=4)
        self.n_clusters_, self.estimator_, self.labels_ = result.n_clusters, consensus, consensus.labels_

    def _fit_one_cluster(self, views: Views, seed: int) -> None:
        model, *_ = self._models(views, 1, seed).values()  # any of them has the same labels
        self.n_clusters_, self.estimator_ = 1, Consensus([model], 1, random_state=seed).fit(views)
        self.labels_ = self.estimator_.labels_

    def _models(self, views: Views, n_clusters: int, seed: int) -> dict[str, Any]:
        """Return the models of all samples by name."""
        # In float32 the eigensolver is faster: the last component often has no gap to the next one.
        return models_of(
            views,
            number_of_components(n_clusters, views.n_samples),
            dtype="float32",
            n_jobs=self.n_jobs,
            progress=self.progress,
            random_state=seed,
        )

    def _check_state(self, sizes: Sizes) -> None:
        super()._check_state(sizes)
        require(isinstance(self.estimator_, Consensus), "expected Consensus as estimator_")
        fitted = self.estimator_.n_clusters
        require(fitted == self.n_clusters_, f"estimator_ has {fitted} clusters, not n_clusters_={self.n_clusters_}")
        if self.final_ is None:
            require(self.n_clusters_ == 1 and not self.evaluations_, "final_: expected measures of the consensus")
            return
        require(is_complete(self.evaluations_, self.selected_), "evaluations_: expected a selected consensus")
        n, n_numbers = len(self.estimator_.labels_), len(evaluated_numbers(self.evaluations_))
        fits = len(self._searched_labels) == n_numbers and self._searched_rows.max(initial=-1) < n
        require(fits, f"_searched_labels: expected labels of training samples for {n_numbers} numbers of clusters")
        selected = self.evaluations_[self.selected_].n_clusters
        require(
            self.n_clusters_ in (1, selected), f"selected_ has {selected} clusters, not n_clusters_={self.n_clusters_}"
        )

    def _tree_labels(self) -> tuple[Array, dict[int, Labels]]:
        """Return the samples of the search, as rows of the training samples, and their labels by number of clusters."""
        numbers = (each.n_clusters for each in evaluated_numbers(self.evaluations_))
        return self._searched_rows, dict(zip(numbers, self._searched_labels, strict=True))

    def _cluster_numbers(self, views: Views) -> list[int]:
        """Return the numbers of clusters to select from, in increasing order."""
        wanted: Any = self.n_clusters
        n = views.n_samples
        if n < 2:
            raise InputError(f"n_samples={n} is too few to find clusters; give more samples")
        if isinstance(wanted, str) and wanted == "auto":
            check_coverage(views, 2, {})
            # Clusters of a single sample are not expected, nor more clusters than a view has enough samples for.
            return [k for k in _AUTO if k <= 2 or (2 * k <= n and k <= most_clusters(views))]
        several = isinstance(wanted, Iterable) and not isinstance(wanted, str)
        numbers = list(wanted) if several else [wanted]
        if not numbers or not all(is_integer(k) and k >= 1 for k in numbers):
            raise InputError(
                f"n_clusters={short(wanted)}: expected an integer of at least 1, 'auto', or several integers such as "
                "range(2, 9)"
            )
        if max(numbers) > n:
            raise InputError(
                f"n_samples={n} is too few for n_clusters={max(numbers)}; give more samples or ask for fewer clusters"
            )
        check_coverage(views, max(numbers), {})
        low, high = min(numbers), max(numbers)
        if isinstance(wanted, tuple) and len(wanted) == 2 and high - low > 1:  # as ranges are written elsewhere
            fix = (
                f"give range({low}, {high + 1}) for all numbers from {low} to {high}, or [{low}, {high}] for these two"
            )
            warn(f"n_clusters={wanted} compares {low} and {high} clusters only; {fix}", UserWarning, stacklevel=4)
        return sorted({int(k) for k in numbers})

    recluster, _recluster = Preprocessed.recluster, Preprocessed._recluster  # by the fitted estimator

    def _renumber(self, order: Labels) -> bool:
        if not super()._renumber(order):
            return False
        if self.validity_ is not None:
            old = self.validity_.cluster_stability
            new = tuple(old[number] for number in new_numbers(order, len(old))[0])
            self.validity_ = replace(self.validity_, cluster_stability=new)
        return True


def _printing(report: Progress, verbose: float) -> Progress:
    """Return the function that reports stages and prints them: with verbose=1 their last step, from 2 on all steps."""

    def report_and_print(stage: str, done: int, total: int) -> None:
        report(stage, done, total)
        if verbose > 1 or (verbose and done == total):
            print(f"[Tuned] {stage}: {done} of {total}")

    return report_and_print


def _require_variation(views: Views) -> None:
    for name in views:
        count = views.n_present(name)
        if count == 0:
            raise InputError(f"view {name!r} has no samples, because all of its rows are NaN; drop the view")
        if views.n_samples > 1 and not varies(views.observed(name)):
            raise InputError(f"view {name!r} has the same values in all {count} samples; drop the view")


def _reason(result: SearchResult, weights: Mapping[str, float], final: FinalMeasures, validity: Validity | None) -> str:
    """Return the models, the selected number of clusters, those that come next, and the measures, in words."""
    selected, numbers = result.evaluations[result.selected], evaluated_numbers(result.evaluations)
    models = ", ".join(f"{name} ({weight:.2f})" for name, weight in weights.items())
    text = f"{selected.n_clusters} clusters, the consensus of {plural(len(weights), 'model')} with weights: {models}."
    if len(numbers) > 1:
        ranked = sorted(numbers, key=lambda each: -(each.criterion or 0.0))
        others = [each for each in ranked if each is not selected][:_NEXT_NUMBERS]
        named = " and ".join(f"{each.n_clusters} ({decimals(each.criterion)})" for each in others)
        compared = number_range([each.n_clusters for each in numbers])
        text += (
            f" Of {compared} clusters, {selected.n_clusters} has the largest criterion "
            f"({decimals(selected.criterion)}), before {named}{at_limit(result.evaluations, result.selected)}."
        )
    text += f" On {selected.n_samples:,} samples of the search: {_measures_in_words(selected)}."
    on_all = _measures_in_words(final) + (f", split-half stability {decimals(validity.stability)}" if validity else "")
    return f"{text} On all {final.n_samples:,} samples: {on_all}."


def _about_missing_views(views: Views) -> str:
    """Return that models are left out if samples lack views, and what to compare with, as a further sentence."""
    if views.complete:
        return ""
    lacking = views.n_samples - int(np.count_nonzero(views.has_all()))
    return (
        f" Models of stacked columns are left out, because {lacking:,} of {views.n_samples:,} samples lack views; if "
        "these are few, compare with a model that is fitted on the others and labels these by predict."
    )


def _measures_in_words(measures: EvaluatedModel | FinalMeasures) -> str:
    named = {
        "agreement between models": measures.model_agreement,
        "stability": getattr(measures, "stability", None),
        "size entropy": measures.size_entropy,
    }
    return ", ".join(f"{name} {decimals(value)}" for name, value in named.items() if value is not None)
