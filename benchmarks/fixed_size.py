"""How much of the exact answer a model of some samples keeps: prints the rows of the table in docs/scaling.md.

Real data with labels (COVIEW_DATA); one setting for all, columns standardised, defaults otherwise. Labels are used for
the figures only. Means over five choices of training samples.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from time import perf_counter

import numpy as np

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.test_real_data import DATA, load  # noqa: E402

from coview import FixedSize, TMvKSCR  # noqa: E402
from coview.metrics import scores  # noqa: E402

LARGEST = 10_000
SHARES = {"1/50": 1 / 50, "1/20": 1 / 20, "1/10": 1 / 10, "1/5": 1 / 5, "1/2": 1 / 2}
SEEDS = 5


def prepared(name: str) -> tuple[list[np.ndarray], np.ndarray]:
    views, truth = load(name)
    rows = np.sort(np.random.default_rng(0).permutation(len(truth))[:LARGEST])
    views = [np.asarray(x[rows], dtype=np.float64) for x in views]
    spreads = [x.std(axis=0) for x in views]
    return [(x - x.mean(axis=0)) / np.where(s > 0, s, 1.0) for x, s in zip(views, spreads, strict=True)], truth[rows]


def measure(name: str) -> None:
    views, truth = prepared(name)
    k = len(np.unique(truth))
    start = perf_counter()
    exact = scores(truth, TMvKSCR(k, random_state=0).fit(views).labels_)
    seconds = perf_counter() - start
    print(
        f"| {name} (N = {len(truth)}, k = {k}) | all | | {exact['ari']:.3f} | {exact['nmi']:.3f} | | {seconds:.1f} |",
        flush=True,
    )
    for label, share in SHARES.items():
        for select in ("uniform", "entropy", "anchors"):
            found, start = [], perf_counter()
            for seed in range(SEEDS):
                model = FixedSize(TMvKSCR(k, random_state=0), n_train=share, select=select, random_state=seed)
                found.append(scores(truth, model.fit(views).labels_))
            seconds = (perf_counter() - start) / SEEDS
            ari, nmi = (np.mean([each[key] for each in found]) for key in ("ari", "nmi"))
            spread = np.std([each["ari"] for each in found])
            kept = ari / exact["ari"]
            print(
                f"| | {label} | {select} | {ari:.3f} ± {spread:.3f} | {nmi:.3f} | {kept:.0%} | {seconds:.1f} |",
                flush=True,
            )


def main() -> None:
    if DATA is None:
        sys.exit("the real data sets are absent: set COVIEW_DATA to their folder")
    warnings.simplefilter("ignore")
    print("| data | m / N | rows | ARI | NMI | of the exact ARI | seconds |")
    for name in ("fashion3v_20000_pool", "hdigit10000", "ccv6773"):
        measure(name)


if __name__ == "__main__":
    main()
