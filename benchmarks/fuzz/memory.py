"""A long run: blocks of fits and predictions in one process, after which its memory must be what it was before.

Every method and wrapper is fitted in turn, on other values each time, saved in memory by pickle and used again. A
process grows a little while allocators and caches fill, so that the first block is not measured.
"""

from __future__ import annotations

import gc
import os
import pickle
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.fuzz.case import Case, Finding
from coview import (
    KSC,
    METHODS,
    RBF,
    Concat,
    Coview,
    FixedSize,
    InputError,
    NeighborGraph,
    PerView,
    Preprocessed,
    TMvKSCR,
)

_FITS = 500  # of a block
_MOST_BYTES = 4 * 2**20  # growth over all blocks; a leak of the views of each fit would be 12 MB
_MOST_OBJECTS = 200  # of Python; a leak of one object in 10 fits


def _models(seed: int) -> list[Any]:
    methods = [method(random_state=seed) for name, method in METHODS.items() if name not in ("ksc", "kpca")]
    quick = [model.set_params(max_iter=20) if "max_iter" in model.get_params() else model for model in methods]
    inner = TMvKSCR(2, random_state=seed)
    return [
        *quick,
        TMvKSCR(3, kernel=RBF(), rho=0.5, n_jobs=2, random_state=seed),
        TMvKSCR(3, kernel=NeighborGraph(5), dtype="float32", random_state=seed),
        FixedSize(inner, n_train=15, random_state=seed),
        Preprocessed(inner, "standard"),
        Coview(3, random_state=seed),
        Coview("auto", random_state=seed),
        Concat(KSC(2, random_state=seed)),
        PerView(KSC(2, random_state=seed)),
        TMvKSCR(10**6),  # is refused
    ]


def fit_often(n_fits: int, first: int) -> None:
    """Fit all models in turn, on other values each time, and use them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # noise has no clusters
        for number in range(first, first + n_fits):
            models, rng = _models(number), np.random.default_rng(number)
            views = {name: rng.normal(size=(30, width)) for name, width in (("a", 20), ("b", 6))}
            model = models[number % len(models)]
            try:
                model.fit(views)
            except InputError:
                continue
            if hasattr(model, "predict"):
                pickle.loads(pickle.dumps(model)).predict(views)
                model.predict({name: x[:5] + 0.1 for name, x in views.items()})


def used() -> tuple[int, int]:
    """Return the bytes of memory and the number of Python objects of this process."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE"), len(gc.get_objects())


def cases(seed: int, folder: Path) -> Iterator[Case]:
    """Yield blocks of fits."""
    if not Path("/proc/self/statm").exists():
        return
    start: list[tuple[int, int]] = []

    def run(block: int) -> str:
        if not start:
            fit_often(_FITS, seed)
            start.append(used())
        fit_often(_FITS, seed + block * _FITS)
        grown, objects = (after - before for after, before in zip(used(), start[0], strict=True))
        if grown > _MOST_BYTES or objects > _MOST_OBJECTS:
            raise Finding(f"the process has {grown / 2**20:.1f} MB and {objects} objects more than before")
        return "flat"

    for block in range(1, 10**9):
        yield Case(f"fits {block * _FITS} to {(block + 1) * _FITS}", lambda block=block: run(block))
