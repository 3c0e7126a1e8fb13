"""MuData and AnnData: the clusters of the plain API, written where scanpy reads them."""

import json
import pickle
import warnings

import anndata
import mudata
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from anndata import AnnData
from matplotlib.colors import to_hex
from mudata import MuData
from sklearn.cluster import KMeans

from coview import METHODS, OPMC, Coview, FixedSize, InputError, Preprocessed, TMvKSCR, Views, load, save, summarize
from coview.base.palette import PALETTE
from coview.scverse import cluster, label_cells, plot, to_views
from tests.conftest import make_blobs

CHOSEN = {"rna": "X_pca", "prot": None}
METHOD = TMvKSCR(3, random_state=0)


@pytest.fixture(autouse=True)
def options():
    with mudata.set_options(pull_on_update=False):  # otherwise MuData warns of its own future
        yield


def cell_names(n):
    return [f"cell{i}" for i in range(n)]


def make_anndata(x, rows=slice(None), prefix="g", **more):
    """Some cells of a matrix."""
    obs = pd.DataFrame(index=np.array(cell_names(len(x)))[rows])
    var = pd.DataFrame(index=[f"{prefix}{j}" for j in range(x.shape[1])])
    return AnnData(x[rows], obs=obs, var=var, **more)


def make_mudata(n_samples=90, rna=slice(None), prot=slice(None), seed=0, spread=4.0):
    """Cells with RNA as counts and as principal components, and proteins; and the arrays of all cells."""
    views, truth = make_blobs(n_samples, widths=(5, 4), seed=seed, spread=spread)
    counts = sp.csr_matrix(np.random.default_rng(1).poisson(1.0, (n_samples, 7)).astype(np.float32))
    first = make_anndata(counts.toarray(), rna, obsm={"X_pca": views["a"][rna]}, layers={"counts": counts[rna]})
    first.X = counts[rna]
    data = MuData({"rna": first, "prot": make_anndata(views["b"], prot, "p")})
    return data, {"rna": views["a"], "prot": views["b"]}, truth


def numbers_of(data, key="coview"):
    """The clusters as numbers; -1 for cells without one."""
    assert isinstance(data.obs[key].dtype, pd.CategoricalDtype)
    return np.array([-1 if pd.isna(each) else int(each) for each in data.obs[key]])


def assert_same_results(a, b, key="coview"):
    pd.testing.assert_frame_equal(a.obs, b.obs, check_names=False)
    for name in (f"X_{key}", f"X_{key}_map"):
        np.testing.assert_array_equal(a.obsm[name], b.obsm[name])
    settings = [json.dumps(each.uns[key], default=str, sort_keys=True) for each in (a, b)]
    assert settings[0] == settings[1]


def test_the_labels_are_those_of_the_plain_api():
    data, views, _ = make_mudata()
    model = cluster(data, CHOSEN, random_state=3)
    plain = Coview("auto", random_state=3).fit(views)
    np.testing.assert_array_equal(numbers_of(data), plain.labels_)
    np.testing.assert_array_equal(model.labels_, plain.labels_)
    np.testing.assert_array_equal(data.obsm["X_coview"], plain.scores_)
    np.testing.assert_array_equal(data.obs["coview_membership"], plain.predict_proba(views).max(axis=1))
    np.testing.assert_array_equal(data.obs["coview_novelty"], 1 - plain.score_samples(views))
    assert data.uns["coview"]["reason"] == plain.reason_


@pytest.mark.parametrize("name", [name for name in METHODS if name not in ("ksc", "kpca")])
def test_any_method_has_the_labels_of_the_plain_api(name):
    data, views, _ = make_mudata()
    method = METHODS[name]()
    settings = {"n_clusters": 3, "random_state": 0}
    method.set_params(**{key: value for key, value in settings.items() if key in method.get_params()})
    model = cluster(data, CHOSEN, estimator=method, key_added="other")
    np.testing.assert_array_equal(numbers_of(data, "other"), method.fit(views).labels_)
    assert model is not method
    has_scores = any(hasattr(model, kept) for kept in ("scores_", "consensus_", "embedding_"))
    assert ("X_other" in data.obsm) == ("X_other_map" in data.obsm) == has_scores


