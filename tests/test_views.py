"""Input validation: accepted formats, the resulting views, and that the caller's data are not changed."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from coview import InputError, Views, as_views, stack_views
from coview.data.as_views import holds_several
from coview.errors import InputTypeError

TEXT = np.array([[1.0, 0.0, 2.0], [0.0, 0.0, 3.0], [4.0, 5.0, 0.0], [0.0, 6.0, 7.0]])
IMAGE = np.array([[-1.0, 0.5], [0.0, 1.5], [2.5, 0.0], [3.5, -4.5]])
STACKED = np.hstack([TEXT, IMAGE])
COLUMNS = ("red", "green", "blue", "wide", "tall")

FRAMES = {
    "pandas": lambda table, columns: pd.DataFrame(table, columns=list(columns)),
    "polars": lambda table, columns: pl.DataFrame(table, schema=list(columns), orient="row"),
}
SPARSE = [
    f"{layout}_{kind}" for layout in ("csr", "csc", "coo", "dok", "lil", "bsr", "dia") for kind in ("matrix", "array")
]


def dense(x):
    return x.toarray() if sp.issparse(x) else np.asarray(x)


def with_duplicates():
    """Return the matrix [[3, 0], [0, 4]] in CSR format, with 3 stored as 1 + 2."""
    return sp.csr_array((np.array([1.0, 2.0, 4.0]), np.array([0, 0, 1]), np.array([0, 2, 3])), shape=(2, 2))


def read_only(table):
    copy = table.copy()
    copy.flags.writeable = False
    return copy


# Several views or one table


@pytest.mark.parametrize("container", [list, tuple])
def test_views_of_a_list_are_numbered_in_order(container):
    views = as_views(container([TEXT, IMAGE, TEXT[:, :1]]))
    assert views.names == ("view0", "view1", "view2")
    assert views.n_features == {"view0": 3, "view1": 2, "view2": 1}
    np.testing.assert_array_equal(views["view1"], IMAGE)


def test_a_mapping_keeps_its_names_and_order():
    views = as_views({"text": TEXT, 7: IMAGE})
    assert views.names == ("text", "7")
    np.testing.assert_array_equal(views["7"], IMAGE)


def test_validated_views_are_returned_unchanged():
    views = as_views([TEXT, IMAGE])
    assert as_views(views) is views


@pytest.mark.parametrize(
    "table",
    [
        TEXT,
        TEXT.tolist(),
        tuple(map(tuple, TEXT.tolist())),
        list(TEXT),
        sp.csr_array(TEXT),
        np.ma.array(TEXT),
        *(frame(TEXT, COLUMNS[:3]) for frame in FRAMES.values()),
    ],
    ids=["array", "rows as lists", "rows as tuples", "rows as arrays", "sparse", "nothing masked", *FRAMES],
)
def test_one_table_is_one_view(table):
    assert not holds_several(table)
    views = as_views(table)
    assert views.names == ("view0",)
    np.testing.assert_array_equal(dense(views["view0"]), TEXT)


def test_nested_lists_in_two_dimensions_are_views():
    nested = [TEXT.tolist(), IMAGE.tolist()]
    assert holds_several(nested)
    views = as_views(nested)
    assert views.n_features == {"view0": 3, "view1": 2}
    np.testing.assert_array_equal(views["view1"], IMAGE)


@pytest.mark.parametrize(
    "data",
    [
        [],
        {},
        {"text": TEXT},
        [TEXT],
        (TEXT, IMAGE),
        [sp.coo_array(TEXT)],
        [np.arange(4.0), TEXT],
        as_views(TEXT),
        *([frame(TEXT, COLUMNS[:3])] for frame in FRAMES.values()),
    ],
    ids=[
        "empty list",
        "empty mapping",
        "mapping",
        "list of one",
        "tuple",
        "sparse",
        "one of two is 2-D",
        "Views",
        *FRAMES,
    ],
)
def test_a_mapping_or_a_list_of_tables_holds_several(data):
    assert holds_several(data)


@pytest.mark.parametrize(
    "data",
    [TEXT[0], TEXT[None], [1.0, 2.0], "text", None, 3.0],
    ids=["1-D", "3-D", "numbers", "text", "None", "number"],
)
def test_anything_else_does_not_hold_several(data):
    assert not holds_several(data)


def test_views_of_different_formats_can_be_combined():
    views = as_views({"array": TEXT, "sparse": sp.coo_array(TEXT), "frame": pd.DataFrame(TEXT), "rows": TEXT.tolist()})
    for name in views:
        np.testing.assert_array_equal(dense(views[name]), TEXT)


# One stacked table


@pytest.mark.parametrize("make", [np.array, sp.csr_array, sp.coo_matrix], ids=["array", "csr", "coo"])
@pytest.mark.parametrize(
    ("layout", "expected"),
    [
        ([3, 2], {"view0": [0, 1, 2], "view1": [3, 4]}),
        (np.array([1, 4]), {"view0": [0], "view1": [1, 2, 3, 4]}),
        ({"a": slice(0, 3), "b": slice(3, None)}, {"a": [0, 1, 2], "b": [3, 4]}),
        ({"a": slice(None, None, 2), "b": slice(None, None, -1)}, {"a": [0, 2, 4], "b": [4, 3, 2, 1, 0]}),
        ({"a": [4, 0], "b": (1,)}, {"a": [4, 0], "b": [1]}),
        ({"a": [-1, -5], "b": np.array([-2, 2])}, {"a": [4, 0], "b": [3, 2]}),
        ({"a": [True, False, False, True, False], "b": STACKED[0] > 0}, {"a": [0, 3], "b": [0, 2, 4]}),
        ([slice(0, 2), slice(1, 5)], {"view0": [0, 1], "view1": [1, 2, 3, 4]}),
        ([[1, 3], slice(2, 3)], {"view0": [1, 3], "view1": [2]}),
    ],
    ids=[
        "widths",
        "widths in an array",
        "slices",
        "steps",
        "positions",
        "negative",
        "masks",
        "list of slices",
        "mixed",
    ],
)
def test_a_stacked_table_is_split_by_its_layout(make, layout, expected):
    views = as_views(make(STACKED), views=layout)
    assert views.names == tuple(expected)
    for name, positions in expected.items():
        np.testing.assert_array_equal(dense(views[name]), STACKED[:, positions])


@pytest.mark.parametrize("kind", FRAMES)
@pytest.mark.parametrize(
    ("layout", "expected"),
    [
        ({"colour": ["blue", "red"], "size": "tall"}, {"colour": ("blue", "red"), "size": ("tall",)}),
        ([["green"], ("wide", "tall")], {"view0": ("green",), "view1": ("wide", "tall")}),
        ({"colour": slice(0, 3), "size": [-1]}, {"colour": ("red", "green", "blue"), "size": ("tall",)}),
        ([3, 2], {"view0": ("red", "green", "blue"), "view1": ("wide", "tall")}),
    ],
    ids=["names", "list of names", "positions", "widths"],
)
def test_a_stacked_frame_is_split_by_name_or_position_and_keeps_its_column_names(kind, layout, expected):
    views = as_views(FRAMES[kind](STACKED, COLUMNS), views=layout)
    assert views.columns == expected
    for name, columns in expected.items():
        np.testing.assert_array_equal(views[name], STACKED[:, [COLUMNS.index(c) for c in columns]])


# Tables


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("float64", "float64"),
        ("float32", "float32"),
        ("float16", "float32"),
        (">f4", "float32"),
        ("longdouble", "float64"),
        ("int64", "float64"),
        ("int8", "float64"),
        ("uint16", "float64"),
        ("bool", "float64"),
        ("object", "float64"),
    ],
)
def test_tables_become_float32_or_float64(given, kept):
    table = np.array([[1, 0], [0, 1]], dtype=given)
    x = as_views([table])["view0"]
    assert x.dtype == np.dtype(kept)
    np.testing.assert_array_equal(x, [[1, 0], [0, 1]])


@pytest.mark.parametrize(
    ("dtypes", "expected"),
    [(("f4", "f4"), "f4"), (("f4", "f8"), "f8"), (("f8", "f8"), "f8"), (("f4", "i1"), "f8")],
)
@pytest.mark.parametrize("make", [np.array, sp.csr_array], ids=["array", "csr"])
def test_views_are_float32_only_if_each_view_is(make, dtypes, expected):
    views = as_views([make(TEXT.astype(dtype)) for dtype in dtypes])
    assert views.dtype == np.dtype(expected)


@pytest.mark.parametrize("name", SPARSE)
def test_every_sparse_layout_becomes_a_csr_array(name):
    table = getattr(sp, name)(TEXT)
    assert not holds_several(table)
    for x in (as_views(table)["view0"], as_views([table, IMAGE])["view0"]):
        assert isinstance(x, sp.csr_array)
        assert x.has_canonical_format
        np.testing.assert_array_equal(x.toarray(), TEXT)


@pytest.mark.parametrize(
    ("given", "kept"), [("float32", "float32"), ("float64", "float64"), ("int32", "float64"), ("bool", "float64")]
)
def test_sparse_tables_become_float32_or_float64(given, kept):
    assert as_views([sp.csc_array(TEXT.astype(given))])["view0"].dtype == np.dtype(kept)


def test_entries_stored_twice_are_summed_in_a_copy():
    table = with_duplicates()
    np.testing.assert_array_equal(as_views([table])["view0"].data, [3.0, 4.0])
    np.testing.assert_array_equal(table.data, [1.0, 2.0, 4.0])


@pytest.mark.parametrize("kind", FRAMES)
def test_frames_keep_their_column_names(kind):
    views = as_views({"text": FRAMES[kind](TEXT, COLUMNS[:3]), "image": IMAGE})
    assert views.columns == {"text": ("red", "green", "blue"), "image": None}
    np.testing.assert_array_equal(views["text"], TEXT)


def test_column_names_that_are_numbers_become_strings():
    assert as_views(pd.DataFrame(TEXT)).columns == {"view0": ("0", "1", "2")}


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"count": [1, 2], "seen": [True, False]}),
        pd.DataFrame({"count": pd.array([1, 2], dtype="Int64"), "seen": pd.array([True, False], dtype="boolean")}),
        pl.DataFrame({"count": [1, 2], "seen": [True, False]}),
    ],
    ids=["pandas", "pandas nullable", "polars"],
)
def test_integers_and_booleans_in_frames_become_floats(frame):
    views = as_views([frame])
    assert views.dtype == np.float64
    np.testing.assert_array_equal(views["view0"], [[1.0, 1.0], [2.0, 0.0]])


@pytest.mark.parametrize("kind", FRAMES)
def test_float32_frames_stay_float32(kind):
    assert as_views([FRAMES[kind](TEXT.astype(np.float32), COLUMNS[:3])]).dtype == np.float32


def test_frames_may_have_the_byte_order_of_another_machine():
    x = np.array([[1.5, 2.0], [3.0, 4.0]])
    np.testing.assert_array_equal(as_views([pd.DataFrame(x.astype(">f8"))])["view0"], x)


def test_frames_are_aligned_if_their_row_labels_agree_or_are_row_numbers():
    labels = ["p", "q", "r", "s"]
    labelled, also = pd.DataFrame(TEXT, index=labels), pd.DataFrame(IMAGE, index=labels)
    views = as_views([labelled, also, pd.DataFrame(IMAGE), TEXT])
    assert len(views) == 4
    np.testing.assert_array_equal(views["view1"], IMAGE)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_finite_values_whose_sum_overflows_are_accepted(dtype):
    largest = np.full((3, 2), np.finfo(dtype).max)
    np.testing.assert_array_equal(as_views([largest, sp.csr_array(largest)])["view1"].toarray(), largest)


# Views as a mapping


def test_views_have_sizes_and_a_repr():
    views = as_views({"text": TEXT, "image": sp.csr_array(IMAGE)})
    assert (len(views), views.n_samples) == (2, 4)
    assert views.n_features == {"text": 3, "image": 2}
    assert repr(views) == "Views(4 samples; text: 3, image: 2)"


def test_views_cannot_be_assigned_to():
    views = as_views({"text": TEXT})
    with pytest.raises(TypeError, match="item assignment"):
        views["text"] = IMAGE


def test_an_unknown_view_raises_a_key_error():
    with pytest.raises(KeyError, match="sound"):
        as_views({"text": TEXT})["sound"]


@pytest.mark.parametrize(
    "rows", [slice(1, 3), [2, 0], np.array([3, 3, 1]), np.array([True, False, False, True])], ids=repr
)
def test_take_chooses_the_same_rows_of_every_view(rows):
    views = as_views({"text": pd.DataFrame(TEXT, columns=list("rgb")), "image": sp.csr_array(IMAGE)})
    taken = views.take(rows)
    assert isinstance(taken, Views)
    assert taken.columns == {"text": ("r", "g", "b"), "image": None}
    np.testing.assert_array_equal(taken["text"], TEXT[rows])
    np.testing.assert_array_equal(taken["image"].toarray(), IMAGE[rows])
    assert views.n_samples == 4


# Stacking


@pytest.mark.parametrize(
    ("views", "sparse"),
    [
        ([TEXT, IMAGE], False),
        ({"text": TEXT, "image": IMAGE, "again": TEXT}, False),
        ({"text": sp.csr_array(TEXT), "image": sp.csc_array(IMAGE)}, True),
        ({"text": TEXT, "image": sp.csr_array(IMAGE)}, True),
        ([TEXT.astype(np.float32), IMAGE.astype(np.float32)], False),
        ([pd.DataFrame(TEXT), pl.DataFrame(IMAGE)], False),
        (TEXT, False),
    ],
    ids=["list", "mapping", "sparse", "partly sparse", "single precision", "frames", "one table"],
)
def test_stacking_and_splitting_returns_the_views(views, sparse):
    before = as_views(views)
    stacked, layout = stack_views(views)
    after = as_views(stacked, layout)
    assert sp.issparse(stacked) == sparse
    assert stacked.dtype == before.dtype
    assert after.names == before.names
    for name in before:
        np.testing.assert_array_equal(dense(after[name]), dense(before[name]))


def test_stacking_concatenates_columns():
    stacked, layout = stack_views({"text": TEXT, "image": IMAGE})
    np.testing.assert_array_equal(stacked, STACKED)
    assert layout == {"text": slice(0, 3), "image": slice(3, 5)}


# The caller's data


@pytest.mark.parametrize("use", [as_views, stack_views])
@pytest.mark.parametrize(
    "data",
    [
        [TEXT, IMAGE],
        {"text": TEXT.astype(np.float16), "image": IMAGE.astype(int)},
        [read_only(TEXT), np.asfortranarray(IMAGE), STACKED[:, ::2]],
        [getattr(sp, name)(TEXT) for name in SPARSE],
        [with_duplicates(), sp.coo_array(([1.0, 2.0], ([0, 0], [0, 0])), shape=(2, 2))],
        [frame(TEXT, COLUMNS[:3]) for frame in FRAMES.values()],
        [TEXT.tolist(), IMAGE.tolist()],
        TEXT.tolist(),
    ],
    ids=["arrays", "other dtypes", "other memory", "sparse", "stored twice", "frames", "nested lists", "rows"],
)
def test_the_data_of_the_caller_are_not_changed(use, data):
    before = pickle.dumps(data)
    use(data)
    assert pickle.dumps(data) == before


@pytest.mark.parametrize("layout", [[3, 2], {"text": [0, -3], "image": [True, False, True, False, False]}], ids=repr)
def test_splitting_changes_neither_the_table_nor_the_layout(layout):
    table = read_only(STACKED)
    before = pickle.dumps((table, layout))
    as_views(table, views=layout)
    assert pickle.dumps((table, layout)) == before


def test_views_validate_their_tables():
    for tables, word in (
        ({"a": np.full((5, 2), np.nan)}, "5 of 5 samples have no view, because they are NaN throughout"),
        ({"a": np.array([[1, np.nan], [2, 3]])}, "view 'a' contains NaN"),
        ({"a": np.ones((5, 2)), "b": np.ones((4, 2))}, "view 'b' has 4 samples"),
        ({"a": np.ones(5)}, "view 'a' is 1-D"),
        ({}, "no views were given"),
    ):
        with pytest.raises(InputError, match=word):
            Views(tables)
    views = Views([[[1, 2], [3, 4]], np.eye(2)])
    assert views.names == ("view0", "view1")
    assert views == views
    assert views != Views([np.eye(2)])


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (slice(None), slice(None, None, -1)),
        (slice(0, 20), slice(10, 30)),
    ],
)
def test_pandas_rows_in_another_order_are_refused(first, second):
    a, b = (pd.DataFrame(np.random.default_rng(i).normal(size=(30, 2))) for i in range(2))
    with pytest.raises(InputError, match=r"view 'b' has .* row labels .*reset_index"):
        as_views({"a": a.iloc[first], "b": b.iloc[second]})
    with pytest.raises(InputError, match="another order"):
        as_views({"a": a, "b": b.sample(frac=1, random_state=0)})
    assert as_views({"a": a, "b": b.set_axis([f"s{i}" for i in range(30)])}).n_samples == 30  # nothing to compare


@pytest.mark.parametrize("spelt", ["{}", "{:03}", "P{}", "s{}"])
@pytest.mark.parametrize("shuffled", [False, True])
def test_integer_ids_beside_other_labels_are_refused(spelt, shuffled):
    ids = np.random.default_rng(0).permutation(np.arange(1, 61)) if shuffled else np.arange(1, 61)
    a = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 2)), index=np.arange(1, 61))
    b = a.set_axis([spelt.format(each) for each in ids])
    for views in ({"a": a, "b": b}, {"b": b, "a": a}, {"a": a.iloc[:7], "b": b.iloc[:7]}):
        with pytest.raises(InputError, match="has other row labels than view"):
            as_views(views)
    assert as_views({"a": a.reset_index(drop=True), "b": b}).index.tolist() == b.index.tolist()


@pytest.mark.parametrize("form", [dict, lambda frames: list(frames.values()), Views, as_views])
def test_pandas_rows_in_another_order_are_refused_in_every_form(form):
    labels = [f"s{i}" for i in range(5)]
    frames = {f"view{i}": pd.DataFrame(np.eye(5), index=rows) for i, rows in enumerate((labels, labels[::-1]))}
    with pytest.raises(InputError, match="view 'view1' has the same row labels in another order than view 'view0'; "):
        as_views(form(frames))


def test_views_keep_the_row_labels_of_pandas_tables():
    labels = pd.Index(["x", "y", "z"], name="patient")
    frame, numbered = pd.DataFrame(np.eye(3), index=labels), pd.DataFrame(np.eye(3))
    for data in ({"a": numbered, "b": np.eye(3), "c": frame}, [frame, frame], frame):
        views = as_views(data)
        pd.testing.assert_index_equal(views.index, labels)
        assert views.take([2, 0]).index.tolist() == ["z", "x"]
        assert views.take(slice(1)).select(views.names[:1]).rename(["n"]).index.tolist() == ["x"]
    assert as_views(frame, views=[1, 2]).index is labels
    assert as_views([np.eye(3), pl.DataFrame(np.eye(3))]).index is None


def test_views_have_a_table_for_notebooks():
    frame = pd.DataFrame(TEXT, columns=["<b>r</b>", "g", "b"], index=["s<1>", "s2", "s3", "s4"])
    html = Views({"<i>text</i>": frame, "image": sp.csr_array(IMAGE, dtype=np.float32)})._repr_html_()
    assert "<td>&lt;i&gt;text&lt;/i&gt;</td><td>4</td><td>3</td><td>float64</td><td>dense</td>" in html
    assert "<td>&lt;b&gt;r&lt;/b&gt;, g, b</td>" in html
    assert "<td>image</td><td>4</td><td>2</td><td>float32</td><td>sparse</td><td>–</td>" in html
    assert "<p>Row labels: s&lt;1&gt;, s2, s3, and 1 more</p>" in html
    assert "Row labels" not in Views([TEXT])._repr_html_()


def test_arrow_tables_are_read_by_column():
    pa = pytest.importorskip("pyarrow")
    table = pa.table({"u": [1.0, 2.0], "v": [3, 4]})
    views = as_views({"a": table})
    np.testing.assert_array_equal(views["a"], [[1, 3], [2, 4]])
    assert views.columns["a"] == ("u", "v")
    twice = pa.Table.from_arrays([pa.array([1.0]), pa.array([2.0])], names=["u", "u"])
    with pytest.raises(InputError, match="view 'a' has two columns named 'u'"):
        as_views({"a": twice})


def test_missing_values_and_objects_that_are_not_tables_are_named():
    frame = pd.DataFrame({"u": pd.array([True, None], dtype="boolean"), "v": [1.0, 2.0]})
    with pytest.raises(InputError, match="view 'a' contains NaN in 1 of 2 samples"):
        as_views({"a": frame})
    with pytest.raises(InputError, match="'u' of type List"):
        as_views({"a": pl.DataFrame({"u": [[1.0], [2.0]]})})
    with pytest.raises(InputError, match=r"collect\(\) it first"):
        as_views({"a": pl.LazyFrame({"u": [1.0]})})
    with pytest.raises(InputError, match="view 'a' is a dict, which is not a table"):
        as_views({"a": {"u": [1.0]}})


def test_objects_of_scverse_are_refused_with_the_table_to_give():
    """Data frames keep the names of the cells, so other cells in another modality are noticed."""
    anndata, mudata = pytest.importorskip("anndata"), pytest.importorskip("mudata")
    cells = [f"cell{i}" for i in range(6)]
    x = np.arange(12.0).reshape(6, 2) + 0.5
    rna = anndata.AnnData(pd.DataFrame(x, [*cells[:5], "other"], ["g0", "g1"]))
    adt = anndata.AnnData(pd.DataFrame(x, cells, ["p0", "p1"]))
    with mudata.set_options(pull_on_update=False):
        both = mudata.MuData({"rna": rna, "adt": adt})
    with pytest.raises(InputTypeError, match=r"view 'rna' is an AnnData; .* as in \{'rna': adata.to_df\(\)\}"):
        as_views({"rna": rna, "adt": adt})
    with pytest.raises(InputTypeError, match=r"X is an AnnData; use coview.scverse.cluster, or give its table"):
        as_views(rna)
    with pytest.raises(InputTypeError, match=r"X is a MuData; .* as in \{'rna': mdata\['rna'\].to_df\(\)\}"):
        as_views(both)
    assert as_views({name: both[name].X for name in both.mod}).n_samples == 6  # the trap: other cells, no names
    with pytest.raises(InputError, match="view 'adt' has other row labels than view 'rna'"):
        as_views({name: both[name].to_df() for name in both.mod})


def test_different_numbers_of_samples_name_the_trap_of_modalities():
    with pytest.raises(
        InputError, match=r"modalities of a MuData may have different cells; .* mdata\['rna'\]\[common\]"
    ):
        as_views({"rna": np.ones((3, 2)), "adt": np.ones((4, 2))})


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_all_values_that_are_not_finite_are_counted(make):
    x = np.ones((5, 3))
    x[[1, 1, 4], [0, 2, 2]] = np.nan
    message = r"'a' contains NaN in 2 of 5 samples and 2 of 3 columns \(cells in total: 3; first: row 1, column 0\)"
    with pytest.raises(InputError, match=message):
        as_views({"a": make(x)})


def test_data_frames_of_different_samples_are_joined():
    pd = pytest.importorskip("pandas")
    rna = pd.DataFrame({"g": [1.0, 2.0, 3.0]}, index=["a", "b", "c"])
    protein = pd.DataFrame({"p": [20.0, 40.0], "q": [2.0, 4.0]}, index=["b", "d"])
    outer = Views.join({"rna": rna, "protein": protein})
    assert list(outer.index) == ["a", "b", "c", "d"]
    np.testing.assert_array_equal(outer["rna"][:, 0], [1, 2, 3, np.nan])
    np.testing.assert_array_equal(outer["protein"][:, 1], [np.nan, 2, np.nan, 4])
    np.testing.assert_array_equal(outer.present["protein"], [False, True, False, True])
    assert outer.columns == {"rna": ("g",), "protein": ("p", "q")}
    assert (outer.n_present("rna"), outer.complete, outer.has_all().tolist()) == (3, False, [False, True, False, False])
    inner = Views.join({"rna": rna, "protein": protein}, how="inner")
    assert (list(inner.index), inner.complete, inner["protein"].tolist()) == (["b"], True, [[20.0, 2.0]])
    shuffled = Views.join({"rna": rna, "protein": protein.iloc[::-1]})
    np.testing.assert_array_equal(shuffled["protein"], outer["protein"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda pd, x: x.set_index(pd.Index(["a", "a"])), "view 'b' has the row label 'a' twice"),
        (lambda pd, x: x.set_index(pd.Index(["a", None])), "view 'b' has a row label that is missing"),
        (lambda pd, x: x.to_numpy(), "view 'b' is .*ndarray.*, which has no row labels to join by"),
        (lambda pd, x: x.assign(p=["u", "v"]), "view 'b' has strings in the column 'p', such as 'u'"),
    ],
)
def test_tables_that_cannot_be_joined_are_refused(change, message):
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame({"p": [1.0, 2.0]}, index=["a", "b"])
    with pytest.raises((InputError, TypeError), match=message):
        Views.join({"a": table, "b": change(pd, table)})
    with pytest.raises(InputError, match="how='left': expected 'outer' or 'inner'"):
        Views.join({"a": table}, how="left")
    with pytest.raises(InputError, match="no row label is in all tables"):
        Views.join({"a": table, "b": table.set_index(pd.Index(["c", "d"]))}, how="inner")


# Samples that lack views

MASK = np.array([True, False, True, True])


def test_stacking_keeps_that_samples_lack_views():
    views = Views({"text": TEXT, "image": IMAGE.astype(np.float32)}, present={"text": MASK})
    stacked, layout = stack_views(views)
    after = as_views(stacked, layout)
    np.testing.assert_array_equal(after.present["text"], MASK)
    np.testing.assert_array_equal(after.observed("text"), TEXT[MASK])
    np.testing.assert_array_equal(after["image"], IMAGE)
    assert not np.isnan(views["text"]).any()


@pytest.mark.parametrize(
    ("text", "image", "present"),
    [
        (sp.csr_array(TEXT), IMAGE, {"text": MASK}),
        (np.where(MASK[:, None], TEXT, np.nan), sp.csr_array(IMAGE), {}),
    ],
    ids=["the sparse view", "another view"],
)
def test_sparse_views_are_not_stacked_if_samples_lack_views(text, image, present):
    views = Views({"text": text, "image": image}, present=present)
    with pytest.raises(
        InputError, match=r"samples lack the view 'text', .* sparse view .* give the views as a mapping"
    ):
        stack_views(views)


def test_views_of_views_keep_everything():
    cells = np.where(np.eye(4, 2) == 1, np.nan, IMAGE)
    frame = pd.DataFrame(cells, index=list("pqrs"), columns=["u", "v"])
    before = Views({"text": sp.csr_array(TEXT), "image": frame}, present={"text": MASK}, may_have_empty_cells=bool)
    after = Views(before)
    np.testing.assert_array_equal(after.present["text"], MASK)
    assert (after.empty_cells, after.columns, list(after.index)) == ({"image"}, before.columns, list("pqrs"))
    other = Views(before, present={"text": ~MASK})
    np.testing.assert_array_equal(other.present["text"], ~MASK)
    np.testing.assert_array_equal(before.present["text"], MASK)


def test_a_mask_is_copied():
    mask = MASK.copy()
    views = Views({"text": TEXT, "image": IMAGE}, present={"text": mask})
    mask[:] = True
    np.testing.assert_array_equal(views.present["text"], MASK)


@pytest.mark.parametrize("present", [MASK, [MASK], "text"], ids=["array", "list", "text"])
def test_masks_without_the_names_of_views_are_refused(present):
    with pytest.raises(InputTypeError, match=r"present is .*; give a mapping from view name to boolean array"):
        Views({"text": TEXT, "image": IMAGE}, present=present)


def test_a_sample_without_any_view_is_named_with_its_reason():
    with pytest.raises(InputError, match=r"^1 of 4 samples have no view \(first: row 1\); drop them$"):
        Views({"text": sp.csr_array(TEXT)}, present={"text": MASK})
    with pytest.raises(InputError, match=r"have no view, because they are NaN throughout \(first: row 1\)"):
        Views({"text": np.where(MASK[:, None], TEXT, np.nan)})


def replaced_cells(x, cells):
    found = x.copy()
    for place, value in cells.items():
        found[place] = value
    return found


@pytest.mark.parametrize(
    ("cells", "allowed", "message"),
    [
        (
            {1: np.nan, (2, 0): np.inf},
            False,
            r"contains infinity \(inf\) in 1 of 4 .* row 2, column 0\)",
        ),
        (
            {(0, 0): np.nan, (2, 1): np.inf},
            True,
            r"contains infinity \(inf\) in 1 of 4 .*cells in total: 1; first: row 2",
        ),
        ({(0, 0): np.nan, (2, 1): np.inf}, False, r"contains NaN and infinity \(inf\) in 2 of 4 samples"),
    ],
    ids=["a missing row and inf", "an allowed cell and inf", "NaN and inf"],
)
def test_only_the_values_that_are_refused_are_named(cells, allowed, message):
    with pytest.raises(InputError, match=message) as caught:
        Views({"text": replaced_cells(TEXT, cells), "image": IMAGE}, may_have_empty_cells=lambda view: allowed)
    assert ("impute" in str(caught.value)) == ("NaN" in message)  # no step replaces infinity


def test_ignored_rows_may_have_any_value():
    x = replaced_cells(TEXT, {(1, 0): np.inf, (2, 0): np.nan})
    views = Views({"text": x, "image": IMAGE}, present={"text": MASK}, may_have_empty_cells=lambda view: True)
    assert views.empty_cells == {"text"}


def test_sparse_views_with_nan_are_refused_although_cells_may_be_empty():
    x = sp.csr_array(replaced_cells(TEXT, {(2, 0): np.nan}))
    with pytest.raises(InputError, match=r"view 'text' contains NaN .* give the view as a dense table and impute them"):
        as_views({"text": x, "image": IMAGE}, None, lambda view: True)


def test_joined_views_may_have_empty_cells():
    frame = pd.DataFrame({"u": [1.0, np.nan], "v": [2.0, 3.0]}, index=["a", "b"])
    views = Views.join({"lab": frame, "image": frame.fillna(0).set_index(pd.Index(["b", "c"]))})
    assert views.empty_cells == {"lab"}
    with pytest.raises(InputError, match=r"view 'lab' contains NaN in 1 of 3 samples .*preprocessing step 'median'"):
        as_views(views)


def test_samples_are_joined_by_several_levels_of_labels():
    one = pd.DataFrame({"u": [1.0, 2.0]}, index=pd.MultiIndex.from_tuples([("a", 2), ("a", 1)]))
    other = pd.DataFrame({"v": [3.0, 4.0]}, index=pd.MultiIndex.from_tuples([("b", 1), ("a", 1)]))
    views = Views.join({"one": one, "other": other})
    assert list(views.index) == [("a", 2), ("a", 1), ("b", 1)]
    np.testing.assert_array_equal(views["other"][:, 0], [np.nan, 4, 3])
    assert list(Views.join({"one": one, "other": other}, how="inner").index) == [("a", 1)]
    with pytest.raises(InputError, match="view 'other' has a row label that is missing"):
        Views.join({"one": one, "other": other.set_index(pd.MultiIndex.from_tuples([("b", 1), ("a", None)]))})
    with pytest.raises(
        InputError, match=r"row labels of view 'flat' have 1 level\(s\), and those of view 'one' have 2"
    ):
        Views.join({"one": one, "flat": other.set_index(pd.Index(["a", "b"]))})


def test_a_joined_sample_without_any_view_is_named_by_its_label():
    frame = pd.DataFrame({"u": [1.0, np.nan]}, index=["a", "b"])
    with pytest.raises(
        InputError, match=r"1 of 2 samples have no view, because they are NaN throughout \(first: 'b'\)"
    ):
        Views.join({"one": frame, "other": frame[:1]})


LABELS = st.lists(st.integers(0, 12), min_size=1, max_size=10, unique=True)


@settings(max_examples=60, deadline=None)
@given(first=LABELS, second=LABELS, seed=st.integers(0, 100))
def test_joined_rows_are_those_of_the_reindexed_tables(first, second, seed):
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(seed)
    tables = {
        name: pd.DataFrame(rng.normal(size=(len(labels), 2)), index=labels, columns=["x", "y"])
        for name, labels in (("a", first), ("b", second))
    }
    joined = Views.join(tables)
    assert list(joined.index) == [*first, *(label for label in second if label not in first)]
    for name, table in tables.items():
        np.testing.assert_array_equal(joined[name], table.reindex(joined.index))
        lacking = ~joined.index.isin(table.index)
        np.testing.assert_array_equal(joined.present.get(name, np.ones(len(joined.index), bool)), ~lacking)
    common = [label for label in first if label in second]
    if common:
        assert list(Views.join(tables, how="inner").index) == common
    else:
        with pytest.raises(InputError, match="no row label is in all tables"):
            Views.join(tables, how="inner")


@settings(max_examples=60, deadline=None)
@given(
    first=st.lists(st.integers(0, 6) | st.none(), min_size=1, max_size=6),
    second=st.lists(st.integers(0, 6) | st.none(), min_size=1, max_size=6),
    how=st.sampled_from(["outer", "inner"]),
)
def test_row_labels_that_occur_twice_or_are_missing_are_refused(first, second, how):
    labels = {"a": first, "b": second}
    tables = {name: pd.DataFrame({"x": np.arange(len(each))}, index=each) for name, each in labels.items()}
    bad = [name for name, each in labels.items() if None in each or len(set(each)) < len(each)]
    if bad:
        with pytest.raises(InputError, match=f"^view {bad[0]!r} has (the row label .* twice|a row label .* missing)"):
            Views.join(tables, how=how)
    elif how == "outer" or set(first) & set(second):
        assert set(Views.join(tables, how=how).index) == (
            set(first) | set(second) if how == "outer" else set(first) & set(second)
        )


SCALARS = st.booleans() | st.integers(-1, 2) | st.floats() | st.none() | st.text(max_size=3)


@settings(max_examples=150, deadline=None)
@given(mask=SCALARS | st.lists(SCALARS, max_size=6) | st.lists(st.lists(st.booleans(), max_size=4), max_size=4))
def test_any_mask_of_a_view_is_used_or_refused_in_words(mask):
    if isinstance(mask, list) and len(mask) == 4 and all(isinstance(each, bool) for each in mask):
        views = Views({"text": TEXT, "image": IMAGE}, present={"text": mask})
        np.testing.assert_array_equal(views.present.get("text", np.ones(4, bool)), mask)
        return
    with pytest.raises(InputError, match=r"^present\['text'\] .*; give one boolean for each of the 4 samples$"):
        Views({"text": TEXT, "image": IMAGE}, present={"text": mask})


@settings(max_examples=100, deadline=None)
@given(lacks=st.lists(st.tuples(st.booleans(), st.booleans()), min_size=4, max_size=4))
def test_the_first_sample_without_any_view_is_named(lacks):
    tables = {
        name: np.where(np.array(lacks)[:, [v]], np.nan, table.astype(float))
        for v, (name, table) in enumerate({"text": TEXT, "image": IMAGE}.items())
    }
    without = [i for i, each in enumerate(lacks) if all(each)]
    if without:
        message = f"^{len(without)} of 4 samples have no view.*first: row {without[0]}"
        with pytest.raises(InputError, match=message):
            Views(tables)
    else:
        views = Views(tables)
        for v, name in enumerate(tables):
            np.testing.assert_array_equal(views.present.get(name, np.ones(4, bool)), ~np.array(lacks)[:, v])
