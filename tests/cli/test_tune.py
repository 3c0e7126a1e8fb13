"""`coview tune`: the number of clusters selected from the data."""

import csv
import json
import re
from dataclasses import fields, replace

import numpy as np
import pytest

from coview import FixedSize, InputError, Tuned
from coview.cli.model import ModelOptions
from coview.cli.output import describe_method, print_tuning
from coview.cli.parse import parse_n_clusters
from coview.cli.terminal import Terminal
from coview.persist import load
from coview.summary import Summary
from tests.cli.running import call, refused
from tests.summaries import make_summary, make_tuning

pytest.importorskip("pyarrow", reason="tables need pyarrow: pip install 'coview[io]'")


def test_tune_writes_the_results_of_the_library(data, tmp_path, capsys):
    run = tmp_path / "run"
    truth = f"--truth={data['folder']}/train/truth.csv::kind"
    code, out, err = call(capsys, "tune", *data["train_files"], "--ids=id", truth, "-k", "2..4", "-o", run)
    assert (code, err) == (0, "Note: the view 'b' has no ids: its samples are paired by row order\n")
    model = Tuned(range(2, 5), random_state=0).fit(data["train"])
    assert model.reason_ in out
    assert "Models for 3 clusters" in out
    assert "│ consensus " in out
    assert "Numbers of clusters" in out
    assert re.search(r"│ → 3 +│ [\d.]+ +│ 100% ", out)
    assert "ARI 1.000" in out
    files = "model.safetensors, labels.csv, labels.csv-metadata.json, map.csv, summary.json, tuning.csv, report.html"
    assert f"{run}/: {files}" in out
    loaded = load(run / "model.safetensors")
    assert repr(loaded) == repr(model)
    assert loaded.progress is loaded.estimator_.estimators_[0].progress is None
    np.testing.assert_array_equal(loaded.predict(data["new"]), model.predict(data["new"]))
    assert "Models and number of clusters" in (run / "report.html").read_text()


def test_all_models_and_numbers_are_written_as_a_table(data, tmp_path, capsys):
    run = tmp_path / "run"
    command = ["tune", *data["train_files"], "--ids=id", "-k", "2..3", "--no-report", "-q"]
    assert call(capsys, *command, "-o", run) == (0, "", "")
    table = Tuned([2, 3], random_state=0).fit(data["train"]).evaluations_
    with (run / "tuning.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["selected", *(field.name for field in fields(table[0]))]
    assert [(row["model"], int(row["n_clusters"])) for row in rows] == [(row.model, row.n_clusters) for row in table]
    for name in ("stability", "model_agreement", "size_entropy", "eigengap", "weight", "criterion"):
        written = [None if row[name] == "" else float(row[name]) for row in rows]
        assert written == [getattr(row, name) for row in table]
    tuning = Summary.from_json((run / "summary.json").read_text()).tuning
    assert [row["selected"] for row in rows].index("1") == tuning.selected


def test_tune_selects_the_number_by_default_and_prints_json(data, tmp_path, capsys):
    command = ["tune", *data["train_files"], "--ids=id", "--no-report", "--json", "--n-train=60"]
    code, out, err = call(capsys, *command, "-o", tmp_path / "run")
    assert (code, err) == (0, "")
    answer = json.loads(out)
    assert (answer["n_clusters"], answer["n_train"], answer["n_samples"]) == (3, 60, 90)
    assert {"reason", "weights", "criteria"} == set(answer["tuning"])
    assert list(answer["tuning"]["criteria"]) == list(map(str, range(2, 13)))
    assert max(answer["tuning"]["weights"].values()) == 1
    model = load(tmp_path / "run" / "model.safetensors")
    assert isinstance(model, FixedSize)
    assert isinstance(model.estimator_, Tuned)
    labels = tmp_path / "labels.npy"
    assert call(capsys, "predict", tmp_path / "run", *data["new_files"], "--ids=id", "-o", labels, "-q") == (0, "", "")
    np.testing.assert_array_equal(np.load(labels), model.predict(data["new"]))


def test_one_number_of_clusters_gives_no_table_of_numbers(data, tmp_path, capsys):
    command = ["tune", *data["train_files"], "--ids=id", "-k3", "--no-report", "-o", tmp_path / "run"]
    code, out, _ = call(capsys, *command)
    assert code == 0
    assert "Models for 3 clusters" in out
    assert "Numbers of clusters" not in out


def test_mistakes_give_one_line(data, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    files = data["train_files"]
    for typed, sentence in [
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


def cells(out, first):
    """Return the cells of the row of a table that starts with this text."""
    line = next(line for line in out.splitlines() if line.startswith(f"│ {first} "))
    return [cell.strip() for cell in line.split("│")[1:-1]]


def test_models_and_numbers_are_printed_with_their_measures(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    tuning = make_tuning(10)
    print_tuning(Terminal(), replace(make_summary(), tuning=tuning))
    out = capsys.readouterr().out
    assert cells(out, "each view (standardised)") == ["each view (standardised)", "0.60", "0.70", "0.80", "0.96"]
    assert cells(out, "consensus") == ["consensus", "–", "0.92", "0.80", "0.97"]
    assert "The model stacked is left out: view 'text' has 3 samples with degree <= 0" in out
    assert cells(out, "→ 10") == ["→ 10", "3.00", "100%", "0.92", "0.80"]
    assert cells(out, "9") == ["9", "2.80", "93%", "0.92", "0.80"]
    assert tuning.reason in out


def test_no_number_is_marked_if_one_cluster_is_selected(capsys):
    print_tuning(Terminal(), replace(make_summary(), tuning=make_tuning(10), n_clusters=1))
    out = capsys.readouterr().out
    assert "Numbers of clusters" in out
    assert "→" not in out


def test_a_line_names_the_number_that_comes_next():
    tuning = make_tuning(10)
    rows = [replace(r, criterion=2.9) if r.criterion and r.n_clusters == 11 else r for r in tuning.evaluations]
    summary = make_summary()

    def line(tuning, **found):
        return describe_method(replace(summary, tuning=tuning, **found), "tuned")

    assert line(replace(tuning, evaluations=tuple(rows))) == (
        "Method: tuned, the consensus of 2 models; 10 clusters selected from 2 to 12; the criterion of 11 clusters is "
        "97% of that of 10"
    )
    assert line(make_tuning(10, numbers=[10])) == "Method: tuned, the consensus of 2 models"
    at_limit = line(make_tuning(10, numbers=[3, 10]))
    assert "; 10 clusters selected from 3 and 10; the criterion of 3 " in at_limit
    assert at_limit.endswith("; 10 is the largest number of clusters that was compared, so compare larger numbers, too")
    assert line(tuning, n_clusters=1) == "Method: tuned; 1 cluster, because more are not supported"
    assert line(None) == "Method: tuned"


@pytest.mark.parametrize("found", [1, 3])
def test_the_line_describes_the_selected_number_if_fewer_clusters_have_members(found):
    summary = replace(make_summary(), n_clusters=found, validity=None, tuning=make_tuning(10))
    assert describe_method(summary, "tuned").startswith(
        "Method: tuned, the consensus of 2 models; 10 clusters selected"
    )
