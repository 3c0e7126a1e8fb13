import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from joblib import parallel_config
from sklearn.cluster import KMeans

from benchmarks import sweep as module
from benchmarks.sweep import Data, Experiment, averaged, best, grid, preprocessed, read_rows, rows_on_file, sweep
from coview import COMIC, KSC, OPMC, RBF, Concat, CoReg, FixedSize, MvKSC, PerView, Preprocessed, TMvKSCR
from coview.errors import InputError
from coview.preprocess.steps import parse_steps

BOTH = ("codebook", "directions")
TIMES = ("seconds", "gram_seconds", "memory")


def made(n=60, k=3, seed=0, name="made"):
    rng = np.random.default_rng(seed)
    truth = np.arange(n) % k
    views = {v: rng.normal(size=(k, d))[truth] * 2 + rng.normal(size=(n, d)) for v, d in (("text", 4), ("image", 6))}
    return Data.of(name, views, truth)


def without_times(rows):
    return [{name: value for name, value in row.items() if name not in TIMES} for row in rows]


def test_a_row_for_every_setting_assigner_and_seed():
    experiments = grid("ours", TMvKSCR(), {"kernel": [RBF(5.0)], "rho": [0.0, 0.5]}, seeds=(0, 1), assigners=BOTH)
    rows = sweep(made(), experiments)
    assert len(rows) == 8
    assert Counter((json.loads(r["settings"])["rho"], r["assigner"], r["seed"]) for r in rows).most_common(1)[0][1] == 1
    assert {r["protocol"] for r in rows} == {"oracle"}
    assert all(r["error"] is None and r["seconds"] > 0 and 0 <= r["purity"] <= 1 for r in rows)


@pytest.mark.parametrize("assigner", BOTH)
@pytest.mark.parametrize("method", [TMvKSCR, MvKSC])
def test_labels_are_those_of_the_estimator_itself(method, assigner):
    data = made(seed=3)
    [row] = sweep(data, [Experiment("ours", method(kernel=RBF(4.0)), seed=5, assigners=(assigner,))])
    alone = method(3, kernel=RBF(4.0), assigner=assigner, random_state=5).fit(data.views)
    assert {name: row[name] for name in module.MEASURES} == pytest.approx(
        module.truth_scores(data.truth, alone.labels_)
    )


def test_labels_of_single_views_are_those_of_the_estimator():
    data = made(seed=2)
    rows = sweep(data, [Experiment("ours", TMvKSCR(kernel=RBF(4.0)), assigners=("codebook",), per_view=True)])
    alone = TMvKSCR(3, kernel=RBF(4.0), assigner="codebook", random_state=0).fit(data.views)
    assert [r["labels"] for r in rows] == ["all views", "text", "image"]
    for row in rows[1:]:
        expected = module.truth_scores(data.truth, alone.view_labels_[row["labels"]])
        assert row["ari"] == pytest.approx(expected["ari"])


def test_without_an_assigner_the_labels_are_those_of_the_estimator():
    rows = sweep(made(), [Experiment("ours", TMvKSCR(kernel=RBF(4.0)), per_view=True)])
    assert [(r["assigner"], r["labels"]) for r in rows] == [(None, "all views"), (None, "text"), (None, "image")]


def test_a_column_of_truth_for_each_view_is_scored_by_the_mean():
    data = made()
    two = Data.of("two", data.views, np.column_stack([data.truth, np.roll(data.truth, 1)]))
    rows = sweep(two, [Experiment("ours", TMvKSCR(kernel=RBF(4.0)), assigners=("codebook",), per_view=True)])
    assert [r["labels"] for r in rows] == ["all views", "each view"]
    model = TMvKSCR(3, kernel=RBF(4.0), assigner="codebook", random_state=0).fit(data.views)
    by_view = list(model.view_labels_.values())
    aris = [module.truth_scores(two.truth[:, v], by_view[v])["ari"] for v in range(2)]
    assert rows[1]["ari"] == pytest.approx(np.mean(aris))
    aris = [module.truth_scores(two.truth[:, v], model.labels_)["ari"] for v in range(2)]
    assert rows[0]["ari"] == pytest.approx(np.mean(aris))


