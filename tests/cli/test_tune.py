"""Settings chosen from the data: what is tried, told and written."""

import csv
import json

import numpy as np
import pytest

from coview import FixedSize, InputError, Tuned
from coview.cli.settings import Search, cluster_numbers
from coview.cli.tell import tell_search
from coview.cli.terminal import Terminal
from coview.persist import load
from coview.summary import Summary
from tests.cli.running import call, refused
from tests.summaries import make_split_tuning

pytest.importorskip("pyarrow", reason="tables need pyarrow: pip install 'coview[io]'")


def test_tune_writes_what_the_library_finds(data, tmp_path, capsys):
    run = tmp_path / "run"
    truth = f"--truth={data['folder']}/train/truth.csv::kind"
    code, out, err = call(capsys, "tune", *data["train_files"], "--ids=id", truth, "-k", "2..4", "-o", run)
    assert (code, err) == (0, "")
    model = Tuned(range(2, 5), random_state=0).fit(data["train"])
    assert model.reason_ in out
    assert "Settings for 3 clusters" in out
    assert "│ → graph · standard · ρ 1" in out
    assert "Numbers of clusters" in out
    assert "ARI 1.000" in out
    assert f"{run}/: model.safetensors, labels.csv, summary.json, tuning.csv, report.html" in out
    loaded = load(run / "model.safetensors")
    assert repr(loaded) == repr(model)
    assert loaded.progress is loaded.estimator_.estimator.progress is None
    np.testing.assert_array_equal(loaded.predict(data["new"]), model.predict(data["new"]))
    assert "How the settings were chosen" in (run / "report.html").read_text()


def test_all_that_was_tried_is_written_as_a_table(data, tmp_path, capsys):
    run = tmp_path / "run"
    command = ["tune", *data["train_files"], "--ids=id", "-k", "2..3", "--budget=small", "--no-report", "-q"]
    assert call(capsys, *command, "-o", run) == (0, "", "")
    table = Tuned([2, 3], budget="small", random_state=0).fit(data["train"]).evaluations_
    with (run / "tuning.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [float(row["criterion"]) for row in rows] == [row.criterion for row in table]
    assert [[row[f"preparation {view}"] for view in "abc"] for row in rows] == [list(row.steps) for row in table]
    assert [[float(row[f"kappa {view}"]) for view in "abc"] for row in rows] == [list(row.kappa) for row in table]
    tuning = Summary.from_json((run / "summary.json").read_text()).tuning
    assert [row["chosen"] for row in rows].index("1") == tuning.selected


def test_tune_finds_the_number_unless_told_and_answers_machines(data, tmp_path, capsys):
    command = ["tune", *data["train_files"], "--ids=id", "--budget=small", "--no-report", "--json", "--n-train=60"]
    code, out, err = call(capsys, *command, "-o", tmp_path / "run")
    assert (code, err) == (0, "")
    answer = json.loads(out)
    assert (answer["n_clusters"], answer["n_train"], answer["n_samples"]) == (3, 60, 90)
    assert {"reason", "kernel", "steps", "rho", "kappa", "criterion", "n_tried"} == set(answer["tuning"])
    model = load(tmp_path / "run" / "model.safetensors")
    assert isinstance(model, FixedSize)
    assert isinstance(model.estimator_, Tuned)
    labels = tmp_path / "labels.npy"
    assert call(capsys, "predict", tmp_path / "run", *data["new_files"], "--ids=id", "-o", labels, "-q")[0] == 0
    np.testing.assert_array_equal(np.load(labels), model.predict(data["new"]))


def test_one_number_needs_no_table_of_numbers(data, tmp_path, capsys):
    command = ["tune", *data["train_files"], "--ids=id", "-k3", "--budget=small", "--no-report", "-o", tmp_path / "run"]
    code, out, _ = call(capsys, *command)
    assert code == 0
    assert "Settings for 3 clusters" in out
    assert "Numbers of clusters" not in out


def test_mistakes_are_answered_by_one_line(data, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    files = data["train_files"]
    for typed, sentence in [
        (["tune", *files, "--budget=huge"], "--budget 'huge' is unknown"),
        (["tune", *files, "-k", "3..x"], "-k '3..x' must be a number of at least 2"),
        (["tune", *files, "--ids=id", "-k", "80..95"], "too few for n_clusters=95"),
        (["tune", *files, "--select=anchors"], "say how many with --n-train"),
        (["fit", *files, "-k", "auto", "--rho=1"], "-k chooses from several numbers only where all settings are"),
        (["fit", *files, "-k", "2..4", "-m", "opmc"], "give one number, or leave out --method"),
    ]:
        assert sentence in refused(capsys, *typed), typed


@pytest.mark.parametrize(
    ("text", "expected"), [(None, None), ("auto", "auto"), ("6", 6), ("2..12", range(2, 13)), ("4..4", range(4, 5))]
)
def test_numbers_of_clusters(text, expected):
    assert cluster_numbers(text) == expected


@pytest.mark.parametrize("text", ["", "1", "0", "-3", "2.5", "six", "..4", "3..", "4..3", "1..3", "2..3..4"])
def test_mistyped_numbers_of_clusters_are_explained(text):
    with pytest.raises(InputError, match="must be a number of at least 2, numbers to choose from such as"):
        cluster_numbers(text)


def test_a_search_of_some_samples():
    estimator, notes = Search(4, "small", "200", "entropy", 7).estimator(("text",))
    tuned = Tuned(4, budget="small", random_state=7)
    assert repr(estimator) == repr(FixedSize(tuned, n_train=200, select="entropy", random_state=7))
    assert notes == ()


def test_each_setting_is_told_once_by_all_of_its_rounds(capsys):
    tuning = make_split_tuning()
    tell_search(Terminal(), tuning)
    lines = [line for line in capsys.readouterr().out.splitlines() if "graph · l2 · ρ" in line]
    assert [line.split("│")[3].strip() for line in lines[:2]] == ["0.875", "0.870"]
    assert "→" in lines[0]
    labels = [line.split("│")[1].strip(" →") for line in lines]
    assert len(labels) == len(set(labels))
