"""Tuned: TMvKSCR with preprocessing, kernel, rho, weights and number of clusters selected without known classes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

from coview.compose.preprocessed import Preprocessed
from coview.compose.wrapper import Wrapper
from coview.core.assign import Labels
from coview.errors import InputError
from coview.formats import decimals
from coview.kernels import Kernel
from coview.methods.base import Seed
from coview.methods.tmvkscr import TMvKSCR
from coview.parameters import check_number, is_integer, short
from coview.preprocess.profile import varies
from coview.preprocess.steps import parse_steps
from coview.progress import Progress, ProgressParameter, reporting
from coview.registry import check_name
from coview.runtime import require_memory
from coview.state import Range, Sizes, require
from coview.tune.candidates import Candidate, affordable, bytes_to_fit, candidates
from coview.tune.final import FinalFit, fit_best
from coview.tune.record import EvaluatedSetting, FinalMeasures
from coview.tune.search import ROUNDS, Search, SearchResult
from coview.validity import Validity
from coview.validity.words import statement, why_one_cluster
from coview.views import Array, Layout, Views

_AUTO = range(1, 13)
_SEARCH_SEED = 0  # always the same: a setting that is selected by chance would change with the seed


class Tuned(Wrapper):
    """Cluster with settings that are selected from the data, without known classes.

    Candidates combine preprocessing steps that suit the profile of each view, a kernel, and rho. Each is fitted on a
    subset of the samples. Its criterion combines the agreement between each view's labels and the joint labels, the
    stability between halves of the samples, the consensus with the other candidates, and the entropy of the cluster
    sizes. The better half of the candidates goes on to more samples; the candidate with the largest criterion over
    both rounds is fitted on all samples. docs/quality.md has results. Candidates that need more memory than is free
    are left out.

    Parameters
    ----------
    n_clusters : int, "auto", or several integers such as range(3, 9)
        Number of clusters, or the numbers to select from; "auto" is 1 to 12. One cluster is selected if
        more are not supported (docs/validity.md).
    budget : "full" or "small"
        "full" evaluates all candidates on 500 samples and half of them on 1500; "small" evaluates all on 500,
        with two splits into halves instead of one.
    views : list or mapping, optional
        How a stacked X is split into views; see `as_views`.
    n_jobs : int, optional
        Number of threads of the final fit: -1 for all processors; by default as many as BLAS may use.
    progress : bool or callable, optional
        True shows a bar, one for the search and one for the final fit. A function is called as
        progress(stage, done, total).
    verbose : int or bool
        As in scikit-learn: 0 prints nothing, 1 the stages of the search and the selected setting, 2 or more also each
        candidate.
    random_state : int, Generator, RandomState or None
        Seed of the final fit. The samples and halves of the search are always the same for the same views, so the
        selected setting does not depend on it.

    Attributes
    ----------
    estimator_ : Preprocessed
        The model with the selected settings, fitted on all samples. Its fitted attributes are also attributes of this
        object, as in model.eigenvalues_.
    n_clusters_ : int
        The number of clusters.
    evaluations_ : tuple of EvaluatedSetting
        One record for each candidate, number of clusters and round; pandas.DataFrame(model.evaluations_) is a table.
    selected_ : int
        Index of the selected setting in evaluations_; the best setting of more clusters if one cluster is selected from
        several numbers, and 0 if n_clusters is 1, which needs no evaluation.
    final_ : FinalMeasures or None
        The measures of the selected setting on all samples; None if n_clusters is 1.
    validity_ : Validity or None
        What supports the clusters: measures that are low if the samples do not form clusters. None if n_clusters is 1
        or if there are too few samples.
    reason_ : str
        The selection in words.
    labels_ : array of shape (n_samples,)
        Clusters of the training samples, numbered by decreasing size among the samples that the clusters are learnt
        from.

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

    estimator = TMvKSCR()  # the method whose settings are selected
    n_clusters_: Annotated[int, Range(least=1)]
    n_clusters: Any  # a number, several numbers, or "auto"
    evaluations_: tuple[EvaluatedSetting, ...]
    selected_: Annotated[int, Range(least=0)]
    final_: FinalMeasures | None
    validity_: Validity | None
    reason_: str
    if TYPE_CHECKING:  # what `Wrapper` reads from the fitted TMvKSCR, for type checkers
        estimator_: Preprocessed
        latent_: Array
        scores_: Array
        eigenvalues_: Array
        explained_variance_ratio_: Array
        kernels_: dict[str, Kernel]
        view_labels_: dict[str, Labels]

    def __init__(
        self,
        n_clusters: int | Iterable[int] | Literal["auto"] = 2,
        *,
        budget: str = "full",
        views: Layout = None,
        n_jobs: int | None = None,
        progress: ProgressParameter = None,
        verbose: int = 0,
        random_state: Seed = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.budget = budget
        self.views = views
        self.n_jobs = n_jobs
        self.progress = progress
        self.verbose = verbose
        self.random_state = random_state

    def _fit(self, X: Any) -> None:
        views = self._views_to_fit(X)
        rounds = ROUNDS[check_name("budget", self.budget, ROUNDS)]
        verbose = check_number("verbose", int(self.verbose) if isinstance(self.verbose, bool) else self.verbose, 0)
        seed = int(self._generator().integers(2**31))
        numbers = self._cluster_numbers(views)
        pool = _fitting_candidates(views)
        if numbers == [1]:
            self._fit_one_cluster(pool[0], views, seed)
            self.evaluations_, self.selected_, self.final_, self.validity_ = (), 0, None, None
            self.reason_ = "One cluster needs no selection of settings."
        else:
            with reporting(self.progress) as report:
                several = [k for k in numbers if k > 1]
                result = Search(views, several, rounds, _SEARCH_SEED, _printing(report, verbose)).run(pool)
            self._fit_selected(result, views, seed, may_be_one=1 in numbers)
        if verbose:
            print(f"[Tuned] {self.reason_}")

    def _fit_selected(self, result: SearchResult, views: Views, seed: int, may_be_one: bool) -> None:
        """Fit the selected setting on all samples; if no clusters are valid, with one if that may be."""
        final = fit_best(
            result.ranking, result.evaluations, lambda each: self._model(each, result.n_clusters, seed), views
        )
        self.evaluations_, self.selected_ = result.evaluations, final.selected
        self.final_, self.validity_ = final.measures, final.validity
        self.reason_ = _reason(result.evaluations, final, views.names)
        if may_be_one and final.validity is not None and final.validity.level == "none":
            self._fit_one_cluster({i: each for each, i in result.ranking}[final.selected], views, seed)
            self.reason_ = f"{why_one_cluster(final.validity)}. {statement(final.validity)} {self.reason_}"
        else:
            self.n_clusters_, self.estimator_, self.labels_ = result.n_clusters, final.model, final.model.labels_

    def _fit_one_cluster(self, candidate: Candidate, views: Views, seed: int) -> None:
        self.n_clusters_ = 1
        self.estimator_ = self._model(candidate, 1, seed).fit(views)
        self.labels_ = self.estimator_.labels_

    def _check_state(self, sizes: Sizes) -> None:
        super()._check_state(sizes)
        require(isinstance(self.estimator_, Preprocessed), "expected Preprocessed as estimator_")
        selected = getattr(self.estimator_.estimator_, "n_clusters", None)
        require(selected == self.n_clusters_, f"estimator_ has {selected} clusters, not n_clusters_={self.n_clusters_}")
        require(self.selected_ < max(1, len(self.evaluations_)), "selected_: expected the index of an evaluation")
        for i, each in enumerate(self.evaluations_):
            per_view = len(each.steps) == len(each.kappa) == len(self.view_names_)
            require(per_view, f"evaluations_[{i}]: expected steps and kappa of each view")

    def _model(self, candidate: Candidate, n_clusters: int, seed: int) -> Preprocessed:
        method = TMvKSCR(
            n_clusters,
            kernel=candidate.kernel,
            rho=candidate.rho,
            kappa=list(candidate.kappa),
            n_jobs=self.n_jobs,
            progress=self.progress,
            random_state=seed,
        )
        return Preprocessed(method, steps=list(candidate.steps))

    def _cluster_numbers(self, views: Views) -> list[int]:
        """Return the numbers of clusters to select from, in increasing order."""
        wanted: Any = self.n_clusters
        n = views.n_samples
        if n < 2:
            raise InputError(f"n_samples={n} is too few to find clusters; give more samples")
        if isinstance(wanted, str) and wanted == "auto":
            return [k for k in _AUTO if k <= 2 or 2 * k <= n]  # clusters of a single sample are not expected
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
        return sorted({int(k) for k in numbers})

    recluster = Preprocessed.recluster  # the fitted estimator learns the clusters again


def _printing(report: Progress, verbose: float) -> Progress:
    """Return the function that reports stages and prints them: with verbose=1 their last step, from 2 on all steps."""

    def report_and_print(stage: str, done: int, total: int) -> None:
        report(stage, done, total)
        if verbose > 1 or (verbose and done == total):
            print(f"[Tuned] {stage}: {done} of {total}")

    return report_and_print


def _fitting_candidates(views: Views) -> list[Candidate]:
    """Return the candidates that can be fitted on all samples; no view may be constant."""
    for name, x in views.items():
        if views.n_samples > 1 and not varies(x):
            raise InputError(f"view {name!r} has the same values in all {views.n_samples} samples; drop the view")
    pool = [candidate for candidate in candidates(views) if affordable(candidate, views.n_samples)]
    if not pool:
        require_memory(
            bytes_to_fit(views.n_samples),
            f"fitting {views.n_samples} samples of {len(views)} views",
            "train on some of them, as in FixedSize(Tuned(…), n_train=5000)",
        )
    return pool


def _reason(evaluations: Sequence[EvaluatedSetting], final: FinalFit, names: Sequence[str]) -> str:
    """Return what is selected, from what, and its measures in the search and on all samples, in words."""
    selected, measures = evaluations[final.selected], final.measures
    numbers = {each.n_clusters for each in evaluations}
    n_settings = len({each.setting for each in evaluations if each.error is None})
    by_steps: dict[str, list[str]] = {}
    for name, steps in zip(names, selected.steps, strict=True):
        by_steps.setdefault(steps, []).append(name)
    preprocessed = " and ".join(
        parse_steps(steps).description + (f" ({', '.join(which)})" if len(by_steps) > 1 else "")
        for steps, which in by_steps.items()
    )
    weights = [f"{w:g} for {name}" for name, w in zip(names, selected.kappa, strict=True) if w != 1]
    rounds = len({each.round for each in evaluations})
    return (
        f"Selected {selected.kernel} on {preprocessed} with rho = {selected.rho:g}"
        + (f", kappa = {' and '.join(weights)}" if weights else "")
        + (f" and {selected.n_clusters} clusters (from {min(numbers)} to {max(numbers)})" if len(numbers) > 1 else "")
        + (f", the best of {n_settings} settings" if n_settings > 1 else "")
        + (f" over {rounds} rounds" if rounds > 1 else "")
        + f". On {selected.n_samples:,} samples of the search: {_measures_in_words(selected, len(names))}"
        + f". On all {measures.n_samples:,} samples: {_measures_in_words(measures, len(names))}."
    )


def _measures_in_words(measures: EvaluatedSetting | FinalMeasures, n_views: int) -> str:
    halved = f" ({measures.n_stability} samples)" if isinstance(measures, FinalMeasures) else ""
    named = {
        "agreement between views": measures.agreement if n_views > 1 else None,
        f"split-half stability{halved}": measures.stability,
        "size entropy": measures.size_entropy,
    }
    return ", ".join(f"{name} {decimals(value)}" for name, value in named.items() if value is not None)
