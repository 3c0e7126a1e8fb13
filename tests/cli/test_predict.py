"""`coview predict`: labels of new samples, from whole files or in blocks."""

import json
import shutil

import numpy as np
import pytest

from coview.certainty.columns import sample_columns
from coview.data.as_views import as_views
from coview.io import read_labels, write_labels
from coview.persist import load
from coview.summary import Summary
from tests.cli.running import call, refused

parquet = pytest.importorskip("pyarrow.parquet", reason="tables need pyarrow: pip install 'coview[io]'")


@pytest.mark.parametrize("ending", [".csv", ".tsv", ".parquet", ".npy"])
@pytest.mark.parametrize("streamed", [False, True])
def test_labels_are_the_same_from_whole_files_and_blocks(data, fitted, tmp_path, capsys, monkeypatch, ending, streamed):
    """Two files that can be read in blocks, ids in one of them."""
    np.save(tmp_path / "c.npy", data["new"]["c"])
    files = [*data["new_files"][:2], f"--view=c={tmp_path}/c.npy"]
    labels = tmp_path / f"labels{ending}"
    if streamed:
        monkeypatch.setattr("coview.cli.predict._IN_MEMORY", 0)
        monkeypatch.setattr("coview.io.read_views", None)  # not called then
    code, out, err = call(capsys, "predict", fitted, *files, "--ids=id", "-o", labels)
    assert (code, err) == (0, "Note: the 2 views 'b', 'c' have no ids: their samples are paired by row order\n")
    assert "the labels of 30 samples" in out
    expected = load(fitted / "model.safetensors").predict(data["new"])
    model = load(fitted / "model.safetensors")
    membership = model.predict_proba(data["new"])
    columns = {
        "membership": membership.max(axis=1),
        "second_cluster": np.argsort(-membership, axis=1, kind="stable")[:, 1],
        "novelty": 1 - model.score_samples(data["new"]),
        "best_view": sample_columns(model.model_, as_views(data["new"])).best_views,
    }
    write_labels(tmp_path / f"expected{ending}", expected, ids=data["new_names"], name="id", columns=columns)
    if ending == ".parquet":
        assert parquet.read_table(labels).equals(parquet.read_table(tmp_path / f"expected{ending}"))
    else:
        assert labels.read_bytes() == (tmp_path / f"expected{ending}").read_bytes()


@pytest.mark.parametrize("most", [2**29, 0])
def test_empty_cells_are_filled_also_in_blocks(data, tmp_path, capsys, monkeypatch, most):
    monkeypatch.setattr("coview.cli.predict._IN_MEMORY", most)
    x = np.array(data["new"]["b"], dtype=float)
    x[[0, 7], [0, 1]] = np.nan
    np.save(tmp_path / "b.npy", x)
    file, run = f"--view=b={tmp_path}/b.npy", tmp_path / "run"
    assert call(capsys, "fit", file, "-k3", "--impute=median", "-o", run, "-q")[0] == 0
    assert call(capsys, "predict", run, file, "-o", tmp_path / "labels.npy", "-q") == (0, "", "")
    expected = load(run / "model.safetensors").predict({"b": x})
    np.testing.assert_array_equal(np.load(tmp_path / "labels.npy"), expected)


