"""
RNA and protein of the same cells: MuData
=========================================

CITE-seq measures the RNA and surface proteins of each cell. This tutorial clusters cells by both, in the MuData object
that scanpy and muon use, also cells that lack the proteins, and then labels new cells.
"""

# %%
# The data
# --------
# Real data come from a file, as ``mudata.read_h5mu("cells.h5mu")``, after the usual preprocessing in scanpy and muon.
# Here they are generated: principal components of the RNA, and normalised counts of 20 antibodies. The last two of the
# six kinds of cells are similar in the RNA, and the first two in the proteins.

import anndata
import mudata
import numpy as np
import pandas as pd

mudata.set_options(pull_on_update=False)
rng = np.random.default_rng(0)
kinds = ["CD4 naive", "CD4 memory", "B", "monocyte", "NK", "CD8"]
rna_centres, protein_centres = 2 * rng.normal(size=(6, 30)), 1.5 * rng.normal(size=(6, 20))
rna_centres[5] = rna_centres[4] + 0.8 * rng.normal(size=30)
protein_centres[1] = protein_centres[0] + 0.7 * rng.normal(size=20)


def measure(names):
    """Return a MuData with cells of random kinds."""
    kind = rng.integers(6, size=len(names))
    obs = pd.DataFrame({"kind": pd.Categorical.from_codes(kind, kinds)}, index=names)
    components = rna_centres[kind] + 1.5 * rng.normal(size=(len(names), 30))
    proteins = protein_centres[kind] + rng.normal(size=(len(names), 20))
    rna = anndata.AnnData(np.zeros((len(names), 1)), obs=obs, obsm={"X_pca": components})
    rna.var_names = ["gene"]
    prot = anndata.AnnData(proteins, obs=pd.DataFrame(index=names))
    prot.var_names = [f"antibody{j}" for j in range(20)]
    return mudata.MuData({"rna": rna, "prot": prot[: int(0.85 * len(names))].copy()})


mdata = measure([f"cell{i}" for i in range(400)])
mdata

# %%
# Cluster
# -------
# Each modality is represented by a key of its ``obsm``, or by ``None`` for ``X``. The last 15 % of the cells have no
# proteins; they are clustered by their RNA.

import coview.scverse

model = coview.scverse.cluster(mdata, modalities={"rna": "X_pca", "prot": None}, n_clusters="auto", key_added="coview")
print(model.reason_)

# %%
# The results are in ``obs``, ``obsm`` and ``uns``, so that all tools of scverse can use them.

mdata.obs[["coview", "coview_membership", "coview_novelty"]].head()

# %%
# Compare with the known kinds
# ----------------------------
# They were not used.

pd.crosstab(mdata["rna"].obs["kind"], mdata.obs["coview"])

# %%
# Which modality decides?
# -----------------------

views = coview.scverse.to_views(mdata, {"rna": "X_pca", "prot": None})
contributions = pd.DataFrame(model.view_contributions(views), index=mdata.obs_names)
contributions.groupby(mdata.obs["coview"], observed=True).mean().round(2)

# %%
# New cells
# ---------
# New cells are labelled by the model; they need the same columns: components of the same rotation.

new = measure([f"new{i}" for i in range(100)])
coview.scverse.label_cells(new, model, {"rna": "X_pca", "prot": None})
pd.crosstab(new["rna"].obs["kind"], new.obs["coview"])

# %%
# Save
# ----
# ``mdata.write("cells.h5mu")`` stores the results, and ``coview.save(model, "model.safetensors")`` the model.
#
# The picture
# -----------

ax = coview.scverse.plot(mdata)
_ = ax.set_title(f"{mdata.n_obs} cells by RNA and protein")
