"""Files: every format written and read, samples aligned, columns selected, and error messages of one line."""

import gzip
import io
import json
import os
import re
import struct
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

import coview.base.runtime
from coview import InputError
from coview.data.view import Categories
from coview.io import ViewsReader, cells, describe_file, read_labels, read_views, write_labels
from tests.bad_files import BAD_FILES, WHOLE, N, annotated, cut, hdf5, lines, mat, npz

X = np.random.default_rng(0).normal(size=(N, 3)).round(6) * np.array([1, 1e-9, 1e12])
SPARSE = sp.random_array((N, 5), density=0.4, rng=np.random.default_rng(0), format="csr")
NAMES = ("a", "b c", "größe")
IDS = tuple(f"s{i}" for i in range(N))
BY_ORDER = "the samples of all views are paired by row order"


def needs_pyarrow():
    return pytest.importorskip("pyarrow", reason="tables need pyarrow: pip install 'coview[io]'")


def needs_h5py():
    return pytest.importorskip("h5py", reason="HDF5 needs h5py: pip install 'coview[scverse]'")


@pytest.mark.parametrize("name", BAD_FILES)
def test_bad_files_raise_one_line_that_names_file_and_view(tmp_path, name):
    case = BAD_FILES[name]
    if case.needs is not None:
        pytest.importorskip(case.needs)
    sources = case.sources(tmp_path)
    before = sorted(tmp_path.iterdir())
    with pytest.raises(InputError) as refusal:
        read_views(sources, **case.options)
    message = str(refusal.value)
    path = sources["bad"].partition("::")[0]
    for words in (f"view 'bad' ({path})", *case.words):
        assert words in message
    assert "\n" not in message
    assert sorted(tmp_path.iterdir()) == before


def test_there_are_at_least_forty_bad_files_and_the_good_ones_are_read(tmp_path):
    assert len(BAD_FILES) >= 40
    for name in ("missing value", "missing file"):
        case = BAD_FILES[name]
        loaded = read_views({"good": case.sources(tmp_path)["good"]}, **case.options)
        assert loaded.views.n_samples == N


CALL = b"{'descr': '<f8', 'fortran_order': False, 'shape': print()}".ljust(117) + b"\n"


@pytest.mark.parametrize("read", [lambda path: read_views({"a": path}), lambda path: ViewsReader({"a": path})])
@pytest.mark.parametrize("ending", [".npy", ".npz"])
def test_headers_that_are_no_literals_are_refused_without_addresses(tmp_path, ending, read):
    path, content = tmp_path / f"x{ending}", b"\x93NUMPY\1\0" + struct.pack("<H", len(CALL)) + CALL
    if ending == ".npz":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("a.npy", content)
    else:
        path.write_bytes(content)
    with pytest.raises(InputError, match=r"view 'a' \(.*\) cannot be read \(malformed") as refusal:
        read(path)
    assert not re.search("<|0x", str(refusal.value))


@pytest.mark.parametrize("read", [lambda path: read_views({"a": path}), lambda path: ViewsReader({"a": path})])
def test_archives_with_two_arrays_of_one_name_are_refused(tmp_path, read):
    path = Path(npz(a=WHOLE)(tmp_path))
    with zipfile.ZipFile(path, "a") as archive, pytest.warns(UserWarning, match="Duplicate name"):
        archive.writestr("a.npy", archive.read("a.npy"))
    with pytest.raises(InputError, match=r"view 'a' \(.*bad.npz\) has two arrays named 'a'; rename one"):
        read(path)


def test_a_string_among_numbers_that_are_read_as_categories_is_noted(tmp_path):
    (tmp_path / "x.csv").write_text(
        "age,x\n" + "".join(f"{'n/a?' if i == 7 else 20 + i % 19},{i}\n" for i in range(60))
    )
    loaded = read_views({"a": tmp_path / "x.csv"}, categories="onehot", ids=False)
    assert list(loaded.views.categories["a"]) == ["age"]
    assert loaded.notes == (
        f"view 'a' ({tmp_path / 'x.csv'}): the column 'age' has numbers and strings such as 'n/a?', and is read as "
        "categories; correct the strings if it has measurements",
    )


# Formats


def as_delimited(delimiter, opened=open):
    def write(path, values):
        rows = [["sample", *NAMES], *([name, *map(repr, row)] for name, row in zip(IDS, values.tolist(), strict=True))]
        with opened(path, "wb") as file:
            file.write("\n".join(delimiter.join(row) for row in rows).encode())

    return write


def arrow_table(values):
    columns = {name: np.ascontiguousarray(column) for name, column in zip(NAMES, values.T, strict=True)}
    return needs_pyarrow().table({"sample": list(IDS), **columns})


def as_parquet(path, values):
    pytest.importorskip("pyarrow.parquet").write_table(arrow_table(values), path)


def as_feather(path, values):
    pytest.importorskip("pyarrow.feather").write_feather(arrow_table(values), str(path), compression="zstd")


def as_arrow_stream(path, values):
    stored = arrow_table(values)
    with needs_pyarrow().ipc.new_stream(str(path), stored.schema) as file:
        file.write_table(stored)


def as_anndata(path, values):
    h5py = needs_h5py()
    with h5py.File(path, "w") as file:
        fill_anndata(file, values)


def as_mudata(path, values):
    h5py = needs_h5py()
    with h5py.File(path, "w") as file:
        fill_anndata(file.create_group("mod/rna"), values)


def fill_anndata(group, values):
    h5py = needs_h5py()
    if sp.issparse(values):
        kind = f"{values.format}_matrix"
        x = group.create_group("X")
        x.attrs["encoding-type"], x.attrs["shape"] = kind, values.shape
        for part in ("data", "indices", "indptr"):
            x[part] = getattr(values, part)
    else:
        group["X"] = values
    for axis, names in (("obs", IDS), ("var", (*NAMES, "d", "e")[: values.shape[1]])):
        index = group.create_group(axis)
        index.attrs["_index"] = "names"
        index.create_dataset("names", data=names, dtype=h5py.string_dtype())


TABLES = {
    ".csv": as_delimited(","),
    ".CSV": as_delimited(","),
    ".csv.gz": as_delimited(",", gzip.open),
    ".tsv": as_delimited("\t"),
    ".Tsv.GZ": as_delimited("\t", gzip.open),
    ".parquet": as_parquet,
    ".PARQUET": as_parquet,
    ".feather": as_feather,
    ".arrow": as_arrow_stream,
    ".h5ad": as_anndata,
    ".h5mu": as_mudata,
}


@pytest.mark.parametrize("ending", TABLES)
def test_tables_keep_values_names_and_ids(tmp_path, ending):
    path = tmp_path / f"x{ending}"
    TABLES[ending](path, X)
    loaded = read_views({"a": path}, ids="sample")
    np.testing.assert_array_equal(loaded.views["a"], X)
    assert loaded.views.columns == {"a": NAMES}
    assert (loaded.ids, loaded.notes) == (IDS, ())


def as_mtx(path, values):
    file = io.BytesIO()
    scipy.io.mmwrite(file, values, precision=17)
    content = file.getvalue()
    path.write_bytes(gzip.compress(content) if path.name.lower().endswith(".gz") else content)


def as_old_mat(compressed):
    return lambda path, values: scipy.io.savemat(path, {"X": values}, do_compression=compressed, appendmat=False)


