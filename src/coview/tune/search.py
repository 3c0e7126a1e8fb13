"""The search: all candidates on few samples, the better ones on more, then the weights of the views."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Any

import numpy as np

from coview.core.select import draw_rows
from coview.errors import InputError
from coview.tune.candidates import Candidate
from coview.tune.criterion import Evidence, consensus, criterion, for_numbers
from coview.tune.evaluation import Trials
from coview.views import Array, Views

Row = dict[str, Any]
Progress = Callable[[str, int, int], object]

_LEAST_PER_CLUSTER = 5  # samples in a round: halves of it should still hold all clusters
_WEIGHTS = (0.0, 2.0)  # tried for each view instead of 1
_LEAST_GAIN = 1.05  # of the criterion, below which a weight stays as it is: less is luck


@dataclass(frozen=True)
class Round:
    """How many samples a round draws, how often it cuts them into halves, and the share of the candidates it sees."""

    n_samples: int
    n_splits: int
    share: float


BUDGETS: Mapping[str, tuple[Round, ...]] = {
    "small": (Round(400, 1, 1.0),),
    "full": (Round(500, 1, 1.0), Round(1500, 1, 0.5)),
}


@dataclass(frozen=True)
class Found:
    """What most speaks for, and all that was tried: a row for each candidate, number of clusters and round."""

    candidate: Candidate
    n_clusters: int
    table: list[Row]


class Search:
    """Try candidates in rounds, from few samples to more.

    Parameters
    ----------
    views : Views
    cluster_numbers : numbers of clusters to choose from
    rounds : of a budget
    seed : int
    progress : callable, optional
        Called as progress(stage, done, total).
    """

    def __init__(
        self,
        views: Views,
        cluster_numbers: Sequence[int],
        rounds: Sequence[Round],
        seed: int,
        progress: Progress | None = None,
    ) -> None:
        self._views = views
        self._numbers = list(cluster_numbers)
        # A round is left out where the one before has seen all samples.
        self._rounds = [r for i, r in enumerate(rounds) if i == 0 or rounds[i - 1].n_samples < views.n_samples]
        self._seed = seed
        self._progress = progress or (lambda stage, done, total: None)
        self._table: list[Row] = []

    def run(self, pool: Sequence[Candidate]) -> Found:
        """Return the candidate and the number of clusters that most speaks for."""
        numbers = self._numbers
        rounds = []
        spoken: Counter[Candidate] = Counter()  # what speaks for each, in all rounds together: one alone is noisy
        for number, setting in enumerate(self._rounds, start=1):
            pool = pool[: max(2, ceil(setting.share * len(pool)))]
            trials = self._trials(setting, number)
            tried = _Tried(numbers)
            for i, candidate in enumerate(pool):
                tried.add(candidate, trials)
                self._progress(f"candidates on {trials.n_samples} samples", i + 1, len(pool))
            tried.require_any()
            rounds.append((trials, tried))
            self._table += tried.rows(number, trials.n_samples)
            k, judged = tried.best()
            spoken.update(dict(zip(tried.candidates, judged.tolist(), strict=True)))
            pool, numbers = sorted(tried.candidates, key=lambda candidate: -spoken[candidate]), [k]
        # Weights are sought on the few samples of the first round: they matter least, and are tried most often.
        return Found(self._weighted(pool[0], k, *rounds[0]), k, self._table)

    def _trials(self, setting: Round, number: int) -> Trials:
        seed = self._seed + number
        count = max(setting.n_samples, _LEAST_PER_CLUSTER * max(self._numbers))
        rows = draw_rows(self._views.n_samples, count, np.random.default_rng(seed))
        return Trials(self._views.take(rows), setting.n_splits, seed)

    def _weighted(self, best: Candidate, k: int, trials: Trials, tried: _Tried) -> Candidate:
        """Change the weight of one view after the other, where clearly more speaks for it.

        A view that counts more agrees more with the whole, whatever it says. So neither stability nor consensus with
        the other candidates may fall.
        """
        if len(best.kappa) == 1:
            return best
        others = [one for one in tried.evidence[k] if one.candidate != best]
        (current,) = [one for one in tried.evidence[k] if one.candidate == best]
        level, shared = criterion([current, *others])[0], consensus([current, *others])[0]
        for view in range(len(best.kappa)):
            for weight in _WEIGHTS:
                kappa = tuple(weight if v == view else old for v, old in enumerate(current.candidate.kappa))
                if not any(kappa):
                    continue
                (changed,) = trials.evidence(replace(best, kappa=kappa), [k])
                reached, still_shared = criterion([changed, *others])[0], consensus([changed, *others])[0]
                self._table.append(_row(1, trials.n_samples, changed, reached, still_shared))
                kept = changed.stability >= current.stability and still_shared >= shared
                if kept and reached > _LEAST_GAIN * level:
                    current, level, shared = changed, reached, still_shared
            self._progress("weights of views", view + 1, len(best.kappa))
        return current.candidate


class _Tried:
    """What was tried in a round, by number of clusters, and what failed."""

    def __init__(self, numbers: Sequence[int]) -> None:
        self.candidates: list[Candidate] = []
        self.evidence: dict[int, list[Evidence]] = {k: [] for k in numbers}
        self._failed: list[tuple[Candidate, str]] = []

    def add(self, candidate: Candidate, trials: Trials) -> None:
        try:
            found = trials.evidence(candidate, list(self.evidence))
        except InputError as error:  # a kernel that cannot do with these views: the others may
            self._failed.append((candidate, str(error)))
            return
        self.candidates.append(candidate)
        for evidence in found:
            self.evidence[evidence.n_clusters].append(evidence)

    def require_any(self) -> None:
        if not self.candidates:
            raise InputError(f"none of {len(self._failed)} candidates can cluster these views: {self._failed[0][1]}")

    def best(self) -> tuple[int, Array]:
        """The best number of clusters, and how much speaks for each candidate there."""
        judged = {k: criterion(evidence) for k, evidence in self.evidence.items()}
        gaps = {k: np.array([one.eigengap for one in evidence]) for k, evidence in self.evidence.items()}
        compared = for_numbers(gaps, judged)
        k = max(compared, key=lambda number: float(compared[number].max()))
        return k, judged[k]

    def rows(self, number: int, n_samples: int) -> list[Row]:
        """Return a row for each candidate and number of clusters."""
        rows = []
        for k, evidence in self.evidence.items():
            for one, judged, shared in zip(evidence, criterion(evidence), consensus(evidence), strict=True):
                rows.append(_row(number, n_samples, one, judged, shared))
            rows += [
                _settings(number, n_samples, candidate, k) | _NOTHING | {"error": e} for candidate, e in self._failed
            ]
        return rows


_MEASURES = ("stability", "agreement", "size_entropy", "line_fit", "membership", "eigengap")
_NOTHING = dict.fromkeys(("criterion", "consensus", *_MEASURES))


def _row(number: int, n_samples: int, evidence: Evidence, judged: float, shared: float) -> Row:
    measures = {name: float(getattr(evidence, name)) for name in _MEASURES}
    return (
        _settings(number, n_samples, evidence.candidate, evidence.n_clusters)
        | {"criterion": float(judged), "consensus": float(shared)}
        | measures
        | {"error": None}
    )


def _settings(number: int, n_samples: int, candidate: Candidate, k: int) -> Row:
    return {
        "round": number,
        "n_samples": n_samples,
        "steps": list(candidate.steps),
        "kernel": str(candidate.kernel),
        "rho": candidate.rho,
        "kappa": list(candidate.kappa),
        "n_clusters": k,
    }