def test_gram_matrices_are_computed_once_for_all_settings_that_share_them(monkeypatch):
    made_for = []
    usual = RBF.__call__ if "__call__" in vars(RBF) else module.Kernel.__call__
    monkeypatch.setattr(
        RBF, "__call__", lambda self, x, y=None: made_for.append(self) or usual(self, x, y), raising=False
    )
    kernel = {"kernel": [RBF(4.0), RBF(9.0)]}
    experiments = grid("ours", TMvKSCR(), kernel | {"rho": [0.0, 0.5, 1.0]}, assigners=BOTH)
    experiments += grid("theirs", MvKSC(), kernel, assigners=BOTH) + grid("others", CoReg(), kernel)
    rows = sweep(made(), experiments)
    assert len(rows) == 12 + 4 + 2
    assert Counter(made_for) == {RBF(4.0): 2, RBF(9.0): 2}  # one for each view


def test_a_fit_that_does_not_share_computes_its_own_gram_matrices():
    experiments = [Experiment("ours", KSC(kernel=RBF(4.0)), layout="text", shared=shared) for shared in (True, False)]
    shared, own = (sweep(made(), [experiment])[0] for experiment in experiments)
    assert shared["gram_seconds"] is not None
    assert own["gram_seconds"] is None
    assert shared["ari"] == own["ari"]


def test_a_kernel_without_a_bandwidth_is_resolved_by_the_estimator():
    data = made()
    [row] = sweep(data, [Experiment("ours", TMvKSCR(), seed=1)])
    assert row["gram_seconds"] is None
    assert row["ari"] == pytest.approx(
        module.truth_scores(data.truth, TMvKSCR(3, random_state=1).fit(data.views).labels_)["ari"]
    )


def test_a_kernel_for_each_view():
    [row] = sweep(made(), [Experiment("ours", TMvKSCR(kernel=[RBF(4.0), RBF(9.0)]))])
    assert json.loads(row["settings"])["kernel"] == ["RBF(sigma2=4.0)", "RBF(sigma2=9.0)"]
    assert row["gram_seconds"] is not None


def test_failures_are_rows_and_other_fits_continue(tmp_path):
    experiments = grid("ours", TMvKSCR(kernel=RBF(4.0)), {"rho": [2.0, 0.5]}, assigners=BOTH)
    experiments += [
        Experiment("ours", TMvKSCR(), layout="sound"),
        Experiment("ours", TMvKSCR(), preprocess=("l2",)),
        Experiment("failing", Failing()),
    ]
    rows = sweep(made(), experiments, tmp_path / "rows.jsonl")
    assert ["rho=2.0" in (r["error"] or "") for r in rows[:4]] == [True, True, False, False]
    assert "sound" in rows[4]["error"]
    assert "2 views" in rows[5]["error"]
    assert rows[6]["error"] == "RuntimeError"
    assert all(r["ari"] is None for r in rows if r["error"])
    assert sweep(made(), experiments, tmp_path / "rows.jsonl") == rows  # a failed fit is not repeated


class Failing(OPMC):
    def fit_model(self, views, report):
        raise RuntimeError


def test_estimators_of_other_libraries_get_all_columns():
    data = made()
    [row] = sweep(data, [Experiment("k-means", KMeans(n_init=3), preprocess="standard")])
    table = np.hstack([(x - x.mean(axis=0)) / x.std(axis=0) for x in data.views.values()])
    labels = KMeans(3, n_init=3, random_state=0).fit(table).labels_
    assert row["ari"] == pytest.approx(module.truth_scores(data.truth, labels)["ari"])
    assert row["settings"] == '{"estimator": "KMeans", "n_init": 3, "preprocess": "standard"}'


