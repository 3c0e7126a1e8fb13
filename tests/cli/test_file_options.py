"""Files as people have them, in the command: decimal commas, sheets, 10x folders, transposed tables, classes in obs."""

import json

import numpy as np
import pytest

from coview.io import read_labels
from tests.bad_files import sheets, tenx
from tests.cli.running import call, refused
from tests.conftest import make_blobs

N = 60


def without_stable(path):
    """Return the labels without the last column, which new samples do not have."""
    return "".join(line.rpartition(",")[0] + "\n" for line in path.read_text().splitlines())


@pytest.fixture
def blobs(tmp_path, monkeypatch):
    """Views `a` and `b` of the same samples, in the folder of the test."""
    monkeypatch.chdir(tmp_path)
    views, truth = make_blobs(N)
    return views["a"], views["b"], truth


def write_table(path, values, *, delimiter=",", decimal=".", transposed=False):
    rows = [["sample", *(f"x{j}" for j in range(values.shape[1]))]]
    rows += [[f"s{i}", *(repr(x).replace(".", decimal) for x in row)] for i, row in enumerate(values.tolist())]
    rows = list(zip(*rows, strict=True)) if transposed else rows
    path.write_text("\n".join(delimiter.join(row) for row in rows) + "\n")


def fit(capsys, *typed):
    code, out, err = call(
        capsys, "fit", *typed, "-k3", "--method=opmc", "--no-report", "--force", "-o", "run", "--json"
    )
    assert code == 0, err
    return json.loads(out)


def test_decimal_commas_are_noted_and_predicted(blobs, tmp_path, capsys):
    a, _, truth = blobs
    write_table(tmp_path / "plain.csv", a)
    write_table(tmp_path / "comma.csv", a, delimiter=";", decimal=",")
    (tmp_path / "truth.csv").write_text("sample;kind\n" + "".join(f"s{i};k{t}\n" for i, t in enumerate(truth)))
    plain = fit(capsys, "--view=a=plain.csv", "--ids=sample")
    answer = fit(capsys, "--view=a=comma.csv", "--ids=sample", "--truth=truth.csv::kind")
    assert answer["sizes"] == plain["sizes"]
    assert answer["truth"]["ari"] > 0.8  # one view does not separate all clusters
    assert "view 'a' (comma.csv): the columns are separated by semicolons" in answer["notes"]
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert any("commas are read as decimal marks" in note for note in summary["notes"])
    for options in ([], ["--decimal=,"]):
        typed = ["predict", "run", "--view=a=comma.csv", "--ids=sample", *options, "--force", "-o", "labels.csv", "-q"]
        assert call(capsys, *typed) == (0, "", "")
        assert (tmp_path / "labels.csv").read_text() == without_stable(tmp_path / "run" / "labels.csv")


@pytest.mark.parametrize("most", [2**29, 0])
def test_transposed_files_are_suggested_read_and_predicted(blobs, tmp_path, capsys, monkeypatch, most):
    a, b, _ = blobs
    monkeypatch.setattr("coview.cli.predict._IN_MEMORY", most)  # 0: arrays would be read in blocks
    np.save(tmp_path / "a.npy", a)
    np.save(tmp_path / "b.npy", b.T)
    files = ["--view=a=a.npy", "--view=b=b.npy"]
    assert "--transpose b" in refused(capsys, "fit", *files, "-k3", "-o", "run")
    answer = fit(capsys, *files, "--transpose=b")
    assert answer["n_samples"] == N
    assert "--transpose b" in refused(capsys, "predict", "run", *files, "-o", "labels.csv")
    assert call(capsys, "predict", "run", *files, "--transpose=b", "-o", "labels.csv", "-q") == (0, "", "")
    assert read_labels("labels.csv", column="cluster") == read_labels("run/labels.csv", column="cluster")
    fit(capsys, "--view=b=b.npy", "--transpose=b")
    assert "--transpose b" in refused(capsys, "predict", "run", "--view=b=b.npy", "-o", "labels2.csv")


