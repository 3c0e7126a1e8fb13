"""Labels of float32 and float64 Gram matrices on the real data sets; writes a table of docs/performance.md.

The protocol is that of assigners.py with at most 6000 samples, rho 1, 0.25 and 0, and an explicit `dtype`.
"""

import warnings

from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from benchmarks.markdown import ROOT, write_block
from benchmarks.real_data import load_preprocessed, require_data_sets
from coview import RBF, TMvKSCR

MAX_SAMPLES = 6000
RHO = (1.0, 0.25, 0.0)

warnings.simplefilter("ignore", ConvergenceWarning)  # fewer codes than clusters in both precisions


def lowest_agreement(name: str, assigner: str) -> float:
    """Return the lowest ARI, over rho, between the labels of the two precisions."""
    views, truth = load_preprocessed(name, MAX_SAMPLES)
    k = len(set(truth.tolist()))
    lowest = 1.0
    for rho in RHO:
        narrow, wide = (
            TMvKSCR(k, kernel=RBF(), rho=rho, assigner=assigner, dtype=dtype, random_state=0).fit(views).labels_
            for dtype in ("float32", "float64")
        )
        lowest = min(lowest, adjusted_rand_score(narrow, wide))
    return lowest


def main() -> None:
    lines = [
        "| assigner | data sets with identical labels | lowest ARI between the precisions on the others |",
        "|---|---|---|",
    ]
    for title, assigner in (("Directions", "directions"), ("Codebook", "codebook")):
        found = {}
        for name in require_data_sets():
            found[name] = lowest_agreement(name, assigner)
            print(assigner, name, round(found[name], 4), flush=True)
        others = ", ".join(f"{name} {ari:.4f}" for name, ari in found.items() if ari < 1) or "none"
        lines.append(f"| `{title}` | {sum(ari == 1 for ari in found.values())} of {len(found)} | {others} |")
    write_block(ROOT / "docs" / "performance.md", "<!-- precision -->", "<!-- end of precision -->", lines)


if __name__ == "__main__":
    main()
