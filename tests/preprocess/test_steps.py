"""Preprocessing steps: their effect on training rows and on new rows."""

import re

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.preprocessing import StandardScaler, normalize

from coview import FixedSize, InputError, Preprocessed, TMvKSCR, ViewsReader, as_views, label_file
from coview.preprocess.steps import NAMES, Preprocessing, PrincipalComponents, parse_steps, preprocessing_per_view
from tests import naive

CHAINS = ["none", "standard", "l2", "tfidf", "log1p", "total", "pca3", "tfidf+l2", "total+log1p+pca4", "log1p+standard"]


def counts(n_rows=40, n_columns=7, seed=0, dtype=np.float64):
    """Return word counts with zeros, a column of zeros and a row of zeros."""
    rng = np.random.default_rng(seed)
    x = rng.poisson(rng.gamma(0.7, 2.0, size=n_columns), size=(n_rows, n_columns)).astype(dtype)
    x[:, 3] = 0
    x[5] = 0
    return x


def dense(x):
    return x.toarray() if sp.issparse(x) else x


def test_names_are_read_and_written():
    assert parse_steps("tfidf+l2") == Preprocessing(("tfidf", "l2"))
    assert parse_steps(" total + log1p+pca50 ").name == "total+log1p+pca50"
    assert parse_steps("none") == parse_steps("none+none") == Preprocessing(())
    assert parse_steps("none").name == "none"


def test_steps_have_descriptions():
    assert parse_steps("tfidf+l2").description == "tf-idf, L2-normalised rows"
    described = "rows scaled to equal sums, log(1 + x), at most 50 principal components"
    assert parse_steps("total+log1p+pca50").description == described
    assert parse_steps("standard+pca1").description == "standardised columns, the first principal component"
    assert parse_steps("none").description == "as it is"


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        (
            "tfdif+l2",
            "steps 'tfdif' is unknown; did you mean 'tfidf'? Known: none, standard, l2, tfidf, log1p, total, block, "
            "median, nearest, pcaN",
        ),
        ("Standard", "steps 'Standard' is unknown; did you mean 'standard'?"),
        ("pac20", "steps 'pac20' is unknown; did you mean 'pca20'?"),
        ("pca", "steps 'pca' is unknown; did you mean 'pca50'?"),
        ("pca0", "steps 'pca0' is unknown"),
        ("pca" + "9" * 5000, "is unknown"),
        ("robust", "steps 'robust' is unknown. Known: "),
        ("", "steps '' is unknown. Known: "),
        ("l2+", "steps '' is unknown"),
        (7, "steps=7: expected names of steps, such as 'standard' or 'tfidf+l2'"),
        (None, "steps=None: expected names of steps"),
    ],
)
def test_unknown_names_are_refused_with_a_suggestion(name, sentence):
    with pytest.raises(InputError, match=re.escape(sentence)):
        parse_steps(name)


def test_steps_are_the_same_for_all_views_or_given_by_view():
    names = ("text", "image")
    l2, none, tfidf = parse_steps("l2"), parse_steps("none"), parse_steps("tfidf+l2")
    assert preprocessing_per_view("l2", names) == {"text": l2, "image": l2}
    assert preprocessing_per_view(["tfidf+l2", "none"], names) == {"text": tfidf, "image": none}
    assert preprocessing_per_view({"text": "tfidf+l2"}, names) == {"text": tfidf, "image": none}
    assert preprocessing_per_view({}, names) == {"text": none, "image": none}
    assert preprocessing_per_view({0: "l2"}, ("0",)) == {"0": l2}
    with pytest.raises(InputError, match=r"steps has 1 entries for 2 views \(text, image\)"):
        preprocessing_per_view(["l2"], names)
    with pytest.raises(
        InputError, match=r"--preprocess names the view 'txt'; did you mean 'text'\? Views: text, image"
    ):
        preprocessing_per_view({"txt": "l2"}, names, "--preprocess")
    with pytest.raises(InputError, match=r"steps names the view 'sound'\. Views: text, image"):
        preprocessing_per_view({"sound": "l2"}, names)
    with pytest.raises(InputError, match=r"--preprocess 'standart' is unknown; did you mean 'standard'\?"):
        preprocessing_per_view({"text": "standart"}, names, "--preprocess")


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_tfidf_equals_its_reference_implementation_and_scikit_learn(form):
    train, new = counts(), counts(9, seed=1)
    learnt = parse_steps("tfidf").learn(form(train))
    np.testing.assert_allclose(dense(learnt(form(new))), naive.tfidf(train, new), rtol=1e-14)
    theirs = TfidfTransformer(norm=None).fit(sp.csr_array(train)).transform(sp.csr_array(new))
    np.testing.assert_allclose(dense(learnt(form(new))), theirs.toarray(), rtol=1e-14)


