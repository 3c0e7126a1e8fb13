"""Tables with samples in columns: read on request, and recognised if only the other orientation fits."""

import numpy as np
import pytest
import scipy.sparse as sp

from coview import InputError
from coview.io import read_views
from tests.bad_files import WHOLE, N, annotated, hdf5
from tests.cli.running import refused

IDS = tuple(f"s{i}" for i in range(N))


def genes(folder, corner="gene", samples=IDS, name="genes.csv"):
    """Write a table of two genes by samples."""
    rows = [[corner, *samples], *([f"g{j}", *map(repr, x)] for j, x in enumerate(WHOLE.T.tolist()))]
    (folder / name).write_text("\n".join(",".join(row) for row in rows) + "\n")
    return folder / name


@pytest.mark.parametrize("corner", ["", "gene", "sample"])
@pytest.mark.parametrize("ids", [None, "sample"])
def test_names_of_rows_and_columns_swap(tmp_path, corner, ids):
    loaded = read_views({"a": genes(tmp_path, corner)}, ids=ids, transpose=["a"])
    np.testing.assert_array_equal(loaded.views["a"], WHOLE)
    assert (loaded.ids, loaded.views.columns["a"], loaded.notes) == (IDS, ("g0", "g1"), ())


def test_transposed_views_are_aligned_by_ids(tmp_path):
    (tmp_path / "x.csv").write_text("sample,x\n" + "".join(f"{name},{i}\n" for i, name in enumerate(IDS[::-1])))
    sources = {"a": tmp_path / "x.csv", "b": genes(tmp_path)}
    loaded = read_views(sources, ids="sample", transpose=("b",))
    np.testing.assert_array_equal(loaded.views["b"], WHOLE[::-1])
    for order in (sources, dict(reversed(sources.items()))):
        with pytest.raises(InputError, match=r"view 'b' \(.*\) has the ids of view 'a' .* transpose=\['b'\]"):
            read_views(order, ids="sample")


def test_a_transposed_table_is_recognised_if_its_features_have_the_name_of_the_ids(tmp_path):
    (tmp_path / "x.csv").write_text("sample,x\n" + "".join(f"{name},{i}\n" for i, name in enumerate(IDS)))
    sources = {"a": tmp_path / "x.csv", "b": genes(tmp_path, corner="sample")}
    for align in ("strict", "inner", "outer"):
        with pytest.raises(InputError, match=r"view 'b' \(.*\) has the ids of view 'a' .* transpose=\['b'\]"):
            read_views(sources, ids="sample", align=align)


