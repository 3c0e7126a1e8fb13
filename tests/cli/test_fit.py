"""`coview fit`, `coview report` and `coview demo`: from files to a folder of results, also after interruptions."""

import csv
import importlib
import json
import os
import re
import signal
import sys
import time

import numpy as np
import pytest
import typer
from sklearn.neighbors import NearestNeighbors

from coview import KSC, METHODS, RBF, Concat, Coview, FixedSize, TMvKSCR, stability
from coview.cli import main
from coview.cli.run import RUN_FILES
from coview.compose import Preprocessed
from coview.datasets import _edge_orientations, _fourier_magnitudes, digits_views
from coview.evaluate.words import number_in_words, support_in_words
from coview.io import read_labels
from coview.persist import load
from coview.summary import Summary
from tests.cli.running import call, refused

parquet = pytest.importorskip("pyarrow.parquet", reason="tables need pyarrow: pip install 'coview[io]'")

RBF_3 = ["-k3", "--ids=id", "--method=tmvkscr"]  # for tests that do not depend on the method

LABELS = "labels.csv, labels.csv-metadata.json"
PARQUET = {"labels.parquet", "labels.parquet-metadata.json"}


def test_fit_writes_the_results_of_the_library(data, fitted):
    summary = Summary.from_json((fitted / "summary.json").read_text())
    model = Coview(3, random_state=0).fit(data["train"])
    assert repr(load(fitted / "model.safetensors")) == repr(model)
    assert [cluster.size for cluster in summary.clusters] == np.bincount(model.labels_).tolist()
    assert summary.command.startswith("coview fit --view=a=")
    assert {"read", "fit"} <= set(summary.seconds)
    with (fitted / "labels.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["id"] for row in rows] == data["train_names"]
    assert [int(row["cluster"]) for row in rows] == model.labels_.tolist()
    membership = np.sort(model.predict_proba(data["train"]), axis=1)
    np.testing.assert_allclose([float(row["membership"]) for row in rows], membership[:, -1], atol=1e-4)


def test_the_labels_name_the_view_that_contributes_most(data, fitted):
    contributions = load(fitted / "model.safetensors").view_contributions(data["train"])
    largest = np.max(list(contributions.values()), axis=0)
    with (fitted / "labels.csv").open() as file:
        named = [row["best_view"] for row in csv.DictReader(file)]
    assert [contributions[name][i] for i, name in enumerate(named)] == pytest.approx(largest, abs=1e-6)


def test_fit_prints_tables(data, tmp_path, capsys):
    truth = f"--truth={data['folder']}/train/truth.csv::kind"
    code, out, err = call(
        capsys, "fit", *data["train_files"], "--ids=id", "-k3", truth, "-o", tmp_path / "run", "--no-report"
    )
    assert (code, err) == (0, "Note: the view 'b' has no ids: its samples are paired by row order\n")
    assert "distinguishing features" in out
    assert re.search(r"│ k\d", out)
    assert "Adjusted Rand index between each view's labels and the joint labels: a " in out
    assert "samples, 3 views; fitted in" in out
    assert out.startswith("The support for these clusters is strong: ")
    assert "selected" not in out  # the number of clusters is given
    assert f"Written to {tmp_path / 'run'}/: model.safetensors, {LABELS}, map.csv, summary.json\n" in out
    assert "To see the report" not in out


def test_fit_prints_the_address_of_the_report(data, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, _ = call(capsys, "fit", *data["train_files"], *RBF_3, "-o", "my run")
    assert code == 0
    assert out.splitlines()[-1].endswith(f"open this address in a browser: {tmp_path.as_uri()}/my%20run/report.html")
    assert (tmp_path / "my run" / "report.html").exists()


@pytest.mark.parametrize("method", ["coview", "opmc"])
def test_more_clusters_than_half_of_the_samples_give_a_note(method, data, tmp_path, capsys):
    command = ["fit", *data["train_files"], "--ids=id", "-m", method, "--no-report", "-o", tmp_path / "run"]
    code, _, err = call(capsys, *command, "-k50")
    assert code == 0
    sentence = (
        "50 clusters are requested for 90 training samples, so some clusters can have only one sample; ask for fewer "
        "clusters or give more samples"
    )
    assert f"Note: {sentence}\n" in err
    assert sentence in Summary.from_json((tmp_path / "run" / "summary.json").read_text()).notes


def test_tmvkscr_uses_its_defaults_and_selects_nothing(data, tmp_path, capsys):
    command = ["fit", *data["train_files"], "--ids=id", "-k3", "-m", "tmvkscr", "--no-report", "-o", tmp_path / "run"]
    code, out, _ = call(capsys, *command)
    assert code == 0
    assert "selected" not in out
    expected = TMvKSCR(3, random_state=0)
    model = load(tmp_path / "run" / "model.safetensors")
    assert repr(model) == repr(expected)
    np.testing.assert_array_equal(model.predict(data["new"]), expected.fit(data["train"]).predict(data["new"]))


def test_a_range_gives_the_number_nearest_to_the_one_that_is_found(data, tmp_path, capsys):
    command = ["fit", *data["train_files"], "--ids=id", "-k", "5..7", "--no-report", "--json", "-o", tmp_path / "run"]
    code, out, _ = call(capsys, *command)
    assert code == 0
    answer = json.loads(out)
    assert (answer["n_clusters"], answer["number"]["n_clusters"]) == (5, 3)


@pytest.mark.parametrize("typed", [[], ["-k", "auto"], ["-k", "2..5", "--method=coview"]], ids=" ".join)
def test_the_number_of_clusters_is_selected_by_default_or_from_a_range(typed, data, tmp_path, capsys):
    command = ["fit", *data["train_files"], "--ids=id", *typed, "--no-report", "-o", tmp_path / "run"]
    code, out, _ = call(capsys, *command)
    assert code == 0
    model = Coview(range(2, 6) if "2..5" in typed else "auto", random_state=0).fit(data["train"])
    assert model.n_clusters_ == 3
    assert out.startswith(f"{model.reason_}\nThe support for these clusters is strong: ")
    loaded = load(tmp_path / "run" / "model.safetensors")
    assert repr(loaded) == repr(model)
    assert loaded.progress is None
    assert (loaded.number_, loaded.support_) == (model.number_, model.support_)
    np.testing.assert_array_equal(loaded.predict(data["new"]), model.predict(data["new"]))
    summary = Summary.from_json((tmp_path / "run" / "summary.json").read_text())
    assert (summary.number, summary.support) == (model.number_, model.support_)


def test_samples_without_structure_are_one_cluster_and_the_command_says_so(tmp_path, capsys):
    rng = np.random.default_rng(0)
    for name in "ab":
        np.save(tmp_path / f"{name}.npy", rng.normal(size=(200, 6)))
    views = [f"--view={name}={tmp_path}/{name}.npy" for name in "ab"]
    code, out, err = call(capsys, "fit", *views, "-o", tmp_path / "run")
    assert code == 0, err
    assert out.startswith("1 cluster selected from 1 to 20: no cluster structure found.")
    assert "│ 0       │ 200     │ 100%" in out
    assert set(read_labels(tmp_path / "run" / "labels.csv", column="cluster")) == {"0"}
    assert "No cluster structure found" in (tmp_path / "run" / "report.html").read_text()
    labels = tmp_path / "new.npy"
    assert call(capsys, "predict", tmp_path / "run", *views, "-o", labels, "-q") == (0, "", "")
    assert set(np.load(labels)) == {0}


def test_the_number_is_selected_on_the_training_samples(data, tmp_path, capsys):
    command = ["fit", *data["train_files"], "--ids=id", "--no-report", "--json", "--n-train=60"]
    code, out, err = call(capsys, *command, "-o", tmp_path / "run")
    assert (code, err) == (0, "")
    answer = json.loads(out)
    assert (answer["n_clusters"], answer["n_train"], answer["n_samples"]) == (3, 60, 90)
    assert sum(part["size"] for part in answer["number"]["parts"]) == answer["support"]["n_samples"] == 60
    model = load(tmp_path / "run" / "model.safetensors")
    assert isinstance(model, FixedSize)
    assert isinstance(model.estimator, Coview)
    labels = tmp_path / "labels.npy"
    assert call(capsys, "predict", tmp_path / "run", *data["new_files"], "--ids=id", "-o", labels, "-q") == (0, "", "")
    np.testing.assert_array_equal(np.load(labels), model.predict(data["new"]))


def test_fit_prints_json(data, tmp_path, capsys):
    truth = f"--truth={data['folder']}/train/truth.csv::kind"
    command = [
        "fit",
        *data["train_files"],
        "--ids=id",
        "-k3",
        truth,
        "--json",
        "--no-report",
        "--labels-format=parquet",
    ]
    code, out, err = call(capsys, *command, "-o", tmp_path / "run")
    assert (code, err) == (0, "")
    answer = json.loads(out)
    assert answer["sizes"] == sorted(np.bincount(data["truth"]).tolist(), reverse=True)
    largest = answer["truth"].pop("largest_class")
    assert largest == pytest.approx(np.bincount(data["truth"]).max() / len(data["truth"]), rel=1e-4)
    assert answer["truth"] == {"ari": 1.0, "nmi": 1.0, "accuracy": 1.0, "purity": 1.0}
    assert answer["files"] == ["model.safetensors", *sorted(PARQUET), "map.csv", "summary.json"]
    assert (answer["method"], answer["number"]) == ("Coview", None)
    assert (answer["support"]["level"], answer["support"]["clusters"]) == ("strong", [0, 1, 2])
    assert parquet.read_table(tmp_path / "run" / "labels.parquet").column_names == [
        "id",
        "cluster",
        "membership",
        "second_cluster",
        "novelty",
        "best_view",
        "stability",
    ]


def test_each_view_has_its_own_preprocessing(data, tmp_path, capsys):
    steps = ["--preprocess=a=l2", "--preprocess=b=standard+pca2", "--preprocess=none"]
    command = ["fit", *data["train_files"], "--ids=id", "-k3", "-m", "opmc", *steps, "-o", tmp_path / "run"]
    assert call(capsys, *command)[0] == 0
    expected = Preprocessed(METHODS["opmc"](3, random_state=0), {"a": "l2", "b": "standard+pca2", "c": "none"})
    model = load(tmp_path / "run" / "model.safetensors")
    assert repr(model) == repr(expected)
    np.testing.assert_array_equal(model.predict(data["new"]), expected.fit(data["train"]).predict(data["new"]))
    summary = Summary.from_json((tmp_path / "run" / "summary.json").read_text())
    words = ["L2-normalised rows", "standardised columns, at most 2 principal components", "as it is"]
    assert [view.preprocessing for view in summary.views] == words
    page = (tmp_path / "run" / "report.html").read_text()
    assert "<dt>b</dt><dd>standardised columns, at most 2 principal components</dd>" in page
    labels = tmp_path / "labels.npy"
    assert call(capsys, "predict", tmp_path / "run", *data["new_files"], "--ids=id", "-o", labels)[0] == 0
    np.testing.assert_array_equal(np.load(labels), model.predict(data["new"]))


def test_options_reach_the_model(data, tmp_path, capsys):
    settings = [
        "--method=tmvkscr",
        "--kernel=rbf",
        "--kernel=a=rbf:sigma2=9",
        "--rho=0.3",
        "--kappa=a=2",
        "--assigner=codebook",
        "--seed=5",
    ]
    command = ["fit", *data["train_files"], "-k3", "--n-train=60", "--select=uniform", *settings, "--ids=id", "-q"]
    assert call(capsys, *command, "--no-report", "-o", tmp_path / "run") == (0, "", "")
    model = load(tmp_path / "run" / "model.safetensors")
    assert isinstance(model, FixedSize)
    inner = model.estimator.estimator
    assert (inner.rho, inner.assigner, inner.random_state, inner.progress) == (0.3, "codebook", 5, None)
    assert inner.kappa == {"a": 2.0, "b": 1.0, "c": 1.0}
    assert model.kernels_["a"].sigma2 == 9
    assert len(model.train_rows_) == 60


def test_methods_of_one_view_get_all_columns(data, tmp_path, capsys):
    command = ["fit", *data["train_files"], "-k3", "--method=ksc", "--ids=id", "--no-report", "-o", tmp_path / "run"]
    code, _, err = call(capsys, *command)
    assert code == 0
    assert "Note: ksc takes one view" in err
    expected = Preprocessed(Concat(KSC(3, random_state=0))).fit(data["train"])
    labels = read_labels(tmp_path / "run" / "labels.csv", column="cluster")
    assert labels == tuple(map(str, expected.labels_.tolist()))


def test_a_method_without_predict_saves_no_model(data, tmp_path, capsys):
    command = ["fit", *data["train_files"], "-k3", "--method=coreg", "--ids=id", "--no-report", "-o", tmp_path / "run"]
    code, out, err = call(capsys, *command)
    assert code == 0
    assert "Note: CoReg cannot label new samples, so no model is saved" in err
    assert f"{LABELS}, map.csv, summary.json" in out
    assert not (tmp_path / "run" / "model.safetensors").exists()


def test_warnings_of_the_library_are_notes(tmp_path, capsys):
    np.save(tmp_path / "a.npy", np.ones((20, 2)))
    command = ["fit", "--view", f"a={tmp_path}/a.npy", "--view", f"b={tmp_path}/a.npy", "-k3", "--no-report", "--json"]
    code, out, _ = call(capsys, *command, "--method=tmvkscr", "--kernel=rbf", "-o", tmp_path / "run")
    assert code == 0
    assert any("instead of -k 3" in note for note in json.loads(out)["notes"])


def test_without_the_extra_a_note_replaces_the_report(data, tmp_path, capsys, monkeypatch):
    def missing(summary, path):
        raise ImportError('drawing reports needs plotly: pip install "coview[report]"')

    monkeypatch.setattr("coview.report.write_report", missing)
    code, out, err = call(capsys, "fit", *data["train_files"], *RBF_3, "-o", tmp_path / "run")
    assert code == 0
    assert 'report.html is not written: drawing reports needs plotly: pip install "coview[report]"' in err
    assert "report.html" not in out
    code, _, err = call(capsys, "report", tmp_path / "run")
    assert (code, err) == (1, 'Error: drawing reports needs plotly: pip install "coview[report]"\n')


def test_a_missing_parquet_writer_is_refused_before_the_work(data, fitted, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    files = ["--view=b=missing.npy", "-k3"]
    err = refused(capsys, "fit", *files, "--labels-format=parquet", code=1)
    assert err == 'Error: writing Parquet files needs pyarrow: pip install "coview[io]"\n'
    assert "needs pyarrow" in refused(capsys, "predict", fitted, *files[:1], "-o", "labels.parquet", code=1)


def test_views_are_aligned_by_ids_and_other_samples_are_dropped(data, tmp_path, capsys):
    shuffled = parquet.read_table(data["folder"] / "train" / "a.parquet").take(list(range(88, -1, -1)))
    parquet.write_table(shuffled, tmp_path / "a.parquet")
    files = [f"--view=a={tmp_path}/a.parquet", data["train_files"][2]]
    code, _, err = call(capsys, "fit", *files, "-k3", "--ids=id", "--no-report", "-o", tmp_path / "run")
    assert code == 2
    assert "s089" in err
    command = ["fit", *files, *RBF_3, "--align=inner", "--no-report", "-o", tmp_path / "run"]
    code, _, err = call(capsys, *command)
    assert code == 0
    assert "dropped" in err
    with (tmp_path / "run" / "labels.csv").open() as file:
        assert [row["id"] for row in csv.DictReader(file)] == data["train_names"][88::-1]


def test_an_earlier_run_is_replaced_only_on_request(data, tmp_path, capsys):
    run = tmp_path / "run"
    command = ["fit", *data["train_files"], "-k3", "--ids=id", "--no-report", "-o", run, "-q"]
    assert call(capsys, *command)[0] == 0
    (run / "report.html").write_text("of the earlier run")
    code, _, err = call(capsys, *command)
    assert code == 2
    assert "has results of an earlier run" in err
    assert call(capsys, *command, "--force", "--labels-format=parquet", "--method=tmvkscr")[0] == 0
    assert {path.name for path in run.iterdir()} == {"model.safetensors", "map.csv", "summary.json", *PARQUET}


def test_ids_with_carriage_returns_have_one_row_in_every_table(tmp_path, capsys):
    import pyarrow as pa

    ids = [f"s{i}{sign}x" for i, sign in enumerate(("\r", "\r\n", "\n", "\t", '"', ",", "", " ", "\x1e", "\x85") * 2)]
    values = [9.0 * (i % 2) + i / 100 for i in range(len(ids))]
    parquet.write_table(pa.table({"id": ids, "x": values, "y": values[::-1]}), tmp_path / "x.parquet")
    command = ["fit", "--view", f"a={tmp_path}/x.parquet", "--ids=id", "-k2", "--method=ksc", "--no-report", "-q"]
    assert call(capsys, *command, "-o", tmp_path / "run")[0] == 0
    for name in ("labels.csv", "map.csv"):
        with (tmp_path / "run" / name).open(newline="", encoding="utf-8") as file:
            assert [row["id"] for row in csv.DictReader(file)] == ids, name


def press_ctrl_c(*_, **__):
    signal.signal(signal.SIGINT, signal.default_int_handler)  # background jobs of a script ignore SIGINT
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(10)


def abort(*_, **__):
    raise typer.Abort


@pytest.mark.parametrize("stop", [press_ctrl_c, abort])
def test_ctrl_c_leaves_nothing(data, tmp_path, capsys, monkeypatch, stop):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("coview.summary.gather.summarize_with_positions", stop)
    found = call(capsys, "fit", *data["train_files"], *RBF_3, "-o", "run")
    assert found == (130, "", "Stopped: nothing was written.\n")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("moment", ["os.rename", "coview.cli.run.print_support"])
def test_ctrl_c_after_the_results_have_their_names_says_so(data, tmp_path, capsys, monkeypatch, moment):
    module, name = moment.rsplit(".", 1)
    finished = getattr(importlib.import_module(module), name)

    def late(*given):
        finished(*given)
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.1)

    monkeypatch.chdir(tmp_path)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    monkeypatch.setattr(moment, late)
    found = call(capsys, "fit", *data["train_files"], *RBF_3, "-q", "-o", "run")
    signal.signal(signal.SIGINT, before)
    assert found == (130, "", "Stopped: all results were written.\n")
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
    assert (tmp_path / "run" / "summary.json").exists()


def test_a_terminated_run_leaves_nothing(data, tmp_path, monkeypatch):
    def end(*_, **__):
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(10)

    before = signal.getsignal(signal.SIGTERM)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("coview.summary.gather.summarize_with_positions", end)
    monkeypatch.setattr("sys.argv", ["coview", "fit", *data["train_files"], *RBF_3, "-o", "run"])
    try:
        with pytest.raises(SystemExit) as stop:
            main()
    finally:
        signal.signal(signal.SIGTERM, before)
    assert stop.value.code == 143
    assert list(tmp_path.iterdir()) == []


def test_a_failure_leaves_nothing_and_debug_prints_the_traceback(data, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("coview.summary.gather.summarize_with_positions", lambda *_, **__: 1 / 0)
    command = ["fit", *data["train_files"], *RBF_3, "-o", "run"]
    err = refused(capsys, *command, code=1)
    assert err == "Error: ZeroDivisionError: division by zero; run it again with --debug to see the traceback\n"
    code, _, err = call(capsys, *command, "--debug")
    assert code == 1
    assert "Traceback" in err
    assert "summarize" in err


@pytest.mark.parametrize("error", [RuntimeError("no font"), MemoryError()])
def test_an_error_after_the_results_are_written_is_a_note(data, tmp_path, capsys, monkeypatch, error):
    def fail(*_):
        raise error

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("coview.cli.terminal.Terminal.table", fail)
    code, _, err = call(capsys, "fit", *data["train_files"], *RBF_3, "-o", "run")
    assert code == 0
    assert err.endswith(f"Note: {error!r}; all results were written\n")
    assert "Error: " not in err
    assert "--n-train" not in err
    assert (tmp_path / "run" / "summary.json").exists()


def test_a_full_disk_is_a_failure(data, tmp_path, capsys, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device", "run/summary.json")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("coview.summary.gather.summarize_with_positions", full)
    err = refused(capsys, "fit", *data["train_files"], *RBF_3, "-o", "run", code=1)
    assert err == "Error: run/summary.json: No space left on device\n"


def test_the_report_is_written_again(data, tmp_path, capsys):
    run = tmp_path / "run"
    assert call(capsys, "fit", *data["train_files"], "-k3", "--ids=id", "-q", "-o", run)[0] == 0
    before = (run / "report.html").read_bytes()
    (run / "report.html").unlink()
    code, out, _ = call(capsys, "report", run)
    address = (run / "report.html").as_uri()
    how = f"To see the report, open this address in a browser: {address}"
    assert (code, out) == (0, f"Written: {run / 'report.html'}\n{how}\n")
    assert (run / "report.html").read_bytes() == before
    code, out, _ = call(capsys, "report", run / "summary.json", "-o", tmp_path / "other.html", "--json")
    assert json.loads(out)["files"] == [str(tmp_path / "other.html")]
    assert (tmp_path / "other.html").read_bytes() == before


def test_runs_without_a_valid_summary_are_refused(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "summary.json cannot be read" in refused(capsys, "report", tmp_path)
    (tmp_path / "summary.json").write_text('{"method": 1}')
    assert "summary.json: " in refused(capsys, "report", tmp_path)
    (tmp_path / "summary.json").write_bytes(b"\xff\xfe\x00")
    assert "cannot be read (not a text file)" in refused(capsys, "report", tmp_path)
    assert "its folder must exist" in refused(capsys, "report", tmp_path, "-o", tmp_path / "no" / "x.html")


def test_the_demo_writes_the_numbers_it_prints(tmp_path, capsys):
    code, out, _ = call(capsys, "demo", "-o", tmp_path / "run")
    assert code == 0
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    with (tmp_path / "run" / "labels.csv").open() as file:
        labels = [int(row["cluster"]) for row in csv.DictReader(file)]
    assert len(labels) == summary["n_samples"] == 1797
    with (tmp_path / "run" / "map.csv").open() as file:
        on_map = list(csv.DictReader(file))
    assert [int(row["sample"]) for row in on_map] == list(range(1797))
    assert [int(row["cluster"]) for row in on_map] == labels
    positions = np.array([[float(row["x"]), float(row["y"])] for row in on_map])
    np.testing.assert_allclose(positions, summary["points"]["positions"], atol=1e-4)
    # The nearest samples on the map nearly always have the same cluster.
    near = NearestNeighbors(n_neighbors=6).fit(positions).kneighbors(return_distance=False)
    assert (np.array(labels)[near] == np.array(labels)[:, None]).mean() > 0.95
    assert [labels.count(label) for label in range(summary["n_clusters"])] == [
        cluster["size"] for cluster in summary["clusters"]
    ]
    assert f"ARI {summary['truth']['ari']:.3f}, NMI {summary['truth']['nmi']:.3f}" in out
    assert "(largest class alone: 10%)" in out
    assert 1 >= summary["eigenvalues"][0] >= summary["eigenvalues"][-1] > 0  # of the random walk
    assert summary["truth"]["ari"] >= 0.70
    shown = Summary.from_json((tmp_path / "run" / "summary.json").read_text())
    selected = [] if shown.number is None else [number_in_words(shown.number)]
    assert out.splitlines()[: len(selected) + 1] == [*selected, " ".join(support_in_words(shown.support))]
    assert {path.name for path in (tmp_path / "run").iterdir()} == set(RUN_FILES) - PARQUET


def test_the_demo_views_are_three_different_descriptions():
    views, digits = digits_views()
    assert views.names == ("pixels", "fourier", "gradients")
    assert views.n_samples == len(digits) == 1797
    images = views["pixels"].reshape(-1, 8, 8)
    moved = np.roll(images, 1, axis=2)
    np.testing.assert_allclose(_fourier_magnitudes(moved), views["fourier"], atol=1e-12)  # independent of the position
    turned = _edge_orientations(images[:, ::-1])  # upside down: orientations change, their total does not
    np.testing.assert_allclose(turned.sum(axis=1), views["gradients"].sum(axis=1), atol=1e-12)
    assert not np.allclose(turned, views["gradients"])


@pytest.mark.parametrize("name", METHODS)
def test_every_method_makes_a_complete_run(name, data, tmp_path, capsys):
    clusters = [] if name == "comic" else ["-k3"]
    code, out, err = call(
        capsys, "fit", *data["train_files"], "--ids=id", *clusters, "--method", name, "-o", tmp_path / "run", "--json"
    )
    assert code == 0, err
    answer = json.loads(out)
    assert sum(answer["sizes"]) == answer["n_samples"] == 90
    model = ["model.safetensors"] if "predict" in METHODS[name].abilities else []
    scores = [] if name in ("opmc", "sfmc", "tsvdmsc", "comic") else ["map.csv"]
    assert answer["files"] == [*model, *LABELS.split(", "), *scores, "summary.json", "report.html"]
    if model:
        labels = tmp_path / "labels.npy"
        assert call(capsys, "predict", tmp_path / "run", *data["train_files"], "--ids=id", "-o", labels, "-q")[0] == 0
        assert np.bincount(np.load(labels)).tolist() == answer["sizes"]


def test_gram_matrices_are_precomputed_kernels(data, tmp_path, capsys):
    for name, x in data["train"].items():
        np.save(tmp_path / f"{name}.npy", RBF(9.0)(x))
    files = [f"--view={name}={tmp_path}/{name}.npy" for name in data["train"]]
    command = ["fit", *files, "-k3", "--method=tmvkscr", "--kernel=precomputed", "-o", tmp_path / "run"]
    code, _, err = call(capsys, *command)
    assert code == 0, err
    expected = TMvKSCR(3, kernel=RBF(9.0), random_state=0).fit(data["train"]).labels_
    assert read_labels(tmp_path / "run" / "labels.csv", column="cluster") == tuple(map(str, expected.tolist()))


def test_stability_is_measured_printed_and_written(data, tmp_path, capsys):
    command = ["fit", *data["train_files"], *RBF_3, "--stability", "4", "--seed", "3", "-o"]
    code, out, _ = call(capsys, *command, tmp_path / "run")
    assert code == 0
    model = TMvKSCR(3, random_state=3).fit(data["train"])
    found = stability(model, data["train"], 4, random_state=3)
    assert "In 4 models with the same settings, each of 45 samples: of 3 clusters, 3 are stable." in out
    assert re.search(r"cluster ┃ samples ┃ Jaccard index ┃ dissolved ┃ reading", out)
    summary = Summary.from_json((tmp_path / "run" / "summary.json").read_text())
    assert [cluster.stability for cluster in summary.clusters] == pytest.approx(
        [each.jaccard for each in found.clusters], rel=1e-4
    )
    assert summary.samples.stability == pytest.approx(found.samples, rel=1e-4)
    assert summary.refits.n_repeats == 4
    assert "stability" in summary.seconds
    code, out, _ = call(capsys, *command, tmp_path / "again", "--json", "--no-report")
    assert json.loads(out)["stability"]["clusters"] == [cluster.stability for cluster in summary.clusters]


def test_stability_needs_a_number(data, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    sentence = "--stability 0: expected an integer of at least 1"
    assert sentence in refused(capsys, "fit", *data["train_files"], *RBF_3, "--stability", "0")
    assert sentence in refused(capsys, "fit", *data["train_files"], "--ids=id", "--stability", "0")