def test_the_map_is_that_of_the_summary():
    data, views, _ = make_mudata()
    model = cluster(data, CHOSEN, estimator=METHOD)
    # The positions of a summary have six significant digits.
    np.testing.assert_allclose(data.obsm["X_coview_map"], summarize(model, views).points.positions, atol=1e-5)


def test_cells_may_lack_modalities():
    """Cells 0 to 9 have only proteins, 80 to 89 only RNA, and the proteins are in another order."""
    prot = np.random.default_rng(0).permutation(80)
    data, views, _ = make_mudata(rna=slice(10, None), prot=prot)
    model = cluster(data, CHOSEN, estimator=METHOD)
    by_name = pd.DataFrame(index=cell_names(90)).loc[data.obs_names]
    row = [int(name.removeprefix("cell")) for name in by_name.index]
    plain = {"rna": views["rna"][row], "prot": views["prot"][row]}
    plain["rna"][np.array(row) < 10] = np.nan
    plain["prot"][np.array(row) >= 80] = np.nan
    np.testing.assert_array_equal(numbers_of(data), METHOD.fit(plain).labels_)
    assert model.model_.predictor.present_rows["prot"].tolist() == [i for i, number in enumerate(row) if number < 80]
    assert data.obs["coview_membership"].notna().all()


def test_a_cell_without_any_of_the_modalities_has_no_cluster():
    data, _, _ = make_mudata(rna=slice(0, 70), prot=slice(0, 75))
    other = make_anndata(np.ones((90, 2)), prefix="o")
    data = MuData({"rna": data["rna"], "prot": data["prot"], "other": other})
    cluster(data, CHOSEN, estimator=METHOD)
    unknown = [int(name.removeprefix("cell")) >= 75 for name in data.obs_names]
    assert sum(unknown) == 15
    np.testing.assert_array_equal(numbers_of(data) == -1, unknown)
    for name in ("coview_membership", "coview_novelty"):
        np.testing.assert_array_equal(data.obs[name].isna(), unknown)
    for name in ("X_coview", "X_coview_map"):
        np.testing.assert_array_equal(np.isnan(data.obsm[name]).any(axis=1), unknown)


def test_rows_of_nan_in_obsm_are_cells_without_the_view():
    _, views, _ = make_mudata()
    views["prot"][:20] = np.nan
    views["rna"][:5] = np.nan
    cells = AnnData(obsm={"X_pca": views["rna"], "protein": views["prot"]})
    cluster(cells, {"rna": "X_pca", "prot": "protein"}, estimator=METHOD)
    expected = METHOD.fit({name: x[5:] for name, x in views.items()}).labels_
    np.testing.assert_array_equal(numbers_of(cells), [*[-1] * 5, *expected])


@pytest.mark.parametrize(
    ("chosen", "matrix"),
    [
        (None, lambda rna: rna.obsm["X_pca"]),
        (["prot", "rna"], lambda rna: rna.obsm["X_pca"]),
        ({"rna": "X_pca"}, lambda rna: rna.obsm["X_pca"]),
        ({"rna": "counts"}, lambda rna: rna.layers["counts"]),
        ({"rna": None}, lambda rna: rna.X),
        ({"rna": "X"}, lambda rna: rna.X),
    ],
)
def test_matrices_are_named_as_in_files(chosen, matrix):
    data, _, _ = make_mudata()
    views = to_views(data, chosen)
    assert views.names == (("rna", "prot") if chosen is None else tuple(chosen))
    expected, found = matrix(data["rna"]), views["rna"]
    assert sp.issparse(found) == sp.issparse(expected)
    np.testing.assert_array_equal(sp.csr_array(found).toarray(), sp.csr_array(expected).toarray())
    assert views.columns["rna"] == (tuple(data["rna"].var_names) if expected.shape[1] == 7 else None)
    assert views.index.equals(data.obs_names)


