"""Views with categories: encoded at fit, and new samples like the training samples."""

import warnings

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import GridSearchCV, train_test_split

import coview.base.runtime
from coview import (
    RBF,
    Concat,
    CoReg,
    Coview,
    FixedSize,
    FuzzyGraph,
    InputError,
    PerView,
    Preprocessed,
    TMvKSCR,
    Views,
    ViewsReader,
    as_views,
    label_file,
    load,
    read_views,
    save,
    stack_views,
    summarize,
)
from coview.data.view import Categories
from coview.preprocess.encode import Encoding, encoded
from tests import naive

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")

LEVELS = ["low", "middle", "high"]
TRUTH = np.repeat([0, 1, 2], 30)


def cohort(seed=0, n=90):
    """Return a table of numbers, categories, ordered categories and booleans, and a table of numbers."""
    rng = np.random.default_rng(seed)
    mixed = np.where(rng.random(n) < 0.9, TRUTH, rng.integers(0, 3, n))
    clinic = pd.DataFrame(
        {
            "age": 30 + 20 * TRUTH + rng.normal(0, 4, n),
            "colour": pd.Categorical(np.array(["red", "blue", "green"])[mixed]),
            "stage": pd.Categorical(np.array(LEVELS)[mixed], categories=LEVELS, ordered=True),
            "smoker": rng.random(n) < 0.5,
        }
    )
    return clinic, rng.normal(size=(3, 12))[TRUTH] * 2 + rng.normal(size=(n, 12))


def encode(frame, rows=None):
    """Return the encoding of a frame, and the encoded rows."""
    views = as_views({"clinic": frame})
    encoding = Encoding.learn(views, "clinic")
    return encoding, encoding(views if rows is None else as_views({"clinic": rows}), "clinic")


CELLS = st.tuples(
    st.integers(-(10**9), 10**9).map(lambda value: value / 1000),
    st.sampled_from("abcd"),
    st.sampled_from(LEVELS),
    st.booleans(),
    st.sampled_from("xy"),
)


def frame_of(rows):
    number, category, level, flag, other = zip(*rows, strict=True)
    return pd.DataFrame(
        {
            "number": number,
            "category": pd.Categorical(category),
            "level": pd.Categorical(level, categories=LEVELS, ordered=True),
            "flag": flag,
            "other": pd.Categorical(other),
        }
    )


@given(st.lists(CELLS, min_size=2, max_size=12), st.lists(CELLS, min_size=1, max_size=6))
def test_the_encoding_agrees_with_the_reference_implementation(training, rows):
    kinds = ["number", "category", LEVELS, "number", "category"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of unknown categories
        _, found = encode(frame_of(training), frame_of(rows))
    column = np.array([row[0] for row in training])
    # The mean of large numbers is rounded, and a column is constant if it varies by less than that.
    assume(column.std() == 0 or column.std() > 1e-9 * abs(column).max())
    expected = naive.encoded_mixed(rows, kinds, training)
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-7)


@given(st.lists(CELLS, min_size=2, max_size=30))
def test_each_column_has_the_same_mean_squared_distance(training):
    """A categorical column has the weight of one standardised column: 2, or 0 if it is constant."""
    encoding, x = encode(frame_of(training))
    for column in ("category", "other", "flag", "level"):
        places = [j for j, name in enumerate(encoding.names) if name.partition(" = ")[0] == column]
        squares = ((x[:, None, places] - x[None, :, places]) ** 2).sum(axis=2)
        varies = len({row[["number", "category", "level", "flag", "other"].index(column)] for row in training}) > 1
        assert squares.mean() == pytest.approx(2.0 * varies, abs=1e-9)


def test_names_say_column_and_category():
    encoding, _ = encode(cohort()[0])
    assert encoding.names == ("age", "colour = blue", "colour = green", "colour = red", "stage", "smoker")
    assert encoding.categorical == ("colour", "stage")
    assert encoding.in_words == "2 of 4 columns are categories (colour, stage), encoded as 6 columns in total."


