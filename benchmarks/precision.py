"""Do float32 Gram matrices change labels? Writes the answer for the real data sets into docs/performance.md.

The protocol is that of assigners.py with up to 6000 samples and rho 1, 0.25 and 0; the precision is set, not "auto".
"""

import warnings
from pathlib import Path

from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from benchmarks.real_data import ROOT, data_sets, prepared
from coview import TMvKSCR

MOST_SAMPLES = 6000
RHO = (1.0, 0.25, 0.0)

warnings.simplefilter("ignore", ConvergenceWarning)  # fewer codes than clusters in both precisions


def agreement(path: Path, assigner: str) -> float:
    """Lowest ARI, over rho, between the labels of the two precisions."""
    views, truth = prepared(path, MOST_SAMPLES)
    k = len(set(truth.tolist()))
    lowest = 1.0
    for rho in RHO:
        narrow, wide = (
            TMvKSCR(k, rho=rho, assigner=assigner, dtype=dtype, random_state=0).fit(views).labels_
            for dtype in ("float32", "float64")
        )
        lowest = min(lowest, adjusted_rand_score(narrow, wide))
    return lowest


def main() -> None:
    lines = [
        "| assigner | data sets with identical labels | lowest ARI between the precisions on the others |",
        "|---|---|---|",
    ]
    for name, assigner in (("Directions", "directions"), ("Codebook", "codebook")):
        found = {}
        for path in data_sets():
            found[path.stem] = agreement(path, assigner)
            print(assigner, path.stem, round(found[path.stem], 4), flush=True)
        others = ", ".join(f"{stem} {ari:.4f}" for stem, ari in found.items() if ari < 1) or "none"
        lines.append(f"| `{name}` | {sum(ari == 1 for ari in found.values())} of {len(found)} | {others} |")
    page = ROOT / "docs" / "performance.md"
    before, _, rest = page.read_text().partition("<!-- precision -->")
    _, _, after = rest.partition("<!-- end of precision -->")
    page.write_text(f"{before}<!-- precision -->\n{chr(10).join(lines)}\n<!-- end of precision -->{after}")


if __name__ == "__main__":
    main()