def test_many_rows_are_labelled_in_blocks(data, fitted, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("coview.cli.predict._IN_MEMORY", 0)
    read = []
    monkeypatch.setattr("coview.io.read_views", lambda *_, **__: read.append(1))
    repeats = 1000
    for name, x in data["new"].items():
        np.save(tmp_path / f"{name}.npy", np.tile(x, (repeats, 1)))
    files = [f"--view={name}={tmp_path}/{name}.npy" for name in "cba"]  # in any order
    code, out, _ = call(capsys, "predict", fitted, *files, "-o", tmp_path / "labels.csv", "--json")
    assert code == 0
    assert not read
    answer = json.loads(out)
    assert answer["n_samples"] == 30 * repeats
    expected = np.tile(load(fitted / "model.safetensors").predict(data["new"]), repeats)
    written = np.loadtxt(tmp_path / "labels.csv", delimiter=",", skiprows=1, usecols=(0, 1), dtype=int)
    np.testing.assert_array_equal(written, np.column_stack([np.arange(30 * repeats), expected]))
    assert answer["sizes"] == {str(k): n for k, n in enumerate(np.bincount(expected).tolist()) if n}


def test_columns_are_found_by_name(data, fitted, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("coview.cli.predict._IN_MEMORY", 0)
    table = parquet.read_table(data["folder"] / "new" / "a.parquet")
    parquet.write_table(table.select(table.column_names[::-1]), tmp_path / "a.parquet")
    np.save(tmp_path / "c.npy", data["new"]["c"])
    files = [f"--view=a={tmp_path}/a.parquet", data["new_files"][1], f"--view=c={tmp_path}/c.npy"]
    assert call(capsys, "predict", fitted, *files, "--ids=id", "-o", tmp_path / "labels.npy", "-q") == (0, "", "")
    expected = load(fitted / "model.safetensors").predict(data["new"])
    np.testing.assert_array_equal(np.load(tmp_path / "labels.npy"), expected)


def test_predict_encodes_categories_as_in_training(tmp_path, capsys):
    rng = np.random.default_rng(0)
    truth = np.arange(40) % 2
    rows = [f"{x},{c}" for x, c in zip(rng.normal(size=40) + 9 * truth, np.where(truth, "red", "blue"), strict=True)]
    (tmp_path / "a.csv").write_text("\n".join(["size,colour", *rows]) + "\n")
    (tmp_path / "new.csv").write_text("\n".join(["colour,size", "blue,0.1", "red,9.1"]) + "\n")
    view = ["--view", f"a={tmp_path}/a.csv", "-k2", "--no-report", "-q", "-o", tmp_path / "run"]
    code, _, err = call(capsys, "fit", *view)
    assert code == 2
    assert "colour" in err
    assert call(capsys, "fit", *view, "--categories=onehot")[0] == 0
    labels = tmp_path / "new.npy"
    code, _, err = call(capsys, "predict", tmp_path / "run", "--view", f"a={tmp_path}/new.csv", "-o", labels)
    assert code == 0, err
    clusters = read_labels(tmp_path / "run" / "labels.csv", column="cluster")
    assert np.load(labels).tolist() == [int(clusters[0]), int(clusters[1])]
    (tmp_path / "new.csv").write_text("colour,size\ngreen,0.1\nred,9.1\n")
    code, _, err = call(capsys, "predict", tmp_path / "run", "--view", f"a={tmp_path}/new.csv", "-o", labels, "--force")
    assert code == 0, err
    assert "Note: view 'a' has categories that no training sample has ('colour = green')" in err


def test_a_bad_value_in_a_late_block_leaves_nothing(data, fitted, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("coview.cli.predict._IN_MEMORY", 0)
    bad = data["new"]["c"].copy()
    bad[29, 0] = np.nan
    np.save(tmp_path / "c.npy", bad)
    err = refused(capsys, "predict", fitted, *data["new_files"][:2], "--view=c=c.npy", "--ids=id", "-o", "labels.csv")
    assert "view 'c' (c.npy)" in err
    assert "row 29" in err


def test_force_replaces_the_output(data, fitted, tmp_path, capsys):
    (tmp_path / "labels.npy").write_text("old")
    command = ["predict", fitted, *data["new_files"], "--ids=id", "-q", "-o", tmp_path / "labels.npy"]
    assert call(capsys, *command)[0] == 2
    assert call(capsys, *command, "--force") == (0, "", "")
    assert len(np.load(tmp_path / "labels.npy")) == 30


def test_notes_of_the_reader_are_printed(data, fitted, tmp_path, capsys):
    np.save(tmp_path / "a.npy", np.ones((30, 4)))
    np.save(tmp_path / "b.npy", data["new"]["b"])
    code, _, err = call(
        capsys, "compare", f"--view=a={tmp_path}/a.npy", f"--view=b={tmp_path}/b.npy", "-k3", "--methods=opmc"
    )
    assert code == 0
    assert "constant" in err
    lines = (data["folder"] / "new" / "c.csv").read_text().splitlines()
    (tmp_path / "c.csv").write_text("\n".join(lines[:-1]) + "\n")
    (tmp_path / "b.csv").write_text("\n".join(["id," + ",".join(f"b{j}" for j in range(6)), *with_ids(data)]) + "\n")
    files = [data["new_files"][0], f"--view=b={tmp_path}/b.csv", f"--view=c={tmp_path}/c.csv"]
    command = ["predict", fitted, *files, "--ids=id", "--align=inner", "-o", tmp_path / "labels.npy", "--json"]
    code, out, err = call(capsys, *command)
    assert code == 0, err
    assert any("dropped" in note for note in json.loads(out)["notes"])
    expected = load(fitted / "model.safetensors").predict(data["new"])[:-1]
    np.testing.assert_array_equal(np.load(tmp_path / "labels.npy"), expected)


def with_ids(data):
    """Return the rows of an array as lines with ids."""
    rows = zip(data["new_names"], data["new"]["b"].tolist(), strict=True)
    return [",".join([name, *map(repr, row)]) for name, row in rows]


def test_a_report_places_new_samples_on_the_map_of_the_run(data, fitted, tmp_path, capsys, monkeypatch):
    drawn = []
    monkeypatch.setattr("coview.cli.predict.draw_report", lambda summary, path, _: drawn.append((summary, path)))
    monkeypatch.setattr("coview.cli.predict._IN_MEMORY", 0)  # also files that could be read in blocks are read whole
    report = tmp_path / "new.html"
    options = ["--ids=id", "-o", tmp_path / "labels.csv", "--report", report]
    assert call(capsys, "predict", fitted, *data["new_files"], *options)[0] == 0
    ((summary, path),) = drawn
    assert path.name == "new.html"
    of_run = Summary.from_json((fitted / "summary.json").read_text())
    assert summary.map == of_run.map
    assert summary.points.samples == tuple(data["new_names"])
    assert summary.command.startswith("coview predict")
    np.testing.assert_array_equal(summary.points.labels, load(fitted / "model.safetensors").predict(data["new"]))


@pytest.mark.parametrize("summary", [None, "{}"])
def test_a_report_needs_no_summary_of_the_run(data, fitted, tmp_path, capsys, summary):
    shutil.copy(fitted / "model.safetensors", tmp_path / "copy.safetensors")
    if summary is not None:
        (tmp_path / "summary.json").write_text(summary)
    report = tmp_path / "new.html"
    options = ["--ids=id", "-o", tmp_path / "labels.csv", "--report", report]
    code, out, err = call(capsys, "predict", tmp_path / "copy.safetensors", *data["new_files"], *options)
    assert code == 0
    assert ("is not a summary of this version" in err) == (summary is not None)
    labels = tmp_path / "labels.csv"
    assert f"Written: {labels}, {labels}-metadata.json, {report}, the labels of 30 samples" in out
    assert "Map of the samples" in report.read_text()
    labels.unlink()
    (tmp_path / "labels.csv-metadata.json").unlink()
    assert f"{report} exists" in refused(capsys, "predict", fitted, *data["new_files"], *options)


def press_ctrl_c(*_):
    raise KeyboardInterrupt


def run_out_of_space(_, path):
    raise OSError(28, "No space left on device", str(path))


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        (press_ctrl_c, (130, "", "Stopped: nothing was written.\n")),
        (run_out_of_space, (1, "", "Error: reports/new.html: No space left on device\n")),
    ],
)
@pytest.mark.parametrize("old", [True, False])
def test_labels_are_not_written_without_their_report(data, fitted, tmp_path, capsys, monkeypatch, fault, expected, old):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "reports").mkdir()
    for name in ("labels.csv", "labels.csv-metadata.json", "reports/new.html") if old else ():
        (tmp_path / name).write_text("old")
    before = {path: path.is_file() and path.read_text() for path in tmp_path.rglob("*")}
    monkeypatch.setattr("coview.report.write_report", fault)
    options = ["--ids=id", "-q", "-o", "labels.csv", "--report", "reports/new.html", "--force"]
    assert call(capsys, "predict", fitted, *data["new_files"], *options) == expected
    assert {path: path.is_file() and path.read_text() for path in tmp_path.rglob("*")} == before