def test_units_are_those_of_the_data():
    clinic, _ = cohort()
    encoding, x = encode(clinic)
    found = encoding.in_units(x)
    np.testing.assert_allclose(found[:, 0], clinic["age"])
    np.testing.assert_allclose(found[:, 3], clinic["colour"] == "red", atol=1e-12)
    np.testing.assert_allclose(found[:, 4], clinic["stage"].cat.codes, atol=1e-12)


def test_tables_of_all_libraries_are_encoded_alike():
    clinic, _ = cohort()
    arrow = pa.Table.from_pandas(clinic)
    levels = pl.Series("stage", list(clinic["stage"]), dtype=pl.Enum(LEVELS))
    polars = pl.from_pandas(clinic.assign(stage=0)).with_columns(stage=levels)
    _, expected = encode(clinic)
    for table in (arrow, polars):
        encoding, found = encode(table)
        assert encoding.categories[2].ordered
        assert encoding.categories[2].values == tuple(LEVELS)
        np.testing.assert_array_equal(found, expected)


def test_categories_may_be_numbers_and_intervals():
    numbers = pd.DataFrame({"code": pd.Categorical([3, 1, 3]), "age": pd.cut([1, 5, 9], [0, 4, 10])})
    encoding, x = encode(numbers)
    assert encoding.names == ("code = 1", "code = 3", "age")
    _, again = encode(numbers, pd.DataFrame({"code": [3, 1, 3], "age": numbers["age"]}))  # without their type
    np.testing.assert_array_equal(again, x)


def test_unknown_categories_are_zeros_with_one_warning():
    clinic, image = cohort()
    model = TMvKSCR(3, random_state=0).fit({"clinic": clinic, "image": image})
    new = clinic.iloc[:4].assign(
        colour=pd.Categorical(["pink", "red", "black", "blue"]), stage=pd.Categorical(["worst", *LEVELS])
    )
    with pytest.warns(UserWarning, match="view 'clinic' has categories that no training sample has") as caught:
        model.predict({"clinic": new, "image": image[:4]})
    assert len(caught) == 1
    assert "('colour = black', 'colour = pink', 'stage = worst')" in str(caught[0].message)
    with pytest.warns(UserWarning, match="no training sample"):
        _, x = encode(clinic, new)
    assert not x[[0, 2], 1:4].any()
    assert x[1, 1:4].any()
    assert x[0, 4] == 0


