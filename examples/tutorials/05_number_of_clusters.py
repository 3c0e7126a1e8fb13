"""
Choose the number of clusters
=============================

How many clusters are there? Often several numbers are right: coarse groups have finer parts. This tutorial selects a
number, reads what it is based on, compares it with other numbers in the tree of clusters, and checks which clusters are
stable.
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
# Select the number
# -----------------
# ``Coview`` clusters the samples in many ways. It merges clusters unless the neighbour graph has a valley between them,
# and divides what is left if it has structure without a valley.

from coview import Coview

model = Coview(n_clusters="auto", random_state=0).fit(views)
print(model.reason_)

# %%
# The number of parts that most partitions end with is selected. Here some of the partitions end with fewer: the coarse
# groups are visible as well.

for n_parts, n_partitions in model.number_.votes:
    print(f"{n_parts} parts: {n_partitions} of the partitions")

# %%
# Are there clusters at all?
# --------------------------
# The level of the support is "strong" if there is a valley between each two clusters. The picture has the valley ratio
# of each cluster with its nearest one. Up to 0.4 there is a valley; a Gaussian that is cut in two has 0.7 or more.

import matplotlib.pyplot as plt

from coview import plots, summarize

summary = summarize(model, views)
print(summary.support.level)
figure, ax = plt.subplots(figsize=(7, 2.6), layout="constrained")
_ = plots.support(summary, ax=ax)

# %%
# Data without groups have one cluster. A number that you give is used all the same, and its support is "none".

cloud = {name: rng.normal(size=table.shape) for name, table in views.items()}
print(Coview(n_clusters="auto", random_state=0).fit(cloud).reason_)
two = Coview(n_clusters=2, random_state=0).fit(cloud)
print(summarize(two, cloud).support.level)

# %%
# Too many clusters
# -----------------
# Nine clusters divide some of the six parts. The parts of a divided group have no valley between them, and other
# samples do not confirm them: ``stability`` fits halves of the samples, and a cluster below 0.6 is not to be trusted.

from coview import stability

finer = Coview(n_clusters=9, random_state=0).fit(views)
for label, ratio in enumerate(summarize(finer, views).support.valleys):
    print(f"cluster {label}: valley ratio {ratio}")
print(stability(finer, views, n_repeats=4, random_state=0))  # 20 repeats, the default, are more precise

# %%
# The selected clusters are stable:

print(stability(model, views, n_repeats=4, random_state=0))

# %%
# The picture
# -----------
# The tree of clusters: which cluster splits into which as the number grows. The width of a line is the number of
# samples. The levels are nested, so that a coarse level is a summary of the fine one. The report has the same tree.

branches = summary.tree
order = {label: i for i, label in enumerate(sorted({b.cluster for b in branches} | {b.next_cluster for b in branches}))}
figure, ax = plt.subplots(figsize=(8, 4.5), layout="constrained")
for branch in branches:
    ends = [order[branch.cluster], order[branch.next_cluster]]
    colour = plots.cluster_style(branch.next_cluster)[0]
    ax.plot([branch.n_clusters, branch.next_n_clusters], ends, color=colour, linewidth=branch.size / 12, alpha=0.6)
    ax.text(branch.next_n_clusters, ends[1], str(branch.next_cluster), ha="center", va="center", fontweight="bold")
ax.set(xlabel="number of clusters", yticks=[], title=f"selected: {model.n_clusters_} clusters")
ax.spines[["left", "right", "top"]].set_visible(False)

# sphinx_gallery_thumbnail_number = -1
