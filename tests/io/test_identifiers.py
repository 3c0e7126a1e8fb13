"""Columns that look like ids of the samples, and known classes paired by names."""

import numpy as np
import pytest

from coview import InputError
from coview.io import ViewsReader, read_labels, read_views
from coview.io.identifiers import names_ids

N = 40
RNG = np.random.default_rng(0)
BY_ORDER = "the samples of all views are paired by row order"


def write_csv(path, **columns):
    rows = zip(*columns.values(), strict=True)
    path.write_text("\n".join([",".join(columns), *(",".join(map(str, row)) for row in rows)]) + "\n")
    return path


def numbers():
    return RNG.normal(size=N).round(6)


def shuffled(first=1):
    return RNG.permutation(np.arange(first, first + N))


@pytest.mark.parametrize(
    "name",
    [
        "id",
        "ID",
        "patient_id",
        "PatientID",
        "patientid",
        "SampleID",
        "sampleId",
        "cell.barcode",
        "cell",
        "Patient No",
        "Unnamed: 0",
        "",
        "row",
        "index",
        "subject number",
        "IDs",
        "ids_of_cells",
    ],
)
def test_names_of_ids(name):
    assert names_ids(name)


@pytest.mark.parametrize(
    "name",
    [
        "age",
        "cell_count",
        "cells",
        "index_of_refraction",
        "body_mass_index",
        "sample_weight",
        "sample_1",
        "ID1",
        "Id3",
        "valid",
        "width",
        "acid",
        "idéal",
        "x",
        "case_rate",
        "number",
    ],
)
def test_names_of_features(name):
    assert not names_ids(name)


def test_numeric_ids_in_several_files_are_refused(tmp_path):
    ids = shuffled()
    order = RNG.permutation(N)
    sources = {
        "a": write_csv(tmp_path / "a.csv", patient_id=ids, x=numbers()),
        "b": write_csv(tmp_path / "b.csv", y=ids[order] * 10.5, patient_id=ids[order]),
    }
    with pytest.raises(InputError) as refusal:
        read_views(sources)
    assert str(refusal.value) == (
        f"view 'a' ({sources['a']}) has the column 'patient_id', which looks like ids of the samples (all its values "
        "are different); align the samples by it (ids='patient_id'), or pair them by row order and use it as any other "
        "column (ids=False)"
    )
    loaded = read_views(sources, ids="patient_id")
    assert (loaded.views.n_features, loaded.notes) == ({"a": 1, "b": 1}, ())
    np.testing.assert_array_equal(loaded.views["b"][:, 0], 10.5 * ids)
    loaded = read_views(sources, ids=False)
    assert (loaded.views.n_features, loaded.ids, loaded.notes) == ({"a": 2, "b": 2}, None, (BY_ORDER,))


def test_columns_that_look_like_further_ids_are_noted(tmp_path):
    """The row numbers of pandas, and the number of the patient beside that of the sample."""
    names = [f"s{i}" for i in range(N)]
    rows = write_csv(tmp_path / "a.csv", **{"Unnamed: 0": np.arange(N), "sample": names, "x": numbers()})
    patients = write_csv(tmp_path / "b.csv", sample=names, patient=10 * shuffled(), y=numbers())
    loaded = read_views({"a": rows, "b": patients}, ids="sample")
    assert loaded.views.n_features == {"a": 2, "b": 2}
    like_ids = "which looks like ids of the samples"
    assert loaded.notes == (
        f"view 'a' ({rows}) has the column 'Unnamed: 0', {like_ids} (it numbers the rows); drop it (drop=… of "
        "read_views), unless it is a feature",
        f"view 'b' ({patients}) has the column 'patient', {like_ids} (all its values are different); drop it (drop=… "
        "of read_views), unless it is a feature",
    )
    again = read_views({"a": rows}, ids="sample", columns={"a": ["Unnamed: 0", "x"]})
    assert again.notes == ()  # the model was trained on the column


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("in_order", [True, False])
def test_a_column_that_numbers_the_rows_is_refused_whatever_its_name(tmp_path, first, in_order):
    values = np.arange(first, first + N) if in_order else shuffled(first)
    path = write_csv(tmp_path / "a.csv", n=values, x=numbers(), y=numbers())
    with pytest.raises(
        InputError, match=r"'n', .* \(it numbers the rows\); use it as the ids \(ids='n'\), or use it as any "
    ):
        read_views({"a": path})
    assert read_views({"a": path}, ids=False).views.n_features == {"a": 3}
    assert read_views({"a": path}, ids="n").views.n_features == {"a": 2}


