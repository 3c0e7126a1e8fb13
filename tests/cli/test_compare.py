"""`coview compare`."""

import json

import numpy as np
import pytest

from coview.cli.options import comparable_names
from coview.registry import METHODS, Entry
from tests.cli.running import call, refused


def test_the_command_offers_every_comparable_method():
    assert list(comparable_names()) == ["all", *METHODS]


def test_methods_are_compared(data, tmp_path, capsys):
    truth = f"--truth={data['folder']}/train/truth.csv::kind"
    command = ["compare", *data["train_files"], "--ids=id", "-k3", "--methods=coview,KSC,opmc", truth]
    code, out, err = call(capsys, *command, "-o", tmp_path / "found")
    assert code == 0
    assert [line.split()[1] for line in out.splitlines() if "1.000" in line] == ["coview", "ksc", "opmc"]
    assert "Note: ksc: clusters one table" in err
    assert "coview: " not in err  # its number of clusters is given, as that of the others
    assert "Accuracy of a single cluster (fraction of the largest class): 36%" in out
    stored = json.loads((tmp_path / "found" / "comparison.json").read_text())
    assert stored["preprocess"] == {"a": None, "b": None, "c": None}  # the default of each method
    assert "<html" in (tmp_path / "found" / "comparison.html").read_text()
    code, out, _ = call(capsys, *command, "--json")
    answer = json.loads(out)
    assert [m["ari"] for m in answer["methods"]] == [1.0, 1.0, 1.0]
    assert (answer["output"], answer["files"]) == (None, [])


def test_each_view_has_its_own_preprocessing(data, capsys):
    command = [
        "compare",
        *data["train_files"],
        "--ids=id",
        "-k3",
        "--methods=opmc",
        "--preprocess=a=l2",
        "--preprocess=b=pca2",
    ]
    code, out, _ = call(capsys, *command, "--json")
    assert code == 0
    assert json.loads(out)["preprocess"] == {"a": "l2", "b": "pca2", "c": None}


def test_a_comparison_continues_after_a_method_fails(data, tmp_path, capsys, monkeypatch):
    def missing(comparison, path):
        raise ImportError("no jinja2")

    monkeypatch.setitem(METHODS.entries, "opmc", Entry("tests.test_compare:Failing", "raises an error"))
    monkeypatch.setattr("coview.report.write_report", missing)
    code, out, err = call(
        capsys, "compare", *data["train_files"], "--ids=id", "-k3", "--methods=opmc,tmvkscr", "-o", tmp_path / "found"
    )
    assert code == 0
    assert "Note: opmc: too little memory" in err
    assert "comparison.html is not written: no jinja2" in err
    assert f"Written to {tmp_path / 'found'}/: comparison.json\n" in out


def test_more_clusters_than_half_of_the_samples_give_one_note(data, capsys):
    code, _, err = call(capsys, "compare", *data["train_files"], "--ids=id", "-k50", "--methods=tmvkscr,opmc")
    assert code == 0
    note = "Note: 50 clusters are requested for 90 training samples, so some clusters can have only one sample; "
    assert err.count("requested") == 1
    assert note + "ask for fewer clusters or give more samples\n" in err


@pytest.mark.parametrize("option", ["--impute=median", "--impute=b=nearest", "--preprocess=median+standard"])
def test_empty_cells_are_filled_for_every_method(data, tmp_path, capsys, option):
    x = np.array(data["train"]["b"], dtype=float)
    x[[0, 7], [0, 1]] = np.nan
    np.save(tmp_path / "b.npy", x)
    command = ["compare", f"--view=b={tmp_path}/b.npy", data["train_files"][0], "--ids=id", "-k3"]
    code, out, err = call(capsys, *command, option, "--methods=coview,ksc,opmc", "--json")
    assert code == 0, err
    assert [method["error"] for method in json.loads(out)["methods"]] == [None, None, None]
    assert "no value in 2 cells" in refused(capsys, *command)


def test_a_note_on_several_methods_is_printed_once(data, tmp_path, capsys):
    x = np.array(data["train"]["b"], dtype=float)
    x[4] = np.nan
    np.save(tmp_path / "b.npy", x)
    command = ["compare", f"--view=b={tmp_path}/b.npy", data["train_files"][0], "--ids=id", "-k3"]
    code, _, err = call(capsys, *command, "--methods=ksc,mvksc,coreg,opmc")
    assert code == 0
    assert err.count("needs all views of each sample") == 1
    assert "Note: ksc, mvksc, coreg, opmc: needs all views of each sample, and 1 of 90 samples lack some" in err