@pytest.mark.parametrize(
    "model",
    [
        TMvKSCR(3, random_state=0),
        TMvKSCR(3, kernel=FuzzyGraph(metric="seuclidean"), random_state=0),
        Preprocessed(TMvKSCR(3, kernel=RBF(), random_state=0), "standard"),
        FixedSize(TMvKSCR(3, random_state=0), n_train=60, select="entropy", random_state=0),
        PerView(TMvKSCR(3, random_state=0)),
        Coview(3, random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
def test_every_model_labels_and_is_saved(model, tmp_path):
    clinic, image = cohort()
    views = {"clinic": clinic, "image": image}
    before = clinic.copy()
    model = clone(model).fit(views)
    pd.testing.assert_frame_equal(clinic, before)
    if type(model) is not PerView:
        assert adjusted_rand_score(TRUTH, model.labels_) > 0.9
    assert model.view_n_features_ == {"clinic": 6, "image": 12}
    assert model.n_features_in_ == 16
    save(model, tmp_path / "model.safetensors")
    loaded = load(tmp_path / "model.safetensors")
    for each in (model, loaded):
        np.testing.assert_array_equal(each.predict(views), model.predict(views))
        one = {"clinic": clinic.iloc[[5]], "image": image[[5]]}
        assert each.predict(one)[0] == model.predict(views)[5]


def test_methods_without_predict_fit_views_with_categories():
    clinic, image = cohort()
    assert adjusted_rand_score(TRUTH, CoReg(3, random_state=0).fit_predict({"clinic": clinic, "image": image})) > 0.9


def test_columns_are_not_standardised_twice():
    clinic, _ = cohort()
    kernels = TMvKSCR(3, kernel=FuzzyGraph(metric="seuclidean"), random_state=0).fit({"clinic": clinic}).kernels_
    assert kernels["clinic"].metric == "euclidean"
    assert TMvKSCR(3, random_state=0).fit({"clinic": clinic}).kernels_["clinic"].metric == "euclidean"
    model = Preprocessed(TMvKSCR(3, kernel=RBF(), random_state=0), "standard").fit({"clinic": clinic})
    _, x = encode(clinic)
    np.testing.assert_array_equal(model.preprocessing_["clinic"](x), x)


def test_one_data_frame_holds_several_views():
    clinic, image = cohort()
    frame = pd.concat([clinic, pd.DataFrame(image).add_prefix("pixel")], axis=1)
    layout = {"clinic": [*clinic], "image": [f"pixel{j}" for j in range(12)]}
    model = TMvKSCR(3, views=layout, random_state=0).fit(frame)
    apart = TMvKSCR(3, random_state=0).fit({"clinic": clinic, "image": image})
    np.testing.assert_array_equal(model.labels_, apart.labels_)
    np.testing.assert_array_equal(model.predict(frame[:7]), model.labels_[:7])
    assert model.n_features_in_ == 16


def test_samples_may_lack_a_view_with_categories():
    clinic, image = cohort()
    clinic.index = [f"s{i}" for i in range(90)]
    views = Views.join({"clinic": clinic.iloc[20:], "image": pd.DataFrame(image, index=clinic.index).iloc[:80]})
    model = TMvKSCR(3, random_state=0).fit(views)
    order = [int(name[1:]) for name in views.index]
    assert adjusted_rand_score(TRUTH[order], model.labels_) > 0.9
    np.testing.assert_array_equal(model.predict(views), model.labels_)
    assert len(model.predict({"image": image[:5]})) == 5


def test_empty_cells_of_categories_are_filled():
    clinic, image = cohort()
    clinic.loc[[3, 40], "colour"] = None
    clinic.loc[7, "age"] = np.nan
    views = {"clinic": clinic, "image": image}
    with pytest.raises(InputError, match=r"view 'clinic' contains NaN in 3 of 90 samples and 2 of 4 columns .*impute"):
        TMvKSCR(3).fit(views)
    for step in ("median", "nearest"):
        model = Preprocessed(TMvKSCR(3, random_state=0), {"clinic": step}).fit(views)
        assert adjusted_rand_score(TRUTH, model.labels_) > 0.9
        np.testing.assert_array_equal(model.predict(views), model.labels_)
    filled = model.model_.seen(model.check(views))
    assert filled.encoded == {"clinic": (1, 3, 1, 1)}
    assert np.isfinite(filled["clinic"]).all()


def test_permuted_rows_have_the_same_clusters():
    clinic, image = cohort()
    order = np.random.default_rng(1).permutation(90)
    model = TMvKSCR(3, random_state=0).fit({"clinic": clinic, "image": image})
    other = TMvKSCR(3, random_state=0).fit({"clinic": clinic.iloc[order].reset_index(drop=True), "image": image[order]})
    assert adjusted_rand_score(model.labels_[order], other.labels_) == 1


def test_a_summary_has_the_units_of_the_data():
    clinic, image = cohort()
    views = {"clinic": clinic, "image": image}
    summary = summarize(TMvKSCR(3, random_state=0).fit(views), views)
    features = {feature.name: feature for cluster in summary.clusters for feature in cluster.features}
    assert 25 < features["age"].inside < 75
    fractions = [feature for name, feature in features.items() if name.startswith("colour = ")]
    assert fractions
    assert all(0 <= feature.inside <= 1 for feature in fractions)
    assert summary.views[0].preprocessing.startswith("encoded categories")
    assert "2 of 4 columns are categories (colour, stage)" in summary.views[0].notes[0]


def test_rows_are_read_in_blocks(tmp_path):
    clinic, image = cohort()
    order = np.random.default_rng(2).permutation(90)  # each block has other categories first
    clinic, image = clinic.iloc[order].reset_index(drop=True), image[order]
    clinic.to_parquet(tmp_path / "clinic.parquet", row_group_size=7, index=False)
    np.save(tmp_path / "image.npy", image)
    reader = ViewsReader(
        {"clinic": tmp_path / "clinic.parquet", "image": tmp_path / "image.npy"}, batch_size=8, ids=False
    )
    model = TMvKSCR(3, random_state=0).fit({"clinic": clinic, "image": image})
    labels = label_file(model, reader, tmp_path / "labels.npy")
    np.testing.assert_array_equal(np.load(labels), model.labels_)
    fixed = FixedSize(TMvKSCR(3, random_state=0), n_train=50, random_state=0).train(reader)
    assert fixed.view_n_features_ == {"clinic": 6, "image": 12}
    assert adjusted_rand_score(TRUTH[order], np.load(label_file(fixed, reader, tmp_path / "fixed.npy"))) > 0.9


def test_ordered_categories_of_blocks_need_a_known_order(tmp_path):
    folder = tmp_path / "clinic.parts"
    folder.mkdir()
    for i, levels in enumerate((["low", "high"], ["low", "middle"])):
        column = pd.Categorical(levels, categories=levels, ordered=True)
        pd.DataFrame({"stage": column, "age": [1.0, 2.0]}).to_parquet(folder / f"{i}.parquet")
    with pytest.raises(
        InputError,
        match=r"ordered categories in the column 'stage' \(low, middle\) that are not a part of those before",
    ):
        list(ViewsReader({"clinic": folder}, ids=False))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda x: x[["colour", "age", "stage", "smoker"]], "has its columns in another order"),
        (lambda x: x.drop(columns="stage"), "lacks the column 'stage'"),
        (lambda x: x.assign(extra=1.0), "has the unknown column 'extra'"),
        (lambda x: x.assign(age=pd.Categorical(["young"] * len(x))), "categories in the column 'age', which had num"),
        (lambda x: x.assign(colour=list(x["colour"])), "strings in the column 'colour', such as .*astype"),
        (lambda x: x.assign(age=pd.Timestamp("2020-01-01")), "dates or times in the column 'age' .*such as days"),
        (lambda x: np.zeros((len(x), 4)), r"fitted on a table with categories \(colour, stage\); give a data frame"),
    ],
)
def test_new_tables_that_do_not_fit_are_refused(change, message):
    clinic, image = cohort()
    model = TMvKSCR(3, random_state=0).fit({"clinic": clinic, "image": image})
    with pytest.raises(InputError, match=f"view 'clinic' .*{message}"):
        model.predict({"clinic": change(clinic), "image": image})