def test_a_key_that_several_files_share_is_refused_whatever_its_name(tmp_path):
    keys = RNG.choice(10_000, size=N, replace=False)
    sources = {
        "a": write_csv(tmp_path / "a.csv", mrn=keys, x=numbers()),
        "b": write_csv(tmp_path / "b.csv", mrn=keys[::-1], y=numbers()),
    }
    with pytest.raises(InputError, match=r"'mrn', .* \(another view has most of its values\)"):
        read_views(sources)


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("ending", [".csv", ".npy"])
def test_a_column_without_a_name_that_numbers_the_rows_is_refused(tmp_path, ending, first):
    table = np.column_stack([shuffled(first), numbers(), numbers()])
    path = tmp_path / f"a{ending}"
    np.save(path, table) if ending == ".npy" else np.savetxt(path, table, delimiter=",", fmt="%.9g")
    with pytest.raises(InputError) as refusal:
        read_views({"a": path})
    assert str(refusal.value) == (
        f"view 'a' ({path}) has the column '0', which looks like ids of the samples (it numbers the rows); drop it, "
        "store the table with column names and use it as the ids (ids=…), or use it as any other column (ids=False)"
    )
    assert read_views({"a": path}, ids=False).views.n_features == {"a": 3}
    for trained in (None, ["n", "x", "y"]):  # the model has the column as a feature
        loaded = read_views({"a": path, "b": path}, columns={"a": trained, "b": trained})
        assert loaded.views.n_features == {"a": 3, "b": 3}


def test_features_without_names_are_not_taken_for_ids(tmp_path):
    ranks = np.column_stack([shuffled(), shuffled()])
    arrays = {"ranked": ranks, "one": ranks[:, :1], "few": np.column_stack([np.arange(9), np.ones(9)])}
    for name, array in arrays.items():
        np.save(tmp_path / f"{name}.npy", array)
        assert read_views({name: tmp_path / f"{name}.npy"}).views.n_samples == len(array)


def test_keys_are_shared_whatever_the_case_of_their_name(tmp_path):
    keys = RNG.choice(10_000, size=N, replace=False)
    sources = {
        "a": write_csv(tmp_path / "a.csv", mrn=keys, x=numbers()),
        "b": write_csv(tmp_path / "b.csv", MRN=keys[::-1], y=numbers()),
    }
    with pytest.raises(InputError, match=r"'mrn', .*; rename 'MRN' in the other views and align .* \(ids='mrn'\)"):
        read_views(sources)