def as_new_mat(path, values):
    h5py = needs_h5py()
    with h5py.File(path, "w", userblock_size=512) as file:
        if sp.issparse(values):
            columns = sp.csc_array(values)
            group = file.create_group("X")
            group.attrs["MATLAB_sparse"] = values.shape[0]
            group["data"], group["ir"], group["jc"] = columns.data, columns.indices, columns.indptr
        else:
            file["X"] = values.T
        file.create_group("#refs#")
    with path.open("r+b") as file:
        file.write(b"MATLAB 7.3 MAT-file".ljust(124) + b"\0\2IM")


def as_npz(path, values):
    with path.open("wb") as file:
        sp.save_npz(file, values) if sp.issparse(values) else np.savez_compressed(file, values)


ARRAYS = {
    ".npz": as_npz,
    ".NPZ": as_npz,
    ".mtx": as_mtx,
    ".mtx.gz": as_mtx,
    ".MTX.GZ": as_mtx,
    ".mat": as_old_mat(True),
    ".MAT": as_old_mat(False),
    "73.mat": as_new_mat,
    ".h5ad": as_anndata,
}


@pytest.mark.parametrize("ending", [".npy", ".NPY", *ARRAYS])
@pytest.mark.parametrize("dtype", ["float64", "float32", "int16", "bool"])
def test_arrays_keep_their_values(tmp_path, ending, dtype):
    path = tmp_path / f"x{ending}"
    values = (X * 100).clip(-9, 9).astype(dtype)
    if ending in ARRAYS:
        text = "mtx" in ending.lower()  # stores double precision only
        ARRAYS[ending](path, values.astype(float) if text else values)
    else:
        with path.open("wb") as file:
            np.save(file, values)
    loaded = read_views({"a": path})
    np.testing.assert_array_equal(loaded.views["a"], values)
    expected = np.float32 if dtype == "float32" and "mtx" not in ending.lower() else np.float64
    assert loaded.views["a"].dtype == expected


@pytest.mark.parametrize("ending", ARRAYS)
@pytest.mark.parametrize("layout", ["csr", "csc"])
def test_sparse_matrices_stay_sparse(tmp_path, ending, layout):
    path = tmp_path / f"x{ending}"
    ARRAYS[ending](path, SPARSE.asformat(layout))
    found = read_views({"a": path}).views["a"]
    assert isinstance(found, sp.csr_array)
    np.testing.assert_array_equal(found.toarray(), SPARSE.toarray())


def test_sparse_without_any_entry_is_read(tmp_path):
    as_mtx(tmp_path / "x.mtx", sp.coo_array((3, 2)))
    loaded = read_views({"a": tmp_path / "x.mtx"})
    assert loaded.views["a"].nnz == 0
    assert loaded.notes == (f"view 'a' ({tmp_path / 'x.mtx'}): the 2 columns '0', '1' are constant",)
    with needs_h5py().File(tmp_path / "x.mat", "w") as file:
        group = file.create_group("X")  # MATLAB leaves out the parts that are empty
        group.attrs["MATLAB_sparse"] = 3
        group["jc"] = np.zeros(3, int)
    assert read_views({"a": tmp_path / "x.mat"}).views["a"].shape == (3, 2)


def test_sparse_in_one_dimension_is_refused(tmp_path):
    sp.save_npz(tmp_path / "x.npz", sp.coo_array(np.eye(3)[0]))
    with pytest.raises(InputError, match=r"1-D; a view is 2-D|cannot be read"):  # SciPy 1.15 does not read such a file
        read_views({"a": tmp_path / "x.npz"})


def test_anndata_without_names_is_read(tmp_path):
    path = hdf5(lambda file: file.create_dataset("X", data=WHOLE))(tmp_path)
    loaded = read_views({"a": path})
    assert (loaded.ids, loaded.views.columns["a"], loaded.views.n_samples) == (None, None, N)


@pytest.mark.parametrize("kind", ["coo", "bsr", "dia"])
def test_scipy_stores_other_layouts_too(tmp_path, kind):
    sp.save_npz(tmp_path / "x.npz", SPARSE.asformat(kind))
    np.testing.assert_array_equal(read_views({"a": tmp_path / "x.npz"}).views["a"].toarray(), SPARSE.toarray())


@pytest.mark.parametrize(
    ("banner", "body", "expected"),
    [
        ("coordinate real symmetric", "2 2 2\n1 1 5\n2 1 3\n", [[5, 3], [3, 0]]),
        ("coordinate integer skew-symmetric", "2 2 1\n2 1 3\n", [[0, -3], [3, 0]]),
        ("coordinate pattern general", "% a comment\n\n2 2 2\n1 2\n2 1\n", [[0, 1], [1, 0]]),
        ("coordinate real general", "2 2 2\n1 2 5\n\n% a comment\n2 1 3 % another\n\n", [[0, 5], [3, 0]]),
        ("array real general", "2 2\n1\n2\n3\n4\n", [[1, 3], [2, 4]]),
    ],
)
def test_matrix_market_variants(tmp_path, banner, body, expected):
    path = tmp_path / "x.mtx"
    path.write_text(f"%%MatrixMarket matrix {banner}\n{body}")
    found = read_views({"a": path}).views["a"]
    np.testing.assert_array_equal(found.toarray() if sp.issparse(found) else found, expected)


MATLAB = b"MATLAB".ljust(124) + b"\1\0MI"


def element(kind, content):
    return struct.pack(">II", kind, len(content)) + content + b"\0" * (-len(content) % 8)


def flags(kind):
    return element(6, struct.pack(">II", kind, 0))


def shape(*sides):
    return element(5, struct.pack(f">{len(sides)}i", *sides))


def test_matlab_files_of_other_byte_order_and_small_values(tmp_path):
    """The format stores integers in few bytes, and values of up to four bytes in place of their length."""
    name = struct.pack(">HH", 1, 1) + b"X\0\0\0"
    values = struct.pack(">HH", 3, 2) + bytes([1, 2, 255, 0])
    path = tmp_path / "x.mat"
    path.write_bytes(MATLAB + element(14, flags(6) + shape(1, 3) + name + values))
    np.testing.assert_array_equal(read_views({"a": path}).views["a"], [[1, 2, 255]])


def test_objects_of_matlab_are_not_tables(tmp_path):
    """An object has no shape, and the file then ends with a variable without a name."""
    reference = element(14, flags(13) + shape(1, 1) + element(1, b"") + element(6, bytes(4)))
    kind = element(1, b"MCOS") + element(1, b"string") + reference
    variables = [
        flags(17) + element(1, b"words") + kind,
        flags(6) + shape(1, 2) + element(1, b"X") + element(2, b"\1\2"),
        flags(9) + shape(1, 8) + element(1, b"") + element(2, bytes(8)),
    ]
    path = tmp_path / "x.mat"
    path.write_bytes(MATLAB + b"".join(element(14, body) for body in variables))
    np.testing.assert_array_equal(read_views({"a": path}).views["a"], [[1, 2]])
    assert describe_file(path)["variables"] == {"words": "(object)", "X": "(1x2)"}
    with pytest.raises(InputError, match="expected real numbers in the variable 'words', got object"):
        read_views({"a": f"{path}::words"})
    variables[0] = variables[0].removesuffix(reference)  # not readable, but only the numbers are needed
    path.write_bytes(MATLAB + b"".join(element(14, body) for body in variables))
    np.testing.assert_array_equal(read_views({"a": path}).views["a"], [[1, 2]])