def test_training_tables_that_cannot_be_encoded_are_refused(monkeypatch):
    clinic, image = cohort()
    names = pd.DataFrame({"name": pd.Categorical([f"name {i}" for i in range(90)])})
    with pytest.raises(InputError, match="view 'a' has 90 different categories in the column 'name' of 90 samples"):
        TMvKSCR(3).fit({"a": names, "b": image})
    with pytest.raises(InputError, match="view 'a' has no value in the column 'c'; drop it"):
        Preprocessed(TMvKSCR(3), "median").fit(
            {"a": pd.DataFrame({"c": pd.Categorical([None] * 90), "x": image[:, 0]})}
        )
    twice = pd.DataFrame({"c": pd.Categorical(["r", "s"] * 45), "c = r": np.arange(90.0)})
    with pytest.raises(InputError, match="two columns named 'c = r' after categories are encoded"):
        TMvKSCR(3).fit({"a": twice})
    model = TMvKSCR(3, random_state=0).fit({"a": image})
    with pytest.raises(InputError, match="view 'a' has categories in the column 'c', but TMvKSCR was fitted on num"):
        model.predict({"a": twice})
    with pytest.raises(InputError, match="view 'clinic' has categories in the column 'colour', which a table of num"):
        stack_views({"clinic": clinic})
    monkeypatch.setattr(coview.base.runtime, "available_memory", lambda: 1000)
    with pytest.raises((InputError, MemoryError), match="view 'clinic' with its categories encoded as 6 columns of 90"):
        TMvKSCR(3).fit({"clinic": clinic})


