"""
Choose the number of clusters
=============================

How many clusters are there? Often several numbers are right: coarse groups have finer parts. This tutorial compares
numbers of clusters, looks at the tree of clusters, and checks which clusters are stable.
"""

# %%
# Data with two levels
# --------------------
# Three groups of samples in two views. The first group has three parts, and the second has two: six parts in all.

import numpy as np

rng = np.random.default_rng(0)
group = np.array([0, 0, 0, 1, 1, 2])  # of each part
part = rng.integers(6, size=360)
views = {}
for name, width in {"expression": 20, "imaging": 12}.items():
    centres = 3 * rng.normal(size=(3, width))[group] + 1.0 * rng.normal(size=(6, width))
    views[name] = centres[part] + rng.normal(size=(360, width))

# %%
# Compare numbers
# ---------------
# ``Tuned`` compares the numbers on random subsets, and selects the one with the largest criterion.

from coview import Tuned, plots, summarize

model = Tuned(range(2, 9), random_state=0).fit(views)
print(model.reason_)

# %%
# The criterion of the other numbers shows how certain the selection is. The band is its standard deviation over the
# subsets.

import matplotlib.pyplot as plt

summary = summarize(model, views)
figure, ax = plt.subplots(figsize=(8.5, 4), layout="constrained")
_ = plots.tuning_clusters(summary.tuning, ax=ax)

# %%
# Are there clusters at all?
# --------------------------
# The validity compares the stability of the clusters with that of data without clusters.

validity = model.validity_
print(
    f"{validity.level}: stability {validity.stability:.2f}, of data without clusters {validity.reference_stability:.2f}"
)

# %%
# Are all clusters stable?
# ------------------------
# ``stability`` fits the same settings on halves of the samples. A cluster with a stability of 0.75 or more is found
# again in them; a cluster below 0.6 is not to be trusted.

from coview import stability

found = stability(model, views, n_repeats=4, random_state=0)  # 20 repeats, the default, are more precise
print(found)

# %%
# With too many clusters, some of them are not stable:

finer = Tuned(9, random_state=0).fit(views)
print(stability(finer, views, n_repeats=4, random_state=0))

# %%
# The picture
# -----------
# The tree of clusters: which cluster splits into which as the number grows. The width of a line is the number of
# samples. A cluster that does not split keeps its number and colour. The report has the same tree.

branches = [branch for branch in summary.tree if branch.size >= 5]
order = {label: i for i, label in enumerate(sorted({b.cluster for b in branches} | {b.next_cluster for b in branches}))}
figure, ax = plt.subplots(figsize=(8, 4.5), layout="constrained")
for branch in branches:
    ends = [order[branch.cluster], order[branch.next_cluster]]
    colour = plots.cluster_style(branch.next_cluster)[0]
    ax.plot([branch.n_clusters, branch.next_n_clusters], ends, color=colour, linewidth=branch.size / 12, alpha=0.6)
    ax.text(branch.next_n_clusters, ends[1], str(branch.next_cluster), ha="center", va="center", fontweight="bold")
ax.axvline(model.n_clusters_, color="black", linewidth=1, zorder=0)
ax.set(xlabel="number of clusters", yticks=[], title=f"selected: {model.n_clusters_} clusters")
ax.spines[["left", "right", "top"]].set_visible(False)

# sphinx_gallery_thumbnail_number = -1
