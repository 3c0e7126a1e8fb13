"""Tuned: TMvKSCR with preparation, kernel, balance and number of clusters chosen from the data, without labels."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from numbers import Integral
from typing import Annotated, Any, Self, TypedDict

from coview.compose.preprocessed import Preprocessed
from coview.compose.wrapper import Wrapper
from coview.errors import InputError
from coview.methods.tmvkscr import TMvKSCR
from coview.preprocess.profile import varies
from coview.preprocess.steps import parse_steps
from coview.state import ListByView, Range, Sizes, require
from coview.tune.candidates import Candidate, affordable, candidates
from coview.tune.search import BUDGETS, Found, Search
from coview.views import Views

_AUTO = range(2, 13)


class EvaluatedRow(TypedDict):
    """One row of `Tuned.evaluations_`."""

    round: Annotated[int, Range(least=1)]
    n_samples: Annotated[int, Range(least=1)]
    steps: ListByView[str]
    kernel: str
    rho: float
    kappa: ListByView[Annotated[float, Range(least=0)]]
    n_clusters: Annotated[int, Range(least=2)]
    criterion: float | None
    consensus: float | None
    stability: float | None
    agreement: float | None
    size_entropy: float | None
    line_fit: float | None
    membership: float | None
    eigengap: float | None
    error: str | None


class Tuned(Wrapper):
    """Cluster without having to choose how: settings that the data themselves speak for, found without labels.

    Candidates are made from what the views look like: how each is prepared, which kernel compares samples, how sum and
    product of the views are balanced. Each is fitted on a part of the samples. What speaks for one: its views agree
    with the whole, halves of the samples give each other the same clusters, other candidates find the same clusters,
    and the clusters are of similar size. The best half goes on to more samples; the one that most speaks for in both
    rounds is fitted on all. docs/quality.md shows how far that goes. Candidates that need more memory than the machine
    has free are left out.

    Parameters
    ----------
    n_clusters : int, "auto", or several numbers such as range(3, 9)
        Number of clusters, or the numbers to choose from; "auto" is 2 to 12.
    budget : "full" or "small"
        How much is tried: "full" fits all candidates on 500 samples and half of them on 1500; "small" all on 400.
    views : list or mapping, optional
        How to cut a stacked X into views; see `as_views`.
    n_jobs : int, optional
        Number of threads of the final fit; see TMvKSCR.
    progress : callable, optional
        Called as progress(stage, done, total).
    random_state : int, Generator, RandomState or None
        Source of all randomness: samples drawn, halves, starts of k-means.

    Attributes
    ----------
    estimator_ : Preprocessed
        The winner, fitted on all samples. What it has learnt can be had from this object, as in model.eigenvalues_.
    n_clusters_ : int
        The number of clusters.
    evaluations_ : list of dict
        A row for each candidate, number of clusters and round: pandas.DataFrame(model.evaluations_).
    reason_ : str
        Why the winner won, in words.
    labels_ : array of shape (n_samples,)
        Clusters of the training samples.

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

    estimator = TMvKSCR()  # what is tuned
    n_clusters_: Annotated[int, Range(least=1)]
    evaluations_: list[EvaluatedRow]
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
        if not (isinstance(self.budget, str) and self.budget in BUDGETS):
            raise InputError(f"budget={self.budget!r} is unknown; use one of {', '.join(map(repr, BUDGETS))}")
        seed = int(self._generator().integers(2**31))
        numbers = self._cluster_numbers(views)
        pool = _worth_trying(views)
        if numbers == [1]:
            found = Found(pool[0], 1, [])
        else:
            found = Search(views, numbers, BUDGETS[self.budget], seed, self.progress).run(pool)
        self.evaluations_ = found.table  # type: ignore[assignment]
        self.n_clusters_ = found.n_clusters
        self.reason_ = reason(found, views.names, numbers) if found.table else "One cluster leaves nothing to choose."
        self.estimator_ = self._model(found.candidate, found.n_clusters, seed).fit(views)
        self.labels_ = self.estimator_.labels_

    def _check_state(self, sizes: Sizes) -> None:
        super()._check_state(sizes)
        require(isinstance(self.estimator_, Preprocessed), "expected Preprocessed as estimator_")
        selected = getattr(self.estimator_.estimator_, "n_clusters", None)
        require(selected == self.n_clusters_, f"estimator_ has {selected} clusters, not n_clusters_={self.n_clusters_}")

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
        """The numbers of clusters to choose from, in increasing order."""
        wanted: Any = self.n_clusters
        n = views.n_samples
        if n < 2:
            raise InputError(f"n_samples={n} is too few to find clusters; give more samples")
        if isinstance(wanted, str) and wanted == "auto":
            return [k for k in _AUTO if k == 2 or 2 * k <= n]  # no cluster is expected to be a single sample
        numbers: Any = [wanted] if isinstance(wanted, Integral) else wanted
        if not isinstance(numbers, Iterable) or isinstance(numbers, str):
            raise InputError(f"n_clusters={wanted!r} must be a whole number, 'auto', or several such as range(2, 9)")
        numbers = list(numbers)
        # scikit-learn's contract fits a plain X with n_clusters=1, so for one view the trivial answer is given.
        least = 1 if len(views) == 1 and len(numbers) == 1 else 2
        if not numbers or any(not isinstance(k, Integral) or isinstance(k, bool) or k < least for k in numbers):
            raise InputError(f"n_clusters={wanted!r} must be whole numbers of at least 2")
        if max(numbers) > n:
            raise InputError(
                f"n_samples={n} is too few for n_clusters={max(numbers)}; give more samples or ask for fewer clusters"
            )
        return sorted({int(k) for k in numbers})

    def recluster(self, X: Any) -> Self:
        """Find the clusters again, among the scores of these samples; the latent space stays as it is.

        Parameters
        ----------
        X : views, as in `as_views`
        """
        self.estimator_.recluster(self._views_to_predict(X))
        self.labels_ = self.estimator_.labels_
        return self