def test_sparse_counts_give_the_labels_of_the_plain_api():
    data, views, _ = make_mudata(prot=slice(0, 80))
    cluster(data, {"rna": None, "prot": None}, estimator=METHOD)
    present = np.arange(90) < 80
    counts = data["rna"].X
    plain = Views({"rna": counts, "prot": np.where(present[:, None], views["prot"], np.nan)})
    np.testing.assert_array_equal(numbers_of(data), METHOD.fit(plain).labels_)


def test_data_frames_in_obsm_keep_their_columns():
    _, views, _ = make_mudata()
    frame = pd.DataFrame(views["prot"], index=cell_names(90), columns=list("wxyz"))
    cells = make_anndata(views["rna"], obsm={"protein": frame})
    assert to_views(cells, {"rna": None, "prot": "protein"}).columns == {
        "rna": tuple(f"g{j}" for j in range(5)),
        "prot": ("w", "x", "y", "z"),
    }


def test_features_with_equal_names_have_no_column_names():
    cells = make_anndata(np.ones((3, 2)))
    cells.var_names = ["g", "g"]
    assert to_views(cells, ["X"]).columns == {"X": None}


@pytest.mark.parametrize("missing", [False, True])
def test_results_survive_a_file(tmp_path, missing):
    data, _, _ = make_mudata(prot=slice(0, 60) if missing else slice(None), spread=2.0)
    cluster(data, CHOSEN)
    data.write(tmp_path / "cells.h5mu")
    again = mudata.read_h5mu(tmp_path / "cells.h5mu")
    assert_same_results(again, data)
    assert again.uns["coview"]["params"]["modalities"] == {"rna": "X_pca", "prot": "X"}
    assert json.loads(again.uns["coview"]["params"]["settings"])["n_clusters"] == "auto"
    assert again.uns["coview"]["n_clusters"] == 3


def test_results_survive_an_h5ad_file(tmp_path):
    _, views, _ = make_mudata()
    cells = make_anndata(views["rna"], obsm={"protein": views["prot"]})
    cluster(cells, {"rna": None, "prot": "protein"}, estimator=METHOD)
    cells.write_h5ad(tmp_path / "cells.h5ad")
    assert_same_results(anndata.read_h5ad(tmp_path / "cells.h5ad"), cells)


def test_backed_files_give_the_same_results_and_can_be_written(tmp_path):
    """The matrices are both kinds of a backed file: sparse counts and dense proteins."""
    data, _, _ = make_mudata(prot=slice(0, 70))
    data.write(tmp_path / "cells.h5mu")
    backed = mudata.read_h5mu(tmp_path / "cells.h5mu", backed="r+")
    assert backed.isbacked
    for each in (data, backed):
        cluster(each, {"rna": None, "prot": None}, estimator=METHOD)
    assert_same_results(backed, data)
    backed.write()
    backed.file.close()
    assert_same_results(mudata.read_h5mu(tmp_path / "cells.h5mu"), data)


def test_a_backed_anndata_gives_the_same_results(tmp_path):
    _, views, _ = make_mudata()
    cells = make_anndata(views["rna"], obsm={"protein": views["prot"]})
    cells.write_h5ad(tmp_path / "cells.h5ad")
    backed = anndata.read_h5ad(tmp_path / "cells.h5ad", backed="r")
    for each in (cells, backed):
        cluster(each, ["X", "protein"], estimator=METHOD)
    assert_same_results(backed, cells)
    with pytest.raises(InputError, match=r"^copy=True: data is backed by a file; call data.to_memory\(\) first"):
        cluster(backed, ["X", "protein"], copy=True)
    backed.file.close()


