"""Excel workbooks, JSON lines, folders of 10x Genomics, and known classes beside the features."""

import datetime
import gzip
import json
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

from coview import InputError
from coview.io import cells, describe_file, read_labels, read_views
from tests.bad_files import WHOLE, N, cut, hdf5, mat, npz, sheets, tenx

IDS = tuple(f"s{i}" for i in range(N))


def needs_openpyxl():
    return pytest.importorskip("openpyxl", reason="Excel needs openpyxl: pip install 'coview[io]'")


# Excel


def test_a_sheet_is_read_as_a_text_table(tmp_path):
    needs_openpyxl()
    rows = [["sample", "x", "seen", "colour"], ["s", 0.1, True, "red"], [None] * 4, ["t", -2e-300, False, "blue"], []]
    path = sheets(one=rows)(tmp_path)
    loaded = read_views({"a": path}, ids="sample", categories="onehot")
    np.testing.assert_array_equal(loaded.views["a"], [[0.1, 1, 1], [-2e-300, 0, 0]])
    assert loaded.views.columns["a"] == ("x", "seen", "colour")
    assert (loaded.ids, loaded.notes) == (("s", "t"), ())
    assert describe_file(path)["variables"] == {"one": "(A1:D4)"}
    assert describe_file(path)["shape"] == [2, 4]


def test_sheets_are_selected_by_name_and_empty_ones_do_not_count(tmp_path):
    needs_openpyxl()
    path = sheets(rna=[["x"], [1], [2]], empty=[[None, None]], protein=[["", "y"], ["s", 3], ["t", 4]])(tmp_path)
    np.testing.assert_array_equal(read_views({"a": f"{path}::rna"}).views["a"], [[1], [2]])
    loaded = read_views({"a": path}, variables={"a": "protein"})
    np.testing.assert_array_equal(loaded.views["a"], [[3], [4]])
    assert loaded.ids == ("s", "t")
    assert list(describe_file(path)["variables"]) == ["rna", "protein"]
    path = sheets(rna=[["x"], [1], [2]], empty=[])(tmp_path)
    assert read_views({"a": path}).views.n_samples == 2


def test_sheets_without_column_names_dates_and_rows_with_empty_ends(tmp_path):
    needs_openpyxl()
    loaded = read_views({"a": sheets(one=[[1.5, 2], [3, 4]])(tmp_path)})
    assert loaded.views.n_samples == 2
    assert "first line contains numbers" in loaded.notes[0]
    with pytest.raises(InputError, match=r"no value in row 1, column 'y'"):
        read_views({"a": sheets(one=[["x", "y"], [1, 2], [3]])(tmp_path)})
    day = datetime.datetime(2020, 2, 2)
    with pytest.raises(InputError, match=r"strings in the column 'day' \('2020-02-02 00:00:00' in row 0\)"):
        read_views({"a": sheets(one=[["x", "day"], [1, day], [2, day]])(tmp_path)})


def test_a_wrong_stated_range_of_a_sheet_is_not_used(tmp_path):
    """Some programs state the range A1 for every sheet; openpyxl then returns one cell."""
    needs_openpyxl()
    whole = zipfile.ZipFile(sheets(one=[["x", "y"], [1, 2], [3, 4]])(tmp_path))
    with whole, zipfile.ZipFile(tmp_path / "x.xlsx", "w") as changed:
        for name in whole.namelist():
            changed.writestr(name, whole.read(name).replace(b'ref="A1:B3"', b'ref="A1"'))
    np.testing.assert_array_equal(read_views({"a": tmp_path / "x.xlsx"}).views["a"], [[1, 2], [3, 4]])


def with_sheet(path, content):
    """Write a workbook whose only sheet has this XML."""
    whole = zipfile.ZipFile(sheets(one=[["x"], [1]])(path.parent))
    with whole, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as changed:
        for name in whole.namelist():
            changed.writestr(name, content if "worksheets/" in name else whole.read(name))


