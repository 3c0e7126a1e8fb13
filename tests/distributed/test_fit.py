"""Fits with all rows on a cluster: the same models as in memory, also if workers fail."""

import os
import pickle
import signal
import time
from pathlib import Path

import dask
import dask.array as da
import distributed
import numpy as np
import pytest
import scipy.sparse as sp

from coview import (
    KSC,
    RBF,
    Coview,
    FixedSize,
    FuzzyGraph,
    InputError,
    MvKSC,
    NeighborGraph,
    TMvKSCR,
    load,
    save,
    summarize,
)
from coview.distributed import fit, gather, predict
from coview.distributed.cluster import DaskCluster
from tests.conftest import make_blobs

N = 1250


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr("coview.distributed.views._FEWEST_ROWS", 450)


@pytest.fixture(scope="module")
def views():
    """Blobs with duplicate rows in other blocks, of all views and of one view."""
    some = {name: np.array(x, dtype=float) for name, x in make_blobs(N, spread=1.5)[0].items()}
    some["wide"] = np.hstack([some["a"], some["b"], 0.1 * some.pop("c")])
    for x in some.values():
        x[1000:1040] = x[:40]
    some["a"][1200:] = some["a"][7]
    return some


def in_blocks(views):
    return {name: da.from_array(x, chunks=(400, -1)) for name, x in views.items()}


def new_rows(views):
    some = {name: x[::50] + 0.01 for name, x in views.items()}
    some["a"][:5] = views["a"][1001:1006]  # duplicates of training rows
    return some


MODELS = {
    "auto": TMvKSCR(3, random_state=0),
    "product": TMvKSCR(4, kernel=NeighborGraph(5), rho=0.5, kappa={"a": 2.0}, dtype="float32", random_state=0),
    "metrics": TMvKSCR(
        3,
        kernel=[NeighborGraph(metric="seuclidean"), FuzzyGraph(metric="cosine"), FuzzyGraph()],
        assigner="codebook",
        regularization=1.0,
        random_state=0,
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_fit_on_a_cluster_gives_the_model_of_a_fit_in_memory(client, views, name, tmp_path):
    here = MODELS[name].fit(views)
    expected = {attribute: np.array(getattr(here, attribute)) for attribute in ("labels_", "scores_", "eigenvalues_")}
    labels, scores, of_views = here.predict(new_rows(views)), here.transform(new_rows(views)), here.view_labels_
    save(here, tmp_path / "here")

    there = fit(MODELS[name], in_blocks(views))
    # The slabs are multiplied row by row, and sums over blocks have a fixed order: there is no rounding to allow for.
    for attribute, values in expected.items():
        np.testing.assert_array_equal(getattr(there, attribute), values)
    for view, expected_labels in of_views.items():
        np.testing.assert_array_equal(there.view_labels_[view], expected_labels)
    np.testing.assert_array_equal(there.predict(new_rows(views)), labels)
    np.testing.assert_array_equal(there.transform(new_rows(views)), scores)
    save(gather(there), tmp_path / "there")
    assert (tmp_path / "there").read_bytes() == (tmp_path / "here").read_bytes()
    np.testing.assert_array_equal(load(tmp_path / "there").predict(new_rows(views)), labels)


def test_methods_of_one_view_can_be_fitted_on_a_cluster(client, views):
    one = {"wide": views["wide"]}
    model = KSC(3, kernel=FuzzyGraph(), random_state=0)
    expected = model.fit(one).labels_
    np.testing.assert_array_equal(fit(model, in_blocks(one)).labels_, expected)


def test_a_killed_worker_does_not_change_the_labels(client, views):
    client.wait_for_workers(2, timeout=60)
    expected = TMvKSCR(3, random_state=0).fit(views).labels_
    victims = []

    def kill(reached, done, total):
        if reached == "similarities of b":
            victims.append(min(client.run(os.getpid).values()))
            os.kill(victims[0], signal.SIGKILL)

    model = fit(TMvKSCR(3, random_state=0, progress=kill), in_blocks(views))
    assert len(victims) == 1
    np.testing.assert_array_equal(model.labels_, expected)
    model.progress = None
    client.wait_for_workers(2, timeout=60)
    np.testing.assert_array_equal(model.predict(new_rows(views)), gather(model).predict(new_rows(views)))


def test_a_model_on_a_cluster_must_be_gathered_to_leave_it(client, views, tmp_path):
    model = fit(TMvKSCR(3, random_state=0), in_blocks(views))
    advice = r"the training rows of this model are on a cluster; coview.distributed.gather\(model\)"
    with pytest.raises(InputError, match=advice):
        pickle.dumps(model)
    with pytest.raises(InputError, match=advice):
        save(model, tmp_path / "model")
    with pytest.raises(InputError, match=advice):
        predict(model, in_blocks(views))
    assert summarize(gather(model), views).n_samples == N
    np.testing.assert_array_equal(predict(model, in_blocks(views)).compute(), model.predict(views))
    assert gather(model) is model


def test_a_model_cannot_be_used_after_its_cluster_is_closed(views):
    with distributed.Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address="127.0.0.1:0"):
        model = fit(TMvKSCR(3, random_state=0), in_blocks({"wide": views["wide"]}))
    advice = r"the cluster .* is closed; fit it again, and call coview.distributed.gather\(model\) before"
    for use in (lambda: model.predict({"wide": views["wide"]}), lambda: gather(model), lambda: model.view_labels_):
        with pytest.raises(InputError, match=advice):
            use()


def test_workers_that_end_again_and_again_are_named(client, monkeypatch):
    monkeypatch.setattr(client.cluster.scheduler, "allowed_failures", 0)
    task = client.submit(os._exit, 1, pure=False)
    with pytest.raises(InputError, match=r"1 workers of the cluster have ended while they computed .*; give them more"):
        DaskCluster(client).gather([task])
    client.wait_for_workers(2, timeout=60)


def test_results_that_a_restarted_scheduler_has_lost_are_named(client):
    task = client.submit(time.sleep, 0.5, pure=False)
    task.cancel()
    with pytest.raises(InputError, match="the scheduler of the cluster has ended or restarted"):
        DaskCluster(client).gather([task])


def test_workers_that_stay_paused_are_not_waited_for(client, monkeypatch):
    """Dask pauses workers whose memory is full, and with it all tasks."""
    monkeypatch.setattr("coview.distributed.cluster._SECONDS_BETWEEN_CHECKS", 0.05)
    status = {"tcp://one": {"status": "paused"}, "tcp://two": {"status": "paused"}}
    monkeypatch.setattr(client, "scheduler_info", lambda n_workers: {"workers": status})
    task = client.submit(time.sleep, 2, pure=False)
    with pytest.raises(InputError, match="all workers of the cluster are paused, because their memory is full"):
        DaskCluster(client).gather([task])
    status["tcp://two"]["status"] = "running"
    assert DaskCluster(client).gather([task]) == [None]


def test_gathering_says_how_much_memory_it_needs(client, views, monkeypatch):
    model = fit(TMvKSCR(3, random_state=0), in_blocks(views))
    monkeypatch.setattr("coview.base.runtime.available_memory", lambda: 1000)
    with pytest.raises(MemoryError, match=r"gathering the training rows of TMvKSCR needs about .* label new samples"):
        gather(model)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (TMvKSCR(3, kernel=RBF()), r"view 'a' has the kernel RBF.*; use kernel='auto' or NeighborGraph\(\), or train"),
        (MvKSC(3, kernel=NeighborGraph()), r"FixedSize\(MvKSC\(…\), n_train=1000\) trains on some"),
        (Coview(3), r"FixedSize\(Coview\(…\), n_train=1000\) trains on some"),
        (TMvKSCR(3000), "n_samples=1250 is too few for n_clusters=3000"),
        (TMvKSCR(3, rho=2), "rho=2: expected"),
    ],
)
def test_models_that_cannot_be_fitted_on_a_cluster_are_refused(client, views, model, message):
    with pytest.raises(InputError, match=message):
        fit(model, in_blocks(views))
    assert not hasattr(model, "labels_")