# Variables


def test_variables_are_selected_by_the_path_or_by_name(tmp_path):
    for write, label in [(npz(left=WHOLE, right=2 * WHOLE), "npz"), (mat(left=WHOLE, right=2 * WHOLE), "mat")]:
        path = write(tmp_path)
        np.testing.assert_array_equal(read_views({"a": f"{path}::right"}).views["a"], 2 * WHOLE)
        found = read_views({"a": path}, variables={"a": "left"}).views["a"]
        np.testing.assert_array_equal(found, WHOLE, err_msg=label)


def test_the_only_numeric_variable_needs_no_name(tmp_path):
    path = mat(X=WHOLE, note="made in spring")(tmp_path)
    np.testing.assert_array_equal(read_views({"a": path}).views["a"], WHOLE)
    with pytest.raises(InputError, match=r"expected real numbers in the variable 'note', got string"):
        read_views({"a": f"{path}::note"})
    np.testing.assert_array_equal(read_views({"a": mat(**{"None": WHOLE})(tmp_path)}).views["a"], WHOLE)  # no object

    def fill(file):  # MATLAB 7.3 stores strings and objects as numbers
        file["X"], file["note"], file["word"] = WHOLE.T, np.uint16([[104], [105]]), np.uint32([[1, 2]])
        file["note"].attrs["MATLAB_class"] = np.bytes_("char")
        file["word"].attrs["MATLAB_object_decode"] = 3

    needs_h5py()
    path = hdf5(fill, ".mat", b"MATLAB 7.3")(tmp_path)
    np.testing.assert_array_equal(read_views({"a": path}).views["a"], WHOLE)


def test_colons_in_the_name_of_a_file_do_not_select_a_variable(tmp_path):
    path = tmp_path / "x::y.csv"
    path.write_text("a,b\n1,2\n3,4\n")
    assert read_views({"a": path}).views.n_samples == 2


def test_layers_and_embeddings_of_anndata(tmp_path):
    def fill(file):
        annotated(file, WHOLE)
        file["obsm/X_pca"] = 3 * WHOLE[:, :1]
        file["layers/counts"] = 2 * WHOLE
        frame = file.create_group("obsm/scores")
        frame.attrs["encoding-type"], frame.attrs["column-order"] = "dataframe", ["u", "v"]
        frame["u"], frame["v"] = WHOLE[:, 0], WHOLE[:, 1].astype(int)
        frame = file.create_group("obsm/words")
        frame.attrs["encoding-type"], frame.attrs["column-order"] = "dataframe", ["u"]
        frame["u"] = ["word"] * N

    needs_h5py()
    path = hdf5(fill)(tmp_path)
    for name, values, columns in [
        ("X", WHOLE, ("s0", "s1")),
        ("X_pca", 3 * WHOLE[:, :1], None),
        ("counts", 2 * WHOLE, ("s0", "s1")),
        ("scores", WHOLE, ("u", "v")),
    ]:
        loaded = read_views({"a": f"{path}::{name}"})
        np.testing.assert_array_equal(loaded.views["a"], values)
        assert loaded.views.columns["a"] == columns
        assert loaded.ids == IDS
    with pytest.raises(InputError, match="not numeric"):
        read_views({"a": f"{path}::words"})
    assert describe_file(path)["variables"] == {
        "X": "(12x2)",
        "X_pca": "(12x1)",
        "counts": "(12x2)",
        "scores": "(data frame)",
        "words": "(data frame)",
    }


def test_modalities_of_mudata(tmp_path):
    def fill(file):
        for number, name in enumerate(["rna", "atac"], start=1):
            annotated(file.create_group(f"mod/{name}"), number * WHOLE)
            file[f"mod/{name}/obsm/X_pca"] = 10 * number * WHOLE

    needs_h5py()
    path = hdf5(fill, ".h5mu")(tmp_path)
    for name, factor in {"rna": 1, "atac": 2, "rna/X_pca": 10, "atac/X_pca": 20}.items():
        np.testing.assert_array_equal(read_views({"a": f"{path}::{name}"}).views["a"], factor * WHOLE)


def test_files_written_by_anndata_and_mudata_are_read(tmp_path):
    anndata = pytest.importorskip("anndata")
    mudata = pytest.importorskip("mudata")
    pd = pytest.importorskip("pandas")
    obs, var = pd.DataFrame(index=list(IDS)), pd.DataFrame(index=["g0", "g1"])
    one = anndata.AnnData(sp.csr_matrix(WHOLE), obs=obs, var=var, obsm={"X_pca": WHOLE})
    one.write_h5ad(tmp_path / "x.h5ad", compression="gzip")
    mudata.set_options(pull_on_update=False)
    mudata.MuData({"rna": one}).write(tmp_path / "x.h5mu")
    for path in (tmp_path / "x.h5ad", tmp_path / "x.h5mu"):
        loaded = read_views({"a": path})
        np.testing.assert_array_equal(loaded.views["a"].toarray(), WHOLE)
        assert (loaded.ids, loaded.views.columns["a"]) == (IDS, ("g0", "g1"))


# Text tables


def csv_view(folder, content, **options):
    (folder / "x.csv").write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_views({"a": folder / "x.csv"}, **options)


@pytest.mark.parametrize(
    ("content", "columns", "ids"),
    [
        ("1.0,2\n3,4\n", None, None),
        ("0,1\n1,2\n3,4\n", ("0", "1"), None),
        ("1,2\n1,2\n3,4\n", ("1", "2"), None),
        (",u,v\n0,1,2\n1,3,4\n", ("u", "v"), None),
        (",u,v\ns,1,2\nt,3,4\n", ("u", "v"), ("s", "t")),
        (",0,1\n0,1,2\n1,3,4\n", ("0", "1"), None),
        (",1,2\ns,1,2\nt,3,4\n", ("1", "2"), ("s", "t")),
        ('"u","v"\n"s",1,2\n"t",3,4\n', ("u", "v"), ("s", "t")),
        ("\ufeffu, v \r\n1, 2\r\n\r\n3,4", ("u", "v"), None),
        ("u,v\r1,2\r3,4\r", ("u", "v"), None),
        ("u,v,\n1,2,\n3,4,\n", ("u", "v"), None),
        ("u;w,v\n1,2\n3,4\n", ("u;w", "v"), None),
        ('u,"v\nw"\n1,2\n3,4\n', ("u", "v\nw"), None),
    ],
)
def test_names_of_columns_and_rows_are_read(tmp_path, content, columns, ids):
    loaded = csv_view(tmp_path, content)
    np.testing.assert_array_equal(loaded.views["a"], [[1, 2], [3, 4]])
    assert (loaded.views.columns["a"], loaded.ids) == (columns, ids)
    assert ("is read as" in "".join(loaded.notes)) == content.lstrip(",")[0].isdigit()


def test_booleans_are_numbers_and_names_with_an_underscore_are_not(tmp_path):
    loaded = csv_view(tmp_path, "u,v\nTRUE,1e3\nfalse,-2\n")
    np.testing.assert_array_equal(loaded.views["a"], [[1, 1000], [0, -2]])
    with pytest.raises(InputError, match=r"'1_2' in row 0\); encode it"):
        csv_view(tmp_path, "u,v\n1_2,1\n1_3,2\n")


