"""The methods of coview and their authors' programs, on identical input and one thread: `make bench-authors`.

The authors' seconds were measured once, on a shared machine of the same class (wall clock, accurate to a factor of
two), and are stored in this file; the seconds of coview are the shortest of three fits. The input files are those of
the reference runs (COVIEW_GOLDEN), and are required.
"""

from __future__ import annotations

import sys
import warnings
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from benchmarks.markdown import ROOT, write_block
from coview import COMIC, KSC, MVSCBP, OPLFMVC, OPMC, RBF, SFMC, TSVDMSC, CoReg, MvKSC, TMvKSCR
from coview.metrics import scores
from tests.golden import GOLDEN, load


class Case(NamedTuple):
    """A reference run: the seconds and scores of the authors' program, and the same setting in coview."""

    data: str
    model: Any
    seconds: float
    ari: float
    nmi: float
    starts: int = 1  # of the model, if the program's seconds are those of one start
    standardise: bool = False
    note: str = ""


def median_distance(x: np.ndarray) -> float:
    from scipy.spatial.distance import cdist

    return float(np.median(cdist(x, x)))


def inputs(case: Case) -> tuple[list[np.ndarray], np.ndarray]:
    data = np.load(GOLDEN / "inputs" / f"{case.data}.npz")
    views = [data[f"X{v}"] for v in range(int(data["V"]))]
    if case.standardise:
        views = [(x - x.mean(axis=0)) / x.std(axis=0, ddof=1) for x in views]
    return views, data["y"]


def cases() -> list[Case]:
    one = {"n_jobs": 1, "random_state": 0}
    code = {"assigner": "codebook", "regularization": 0, **one}
    coreg = {"embedding": 0, "max_iter": 5, "tol": 0.0, **one}
    anchors = load("sfmc_synth1")["anchor_idx"]
    digits_anchors = load("sfmc_digits500")["anchor_idx"]
    return [
        Case("synth1", TMvKSCR(2, kernel=RBF(3.0), rho=0.25, **code), 1.576, 0.902, 0.843),
        Case("synth1", KSC(2, kernel=RBF(3.0), **code), 0.555, 0.774, 0.708, note="view 0"),
        Case("synth1", MvKSC(2, kernel=RBF(3.0), **code), 3.164, 0.899, 0.838),
        Case("synth1", CoReg(2, kernel="median", coupling=0.5, **coreg), 6.36, 0.910, 0.852, note="pairwise, view 0"),
        Case(
            "synth1",
            CoReg(2, kernel="median", coupling=0.5, scheme="centroid", **{**coreg, "embedding": None}),
            3.0,
            0.922,
            0.861,
            note="centroid",
        ),
        Case("digits500_shuf", TSVDMSC(10, shuffle=False, **one), 48.33, 0.888, 0.905),
        Case("3sources", TSVDMSC(6, shuffle=False, **one), 90.87, 0.658, 0.678),
        Case("synth1", COMIC(distance_test="program", random_state=0), 56.142, 0.000, 0.016),
        Case("digits500", COMIC(distance_test="program", random_state=0), 61.855, 0.353, 0.670),
        Case("digits500", OPLFMVC(10, **one), 0.83, 0.698, 0.791, standardise=True),
        Case("digits2000", OPMC(10, init="random", n_init=5, random_state=0), 2.58, 0.724, 0.805, starts=5),
        Case("synth1", SFMC(2, anchors=anchors, tol=0.0, random_state=0), 205.41, 0.854, 0.771),
        Case("digits500", SFMC(10, anchors=digits_anchors, tol=0.0, random_state=0), 57.43, 0.850, 0.910),
        Case("digits2000", MVSCBP(10, n_anchors=200, weighting="affinity", random_state=0), 4.85, 0.759, 0.820),
    ]


def measure(case: Case) -> str:
    views, truth = inputs(case)
    model = case.model
    if isinstance(model, KSC):
        views = views[0]
    if isinstance(model, CoReg):
        model.set_params(kernel=[RBF(2 * median_distance(x) ** 2) for x in views])
    times = []
    for _ in range(3):
        start = perf_counter()
        model.fit(views)
        times.append(perf_counter() - start)
    ours = min(times) / case.starts
    found = scores(truth, model.labels_)
    name = type(model).__name__ + (f", {case.note}" if case.note else "")
    row = [
        name,
        case.data,
        f"{case.ari:.3f} / {case.nmi:.3f}",
        f"{found['ari']:.3f} / {found['nmi']:.3f}",
        f"{case.seconds:.3g}",
        f"{ours:.2g}",
        f"{case.seconds / ours:.0f}",
    ]
    print(" | ".join(row), flush=True)
    return f"| {' | '.join(row)} |"


def main() -> None:
    if GOLDEN is None:
        sys.exit("the reference input does not exist; set COVIEW_GOLDEN to its folder")
    from threadpoolctl import threadpool_limits

    warnings.simplefilter("ignore")  # some methods stop at the authors' number of iterations
    with threadpool_limits(1):
        rows = [measure(case) for case in cases()]
    heading = [
        "| method | data | authors ARI / NMI | ours | authors s | ours s | ratio |",
        "|---|---|---|---|---|---|---|",
    ]
    page = ROOT / "docs" / "performance.md"
    write_block(page, "<!-- authors -->", "<!-- end of authors -->", [*heading, *rows])


if __name__ == "__main__":
    main()