@pytest.mark.parametrize(
    ("name", "message"), [("new.txt", "ends in .html"), ("none/new.html", "its folder must exist")]
)
def test_reports_that_cannot_be_written_are_refused(data, fitted, tmp_path, capsys, name, message):
    options = ["--ids=id", "-o", tmp_path / "labels.csv", "--report", tmp_path / name]
    assert message in refused(capsys, "predict", fitted, *data["new_files"], *options)
    assert not (tmp_path / "labels.csv").exists()


def test_columns_that_cannot_be_written_are_refused_or_noted(data, fitted, tmp_path, capsys):
    command = ["predict", fitted, *data["new_files"], "--ids=id", "-o"]
    assert "has the clusters only" in refused(capsys, *command, tmp_path / "x.npy", "--column", "novelty")
    assert "--column 'novel' is unknown; did you mean 'novelty'?" in refused(
        capsys, *command, tmp_path / "x.csv", "--column", "novel"
    )
    assert call(capsys, *command, tmp_path / "x.csv", "--column", "membership", "-q")[0] == 0
    assert (tmp_path / "x.csv").read_text().startswith("id,cluster,membership\n")


def test_links_to_nothing_are_refused_as_output(data, fitted, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "labels.csv").symlink_to("nowhere")
    err = refused(capsys, "predict", fitted, *data["new_files"], "--ids=id", "-o", "labels.csv")
    assert "labels.csv is a symbolic link to nowhere, which does not exist" in err