def test_a_column_with_late_strings_is_read_as_strings(tmp_path, monkeypatch):
    monkeypatch.setattr(cells, "_BLOCK_ROWS", 3)
    content = "u,v\n" + "".join(f"{'0' if i < 7 else 'b'},{i / 2}\n" for i in range(10))
    with pytest.raises(InputError, match=r"column 'u' \('b' in row 7\), which otherwise contains numbers"):
        csv_view(tmp_path, content)
    loaded = csv_view(tmp_path, content, categories="onehot")
    assert loaded.views.categories["a"] == {"u": Categories(("0", "b"))}
    np.testing.assert_array_equal(loaded.views["a"][:, 1], np.arange(10) >= 7)


def test_columns_with_late_strings_are_read_again_together(tmp_path, monkeypatch):
    starts = []
    read = cells._read_rows
    monkeypatch.setattr(cells, "_BLOCK_ROWS", 3)
    monkeypatch.setattr(cells, "_read_rows", lambda *arguments: starts.append(1) or read(*arguments))
    csv_view(tmp_path, "u,v,w\n" + "1,1,1\n" * 5 + "b,b,b\n", categories="onehot")
    assert len(starts) == 2


def test_values_of_text_tables_are_exact(tmp_path, monkeypatch):
    monkeypatch.setattr(cells, "_BLOCK_ROWS", 100)
    x = np.random.default_rng(1).normal(size=(1234, 7)) * 10.0 ** np.arange(-150, 200, 50)
    rows = [",".join(map(repr, row)) for row in x.tolist()]
    np.testing.assert_array_equal(csv_view(tmp_path, "\n".join(["a,b,c,d,e,f,g", *rows])).views["a"], x)


def test_lines_without_an_end_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(cells, "_LONGEST_LINE", 1000)
    with pytest.raises(InputError, match="line 2 of more than 1000 characters"):
        csv_view(tmp_path, "u,v\n" + "1" * 5000)


def test_tables_larger_than_the_memory_are_refused_while_reading(tmp_path, monkeypatch):
    monkeypatch.setattr(coview.base.runtime, "available_memory", lambda: 100_000)
    path = tmp_path / "x.csv.gz"
    path.write_bytes(gzip.compress(b"u,v\n" + b"0,0\n" * 50_000))
    assert path.stat().st_size < 1000
    with pytest.raises(InputError, match=r"view 'a' \(.*x.csv.gz\): a table of 8192 x 2 values needs about"):
        read_views({"a": path})


def test_memory_errors_while_reading_are_input_errors(tmp_path, monkeypatch):
    def full(*args):
        raise MemoryError

    monkeypatch.setattr(cells, "_read_rows", full)
    with pytest.raises(InputError, match=r"view 'a' \(.*x.csv\) does not fit in memory"):
        csv_view(tmp_path, "u,v\n1,2\n")


# Parquet, Feather and Arrow


def test_kinds_of_arrow_columns(tmp_path):
    pa = needs_pyarrow()
    columns = {
        "whole": pa.array([1, None], pa.int8()),
        "seen": [True, False],
        "half": pa.array([0.5, 1.5], pa.float32()),
        "exact": pa.array([1, 2], pa.decimal128(5, 2)),
        "nothing": pa.nulls(2),
        "words": pa.array(["u", "v"]).dictionary_encode(),
        "views": pa.array(["u", "v"], pa.string_view()),
    }
    path = str(tmp_path / "x.feather")  # a Parquet file of older versions of pyarrow holds no views of strings
    write = pytest.importorskip("pyarrow.feather").write_feather
    write(pa.table(columns), path)
    with pytest.raises(InputError, match="no value in row 1, column 'whole'"):
        read_views({"a": path}, categories="onehot")
    columns["whole"] = pa.array([1, 2], pa.int8())
    write(pa.table(columns), path)
    loaded = read_views({"a": path}, categories="onehot")
    np.testing.assert_array_equal(loaded.views["a"], [[1, 1, 0.5, 1, 0, 0], [2, 0, 1.5, 2, 1, 1]])
    assert loaded.views.columns["a"] == ("whole", "seen", "half", "exact", "words", "views")
    assert [*loaded.views.categories["a"]] == ["words", "views"]
    with pytest.raises(InputError, match="strings in the column 'views'"):  # the type of words says what it is
        read_views({"a": path})
    assert loaded.notes == (f"view 'a' ({path}): dropped the column 'nothing' without any value",)


def test_a_pandas_index_is_ids_and_not_a_feature(tmp_path):
    pd = pytest.importorskip("pandas")
    needs_pyarrow()
    frame = pd.DataFrame({"x": np.float32([1, 2])}, index=pd.Index([7.0, 9.0], name="sample"))
    frame.to_parquet(tmp_path / "x.parquet")
    for ids in (None, "sample"):
        loaded = read_views({"a": tmp_path / "x.parquet"}, ids=ids)
        assert (loaded.ids, loaded.views.columns["a"]) == (("7", "9"), ("x",))
        assert loaded.views["a"].dtype == np.float32


def test_a_pandas_multi_index_is_not_ids(tmp_path):
    pd = pytest.importorskip("pandas")
    needs_pyarrow()
    index = pd.MultiIndex.from_product([["p", "q"], [1, 2]], names=["patient", "visit"])
    pd.DataFrame({"x": np.arange(4.0)}, index=index).to_parquet(tmp_path / "x.parquet")
    loaded = read_views({"a": tmp_path / "x.parquet"})
    assert (loaded.ids, loaded.views.columns["a"]) == (None, ("x",))


# Samples


def two_views(folder, first, second):
    lines(*first, header="sample,x")(folder)
    (folder / "bad.csv").rename(folder / "a.csv")
    lines(*second, header="y,sample")(folder)
    (folder / "bad.csv").rename(folder / "b.csv")
    return {"a": folder / "a.csv", "b": folder / "b.csv"}


def test_views_get_the_order_of_the_first_by_ids(tmp_path):
    loaded = read_views(two_views(tmp_path, ["s,1", "t,2", "u,3"], ["30,u", "10,s", "20,t"]), ids="sample")
    assert (loaded.ids, loaded.notes) == (("s", "t", "u"), ())
    np.testing.assert_array_equal(np.hstack(list(loaded.views.values())), [[1, 10], [2, 20], [3, 30]])


def test_outer_alignment_keeps_samples_that_lack_a_view(tmp_path):
    (tmp_path / "a.csv").write_text("sample,x\ns1,1\ns2,2\ns3,3\n")
    (tmp_path / "b.csv").write_text("sample,y,z\ns4,40,4\ns2,20,2\n")
    loaded = read_views({"a": tmp_path / "a.csv", "b": tmp_path / "b.csv"}, ids="sample", align="outer")
    assert loaded.ids == ("s1", "s2", "s3", "s4")
    np.testing.assert_array_equal(loaded.views["a"][:, 0], [1, 2, 3, np.nan])
    np.testing.assert_array_equal(loaded.views["b"][:, 1], [np.nan, 2, np.nan, 4])
    np.testing.assert_array_equal(loaded.views.present["a"], [True, True, True, False])
    assert any("lacks the 2 samples 's1', 's3' of 4" in note for note in loaded.notes), loaded.notes
    (tmp_path / "b.csv").write_text("sample,y\nS1,1\nS2,2\n")
    with pytest.raises(InputError, match=r"no sample in common .* upper and lower case"):
        read_views({"a": tmp_path / "a.csv", "b": tmp_path / "b.csv"}, ids="sample", align="outer")
    np.save(tmp_path / "c.npy", np.ones((3, 2)))
    with pytest.raises(InputError, match=r"c.npy.*has no ids, which align='outer' needs in every view"):
        read_views({"a": tmp_path / "a.csv", "c": tmp_path / "c.npy"}, ids="sample", align="outer")