@pytest.mark.parametrize("name", ["n_clusters", "random_state", "assigner"])
def test_parameters_that_a_sweep_sets_are_refused_in_a_grid(name):
    with pytest.raises(InputError, match=f"'{name}' of 'ours' cannot be a parameter of a grid"):
        grid("ours", TMvKSCR(), {name: [2, 3]})


def test_wrappers_around_one_method_have_different_settings():
    assert len({Experiment("x", wrapper(KSC())).settings for wrapper in (Concat, PerView, Preprocessed)}) == 3


def test_the_best_by_another_measure_has_the_spread_of_that_measure():
    [one] = sweep(made(), [Experiment("ours", TMvKSCR())])
    rows = [{**one, "ari": 0.5, "nmi": nmi, "seed": seed} for seed, nmi in enumerate((0.2, 0.8))]
    assert best(rows, "nmi")[0]["spread"] == pytest.approx(0.3)
    assert best(rows)[0]["spread"] == 0


def test_rows_on_file_are_those_of_the_experiments(tmp_path):
    path, data = tmp_path / "rows.jsonl", made()
    experiments = grid("ours", TMvKSCR(), {"rho": [0.25, 0.5, 1.0]})
    done = sweep(data, experiments[:2], path)
    assert rows_on_file(data, experiments[1:], path) == done[1:]
    assert rows_on_file(data, experiments, tmp_path / "none.jsonl") == []


def test_settings_and_seeds_reach_the_inner_estimator():
    data = made()
    wrapped = FixedSize(TMvKSCR(rho=np.float64(0.25)), n_train=30)
    [row] = sweep(data, [Experiment("ours", wrapped, seed=4)])
    assert json.loads(row["settings"]) == {
        "estimator": "FixedSize",
        "inside": {"estimator": "TMvKSCR", "rho": 0.25},
        "n_train": 30,
    }
    inner = TMvKSCR(3, rho=0.25, random_state=4)
    labels = FixedSize(inner, n_train=30, random_state=4).fit(data.views).labels_
    assert row["ari"] == pytest.approx(module.truth_scores(data.truth, labels)["ari"])


def test_the_number_of_clusters_found_is_part_of_the_row():
    [row] = sweep(made(), [Experiment("COMIC", COMIC())])
    assert row["error"] is None
    assert row["n_found"] == COMIC().fit(made().views).n_clusters_


def test_a_warning_is_part_of_the_row():
    [row] = sweep(made(), [Experiment("ours", OPMC(max_iter=1, n_init=1, init="random"))])
    assert row["error"] is None
    assert "max_iter" in row["warning"]


@pytest.mark.parametrize("damage", [b'{"dataset": "made", "prot', b'{"cut": "off"}'])
def test_an_interrupted_sweep_resumes(tmp_path, monkeypatch, damage):
    path = tmp_path / "deep" / "rows.jsonl"
    experiments = grid("ours", TMvKSCR(kernel=RBF(4.0)), {"rho": [0.0, 0.5, 1.0]}, assigners=BOTH)
    whole = sweep(made(), experiments)
    sweep(made(), experiments[:2], path)
    with path.open("ab") as file:
        file.write(damage)  # an incomplete line
    fits = []
    usual = TMvKSCR.fit
    monkeypatch.setattr(TMvKSCR, "fit", lambda self, X, y=None: fits.append(self.rho) or usual(self, X, y))
    again = sweep(made(), experiments, path)
    assert fits == [1.0]
    assert without_times(again) == without_times(whole)
    assert len(path.read_text().splitlines()) == 6
    assert without_times(read_rows(path)) == without_times(whole)


def test_a_killed_sweep_leaves_a_file_that_gives_the_same_table(tmp_path):
    path = tmp_path / "rows.jsonl"
    script = (
        "from pathlib import Path\n"
        "from tests.benchmarks.test_sweep import made, many\n"
        "from benchmarks.sweep import sweep\n"
        f"sweep(made(), many(), Path({str(path)!r}))\n"
    )
    root = Path(__file__).parents[2]
    env = os.environ | {"PYTHONPATH": os.pathsep.join([str(root), os.environ.get("PYTHONPATH", "")])}
    process = subprocess.Popen([sys.executable, "-c", script], cwd=root, env=env)
    try:
        deadline = time.monotonic() + 60
        while not (path.exists() and path.stat().st_size) and time.monotonic() < deadline:
            time.sleep(0.01)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert path.stat().st_size > 0
    assert without_times(sweep(made(), many(), path)) == without_times(sweep(made(), many()))


