"""Tuned: TMvKSCR with preprocessing, kernel, rho, weights and number of clusters selected without known classes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, Any

from coview.compose.preprocessed import Preprocessed
from coview.compose.wrapper import Wrapper
from coview.errors import InputError
from coview.formats import decimals
from coview.methods.tmvkscr import TMvKSCR
from coview.parameters import is_integer
from coview.preprocess.profile import varies
from coview.preprocess.steps import parse_steps
from coview.registry import check_name
from coview.runtime import require_memory
from coview.state import Range, Sizes, require
from coview.tune.candidates import Candidate, affordable, bytes_to_fit, candidates
from coview.tune.record import EvaluatedSetting
from coview.tune.search import ROUNDS, Search, SearchResult
from coview.views import Views

_AUTO = range(2, 13)


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
        Number of clusters, or the numbers to select from; "auto" is 2 to 12.
    budget : "full" or "small"
        "full" evaluates all candidates on 500 samples and half of them on 1500; "small" evaluates all on 400.
    views : list or mapping, optional
        How a stacked X is split into views; see `as_views`.
    n_jobs : int, optional
        Number of threads of the final fit: -1 for all processors; by default as many as BLAS may use.
    progress : callable, optional
        Called as progress(stage, done, total).
    random_state : int, Generator, RandomState or None
        Seed of all randomness: samples drawn, halves, starts of k-means.

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
        Index of the selected setting in evaluations_; 0 if there is only one cluster, which needs no evaluation.
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
    evaluations_: tuple[EvaluatedSetting, ...]
    selected_: Annotated[int, Range(least=0)]
    reason_: str

    def __init__(
        self,
        n_clusters: Any = 2,
        *,
        budget: str = "full",
        views: Any = None,
        n_jobs: int | None = None,
        progress: Any = None,
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.budget = budget
        self.views = views
        self.n_jobs = n_jobs
        self.progress = progress
        self.random_state = random_state

    def _fit(self, X: Any) -> None:
        views = self._views_to_fit(X)
        rounds = ROUNDS[check_name("budget", self.budget, ROUNDS)]
        seed = int(self._generator().integers(2**31))
        numbers = self._cluster_numbers(views)
        pool = _fitting_candidates(views)
        if numbers == [1]:
            result = SearchResult(pool[0], 1, 0, ())
            self.reason_ = "One cluster needs no selection of settings."
        else:
            result = Search(views, numbers, rounds, seed, self.progress).run(pool)
            self.reason_ = _reason(result, views.names, numbers)
        self.evaluations_, self.selected_ = result.evaluations, result.selected
        self.n_clusters_ = result.n_clusters
        self.estimator_ = self._model(result.candidate, result.n_clusters, seed).fit(views)
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
            return [k for k in _AUTO if k == 2 or 2 * k <= n]  # clusters of a single sample are not expected
        several = isinstance(wanted, Iterable) and not isinstance(wanted, str)
        numbers = list(wanted) if several else [wanted]
        # scikit-learn's contract fits a single table with n_clusters=1, so one view may have one cluster.
        least = 1 if len(views) == 1 and len(numbers) == 1 else 2
        if not numbers or not all(is_integer(k) and k >= least for k in numbers):
            raise InputError(
                f"n_clusters={wanted!r}: expected an integer of at least {least}, 'auto', or several integers such as "
                "range(2, 9)"
            )
        if max(numbers) > n:
            raise InputError(
                f"n_samples={n} is too few for n_clusters={max(numbers)}; give more samples or ask for fewer clusters"
            )
        return sorted({int(k) for k in numbers})

    recluster = Preprocessed.recluster  # the fitted estimator learns the clusters again


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


def _reason(result: SearchResult, names: Sequence[str], numbers: Sequence[int]) -> str:
    """Return what is selected, from what, and its measures, in words."""
    selected = result.evaluations[result.selected]
    n_settings = len({each.setting for each in result.evaluations if each.error is None})
    by_steps: dict[str, list[str]] = {}
    for name, steps in zip(names, selected.steps, strict=True):
        by_steps.setdefault(steps, []).append(name)
    preprocessed = " and ".join(
        parse_steps(steps).description + (f" ({', '.join(which)})" if len(by_steps) > 1 else "")
        for steps, which in by_steps.items()
    )
    weights = [f"{w:g} for {name}" for name, w in zip(names, selected.kappa, strict=True) if w != 1]
    rounds = len({each.round for each in result.evaluations})
    return (
        f"Selected {selected.kernel} on {preprocessed} with rho = {selected.rho:g}"
        + (f", kappa = {' and '.join(weights)}" if weights else "")
        + (f" and {selected.n_clusters} clusters (from {min(numbers)} to {max(numbers)})" if len(numbers) > 1 else "")
        + (f", the best of {n_settings} settings" if n_settings > 1 else "")
        + (f" over {rounds} rounds" if rounds > 1 else "")
        + f". On {selected.n_samples:,} samples: "
        + (f"agreement between views {decimals(selected.agreement)}, " if len(names) > 1 else "")
        + f"split-half stability {decimals(selected.stability)} (adjusted Rand index), "
        f"size entropy {decimals(selected.size_entropy)}."
    )
