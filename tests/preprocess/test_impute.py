"""Empty cells: refused by default, and filled by steps that are learnt from training rows."""

import json
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.metrics import adjusted_rand_score
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import check_estimator

from coview import KSC, OPMC, Concat, Coview, FixedSize, InputError, Preprocessed, TMvKSCR, load, save, summarize
from coview.data.as_views import as_views
from coview.preprocess.impute import FillNearest
from coview.preprocess.steps import parse_steps
from tests.cli.running import call, refused
from tests.conftest import make_blobs


def with_holes(x, rate=0.1, seed=0):
    holes = np.random.default_rng(seed).random(x.shape) < rate
    holes[holes.all(axis=1)] = False
    return np.where(holes, np.nan, x)


@pytest.fixture(scope="module")
def blobs():
    views, truth = make_blobs(150, spread=8.0, widths=(6, 9))
    return {"a": with_holes(views["a"]), "b": views["b"]}, truth


def test_medians_are_those_of_scikit_learn(blobs):
    x = blobs[0]["a"]
    step = parse_steps("median").learn(x[:100])
    expected = SimpleImputer(strategy="median").fit(x[:100])
    np.testing.assert_array_equal(step(x), expected.transform(x))
    np.testing.assert_array_equal(step(x[:1]), expected.transform(x[:1]))


def test_nearest_rows_are_those_of_scikit_learn_in_standardised_columns(blobs):
    x = blobs[0]["a"] * [1, 100, 1, 1e-3, 1, 1]
    step = parse_steps("nearest").learn(x[:100])
    (learnt,) = step.steps
    assert isinstance(learnt, FillNearest)
    scaled = (x - learnt.means) / learnt.spreads
    expected = KNNImputer(n_neighbors=5).fit(scaled[:100]).transform(scaled) * learnt.spreads + learnt.means
    np.testing.assert_allclose(step(x), np.where(np.isnan(x), expected, x), rtol=1e-9)
    for i in (3, 120):
        np.testing.assert_array_equal(step(x[i : i + 1])[0], step(x)[i])


@pytest.mark.parametrize("name", ["median", "nearest"])
def test_rows_without_empty_cells_stay_as_they_are(name):
    x = make_blobs(40)[0]["a"]
    found = parse_steps(name).learn(x)(x)
    np.testing.assert_array_equal(found, x)
    assert not np.shares_memory(found, x)


@pytest.mark.parametrize(
    "steps", [{"a": "median"}, {"a": "nearest+standard"}, ["median+l2", "none"], "median+standard"]
)
@pytest.mark.parametrize(
    "inner", [TMvKSCR(3, random_state=0), Concat(KSC(3, random_state=0)), Coview(3, random_state=0)]
)
def test_clusters_are_found_in_spite_of_empty_cells(steps, inner, blobs, tmp_path):
    views, truth = blobs
    given = views if isinstance(steps, dict) else list(views.values())
    model = Preprocessed(inner, steps).fit(given)
    assert adjusted_rand_score(truth, model.labels_) > 0.95
    np.testing.assert_array_equal(model.predict(given), model.labels_)
    save(model, tmp_path / "model.safetensors")
    np.testing.assert_array_equal(load(tmp_path / "model.safetensors").predict(given), model.labels_)


def test_a_model_inside_fixed_size_fills_cells(blobs):
    views, truth = blobs
    model = FixedSize(Preprocessed(TMvKSCR(3, random_state=0), {"a": "median"}), n_train=80, random_state=0).fit(views)
    assert adjusted_rand_score(truth, model.labels_) > 0.95


def test_empty_cells_and_missing_views_may_occur_together(blobs):
    views, truth = blobs
    some = {"a": views["a"].copy(), "b": views["b"].copy()}
    some["a"][::5], some["b"][1::5] = np.nan, np.nan
    model = Preprocessed(TMvKSCR(3, random_state=0), {"a": "nearest"}).fit(some)
    assert adjusted_rand_score(truth, model.labels_) > 0.95
    summary = summarize(model, some)
    assert {view.name: view.n_samples for view in summary.views} == {"a": 120, "b": 120}
    assert json.loads(summary.to_json())


@pytest.mark.parametrize("steps", ["standard", {"b": "median"}, ["none", "median"]])
def test_empty_cells_are_refused_in_views_that_are_not_filled(steps, blobs):
    views = blobs[0]
    given = list(views.values()) if isinstance(steps, list) else views
    name = "view0" if isinstance(steps, list) else "a"
    with pytest.raises(InputError, match=rf"view '{name}' contains NaN in .*impute them \(preprocessing step 'median'"):
        Preprocessed(TMvKSCR(3), steps).fit(given)
    with pytest.raises(InputError, match="view 'a' contains NaN"):
        TMvKSCR(3).fit(as_views(views, None, lambda name: True))