START = b'<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>'
END = b"</sheetData></worksheet>"


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (b"<row><c><v>1</v></c><c><v>2</v></c></row>" * 500_000, "more than 100 times the bytes of the compressed"),
    ],
)
def test_sheets_that_would_fill_the_memory_are_refused(tmp_path, rows, message):
    needs_openpyxl()
    with_sheet(tmp_path / "x.xlsx", START + rows + END)
    with pytest.raises(InputError, match=message):
        read_views({"a": tmp_path / "x.xlsx"})


@pytest.mark.parametrize("places", [True, False])
def test_cells_without_places_and_empty_cells_far_away_are_read(tmp_path, places):
    needs_openpyxl()
    cells = [b'<c><v>3</v></c><c r="B1"><v>1</v></c>', b"<c><v>5</v></c><c><v>1.5</v></c>", b'<c r="XFD9" s="1"/>']
    rows = [b'<row r="%d">%s</row>' % (i, x) if places else b"<row>%s</row>" % x for i, x in enumerate(cells, start=1)]
    with_sheet(tmp_path / "x.xlsx", START + b"".join(rows) + END)
    np.testing.assert_array_equal(read_views({"a": tmp_path / "x.xlsx"}).views["a"], [[3, 1], [5, 1.5]])


def test_damaged_workbooks_raise_input_errors_only(tmp_path):
    needs_openpyxl()
    rng = np.random.default_rng(0)
    rows = [["sample", "x"], *([name, i] for i, name in enumerate(IDS))]
    whole = Path(sheets(one=rows)(tmp_path)).read_bytes()
    refused = 0
    for _ in range(100):
        damaged = bytearray(whole[: rng.integers(1, len(whole) + 1)] if rng.random() < 0.3 else whole)
        for _ in range(rng.integers(1, 4)):
            damaged[rng.integers(len(damaged))] = rng.integers(256)
        (tmp_path / "x.xlsx").write_bytes(damaged)
        try:
            read_views({"a": tmp_path / "x.xlsx"}, ids="sample")
        except InputError as error:
            refused += 1
            assert "\n" not in str(error)
    assert refused > 20


def test_without_openpyxl_the_extra_is_named(tmp_path, monkeypatch):
    path = sheets(one=[["x"], [1]])(tmp_path) if needs_openpyxl() else ""
    for loaded in [loaded for loaded in sys.modules if loaded.split(".")[0] == "openpyxl"]:
        monkeypatch.setitem(sys.modules, loaded, None)
    with pytest.raises(ImportError, match=r'reading .xlsx files needs openpyxl: pip install "coview\[io\]"'):
        read_views({"a": path})


def test_known_classes_in_a_workbook(tmp_path):
    needs_openpyxl()
    meta = [["sample", "kind", "batch"], ["t", "b", 1], ["s", "a", 1]]
    path = sheets(meta=meta)(tmp_path)
    wanted = {"ids": "sample", "order": ["s", "t"]}
    assert read_labels(path, column="kind", **wanted) == ("a", "b")
    path = sheets(rna=[["x"], [1]], meta=meta, kinds=[["sample", "kind"], ["t", "d"], ["s", "c"]])(tmp_path)
    assert read_labels(f"{path}::meta", column="kind", **wanted) == ("a", "b")
    assert read_labels(path, column="kinds", **wanted) == ("c", "d")
    with pytest.raises(InputError, match=r"has the sheets rna, meta, kinds; .* as bad.xlsx::SHEET::kind"):
        read_labels(path, column="kind", **wanted)


# JSON lines


@pytest.mark.parametrize("ending", [".jsonl", ".JSONL.gz"])
def test_json_lines_are_samples(tmp_path, ending):
    rows = [{"sample": "s", "x": 0.1, "y": True, "1990": 7}, {"y": False, "x": -2e-300, "1990": 8, "sample": "t"}]
    content = "\ufeff" + "\n\n".join(json.dumps(row) for row in rows)
    path = tmp_path / f"x{ending}"
    path.write_bytes(gzip.compress(content.encode()) if ending.endswith("gz") else content.encode())
    loaded = read_views({"a": path}, ids="sample")
    np.testing.assert_array_equal(loaded.views["a"], [[0.1, 1, 7], [-2e-300, 0, 8]])
    assert (loaded.ids, loaded.views.columns["a"]) == (("s", "t"), ("x", "y", "1990"))
    assert loaded.notes == ()
    assert describe_file(path)["format"] == "JSON lines"
    assert read_labels(path, column="1990", ids="sample", order=["t", "s"]) == ("8", "7")


