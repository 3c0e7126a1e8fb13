"""Samples that lack views in the parts around the method: Coview, wrappers, summary, files, streams and Dask."""

import json
import re
import runpy
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import adjusted_rand_score

from coview import (
    Coview,
    FixedSize,
    InputError,
    Preprocessed,
    TMvKSCR,
    Views,
    load,
    save,
    stability,
    summarize,
)
from coview.io import ViewsReader, label_file
from coview.kernels import kernel_per_view
from coview.report import write_report
from coview.report.tables import splits
from coview.summary import Summary
from tests.cli.running import call, refused
from tests.conftest import make_blobs
from tests.methods.test_missing_views import WIDTHS, with_missing

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def complete():
    return make_blobs(210, spread=8.0, widths=WIDTHS)


@pytest.fixture(scope="module")
def selected(complete):
    return Coview("auto", random_state=0).fit(with_missing(complete[0], 0.4))


def test_coview_finds_the_clusters(selected, complete):
    views, truth = complete
    assert selected.n_clusters_ == 3
    assert adjusted_rand_score(truth, selected.labels_) > 0.95
    assert selected.support_.level == "strong"
    np.testing.assert_array_equal(selected.predict(with_missing(views, 0.4)), selected.labels_)
    assert adjusted_rand_score(truth, selected.predict({"b": views["b"]})) > 0.95


def test_coview_trained_on_complete_data_labels_samples_that_lack_views(complete):
    views, truth = complete
    model = Coview(3, random_state=0).fit(views)
    for name in views:
        assert adjusted_rand_score(truth, model.predict({name: views[name]})) > 0.95
    some = with_missing(views, 0.4)
    labels = model.predict(some)
    assert adjusted_rand_score(truth, labels) > 0.95
    for i in range(0, 210, 13):  # a sample has the same label alone
        assert model.predict({name: x[i : i + 1] for name, x in some.items()})[0] == labels[i]


@pytest.mark.parametrize(
    "model",
    [
        Preprocessed(TMvKSCR(3, kernel="rbf", random_state=0)),
        Preprocessed(TMvKSCR(3, random_state=0), {"a": "standard+pca2", "b": "l2"}),
        FixedSize(TMvKSCR(3, random_state=0), n_train=90, random_state=0),
        FixedSize(TMvKSCR(3, random_state=0), n_train=90, select="kmeans", random_state=0),
        FixedSize(Coview(3, random_state=0), n_train=120, select="entropy", random_state=0),
    ],
    ids=lambda model: " ".join(repr(model).split())[:60],
)
def test_wrappers_pass_missing_views_on(model, complete, tmp_path):
    views, truth = complete
    some = with_missing(views, 0.4)
    model.fit(some)
    assert adjusted_rand_score(truth, model.labels_) > 0.9
    np.testing.assert_array_equal(model.predict(some), model.labels_)
    save(model, tmp_path / "model.safetensors")
    loaded = load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(loaded.predict({"a": views["a"]}), model.predict({"a": views["a"]}))
    for samples in (some, {"a": views["a"]}):
        membership = model.predict_proba(samples)
        np.testing.assert_array_equal(membership.argmax(axis=1), model.predict(samples))
        np.testing.assert_array_equal(loaded.predict_proba(samples), membership)
        np.testing.assert_array_equal(loaded.score_samples(samples), model.score_samples(samples))
    usual, of_views = model.score_samples(some), model.score_samples(some, per_view=True)
    assert 0 <= usual.min() < usual.max() < 1
    for name, scores in of_views.items():
        np.testing.assert_array_equal(np.isnan(scores), np.isnan(some[name]).any(axis=1))
    far = {"a": views["a"] + 50}
    assert model.score_samples(far).max() < 0.02


def test_fixed_size_takes_half_of_its_samples_from_those_with_all_views(complete):
    views = Views(with_missing(complete[0], 0.6))
    model = FixedSize(TMvKSCR(3, random_state=0), n_train=40, random_state=0).fit(views)
    everything = views.has_all()
    assert everything[model.train_rows_].sum() >= min(20, everything.sum())
    assert not everything[model.train_rows_].all()