def test_an_inner_preprocessing_fills_cells_of_views_that_the_outer_one_leaves(blobs, tmp_path):
    views, truth = blobs
    model = Preprocessed(Preprocessed(TMvKSCR(3, random_state=0), {"a": "median+standard"}), {"b": "standard"})
    model.fit(views)
    assert adjusted_rand_score(truth, model.labels_) > 0.95
    np.testing.assert_array_equal(model.predict(views), model.labels_)
    once = Preprocessed(TMvKSCR(3, random_state=0), {"a": "median+standard", "b": "standard"}).fit(views)
    np.testing.assert_array_equal(model.labels_, once.labels_)
    save(model, tmp_path / "model.safetensors")
    np.testing.assert_array_equal(load(tmp_path / "model.safetensors").predict(views), model.labels_)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (Preprocessed(TMvKSCR(3), {"a": "standard+median"}), "'standard' is applied before 'median' fills them"),
        (Preprocessed(TMvKSCR(3), "l2+nearest+pca2"), "'l2' is applied before 'nearest' fills them"),
        (Preprocessed(TMvKSCR(3), ["standard+median", "none"]), "'standard' is applied before 'median' fills them"),
        (
            Preprocessed(Preprocessed(TMvKSCR(3), {"a": "median"}), {"a": "standard"}),
            "'standard' is applied before the inner Preprocessed fills them",
        ),
        (
            FixedSize(Preprocessed(FixedSize(Preprocessed(TMvKSCR(3), "median")), {"a": "l2"})),
            "'l2' is applied before the inner FixedSize fills them",
        ),
    ],
    ids=str,
)
def test_a_step_before_the_one_that_fills_cells_is_named(model, message, blobs):
    views = list(blobs[0].values()) if isinstance(getattr(model, "steps", None), list) else blobs[0]
    with pytest.raises(InputError, match=rf"has empty cells \(NaN\), and the step {message}; fill them first, as in '"):
        model.fit(views)


@pytest.mark.parametrize(
    ("model", "allow_nan"),
    [
        (Preprocessed(TMvKSCR(2), "median"), True),
        (Preprocessed(TMvKSCR(2), ["nearest+standard"]), True),
        (FixedSize(Preprocessed(TMvKSCR(2), "median"), n_train=0.9), True),
        (Preprocessed(TMvKSCR(2), "standard+median"), False),
        (Preprocessed(TMvKSCR(2), {"lab": "median"}), False),
        (Preprocessed(OPMC(2), "median"), False),
        (Preprocessed(TMvKSCR(2), "unknown"), False),
        (TMvKSCR(2), False),
    ],
    ids=lambda each: " ".join(repr(each).split()),
)
def test_the_tag_of_nan_follows_the_steps(model, allow_nan):
    tags = get_tags(model).input_tags
    assert tags.allow_nan == allow_nan
    if allow_nan:
        assert not tags.sparse
        check_estimator(model, on_skip=None)


def test_the_order_that_the_message_suggests_is_accepted(blobs):
    views, truth = blobs
    with pytest.raises(InputError, match="fill them first, as in 'nearest\\+l2\\+pca2'"):
        Preprocessed(TMvKSCR(3), {"a": "l2+nearest+pca2"}).fit(views)
    model = Preprocessed(TMvKSCR(3, random_state=0), {"a": "nearest+l2+pca2"}).fit(views)
    assert adjusted_rand_score(truth, model.labels_) > 0.9


def test_new_samples_with_empty_cells_need_a_first_step_that_fills_them(blobs):
    views = blobs[0]
    complete = {name: np.nan_to_num(x) for name, x in views.items()}
    model = Preprocessed(TMvKSCR(3, random_state=0), {"a": "standard+median"}).fit(complete)
    with pytest.raises(InputError, match="'standard' is applied before 'median' fills them"):
        model.predict(views)
    with pytest.raises(InputError, match="view 'b' contains NaN"):
        model.predict({"a": complete["a"], "b": np.where(np.eye(150, 9) > 0, np.nan, views["b"])})


