"""Views as Dask collections: the same results as in memory, also if workers fail."""

import gc
import importlib
import os
import signal
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse as sp
from joblib import parallel_config
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV

from coview import (
    OPMC,
    RBF,
    Coview,
    FixedSize,
    InputError,
    Linear,
    Preprocessed,
    TMvKSCR,
    Views,
    __version__,
    as_views,
    stack_views,
)
from coview.base.runtime import count_threads
from coview.distributed import DaskViews, fit, predict, predict_proba, score_samples, select_rows, transform
from coview.distributed.labels import _load, _model
from coview.distributed.tasks import sent
from tests.conftest import make_blobs

dask = pytest.importorskip("dask", reason='Dask is missing; run pip install "coview[dask]"')
distributed = pytest.importorskip("distributed", reason='Dask is missing; run pip install "coview[dask]"')
pd = pytest.importorskip("pandas")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")

N = 1200


@pytest.fixture(scope="module")
def views():
    return make_blobs(N, spread=1.0)[0]


@pytest.fixture(scope="module")
def model(views):
    return FixedSize(TMvKSCR(3, random_state=0), n_train=80, random_state=0).fit(views)


def in_chunks(views, rows=100):
    return {name: da.from_array(x, chunks=(rows, -1)) for name, x in views.items()}


def in_different_chunks(views):
    shapes = {"a": (100, 3), "b": (250, -1), "c": (333, 1)}
    return {name: da.from_array(x, chunks=shapes[name]) for name, x in views.items()}


def as_frames(views):
    """Frames of different partitions, one of them empty, and one with a nullable column."""
    frames = {name: pd.DataFrame(x, columns=[f"{name}{j}" for j in range(x.shape[1])]) for name, x in views.items()}
    frames["a"]["a0"] = frames["a"]["a0"].astype("Float64")
    numbers = {"a": 3, "b": 4, "c": 7}
    parts = {name: dd.from_pandas(frame, npartitions=numbers[name]) for name, frame in frames.items()}
    parts["b"] = dd.concat([parts["b"], parts["b"][parts["b"]["b0"] > np.inf]])
    return parts


def as_sparse(views):
    return {name: x.map_blocks(sp.csr_array) for name, x in in_different_chunks(views).items()}


def of_unknown_length(views):
    return {name: x[da.ones(N, chunks=100, dtype=bool)] for name, x in in_chunks(views).items()}


def of_shared_parts(views):
    """Chunks that all depend on one number, and a view whose chunks depend on the chunks before."""
    arrays = in_chunks(views)
    zero = (arrays["a"].sum() * 0).rechunk()
    return {**arrays, "a": arrays["a"] + zero, "c": da.cumsum(arrays["c"] * 0, axis=0) + arrays["c"]}


def annotated(views):
    with dask.annotate(retries=2):
        return {name: x + 0 for name, x in in_chunks(views).items()}


FORMS = [in_chunks, in_different_chunks, as_frames, as_sparse, of_unknown_length, of_shared_parts, annotated]


@pytest.mark.parametrize("form", FORMS)
def test_results_are_those_in_memory(views, model, form):
    sources = form(views)
    before = {name: getattr(x, "chunks", None) for name, x in sources.items()}
    lazy = DaskViews(sources)
    labels, scores = predict(model, lazy), transform(model, lazy)
    assert (labels.dtype, labels.shape) == (np.int64, (N,))
    assert (scores.dtype, scores.shape) == (np.float64, (N, 2))
    np.testing.assert_array_equal(labels.compute(), model.labels_)
    # The rounding of a product depends on its number of rows.
    np.testing.assert_allclose(scores.compute(), model.transform(views), rtol=0, atol=1e-14)
    membership = predict_proba(model, lazy)
    assert (membership.dtype, membership.shape) == (np.float64, (N, 3))
    np.testing.assert_allclose(membership.compute(), model.predict_proba(views), rtol=0, atol=1e-7)
    usual = score_samples(model, lazy)
    assert (usual.dtype, usual.shape) == (np.float64, (N,))
    np.testing.assert_allclose(usual.compute(), model.score_samples(views), rtol=0, atol=1e-7)
    assert [piece.compute().shape for piece in labels.blocks] == [(rows,) for rows in labels.chunks[0]]
    assert str({name: getattr(x, "chunks", None) for name, x in sources.items()}) == str(before)
    taken = lazy.take([7, 3, 1199, 3])
    for name, x in as_views(views).take([7, 3, 1199, 3]).items():
        np.testing.assert_array_equal(taken[name].toarray() if sp.issparse(taken[name]) else taken[name], x)


