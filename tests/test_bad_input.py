"""Invalid input is refused with a message that names the view or parameter, and is not changed."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp

from coview import KSC, RBF, Cosine, Directions, InputError, Linear, Polynomial, Precomputed, TMvKSCR, as_views

TEXT = np.array([[0.0, 0.1, 0.2], [0.3, 0.0, 0.1], [0.1, 0.2, 0.0], [5.0, 5.1, 5.3], [5.2, 5.0, 5.1], [5.1, 5.4, 5.0]])
IMAGE = np.array([[1.0, 0.2], [1.1, 0.0], [0.9, 0.1], [0.1, 3.0], [0.0, 3.2], [0.2, 3.1]])
BOTH = {"text": TEXT, "image": IMAGE}
STACKED = np.hstack([TEXT, IMAGE])
FRAME = pd.DataFrame(STACKED, columns=list("abcde"))
ONES = np.ones((6, 6))


def replaced(table, value, row=2, column=1):
    """Return the table with one value replaced."""
    copy = table.copy()
    copy[row, column] = value
    return copy


def beside(text):
    return {"text": text, "image": IMAGE}


def assert_refused(call, model, data, words):
    before = pickle.dumps((data, model.get_params()))
    with pytest.raises(InputError) as caught:
        call(data)
    message = str(caught.value)
    assert isinstance(caught.value, ValueError)
    for word in words:
        assert word in message
    assert "\n" not in message
    assert pickle.dumps((data, model.get_params())) == before


TABLES = {
    "different numbers of rows": ([TEXT, IMAGE[:-1]], ["'view0'", "6", "'view1'", "5"]),
    "NaN": (beside(replaced(TEXT, np.nan)), ["'text'", "NaN", "row 2", "impute them"]),
    "infinity": (beside(replaced(TEXT, -np.inf)), ["'text'", "inf", "row 2"]),
    "both infinities": (beside(replaced(replaced(TEXT, np.inf), -np.inf, row=4)), ["'text'", "inf", "2 of 6"]),
    "NaN in sparse": ([IMAGE, sp.csr_array(replaced(TEXT, np.nan))], ["'view1'", "NaN", "row 2"]),
    "infinity in sparse": ([IMAGE, sp.coo_array(replaced(TEXT, np.inf))], ["'view1'", "inf", "row 2"]),
    "NaN in pandas": (beside(pd.DataFrame(TEXT).replace(5.0, np.nan)), ["'text'", "NaN", "row 3"]),
    "null in polars": (
        beside(pl.DataFrame({"a": [0, 1, None, 1, 0, 0], "b": [0, 1, 2, 1, 0, 0]})),
        ["'text'", "NaN", "row 2"],
    ),
    "masked values": (beside(np.ma.masked_greater(TEXT, 5.2)), ["'text'", "masked"]),
    "one dimension": (beside(TEXT[:, 0]), ["'text'", "1-D"]),
    "one dimension in sparse": (beside(sp.coo_array(TEXT[:, 0])), ["'text'", "1-D"]),
    "one dimension alone": (TEXT[:, 0], ["X", "1-D"]),
    "three dimensions": (beside(TEXT[:, :, None]), ["'text'", "3-D"]),
    "three dimensions alone": (TEXT[None], ["X", "3-D"]),
    "a number": (beside(3.0), ["'text'", "0-D"]),
    "None": (None, ["X"]),
    "text": (beside(TEXT.astype(str)), ["'text'", "holds strings"]),
    "text in an object array": (beside(replaced(TEXT.astype(object), "many")), ["'text'", "holds strings"]),
    "dates": (beside(TEXT.astype("datetime64[D]")), ["'text'", "dates"]),
    "complex": (beside(TEXT + 1j), ["'text'", "Complex"]),
    "complex sparse": (beside(sp.csr_array(TEXT + 1j)), ["'text'", "Complex"]),
    "dictionaries": (beside(replaced(TEXT.astype(object), {"a": 1})), ["'text'", "dict"]),
    "a number beyond floats": (beside(replaced(TEXT.astype(object), 10**400)), ["'text'"]),
    "rows of different lengths": (beside([[1.0, 2.0], [3.0]]), ["'text'", "lengths"]),
    "no views in a list": ([], ["no views"]),
    "no views in a mapping": ({}, ["no views"]),
    "no rows in one view": (beside(TEXT[:0]), ["'text'", "0 sample(s)"]),
    "no rows in any view": ([TEXT[:0], IMAGE[:0]], ["'view0'", "0 sample(s)"]),
    "no columns": (beside(TEXT[:, :0]), ["'text'", "0 feature(s)"]),
    "no columns in sparse": (beside(sp.csr_array((6, 0))), ["'text'", "0 feature(s)"]),
    "two views of one name": ({1: TEXT, "1": IMAGE}, ["'1'"]),
    "two columns of one name": (beside(pd.DataFrame(TEXT, columns=["a", "b", "a"])), ["'text'", "'a'"]),
    "column names equal as text": (beside(pd.DataFrame(TEXT, columns=[1, "b", "1"])), ["'text'", "'1'"]),
    "text in pandas": (beside(pd.DataFrame({"a": TEXT[:, 0], "colour": list("rgbrgb")})), ["'text'", "'colour'"]),
    "text in polars": (beside(pl.DataFrame({"a": TEXT[:, 0], "colour": list("rgbrgb")})), ["'text'", "'colour'"]),
    "empty categories in pandas": (
        beside(pd.DataFrame({"a": TEXT[:, 0], "colour": pd.Categorical([None] * 6)})),
        ["'text'", "'colour'"],
    ),
    "an empty category in pandas": (
        beside(pd.DataFrame({"a": TEXT[:, 0], "colour": pd.Categorical(["r", None, "b", "r", "b", "r"])})),
        ["'text'", "'colour'", "NaN"],
    ),
    "categories beside another byte order in pandas": (
        beside(pd.DataFrame(TEXT.astype(">f8"), columns=list("abc")).assign(a=pd.Categorical(list("rgbrgb")))),
        ["'text'", "astype(float)"],
    ),
    "rows in another order": (
        {"text": pd.DataFrame(TEXT, index=list("pqrstu")), "image": pd.DataFrame(IMAGE, index=list("utsrqp"))},
        ["'text'", "'image'", "order"],
    ),
    "other rows": (
        {"text": pd.DataFrame(TEXT, index=list("pqrstu")), "image": pd.DataFrame(IMAGE, index=list("pqrstv"))},
        ["'text'", "'image'", "row labels"],
    ),
}


@pytest.mark.parametrize(("data", "words"), TABLES.values(), ids=TABLES)
def test_fit_refuses_invalid_tables(data, words):
    model = TMvKSCR(2)
    assert_refused(model.fit, model, data, words)


def test_objects_that_are_not_numbers_raise_a_type_error():
    with pytest.raises(TypeError, match="'text'"):
        TMvKSCR(2).fit(beside(replaced(TEXT.astype(object), {"a": 1})))


WEIGHTS = {
    "negative": (-1, []),
    "one of them negative": ([1, -0.5], ["-0.5"]),
    "NaN": ([1, np.nan], ["nan"]),
    "infinite": ([1, np.inf], ["inf"]),
    "all zero": ([0, 0], ["zero"]),
    "zero": (0, ["zero"]),
    "too many": ([1, 2, 3], ["3", "2 views"]),
    "too few": ([1], ["1", "2 views"]),
    "in a table": ([[1, 2]], []),
    "text": ("heavy", ["'heavy'"]),
    "text in a list": (["heavy", "light"], ["'heavy'"]),
    "of other views": ({"text": 1, "sound": 2}, ["sound", "image"]),
    "of views that are not named by text": ({"text": 1, 0: 2}, ["image"]),
}


@pytest.mark.parametrize("parameter", ["kappa", "beta"])
@pytest.mark.parametrize(("weights", "words"), WEIGHTS.values(), ids=WEIGHTS)
def test_fit_refuses_invalid_weights(parameter, weights, words):
    model = TMvKSCR(2, **{parameter: weights})
    assert_refused(model.fit, model, BOTH, [parameter, *words])


def test_weights_of_scores_by_name_are_given_for_all_views():
    """Their default depends on the number of views, so a number for some of them would have an unclear meaning."""
    model = TMvKSCR(2, beta={"text": 1})
    assert_refused(model.fit, model, BOTH, ["beta", "image"])


PARAMETERS = {
    "no clusters": ({"n_clusters": 0}, ["n_clusters=0"]),
    "fewer than no clusters": ({"n_clusters": -1}, ["n_clusters=-1"]),
    "half a cluster": ({"n_clusters": 2.5}, ["n_clusters=2.5"]),
    "clusters as text": ({"n_clusters": "two"}, ["n_clusters='two'"]),
    "more clusters than samples": ({"n_clusters": 7}, ["n_clusters=7", "n_samples=6"]),
    "rho below 0": ({"rho": -0.1}, ["rho=-0.1"]),
    "rho above 1": ({"rho": 1.1}, ["rho=1.1"]),
    "rho NaN": ({"rho": np.nan}, ["rho=nan"]),
    "rho as text": ({"rho": "half"}, ["rho='half'"]),
    "unknown kernel": ({"kernel": "gauss"}, ["kernel='gauss'", "rbf"]),
    "kernel as a class": ({"kernel": Linear}, ["kernel=", "Linear"]),
    "kernel as a number": ({"kernel": 0.5}, ["kernel=0.5"]),
    "too few kernels": ({"kernel": ["rbf"]}, ["kernel", "2 views"]),
    "too many kernels": ({"kernel": ["rbf"] * 3}, ["kernel", "2 views"]),
    "unknown kernel in a list": ({"kernel": ["rbf", "gauss"]}, ["kernel='gauss'"]),
    "kernels of other views": ({"kernel": {"text": "rbf", "sound": "rbf"}}, ["kernel", "sound", "image"]),
    "kernels of some views": ({"kernel": {"text": "rbf"}}, ["kernel", "image"]),
    "kernels of views that are not named by text": ({"kernel": {"text": "rbf", 0: "rbf"}}, ["kernel", "image"]),
    "unknown assigner": ({"assigner": "nearest"}, ["assigner='nearest'", "codebook"]),
    "several views and views=": ({"views": [3, 2]}, ["views="]),
}


@pytest.mark.parametrize(("parameters", "words"), PARAMETERS.values(), ids=PARAMETERS)
def test_fit_refuses_invalid_parameters(parameters, words):
    model = TMvKSCR(**{"n_clusters": 2, **parameters})
    assert_refused(model.fit, model, BOTH, words)


SIMILARITIES = {
    "centred rows under Linear": (Linear(), TEXT - TEXT.mean(axis=0), ["'text'", "degree <= 0", "Linear()"]),
    "an all-zero row under Cosine": (Cosine(), TEXT * (np.arange(6) != 1)[:, None], ["'text'", "1 of 6", "Cosine()"]),
    "overflow under Polynomial": (Polynomial(3), TEXT * 1e120, ["'text'", "Polynomial(degree=3", "large"]),
    "overflow under Linear": (Linear(), TEXT * 1e160, ["'text'", "Linear()", "large"]),
    "a Gram matrix that is not square": (Precomputed(), TEXT, ["'text'", "6×3", "square"]),
    "a Gram matrix that is not symmetric": (Precomputed(), replaced(ONES, 0.5), ["'text'", "symmetric"]),
}


@pytest.mark.parametrize("make", [np.array, sp.csr_array], ids=["dense", "csr"])
@pytest.mark.parametrize(("kernel", "text", "words"), SIMILARITIES.values(), ids=SIMILARITIES)
def test_fit_refuses_invalid_similarities(kernel, text, words, make):
    model = TMvKSCR(2, kernel=[kernel, "rbf"])
    assert_refused(model.fit, model, beside(make(text)), words)


def test_a_method_for_one_view_refuses_two():
    model = KSC(2)
    assert_refused(model.fit, model, BOTH, ["KSC", "text, image"])


LAYOUTS = {
    "widths that do not add up": (STACKED, [3, 3], ["views=[3, 3]", "5 columns"]),
    "widths of zero": (STACKED, [5, 0], ["views=[5, 0]"]),
    "negative widths": (STACKED, [6, -1], ["views=[6, -1]"]),
    "no widths": (STACKED, [], ["views=[]"]),
    "a number": (STACKED, 2, ["views=2"]),
    "a position that is not in a list": (STACKED, {"text": 1}, ["views=", "'text'"]),
    "columns out of range": (STACKED, {"text": [0, 1], "image": [3, 5]}, ["'image'", "5 columns"]),
    "columns out of range from the end": (STACKED, {"text": [0, 1], "image": [-6]}, ["'image'", "5 columns"]),
    "positions that are not integers": (STACKED, {"text": [0.0, 1.0]}, ["'text'"]),
    "a slice of floats": (STACKED, {"text": slice(0.5, 2)}, ["'text'"]),
    "a number in an array": (STACKED, np.array(2), ["views", "array(2)"]),
    "a slice of names": (FRAME, {"text": slice("a", "c")}, ["'text'"]),
    "a view of no columns": (STACKED, {"text": [0], "image": []}, ["'image'", "0 feature(s)"]),
    "a slice past the end": (STACKED, {"text": slice(5, 9)}, ["'text'", "0 feature(s)"]),
    "unknown column names": (FRAME, {"text": ["a", "b"], "image": ["d", "z"]}, ["'image'", "'z'"]),
    "names without a frame": (STACKED, {"text": ["a", "b"]}, ["'text'", "DataFrame"]),
    "widths that are booleans": (STACKED[:, :2], [True, True], ["views=", "True"]),
    "positions mixed with booleans": (STACKED, {"text": [0, True]}, ["'text'", "5 columns"]),
    "a short mask": (STACKED, {"text": [True, False]}, ["'text'", "mask of 2", "5"]),
    "two views of one name": (STACKED, {1: [0], "1": [1]}, ["'1'"]),
}


@pytest.mark.parametrize(("table", "layout", "words"), LAYOUTS.values(), ids=LAYOUTS)
def test_fit_refuses_invalid_layouts(table, layout, words):
    model = TMvKSCR(2, views=layout)
    assert_refused(model.fit, model, table, words)


def test_validated_views_are_not_split():
    model = TMvKSCR(2, views=[3, 2])
    assert_refused(model.fit, model, as_views(BOTH), ["views="])


FITTED_ON_NAMES = {"text": pd.DataFrame(TEXT, columns=list("abc")), "image": IMAGE}

NEW_ROWS = {
    "an unknown view": (BOTH, {**BOTH, "sound": TEXT}, ["text, image", "unknown: sound"]),
    "a view of another name": (
        BOTH,
        {"text": TEXT, "sound": IMAGE},
        ["missing: image", "unknown: sound; give the same views"],
    ),
    "a missing view in a list": (BOTH, [TEXT], ["text, image", "missing"]),
    "one view too many in a list": ([TEXT, IMAGE], [TEXT, IMAGE, TEXT], ["unknown: view2"]),
    "a table in place of views": (BOTH, STACKED, ["text, image", "missing"]),
    "fewer columns": (BOTH, beside(TEXT[:, :2]), ["'text'", "2 columns", "3"]),
    "more columns in a list": (BOTH, [TEXT, STACKED], ["'image'", "5 columns", "2"]),
    "columns in another order": (
        FITTED_ON_NAMES,
        beside(pd.DataFrame(TEXT, columns=list("bac"))),
        ["'text'", "'a'", "'b'", "order"],
    ),
    "columns in another order in polars": (
        FITTED_ON_NAMES,
        [pl.DataFrame(TEXT, schema=list("bac")), IMAGE],
        ["'text'", "'a'", "'b'", "order"],
    ),
    "different numbers of rows": (BOTH, beside(TEXT[:4]), ["'text'", "4", "'image'", "6"]),
    "NaN": (BOTH, beside(replaced(TEXT, np.nan)), ["'text'", "NaN", "row 2"]),
    "no rows": (BOTH, [TEXT[:0], IMAGE[:0]], ["0 sample(s)"]),
    "no views": (BOTH, [], ["no views"]),
}


@pytest.mark.parametrize("method", ["predict", "transform"])
@pytest.mark.parametrize(("fitted", "data", "words"), NEW_ROWS.values(), ids=NEW_ROWS)
def test_new_rows_must_have_the_views_and_columns_of_fit(method, fitted, data, words):
    model = TMvKSCR(2, random_state=0).fit(fitted)
    assert_refused(getattr(model, method), model, data, words)


def test_new_rows_of_a_precomputed_view_need_a_similarity_to_every_training_row():
    model = TMvKSCR(2, kernel=["precomputed", "rbf"], random_state=0).fit(beside(ONES + np.eye(6)))
    assert_refused(model.predict, model, beside(ONES[:, :5]), ["'text'", "5 columns", "6"])


def test_new_rows_of_a_stacked_table_must_have_the_width_of_fit():
    model = TMvKSCR(2, views=[3, 2], random_state=0).fit(STACKED)
    assert_refused(model.predict, model, STACKED[:, :4], ["views=[3, 2]", "4 columns"])


@pytest.mark.parametrize(
    ("columns", "word"), [(list("bacde"), "same order"), (list("abcdz"), "z")], ids=["another order", "another name"]
)
def test_new_rows_of_a_stacked_frame_must_have_the_columns_of_fit(columns, word):
    # The message, on several lines, is that of scikit-learn: its estimator checks require it.
    model = TMvKSCR(2, views=[3, 2], random_state=0).fit(FRAME)
    with pytest.raises(InputError, match=rf"feature names should match(.|\n)*{word}"):
        model.predict(FRAME.set_axis(columns, axis=1))


@pytest.mark.parametrize("n_init", [0, 2.5, "ten", True])
def test_directions_refuses_an_invalid_number_of_initialisations(n_init):
    with pytest.raises(InputError, match=rf"^Directions\.n_init={n_init!r}: expected an integer of at least 1$"):
        Directions(n_init)


@pytest.mark.parametrize("random_state", ["lucky", -1, 2.5])
def test_fit_refuses_an_invalid_random_state(random_state):
    with pytest.raises(InputError, match="random_state"):
        TMvKSCR(2, random_state=random_state).fit(np.eye(4))


def test_a_kernel_compares_rows_of_one_view():
    with pytest.raises(InputError, match="x holds 2 views"):
        RBF()([np.eye(3), np.eye(3)])
    with pytest.raises(InputError, match="x has 3 columns and y has 2"):
        RBF()(np.eye(3), np.eye(2))