def test_fixed_size_keeps_enough_samples_of_each_view():
    views, _ = make_blobs(120, widths=(4, 3, 5), seed=0)
    a, b, c = views.values()
    c[20:], a[:10], b[10:20] = np.nan, np.nan, np.nan
    some = {"a": a, "b": b, "c": c}  # no sample has all views, and 20 have c
    for seed in range(5):
        model = FixedSize(TMvKSCR(3, random_state=0), n_train=30, random_state=seed).fit(some)
        assert len(model.train_rows_) == 30
        assert (model.train_rows_ < 20).sum() >= 6
    few = FixedSize(TMvKSCR(3, random_state=0), n_train=8, random_state=0)
    with pytest.raises(InputError, match=r"give more samples that have it \(if n_train is set, increase it\)"):
        few.fit(some)


def _views_of_which_one_is_rare():
    """Return views of which 20 of 1,500 samples have the last one; a draw of 60 has about one of these."""
    views, truth = make_blobs(1500, spread=8.0, widths=WIDTHS)
    rare = np.random.default_rng(3).permutation(1500)[:20]
    views["c"][np.setdiff1d(np.arange(1500), rare)] = np.nan
    return views, truth, rare


def _sources(views, folder):
    da = pytest.importorskip("dask.array")
    from coview.distributed import DaskViews

    for name, x in views.items():
        np.save(folder / f"{name}.npy", x)
        pd.DataFrame(x).rename(columns=str).to_parquet(folder / f"{name}.parquet")
    yield ViewsReader({name: folder / f"{name}.npy" for name in views}, batch_size=64)
    yield ViewsReader({name: folder / f"{name}.parquet" for name in views}, batch_size=999)
    yield DaskViews({name: da.from_array(x, chunks=(400, -1)) for name, x in views.items()})


def test_fixed_size_keeps_enough_samples_of_each_view_in_files_and_dask(tmp_path):
    views, truth, rare = _views_of_which_one_is_rare()
    for source in _sources(views, tmp_path):
        np.testing.assert_array_equal(source.rows_with("c"), np.sort(rare))
        assert len(source.rows_with("a")) == 1500
        for seed in range(3):
            model = FixedSize(TMvKSCR(3, random_state=0), n_train=60, n_repeats=2, random_state=seed).train(source)
            assert len(np.unique(model.train_rows_)) == 60
            assert np.isin(model.train_rows_, rare).sum() >= 6
            again = FixedSize(TMvKSCR(3, random_state=0), n_train=60, n_repeats=2, random_state=seed).train(source)
            np.testing.assert_array_equal(model.train_rows_, again.train_rows_)
        assert adjusted_rand_score(truth, model.predict(views)) > 0.9
        model = FixedSize(Coview(range(2, 6), random_state=0), n_train=60, random_state=0).train(source)
        assert np.isin(model.train_rows_, rare).sum() >= 10
        with pytest.raises(InputError, match="view 'c' has 20 of 90 samples, and 12 clusters need at least 24"):
            FixedSize(TMvKSCR(12, random_state=0), n_train=90, random_state=0).train(source)


def test_fixed_size_reads_no_further_rows_if_each_view_has_enough_samples(tmp_path, monkeypatch):
    def never(self, view):
        raise AssertionError(view)

    monkeypatch.setattr(ViewsReader, "rows_with", never)
    complete, _ = make_blobs(300, widths=WIDTHS)
    for views in (complete, with_missing(complete, 0.4)):
        assert len(FixedSize(TMvKSCR(3), n_train=90, random_state=0).train(ViewsReader(views)).train_rows_) == 90


@pytest.mark.parametrize("select", ["entropy", "kmeans"])
@pytest.mark.parametrize("of", [lambda views: Views(views, may_have_empty_cells=lambda name: True), ViewsReader])
def test_selectors_do_not_compare_samples_with_nan(complete, select, of):
    views = with_missing(complete[0], 0.3)
    views["a"][::5, 0] = np.nan
    method = Preprocessed(TMvKSCR(3, random_state=0), {"a": "median"})
    for n_train in (40, 180):  # with more and with fewer complete samples than that
        model = FixedSize(method, n_train=n_train, select=select, random_state=0).train(of(views))
        assert len(np.unique(model.train_rows_)) == n_train
        assert adjusted_rand_score(complete[1], model.predict(views)) > 0.9