def test_columns_without_values_infinite_values_and_sparse_views_are_refused(blobs):
    views = blobs[0]
    empty = {"a": np.column_stack([views["a"], np.full(150, np.nan)]), "b": views["b"]}
    with pytest.raises(InputError, match=r"view 'a' has no value in 1 of 7 columns \(first: column 6\)"):
        Preprocessed(TMvKSCR(3), {"a": "median"}).fit(empty)
    infinite = {"a": np.where(np.isnan(views["a"]), np.inf, views["a"]), "b": views["b"]}
    with pytest.raises(InputError, match="view 'a' contains infinity"):
        Preprocessed(TMvKSCR(3), {"a": "median"}).fit(infinite)
    with pytest.raises(InputError, match="view 'a' is sparse, and 'nearest' fills cells of dense tables"):
        Preprocessed(TMvKSCR(3), {"a": "nearest"}).fit({"a": sp.csr_array(views["b"]), "b": views["b"]})


@pytest.mark.parametrize("method", [[], ["--method=tmvkscr"]], ids=["coview", "tmvkscr"])
def test_the_command_fills_cells(method, blobs, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    views, truth = blobs
    for name, x in views.items():
        cells = [",".join("" if np.isnan(value) else repr(value) for value in row) for row in x.tolist()]
        header = ",".join(["id", *(f"{name}{j}" for j in range(x.shape[1]))])
        lines = [header, *(f"s{i},{row}" for i, row in enumerate(cells))]
        (tmp_path / f"{name}.csv").write_text("\n".join(lines) + "\n")
    command = ["fit", "--view=a=a.csv", "--view=b=b.csv", "--ids=id", "-k3", "-o", "run", "--no-report", *method]
    assert "impute" in refused(capsys, *command)
    code, _, err = call(capsys, *command, "--impute=a=median")
    assert code == 0, err
    labels = [int(line.split(",")[1]) for line in (tmp_path / "run" / "labels.csv").read_text().splitlines()[1:]]
    assert adjusted_rand_score(truth, labels) > 0.95
    code, _, err = call(capsys, "predict", "run", "--view=a=a.csv", "--view=b=b.csv", "--ids=id", "-o", "new.csv")
    assert code == 0, err
    of_training = (tmp_path / "run" / "labels.csv").read_text().splitlines()
    assert (tmp_path / "new.csv").read_text().splitlines() == [line.rpartition(",")[0] for line in of_training]
    assert "'mean' is unknown" in refused(capsys, *command, "--force", "--impute=mean")


def test_a_row_is_filled_alone_as_in_a_batch_also_with_ties():
    rng = np.random.default_rng(0)
    x = with_holes(rng.integers(3, size=(300, 6)).astype(float), 0.2)
    step = parse_steps("nearest").learn(x)
    whole = step(x)
    np.testing.assert_array_equal(np.vstack([step(x[i : i + 1]) for i in range(300)]), whole)
    order = rng.permutation(300)
    np.testing.assert_array_equal(step(x[order]), whole[order])


def test_a_model_is_loaded_in_a_process_that_has_not_used_the_steps(blobs, tmp_path):
    views = blobs[0]
    model = Preprocessed(TMvKSCR(3, random_state=0), {"a": "nearest"}).fit(views)
    save(model, tmp_path / "model.safetensors")
    np.savez(tmp_path / "views.npz", **views)
    code = "import sys, numpy as np, coview\nviews = dict(np.load(sys.argv[2]))\n"
    code += "print(*coview.load(sys.argv[1]).predict(views))"
    paths = [str(tmp_path / name) for name in ("model.safetensors", "views.npz")]
    done = subprocess.run([sys.executable, "-c", code, *paths], capture_output=True, text=True, check=True)
    np.testing.assert_array_equal(np.array(done.stdout.split(), dtype=int), model.labels_)


@settings(max_examples=25, deadline=None)
@given(
    empty=st.sets(st.integers(0, 5)),
    rate=st.floats(0, 0.5),
    seed=st.integers(0, 100),
    step=st.sampled_from(["median", "nearest"]),
)
def test_empty_columns_are_named_and_other_cells_are_filled(empty, rate, seed, step, blobs):
    views = {"a": with_holes(blobs[0]["b"][:60, :6], rate, seed), "b": blobs[0]["b"][:60]}
    views["a"][:, sorted(empty)] = np.nan
    model = Preprocessed(TMvKSCR(3, random_state=0), {"a": step})
    if len(empty) == 6:
        message = "view 'a' has no samples, because all of its rows are NaN"
    elif empty:
        message = rf"view 'a' has no value in {len(empty)} of 6 columns \(first: column {min(empty)}\)"
    else:
        assert np.isfinite(model.fit(views).transform(views)).all()
        return
    with pytest.raises(InputError, match=f"^{message}.*; drop"):
        model.fit(views)