def test_labels_that_appear_meanwhile_are_not_replaced(data, fitted, tmp_path, capsys, monkeypatch):
    from coview.certainty import columns

    def late(*given, **named):
        (tmp_path / "labels.csv").write_text("first")
        return sample_columns(*given, **named)

    sample_columns = columns.sample_columns
    monkeypatch.setattr(columns, "sample_columns", late)
    code, _, err = call(capsys, "predict", fitted, *data["new_files"], "--ids=id", "-o", tmp_path / "labels.csv")
    assert code == 2
    assert "was written by another program meanwhile" in err
    assert (tmp_path / "labels.csv").read_text() == "first"


UNLIKE = "30 of 30 compared samples in view 'b' are unlike the training samples (novelty above 0.99); check the units"


@pytest.mark.parametrize("streamed", [False, True])
def test_wrong_units_give_a_note_that_names_the_view(data, fitted, tmp_path, capsys, monkeypatch, streamed):
    new = {**data["new"], "b": data["new"]["b"] * 88.4 + 50}
    for name, x in new.items():
        np.save(tmp_path / f"{name}.npy", x)
    monkeypatch.setattr("coview.cli.predict._IN_MEMORY", 0 if streamed else 2**29)
    command = ["predict", fitted, *(f"--view={name}={tmp_path}/{name}.npy" for name in new), "--no-ids"]
    code, _, err = call(capsys, *command, "-o", tmp_path / "labels.csv")
    assert code == 0
    assert f"Note: {UNLIKE}" in err
    assert err.count("unlike") == 1
    code, out, _ = call(capsys, *command, "-o", tmp_path / "labels.npy", "--json")
    assert sum(UNLIKE in note for note in json.loads(out)["notes"]) == 1


def test_wrong_units_are_a_note_of_the_report(data, fitted, tmp_path, capsys, monkeypatch):
    drawn = []
    monkeypatch.setattr("coview.cli.predict.draw_report", lambda summary, *_: drawn.append(summary))
    np.save(tmp_path / "b.npy", data["new"]["b"] * 88.4 + 50)
    files = [data["new_files"][0], f"--view=b={tmp_path}/b.npy", data["new_files"][2]]
    options = ["--ids=id", "-o", tmp_path / "labels.csv", "--report", tmp_path / "new.html"]
    assert call(capsys, "predict", fitted, *files, *options)[0] == 0
    assert any(UNLIKE in note for note in drawn[0].notes)


def test_a_method_of_stacked_columns_names_no_view_with_wrong_units(data, tmp_path, capsys):
    for name, x in data["new"].items():
        np.save(tmp_path / f"{name}.npy", x * 88.4 + 50)
    run = tmp_path / "run"
    assert call(capsys, "fit", *data["train_files"], "--ids=id", "-k3", "-m", "ksc", "--no-report", "-o", run)[0] == 0
    files = [f"--view={name}={tmp_path}/{name}.npy" for name in data["new"]]
    code, _, err = call(capsys, "predict", run, *files, "--no-ids", "-o", tmp_path / "labels.csv")
    assert code == 0
    assert "Note: 30 of 30 compared samples are unlike the training samples" in err


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("method", ["coview", "tmvkscr"])
def test_new_samples_of_the_same_distribution_are_not_noted(tmp_path, capsys, method, seed):
    rng = np.random.default_rng(seed)
    centres = {"lab": 3 * rng.normal(size=(3, 4)), "image": 3 * rng.normal(size=(3, 9))}

    def draw(n_samples):
        clusters = rng.integers(3, size=n_samples)
        for name, x in centres.items():
            np.save(tmp_path / f"{name}.npy", x[clusters] + rng.normal(size=(n_samples, x.shape[1])))
        return [f"--view={name}={tmp_path}/{name}.npy" for name in centres]

    run = tmp_path / "run"
    assert call(capsys, "fit", *draw(99), "-k3", "-m", method, "--no-report", "-q", "-o", run)[0] == 0
    for n_samples in (1, 2, 10, 100, 3000):
        files = draw(n_samples)
        code, _, err = call(capsys, "predict", run, *files, "-o", tmp_path / "labels.csv", "--force")
        assert code == 0
        assert "unlike" not in err