def test_the_summary_counts_the_samples_of_each_view(selected, complete, tmp_path):
    some = with_missing(complete[0], 0.4)
    summary = summarize(selected, some, truth=complete[1])
    counts = {view.name: view.n_samples for view in summary.views}
    assert counts == {name: int((~np.isnan(x[:, 0])).sum()) for name, x in some.items()}
    lacking = sum(np.isnan(x[:, 0]) for x in some.values()) > 0
    assert any(note.startswith(f"{lacking.sum()} of 210 samples lack views (a ") for note in summary.notes)
    assert any("Their median margin is" in note for note in summary.notes)
    assert all(view.agreement > 0.9 for view in summary.views)
    assert Summary.from_json(summary.to_json()) == summary
    page = write_report(summary, tmp_path / "report.html").read_text()
    assert "Some samples lack views: a (" in page
    assert "<small>have this view</small>" in page
    assert "lacks the view" in page
    alone = {
        view.name: {label for label in summary.points.view_labels[view.name] if label >= 0} for view in summary.views
    }
    assert all(len(labels) == 3 for labels in alone.values())
    assert sum(map(len, splits(summary).values())) < 9  # samples that lack a view do not divide clusters


def test_a_complete_report_does_not_mention_missing_views(complete, tmp_path):
    summary = summarize(TMvKSCR(3, random_state=0).fit(complete[0]), complete[0])
    assert "lack views" not in write_report(summary, tmp_path / "report.html").read_text()
    assert not any("lack views" in note for note in summary.notes)


def test_a_model_of_one_method_is_summarised(complete):
    some = with_missing(complete[0], 0.4)
    summary = summarize(TMvKSCR(3, random_state=0).fit(some), some)
    assert summary.similarities is not None
    assert summary.silhouette > 0.5
    drawn = np.array(summary.points.view_scores["a"], dtype=float)
    np.testing.assert_array_equal(np.isnan(drawn[:, 0]), np.isnan(some["a"][list(summary.points.rows), 0]))


def test_streams_and_dask_label_samples_that_lack_views(complete, tmp_path):
    views = with_missing(complete[0], 0.4)
    model = TMvKSCR(3, random_state=0).fit(views)
    for name, x in views.items():
        np.save(tmp_path / f"{name}.npy", x)
    reader = ViewsReader({name: tmp_path / f"{name}.npy" for name in views}, batch_size=32)
    label_file(model, reader, tmp_path / "labels.npy")
    np.testing.assert_array_equal(np.load(tmp_path / "labels.npy"), model.labels_)
    views["a"][7], views["b"][7], views["c"][7] = np.nan, np.nan, np.nan
    for name, x in views.items():
        np.save(tmp_path / f"{name}.npy", x)
    with pytest.raises(InputError, match="row 7 has no view, because it is NaN in all of them"):
        label_file(model, ViewsReader({name: tmp_path / f"{name}.npy" for name in views}), tmp_path / "labels.npy")


def test_dask_blocks_may_lack_views(complete):
    da = pytest.importorskip("dask.array")
    from coview import distributed

    views = with_missing(complete[0], 0.4)
    model = TMvKSCR(3, random_state=0).fit(views)
    lazy = {name: da.from_array(x, chunks=(50, -1)) for name, x in views.items()}
    np.testing.assert_array_equal(distributed.predict(model, lazy).compute(), model.labels_)
    for select in ("entropy", "kmeans"):
        assert len(np.unique(distributed.select_rows(lazy, 100, select=select, random_state=0))) == 100
    trained = distributed.fit(FixedSize(TMvKSCR(3, random_state=0), n_train=100, random_state=0), lazy)
    assert adjusted_rand_score(complete[1], trained.predict(views)) > 0.9


def test_the_command_joins_files_of_different_samples(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(ROOT / "examples" / "07_cohort.py"), run_name="__main__")
    _, *command = shlex.split(capsys.readouterr().out)
    strict = [word for word in command if word not in ("--align", "outer")]
    assert "--align outer" in refused(capsys, *strict)
    code, _, err = call(capsys, *command, "--truth", "cohort/subtypes.csv::subtype")
    assert code == 0, err
    assert re.search(r"view 'expression' \(cohort/expression\.csv\) lacks the \d+ samples", err)
    answer = json.loads((tmp_path / "cohort" / "run" / "summary.json").read_text())
    assert answer["truth"]["ari"] > 0.9
    assert (tmp_path / "cohort" / "run" / "report.html").exists()
    single = ["predict", "cohort/run", "--view", "protein=cohort/protein.csv", "--ids", "patient", "-o", "new.csv"]
    code, _, err = call(capsys, *single)
    assert code == 0, err
    assert "the samples lack the views of the model that are not given: expression, methylation" in err
    assert len((tmp_path / "new.csv").read_text().splitlines()) == 106


