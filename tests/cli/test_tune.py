"""`coview tune`: settings selected from the data."""

import csv
import json

import numpy as np
import pytest

from coview import FixedSize, InputError, Tuned
from coview.cli.model import ModelOptions
from coview.cli.output import print_tuning
from coview.cli.parse import parse_n_clusters
from coview.cli.terminal import Terminal
from coview.persist import load
from coview.summary import Summary
from tests.cli.running import call, refused
from tests.summaries import make_split_tuning

pytest.importorskip("pyarrow", reason="tables need pyarrow: pip install 'coview[io]'")


def test_tune_writes_the_results_of_the_library(data, tmp_path, capsys):
    run = tmp_path / "run"
    truth = f"--truth={data['folder']}/train/truth.csv::kind"
    code, out, err = call(capsys, "tune", *data["train_files"], "--ids=id", truth, "-k", "2..4", "-o", run)
    assert (code, err) == (0, "Note: the view 'b' has no ids: its samples are paired by row order\n")
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
    assert "Selection of settings" in (run / "report.html").read_text()


def test_all_evaluated_settings_are_written_as_a_table(data, tmp_path, capsys):
    run = tmp_path / "run"
    command = ["tune", *data["train_files"], "--ids=id", "-k", "2..3", "--no-report", "-q"]
    assert call(capsys, *command, "-o", run) == (0, "", "")
    table = Tuned([2, 3], random_state=0).fit(data["train"]).evaluations_
    with (run / "tuning.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [float(row["criterion"]) for row in rows] == [row.criterion for row in table]
    assert [[row[f"preprocess {view}"] for view in "abc"] for row in rows] == [list(row.steps) for row in table]
    assert [[float(row[f"kappa {view}"]) for view in "abc"] for row in rows] == [list(row.kappa) for row in table]
    tuning = Summary.from_json((run / "summary.json").read_text()).tuning
    assert [row["selected"] for row in rows].index("1") == tuning.selected


def test_tune_selects_the_number_by_default_and_prints_json(data, tmp_path, capsys):
    command = ["tune", *data["train_files"], "--ids=id", "--no-report", "--json", "--n-train=60"]
    code, out, err = call(capsys, *command, "-o", tmp_path / "run")
    assert (code, err) == (0, "")
    answer = json.loads(out)
    assert (answer["n_clusters"], answer["n_train"], answer["n_samples"]) == (3, 60, 90)
    assert {"reason", "kernel", "steps", "rho", "kappa", "criterion", "n_evaluated"} == set(answer["tuning"])
    model = load(tmp_path / "run" / "model.safetensors")
    assert isinstance(model, FixedSize)
    assert isinstance(model.estimator_, Tuned)
    labels = tmp_path / "labels.npy"
    assert call(capsys, "predict", tmp_path / "run", *data["new_files"], "--ids=id", "-o", labels, "-q")[0] == 0
    np.testing.assert_array_equal(np.load(labels), model.predict(data["new"]))


def test_one_number_of_clusters_gives_no_table_of_numbers(data, tmp_path, capsys):
    command = ["tune", *data["train_files"], "--ids=id", "-k3", "--no-report", "-o", tmp_path / "run"]
    code, out, _ = call(capsys, *command)
    assert code == 0
    assert "Settings for 3 clusters" in out
    assert "Numbers of clusters" not in out


def test_mistakes_give_one_line(data, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    files = data["train_files"]
    for typed, sentence in [
        (["tune", *files, "--budget=huge"], "--budget 'huge' is unknown"),
        (["tune", *files, "-k", "3..x"], "-k 3..x: expected an integer of at least 2"),
        (["tune", *files, "--ids=id", "-k", "80..95"], "too few for -k 95"),
        (["tune", *files, "--select=kmeans"], "give their number with --n-train"),
        (["fit", *files, "-k", "auto", "-m", "tmvkscr"], "the method tmvkscr needs one number of clusters, as in -k 6"),
        (["fit", *files, "-k", "2..4", "-m", "opmc"], "the method opmc needs one number of clusters, as in -k 6"),
    ]:
        assert sentence in refused(capsys, *typed), typed


@pytest.mark.parametrize(
    ("text", "expected"), [(None, None), ("auto", "auto"), ("6", 6), ("2..12", range(2, 13)), ("4..4", range(4, 5))]
)
def test_numbers_of_clusters(text, expected):
    assert parse_n_clusters(text) == expected


@pytest.mark.parametrize("text", ["", "1", "0", "-3", "2.5", "six", "..4", "3..", "4..3", "1..3", "2..3..4"])
def test_mistyped_numbers_of_clusters_are_explained(text):
    with pytest.raises(InputError, match=r"expected an integer of at least 2, a range such as 2\.\.8, or auto"):
        parse_n_clusters(text)


def test_tuned_can_train_on_some_samples():
    estimator, notes = ModelOptions(n_clusters="4", n_train="200", select="entropy", seed="7").estimator(("text",))
    tuned = Tuned(4, random_state=7)
    assert repr(estimator) == repr(FixedSize(tuned, n_train=200, select="entropy", random_state=7))
    assert notes == ()


def test_each_setting_is_printed_once_with_the_mean_over_its_rounds(capsys):
    tuning = make_split_tuning()
    print_tuning(Terminal(), tuning)
    lines = [line for line in capsys.readouterr().out.splitlines() if "graph · l2 · ρ" in line]
    assert [line.split("│")[3].strip() for line in lines[:2]] == ["0.875", "0.870"]
    assert "→" in lines[0]
    labels = [line.split("│")[1].strip(" →") for line in lines]
    assert len(labels) == len(set(labels))