@pytest.mark.parametrize("n_clusters", [3, "auto"])
def test_results_of_coview_are_those_in_memory(views, n_clusters):
    lazy = DaskViews(in_different_chunks(views))
    model = FixedSize(Coview(n_clusters, random_state=0), n_train=200, random_state=0).fit(views)
    trained = fit(FixedSize(Coview(n_clusters, random_state=0), n_train=200, random_state=0), lazy)
    np.testing.assert_array_equal(predict(trained, lazy).compute(), model.labels_)
    np.testing.assert_array_equal(predict_proba(model, lazy).compute(), model.predict_proba(views))
    np.testing.assert_allclose(transform(model, lazy).compute(), model.transform(views), rtol=0, atol=1e-14)
    np.testing.assert_allclose(score_samples(model, lazy).compute(), model.score_samples(views), rtol=0, atol=1e-7)


@pytest.mark.parametrize("select", ["uniform", "entropy", "kmeans"])
def test_training_gives_the_same_model_as_in_memory(views, select):
    settings = {"n_train": 60, "select": select, "n_repeats": 2, "random_state": 3}
    lazy = DaskViews(in_different_chunks(views))
    ours = fit(FixedSize(TMvKSCR(3, random_state=0), **settings), lazy)
    theirs = FixedSize(TMvKSCR(3, random_state=0), **settings).train(as_views(views))
    for name in ("train_rows_", "agreements_", "eigenvalues_"):
        np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name))
    np.testing.assert_array_equal(ours.model_.learnt["latent_"], theirs.model_.learnt["latent_"])
    np.testing.assert_array_equal(predict(ours, lazy).compute(), theirs.predict(views))


@pytest.mark.parametrize("method", [TMvKSCR(3, kernel=RBF(), random_state=0), OPMC(3, random_state=0)])
def test_clusters_of_more_than_10_000_samples_have_the_same_numbers_as_in_memory(method):
    views, truth = make_blobs(12_000, spread=8.0)
    few = np.concatenate([np.flatnonzero(truth == k)[: 4000 - 5 * k] for k in range(3)])  # almost the same sizes
    views = {name: x[np.sort(few)] for name, x in views.items()}
    lazy = DaskViews(in_chunks(views, 3000))
    for seed in range(3):
        model = FixedSize(method, n_train=50, random_state=seed)
        labels = predict(fit(clone(model), lazy), lazy).compute()
        np.testing.assert_array_equal(labels, model.fit(views).predict(views))
        np.testing.assert_array_equal(labels, model.labels_)


@pytest.mark.parametrize("select", ["uniform", "entropy"])
def test_rows_can_be_selected_without_training(views, select):
    lazy = DaskViews(in_chunks(views))
    rows = select_rows(lazy, 50, select=select, random_state=5, kernel=RBF(4.0))
    model = FixedSize(TMvKSCR(3, kernel=RBF(4.0)), n_train=50, select=select, random_state=5).train(lazy)
    np.testing.assert_array_equal(rows, model.train_rows_)
    np.testing.assert_array_equal(
        rows, select_rows(in_chunks(views), 50, select=select, random_state=5, kernel=RBF(4.0))
    )
    for wrong in (1201, 0, True):
        with pytest.raises(InputError, match=f"n_train={wrong}: expected an integer from 1 to 1200"):
            select_rows(lazy, wrong)


def test_views_have_names_and_sizes(views):
    lazy = DaskViews(in_chunks(views))
    assert repr(lazy) == "DaskViews(1200 samples in 12 blocks; a: 4, b: 6, c: 3)"
    assert (lazy.names, lazy.n_samples) == (("a", "b", "c"), N)
    assert lazy.n_features == {"a": 4, "b": 6, "c": 3}