def test_a_copy_leaves_the_data_unchanged():
    data, _, _ = make_mudata()
    changed, model = cluster(data, CHOSEN, estimator=METHOD, copy=True)
    assert "coview" not in data.obs
    assert not {"X_coview", "X_coview_map"} & set(data.obsm)
    assert "coview" not in data.uns
    np.testing.assert_array_equal(numbers_of(changed), model.labels_)
    again = label_cells(data, model, CHOSEN, copy=True)
    assert "coview" not in data.obs
    assert_same_results(again, changed)


def test_results_of_a_view_are_written_into_the_view():
    data, _, _ = make_mudata()
    some = data[:60]
    with pytest.warns(anndata.ImplicitModificationWarning):
        cluster(some, CHOSEN, estimator=METHOD)
    assert numbers_of(some).min() == 0
    assert "coview" not in data.obs


def test_a_later_model_without_scores_removes_the_earlier_results():
    data, _, _ = make_mudata()
    cluster(data, CHOSEN, estimator=METHOD)
    cluster(data, CHOSEN, estimator=OPMC(3, random_state=0))
    assert [name for name in data.obs if name.startswith("coview")] == ["coview"]
    assert not [name for name in data.obsm if name.startswith("X_")]


def test_new_cells_have_the_labels_of_the_plain_api(tmp_path):
    data, views, _ = make_mudata(120)
    train, new = data[:90].copy(), data[90:].copy()
    model = cluster(train, CHOSEN, estimator=METHOD)
    new_views = {name: x[90:] for name, x in views.items()}
    save(model, tmp_path / "model.safetensors")
    for each in (model, load(tmp_path / "model.safetensors")):
        assert label_cells(new, each, CHOSEN) is None
        np.testing.assert_array_equal(numbers_of(new), model.predict(new_views))
        np.testing.assert_array_equal(new.obs["coview_novelty"], 1 - model.score_samples(new_views))
        np.testing.assert_array_equal(new.obsm["X_coview"], model.transform(new_views))
    summary = summarize(model, {name: x[:90] for name, x in views.items()})
    expected = summarize(model, new_views, on_map=summary.map).points.positions
    np.testing.assert_allclose(new.obsm["X_coview_map"], expected, atol=1e-5)  # six digits, as above


def test_new_cells_keep_the_categories_of_the_model():
    data, _, truth = make_mudata()
    model = cluster(data, CHOSEN, estimator=METHOD)
    some = data[truth == truth[0]].copy()
    label_cells(some, model)
    assert list(some.obs["coview"].cat.categories) == ["0", "1", "2"]
    assert some.obs["coview"].nunique() == 1


def test_new_cells_may_lack_modalities():
    data, views, _ = make_mudata()
    model = cluster(data, CHOSEN, estimator=METHOD)
    new = MuData({"rna": data["rna"][:20].copy()})
    label_cells(new, model)
    np.testing.assert_array_equal(numbers_of(new), model.predict({"rna": views["rna"][:20]}))
    with pytest.raises(InputError, match=r"^data has none of the views rna, prot of the model; name their matrices"):
        label_cells(MuData({"atac": data["rna"].copy()}), model)


def test_new_cells_of_an_anndata_have_the_matrices_of_the_model():
    _, views, _ = make_mudata()
    cells = AnnData(obsm={"X_pca": views["rna"], "protein": views["prot"]})
    model = cluster(cells, ["X_pca", "protein"], estimator=METHOD)
    new = cells[:30].copy()
    label_cells(new, model)
    np.testing.assert_array_equal(numbers_of(new), model.labels_[:30])


def test_other_features_are_refused():
    data, _, _ = make_mudata()
    model = cluster(data, {"rna": None, "prot": None}, estimator=METHOD)
    data["prot"].var_names = ["p0", "p1", "p3", "p2"]
    with pytest.raises(InputError, match=r"^view 'prot' has the column 'p3' where 'p2' was when"):
        label_cells(data, model, {"rna": None, "prot": None})