def test_a_table_without_the_ids_may_be_transposed(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    message = refused(capsys, "fit", f"--view=a={genes(tmp_path)}", "--ids=sample", "-k2", "-o", "run")
    assert "has no column 'sample' of ids" in message
    assert message.endswith("; if its columns are samples, transpose it (--transpose VIEW)\n")


def test_row_names_that_are_column_names_of_another_view_are_recognised(tmp_path):
    (tmp_path / "x.csv").write_text(",x\n" + "".join(f"{name},{i}\n" for i, name in enumerate(IDS)))
    with pytest.raises(InputError, match=r"view 'b' \(.*\) has the ids of view 'a' .* transpose=\['b'\]"):
        read_views({"a": tmp_path / "x.csv", "b": genes(tmp_path, corner="")})


def test_sparse_and_annotated_tables_are_transposed(tmp_path):
    sp.save_npz(tmp_path / "x.npz", sp.csr_array(WHOLE.T))
    found = read_views({"a": tmp_path / "x.npz"}, transpose=["a"]).views["a"]
    assert isinstance(found, sp.csr_array)
    np.testing.assert_array_equal(found.toarray(), WHOLE)
    pytest.importorskip("h5py")
    loaded = read_views({"a": hdf5(lambda file: annotated(file, WHOLE))(tmp_path)}, transpose=["a"])
    assert (loaded.ids, loaded.views.columns["a"]) == (("s0", "s1"), IDS)


def test_new_samples_of_a_model_are_recognised_as_transposed(tmp_path):
    path = genes(tmp_path)
    for columns in (["g1", "g0"], ["g0"]):
        with pytest.raises(
            InputError, match=rf"2 rows that may be the {len(columns)} columns of the model.*transpose=\['a'\]"
        ):
            read_views({"a": path}, columns={"a": columns})
    loaded = read_views({"a": path}, columns={"a": ["g1", "g0"]}, transpose=["a"])
    np.testing.assert_array_equal(loaded.views["a"], WHOLE[:, ::-1])
    np.save(tmp_path / "x.npy", WHOLE.T)
    with pytest.raises(InputError, match="2 rows that may be the 2 columns of the model"):
        read_views({"a": tmp_path / "x.npy"}, columns={"a": ["g0", "g1"]})


def test_the_view_that_does_not_fit_is_named_whatever_the_order(tmp_path):
    for name, values in {"a": WHOLE, "b": np.hstack([WHOLE, WHOLE]), "c": WHOLE.T}.items():
        np.save(tmp_path / f"{name}.npy", values)
    for order in ("abc", "cab", "bc", "cb"):
        with pytest.raises(InputError, match=r"view 'c' \(.*c.npy\) has 2 samples but view '[ab]' .* has 12.*\['c'\]"):
            read_views({name: tmp_path / f"{name}.npy" for name in order})
    loaded = read_views({name: tmp_path / f"{name}.npy" for name in "cab"}, transpose=["c"])
    assert loaded.views.n_features == {"c": 2, "a": 2, "b": 4}


def test_a_view_that_should_not_be_transposed_is_named(tmp_path):
    np.save(tmp_path / "a.npy", WHOLE)
    with pytest.raises(InputError, match=r"view 'b' .*; do not transpose it: leave out transpose=\['b'\]"):
        read_views({"a": tmp_path / "a.npy", "b": tmp_path / "a.npy"}, transpose=["b"])


def test_a_gram_matrix_with_ids_in_rows_and_columns_is_not_transposed(tmp_path):
    rows = [["", *IDS], *([name, *["1"] * i, *["2"] * (N - i)] for i, name in enumerate(IDS))]
    (tmp_path / "a.csv").write_text("\n".join(",".join(row) for row in rows) + "\n")
    loaded = read_views({"a": tmp_path / "a.csv", "b": tmp_path / "a.csv"}, ids="sample")
    assert loaded.views.n_samples == N


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("gene,kind,s,t\ng,a,1,2\nh,b,3,4\n", "the 2 columns 'gene', 'kind' of strings; a table to transpose has at"),
        (",kind,s\ng,a,1\nh,b,3\n", "the column 'kind' of strings"),
        ("gene,s,t\ng,1,2\ng,3,4\n", r"two rows \(features\) named 'g'; rename one"),
        ("gene,s,t\ng,1,2\n,3,4\n", "no name of a feature in row 1, column 'gene'"),
        (f"gene,s,t\ng,1,2\nh,3,{10**20}\n", "the column 't' of integers beyond"),
    ],
)
def test_tables_that_cannot_be_transposed_are_refused(tmp_path, content, message):
    (tmp_path / "x.csv").write_text(content)
    with pytest.raises(InputError, match=rf"view 'a' \(.*x.csv\) has {message}"):
        read_views({"a": tmp_path / "x.csv"}, transpose=["a"])


def test_wrong_names_of_views_to_transpose_are_explained(tmp_path):
    path = genes(tmp_path)
    with pytest.raises(InputError, match=r"transpose='a': expected a list of views, such as \['a'\]"):
        read_views({"a": path}, transpose="a")
    with pytest.raises(InputError, match="transpose names the view 'b', which has no file"):
        read_views({"a": path}, transpose=["b"])