def test_a_block_is_one_task_and_the_model_is_in_the_graph_once(views, model):
    graph = dict(predict(model, in_chunks(views)).dask)
    assert len(graph) == 12 + 1


def test_small_blocks_of_views_with_different_chunks_are_merged(monkeypatch):
    heights = {"a": 10, "b": 1000}
    arrays = {name: da.zeros((2000, 2), chunks=(rows, -1)) for name, rows in heights.items()}
    monkeypatch.setattr("coview.distributed.views._FEWEST_ROWS", 305)
    assert repr(DaskViews(arrays)).startswith("DaskViews(2000 samples in 7 blocks")
    assert repr(DaskViews({"a": arrays["a"]})).startswith("DaskViews(2000 samples in 200 blocks")


def test_only_blocks_with_chosen_rows_are_computed():
    seen = []

    def read(block_info=None):
        seen.append(block_info[None]["chunk-location"][0])
        return np.full((10, 2), seen[-1])

    lazy = DaskViews({"a": da.map_blocks(read, chunks=((10,) * 9, (2,)), dtype=float)})
    assert lazy.take([85, 31])["a"].tolist() == [[8, 8], [3, 3]]
    assert sorted(seen) == [3, 8]


@pytest.mark.parametrize("rows", [[-1], [90], [0.5], [], [[1, 2]]])
def test_row_numbers_out_of_range_are_refused(rows):
    with pytest.raises(InputError, match="row numbers from 0 to 89"):
        DaskViews({"a": da.zeros((90, 2), chunks=10)}).take(rows)


class Threads:
    """A model whose labels are the threads that it may use."""

    def predict(self, views):
        return np.resize([count_threads(None), count_threads(-1), count_threads(5)], views.n_samples)


def test_a_task_uses_one_thread():
    with dask.config.set(scheduler="threads", num_workers=2):
        assert set(predict(Threads(), {"a": da.zeros((90, 2), chunks=9)}).compute()) == {1}


def test_labels_of_any_integer_type_become_int64():
    class Narrow:
        def predict(self, views):
            return np.zeros(views.n_samples, np.int32)

    assert predict(Narrow(), {"a": da.zeros((9, 2), chunks=3)}).compute().dtype == np.int64


@pytest.mark.parametrize(
    ("sources", "message"),
    [
        ([], "mapping from view name"),
        ({}, "mapping from view name"),
        ({"a": np.zeros((9, 2))}, "view 'a' is an ndarray; give a dask array or dask data frame"),
        ({1: da.zeros((9, 2)), "1": da.zeros((9, 2))}, "two views have the same name among 1, 1; rename one"),
        ({"a": dask.delayed(3)}, "view 'a' is a Delayed.*; give a dask array"),
        ({"a": da.zeros(9)}, "view 'a' is 1-D; expected a 2-D table"),
        ({"a": da.zeros((0, 2))}, "view 'a' has 0 samples"),
        ({"a": da.zeros((9, 0))}, r"view 'a' has 0 feature\(s\)"),
        ({"a": da.zeros((9, 2)), "b": da.zeros((8, 2))}, "view 'b' has 8 samples but view 'a' has 9"),
        ({"a": da.zeros((9, 2), dtype="U3")}, "view 'a' holds strings"),
        ({"a": da.zeros((9, 2), dtype=complex)}, "Complex data not supported"),
        ({"a": dd.from_dict({"x": [1], "y": ["u"]}, npartitions=1)}, "view 'a' has strings in the column 'y'"),
        (
            {"a": dd.from_dict({"x": [1], "y": ["u"]}, npartitions=1).astype({"y": "category"})},
            "view 'a' has categories in the column 'y', which DaskViews does not encode; store the view as Parquet",
        ),
    ],
)
def test_sources_that_are_not_views_are_refused(sources, message):
    with pytest.raises(InputError, match=message):
        DaskViews(sources)