def test_inner_alignment_drops_samples_that_are_not_in_every_view(tmp_path):
    sources = two_views(tmp_path, ["s,1", "t,2", "u,", "v,4"], ["30,w", "10,v", "20,s"])
    with pytest.raises(InputError, match=r"view 'b' \(.*b.csv\) lacks the 2 samples 't', 'u' that view 'a'"):
        read_views(sources, ids="sample")
    loaded = read_views(sources, ids="sample", align="inner")
    assert loaded.ids == ("s", "v")
    np.testing.assert_array_equal(np.hstack(list(loaded.views.values())), [[1, 20], [4, 10]])
    assert loaded.notes == (
        f"view 'a' ({sources['a']}): dropped the 2 samples 't', 'u' of 4, not in every view",
        f"view 'b' ({sources['b']}): dropped the sample 'w' of 3, not in every view",
    )


def test_rows_in_messages_are_those_of_the_file(tmp_path):
    sources = two_views(tmp_path, ["s,1", "t,2", "u,3"], ["5,w", "30,s", ",t", "3,u"])
    (tmp_path / "b.csv").write_text("y,z,sample\n5,1,w\n30,1,s\n,1,t\n3,1,u\n")
    with pytest.raises(InputError, match=r"view 'b' \(.*\) has no value in row 2, column 'y'"):
        read_views(sources, ids="sample", align="inner")


def test_a_row_without_values_is_a_sample_that_lacks_the_view(tmp_path):
    sources = two_views(tmp_path, ["s,1", "t,2", "u,3"], ["30,s", ",t", "3,u"])
    loaded = read_views(sources, ids="sample")
    np.testing.assert_array_equal(loaded.views.present["b"], [True, False, True])
    assert loaded.notes == (
        f"view 'b' ({sources['b']}): 1 of 3 samples have no value (first: row 1), they lack the view",
    )


def test_the_first_view_may_be_the_one_that_lacks_samples(tmp_path):
    with pytest.raises(InputError, match=r"view 'a' \(.*\) lacks the sample 't' that view 'b' \(.*\) has"):
        read_views(two_views(tmp_path, ["s,1"], ["1,s", "2,t"]), ids="sample")


def test_arrays_can_join_views_with_ids_in_their_order(tmp_path):
    np.save(tmp_path / "c.npy", [[5.0], [6.0]])
    sources = two_views(tmp_path, ["s,1", "t,2"], ["10,s", "20,t"]) | {"c": tmp_path / "c.npy"}
    assert read_views(sources, ids="sample").views.n_features == {"a": 1, "b": 1, "c": 1}
    sources = two_views(tmp_path, ["s,1", "t,2"], ["10,t", "20,s"]) | {"c": tmp_path / "c.npy"}
    with pytest.raises(
        InputError, match=r"view 'c' \(.*c.npy\) has no ids, and cannot be aligned with the other views"
    ):
        read_views(sources, ids="sample")
    with pytest.raises(InputError, match=r"view 'c' \(.*c.npy\) has no column of ids, nor has any other view"):
        read_views({"c": tmp_path / "c.npy"}, ids="sample")


def test_row_names_are_the_ids_if_all_files_have_them(tmp_path):
    (tmp_path / "a.csv").write_text(",x\ns,1\nt,2\n")
    (tmp_path / "b.csv").write_text(",y\nt,1\ns,2\n")
    sources = {"a": tmp_path / "a.csv", "b": tmp_path / "b.csv"}
    for ids in (None, "sample"):  # also if no column has this name
        loaded = read_views(sources, ids=ids)
        assert (loaded.ids, loaded.notes) == (("s", "t"), ())
        np.testing.assert_array_equal(loaded.views["b"], [[2], [1]])
    loaded = read_views(sources, ids=False)
    assert (loaded.ids, loaded.notes) == (None, (BY_ORDER,))
    np.testing.assert_array_equal(loaded.views["b"], [[1], [2]])
    (tmp_path / "b.csv").write_text(",y\nt,1\nu,2\n")
    with pytest.raises(InputError, match=r"view 'b' \(.*\) lacks the sample 's' .* common samples \(align='inner'\)"):
        read_views(sources)
    assert read_views(sources, align="inner").ids == ("t",)
    (tmp_path / "b.csv").write_text(",y\nv,1\nu,2\n")
    with pytest.raises(InputError, match=r"no sample in common .* by row order \(ids=False\)"):
        read_views(sources)


def test_row_names_that_cannot_be_ids_are_compared_by_row(tmp_path):
    """Some files have none, or names are not unique."""
    np.save(tmp_path / "c.npy", np.ones((2, 2)) * [[1], [2]])
    (tmp_path / "a.csv").write_text(",x\ns,1\nt,2\n")
    (tmp_path / "b.csv").write_text(",y\nt,1\ns,2\n")
    sources = {name: tmp_path / name for name in ("a.csv", "b.csv", "c.npy")}
    message = r"'b.csv' .* has the row name 't' in row 0, but view 'a.csv' .* \(ids=False\)"
    with pytest.raises(InputError, match=message):
        read_views(sources)
    del sources["b.csv"]
    loaded = read_views(sources)
    assert (loaded.ids, loaded.notes) == (
        ("s", "t"),
        ("the view 'c.npy' has no ids: its samples are paired by row order",),
    )
    (tmp_path / "a.csv").write_text(",x\ns,1\ns,2\n")
    (tmp_path / "b.csv").write_text(",y\ns,1\ns,2\n")
    loaded = read_views({name: tmp_path / name for name in ("a.csv", "b.csv")})
    assert (loaded.ids, loaded.notes) == (("s", "s"), ())


def test_row_numbers_are_ids_if_another_file_has_them_in_another_order(tmp_path):
    (tmp_path / "a.csv").write_text(",x\n0,1.5\n1,2.5\n2,3.5\n")
    sources = {"a": tmp_path / "a.csv", "b": tmp_path / "b.csv"}
    (tmp_path / "b.csv").write_text(",y\n2,30\n0,10\n1,20\n")
    np.testing.assert_array_equal(read_views(sources).views["b"], [[10], [20], [30]])
    (tmp_path / "b.csv").write_text(",y\ns,30\nt,10\nu,20\n")
    loaded = read_views(sources)
    assert (loaded.ids, len(loaded.notes)) == (("s", "t", "u"), 1)


# Columns


def test_strings_are_read_as_categories(tmp_path):
    content = "sample,x,colour\ns,1,red\nt,2,blue\nu,3,red\n"
    loaded = csv_view(tmp_path, content, ids="sample", categories="onehot")
    assert loaded.views.columns["a"] == ("x", "colour")
    np.testing.assert_array_equal(loaded.views["a"], [[1, 1], [2, 0], [3, 1]])
    assert loaded.views.categories == {"a": {"colour": Categories(("blue", "red"))}}


