"""The columns of label files: what a model says of each sample."""

import csv
import json
from collections import Counter

import numpy as np
import pytest

from coview import METHODS, OPMC, Coview, FixedSize, TMvKSCR, ViewsReader, as_views, label_file, stability
from coview.certainty.columns import sample_columns
from coview.io import read_labels, write_labels
from coview.io.labels import write_description
from coview.model.model import Model
from coview.registry import LABEL_COLUMNS
from coview.summary import Summary
from tests.cli.running import call, split_blobs
from tests.conftest import make_blobs

NAMES = ["cluster", "membership", "second_cluster", "novelty", "best_view", "stability"]


@pytest.fixture(scope="module")
def views():
    return as_views(make_blobs(n_samples=120, spread=1.5)[0])


@pytest.mark.parametrize(
    "model", [TMvKSCR(3, random_state=0), Coview(3, random_state=0), FixedSize(TMvKSCR(3), n_train=80, random_state=0)]
)
def test_columns_are_those_of_the_model(model, views):
    model.fit(views)
    membership = model.predict_proba(views)
    for labels in (None, model.labels_):
        columns = sample_columns(model.model_, views, labels).in_file()
        assert list(columns) == list(LABEL_COLUMNS) == NAMES
        np.testing.assert_array_equal(columns["cluster"], model.labels_)
        np.testing.assert_array_equal(columns["membership"], membership.max(axis=1))
        np.testing.assert_array_equal(columns["second_cluster"], membership.argsort(axis=1)[:, -2])
        np.testing.assert_array_equal(columns["novelty"], 1 - model.score_samples(views))
        by_view = model.view_contributions(views)
        best = [max(by_view, key=lambda name: by_view[name][i]) for i in range(120)]
        np.testing.assert_array_equal(columns["best_view"], best)
        assert columns["stability"] is None


def test_the_second_of_two_tied_clusters_is_the_other_one(views, monkeypatch):
    model = OPMC(3, random_state=0).fit(views).model_
    table = np.array([[0.5, 0.5, 0.0], [0.2, 0.4, 0.4], [1.0, 0.0, 0.0]])
    monkeypatch.setattr(type(model.predictor), "membership", lambda predictor, views: table, raising=False)
    columns = sample_columns(model, views.take(slice(3)))
    assert columns.labels.tolist() == [0, 1, 0]
    assert columns.second_clusters.tolist() == [1, 2, 1]
    assert columns.novelties is None
    assert table.min() == 0  # it is not changed


def test_a_single_cluster_has_no_second(views):
    columns = sample_columns(Coview(1, random_state=0).fit(views).model_, views)
    assert columns.second_clusters is columns.best_views is None
    np.testing.assert_array_equal(columns.memberships, 1)


def test_methods_without_scores_have_clusters_only(views):
    model = OPMC(3, random_state=0).fit(views)
    columns = sample_columns(model.model_, views).in_file()
    np.testing.assert_array_equal(columns["cluster"], model.labels_)
    assert [columns[name] for name in NAMES[1:]] == [None] * 5
    without_predict = METHODS["coreg"](3, random_state=0).fit(views)
    columns = sample_columns(without_predict.model_, views, without_predict.labels_).in_file()
    assert [columns[name] for name in NAMES[1:]] == [None] * 5


@pytest.mark.parametrize("ending", [".csv", ".tsv", ".parquet"])
@pytest.mark.parametrize("batch_size", [17, 1000])
def test_files_that_are_read_in_blocks_have_the_same_columns(views, tmp_path, ending, batch_size):
    pytest.importorskip("pyarrow", reason="tables need pyarrow: pip install 'coview[io]'")
    model = TMvKSCR(3, random_state=0).fit(views)
    reader = ViewsReader(dict(views), batch_size=batch_size)
    streamed = label_file(model, reader, tmp_path / f"streamed{ending}")
    columns = sample_columns(model.model_, views).in_file(NAMES[:-1])
    whole = write_labels(tmp_path / f"whole{ending}", columns["cluster"], columns=columns)
    if ending == ".parquet":
        from pyarrow import parquet

        found, expected = (parquet.read_table(path).to_pydict() for path in (streamed, whole))
        assert found == expected
    else:
        assert streamed.read_text() == whole.read_text()
    assert read_labels(streamed) == tuple(map(str, model.labels_.tolist()))
    assert (tmp_path / f"streamed{ending}-metadata.json").exists()


def test_a_description_beside_the_file_says_what_its_columns_mean(tmp_path):
    path = write_labels(tmp_path / "labels.csv", [0, 1], columns=dict.fromkeys(NAMES[1:]), name="id")
    document = json.loads(write_description(path, "id").read_text())
    assert document["url"] == "labels.csv"
    with path.open() as file:
        assert [column["name"] for column in document["tableSchema"]["columns"]] == csv.DictReader(file).fieldnames
    assert all(column["dc:description"].endswith(".") for column in document["tableSchema"]["columns"])
    assert write_description(tmp_path / "labels.npy", "id") is None


