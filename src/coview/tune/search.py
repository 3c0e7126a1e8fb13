"""The search: all candidates on few samples, the better ones on more, then the weights of the views."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil

import numpy as np

from coview.core.select import draw_rows
from coview.errors import InputError
from coview.progress import Progress
from coview.tune.candidates import Candidate
from coview.tune.criterion import Evaluation, compare_numbers, consensus_values, criterion_values
from coview.tune.evaluation import Evaluator
from coview.tune.record import EvaluatedSetting
from coview.views import Views

_LEAST_PER_CLUSTER = 5  # samples of a round, so that each half still has all clusters
_WEIGHTS = (0.0, 2.0)  # evaluated for each view instead of 1
_LEAST_GAIN = 1.05  # of the criterion, for a change of weight; a smaller gain is within noise


@dataclass(frozen=True)
class Round:
    """The samples that a round draws, how often it splits them into halves, and the fraction of candidates it keeps."""

    n_samples: int
    n_splits: int
    fraction: float


ROUNDS: Mapping[str, tuple[Round, ...]] = {
    "small": (Round(400, 1, 1.0),),
    "full": (Round(500, 1, 1.0), Round(1500, 1, 0.5)),
}


@dataclass(frozen=True)
class SearchResult:
    """The selected number of clusters, its candidates with their index among the evaluations, best first, and these."""

    n_clusters: int
    ranking: tuple[tuple[Candidate, int], ...]
    evaluations: tuple[EvaluatedSetting, ...]


class Search:
    """Evaluate candidates in rounds, from few samples to more, for these numbers of clusters."""

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
        # A round is left out if the one before has all samples.
        self._rounds = [r for i, r in enumerate(rounds) if i == 0 or rounds[i - 1].n_samples < views.n_samples]
        self._seed = seed
        self._progress = progress or (lambda stage, done, total: None)
        self._records: list[EvaluatedSetting] = []
        self._last: dict[tuple[Candidate, int], int] = {}  # index of the last record, by number of clusters

    def run(self, pool: Sequence[Candidate]) -> SearchResult:
        """Rank the candidates of the last round by the sum of the criterion over the rounds; the first gets weights."""
        numbers, first = self._numbers, None
        totals: Counter[Candidate] = Counter()  # over all rounds, because a single one is noisy
        for number, budget in enumerate(self._rounds, start=1):
            pool = pool[: max(2, ceil(budget.fraction * len(pool)))]
            evaluator = self._evaluator(budget, number)
            found = self._evaluate(evaluator, pool, numbers)
            first = first or (evaluator, found)
            criteria = {k: criterion_values(evaluations) for k, evaluations in found.items()}
            gaps = {k: np.array([each.record.eigengap for each in some]) for k, some in found.items()}
            compared = compare_numbers(gaps, criteria)
            k = max(compared, key=lambda number: float(compared[number].max()))
            ran = [each.candidate for each in found[k]]
            totals.update(dict(zip(ran, criteria[k].tolist(), strict=True)))
            pool, numbers = sorted(ran, key=lambda candidate: -totals[candidate]), [k]
        assert first is not None
        # Weights are evaluated on the few samples of the first round: they matter least, and there are many of them.
        best = self._weighted(pool[0], k, first[0], first[1][k])
        ranking = tuple((each, self._last[each, k]) for each in dict.fromkeys([best, *pool]))
        return SearchResult(k, ranking, tuple(self._records))

    def _evaluator(self, budget: Round, number: int) -> Evaluator:
        seed = self._seed + number
        count = max(budget.n_samples, _LEAST_PER_CLUSTER * max(self._numbers))
        rows = draw_rows(self._views.n_samples, count, np.random.default_rng(seed))
        return Evaluator(self._views.take(rows), budget.n_splits, seed, number)

    def _evaluate(
        self, evaluator: Evaluator, pool: Sequence[Candidate], numbers: Sequence[int]
    ) -> dict[int, list[Evaluation]]:
        """Return the evaluations of a round by number of clusters, and keep their records and those of failures."""
        found: dict[int, list[Evaluation]] = {k: [] for k in numbers}
        failed = []
        for i, candidate in enumerate(pool):
            try:
                for k, evaluation in zip(numbers, evaluator.evaluate(candidate, numbers), strict=True):
                    found[k].append(evaluation)
            except InputError as error:  # a kernel or step that cannot be used on these views
                failed.append((candidate, str(error)))
            self._progress(f"candidates on {evaluator.n_samples} samples", i + 1, len(pool))
        if len(failed) == len(pool):
            raise InputError(f"none of {len(pool)} candidates can cluster these views: {failed[0][1]}")
        for k, evaluations in found.items():
            for values in zip(evaluations, criterion_values(evaluations), consensus_values(evaluations), strict=True):
                self._keep(*values)
            self._records += [evaluator.record(candidate, k, error=error) for candidate, error in failed]
        return found

    def _keep(self, evaluation: Evaluation, criterion: float, consensus: float) -> None:
        self._last[evaluation.candidate, evaluation.record.n_clusters] = len(self._records)
        self._records.append(replace(evaluation.record, criterion=float(criterion), consensus=float(consensus)))

    def _weighted(self, best: Candidate, k: int, evaluator: Evaluator, found: Sequence[Evaluation]) -> Candidate:
        """Change the weights of the views, one view at a time, if that clearly raises the criterion.

        A view of larger weight agrees more with the joint labels even if it is not informative. So neither stability
        nor consensus with the other candidates may fall.
        """
        if len(best.kappa) == 1:
            return best
        others = [each for each in found if each.candidate != best]
        (current,) = [each for each in found if each.candidate == best]
        level, shared = criterion_values([current, *others])[0], consensus_values([current, *others])[0]
        for view in range(len(best.kappa)):
            for weight in _WEIGHTS:
                kappa = tuple(weight if v == view else old for v, old in enumerate(current.candidate.kappa))
                if not any(kappa):
                    continue
                (changed,) = evaluator.evaluate(replace(best, kappa=kappa), [k])
                reached, still_shared = criterion_values([changed, *others])[0], consensus_values([changed, *others])[0]
                self._keep(changed, reached, still_shared)
                kept = (changed.record.stability or 0) >= (current.record.stability or 0) and still_shared >= shared
                if kept and reached > _LEAST_GAIN * level:
                    current, level, shared = changed, reached, still_shared
            self._progress("weights of views", view + 1, len(best.kappa))
        return current.candidate