def test_columns_of_categories_can_be_named(tmp_path):
    content = "x,level,word\n1,2,u\n3,1,v\n5,2,u\n"
    with pytest.raises(InputError, match="strings in the column 'word'"):
        csv_view(tmp_path, content, categories={"a": ["level"]})
    loaded = csv_view(tmp_path, content, categories={"a": ["level", "word"]})
    assert loaded.views.categories["a"] == {"level": Categories(("1", "2")), "word": Categories(("u", "v"))}
    with pytest.raises(InputError, match="categories names the view 'b', which has no file"):
        csv_view(tmp_path, content, categories={"b": ["level"]})


def test_dates_are_not_categories(tmp_path):
    content = "x,day\n1,2020-01-01\n2,2020-01-02\n3,2020-01-01\n"
    with pytest.raises(InputError, match=r"column 'day' .* which are dates; encode them as numbers, such as days"):
        csv_view(tmp_path, content, categories="onehot")


def test_constant_and_empty_columns_are_noted(tmp_path):
    loaded = csv_view(tmp_path, "x,nothing,same,less,also\n1,,5,NA,7\n2,,5,n/a,7\n")
    where = f"view 'a' ({tmp_path / 'x.csv'})"
    assert loaded.notes == (
        f"{where}: dropped the 2 columns 'nothing', 'less' without any value",
        f"{where}: the 2 columns 'same', 'also' are constant",
    )
    assert loaded.views.columns["a"] == ("x", "same", "also")
    sparse = sp.csr_array([[1.0, 0, np.nan, 2, 0], [3, 0, np.nan, 2, 1]])
    sp.save_npz(tmp_path / "x.npz", sparse)
    loaded = read_views({"a": tmp_path / "x.npz"})
    where = f"view 'a' ({tmp_path / 'x.npz'})"
    assert loaded.notes == (
        f"{where}: dropped the column '2' without any value",
        f"{where}: the 2 columns '1', '3' are constant",
    )
    assert loaded.views.columns["a"] == ("0", "1", "3", "4")
    np.testing.assert_array_equal(loaded.views["a"].toarray(), [[1, 0, 2, 0], [3, 0, 2, 1]])


def test_columns_without_names_are_named_by_position_if_some_are_dropped(tmp_path):
    old, new = tmp_path / "old.npy", tmp_path / "new.npy"
    np.save(old, [[1, np.nan, 2], [3, np.nan, 5]])
    columns = read_views({"a": old}).views.columns
    assert columns == {"a": ("0", "2")}
    np.save(new, [[1.0, 7, 2], [3, 7, 5]])
    for path in (old, new):
        np.testing.assert_array_equal(read_views({"a": path}, columns=columns).views["a"], [[1, 2], [3, 5]])
    np.save(new, [[1.0, 2], [3, 5]])
    np.testing.assert_array_equal(read_views({"a": new}, columns=columns).views["a"], [[1, 2], [3, 5]])
    np.save(new, [[1.0], [3]])
    with pytest.raises(InputError, match="lacks the column '2'"):
        read_views({"a": new}, columns=columns)


def test_strings_in_tables_without_column_names_can_be_encoded(tmp_path):
    loaded = csv_view(tmp_path, "5,1\n3,u\n4,1\n", categories="onehot")
    assert loaded.views.columns["a"] == ("0", "column1")
    np.testing.assert_array_equal(loaded.views["a"], [[5, 0], [3, 1], [4, 0]])
    again = csv_view(tmp_path, "6,1\n7,u\n", columns=loaded.views.columns, categories={"a": ["column1"]})
    np.testing.assert_array_equal(again.views["a"], [[6, 0], [7, 1]])


def test_long_lists_of_columns_are_cut(tmp_path):
    loaded = csv_view(tmp_path, f"{','.join('abcdefgh')}\n{'1,' * 7}1\n{'1,' * 7}2\n")
    assert loaded.notes[0].endswith("the 7 columns 'a', 'b', 'c', 'd', 'e' and 2 more are constant")


def test_columns_of_a_model_are_found_by_name(tmp_path):
    columns = {"a": ["y", "colour", "x"]}
    content = "x,extra,y,colour,word\n1,9,2,red,u\n3,9,4,green,v\n"
    loaded = csv_view(tmp_path, content, columns=columns, categories={"a": ["colour"]})
    np.testing.assert_array_equal(loaded.views["a"], [[2, 1, 1], [4, 0, 3]])
    assert loaded.views.columns["a"] == tuple(columns["a"])
    assert loaded.views.categories["a"] == {"colour": Categories(("green", "red"))}
    where = f"view 'a' ({tmp_path / 'x.csv'})"
    assert loaded.notes == (f"{where}: dropped the 2 columns 'extra', 'word' that the model was not trained on",)


def test_every_sample_may_have_its_own_category(tmp_path):
    categories = [f"c{i}" for i in range(20)]
    content = "x,c\n" + "".join(f"{i},{category}\n" for i, category in enumerate(categories))
    loaded = csv_view(tmp_path, content, columns={"a": ["x", "c"]}, categories={"a": ["c"]})
    assert loaded.views.categories["a"]["c"] == Categories(tuple(sorted(categories)))


def test_columns_of_a_model_in_another_order_and_number(tmp_path):
    loaded = csv_view(tmp_path, "x,y\n1,2\n3,4\n", columns={"a": ["y", "x"]})
    np.testing.assert_array_equal(loaded.views["a"], [[2, 1], [4, 3]])
    loaded = csv_view(tmp_path, "x,y\n1,2\n3,4\n", columns={"a": None})
    assert loaded.views.columns["a"] == ("x", "y")
    np.save(tmp_path / "x.npy", [[1.0, 2], [3, 4]])
    loaded = read_views({"a": tmp_path / "x.npy"}, columns={"a": ["u", "v"]})
    assert loaded.views.columns["a"] == ("u", "v")
    with pytest.raises(InputError, match="has 2 columns, but the model was trained on 3; give the file"):
        read_views({"a": tmp_path / "x.npy"}, columns={"a": ["u", "v", "w"]})
    sp.save_npz(tmp_path / "x.npz", SPARSE)
    assert sp.issparse(read_views({"a": tmp_path / "x.npz"}, columns={"a": list("abcde")}).views["a"])


def test_categories_that_look_like_numbers_are_categories_to_the_model(tmp_path):
    content = "x,level\n1,2\n3,1\n"
    loaded = csv_view(tmp_path, content, columns={"a": ["x", "level"]}, categories={"a": ["level"]})
    assert loaded.views.categories["a"] == {"level": Categories(("1", "2"))}


@pytest.mark.parametrize(
    ("content", "columns", "message"),
    [
        ("x,y\n1,2\n", ["x", "z"], "lacks the column 'z' that the model was trained on"),
        ("x,y\n1,2\n", ["x", "c"], "lacks the column 'c'"),
        ("x,y\n1,two\n", ["x", "y"], r"strings in the column 'y' \('two' in row 0\)"),
        ("x,y\n1,123456789012345678\n", ["x", "y"], "column 'y' of integers beyond 2\\^53"),
        ("x,y\n1,\n2,\n", ["x", "y"], "no value in 2 cells .*first: row 0, column 'y'"),
        ("x,c\n1,red\n2,\n", ["x", "c"], "no value in row 1, column 'c'"),
    ],
)
def test_columns_that_do_not_fit_the_model_are_refused(tmp_path, content, columns, message):
    with pytest.raises(InputError, match=rf"view 'a' \(.*x.csv\) .*{message}"):
        csv_view(tmp_path, content, columns={"a": columns}, categories={"a": ["c"]})