def test_stored_zeros_of_a_sparse_view_do_not_count():
    x = counts()
    stored = sp.csr_array(x + 1)
    stored.data -= 1
    assert stored.nnz == x.size
    np.testing.assert_array_equal(
        parse_steps("tfidf").learn(stored).steps[0].weights, parse_steps("tfidf").learn(x).steps[0].weights
    )


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("n_rows", [40, 41])
def test_totals_equal_their_reference_implementation(form, n_rows):
    train, new = counts(n_rows), counts(9, seed=1)
    learnt = parse_steps("total").learn(form(train))
    found = dense(learnt(form(new)))
    np.testing.assert_allclose(found, naive.equal_sums(train, new), rtol=1e-14)
    assert not found[5].any()
    np.testing.assert_allclose(np.delete(found, 5, axis=0).sum(axis=1), learnt.steps[0].total)


def test_totals_of_a_view_of_zeros_are_zeros():
    x = np.zeros((4, 3))
    np.testing.assert_array_equal(parse_steps("total").learn(x)(x), x)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_components_equal_their_reference_implementation(form):
    """Eigenvectors of second moments have half as many correct digits as a decomposition of the rows."""
    train, new = counts(), counts(9, seed=1)
    found = parse_steps("pca3").learn(form(train))(form(new))
    expected = naive.components(train, new, 3, centred=form is np.asarray)
    assert found.shape == (9, 3)
    np.testing.assert_allclose(abs(found), abs(expected), atol=1e-7)


def test_components_of_large_sparse_views_are_nearly_exact(monkeypatch):
    """The accuracy of the randomised decomposition depends on the gaps between the singular values."""
    rng = np.random.default_rng(0)
    x = sp.csr_array(rng.normal(size=(300, 4)) @ (5.0 ** np.arange(4)[:, None] * rng.normal(size=(4, 90))))
    x.data += 1e-3 * rng.normal(size=x.nnz)
    exact = parse_steps("pca4").learn(x)(x)
    monkeypatch.setattr("coview.preprocess.steps._EXACT_ENTRIES", 0)
    learnt = parse_steps("pca4").learn(x)
    np.testing.assert_allclose(abs(learnt(x)), abs(exact), atol=1e-6)
    np.testing.assert_array_equal(parse_steps("pca4").learn(x)(x), learnt(x))


def test_components_of_rows_far_from_zero_are_accurate():
    """float32 has seven digits, of which the offset takes four."""
    rng = np.random.default_rng(0)
    x = (rng.normal(size=(500, 3)) * [3, 2, 1] @ rng.normal(size=(3, 8)) + 1e4).astype(np.float32)
    exact = x.astype(np.float64)
    found, expected = parse_steps("pca3").learn(x)(x), parse_steps("pca3").learn(exact)(exact)
    np.testing.assert_allclose(abs(found), abs(expected), atol=1e-4)