def test_encoded_views_are_not_encoded_again():
    clinic, image = cohort()
    model = TMvKSCR(3, random_state=0).fit({"clinic": clinic, "image": image})
    views = model.check({"clinic": clinic, "image": image})
    assert encoded(views, model.model_.encodings) is views
    for same in (views.take(slice(5)), views.select(["clinic"]), views.rename(["clinic", "other"]), Views(views)):
        assert same.encoded == {"clinic": (1, 3, 1, 1)}
        assert not same.categories
    np.testing.assert_array_equal(model.predict(views), model.labels_)


@pytest.mark.parametrize("names", [[0, 1, 2, 3], [0.5, 1.5, 2.5, 3.5], [("a", 1), ("a", 2), ("b", 1), ("b", 2)]])
def test_names_of_columns_may_be_of_any_type(names):
    clinic, _ = cohort()
    clinic.columns = pd.MultiIndex.from_tuples(names) if isinstance(names[0], tuple) else names
    encoding, _ = encode(clinic)
    assert encoding.categorical == (str(names[1]), str(names[2]))
    with pytest.raises(InputError, match="view 'clinic' has strings in the column"):
        as_views({"clinic": clinic.astype({names[1]: str})})


@pytest.mark.parametrize("kind", ["string", "string[pyarrow]", "datetime64[ns]"])
def test_missing_categories_of_any_type_are_empty_cells(kind):
    cells = pd.Series(["2020-01-01", "2021-01-01", None] * 10, dtype=kind).astype("category")
    with pytest.raises(InputError, match="view 'a' contains NaN in 10 of 30 samples"):
        as_views({"a": pd.DataFrame({"c": cells, "x": np.arange(30.0)})})


def test_clusters_of_categories_and_numbers_are_supported():
    clinic, image = cohort()
    views = {"clinic": clinic, "image": image}
    assert summarize(TMvKSCR(3, random_state=0).fit(views), views).support.level in ("moderate", "strong")


@pytest.mark.parametrize(
    ("training", "new"),
    [([True, False] * 10, [1.0, 0.0]), ([0, 10] * 10, ["0.0", "10.0"]), ([0, 10] * 10, [0.0, 10.0])],
)
def test_categories_may_be_spelt_differently(training, new):
    table = pd.DataFrame({"c": pd.Categorical(training), "x": np.arange(20.0)})
    cells = new if isinstance(new[0], float) else pd.Categorical(new)
    _, expected = encode(table)
    _, found = encode(table, pd.DataFrame({"c": cells, "x": [0.0, 1.0]}))
    np.testing.assert_array_equal(found, expected[:2])


def test_categories_of_numbers_survive_parquet(tmp_path):
    clinic, _ = cohort()
    clinic["code"] = pd.Categorical(TRUTH * 7)
    clinic.to_parquet(tmp_path / "clinic.parquet", index=False, row_group_size=13)
    loaded = read_views({"clinic": tmp_path / "clinic.parquet"}, ids=False).views
    (block,) = ViewsReader({"clinic": tmp_path / "clinic.parquet"}, ids=False)
    for views in (loaded, block):
        assert {*views.categories["clinic"]} == {"colour", "stage", "code"}
        assert views.categories["clinic"]["stage"] == Categories(tuple(LEVELS), ordered=True)
        assert {*views.categories["clinic"]["code"].values} == {"0", "7", "14"}


def test_files_of_polars_with_categories_are_read(tmp_path):
    clinic, _ = cohort()
    pl.from_pandas(clinic).write_ipc(tmp_path / "clinic.arrow")
    loaded = read_views({"clinic": tmp_path / "clinic.arrow"}, ids=False).views
    assert "colour" in loaded.categories["clinic"]


def test_contradictory_orders_are_refused(tmp_path):
    chunks = [pa.DictionaryArray.from_arrays([0, 1], values, ordered=True) for values in (["lo", "hi"], ["hi", "lo"])]
    table = pa.table({"stage": pa.chunked_array(chunks)})
    with pytest.raises(InputError, match=r"view 'a' has categories in contradictory orders \(lo, hi; hi, lo\)"):
        as_views({"a": table})
    folder = tmp_path / "parts"
    folder.mkdir()
    for i, column in enumerate((pd.Categorical(["a", "b"]), pd.Categorical(["a", "b"], ordered=True))):
        pd.DataFrame({"stage": column}).to_parquet(folder / f"{i}.parquet")
    with pytest.raises(InputError, match=r"has ordered categories in the column 'stage', but .* has categories; store"):
        ViewsReader({"a": folder}, ids=False)


