"""Labels of float32 and float64 on the real data sets and on generated rows; writes tables of docs/performance.md.

Fits: the protocol of assigners.py with at most 6000 samples, rho 1, 0.25 and 0, and an explicit `dtype`.

Labels of new samples: models with dtype "auto" and "float64" label the same rows, at most 6000 of each data set. A full
model is trained on at most 1000 of them; `FixedSize` trains on 500, or half of a smaller set.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from benchmarks.markdown import ROOT, write_block
from benchmarks.real_data import load_preprocessed, require_data_sets
from benchmarks.speed.run import CLUSTERS, make_views
from coview import KSC, RBF, FixedSize, NormalizedPolynomial, TMvKSCR
from coview.core.score import ScoreMap

MAX_SAMPLES = 6000
RHO = (1.0, 0.25, 0.0)
FEW_SAMPLES = 2000  # up to which fits are in float64 with dtype="auto"
TRAINED = 1000  # samples of a full model
FEW_TRAINED = 500
GENERATED = 1_000_000
ASSIGNERS = {"Directions": "directions", "Codebook": "codebook"}
KERNELS = {"RBF": RBF(), "normalised polynomial": NormalizedPolynomial()}
PAGE = ROOT / "docs" / "performance.md"

warnings.simplefilter("ignore", ConvergenceWarning)  # fewer codes than clusters in both precisions


@dataclass
class Count:
    """Rows that are labelled, labelled differently, and scored in float64 by the model with dtype="auto".

    `membership` is the largest difference between the memberships of the two models.
    """

    rows: int = 0
    different: int = 0
    in_float64: float = 0.0
    membership: float = 0.0


def lowest_agreement(name: str, assigner: str, max_samples: int) -> float:
    """Return the lowest ARI, over rho, between the labels of fits in the two precisions."""
    views, truth = load_preprocessed(name, max_samples)
    k = len(set(truth.tolist()))
    lowest = 1.0
    for rho in RHO:
        narrow, wide = (
            TMvKSCR(k, kernel=RBF(), rho=rho, assigner=assigner, dtype=dtype, random_state=0).fit(views).labels_
            for dtype in ("float32", "float64")
        )
        lowest = min(lowest, adjusted_rand_score(narrow, wide))
    return lowest


def fits() -> None:
    lines = [
        "| assigner | samples | data sets with identical labels | lowest ARI between the precisions on the others |",
        "|---|---|---|---|",
    ]
    for title, assigner in ASSIGNERS.items():
        for max_samples in (MAX_SAMPLES, FEW_SAMPLES):
            found = {}
            for name in require_data_sets():
                found[name] = lowest_agreement(name, assigner, max_samples)
                print(assigner, max_samples, name, round(found[name], 4), flush=True)
            others = ", ".join(f"{name} {ari:.4f}" for name, ari in found.items() if ari < 1) or "none"
            same = f"{sum(ari == 1 for ari in found.values())} of {len(found)}"
            lines.append(f"| `{title}` | at most {max_samples} | {same} | {others} |")
    write_block(PAGE, "<!-- precision -->", "<!-- end of precision -->", lines)


def rows_in_float64(function: Callable[[], np.ndarray], n_views: int) -> tuple[np.ndarray, float]:
    """Return the labels that a function computes, and the number of rows that it scores in float64."""
    counts: list[int] = []
    original = ScoreMap.with_tolerance

    def counted(self: ScoreMap, x):
        counts.append(x.shape[0])
        return original(self, x)

    ScoreMap.with_tolerance = counted
    try:
        labels = function()
    finally:
        ScoreMap.with_tolerance = original
    return labels, sum(counts) / n_views


def compare(count: Count, models: list, views: list) -> None:
    """Add the rows of these views, labelled by the models of dtype "auto" and "float64"."""
    labels, again = rows_in_float64(lambda: models[0].predict(views), len(views))
    wide = models[1].predict(views)
    count.rows += len(labels)
    count.different += int((labels != wide).sum())
    count.in_float64 += again
    some = [x[:20_000] for x in views]
    count.membership = float(abs(models[0].predict_proba(some) - models[1].predict_proba(some)).max())


def on_real_data(train: Callable[..., list], kernel, assigner: str) -> list[Count]:
    """Return the counts of each data set; sparse views are scored in float64."""
    counts = []
    for name in require_data_sets():
        views, truth = load_preprocessed(name, MAX_SAMPLES)
        k = len(set(truth.tolist()))
        models = [
            train(TMvKSCR(k, kernel=kernel, rho=0.25, assigner=assigner, dtype=dtype, random_state=0), views)
            for dtype in ("auto", "float64")
        ]
        count = Count()
        compare(count, models, views)
        counts.append(count)
        print(assigner, kernel, train.__name__, name, count, flush=True)
    return counts


def full(method: TMvKSCR, views: list):
    some = [x[:TRAINED] for x in views]
    return method.fit(some)


def fixed_size(method: TMvKSCR, views: list):
    n_train = min(FEW_TRAINED, max(views[0].shape[0] // 2, method.n_clusters + 1))
    return FixedSize(method, n_train=n_train, random_state=0).fit(views)


def on_generated_rows(kernel, assigner: str, views: list[np.ndarray], first: str = "auto") -> Count:
    """Return the counts of a model of the first 1000 rows whose dtype is the first one, compared with "float64"."""
    some = [x[:1000] for x in views]
    method = KSC if len(views) == 1 else TMvKSCR
    models = [
        method(CLUSTERS, kernel=kernel, assigner=assigner, dtype=dtype, random_state=0).fit(some)
        for dtype in (first, "float64")
    ]
    count = Count()
    compare(count, models, views)
    print(assigner, kernel, len(views), first, count, flush=True)
    return count


def labels_of_real_data() -> None:
    lines = [
        "| model | kernel | assigner | data sets with identical labels | rows | scored in float64 | "
        "largest difference of memberships |",
        "|---|---|---|---|---|---|---|",
    ]
    for train, what in ((full, "full"), (fixed_size, "fixed size")):
        for kind, kernel in KERNELS.items():
            for title, assigner in ASSIGNERS.items():
                counts = on_real_data(train, kernel, assigner)
                dense = [each for each in counts if each.in_float64 < each.rows]
                same = f"{sum(each.different == 0 for each in counts)} of {len(counts)}"
                rows = sum(each.rows for each in dense)
                again = 100 * sum(each.in_float64 for each in dense) / rows
                most = max(each.membership for each in counts)
                lines.append(
                    f"| {what} | {kind} | `{title}` | {same} | {rows:,} in {len(dense)} sets | {again:.1f} % | "
                    f"{most:.0e} |"
                )
    write_block(PAGE, "<!-- labels -->", "<!-- end of labels -->", lines)


def labels_of_generated_rows(n: int) -> None:
    lines = [
        "| views | dtype | kernel | assigner | different labels | scored in float64 | "
        "largest difference of memberships |",
        "|---|---|---|---|---|---|---|",
    ]
    views = make_views(n, dtype="float32")
    cases = [
        (some, dtype, kind, title)
        for some, dtype in ((views, "auto"), (views[:1], "auto"), (views[:1], "float32"))
        for kind in KERNELS
        for title in ASSIGNERS
    ]
    for some, dtype, kind, title in cases:
        count = on_generated_rows(KERNELS[kind], ASSIGNERS[title], some, dtype)
        again = f"{100 * count.in_float64 / count.rows:.2f} %" if dtype == "auto" else ""
        number = "all five" if len(some) > 1 else "first"
        lines.append(
            f"| {number} | {dtype} | {kind} | `{title}` | {count.different} | {again} | {count.membership:.0e} |"
        )
    write_block(PAGE, "<!-- generated -->", "<!-- end of generated -->", lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=["fits", "labels", "generated"])
    parser.add_argument("--rows", type=int, default=GENERATED, help="number of generated rows")
    options = parser.parse_args()
    if options.only in ("fits", None):
        fits()
    if options.only in ("labels", None):
        labels_of_real_data()
    if options.only in ("generated", None):
        labels_of_generated_rows(options.rows)


if __name__ == "__main__":
    main()
