"""coview beside muon's weighted nearest neighbours (WNN) + leiden on generated CITE-seq-like cells, as a table.

    pip install -c constraints.txt -e ".[bench]"
    python -m benchmarks.wnn                 10,000 cells, seeds 0, 1 and 2
    python -m benchmarks.wnn 2000 --seeds 0

RNA are 1,000 genes and protein 25 antibodies, both counts with a background. Of eight cell types, two pairs differ only
in protein, and one pair only in RNA. Both methods get the same preprocessed matrices: 30 principal components of
log-normalised RNA, and centred log-ratios of protein. Seconds are wall clock from these matrices to the labels; those
of coview include memberships, novelties and the map. The number of clusters is unknown (leiden with the default
resolution 1), or known (leiden with the resolution that gives it, found by bisection, whose last run is timed).
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Mapping
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.metrics import adjusted_rand_score

TYPES = 8
GENES, PROTEINS = 1000, 25
SAME_RNA = ((0, 1), (2, 3))  # types that differ in protein only, as CD4 and CD8 T cells nearly do
SAME_PROTEIN = ((4, 5),)
FRACTIONS = (0.25, 0.15, 0.15, 0.12, 0.12, 0.1, 0.07, 0.04)


def make_counts(n: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return counts of genes and proteins, and the type of each cell."""
    rng = np.random.default_rng(seed)
    kind = rng.choice(TYPES, size=n, p=FRACTIONS)
    genes = np.exp(rng.normal(-1.5, 1.2, GENES))[None] * np.ones((TYPES, 1))
    proteins = np.full((TYPES, PROTEINS), 8.0)
    for each in range(TYPES):
        markers = rng.choice(GENES, 40, replace=False)
        genes[each, markers] *= np.exp(rng.normal(1.2, 0.4, len(markers)))
        proteins[each, rng.choice(PROTEINS, 4, replace=False)] *= 6
    for one, other in SAME_RNA:
        genes[other] = genes[one]
    for one, other in SAME_PROTEIN:
        proteins[other] = proteins[one]
    depth = rng.lognormal(0, 0.4, (n, 1))  # cells differ in the number of molecules that are counted
    rna = rng.poisson(depth * rng.gamma(2.0, 0.5, (n, GENES)) * genes[kind])  # negative binomial
    background = rng.lognormal(0, 0.3, (n, 1))
    protein = rng.poisson(background * rng.gamma(4.0, 0.25, (n, PROTEINS)) * proteins[kind])
    return rna.astype(np.float32), protein.astype(np.float32), kind


def make_mudata(rna: np.ndarray, protein: np.ndarray) -> Any:
    """Return the cells with preprocessed modalities."""
    import scanpy as sc
    from anndata import AnnData
    from mudata import MuData

    first = AnnData(rna)
    sc.pp.normalize_total(first, target_sum=1e4)
    sc.pp.log1p(first)
    sc.pp.pca(first, n_comps=30, random_state=0)
    logs = np.log1p(protein)
    second = AnnData(logs - logs.mean(axis=1, keepdims=True))
    for prefix, modality in (("g", first), ("p", second)):
        modality.var_names = [f"{prefix}{j}" for j in range(modality.n_vars)]
    return MuData({"rna": first, "prot": second})


REPRESENTATIONS = {"rna": "X_pca", "prot": "X"}


def run_wnn(data: Any, n_clusters: int | None, representations: Mapping[str, str]) -> tuple[np.ndarray, float]:
    """Return the labels of muon's WNN + leiden on these matrices of the modalities, and the seconds."""
    import muon as mu
    import scanpy as sc

    start = perf_counter()
    for name, matrix in representations.items():
        sc.pp.neighbors(data[name], use_rep=matrix, random_state=0)
    # muon reads 200 candidate neighbours of each cell, and writes beyond its arrays if there are fewer cells.
    mu.pp.neighbors(data, key_added="wnn", n_multineighbors=min(200, data.n_obs - 2), random_state=0)
    graph = perf_counter() - start

    def leiden(resolution: float) -> tuple[np.ndarray, float]:
        start = perf_counter()
        sc.tl.leiden(data, resolution=resolution, neighbors_key="wnn", random_state=0)
        return data.obs["leiden"].astype(int).to_numpy(), perf_counter() - start

    labels, seconds = leiden(1.0)
    low, high = 0.01, 4.0
    while n_clusters is not None and len(np.unique(labels)) != n_clusters and high - low > 1e-3:
        middle = (low + high) / 2
        labels, seconds = leiden(middle)
        low, high = (middle, high) if len(np.unique(labels)) < n_clusters else (low, middle)
    return labels, graph + seconds


def run_coview(data: Any, n_clusters: int | None) -> tuple[np.ndarray, float]:
    """Return the labels of `coview.scverse.cluster`, and the seconds."""
    from coview.scverse import cluster

    start = perf_counter()
    model = cluster(data, {"rna": "X_pca", "prot": None}, "auto" if n_clusters is None else n_clusters)
    return model.labels_, perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("n", type=int, nargs="?", default=10_000, help="number of cells")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # of scanpy, muon and mudata, on their own future versions
    warm = make_mudata(*make_counts(500, 0)[:2])
    run_wnn(warm, None, REPRESENTATIONS)  # numba compiles at first use
    print("| cells | seed | number of clusters | method | clusters | ARI | seconds |\n|---|---|---|---|---|---|---|")
    for seed in options.seeds:
        rna, protein, kind = make_counts(options.n, seed)
        data = make_mudata(rna, protein)
        for known in (None, TYPES):
            both = {"WNN + leiden": partial(run_wnn, representations=REPRESENTATIONS), "coview": run_coview}
            for name, run in both.items():
                labels, seconds = run(data, known)
                found, ari = len(np.unique(labels)), adjusted_rand_score(kind, labels)
                number = "unknown" if known is None else "known"
                print(
                    f"| {options.n:,} | {seed} | {number} | {name} | {found} | {ari:.3f} | {seconds:.1f} |", flush=True
                )


if __name__ == "__main__":
    main()