def test_ordered_categories_of_arrow_in_pandas_are_ranks():
    kind = pd.ArrowDtype(pa.dictionary(pa.int8(), pa.string(), ordered=True))
    column = pd.Series(pa.DictionaryArray.from_arrays(pa.array([0, 1, 2], pa.int8()), LEVELS, ordered=True), dtype=kind)
    encoding, _ = encode(pd.DataFrame({"stage": column}))
    assert encoding.categories == (Categories(tuple(LEVELS), ordered=True),)


def test_numbers_far_from_the_training_samples_are_refused():
    table = pd.DataFrame({"c": pd.Categorical(["r", "s"] * 5), "x": np.arange(10) * 1e-10})
    with pytest.raises(InputError, match="view 'clinic' has numbers in the column 'x' that are too far from"):
        encode(table, table.assign(x=1e307))


def test_a_view_that_no_sample_has_is_refused_as_such():
    clinic, image = cohort()
    empty = pd.DataFrame({"colour": pd.Categorical([None] * 90)})
    with pytest.raises(InputError, match="view 'clinic' has 0 of 90 samples"):
        TMvKSCR(3).fit({"clinic": empty, "image": image})
    model = TMvKSCR(3, random_state=0).fit({"clinic": clinic, "image": image})
    absent = np.full((90, 4), np.nan)
    np.testing.assert_array_equal(model.predict({"clinic": absent, "image": image}), model.predict({"image": image}))


def test_stacked_views_are_not_standardised_again():
    clinic, _ = cohort()
    views = {"clinic": clinic, "other": clinic[["stage", "age"]]}
    model = Concat(TMvKSCR(3, random_state=0)).fit(views)
    assert model.kernels_["all"].metric == "euclidean"
    np.testing.assert_array_equal(model.predict(views), model.labels_)
    assert len(Concat(KMeans(3, n_init=1)).fit({"clinic": clinic}).labels_) == 90


def test_searches_of_scikit_learn_split_data_frames():
    clinic, _ = cohort()
    train, test = train_test_split(clinic, random_state=0)
    search = GridSearchCV(TMvKSCR(), {"n_clusters": [2, 3]}, scoring=lambda model, x: len(np.unique(model.predict(x))))
    search.fit(train)
    assert search.best_params_ == {"n_clusters": 3}
    assert len(search.predict(test)) == len(test)


def test_arguments_of_read_views_are_checked(tmp_path):
    path = tmp_path / "c.csv"
    path.write_text("code,x\n1,2\n2,3\n1,4\n")
    for categories, message in [
        ({"c": "code"}, r"categories\['c'\]='code': expected a list of columns"),
        ({"c": ["colour"]}, "has no column 'colour', which categories names"),
        (["code"], "expected 'refuse', 'onehot', or a mapping from view name to columns"),
    ]:
        with pytest.raises((InputError, TypeError), match=message):
            read_views({"c": path}, categories=categories)


def test_new_samples_without_the_view_are_summarised():
    clinic, image = cohort()
    model = TMvKSCR(3, random_state=0).fit({"clinic": clinic, "image": image})
    summary = summarize(model, {"image": image})
    assert {view.name: view.n_samples for view in summary.views} == {"clinic": 0, "image": 90}


def test_selected_columns_of_an_encoded_view_keep_their_widths():
    clinic, _ = cohort()
    model = TMvKSCR(3, random_state=0).fit({"clinic": clinic})
    view = model.check({"clinic": clinic}).tables["clinic"]
    assert view.widths == (1, 3, 1, 1)
    assert view.take_columns([0, 1, 3, 5]).widths == (1, 2, 1)
    assert view.take_columns(slice(4, 6)).widths == (1, 1)
