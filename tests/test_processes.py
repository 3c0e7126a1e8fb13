"""Fitted models in long runs, threads, forks and the workers of other libraries."""

import json
import multiprocessing
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import joblib
import numpy as np
import pytest
from joblib.externals.loky import get_reusable_executor
from sklearn.base import clone

from coview import OPMC, RBF, Coview, FixedSize, TMvKSCR, load, save
from coview.base.runtime import count_threads
from tests.conftest import make_blobs

MODELS = {
    "graph": TMvKSCR(3, random_state=0, n_jobs=2),
    "rbf": TMvKSCR(3, kernel=RBF(), rho=0.5, random_state=0, n_jobs=2),
    "fixed size": FixedSize(TMvKSCR(3, random_state=0), n_train=60, random_state=0),
    "k-means": OPMC(3, random_state=0),
    "consensus": Coview(3, random_state=0, n_jobs=2),
}
MODEL = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)


@pytest.fixture(scope="module")
def views():
    return make_blobs(120, spread=1.5)[0]


def new_rows(views):
    return {name: x[::2] + 0.01 for name, x in views.items()}


def test_memory_does_not_grow_over_many_fits():
    """In a process of its own: that of the tests has caches of other tests."""
    code = (
        "import json\n"
        "from benchmarks.fuzz.memory import fit_often, used\n"
        "fit_often(80, 0)\n"
        "before = used()\n"
        "fit_often(80, 80)\n"
        "print(json.dumps([after - each for each, after in zip(before, used())]))\n"
    )
    if not Path("/proc/self/statm").exists():
        pytest.skip("the system does not report the memory of a process (issue 22)")
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=200, cwd=Path(__file__).parents[1]
    )
    assert run.returncode == 0, run.stderr
    grown, objects = json.loads(run.stdout)
    assert objects < 50  # a leak of one object in each fit would be 80
    assert grown < 4 * 2**20  # caches of allocators still fill


@MODEL
def test_predictions_in_threads_are_the_same_while_others_fit(views, model):
    model = clone(model).fit(views)
    expected, threads = model.predict(new_rows(views)), count_threads(None)
    ended = Event()

    def fit():
        while not ended.is_set():
            np.testing.assert_array_equal(clone(MODELS["rbf"]).fit(views).labels_, labels)

    labels = clone(MODELS["rbf"]).fit(views).labels_
    with ThreadPoolExecutor(9) as pool:
        fitting = pool.submit(fit)
        found = [pool.submit(model.predict, new_rows(views)) for _ in range(40)]
        for each in found:
            np.testing.assert_array_equal(each.result(timeout=60), expected)
        ended.set()
        fitting.result(timeout=60)
    assert count_threads(None) == threads  # of BLAS, which fits limit


def _answer(model, views, queue):
    queue.put((model.predict(views), clone(model).fit(views).labels_))


@MODEL
@pytest.mark.skipif(sys.platform != "linux", reason="forks with threads are for Linux (issue 22)")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_fork_predicts_and_fits_after_a_fit(views, model):
    model = clone(model).fit(views)
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()
    process = context.Process(target=_answer, args=(model, views, queue))
    process.start()
    process.join(60)
    assert process.exitcode == 0
    predicted, labels = queue.get()
    np.testing.assert_array_equal(predicted, model.labels_)
    np.testing.assert_array_equal(labels, model.labels_)


def _predict_file(path, views):
    return load(path).predict(views)


@pytest.mark.parametrize("name", ["graph", "consensus"])
def test_workers_of_joblib_use_saved_and_sent_models(views, tmp_path, name):
    model = clone(MODELS[name]).fit(views)
    path = save(model, tmp_path / "model")
    expected = model.predict(new_rows(views))
    calls = [joblib.delayed(_predict_file)(path, new_rows(views)), joblib.delayed(model.predict)(new_rows(views))]
    try:
        for found in joblib.Parallel(n_jobs=2, backend="loky")(calls * 2):
            np.testing.assert_array_equal(found, expected)
    finally:
        get_reusable_executor().shutdown(wait=True)


def test_workers_of_dask_use_saved_and_sent_models(views, tmp_path):
    distributed = pytest.importorskip("distributed", reason='Dask is missing; run pip install "coview[dask]"')
    model = clone(MODELS["graph"]).fit(views)
    path = save(model, tmp_path / "model")
    expected = model.predict(new_rows(views))
    settings = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0", "memory_limit": 0, "silence_logs": 50}
    with (
        distributed.LocalCluster(n_workers=1, threads_per_worker=2, processes=True, **settings) as cluster,
        distributed.Client(cluster) as client,
    ):
        calls = [client.submit(_predict_file, path, new_rows(views)), client.submit(model.predict, new_rows(views))]
        for found in client.gather(calls):
            np.testing.assert_array_equal(found, expected)