def test_an_unsuitable_model_is_refused_before_blocks_are_computed(views, model):
    def read():
        raise AssertionError("work has started")

    narrow = da.map_blocks(read, chunks=((600, 600), (5,)), dtype=float)
    arrays = in_chunks(views)
    with pytest.raises(InputError, match=r"view 'b' has 5 columns, but it had 6 when .*; use the same columns"):
        predict(model, {**arrays, "b": narrow})
    with pytest.raises(InputError, match="unknown: d"):
        transform(model, {**arrays, "d": arrays["c"]})
    with pytest.raises(NotFittedError):
        predict(TMvKSCR(3), arrays)
    with pytest.raises(InputError, match="OPMC has no transform"):
        transform(OPMC(3).fit(views), arrays)
    frames = as_frames(views)
    trained = fit(FixedSize(TMvKSCR(3, random_state=0), n_train=50), frames)
    with pytest.raises(InputError, match="view 'c' has the column 'other' where 'c0' was"):
        predict(trained, {**frames, "c": frames["c"].rename(columns={"c0": "other"})})


@pytest.mark.parametrize("model", [TMvKSCR, OPMC(3)])
def test_other_models_than_graph_models_need_fixed_size(model, views):
    with pytest.raises(InputError, match=r"FixedSize\(.*\(…\), n_train=1000\) trains on some of them"):
        fit(model, in_chunks(views))


def fails():
    raise OSError("the file ends too early")


def lacks_a_row():
    return np.zeros((99, 6))


