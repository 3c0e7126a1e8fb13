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
stage = np.where(rng.random(150) < 0.7, subtype, rng.integers(0, 3, 150))
clinic = [f"P{i:03d},{40 + 8 * subtype[i] + rng.normal(0, 6):.0f},{'I' * (1 + stage[i])}" for i in range(150)]
Path("cohort/clinic.csv").write_text("\n".join(["patient,age,stage", *clinic]) + "\n")
truth = ["patient,subtype", *(f"P{i:03d},{'ABC'[subtype[i]]}" for i in range(150))]
Path("cohort/subtypes.csv").write_text("\n".join(truth) + "\n")

files = " ".join(f"--view {name}=cohort/{name}.csv" for name in (*assays, "clinic"))
print(f"coview fit {files} --ids patient --align outer --categories onehot -o cohort/run")