def test_transposed_tables_are_predicted_by_their_names(blobs, tmp_path, capsys):
    a, _, _ = blobs
    write_table(tmp_path / "a.csv", a, transposed=True)
    fit(capsys, "--view=a=a.csv", "--transpose=a")
    assert "--transpose a" in refused(capsys, "predict", "run", "--view=a=a.csv", "-o", "labels.csv")
    assert call(capsys, "predict", "run", "--view=a=a.csv", "--transpose=a", "-o", "labels.csv", "-q") == (0, "", "")
    assert (tmp_path / "labels.csv").read_text() == without_stable(tmp_path / "run" / "labels.csv")


def test_classes_in_sheets_and_variables(blobs, tmp_path, capsys):
    pytest.importorskip("openpyxl")
    a, b, truth = blobs
    names = [f"s{i}" for i in range(N)]
    meta = [["sample", "kind", "batch"], *([name, f"k{t}", 1] for name, t in zip(names, truth, strict=True))]
    rna = [["sample", "x", "y"], *([name, *row[:2]] for name, row in zip(names, a.tolist(), strict=True))]
    sheets(rna=rna, meta=meta)(tmp_path)
    answer = fit(capsys, "--view=a=bad.xlsx::rna", "--ids=sample", "--truth=bad.xlsx::meta::kind")
    assert answer["truth"] is not None
    err = refused(capsys, "fit", "--view=a=bad.xlsx::rna", "--ids=sample", "--truth=bad.xlsx::kind", "-k3", "-o", "r")
    assert "bad.xlsx::SHEET::kind" in err
    np.savez(tmp_path / "x.npz", a=a, b=b, truth=truth)
    answer = fit(capsys, "--view=a=x.npz::a", "--view=b=x.npz::b", "--truth=x.npz::truth")
    assert answer["truth"]["ari"] == 1


def test_classes_in_obs(blobs, tmp_path, capsys):
    anndata, mudata = pytest.importorskip("anndata"), pytest.importorskip("mudata")
    pd = pytest.importorskip("pandas")
    a, b, truth = blobs
    obs = pd.DataFrame({"cell_type": pd.Categorical([f"k{t}" for t in truth])}, index=[f"s{i}" for i in range(N)])
    data = anndata.AnnData(a, obs=obs, var=pd.DataFrame(index=[f"g{j}" for j in range(a.shape[1])]))
    other = anndata.AnnData(b, obs=obs[[]], var=pd.DataFrame(index=[f"p{j}" for j in range(b.shape[1])]))
    data.write_h5ad(tmp_path / "x.h5ad")
    mudata.set_options(pull_on_update=False)
    mudata.MuData({"rna": data, "protein": other}).write(tmp_path / "x.h5mu")
    views = ["--view=rna=x.h5mu::rna", "--view=protein=x.h5mu::protein"]
    for truth_file in ("x.h5ad::cell_type", "x.h5mu::rna:cell_type"):
        answer = fit(capsys, *views, f"--truth={truth_file}")
        assert answer["truth"]["ari"] == 1
    err = refused(capsys, "fit", *views, "--truth=x.h5mu::cell_type", "-k3", "-o", "other")
    assert "did you mean 'rna:cell_type'?" in err