def test_keys_that_are_numbers_are_names(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text('{"1990": 1, "1995": 2}\n{"1990": 3, "1995": 4}\n')
    loaded = read_views({"a": path})
    assert (loaded.views.columns["a"], loaded.notes) == (("1990", "1995"), ())


def test_late_strings_and_missing_values_of_json_lines(tmp_path, monkeypatch):
    monkeypatch.setattr(cells, "_BLOCK_ROWS", 3)
    path = tmp_path / "x.jsonl"
    path.write_text("".join(json.dumps({"u": 1 if i < 7 else "b", "v": i / 2, "w": None}) + "\n" for i in range(10)))
    with pytest.raises(InputError, match=r"column 'u' \('b' in row 7\), which otherwise contains numbers"):
        read_views({"a": path})
    loaded = read_views({"a": path}, categories="onehot")
    assert loaded.views.categories["a"]["u"].values == ("1", "b")
    assert "dropped the column 'w' without any value" in loaded.notes[0]


# 10x Genomics


@pytest.mark.parametrize("zipped", [True, False])
def test_a_folder_of_10x_has_cells_in_rows(tmp_path, zipped):
    path = tenx(zipped=zipped)(tmp_path)
    loaded = read_views({"a": path})
    assert isinstance(loaded.views["a"], sp.csr_array)
    np.testing.assert_array_equal(loaded.views["a"].toarray(), np.column_stack([np.ones(N), 1 + np.arange(N)]))
    assert (loaded.ids, loaded.views.columns["a"]) == (IDS, ("A", "B"))
    described = describe_file(path)
    assert (described["format"], described["shape"]) == ("10x Genomics", [N, 2])


def test_cells_of_10x_are_aligned_by_their_barcodes(tmp_path):
    path = tenx()(tmp_path)
    (tmp_path / "x.csv").write_text("sample,x\n" + "".join(f"{name},{i}\n" for i, name in enumerate(IDS[::-1])))
    loaded = read_views({"a": tmp_path / "x.csv", "b": path}, ids="sample")
    assert loaded.ids == IDS[::-1]
    np.testing.assert_array_equal(loaded.views["b"].toarray()[:, 1], np.arange(N, 0, -1))


def test_the_older_name_and_form_of_the_features_are_read(tmp_path):
    path = tenx(features=None, zipped=False)(tmp_path)
    (tmp_path / "bad" / "genes.tsv").write_text("g0\ng1\n\n")
    assert read_views({"a": path}).views.columns["a"] == ("g0", "g1")


def test_features_with_the_same_name_get_their_ids(tmp_path):
    path = tenx(features="g0\tA\tGene Expression\ng1\tA\tGene Expression\n")(tmp_path)
    loaded = read_views({"a": path})
    assert loaded.views.columns["a"] == ("A (g0)", "A (g1)")
    assert "2 features have the name of another and are named with their ids, as 'A (g0)'" in loaded.notes[0]


def test_types_of_features_are_views(tmp_path):
    path = tenx(features="g0\tA\tGene Expression\ng1\tA\tAntibody Capture\n")(tmp_path)
    sources = {"rna": f"{path}::Gene Expression", "protein": f"{path}::Antibody Capture"}
    loaded = read_views(sources)
    assert loaded.views.columns == {"rna": ("A",), "protein": ("A",)}
    np.testing.assert_array_equal(loaded.views["protein"].toarray().ravel(), 1 + np.arange(N))
    assert describe_file(path)["variables"] == {"Gene Expression": "(1)", "Antibody Capture": "(1)"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"barcodes": "s0\ns1\n"}, r"matrix.mtx.gz\) has 2 rows and 12 columns, but .* 2 features and 2 barcodes"),
        ({"features": "g0\tA\n"}, "1 features and 12 barcodes"),
        ({"matrix": "%%MatrixMarket matrix coordinate integer general\n12 2 1\n1 1 1\n"}, "has 12 rows and 2 columns"),
        ({"matrix": "%%MatrixMarket matrix coordinate integer general\n2 12 2\n1 1 1\n"}, "header states 2 of 3"),
        ({"matrix": "counts"}, r"matrix.mtx.gz\) is not a Matrix Market file"),
        ({"features": "g0\tA\ng1\t\udce4\n"}, r"features.tsv.gz\) is not UTF-8 in line 2"),
    ],
)
def test_files_of_10x_that_do_not_fit_are_refused(tmp_path, options, message):
    odd = {name: text for name, text in options.items() if not text.isascii()}
    path = tenx(**{name: text for name, text in options.items() if name not in odd})(tmp_path)
    for name, text in odd.items():
        (tmp_path / "bad" / f"{name}.tsv.gz").write_bytes(gzip.compress(text.encode("utf-8", "surrogateescape")))
    with pytest.raises(InputError, match=rf"view 'a' \(.*{message}"):
        read_views({"a": path})


