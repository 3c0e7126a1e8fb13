"""How much of the exact answer a model of some samples keeps: prints the rows of the table in docs/scaling.md.

Real data with labels (COVIEW_DATA); one setting for all: views as they come, TMvKSCR with its defaults. Labels are used
for the figures only. Means over five seeds, of the exact fit as well. At the end, m = N/10 with columns standardised,
to show what another preparation does.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from time import perf_counter

import numpy as np
from sklearn.preprocessing import StandardScaler

from coview import FixedSize, TMvKSCR
from coview.metrics import scores
from tests.test_real_data import DATA, load

ROOT = Path(__file__).parents[1]
LARGEST = 10_000
SHARES = {"1/50": 1 / 50, "1/20": 1 / 20, "1/10": 1 / 10, "1/5": 1 / 5, "1/2": 1 / 2}
SEEDS = 5
NAMES = ("fashion3v_20000_pool", "hdigit10000", "ccv6773")


def prepared(name: str, standardised: bool) -> tuple[list[np.ndarray], np.ndarray]:
    views, truth = load(name)
    rows = np.sort(np.random.default_rng(0).permutation(len(truth))[:LARGEST])
    views = [np.asarray(x[rows], dtype=np.float64) for x in views]
    return ([StandardScaler().fit_transform(x) for x in views] if standardised else views), truth[rows]


def mean_scores(truth: np.ndarray, views: list[np.ndarray], models: list) -> tuple[dict[str, np.ndarray], float]:
    """Every model's ARI and NMI, and the seconds that one took."""
    start = perf_counter()
    found = [scores(truth, model.fit(views).labels_) for model in models]
    seconds = (perf_counter() - start) / len(models)
    return {key: np.array([each[key] for each in found]) for key in ("ari", "nmi")}, seconds


def measure(name: str, shares: Mapping[str, float], selectors: Sequence[str], standardised: bool = False) -> None:
    views, truth = prepared(name, standardised)
    k = len(np.unique(truth))
    exact, seconds = mean_scores(truth, views, [TMvKSCR(k, random_state=seed) for seed in range(SEEDS)])
    what = f"{name} (N = {len(truth)}, k = {k}{', standardised' if standardised else ''})"
    print(
        f"| {what} | 1 | all | {exact['ari'].mean():.3f} ± {exact['ari'].std():.3f} "
        f"| {exact['nmi'].mean():.3f} | | {seconds:.1f} |",
        flush=True,
    )
    for label, share in shares.items():
        for select in selectors:
            models = [
                FixedSize(TMvKSCR(k, random_state=0), n_train=share, select=select, random_state=seed)
                for seed in range(SEEDS)
            ]
            found, seconds = mean_scores(truth, views, models)
            print(
                f"| | {label} | {select} | {found['ari'].mean():.3f} ± {found['ari'].std():.3f} "
                f"| {found['nmi'].mean():.3f} | {found['ari'].mean() / exact['ari'].mean():.0%} | {seconds:.1f} |",
                flush=True,
            )


def main() -> None:
    if DATA is None:
        sys.exit("the real data sets are absent: set COVIEW_DATA to their folder")
    warnings.simplefilter("ignore")
    print("| data | m / N | rows | ARI | NMI | of the exact ARI | seconds |")
    for name in NAMES:
        measure(name, SHARES, ("uniform", "entropy", "anchors"))
    for name in NAMES:
        measure(name, {"1/10": 1 / 10}, ("uniform",), standardised=True)


if __name__ == "__main__":
    main()