def many():
    rhos = np.linspace(0, 1, 4).tolist()
    kernels = [RBF(float(s)) for s in range(1, 21)]
    return grid("ours", TMvKSCR(), {"kernel": kernels, "rho": rhos}, assigners=("codebook",))


def test_a_damaged_line_is_reported_with_its_number(tmp_path):
    path = tmp_path / "rows.jsonl"
    for text in ("not json\n", "3\n", '{"dataset": "made"}\n'):
        path.write_text(text)
        with pytest.raises(InputError, match="line 1"):
            sweep(made(), [Experiment("ours", TMvKSCR())], path)


def test_one_file_holds_the_rows_of_several_data_sets(tmp_path):
    path = tmp_path / "rows.jsonl"
    experiments = [Experiment("ours", TMvKSCR())]
    one, other = (sweep(made(name=name, seed=seed), experiments, path) for name, seed in (("one", 0), ("other", 7)))
    assert one[0]["dataset"] == "one"
    assert other[0]["dataset"] == "other"
    assert len(read_rows(path)) == 2


@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_processes_and_threads_give_the_same_table(backend):
    experiments = grid("ours", TMvKSCR(), {"kernel": [RBF(4.0), RBF(9.0)], "rho": [0.0, 1.0]}, assigners=BOTH)
    calls = []
    with parallel_config(backend=backend):
        rows = sweep(made(), experiments, n_jobs=2, progress=lambda done, total: calls.append((done, total)))
    assert calls[-1] == (4, 4)
    assert without_times(rows) == without_times(sweep(made(), experiments))


def test_long_lists_of_settings_are_split_into_tasks(monkeypatch):
    monkeypatch.setattr(module, "_MAX_FITS_PER_TASK", 2)
    calls = []
    experiments = grid("ours", TMvKSCR(kernel=RBF(4.0)), {"rho": [0.0, 0.2, 0.4, 0.6, 0.8]})
    rows = sweep(made(), experiments, progress=lambda done, total: calls.append((done, total)))
    assert calls == [(1, 5), (3, 5), (5, 5)]
    assert [json.loads(r["settings"]).get("rho") for r in rows] == [0.0, 0.2, 0.4, 0.6, 0.8]


def test_the_oracle_selects_the_best_mean_over_seeds():
    def row(method, rho, seed, ari, protocol="oracle", error=None):
        numbers = dict.fromkeys(("nmi", "accuracy", "purity", "seconds", "n_found"), 1.0)
        key = {"dataset": "d", "protocol": protocol, "method": method, "settings": f'{{"rho": {rho}}}', "seed": seed}
        return {**key, "assigner": None, "labels": "all views", "ari": ari, **numbers, "error": error}

    rows = [
        *(row("ours", 0, seed, ari) for seed, ari in enumerate((0.9, 0.1))),
        *(row("ours", 1, seed, ari) for seed, ari in enumerate((0.6, 0.7))),
        row("ours", 2, 0, 1.0, protocol="fixed"),
        row("ours", 3, 0, None, error="no"),
        row("theirs", 0, 0, 0.3),
    ]
    ours, theirs = best(rows)
    assert (ours["settings"], ours["ari"], ours["n_seeds"]) == ('{"rho": 1}', pytest.approx(0.65), 2)
    assert ours["spread"] == pytest.approx(0.05)
    assert theirs["ari"] == 0.3
    assert len(averaged(rows)) == 4