def test_a_fixed_size_model_labels_all_cells():
    data, views, _ = make_mudata()
    model = FixedSize(METHOD, n_train=50, random_state=0)
    cluster(data, CHOSEN, estimator=model)
    np.testing.assert_array_equal(numbers_of(data), model.fit(views).labels_)
    np.testing.assert_array_equal(data.obsm["X_coview"], model.transform(views))


def test_empty_values_need_a_model_that_fills_them():
    _, views, _ = make_mudata()
    views["rna"][3, 1] = np.nan
    cells = AnnData(obsm={"X_pca": views["rna"], "protein": views["prot"]})
    with pytest.raises(InputError, match=r"^view 'X_pca' contains NaN in 1 of 90 samples .*impute them"):
        cluster(cells, ["X_pca", "protein"], estimator=METHOD)
    filled = Preprocessed(METHOD, "median")
    cluster(cells, ["X_pca", "protein"], estimator=filled)
    plain = {"X_pca": views["rna"], "protein": views["prot"]}
    np.testing.assert_array_equal(numbers_of(cells), filled.fit(plain).labels_)


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        ({"rn": "X_pca"}, r"^modality 'rn' is unknown; did you mean 'rna'\? Known: rna, prot$"),
        (["rna", "atac"], r"^modality 'atac' is unknown\. Known: rna, prot$"),
        ({"rna": "X_pcs"}, r"^view 'rna': key 'X_pcs' is unknown; did you mean 'X_pca'\? Known: X_pca, counts, X$"),
        ({"rna": 3}, r"^modalities\['rna'\]=3: expected a key of obsm or layers, or None for X$"),
        ("rna", r"^modalities='rna': expected a mapping such as \{'rna': 'X_pca', 'prot': None\}, or a list$"),
        (7, r"^modalities=7: expected a mapping"),
        ([], r"^modalities is empty; name at least one$"),
    ],
)
def test_unknown_modalities_and_keys_are_refused(chosen, message):
    data, _, _ = make_mudata()
    with pytest.raises(InputError, match=message):
        cluster(data, chosen)


def test_other_mistakes_are_refused():
    data, views, _ = make_mudata()
    cells = AnnData(obsm={"X_pca": views["rna"]})
    for call, message in {
        lambda: cluster(views): r"^data is a dict; give a MuData or AnnData",
        lambda: cluster(cells): r"^modalities=None: name the matrices of the AnnData that are views, among X_pca$",
        lambda: cluster(cells, {"rna": None}): r"^view 'rna' has no X; name one of X_pca$",
        lambda: cluster(data, key_added="a/b"): r"^key_added='a/b': expected a name without '/'",
        lambda: cluster(data, 3): r"^modalities=3",
        lambda: cluster(data, CHOSEN, 3, estimator=METHOD): r"^set n_clusters and random_state in the estimator, as in",
        lambda: cluster(data, CHOSEN, estimator=KMeans(3)): r"wrap KMeans, as in Concat\(KMeans\(…\)\)$",
        lambda: cluster(data, CHOSEN, estimator=TMvKSCR): r"^estimator=TMvKSCR: expected an instance",
        lambda: label_cells(data, KMeans(3)): r"^model is a KMeans; give the fitted model that cluster returns$",
        lambda: plot(data): r"^obs has no column 'coview'; call cluster\(data, key_added='coview'\) first$",
        lambda: cluster(MuData({"all": data.copy()}), ["all"]): r"^modality 'all' is a MuData itself",
    }.items():
        with pytest.raises(InputError, match=message):
            call()
    by_gene = MuData({"a": data["rna"][:40].copy(), "b": data["rna"][40:].copy()}, axis=1)
    with pytest.raises(InputError, match=r"^data is a MuData with axis=1, whose modalities have different cells"):
        cluster(by_gene)