def test_there_are_no_more_components_than_directions_with_variance():
    rng = np.random.default_rng(0)
    flat = rng.normal(size=(50, 2)) @ rng.normal(size=(2, 9))
    learnt = parse_steps("pca5").learn(flat)
    assert learnt.width(9) == 2
    few = rng.normal(size=(3, 9))
    assert parse_steps("pca5").learn(few)(few).shape == (3, 2)
    constant = np.ones((6, 4))
    np.testing.assert_array_equal(parse_steps("pca5").learn(constant)(constant), np.zeros((6, 1)))
    assert parse_steps("pca5").learn(sp.csr_array((6, 4)))(sp.csr_array((6, 4))).shape == (6, 1)


def test_components_of_one_row_are_refused():
    with pytest.raises(InputError, match="view 'rna' has 1 sample and 'pca2' needs at least 2"):
        parse_steps("pca2").learn(np.ones((1, 3)), "rna")


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_columns_are_standardised_as_scikit_learn_does(form):
    train, new = counts(), counts(9, seed=1)
    expected = StandardScaler(with_mean=form is np.asarray).fit(form(train)).transform(form(new))
    np.testing.assert_allclose(
        dense(parse_steps("standard").learn(form(train))(form(new))), dense(expected), rtol=1e-13
    )


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_rows_are_l2_normalised_at_any_scale(form):
    x = counts() - 1
    x[5] = 0
    for unit in (1.0, 1e-300, 1e300):
        found = dense(parse_steps("l2").learn(form(x))(form(x * unit)))
        np.testing.assert_allclose(found, normalize(x), rtol=1e-13)


@pytest.mark.parametrize("name", CHAINS)
def test_sparse_views_are_preprocessed_like_dense_views(name):
    """Steps learnt from one format apply to the other; learning differs if columns are centred."""
    train, new = counts(), counts(9, seed=1)
    for learnt in (parse_steps(name).learn(train), parse_steps(name).learn(sp.csr_array(train))):
        found = learnt(sp.csr_array(new))
        np.testing.assert_allclose(dense(found), learnt(new), rtol=1e-12, atol=1e-12)
    assert sp.issparse(found) == ("pca" not in name)
    if not ("standard" in name or "pca" in name):
        np.testing.assert_allclose(learnt(new), parse_steps(name).learn(train)(new), rtol=1e-13)


@pytest.mark.parametrize("name", ["l2", "total", "tfidf+l2"])
def test_columns_of_a_stacked_sparse_table_are_selected_in_any_order(name):
    x = counts(dtype=np.float32)

    def preprocessed(table):
        views = as_views(table, {"a": [5, 1, 4], "b": [6, 0, 2]})
        return Preprocessed(TMvKSCR(2, kernel="rbf", random_state=0), name).fit(views).model_.seen(views)

    expected = preprocessed(x)
    for view, found in preprocessed(sp.csr_array(x)).items():
        np.testing.assert_allclose(dense(found), expected[view], rtol=1e-6)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("name", CHAINS)
def test_a_row_is_preprocessed_alike_alone_and_in_a_batch(name, form):
    train, new = counts(), form(counts(9, seed=1))
    learnt = parse_steps(name).learn(form(train))
    whole = dense(learnt(new))
    alone = np.vstack([dense(learnt(new[i : i + 1])) for i in range(9)])
    np.testing.assert_array_equal(alone, whole)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("name", CHAINS)
def test_dtypes_are_kept_and_the_input_is_not_changed(name, form):
    for dtype in (np.float32, np.float64):
        x = form(counts(dtype=dtype))
        before = x.copy()
        learnt = parse_steps(name).learn(x)
        found = learnt(x)
        assert found.dtype == dtype
        np.testing.assert_array_equal(dense(x), dense(before))
        other = np.float64 if dtype == np.float32 else np.float32
        assert learnt(x.astype(other)).dtype == other
        assert np.isfinite(dense(found)).all()


@pytest.mark.parametrize("name", ["standard", "l2", "tfidf", "log1p", "total"])
def test_preprocessed_sparse_rows_share_no_memory_with_the_input(name):
    x = sp.csr_array(counts())
    found = parse_steps(name).learn(x)(x)
    assert not any(np.shares_memory(getattr(found, part), getattr(x, part)) for part in ("data", "indices", "indptr"))