def test_samples_of_one_view_are_summarised(complete):
    views, _ = complete
    model = Coview(3, random_state=0).fit(views)
    summary = summarize(model, {"b": views["b"]})
    assert {view.name: view.n_samples for view in summary.views} == {"a": 0, "b": 210, "c": 0}
    assert [view.name for view in summary.views if view.agreement is not None] == ["b"]
    assert Summary.from_json(summary.to_json()) == summary


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("count", [6, 12, 30])
def test_coview_finds_the_clusters_if_a_view_is_rare(count, seed):
    views, truth = make_blobs(120, spread=8.0, widths=WIDTHS, seed=seed)
    views["c"][np.random.default_rng(seed).permutation(120)[count:]] = np.nan
    model = Coview("auto", random_state=0).fit(views)
    assert model.n_clusters_ == 3
    assert adjusted_rand_score(truth, model.labels_) > 0.95
    found = stability(model, views, n_repeats=2, random_state=0)  # halves may have fewer samples than a fit needs
    assert min(each.jaccard for each in found.clusters) > 0.95
    with pytest.raises(InputError, match=f"view 'c' has {count} of 120 samples, and 40 clusters need at least 80"):
        Coview(40).fit(views)


@pytest.mark.parametrize("model", [Coview("auto"), Coview(2), TMvKSCR(2)], ids=repr)
def test_a_view_with_too_few_samples_for_two_clusters_is_refused(model):
    views, _ = make_blobs(60, spread=8.0, widths=WIDTHS)
    views["c"][3:] = np.nan
    with pytest.raises(InputError, match=r"^view 'c' has 3 of 60 samples, and 2 clusters need at least 4; drop"):
        model.fit(views)


def test_a_view_without_samples_is_refused_by_coview():
    views, _ = make_blobs(60, spread=8.0, widths=WIDTHS)
    with pytest.raises(InputError, match="view 'b' has no samples, because all of its rows are NaN"):
        Coview("auto").fit({**views, "b": np.full((60, 12), np.nan)})


def test_samples_with_views_of_weight_zero_only_are_refused(complete):
    views, _ = complete
    model = TMvKSCR(3, beta={"a": 1, "b": 0, "c": 0}, random_state=0).fit(views)
    with pytest.raises(InputError, match=r"210 of 210 samples .* have only views with beta 0"):
        model.predict({"b": views["b"]})


def test_scores_of_samples_that_lack_views_have_the_size_of_the_others(complete):
    views = {name: x.copy() for name, x in complete[0].items()}
    views["a"][:105], views["b"][107:] = np.nan, np.nan  # two samples have all views
    model = TMvKSCR(3, beta=5, random_state=0).fit(views)
    sizes = np.linalg.norm(model.scores_, axis=1)
    assert 0.2 < np.median(sizes[105:107]) / np.median(sizes) < 5


def test_clusters_without_samples_of_a_view_have_no_members_that_it_keeps_together(complete, tmp_path):
    views, truth = complete
    some = {**views, "a": np.where((truth == 2)[:, None], np.nan, views["a"])}
    summary = summarize(TMvKSCR(3, random_state=0).fit(some), some, truth=truth)
    without = [cluster for cluster in summary.clusters if "a" not in cluster.kept_together]
    assert [next(iter(cluster.classes)) for cluster in without] == ["2"]
    write_report(summary, tmp_path / "report.html")
    assert Summary.from_json(summary.to_json()) == summary


def test_fusion_of_many_incomplete_views_is_announced_as_dense():
    views = {f"view{i}": x for i, x in enumerate(np.random.default_rng(0).normal(size=(6, 60, 4)))}
    some = Views({**views, "view0": np.where(np.arange(60)[:, None] < 5, np.nan, views["view0"])})
    for rho, sparse in ((1.0, True), (0.5, False)):
        model = TMvKSCR(3, rho=rho)
        kernels = kernel_per_view("auto", some.names)
        assert model._stays_sparse(kernels, some) == sparse
        assert model._stays_sparse(kernels, Views(views))