def test_numbers_in_text_have_four_decimals_and_missing_ones_are_blank(tmp_path):
    columns = {"membership": np.array([0.5, 1 / 3, np.nan]), "best_view": np.array(["a", "b", "a"]), "novelty": None}
    path = write_labels(tmp_path / "labels.csv", [2, 0, 1], columns=columns)
    assert path.read_text().splitlines() == [
        "sample,cluster,membership,best_view,novelty",
        "0,2,0.5000,a,",
        "1,0,0.3333,b,",
        "2,1,,a,",
    ]


def test_the_column_cluster_is_read_by_default_from_files_of_labels_only(tmp_path):
    columns = {**dict.fromkeys(NAMES[1:]), "membership": np.array([0.5, 0.7])}
    path = write_labels(tmp_path / "labels.csv", [1, 0], ["s1", "s2"], columns=columns)
    assert read_labels(path, order=["s2", "s1"]) == ("0", "1")
    assert read_labels(path) == ("1", "0")
    assert read_labels(path, column="membership", ids="sample") == ("0.5000", "0.7000")
    (tmp_path / "other.csv").write_text("sample,cluster,class\ns1,0,a\ns2,1,b\n")
    with pytest.raises(ValueError, match="name that of the classes"):
        read_labels(tmp_path / "other.csv", order=["s2", "s1"])


def test_columns_of_another_length_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"columns\['membership'\] has shape \(1,\) for 2 labels"):
        write_labels(tmp_path / "labels.csv", [1, 0], columns={"membership": [0.5]})


def test_some_columns_can_be_written(views, tmp_path):
    model, reader = TMvKSCR(3, random_state=0).fit(views), ViewsReader(dict(views))
    path = label_file(model, reader, tmp_path / "labels.csv", columns=["novelty"])
    assert path.read_text().splitlines()[0] == "sample,cluster,novelty"
    described = json.loads((tmp_path / "labels.csv-metadata.json").read_text())["tableSchema"]["columns"]
    assert [column["name"] for column in described] == ["sample", "cluster", "novelty"]
    assert read_labels(path) == tuple(map(str, model.labels_.tolist()))
    for wrong, message in [
        (["stability"], "columns 'stability' is unknown"),
        ("novelty", "expected a list of columns"),
    ]:
        with pytest.raises((ValueError, TypeError), match=message):
            label_file(model, reader, tmp_path / "other.csv", columns=wrong)


def test_the_stability_of_samples_is_a_column(views):
    model = TMvKSCR(3, random_state=0).fit(views)
    found = stability(model, views, n_repeats=2, random_state=0)
    columns = sample_columns(model.model_, views, model.labels_).in_file(stability=found.samples)
    np.testing.assert_array_equal(columns["stability"], found.samples)


QUESTIONS = ("membership", "usualness", "contributions")


@pytest.fixture
def asked(monkeypatch):
    """The number of questions that models are asked about samples."""
    counts = Counter()

    def counted(name, ask):
        def question(model, views):
            counts[name] += 1
            return ask(model, views)

        return question

    for name in QUESTIONS:
        monkeypatch.setattr(Model, name, counted(name, getattr(Model, name)))
    return counts


@pytest.mark.parametrize("method", ["coview", "tmvkscr"])
def test_a_run_computes_the_columns_of_samples_once(method, tmp_path, capsys, asked):
    pytest.importorskip("plotly", reason="reports need plotly: pip install 'coview[report]'")
    data = split_blobs(tmp_path)
    run, fit = tmp_path / "run", ["fit", *data["train_files"], "--ids=id", "-k3", "-m", method]
    assert call(capsys, *fit, "-o", run)[0] == 0
    assert asked == dict.fromkeys(QUESTIONS, 1)
    asked.clear()
    options = ["--ids=id", "-o", tmp_path / "labels.csv", "--report", tmp_path / "new.html"]
    assert call(capsys, "predict", run, *data["new_files"], *options)[0] == 0
    assert asked == dict.fromkeys(QUESTIONS, 1)
    asked.clear()
    options = ["--ids=id", "-o", tmp_path / "some.csv", "--column", "second_cluster"]
    assert call(capsys, "predict", run, *data["new_files"], *options)[0] == 0
    assert asked == {"membership": 1, "usualness": 1}  # a note says whether samples are novel


def test_annotated_data_have_columns_that_are_computed_once(asked):
    anndata = pytest.importorskip("anndata", reason="needs anndata: pip install 'coview[scverse]'")
    from coview.scverse import cluster

    cells = anndata.AnnData(obsm=make_blobs()[0])
    cluster(cells, ["a", "b"], 3)
    assert asked == {"membership": 1, "usualness": 1}
    assert list(cells.obs) == ["coview", "coview_membership", "coview_novelty"]


def test_the_files_of_a_run_have_the_same_columns(tmp_path, capsys):
    data = split_blobs(tmp_path)
    run = tmp_path / "run"
    assert call(capsys, "fit", *data["train_files"], "--ids=id", "-k3", "--no-report", "-o", run)[0] == 0
    samples = Summary.from_json((run / "summary.json").read_bytes()).samples
    with (run / "labels.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["id"] for row in rows] == list(samples.names) == data["train_names"]
    assert [row["best_view"] for row in rows] == list(samples.best_views)
    for name, values in (("membership", samples.memberships), ("novelty", samples.novelties)):
        np.testing.assert_allclose([float(row[name]) for row in rows], values, atol=1e-3)