def test_modalities_with_other_cells_than_stated_are_refused():
    data, _, _ = make_mudata()
    data["prot"].obs_names = [f"other{i}" for i in range(90)]
    with pytest.raises(InputError, match=r"^modality 'prot' has other cells than the MuData states; call data.update"):
        cluster(data, CHOSEN)


def test_cells_without_values_in_the_named_matrices_are_refused():
    cells = AnnData(obsm={"a": np.full((5, 2), np.nan)})
    with pytest.raises(InputError, match=r"^no cell has values in a; check the names of the cells$"):
        cluster(cells, ["a"])


def test_cells_of_equal_name_are_refused_unless_rows_are_equal():
    data, _, _ = make_mudata()
    names = ["cell1", *data.obs_names[1:]]
    first, second = data["rna"].copy(), data["prot"].copy()
    first.obs_names = second.obs_names = names
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # those of MuData, which accepts such names
        same = MuData({"rna": first, "prot": second})
    assert to_views(same, CHOSEN).n_samples == 90
    first.obs_names = names[::-1]
    with pytest.raises(InputError, match=r"^two cells are named 'cell1'; call data.obs_names_make_unique"):
        to_views(same, CHOSEN)


def test_a_plot_has_the_colours_of_scanpy():
    data, _, _ = make_mudata(prot=slice(0, 80))
    cluster(data, CHOSEN, estimator=METHOD)
    ax = plot(data)
    assert [to_hex(dots.get_facecolor()[0]) for dots in ax.collections] == list(PALETTE[:3])
    assert data.uns["coview_colors"].tolist() == list(PALETTE[:3])
    data.uns["coview_colors"] = ["#000000", "#ff0000", "#00ff00"]
    data.obs["coview"] = data.obs["coview"].cat.rename_categories(["B", "T", "NK"])
    given = ax.figure.add_subplot()
    assert plot(data, ax=given) is given
    assert [to_hex(dots.get_facecolor()[0]) for dots in given.collections] == data.uns["coview_colors"]
    assert [text.get_text() for text in given.get_legend().get_texts()] == ["B", "T", "NK"]
    drawn = np.concatenate([dots.get_offsets() for dots in given.collections])
    np.testing.assert_array_equal(np.sort(drawn, axis=0), np.sort(data.obsm["X_coview_map"], axis=0))
    assert given.get_xlabel() == "X_coview_map: t-SNE of the scores"


def test_a_plot_leaves_out_cells_without_a_cluster():
    _, views, _ = make_mudata()
    views["rna"][:5] = np.nan
    cells = AnnData(obsm={"X_pca": views["rna"]})
    cluster(cells, ["X_pca"], estimator=METHOD)
    ax = plot(cells)
    assert sum(len(dots.get_offsets()) for dots in ax.collections) == 85
    assert ax.get_xlabel().endswith("; 5 cells without a cluster are not drawn")
    del cells.obsm["X_coview_map"]
    with pytest.raises(InputError, match=r"^obsm has no 'X_coview_map': the model has no scores to map"):
        plot(cells)


def test_more_clusters_than_colours_leave_the_colours_to_scanpy():
    """Scanpy has palettes of up to 102 colours; ours repeat after ten, with other markers."""
    rng = np.random.default_rng(0)
    cells = AnnData(obsm={"X_coview_map": rng.normal(size=(24, 2))})
    cells.obs["coview"] = pd.Categorical(np.repeat(np.arange(12), 2).astype(str))
    plot(cells)
    assert "coview_colors" not in cells.uns


def test_progress_is_reported_and_not_kept():
    data, _, _ = make_mudata()
    calls = []
    model = cluster(data, CHOSEN, 3, progress=lambda *call: calls.append(call))
    stages = [stage for stage, _, _ in calls]
    assert stages[-4:] == ["membership", "scores", "map", "map"]
    assert "fitting: clusterings" in stages
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).labels_, model.labels_)