def test_a_truncated_file_of_10x_is_refused(tmp_path):
    path = tenx()(tmp_path)
    matrix = tmp_path / "bad" / "matrix.mtx.gz"
    matrix.write_bytes(cut(matrix.read_bytes()))
    with pytest.raises(InputError, match=r"view 'a' \(.*bad\) cannot be read"):
        read_views({"a": path})


# Known classes beside the features


def fill_obs(group, count=N, **columns):
    import h5py

    obs = group.create_group("obs")
    obs.attrs["_index"] = "names"
    obs.create_dataset("names", data=IDS[:count], dtype=h5py.string_dtype())
    for name, values in columns.items():
        obs[name] = values
    group["X"] = WHOLE[:count]


def test_columns_of_obs_written_by_anndata_and_mudata_are_classes(tmp_path):
    anndata, mudata = pytest.importorskip("anndata"), pytest.importorskip("mudata")
    pd = pytest.importorskip("pandas")
    kinds = [f"k{i % 3}" for i in range(N)]
    columns = {
        "kind": pd.Categorical(kinds),
        "level": pd.Categorical(np.arange(N) % 2),
        "number": np.arange(N),
        "seen": np.arange(N) > 2,
        "text": np.array(kinds, object),
        "nullable": pd.array(range(N), dtype="Int64"),
    }
    data = anndata.AnnData(WHOLE, obs=pd.DataFrame(columns, index=list(IDS)))
    data.write_h5ad(tmp_path / "x.h5ad")
    expected = {
        "kind": kinds,
        "level": [str(i % 2) for i in range(N)],
        "number": [str(i) for i in range(N)],
        "seen": [str(i > 2) for i in range(N)],
        "text": kinds,
        "nullable": [str(i) for i in range(N)],
    }
    for column, classes in expected.items():
        assert read_labels(tmp_path / "x.h5ad", column=column) == tuple(classes), column
    assert read_labels(f"{tmp_path / 'x.h5ad'}::kind") == tuple(kinds)
    ordered = read_labels(tmp_path / "x.h5ad", column="kind", ids="sample", order=IDS[::-1])
    assert ordered == tuple(kinds[::-1])
    mudata.set_options(pull_on_update=False)
    other = anndata.AnnData(WHOLE[:5], obs=pd.DataFrame({"kind": list("vwxyz")}, index=[f"t{i}" for i in range(5)]))
    other.var_names = ["p0", "p1"]
    both = mudata.MuData({"rna": data, "atac": other})
    both.obs["batch"] = [f"b{i % 2}" for i in range(N + 5)]
    both.obs["rna:kind"] = [*kinds, *[None] * 5]  # has no value for other cells
    both.write(tmp_path / "x.h5mu")
    assert read_labels(tmp_path / "x.h5mu", column="rna:kind") == tuple(kinds)
    assert read_labels(tmp_path / "x.h5mu", column="atac:kind") == tuple("vwxyz")
    assert len(read_labels(tmp_path / "x.h5mu", column="batch")) == N + 5


