"""
A cohort with missing assays: from CSV files to a report
========================================================

Three assays and a clinical table describe 150 patients. Not every patient has every assay. This tutorial goes from CSV
files to clusters, a report, and a picture, and then labels a new patient with a single assay.
"""

# %%
# The files
# ---------
# Each file has one row for each patient, and a column ``patient``. The files have different patients: 30 % lack each
# assay. Use your own files instead of these.

from pathlib import Path

import numpy as np
import pandas as pd

rng = np.random.default_rng(0)
folder = Path("cohort")
folder.mkdir(exist_ok=True)
patients = pd.Index([f"P{i:03d}" for i in range(150)], name="patient")
subtype = np.repeat([0, 1, 2], 50)

for assay, width in {"expression": 40, "methylation": 30, "protein": 15}.items():
    values = 1.5 * rng.normal(size=(3, width))[subtype] + rng.normal(size=(150, width))
    table = pd.DataFrame(values, index=patients).add_prefix(assay).round(4)
    table.sample(frac=0.7, random_state=width).to_csv(folder / f"{assay}.csv")

clinic = pd.DataFrame({"age": 50 + 6 * subtype + rng.normal(0, 6, 150).round(), "stage": "I"}, index=patients)
clinic.loc[rng.random(150) < 0.4 + 0.2 * subtype, "stage"] = "II"
clinic.to_csv(folder / "clinic.csv")
print(
    *(f"{path}: {len(path.read_text().splitlines()) - 1} patients" for path in sorted(folder.glob("*.csv"))), sep="\n"
)

# %%
# One command
# -----------
# In a terminal:
#
# .. code-block:: console
#
#    $ coview fit --view expression=cohort/expression.csv --view methylation=cohort/methylation.csv \
#        --view protein=cohort/protein.csv --view clinic=cohort/clinic.csv \
#        --ids patient --align outer --categories onehot -o cohort/run
#
# ``--align outer`` keeps the patients of any file, and ``--categories onehot`` reads the column ``stage`` of strings as
# categories. The number of clusters is selected from the data. ``cohort/run`` then has the labels, the model and the
# report: `open the report of this run <cohort-report.html>`__.

import subprocess
import sys

files = [f"--view={path.stem}={path}" for path in sorted(folder.glob("*.csv"))]
options = ["--ids=patient", "--align=outer", "--categories=onehot", "--output=cohort/run", "--force"]
command = [sys.executable, "-m", "coview", "fit", *files, *options]
print(subprocess.run(command, capture_output=True, text=True, check=True).stdout)

# %%
# The labels
# ----------
# ``labels.csv`` has the cluster of each patient, how certain it is (``membership``), how unusual the patient is
# (``novelty``), and the view that contributes most to the decision.

labels = pd.read_csv(folder / "run" / "labels.csv", index_col="patient")
labels.head()

# %%
# Patients with a membership below one half are uncertain: mention them rather than count them.

print(f"{(labels.membership < 0.5).sum()} of {len(labels)} patients are uncertain")

# %%
# A new patient with one assay
# ----------------------------
# The model labels samples by the views that they have.

from coview import load, read_views

model = load(folder / "run" / "model.safetensors")
protein = pd.read_csv(folder / "protein.csv", index_col="patient")
new = {"protein": protein.iloc[[0]]}
print(f"cluster {model.predict(new)[0]}, membership {model.predict_proba(new).max():.2f}")

# %%
# The picture
# -----------
# The map of the patients, and what each view contributes to each cluster.

import matplotlib.pyplot as plt

from coview import plots, summarize

loaded = read_views(
    {path.stem: path for path in sorted(folder.glob("*.csv"))}, ids="patient", align="outer", categories="onehot"
)
summary = summarize(model, loaded.views, ids=loaded.ids)
figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.5), width_ratios=[3, 2], layout="constrained")
plots.sample_map(summary, ax=left)
left.set_title(f"150 patients in {summary.n_clusters} clusters")
plots.kept_together(summary, ax=right)
right.set_title("members that each view keeps together")

# sphinx_gallery_thumbnail_number = -1