def has_gaps():
    return np.where((np.arange(600).reshape(100, 6) // 6 % 50 == 17) & (np.arange(6) > 2), np.nan, 0.0)


def holds_text():
    return np.full((100, 6), "three", dtype=object)


def with_corrupt_chunk(views, chunk):
    good = in_chunks(views)
    bad = da.from_delayed(dask.delayed(chunk)(), (100, 6), float)
    return {**good, "b": da.concatenate([good["b"][:700], bad, good["b"][800:]])}


@pytest.mark.parametrize(
    ("chunk", "message"),
    [
        (fails, "view 'b' cannot be computed in rows 700 to 799: OSError: the file ends too early"),
        (lacks_a_row, r"shape \(99, 6\) for rows 700 to 799; its metadata say \(100, 6\)"),
        (
            has_gaps,
            "view 'b' contains NaN or infinity in row 717, column 3, the first of 2 such rows from 700 to 799",
        ),
        (holds_text, "rows 700 to 799: view 'b' holds strings"),
    ],
)
def test_a_corrupt_chunk_is_named_by_view_and_rows(views, model, chunk, message):
    lazy = DaskViews(with_corrupt_chunk(views, chunk))
    labels = predict(model, lazy)
    with pytest.raises(InputError, match=message):
        labels.compute()
    np.testing.assert_array_equal(labels[:700].compute(), model.labels_[:700])
    assert lazy.take([699, 800]).n_samples == 2
    if chunk is not has_gaps:
        with pytest.raises(InputError, match=message.replace("700 to 799: view", "750 to 750: view")):
            lazy.take([699, 750])


def test_a_sample_without_any_view_is_named(views, model):
    some = {name: np.array(x, dtype=float) for name, x in views.items()}
    some["a"][42] = np.nan
    for x in some.values():
        x[77] = np.nan
    message = "row 77 has no view, because it is NaN in all of them; drop it"
    with pytest.raises(InputError, match=message):
        predict(model, in_chunks(some)).compute()
    with pytest.raises(InputError, match=message):
        DaskViews(in_chunks(some)).take([42, 77])


def test_models_that_fill_empty_cells_accept_them(views):
    some = {name: np.array(x, dtype=float) for name, x in views.items()}
    some["a"][[0, 130], [1, 2]] = np.nan
    lazy = DaskViews(in_chunks(some))
    method = Preprocessed(TMvKSCR(3, random_state=0), {"a": "median"})
    model = fit(FixedSize(method, n_train=200, random_state=0), lazy)
    np.testing.assert_array_equal(predict(model, lazy).compute(), model.predict(some))
    np.testing.assert_array_equal(transform(model, lazy).compute(), model.transform(some))
    assert lazy.filled_by(model).take([0, 1]).empty_cells == {"a"}
    with pytest.raises(InputError, match="view 'a' contains NaN or infinity in row 0, column 1"):
        lazy.take([0, 1])
    with pytest.raises(InputError, match="view 'a' contains NaN or infinity in row 0, column 1"):
        fit(FixedSize(TMvKSCR(3), n_train=200), lazy)


def test_a_corrupt_chunk_that_several_blocks_need_is_named(views, model):
    sources = with_corrupt_chunk(views, fails)
    message = r"view 'b' cannot be computed in rows \d+ to \d+: OSError"
    with pytest.raises(InputError, match=message):
        predict(model, {name: x if name == "b" else x.rechunk((30, -1)) for name, x in sources.items()}).compute()


def test_rows_are_named_when_the_model_refuses_them():
    small, large = np.ones((30, 2)), np.full((10, 2), 1e308)
    model = TMvKSCR(2, kernel=Linear()).fit({"a": np.arange(1.0, 21).reshape(10, 2)})
    with pytest.raises(InputError, match="rows 30 to 39: view 'a' has similarities too large"):
        predict(model, {"a": da.from_array(np.vstack([small, large]), chunks=(10, -1))}).compute()


def test_views_that_cannot_be_counted_are_named():
    array = da.map_blocks(fails, chunks=((np.nan,), (3,)), dtype=float, meta=np.empty((0, 0)))
    with pytest.raises(InputError, match="the rows of view 'a' cannot be counted: OSError: the file ends too early"):
        DaskViews({"a": array})


def test_without_dask_the_message_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "dask.array", None)
    with pytest.raises(ImportError, match=r'DaskViews needs dask: pip install "coview\[dask\]"'):
        DaskViews({})


def test_without_a_cluster_the_model_is_a_task():
    task = _model(b"")
    assert task.key.startswith("coview-model")
    assert not task.dependencies


def test_a_worker_without_another_library_names_it(monkeypatch):
    def lacks(name):
        raise ModuleNotFoundError("No module named 'sklearn'", name="sklearn")

    task = sent(_load)
    monkeypatch.setattr(importlib, "import_module", lacks)
    with pytest.raises(ModuleNotFoundError, match="sklearn"):
        task(b"")


def test_threads_of_a_worker_import_modules_of_one_package(tmp_path, monkeypatch):
    package = tmp_path / "slow" / "package"
    package.mkdir(parents=True)
    # Both threads wait for the outer package. One has then begun to import a module that the inner package needs.
    package.parent.joinpath("__init__.py").write_text("import time; time.sleep(0.5)")
    package.joinpath("__init__.py").write_text("import slow.package.second")
    for name in ("first", "second"):
        package.joinpath(f"{name}.py").write_text("def answer(value): return value")
    monkeypatch.syspath_prepend(tmp_path)

    def answer(value):
        """Stands for the function of a module that is not imported yet."""

    tasks = []
    for name in ("first", "second"):
        answer.__module__ = f"slow.package.{name}"
        tasks.append(sent(answer))
    for name in ("slow", "slow.package", "slow.package.first", "slow.package.second"):  # of another run in this process
        monkeypatch.delitem(sys.modules, name, raising=False)
    with ThreadPoolExecutor(2) as pool:
        found = [pool.submit(task, number) for number, task in enumerate(tasks)]
        assert [each.result() for each in found] == [0, 1]


class Recorded:
    """A model that writes a file in each process that receives it or calls it, and waits while a lock file exists."""

    def __init__(self, model, folder):
        self.model, self.folder = model, folder
        self.ballast = np.zeros(1_500_000)  # Dask would warn if this were in the graph

    def __setstate__(self, state):
        self.__dict__ = state
        (self.folder / f"sent-{os.getpid()}-{time.monotonic_ns()}").touch()

    def predict(self, views):
        (self.folder / f"works-{os.getpid()}").touch()
        wait_until(lambda: not (self.folder / "hold").exists())
        return self.model.predict(views)


def wait_until(condition):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def processes(folder, what):
    return [int(path.name.split("-")[1]) for path in folder.glob(f"{what}-*")]


@pytest.mark.parametrize("form", [in_chunks, in_different_chunks, as_frames, of_shared_parts, annotated])
def test_results_of_a_cluster_are_those_in_memory(client, views, model, form):
    lazy = DaskViews(form(views))
    labels, scores = dask.compute(predict(model, lazy), transform(model, lazy))
    np.testing.assert_array_equal(labels, model.labels_)
    np.testing.assert_allclose(scores, model.transform(views), rtol=0, atol=1e-14)


def test_views_in_the_memory_of_a_cluster_are_accepted(client, views, model):
    lazy = DaskViews({name: x.persist() for name, x in in_different_chunks(views).items()})
    np.testing.assert_array_equal(predict(model, lazy).compute(), model.labels_)
    trained = fit(FixedSize(TMvKSCR(3, random_state=0), n_train=80, random_state=0), lazy)
    np.testing.assert_array_equal(trained.model_.learnt["latent_"], model.model_.learnt["latent_"])


def test_another_scheduler_can_be_used_beside_a_cluster(client, views, model):
    with dask.config.set(scheduler="threads"):
        np.testing.assert_array_equal(predict(model, in_chunks(views)).compute(), model.labels_)


def test_a_model_is_sent_once_to_each_worker(client, views, model, tmp_path):
    labels = predict(Recorded(model, tmp_path), in_chunks(views, rows=50))
    np.testing.assert_array_equal(labels.compute(), model.labels_)
    np.testing.assert_array_equal(labels.compute(), model.labels_)
    sent = processes(tmp_path, "sent")
    assert len(sent) == len(set(sent)) <= 2


def test_a_killed_worker_does_not_change_the_labels(client, views, model, tmp_path):
    workers = {pid: address for address, pid in client.run(os.getpid).items()}
    labels = predict(Recorded(model, tmp_path), in_chunks(views))
    (tmp_path / "hold").touch()  # workers wait in their first block
    future = client.compute(labels)
    wait_until(lambda: workers.keys() & processes(tmp_path, "works"))
    victim = min(workers.keys() & processes(tmp_path, "works"))
    assert client.processing()[workers[victim]]
    os.kill(victim, signal.SIGKILL)
    (tmp_path / "hold").unlink()
    np.testing.assert_array_equal(future.result(timeout=60), model.labels_)
    client.wait_for_workers(2, timeout=60)
    assert victim not in client.run(os.getpid).values()


def test_a_corrupt_chunk_is_named_by_a_cluster(client, views, model):
    with pytest.raises(InputError, match="view 'b' cannot be computed in rows 700 to 799: OSError: the file ends"):
        predict(model, with_corrupt_chunk(views, fails)).compute()


def test_workers_without_coview_name_the_version_to_install(client, views, model):
    # Nested functions are pickled by value, because these workers cannot import this file. Modules are deleted, not
    # restored: a worker may be importing one, and would get back an incomplete module.
    def forget():
        for name in [name for name in sys.modules if name.split(".")[0] in {"coview", "tests"}]:
            del sys.modules[name]

    def hide():
        forget()
        sys.modules["coview"] = None

    advice = rf"the workers cannot import coview; install coview=={__version__} on every worker"
    client.run(hide)
    try:
        with pytest.raises(ImportError, match=advice):
            predict(model, in_chunks(views)).compute()
        with pytest.raises(ImportError, match=advice):
            DaskViews(in_chunks(views)).take([5])
    finally:
        client.run(forget)
    gc.collect()  # a failed task exists as long as an object, such as the traceback, refers to it
    wait_until(lambda: not client.cluster.scheduler.tasks)
    np.testing.assert_array_equal(predict(model, in_chunks(views)).compute(), model.labels_)


def test_a_grid_search_on_a_cluster_gives_the_local_result(client):
    views, truth = make_blobs(60)
    X, layout = stack_views(views)
    grid = {"rho": [0.0, 1.0], "kernel": [RBF(), RBF(sigma2=1e-3)], "n_clusters": [2, 3]}
    search = GridSearchCV(TMvKSCR(views=layout, random_state=0), grid, scoring="adjusted_rand_score", cv=3)
    here = search.fit(X, truth)
    best, results = here.best_params_, here.cv_results_["mean_test_score"]
    with parallel_config(backend="dask"):
        there = search.fit(X, truth)
    assert there.best_params_ == best
    np.testing.assert_array_equal(there.cv_results_["mean_test_score"], results)
    assert best["n_clusters"] == 3


def test_views_from_dask_are_plain_views(views):
    assert isinstance(DaskViews(in_chunks(views)).take(np.arange(3)), Views)