def test_categories_as_older_versions_of_anndata_store_them(tmp_path):
    pytest.importorskip("h5py")

    def fill(file):
        fill_obs(file, kind=np.arange(N) % 2 - (np.arange(N) == 3) * 2)
        file["obs/__categories/kind"] = ["even", "odd"]
        file["obs/kind"].attrs["categories"] = file["obs/__categories/kind"].ref

    path = hdf5(fill)(tmp_path)
    with pytest.raises(InputError, match="no class in row 3"):
        read_labels(path)


@pytest.mark.parametrize(
    ("fill", "column", "message"),
    [
        (lambda f: fill_obs(f), "kind", "has no columns in obs"),
        (lambda f: fill_obs(f, a=WHOLE[:, 0], b=WHOLE[:, 1]), None, "the 2 columns 'a', 'b' in obs; name that of"),
        (lambda f: fill_obs(f, kind=WHOLE[:, 0]), "kinds", "no column 'kinds' in obs; did you mean 'kind'"),
        (lambda f: fill_obs(f, kind=WHOLE[1:, 0]), "kind", "12 names for 11 rows"),
        (lambda f: fill_obs(f, kind=WHOLE), "kind", "2-D values in /obs/kind"),
        (lambda f: fill_obs(f) or f.create_group("obs/kind"), "kind", "no classes in /obs/kind"),
        (lambda f: f.create_dataset("obs", data=np.zeros(N, [("kind", "i4")])), "kind", "before 0.7"),
    ],
)
def test_columns_of_obs_that_are_not_classes(tmp_path, fill, column, message):
    pytest.importorskip("h5py")
    path = hdf5(fill)(tmp_path)
    with pytest.raises(InputError, match=rf"file of known classes \(.*bad.h5ad\) .*{message}"):
        read_labels(path, column=column)


def test_codes_without_a_category_are_refused(tmp_path):
    pytest.importorskip("h5py")

    def fill(file):
        fill_obs(file)
        file["obs/kind/codes"], file["obs/kind/categories"] = np.full(N, 7), ["a", "b"]

    with pytest.raises(InputError, match="codes of categories that do not exist"):
        read_labels(hdf5(fill)(tmp_path), column="kind")


@pytest.mark.parametrize("write", [mat, npz])
def test_known_classes_are_a_variable_of_several(tmp_path, write):
    path = write(X=WHOLE, truth=np.arange(N) % 2)(tmp_path)
    expected = tuple(str(i % 2) for i in range(N))
    assert read_labels(path, column="truth") == expected
    assert read_labels(f"{path}::truth") == expected
    with pytest.raises(InputError, match=r"no (variable|array) 'kind'; it has X"):
        read_labels(path, column="kind")


def test_a_column_of_an_array_is_refused(tmp_path):
    np.save(tmp_path / "x.npy", np.arange(3))
    with pytest.raises(InputError, match="has no column 'kind'; give a table"):
        read_labels(tmp_path / "x.npy", column="kind")
    scipy.io.savemat(tmp_path / "x.mat", {"truth": np.arange(3)})
    with pytest.raises(InputError, match="has no column 'kind'; give a table"):
        read_labels(tmp_path / "x.mat", column="kind")


# Matrix Market


def test_matrix_market_files_of_a_wrong_length_or_width_are_refused(tmp_path):
    values = sp.random_array((9, 7), density=0.5, rng=np.random.default_rng(0), format="csr")
    scipy.io.mmwrite(tmp_path / "x.mtx", values, comment="one\ntwo", precision=17)
    np.testing.assert_array_equal(read_views({"a": tmp_path / "x.mtx"}).views["a"].toarray(), values.toarray())
    content = (tmp_path / "x.mtx").read_text()
    for changed, message in [
        (content + "1 1 1\n", "has more lines of 3 numbers"),
        (content.rstrip().rpartition("\n")[0], "has 31 lines of 3 numbers; its header states 32 of 3"),
        (content.replace("\n1 ", "\n1 1 ", 1), "number"),
    ]:
        (tmp_path / "x.mtx").write_text(changed)
        with pytest.raises(InputError, match=message):
            read_views({"a": tmp_path / "x.mtx"})