@pytest.mark.parametrize(("common", "refused"), [(N - 7, True), (N // 2 + 1, True), (N // 2, False)])
def test_keys_are_shared_if_more_than_half_are_common(tmp_path, common, refused):
    keys = RNG.choice(10_000, size=2 * N, replace=False)
    sources = {
        "a": write_csv(tmp_path / "a.csv", mrn=keys[:N], x=numbers()),
        "b": write_csv(tmp_path / "b.csv", mrn=keys[N - common : 2 * N - common], y=numbers()),
    }
    if refused:
        with pytest.raises(InputError, match=r"'mrn', .* \(another view has most of its values\)"):
            read_views(sources)
    else:
        assert read_views(sources).views.n_features == {"a": 2, "b": 2}


def test_two_shared_keys_are_refused_as_one_is(tmp_path):
    keys = {name: RNG.choice(10_000, size=N, replace=False) for name in ("mrn", "visit")}
    sources = {
        "a": write_csv(tmp_path / "a.csv", **keys, x=numbers()),
        "b": write_csv(tmp_path / "b.csv", y=numbers(), **{name: key[::-1] for name, key in keys.items()}),
    }
    with pytest.raises(InputError, match=r"view 'a' .* 'mrn', .* \(ids='mrn'\)"):
        read_views(sources)


def test_ranks_that_several_files_have_are_not_taken_for_ids(tmp_path):
    """Ranks of the same features in two views, alone, beside another feature, and of some of the samples."""
    for extra in ({}, {"x": numbers()}):
        sources = {
            name: write_csv(tmp_path / f"{name}.csv", g=10 * shuffled(), h=10 * shuffled(), **extra) for name in "ab"
        }
        assert read_views(sources).views.n_samples == N
    some = {name: RNG.permutation(50)[:N] for name in "ghij"}
    sources = {
        "a": write_csv(tmp_path / "a.csv", **some),
        "b": write_csv(tmp_path / "b.csv", **{name: 49 - ranks for name, ranks in some.items()}),
    }
    assert read_views(sources).views.n_samples == N


def test_features_are_not_taken_for_ids(tmp_path):
    """Counts and ranks, also with names that have words of ids, and a view of one feature."""
    counts = RNG.integers(0, 30, size=N)
    rest = {"x": numbers(), "cell_count": RNG.choice(10_000, size=N, replace=False)}
    index = {
        "index_of_refraction": 1 + RNG.random(N),
        "sample_rank": np.minimum(np.arange(N), N - 2),
        "ID1": shuffled(7),
    }
    sources = {
        "a": write_csv(tmp_path / "a.csv", patient_id=counts, age=counts, **rest, **index),
        "ranked": write_csv(tmp_path / "ranked.csv", u=shuffled(), v=shuffled(), w=shuffled()),
        "one": write_csv(tmp_path / "one.csv", t=np.arange(N)),
        "years": write_csv(tmp_path / "years.csv", year=np.arange(1990, 1990 + N), z=numbers()),
    }
    assert read_views(sources).views.n_features == {"a": 7, "ranked": 3, "one": 1, "years": 2}


def test_few_rows_do_not_number_themselves(tmp_path):
    assert read_views({"a": write_csv(tmp_path / "a.csv", x=[1, 2, 3], y=[0, 5, 5])}).views.n_features == {"a": 2}


def test_ids_of_new_samples_are_refused_unless_the_model_was_trained_on_them(tmp_path):
    ids = shuffled()
    sources = {
        "a": write_csv(tmp_path / "a.csv", id=ids, x=numbers()),
        "b": write_csv(tmp_path / "b.csv", id=ids[::-1], y=numbers()),
    }
    with pytest.raises(InputError, match="looks like ids"):
        read_views(sources, columns={"a": ["x"], "b": ["y"]})
    loaded = read_views(sources, columns={"a": ["id", "x"], "b": ["id", "y"]})
    assert loaded.views.n_features == {"a": 2, "b": 2}
    alone = read_views({"a": sources["a"]}, columns={"a": ["x"]})  # nothing to pair, and the column is dropped
    assert alone.views.n_features == {"a": 1}


def test_strings_that_look_like_ids_are_refused_if_strings_are_accepted(tmp_path):
    names = [f"p{i}" for i in range(8)]
    sources = {
        "a": write_csv(tmp_path / "a.csv", patient=names, x=numbers()[:8]),
        "b": write_csv(tmp_path / "b.csv", patient=names[::-1], y=numbers()[:8]),
    }
    for options in ({"categories": "onehot"}, {"columns": {"a": ["x"], "b": ["y"]}}):
        with pytest.raises(InputError, match=r"'patient', which looks like ids .* \(ids='patient'\)"):
            read_views(sources, **options)
    with pytest.raises(InputError, match=r"has strings in the column 'patient' .* use it as the ids"):
        read_views(sources)


def test_a_wrong_column_of_ids_suggests_one_that_names_ids(tmp_path):
    columns = {f"f{j}": numbers() for j in range(6)}
    path = write_csv(tmp_path / "a.csv", **columns, patient_id=shuffled())
    with pytest.raises(InputError, match=r"no column 'name' of ids; did you mean 'patient_id'\?"):
        read_views({"a": path}, ids="name")


@pytest.mark.parametrize("ids", [True, 3, ""])
def test_ids_are_the_name_of_a_column_or_false(tmp_path, ids):
    path = write_csv(tmp_path / "a.csv", x=numbers())
    for read in (read_views, ViewsReader):
        with pytest.raises(InputError, match="expected the name of a column, or ids=False"):
            read({"a": path}, ids=ids)
    with pytest.raises(InputError, match="expected the name of a column, or ids=False"):
        read_labels(path, ids=ids)


# Streams


def write_parquet(path, index=None, **columns):
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow", reason="tables need pyarrow: pip install 'coview[io]'")
    pd.DataFrame(columns, index=index).to_parquet(path)
    return path


def test_streams_refuse_columns_that_look_like_ids(tmp_path):
    ids = shuffled()
    sources = {
        "a": write_parquet(tmp_path / "a.parquet", patient_id=ids, x=numbers()),
        "b": write_parquet(tmp_path / "b.parquet", patient_id=ids, y=numbers()),
    }
    with pytest.raises(InputError, match=r"view 'a' .*'patient_id', which looks like ids .* \(ids=False\)"):
        ViewsReader(sources)
    reader = ViewsReader(sources, ids=False)
    assert (reader.n_features, reader.notes) == ({"a": 2, "b": 2}, (BY_ORDER,))
    reader = ViewsReader(sources, ids="patient_id")
    assert (reader.n_features, reader.notes) == ({"a": 1, "b": 1}, ())


def test_streams_note_columns_that_look_like_further_ids(tmp_path):
    columns = {"Unnamed: 0": np.arange(N), "sample": [f"s{i}" for i in range(N)], "x": numbers()}
    reader = ViewsReader({"a": write_parquet(tmp_path / "a.parquet", **columns)}, ids="sample")
    (note,) = reader.notes
    assert "has the column 'Unnamed: 0', which looks like ids of the samples (it numbers the rows); drop it" in note


def test_streams_compare_the_indexes_of_data_frames(tmp_path):
    names = [f"s{i}" for i in range(N)]
    a = write_parquet(tmp_path / "a.parquet", index=names, x=numbers())
    same = ViewsReader({"a": a, "b": write_parquet(tmp_path / "b.parquet", index=names, y=numbers())})
    assert (same.notes, next(iter(same)).n_samples) == ((), N)
    b = write_parquet(tmp_path / "b.parquet", index=names[::-1], y=numbers())
    with pytest.raises(InputError, match=r"view 'b' .* has the row name 's39' in row 0, but view 'a' .* has 's0'"):
        next(iter(ViewsReader({"a": a, "b": b})))
    assert ViewsReader({"a": a, "b": b}, ids=False).notes == (BY_ORDER,)
    numbered = write_parquet(tmp_path / "c.parquet", index=shuffled(), y=numbers())
    assert ViewsReader({"a": a, "c": numbered}).notes == (BY_ORDER,)  # strings and integers cannot be compared


# Known classes


@pytest.mark.parametrize("ids", [None, "patient_id"])
def test_classes_are_paired_by_the_column_that_has_the_ids(tmp_path, ids):
    path = write_csv(tmp_path / "truth.csv", site=[1, 1, 2], patient=["u", "s", "t"], subtype=["U", "S", "T"])
    assert read_labels(path, column="subtype", ids=ids, order=["s", "t", "u"]) == ("S", "T", "U")
    two = write_csv(tmp_path / "two.csv", patient=["u", "s", "t"], subtype=["U", "S", "T"])
    assert read_labels(two, ids=ids, order=["s", "t", "u"]) == ("S", "T", "U")
    with pytest.raises(InputError, match="no class for the sample 'v'"):
        read_labels(two, ids=ids, order=["s", "t", "v"])


def test_classes_are_paired_by_row_names(tmp_path):
    path = write_csv(tmp_path / "truth.csv", **{"": ["u", "s", "t"], "subtype": ["U", "S", "T"]})
    assert read_labels(path, order=["s", "t", "u"]) == ("S", "T", "U")
    assert read_labels(path, ids=False, order=["s", "t", "u"]) == ("U", "S", "T")


def test_row_numbers_are_not_names_of_classes(tmp_path):
    """Patients are numbered from 1 and rows from 0."""
    path = write_csv(tmp_path / "truth.csv", **{"": [0, 1, 2], "patient": [3, 1, 2], "subtype": ["C", "A", "B"]})
    assert read_labels(path, column="subtype", order=["1", "2", "3"]) == ("A", "B", "C")


def test_columns_that_repeat_ids_by_chance_are_not_the_ids_of_classes(tmp_path):
    path = write_csv(tmp_path / "truth.csv", grade=[1, 2, 2, 3], subtype=list("abcd"))
    with pytest.warns(UserWarning, match="paired by row order"):
        assert read_labels(path, column="subtype", order=["1", "2", "3", "4"]) == ("a", "b", "c", "d")
    path = write_csv(tmp_path / "truth.csv", patient=[1, 2, 2, 3], subtype=list("abcd"))
    with pytest.raises(InputError, match="has the id '2' in rows 1 and 2"):
        read_labels(path, column="subtype", order=["1", "2", "3", "4"])


@pytest.mark.parametrize(
    ("ids", "order", "shown"),
    [
        (["s0", "t1", "t2", "s3", "t4"], ["s0", "s1", "s2", "s3", "s4"], "'t1', .*, such as 's1'"),
        (["S0", "S1", "S2"], ["s0", "s1", "s2"], "'S0', .*, such as 's0'"),
        (["01", "02", "03"], ["1", "2", "3"], "'01', .*, such as '1'"),
        (["1", "2", "3"], ["01", "02", "03"], "'1', .*, such as '01'"),
    ],
)
def test_ids_of_classes_that_are_not_those_of_the_samples_are_refused(tmp_path, ids, order, shown):
    classes = [f"c{i}" for i in range(len(ids))]
    path = write_csv(tmp_path / "truth.csv", patient_id=ids, subtype=classes)
    for column in ("subtype", None):
        with pytest.raises(InputError, match=rf"ids \(column 'patient_id'\) such as {shown}; .* \(ids=False\)"):
            read_labels(path, column=column, order=order)
    assert read_labels(path, column="subtype", ids=False, order=order) == tuple(classes)


def test_row_names_of_classes_that_are_not_those_of_the_samples_are_refused(tmp_path):
    path = write_csv(tmp_path / "truth.csv", **{"": ["S0", "S1"], "subtype": ["U", "S"]})
    with pytest.raises(InputError, match=r"ids \(row names\) such as 'S0', .*, such as 's0'; "):
        read_labels(path, order=["s0", "s1"])
    assert read_labels(path) == ("U", "S")  # there is nothing to pair