def test_too_many_views_are_refused(client, views):
    with pytest.raises(InputError, match="9 views are too many for TMvKSCR on all samples"):
        fit(TMvKSCR(3), in_blocks({str(v): views["a"] for v in range(9)}))


def test_rows_that_cannot_be_fitted_are_named(client, views):
    some = {name: x.copy() for name, x in views.items()}
    some["b"][777] = np.nan
    with pytest.raises(InputError, match=r"row 777 lacks the view 'b'.*; drop these samples, or train FixedSize"):
        fit(TMvKSCR(3), in_blocks(some))
    some["b"][777, 1:] = 0.0
    with pytest.raises(InputError, match="view 'b' contains NaN or infinity in row 777, column 0"):
        fit(TMvKSCR(3), in_blocks(some))
    sparse = {name: x.map_blocks(sp.csr_array) for name, x in in_blocks(views).items()}
    with pytest.raises(InputError, match=r"view 'a' is sparse.*; convert it with map_blocks"):
        fit(TMvKSCR(3), sparse)
    with pytest.raises(InputError, match="view 'a' has the same values in all of its 1250 samples"):
        fit(TMvKSCR(3, kernel=NeighborGraph()), in_blocks({**views, "a": np.ones((N, 3))}))


def test_a_view_without_differences_is_uninformative_by_default(client, views):
    some = {**views, "a": np.ones((N, 3))}
    expected = TMvKSCR(3, random_state=0).fit(some)
    found = fit(TMvKSCR(3, random_state=0), in_blocks(some))
    np.testing.assert_array_equal(found.scores_, expected.scores_)


def test_without_a_cluster_the_message_says_how_to_start_one(views):
    with pytest.raises(
        InputError, match=r"TMvKSCR on all samples needs a cluster; start one with distributed.Cl.*, or use Fixed"
    ):
        fit(TMvKSCR(3), in_blocks(views))


def test_another_scheduler_cannot_hold_the_rows(client, views):
    with dask.config.set(scheduler="threads"), pytest.raises(InputError, match="needs a cluster"):
        fit(TMvKSCR(3), in_blocks(views))


def test_a_failed_fit_does_not_change_the_model(client, views):
    model = TMvKSCR(3, random_state=0).fit(views)
    labels = model.labels_
    with pytest.raises(InputError, match="sparse"):
        fit(model, {name: x.map_blocks(sp.csr_array) for name, x in in_blocks(views).items()})
    assert model.labels_ is labels


def test_fixed_size_models_are_still_trained_in_this_process(client, views):
    model = fit(FixedSize(TMvKSCR(3, random_state=0), n_train=200, random_state=0), in_blocks(views))
    np.testing.assert_array_equal(predict(model, in_blocks(views)).compute(), model.predict(views))


def test_the_example_of_the_documentation_runs(tmp_path, monkeypatch):
    page = (Path(__file__).parents[2] / "docs" / "scaling.md").read_text()
    example = page.split("## Fit on a cluster")[1].split("```python")[1].split("```")[0]
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    with dask.config.set({"distributed.scheduler.dashboard.link": ""}):
        exec(example.replace("processes=False", "processes=False, dashboard_address='127.0.0.1:0'"), names)
    model = load("model.safetensors")
    np.testing.assert_array_equal(model.labels_, names["labels"])
    np.testing.assert_array_equal(model.predict(names["digits"])[:5], names["new"])