def test_wrong_arguments_are_explained(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("x\n1\n2\n")
    for sources, options, message in [
        ([path], {}, "expected a mapping"),
        ({}, {}, "there are no views"),
        ({"a": 3}, {}, "view 'a' is an int; expected the path of a file"),
        ({"a": path}, {"align": "inner"}, r"name the column of the ids \(ids=…\)"),
        ({"a": path}, {"align": "outer"}, r"align='outer' matches samples by their ids; name the column of the ids"),
        ({"a": path}, {"align": "left"}, "align 'left' is unknown. Known: strict, inner, outer"),
        ({"a": path}, {"categories": "drop"}, "categories 'drop' is unknown"),
        ({"a": path}, {"variables": {"b": "X"}}, "variables names the view 'b', which has no file"),
        ({"a": path}, {"columns": {"a": None, "b": None}}, "columns names the view 'b', which has no file"),
        ({"a": path}, {"columns": {"b": None, "a": None}}, "columns names the view 'b'"),
        ({"a": path, "c": path}, {"columns": {"a": None}}, r"view 'c' \(.*x.csv\) is not a view of the model"),
    ]:
        with pytest.raises(InputError, match=message):
            read_views(sources, **options)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_pipes_are_refused(tmp_path):
    os.mkfifo(tmp_path / "x.csv")
    with pytest.raises(InputError, match="save it to disk first"):
        read_views({"a": tmp_path / "x.csv"})


@pytest.mark.parametrize(
    ("module", "write", "name"),
    [("pyarrow", as_parquet, "io"), ("pyarrow", as_feather, "io"), ("h5py", as_anndata, "scverse")],
)
def test_missing_libraries_name_the_extra(tmp_path, monkeypatch, module, write, name):
    path = tmp_path / {as_parquet: "x.parquet", as_feather: "x.feather", as_anndata: "x.h5ad"}[write]
    write(path, X)
    for loaded in [loaded for loaded in sys.modules if loaded.split(".")[0] == module]:
        monkeypatch.setitem(sys.modules, loaded, None)
    monkeypatch.syspath_prepend(tmp_path)  # for the process that reads HDF5 files
    (tmp_path / f"{module}.py").write_text("raise ImportError")
    with pytest.raises(ImportError, match=rf'needs {module}: pip install "coview\[{name}\]"'):
        read_views({"a": path})


def test_all_other_formats_work_without_the_extras(tmp_path):
    for ending in (".csv", ".csv.gz", ".tsv"):
        TABLES[ending](tmp_path / f"x{ending}", X)
    for ending in (".npz", ".mtx", ".mtx.gz", ".mat"):
        ARRAYS[ending](tmp_path / f"x{ending}", X)
    np.save(tmp_path / "x.npy", X)
    named = ({"sample": name, **dict(zip(NAMES, row, strict=True))} for name, row in zip(IDS, X.tolist(), strict=True))
    (tmp_path / "x.jsonl").write_text("".join(json.dumps(row) + "\n" for row in named))
    script = """
import sys
sys.modules |= dict.fromkeys("pyarrow openpyxl h5py anndata mudata pandas matplotlib plotly jinja2 dask".split())
from pathlib import Path
from coview import KSC
from coview.io import describe_file, read_labels, read_views, write_labels
from coview.persist import describe_model, load, save
for path in sorted(Path(sys.argv[1]).iterdir()):
    loaded = read_views({"a": path}, ids="sample" if describe_file(path)["columns"] else None)
    model = KSC(2, random_state=0).fit(loaded.views)
    saved = save(model, path.with_name("model"))
    assert describe_model(saved)["class"] == "KSC"
    labels = load(saved).predict(loaded.views)
    assert read_labels(write_labels(path.with_name("labels.csv"), labels), column="cluster") == tuple(map(str, labels))
    print(path.name, *model.labels_ == labels)
"""
    done = subprocess.run([sys.executable, "-c", script, tmp_path], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(done.stdout.splitlines()) == 9
    assert "False" not in done.stdout


@pytest.mark.parametrize("ending", [".mat", ".MAT", ".mtx", ".npz", ".npy", ".csv", ".feather", ".arrow"])
def test_damaged_files_raise_input_errors_only(tmp_path, ending):
    """Some damage cannot be detected; all other damage raises an InputError."""
    rng = np.random.default_rng(0)
    path = tmp_path / f"x{ending}"
    if ending == ".npy":
        np.save(path, X)
    elif ending in TABLES:
        TABLES[ending](path, X)
    else:
        ARRAYS[ending](path, SPARSE)
    whole = path.read_bytes()
    refused = 0
    for _ in range(30 if ending in (".mat", ".MAT") else 150):  # a process reads each file of MATLAB
        damaged = bytearray(whole[: rng.integers(1, len(whole) + 1)] if rng.random() < 0.3 else whole)
        for _ in range(rng.integers(1, 4)):
            damaged[rng.integers(len(damaged))] = rng.integers(256)
        path.write_bytes(damaged)
        try:
            read_views({"a": path}, ids="sample" if ending in TABLES else None)
        except InputError as error:
            refused += 1
            assert "\n" not in str(error)
    assert refused > 20


# Labels


@pytest.mark.parametrize("ending", [".csv", ".tsv", ".parquet", ".CSV"])
@pytest.mark.parametrize("ids", [None, ("t", "s, or not", "u")])
def test_labels_are_written_and_read_back(tmp_path, ending, ids):
    if ending == ".parquet":
        needs_pyarrow()
    path = write_labels(tmp_path / f"labels{ending}", np.array([2, 0, 1], np.int32), ids)
    assert [file.name for file in tmp_path.iterdir()] == [f"labels{ending}"]
    assert read_labels(path, column="cluster") == ("2", "0", "1")
    order = ("0", "1", "2") if ids is None else ids
    assert read_labels(path, ids="sample") == ("2", "0", "1")
    assert read_labels(path, ids="sample", order=order[::-1]) == ("1", "0", "2")


def test_labels_in_text_files(tmp_path):
    assert write_labels(tmp_path / "x.csv", [1, 0]).read_text() == "sample,cluster\n0,1\n1,0\n"
    assert write_labels(str(tmp_path / "x.tsv"), [1], ["s"], name="id").read_text() == "id\tcluster\ns\t1\n"


def test_labels_in_an_array(tmp_path):
    path = write_labels(tmp_path / "labels.npy", [2, 0, 1])
    assert np.load(path).tolist() == [2, 0, 1]
    with pytest.warns(UserWarning, match=r"labels.npy\): classes and samples are paired by row order"):
        assert read_labels(path, order=("a", "b", "c")) == ("2", "0", "1")
    assert read_labels(path, ids=False, order=("a", "b", "c")) == ("2", "0", "1")


@pytest.mark.parametrize(
    ("path", "labels", "options", "message"),
    [
        ("x.xlsx", [1], {}, "unknown ending for labels; expected one of .csv, .tsv, .parquet, .npy"),
        ("absent/x.csv", [1], {}, "its folder must exist"),
        ("x.csv", [[1]], {}, "expected one integer per sample"),
        ("x.csv", [1.5], {}, "expected one integer per sample"),
        ("x.csv", [1, 2], {"ids": ["s"]}, "there are 1 ids for 2 labels"),
        ("x.csv", [1], {"ids": ["s"], "name": "cluster"}, "'cluster' is the name of a column of labels"),
    ],
)
def test_labels_that_cannot_be_written_are_refused(tmp_path, path, labels, options, message):
    with pytest.raises(InputError, match=message):
        write_labels(tmp_path / path, labels, **options)
    assert not list(tmp_path.iterdir())


def test_an_interrupted_writer_keeps_the_existing_file(tmp_path):
    class Interrupting:
        def __str__(self):
            raise KeyboardInterrupt

    (tmp_path / "x.csv").write_text("yesterday")
    with pytest.raises(KeyboardInterrupt):
        write_labels(tmp_path / "x.csv", [1], [Interrupting()])
    assert [file.read_text() for file in tmp_path.iterdir()] == ["yesterday"]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (np.array(["cat", "dog"]), ("cat", "dog")),
        (np.array([[1.0], [2.0]]), ("1", "2")),
        (np.array([[1.5, 2]]), ("1.5", "2")),
        (np.array([b"cat", b"dog"]), ("cat", "dog")),
    ],
)
def test_known_classes_in_arrays(tmp_path, values, expected):
    np.save(tmp_path / "x.npy", values)
    assert read_labels(tmp_path / "x.npy") == expected