@pytest.mark.parametrize("name", [name for name in CHAINS if "standard" not in name and "pca" not in name])
def test_zero_rows_stay_zero(name):
    x = counts()
    assert not parse_steps(name).learn(x)(x)[5].any()
    assert not dense(parse_steps(name).learn(sp.csr_array(x))(sp.csr_array(x)))[5].any()


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("tfidf", -2.0, "view 'text' has the value -2 before 'tfidf', which does not accept negative values"),
        ("total", -0.5, "view 'text' has the value -0.5 before 'total', which does not accept negative values"),
        ("log1p", -1.0, "view 'text' has the value -1 before 'log1p', which does not accept values of -1 or less"),
    ],
)
def test_values_that_a_step_does_not_accept_are_named_in_training_and_later(name, value, sentence, form):
    x = counts()
    learnt = parse_steps(f"{name}+l2").learn(form(x))
    x[2, 1] = value
    with pytest.raises(InputError, match=re.escape(sentence)):
        parse_steps(name).learn(form(x), "text")
    with pytest.raises(InputError, match=re.escape(sentence)):
        learnt(form(x), "text")


def test_the_logarithm_accepts_small_negative_values():
    x = counts() - 0.5
    np.testing.assert_array_equal(parse_steps("log1p").learn(x)(x), np.log1p(x))


def test_a_step_after_centring_is_refused_by_name():
    with pytest.raises(
        InputError, match="before 'tfidf', which does not accept negative values; put 'tfidf' before steps"
    ):
        parse_steps("standard+tfidf").learn(counts())


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("name", ["total", "tfidf", "pca2"])
def test_numbers_that_overflow_are_refused(name, form):
    x = np.full((200, 7), 1.7e308)
    x[::2, 0] = 0
    with pytest.raises(InputError, match=f"view 'text' holds numbers too large for '{name}'; scale them down"):
        parse_steps(name).learn(form(x), "text")(form(x), "text")


def test_components_are_not_columns_of_the_view():
    x = counts()
    assert not parse_steps("total+pca3").learn(x).keeps_columns
    assert parse_steps("total+log1p").learn(x).keeps_columns
    assert parse_steps("total+pca3+standard").learn(x).width(7) == 3
    assert isinstance(parse_steps("pca3").learn(x).steps[0], PrincipalComponents)


def test_every_listed_name_is_known():
    for name in NAMES:
        parse_steps(name.replace("N", "5"))


STEPS = {"words": "total+log1p+pca3", "tags": "tfidf+l2"}


@pytest.fixture(scope="module")
def model_and_views():
    """Return a fixed-size model with different steps for each view, and its views."""
    truth = np.arange(300) % 3
    kinds = np.kron(np.eye(3), np.ones(4))[truth]
    rng = np.random.default_rng(0)
    views = {name: rng.poisson(3 * kinds + 0.3).astype(float) for name in STEPS}
    return FixedSize(Preprocessed(TMvKSCR(3, random_state=0), STEPS), n_train=90, random_state=0).fit(views), views


def test_preprocessed_views_can_be_streamed(model_and_views, tmp_path):
    model, views = model_and_views
    reader = ViewsReader(views, batch_size=37)
    again = FixedSize(Preprocessed(TMvKSCR(3, random_state=0), STEPS), n_train=90, random_state=0).train(reader)
    for each in (model, again):
        label_file(each, reader, tmp_path / "labels.npy")
        np.testing.assert_array_equal(np.load(tmp_path / "labels.npy"), model.labels_)


def test_preprocessed_views_can_be_dask_arrays(model_and_views):
    da = pytest.importorskip("dask.array", reason='Dask is missing; run pip install "coview[dask]"')
    from coview import distributed

    model, views = model_and_views
    chunks = {name: da.from_array(x, chunks=(70, -1)) for name, x in views.items()}
    labels = distributed.predict(model, chunks).compute(scheduler="synchronous")
    np.testing.assert_array_equal(labels, model.labels_)
