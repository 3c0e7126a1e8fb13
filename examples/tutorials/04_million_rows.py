"""
A million rows: files and Dask
==============================

Files that do not fit in memory are labelled block by block: the model is trained on some rows, and then labels all of
them. This page runs with 60,000 rows, so that the site builds in seconds. Set ``n_rows = 1_000_000`` to run it at
full size; labelling then takes about 17 times as long, and the same memory.
"""

# %%
# The files
# ---------
# Two views as ``.npy`` files, written in blocks.

from pathlib import Path

import numpy as np

n_rows = 60_000  # 1_000_000 at full size
widths = {"sensors": 32, "spectrum": 64}
folder = Path("million")
folder.mkdir(exist_ok=True)

rng = np.random.default_rng(0)
group = rng.integers(8, size=n_rows)
for name, width in widths.items():
    centres = 1.2 * rng.normal(size=(8, width))
    file = np.lib.format.open_memmap(folder / f"{name}.npy", mode="w+", dtype=np.float32, shape=(n_rows, width))
    for start in range(0, n_rows, 20_000):
        rows = slice(start, start + 20_000)
        file[rows] = centres[group[rows]] + rng.normal(size=(len(group[rows]), width))
    file.flush()

# %%
# Train on some rows, label all
# -----------------------------
# ``ViewsReader`` reads aligned blocks of rows. ``FixedSize`` trains on 1,000 of them, and ``label_file`` labels all
# rows and writes them as they are computed. The file appears when it is complete.

import time

import pandas as pd

from coview import RBF, FixedSize, TMvKSCR, ViewsReader, label_file

reader = ViewsReader({name: folder / f"{name}.npy" for name in widths})
method = FixedSize(TMvKSCR(8, kernel=RBF(), random_state=0), n_train=1000, random_state=0)
model = method.train(reader)

start = time.perf_counter()
label_file(model, reader, folder / "labels.csv", columns=["membership"])
seconds = time.perf_counter() - start
labels = pd.read_csv(folder / "labels.csv")
print(f"{n_rows:,} rows labelled; about {seconds / n_rows * 1e6:.0f} s for a million rows on this machine")
labels.head()

# %%
# The same with Dask
# ------------------
# Dask arrays or data frames, on one machine or on a cluster, give the same labels. ``predict`` is lazy: it has one task
# for each block of rows.

import dask.array as da

from coview.distributed import DaskViews, fit, predict

arrays = {name: da.from_array(np.load(folder / f"{name}.npy", mmap_mode="r"), chunks=(20_000, -1)) for name in widths}
dask_views = DaskViews(arrays)
dask_model = fit(method, dask_views)
dask_labels = predict(dask_model, dask_views).compute()
print("same labels:", np.array_equal(dask_labels, labels["cluster"]))

# %%
# On a cluster, start a client first: ``from distributed import Client; Client("scheduler-address")``.
#
# The picture
# -----------
# A summary needs views in memory, so it describes some of the rows.

import matplotlib.pyplot as plt

from coview import as_views, plots, summarize

some = np.sort(rng.choice(n_rows, size=1500, replace=False))
views = as_views({name: np.load(folder / f"{name}.npy", mmap_mode="r")[some] for name in widths})
figure, ax = plt.subplots(figsize=(7, 5.5), layout="constrained")
plots.sample_map(summarize(model, views), ax=ax)
_ = ax.set_title(f"1,500 of {n_rows:,} rows in 8 clusters")