def _worth_trying(views: Views) -> list[Candidate]:
    """Candidates that can be fitted on all samples, of views that say something."""
    for name, x in views.items():
        if views.n_samples > 1 and not varies(x):
            raise InputError(f"view {name!r} has the same values in all {views.n_samples} samples; drop the view")
    pool = [candidate for candidate in candidates(views) if affordable(candidate, views.n_samples)]
    if not pool:
        raise MemoryError(
            f"{views.n_samples} samples of {len(views)} views need more memory than there is; train on some of them, "
            "as in FixedSize(Tuned(…), n_train=5000)"
        )
    return pool


def reason(found: Found, names: Sequence[str], numbers: Sequence[int]) -> str:
    """Say in words what was chosen, from what, and what speaks for it."""
    row = next(
        row
        for row in reversed(found.table)
        if row["n_clusters"] == found.n_clusters
        and row["kappa"] == list(found.candidate.kappa)
        and row["steps"] == list(found.candidate.steps)
        and row["rho"] == found.candidate.rho
        and row["kernel"] == str(found.candidate.kernel)
    )
    tried = {(row["kernel"], *row["steps"], row["rho"], *row["kappa"]) for row in found.table if row["error"] is None}
    ways = dict.fromkeys(found.candidate.steps)
    prepared = " and ".join(
        parse_steps(way).words
        + (
            ""
            if len(ways) == 1
            else f" ({', '.join(n for n, w in zip(names, found.candidate.steps, strict=True) if w == way)})"
        )
        for way in ways
    )
    weights = [
        f"{name} counts {weight:g}" for name, weight in zip(names, found.candidate.kappa, strict=True) if weight != 1
    ]
    several = any(row["round"] > 1 for row in found.table)
    number = f"{found.n_clusters} clusters of {min(numbers)} to {max(numbers)}" if len(numbers) > 1 else ""
    return (
        f"Of {len(tried)} settings, most speaks for {found.candidate.kernel} on {prepared} with rho = "
        f"{found.candidate.rho:g}"
        + (", in both rounds together" if several else "")
        + (f"; and{', in the first,' if several else ''} for {number}" if number else "")
        + (f"; in the sum {' and '.join(weights)}" if weights else "")
        + f". On {row['n_samples']} samples "
        + (f"the views agree with the whole to {row['agreement']:.2f}, " if len(names) > 1 else "")
        + f"halves of the samples find each other's clusters to {row['stability']:.2f} (adjusted Rand index), and the "
        f"size entropy is {row['size_entropy']:.2f}."
    )