def test_known_classes_in_one_column_need_no_name(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("species\ncat\n1.0\n")
    assert read_labels(path, ids=False, order=["s", "t"]) == ("cat", "1.0")
    path.write_text("3\n4\n")
    assert read_labels(path) == ("3", "4")
    path.write_text("cell type\nT cell\ncluster 4\n")  # no delimiter
    assert read_labels(path) == ("T cell", "cluster 4")


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        ("s,t\na,b\n", {}, "the 2 columns 's', 't'; name that of the classes"),
        ("s,t\na,b\n", {"column": "u"}, "no column 'u'; it has the 2 columns"),
        ("s,t\na,\n", {"column": "t"}, "no class in row 0"),
        (
            "s,t\na,b\n",
            {"ids": "s", "order": ["a", "z"]},
            "no class for the sample 'z'; add the missing rows, or check the ids",
        ),
        ("s,t\na,b\na,c\n", {"ids": "s"}, "the id 'a' in rows 0 and 1"),
        ("s,t\na,b\n", {"ids": "u"}, r"no column 'u' of ids\. It has the 2 columns 's', 't'"),
        ("t\na\n", {"order": ["a", "b"]}, "has 1 classes for 2 samples"),
    ],
)
def test_known_classes_that_cannot_be_read(tmp_path, content, options, message):
    path = tmp_path / "x.csv"
    path.write_text(content)
    with pytest.raises(InputError, match=rf"known classes \(.*x.csv\) .*{message}"):
        read_labels(path, **options)


@pytest.mark.parametrize(
    ("values", "options", "message"),
    [
        (np.ones((2, 2)), {}, "not a list of classes"),
        (np.float64(3), {}, "not a list of classes"),
        (np.array([1, np.nan]), {}, "no class in row 1"),
        (np.ones(2), {"ids": "s"}, "no column of ids 's'"),
    ],
)
def test_arrays_that_are_not_classes(tmp_path, values, options, message):
    np.save(tmp_path / "x.npy", values)
    with pytest.raises(InputError, match=message):
        read_labels(tmp_path / "x.npy", **options)


# Descriptions


def test_files_are_described(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text(f"sample,x,y,big\ns,1,red,{10**20}\nt,,,7\n")
    described = describe_file(path)
    assert json.loads(json.dumps(described)) == described
    assert described == {
        "path": str(path),
        "format": "CSV",
        "bytes": path.stat().st_size,
        "shape": [2, 4],
        "type": "float64",
        "sparse": False,
        "row_names": None,
        "missing": 2,
        "columns": [
            {"name": "x", "type": "number", "missing": 1, "min": 1.0, "max": 1.0},
            {"name": "sample", "type": "string", "missing": 0, "different": 2, "examples": ["s", "t"]},
            {"name": "y", "type": "string", "missing": 1, "different": 1, "examples": ["red"]},
            {"name": "big", "type": "integers beyond 2^53, which floats round"},
        ],
    }


def test_files_of_every_format_are_described(tmp_path):
    for ending, write in {**TABLES, **ARRAYS}.items():
        path = tmp_path / f"x{ending}"
        write(path, X)
        described = describe_file(path)
        assert json.loads(json.dumps(described)) == described
        assert described["shape"][0] == N
    sp.save_npz(tmp_path / "s.npz", SPARSE)
    described = describe_file(tmp_path / "s.npz")
    assert (described["sparse"], described["shape"], described["stored_values"]) == (True, [N, 5], SPARSE.nnz)
    as_new_mat(tmp_path / "s.mat", SPARSE)
    assert describe_file(tmp_path / "s.mat")["variables"] == {"X": "(12x5 sparse)"}
    np.save(tmp_path / "words.npy", np.array(["word"]))
    assert describe_file(tmp_path / "words.npy")["shape"] == [1]


def test_the_variables_of_a_file_are_described(tmp_path):
    path = mat(X=WHOLE, S=sp.csc_array(WHOLE), names=np.array([[1, "a"]], dtype=object))(tmp_path)
    assert describe_file(f"{path}::S")["sparse"]
    scipy.io.savemat(path, {"one": WHOLE, "S": sp.csc_array(WHOLE), "names": "abc"})
    described = describe_file(path)
    assert described["variables"] == {"one": "(12x2)", "S": "(12x2 sparse)", "names": "(1 string)"}
    assert "shape" not in described
    assert describe_file(npz(left=WHOLE, one=np.float64(1))(tmp_path))["variables"] == {
        "left": "(12x2)",
        "one": "(one value)",
    }
    assert describe_file(npz(X=WHOLE, Y=WHOLE)(tmp_path))["variables"] == {"X": "(12x2)", "Y": "(12x2)"}
    (tmp_path / "x.npz").write_bytes(cut((tmp_path / "bad.npz").read_bytes()))
    for name in ("strings in .h5ad", "one dimension in .h5ad", ".h5ad with a name too few"):
        with pytest.raises(InputError, match=r"file \(.*bad.h5ad\)"):
            describe_file(BAD_FILES[name].write(tmp_path))
    with pytest.raises(InputError, match=r"file \(.*x.npz\) cannot be read"):
        describe_file(tmp_path / "x.npz")


def test_columns_are_kept_and_dropped_by_name(tmp_path):
    for name in ("u", "v"):
        (tmp_path / f"{name}.csv").write_text("id,a,b,word\ns1,1,2,x\ns2,3,4,y\n")
    np.save(tmp_path / "w.npy", np.ones((2, 2)))
    files = {name: tmp_path / f"{name}.csv" for name in ("u", "v")}
    loaded = read_views(files, ids="id", keep={"u": ["b", "a"]}, drop=["word", "v=a"])
    assert loaded.views.columns == {"u": ("a", "b"), "v": ("b",)}
    assert loaded.ids == ("s1", "s2")
    array = read_views({"u": files["u"], "w": tmp_path / "w.npy"}, ids=False, drop=["word", "id"]).views
    assert array.n_features == {"u": 2, "w": 2}  # columns without names stay
    with pytest.raises(InputError, match=r"view 'w' .* has no column '0'.* It has columns without names"):
        read_views({"w": tmp_path / "w.npy"}, keep={"w": ["0"]})