def test_a_folder_of_10x_is_a_view(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tenx()(tmp_path)
    answer = fit(capsys, "--view=a=bad")
    assert answer["n_samples"] == 12
    assert (
        (tmp_path / "run" / "labels.csv")
        .read_text()
        .startswith("sample,cluster,membership,second_cluster,novelty,best_view,stability\ns0,")
    )
    assert call(capsys, "predict", "run", "--view=a=bad", "-o", "labels.csv", "-q") == (0, "", "")
    code, out, _ = call(capsys, "info", "bad", "--json")
    assert (code, json.loads(out)["format"]) == (0, "10x Genomics")


def test_wrong_options_of_files_give_one_line(blobs, tmp_path, capsys):
    np.save(tmp_path / "a.npy", blobs[0])
    for options, sentence in [
        (["--decimal=;"], "--decimal ;: expected a point or a comma, as in --decimal ,"),
        (["--transpose=aa"], "--transpose 'aa' is unknown; did you mean 'a'? Known: a"),
    ]:
        assert sentence in refused(capsys, "fit", "--view=a=a.npy", *options, "-k3", "-o", "run")


@pytest.fixture
def with_other_columns(blobs, tmp_path):
    """The files a.csv and b.csv, with ids, a date, and a column `note` of strings, which is refused."""
    for name, x in zip("ab", blobs[:2], strict=True):
        write_table(tmp_path / f"{name}.csv", x)
        first, *rows = (tmp_path / f"{name}.csv").read_text().splitlines()
        rows = [f"{first},day,note", *(f"{row},2024-01-{i % 28 + 1:02},n{i % 40}" for i, row in enumerate(rows))]
        (tmp_path / f"{name}.csv").write_text("\n".join(rows) + "\n")
    return ["--view=a=a.csv", "--view=b=b.csv", "--ids=sample"]


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        (["--drop=note", "--drop=day", "--drop=b=x0"], {"a": 4, "b": 5}),
        (["--columns=a=x2,x1", "--columns=b=x0"], {"a": 2, "b": 1}),
        (["--columns=a=x2, x1", '--columns=b=x3, "x0"'], {"a": 2, "b": 2}),
        (["--columns=x0,x1,day", "--drop=day"], {"a": 2, "b": 2}),
    ],
)
def test_columns_are_dropped_or_kept_by_every_command(with_other_columns, capsys, typed, expected):
    refused(capsys, "fit", *with_other_columns, "-k3")
    fit(capsys, *with_other_columns, *typed)
    found = {view["name"]: view["n_features"] for view in json.loads(call(capsys, "info", "run", "--json")[1])["views"]}
    assert found == expected
    compared = call(capsys, "compare", *with_other_columns, *typed, "-k3", "--methods=opmc", "--json")[1]
    assert json.loads(compared)["views"] == expected
    for again in ([], typed):  # the model has the names of its columns
        assert call(capsys, "predict", "run", *with_other_columns, *again, "--force", "-q")[0] == 0


@pytest.mark.parametrize(
    ("typed", "sentence"),
    [
        ("--drop=nte", "--drop nte: no view has this column; did you mean 'note'?"),
        ("--drop=a=x5", "view 'a' (a.csv) has no column 'x5'. It has the 7 columns 'x0'"),
        ("--drop=bb=x1", "--drop bb=x1: there is no view 'bb'; did you mean 'b'?"),
        ("--drop=sample", "--drop sample: this column has the ids (--ids sample); leave out one of the two"),
        ("--drop=a=sample", "--drop a=sample: this column has the ids (--ids sample); leave out one of the two"),
        ("--columns=a=x1,nte", "view 'a' (a.csv) has no column 'nte'; did you mean 'note'? It has the 7 columns 'x0'"),
        ("--columns=aa=x1", "--columns names the view 'aa'"),
    ],
)
def test_unknown_columns_are_refused(with_other_columns, capsys, typed, sentence):
    assert sentence in refused(capsys, "fit", *with_other_columns, "-k3", typed)


def test_names_of_columns_may_have_commas_and_equals_signs(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = np.random.default_rng(0).normal(size=(30, 3)).tolist()
    lines = ['"a,b",c=d,e', *(",".join(map(repr, row)) for row in rows)]
    (tmp_path / "x.csv").write_text("\n".join(lines) + "\n")
    for typed in ('--columns=x="a,b",c=d', "--drop=e"):
        fit(capsys, "--view=x=x.csv", typed)
        (view,) = json.loads(call(capsys, "info", "run", "--json")[1])["views"]
        assert view["columns"] == ["a,b", "c=d"]
