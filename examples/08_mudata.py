"""Cluster the cells of a MuData, of which some lack a modality, and label new cells."""

import warnings

import numpy as np
import pandas as pd
from anndata import AnnData
from mudata import MuData, set_options

from coview.scverse import cluster, label_cells, plot

set_options(pull_on_update=False)  # the default of future versions of mudata
rng = np.random.default_rng(0)
kind = rng.integers(4, size=500)
names = pd.Index([f"cell{i}" for i in range(500)])


def modality(width: int, cells: slice, prefix: str) -> AnnData:
    x = 2 * rng.normal(size=(4, width))[kind] + rng.normal(size=(500, width))
    var = pd.DataFrame(index=[f"{prefix}{j}" for j in range(width)])
    return AnnData(x[cells], obs=pd.DataFrame(index=names[cells]), var=var)


mdata = MuData({"rna": modality(30, slice(None), "gene"), "prot": modality(12, slice(0, 450), "protein")})
mdata["rna"].obsm["X_pca"] = mdata["rna"].X[:, :20]  # stands for the result of sc.pp.pca
train, new = mdata[:400].copy(), mdata[400:].copy()  # the last 50 cells have no proteins

model = cluster(train, {"rna": "X_pca", "prot": None}, n_clusters="auto", key_added="coview")
print(train.obs["coview"].value_counts().to_dict())
print(model.reason_)

label_cells(new, model, {"rna": "X_pca", "prot": None})
print(new.obs[["coview", "coview_membership", "coview_novelty"]].head(3))

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    plot(train).figure.savefig("cells.png")
