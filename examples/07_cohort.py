"""Write the files of a cohort whose patients lack some of the assays, and print the command that clusters them."""

from pathlib import Path

import numpy as np

rng = np.random.default_rng(0)
subtype = np.repeat([0, 1, 2], 50)
assays = {"expression": 40, "methylation": 30, "protein": 15}
Path("cohort").mkdir(exist_ok=True)
for assay, width in assays.items():
    table = 1.5 * rng.normal(size=(3, width))[subtype] + rng.normal(size=(150, width))
    measured = rng.permutation(150)[:105]  # 30 % of the patients lack the assay
    lines = [",".join(["patient", *(f"{assay}{j}" for j in range(width))])]
    lines += [",".join([f"P{i:03d}", *(f"{value:.4f}" for value in table[i])]) for i in measured]
    Path(f"cohort/{assay}.csv").write_text("\n".join(lines) + "\n")
truth = ["patient,subtype", *(f"P{i:03d},{'ABC'[subtype[i]]}" for i in range(150))]
Path("cohort/subtypes.csv").write_text("\n".join(truth) + "\n")

files = " ".join(f"--view {assay}=cohort/{assay}.csv" for assay in assays)
print(f"coview fit {files} --ids patient --align outer -k 3 -o cohort/run")
