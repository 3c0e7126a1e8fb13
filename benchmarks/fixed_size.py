"""FixedSize against the exact fit, on real data sets; prints the rows of the table in docs/scaling.md.

One setting for all data sets: views without preprocessing, TMvKSCR with RBF kernels and rho 0.5. The true labels are
used only for the scores. Figures are means over five seeds, also for the exact fit. The last rows have m = N/10 and
standardised columns, to show the effect of preprocessing.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.data import load
from benchmarks.real_data import load_float64, require_data_sets
from benchmarks.sweep import preprocessed
from coview import RBF, FixedSize, TMvKSCR
from coview.data.views import Views
from coview.metrics import scores

MAX_SAMPLES = 10_000
FRACTIONS = {"1/50": 1 / 50, "1/20": 1 / 20, "1/10": 1 / 10, "1/5": 1 / 5, "1/2": 1 / 2}
SEEDS = 5
SETTING: dict[str, Any] = {"kernel": RBF(), "rho": 0.5}
NAMES = ("fashion3v_20000_pool", "hdigit10000", "ccv6773")


def draw(name: str, standardised: bool) -> tuple[Views, np.ndarray]:
    truth = load(name).labels
    rows = np.sort(np.random.default_rng(0).permutation(len(truth))[:MAX_SAMPLES])
    return preprocessed(load_float64(name, rows), "standard" if standardised else "none"), truth[rows]


def fit_scores(truth: np.ndarray, views: Views, models: list) -> tuple[dict[str, np.ndarray], float]:
    """Return the ARI and NMI of every model, and the mean seconds of a fit."""
    start = perf_counter()
    found = [scores(truth, model.fit(views).labels_) for model in models]
    seconds = (perf_counter() - start) / len(models)
    return {key: np.array([each[key] for each in found]) for key in ("ari", "nmi")}, seconds


def measure(name: str, fractions: Mapping[str, float], selectors: Sequence[str], standardised: bool = False) -> None:
    views, truth = draw(name, standardised)
    k = len(np.unique(truth))
    exact, seconds = fit_scores(truth, views, [TMvKSCR(k, **SETTING, random_state=seed) for seed in range(SEEDS)])
    title = f"{name} (N = {len(truth)}, k = {k}{', standardised' if standardised else ''})"
    print(
        f"| {title} | 1 | all | {exact['ari'].mean():.3f} ± {exact['ari'].std():.3f} "
        f"| {exact['nmi'].mean():.3f} | | {seconds:.1f} |",
        flush=True,
    )
    for label, fraction in fractions.items():
        for select in selectors:
            models = [
                FixedSize(TMvKSCR(k, **SETTING, random_state=0), n_train=fraction, select=select, random_state=seed)
                for seed in range(SEEDS)
            ]
            found, seconds = fit_scores(truth, views, models)
            print(
                f"| | {label} | {select} | {found['ari'].mean():.3f} ± {found['ari'].std():.3f} "
                f"| {found['nmi'].mean():.3f} | {found['ari'].mean() / exact['ari'].mean():.0%} | {seconds:.1f} |",
                flush=True,
            )


def main() -> None:
    require_data_sets()
    warnings.simplefilter("ignore")
    print("| data | m / N | rows | ARI | NMI | of the exact ARI | seconds |")
    for name in NAMES:
        measure(name, FRACTIONS, ("uniform", "entropy", "kmeans"))
    for name in NAMES:
        measure(name, {"1/10": 1 / 10}, ("uniform",), standardised=True)


if __name__ == "__main__":
    main()
