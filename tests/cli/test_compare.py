"""`coview compare`."""

import json

from coview.cli.compare import comparable_names
from coview.registry import METHODS, Entry
from tests.cli.running import call


def test_the_command_offers_every_comparable_method():
    assert list(comparable_names()) == ["all", "tuned", *METHODS]


def test_methods_are_compared(data, tmp_path, capsys):
    truth = f"--truth={data['folder']}/train/truth.csv::kind"
    command = ["compare", *data["train_files"], "--ids=id", "-k3", "--methods=tuned,KSC,opmc", truth]
    code, out, err = call(capsys, *command, "-o", tmp_path / "found")
    assert code == 0
    assert [line.split()[1] for line in out.splitlines() if "1.000" in line] == ["tuned", "ksc", "opmc"]
    assert "Note: ksc: clusters one table" in err
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