def test_the_shape_of_the_truth_is_checked():
    views = {"a": np.ones((4, 2)), "b": np.ones((4, 3))}
    for truth in ([0, 1], np.zeros((4, 3)), np.zeros((2, 4))):
        with pytest.raises(InputError, match="truth of 'here'"):
            Data.of("here", views, truth)
    assert Data.of("here", views, np.zeros((4, 2))).n_clusters == 1


def test_rows_are_shuffled_together_and_can_be_fewer():
    data = made()
    other = data.shuffled(1).first(20)
    order = np.random.default_rng(1).permutation(60)[:20]
    assert (other.truth == data.truth[order]).all()
    assert (other.views["text"] == data.views["text"][order]).all()
    assert other.n_clusters == 3


def test_views_are_preprocessed_and_laid_out():
    data = made()
    assert (preprocessed(data.views)["text"] == data.views["text"]).all()
    assert preprocessed(data.views, "l2", "image").names == ("image",)
    np.testing.assert_allclose(np.linalg.norm(preprocessed(data.views, "l2")["text"], axis=1), 1)
    joined = preprocessed(data.views, ("none", "standard"), "side by side")["columns"]
    assert joined.shape == (60, 10)
    np.testing.assert_allclose(joined[:, 4:].std(axis=0), 1)
    sparse = preprocessed(module.as_views({"a": sp.csr_array(np.eye(5))}), "standard")["a"]
    assert sp.issparse(sparse)
    assert sparse.nnz == 5


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("step", ["standard", "l2"])
def test_preprocessing_is_that_of_coview_up_to_rounding(step, sparse):
    x = np.random.default_rng(0).normal(size=(30, 5)) * [1, 10, 0, 1e-3, 5]  # one constant column
    x = sp.csr_array(x) if sparse else x
    ours, theirs = preprocessed(module.as_views({"a": x}), step)["a"], parse_steps(step).learn(x)(x)
    ours, theirs = (y.toarray() if sparse else y for y in (ours, theirs))
    np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("sparse", [False, True])
def test_columns_are_scaled_to_the_unit_interval(sparse):
    x = np.array([[0.0, 2.0], [4.0, 0.0], [8.0, 1.0]])
    scaled = preprocessed(module.as_views({"a": sp.csr_array(x) if sparse else x}), "minmax")["a"]
    np.testing.assert_array_equal(scaled.toarray() if sparse else scaled, [[0, 1], [0.5, 0], [1, 0.5]])


def test_settings_end_with_the_preprocessing():
    """The ranking of TMvKSCR breaks ties by this order, and the second stage of the search depends on it."""
    experiment = Experiment("ours", TMvKSCR(rho=0.25), layout="text", preprocess="l2")
    assert experiment.settings == '{"estimator": "TMvKSCR", "layout": "text", "rho": 0.25, "preprocess": "l2"}'


@pytest.mark.parametrize("wrong", [{"protocol": "lucky"}, {"preprocess": "big"}, {"preprocess": ("l2", "big")}])
def test_unknown_protocols_and_steps_are_refused(wrong):
    with pytest.raises(InputError, match=next(iter(wrong))):
        Experiment("ours", TMvKSCR(), **wrong)


def test_memory_is_none_on_systems_that_do_not_report_it(monkeypatch):
    def refuse(*_, **__):
        raise OSError

    monkeypatch.setattr("benchmarks.memory.reset_peak", refuse)
    assert sweep(made(), [Experiment("ours", TMvKSCR())])[0]["memory"] is None


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="only Linux reports peak memory")
def test_memory_is_the_peak_of_a_fit():
    class Hungry(OPMC):
        def fit_model(self, views, report):
            np.ones(5_000_000).sum()
            return super().fit_model(views, report)

    [row] = sweep(made(), [Experiment("hungry", Hungry())])
    assert 3.5e7 < row["memory"] < 2e8


def test_fits_without_shared_gram_matrices_are_separate_tasks():
    calls = []
    sweep(
        made(), grid("theirs", OPMC(), {"n_init": [1, 2, 3]}), progress=lambda done, total: calls.append((done, total))
    )
    assert calls == [(1, 3), (2, 3), (3, 3)]
