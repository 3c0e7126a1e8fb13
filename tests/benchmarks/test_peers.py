"""The comparison with other libraries: rows, failures, resuming, ranks and the page."""

import csv
import json
import os
import subprocess
import sys
import time
from contextlib import closing
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

psutil = pytest.importorskip("psutil", reason="the methods run in processes")

ROOT = Path(__file__).parents[2]


@pytest.fixture
def peers():
    """The modules of the comparison, whose import sets the number of threads."""
    from benchmarks.peers import data, page, peers, run, worker

    return {"data": data, "page": page, "peers": peers, "run": run, "worker": worker}


def row(peer, data, ari=None, part="quality", error=None, seconds=1.0):
    measured = {"ari": ari, "nmi": ari, "found": 3, "seconds": seconds, "memory": 10**6}
    same = {"part": part, "peer": peer, "data": data, "seed": 0, "commit": "abc"}
    return same | ({"error": error} if error else measured)


def test_two_methods_run_in_their_processes_and_resume(peers, monkeypatch, tmp_path, capsys):
    run, chosen = peers["run"], ["coview TMvKSCR", "scikit-learn k-means, std"]
    path = tmp_path / "rows.jsonl"
    arguments = ["--parts", "speed", "--data", "90 samples", "--jobs", "2", "--memory", "16"]
    arguments += ["--rows", str(path), "--out", str(tmp_path / "docs"), "--peers", *chosen]
    monkeypatch.setitem(run.PARTS, "speed", lambda: ["90 samples"])
    monkeypatch.setattr("sys.argv", ["run", *arguments])
    run.main()
    rows = run.stored(path)
    assert sorted(each["peer"] for each in rows) == chosen
    assert all(each["ari"] > 0.5 and each["found"] == 10 and each["memory"] >= 0 for each in rows)
    assert all(each["elapsed"] > each["seconds"] for each in rows)  # with the first fit
    page = " ".join((tmp_path / "docs" / "peers.md").read_text().split())
    assert "speed 2 of" in page
    assert "| coview TMvKSCR |" in page
    path.write_bytes(path.read_bytes() + b'{"part": "speed", "pee')  # a killed run
    before = capsys.readouterr().out
    run.main()
    assert run.stored(path) == rows
    assert "coview TMvKSCR, 90 samples: ARI" in before
    assert "ARI" not in capsys.readouterr().out  # nothing is computed again


def test_each_method_is_a_row_with_its_error(peers):
    _or_error = peers["worker"]._or_error

    def fail(error):
        raise error

    assert _or_error(lambda: {"ari": 1.0}) == {"ari": 1.0}
    assert _or_error(partial(fail, ValueError("two\nlines"))) == {"error": "ValueError: two lines"}
    assert _or_error(partial(fail, MemoryError())) == {"error": "MemoryError"}
    assert _or_error(partial(fail, BaseException("NaN weights"))) == {"error": "BaseException: NaN weights"}
    with pytest.raises(SystemExit):
        _or_error(partial(fail, SystemExit()))


def test_a_fit_over_its_time_limit_is_ended(peers):
    with closing(peers["worker"].Worker("coview TMvKSCR", 0, gigabytes=16)) as worker:
        start = time.perf_counter()
        assert worker("40000 samples", 0.0) == {"error": "over the time limit of 0 s"}
        assert time.perf_counter() - start < peers["worker"].WARM_SECONDS
        first_fitted = worker._process
        assert worker("90 samples", 60.0)["found"] == 10
        assert worker._process is first_fitted  # the first fit is not repeated
        first_fitted.kill()
        assert worker("90 samples", 60.0) == {"error": "the process ended with code -9"}
        assert worker("90 samples", 60.0)["found"] == 10  # in another process


@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")  # threads of pytest-xdist
def test_a_fork_ends_with_its_result_error_or_crash(peers):
    in_a_fork, before = peers["worker"].in_a_fork, psutil.Process().children()
    assert in_a_fork(lambda: {"ari": 1.0}, 60.0) == {"ari": 1.0}
    assert in_a_fork(lambda: {"ari": 1 / 0}, 60.0) == {"error": "ZeroDivisionError: division by zero"}
    assert in_a_fork(lambda: os._exit(7), 60.0) == {"error": "the process ended with code 7"}
    assert in_a_fork(lambda: time.sleep(60), 0.1) == {"error": "over the time limit of 0.1 s"}
    assert psutil.Process().children() == before


def test_a_slow_method_is_not_run_on_larger_data(peers):
    calls = []

    def measure(name, limit):
        calls.append(name)
        return {"error": f"over the time limit of {limit} s"} if name == "b" else {"ari": 0.5}

    sizes = {"a": (10, 10, 2), "b": (20, 90, 2), "c": (30, 90, 2), "one view": (40, 91, 1), "d": (40, 91, 3)}
    rows_left = partial(peers["run"].rows_left, measure=measure, limit=3, size_of=sizes.__getitem__)
    rows = list(rows_left(list(sizes), {"a": row("x", "a", 0.1)}))
    assert calls == ["b", "one view"]
    assert [each["data"] for each in rows] == ["b", "c", "one view", "d"]
    assert rows[1]["error"] == rows[3]["error"] == "not run: over the time limit of 3 s on b"
    known = {each["data"]: each for each in rows[:3]}
    assert list(rows_left(["b", "c", "one view", "d"], known)) == [rows[3]]  # also after an interruption


def test_a_method_over_the_limit_three_times_in_a_row_is_not_run_on_more_samples(peers):
    over = {"error": "over the time limit of 3 s"}
    # No size is at most another one: columns decrease.
    sizes = {"a": (10, 99), "b": (20, 90), "c": (30, 80), "d": (40, 70), "e": (50, 60), "f": (60, 50)}
    rows_left = partial(peers["run"].rows_left, limit=3, size_of=sizes.__getitem__)
    slow = {"b": over, "c": over, "d": over}
    calls = []
    rows = list(rows_left(list(sizes), {}, lambda name, limit: calls.append(name) or slow.get(name, {"ari": 0.5})))
    assert calls == ["a", "b", "c", "d"]
    assert rows[4]["error"] == rows[5]["error"] == "not run: over the time limit on b, c, d"
    slow = {"a": over, "b": over, "d": over}  # not in a row
    assert all(
        "ari" in row for row in list(rows_left(list(sizes), {}, lambda name, _: slow.get(name, {"ari": 0.5})))[4:]
    )
    # The rows of an earlier part, of which "a" has fewer samples.
    known = dict.fromkeys("bcd", over)
    sizes["a, missing"], sizes["e, missing"] = sizes["a"], sizes["e"]
    rows = list(rows_left(["a, missing", "e, missing"], known, lambda name, limit: {"ari": 0.5}))
    assert ["error" in row for row in rows] == [False, True]


def test_the_size_has_what_makes_a_fit_slow(peers):
    data = peers["data"]
    assert data.size_of("proteinfold") == data.size_of("proteinfold" + data.MISSING) == (694, 12 * 27, 12, 27)
    for name in (data.GAUSSIAN, data.CELLS):
        views, truth = data.read(name, 0)
        columns = sum(views[view].shape[1] for view in views)
        assert data.size_of(name) == (len(truth), columns, len(views), len(np.unique(truth)))


def test_a_method_whose_expected_time_is_over_the_limit_is_not_run(peers):
    times = {"1000 samples": 1.0, "2000 samples": 4.0, "10000 samples": 100.0, "50000 samples": 0.0}
    run = peers["run"]
    rows = list(run.rows_left(list(times), {}, lambda name, _: {"ari": 1.0, "seconds": times[name]}, limit=600))
    assert [each.get("ari") for each in rows] == [1.0, 1.0, 1.0, None]
    assert rows[3]["error"] == "not run: 2500 s are expected from its times on fewer samples, the limit is 600 s"
    assert rows[3]["expected"] == 2500
    assert run.expected_seconds({}, 2000) == 0
    # The times of k-means at 50,000 and 100,000 samples: the power law gives 319 s for a million, where it took 99 s.
    assert run.expected_seconds({50_000: 5.989, 100_000: 15.0}, 1_000_000) == pytest.approx(318, abs=2)
    assert run.expected_seconds({50_000: 5.989, 100_000: 15.0}, 1_000_000, is_linear=True) == 150
    assert run.expected_seconds({1000: 1.0}, 2000) == 2.0  # linear, because a growth needs two times
    assert run.expected_seconds({1000: 0.0, 2000: 0.0}, 10_000) < 1


def test_a_cell_tells_a_failure_from_a_method_that_was_not_run(peers):
    _score = peers["page"]._score
    errors = {
        "ValueError: 3": "fails",
        "MemoryError": "out of memory",
        "over the time limit of 60 s": "over the limit",
        "not run: over the time limit of 60 s on b": "not run",
        "ModuleNotFoundError: no module": "not installed",
    }
    for error, words in errors.items():
        assert _score(row("x", "a", error=error)) == words
    assert _score(row("x", "a", 0.5)) == "0.500"


def test_a_cell_of_times_says_why_it_has_none_and_whether_clusters_are_found(peers):
    _speed = peers["page"]._speed
    cells = {
        "x": {"a": row("x", "a", 1.0, seconds=2.0)},
        "y": {"a": row("y", "a", 0.5, seconds=2.0)},
        "z": {"a": row("z", "a", error="MemoryError")},
        "w": {"a": row("w", "a", error="not run: slow") | {"expected": 653}},
    }
    assert [line.split(" | ")[1].removesuffix(" |") for line in _speed(cells, ["a"])[2:]] == [
        "2.0 s, 1 MB",
        "2.0 s, 1 MB, ARI 0.50",  # a fit that is fast because it finds little
        "out of memory",
        "not run (653 s expected)",
    ]


def test_a_page_without_some_stored_data_sets_is_not_called_complete(peers, monkeypatch):
    from benchmarks.data import catalogue

    page, stored = peers["page"], [each.name for each in catalogue.KNOWN.values() if each.is_stored]
    assert len(stored) == 28
    monkeypatch.setattr(page, "PEERS", {})
    for names, words in ((stored[:-1], "**The run is incomplete**"), (stored, "The run is complete")):
        monkeypatch.setattr(catalogue, "stored_names", lambda names=names: names)
        text = page._completeness({"quality": {}}, {"quality": ["a"]})
        assert words in text
        assert (f"not counted: {stored[-1]}." in text) == (len(names) < len(stored))


def test_a_method_that_fails_in_its_first_fit_is_not_run_again(peers):
    error = {"error": "first fit of 150 samples: over the time limit of 120 s"}
    calls = []
    rows = list(peers["run"].rows_left(["a", "b"], {}, lambda name, _: calls.append(name) or error, limit=3))
    assert calls == ["a"]
    assert [each["error"] for each in rows] == [error["error"]] * 2


def test_times_of_another_part_count(peers):
    known = {f"{n} samples": {"seconds": n / 1000, "data": f"{n} samples"} for n in (10_000, 50_000)}
    known["50000 samples"]["seconds"] = 500.0
    (row,) = peers["run"].rows_left(["1000000 samples"], known, lambda name, _: {"ari": 1.0}, limit=600)
    assert row["error"].startswith("not run: ")


def test_processes_that_a_method_started_are_ended_with_it(peers):
    child = "import time; time.sleep(600)"
    start = "import subprocess, sys, time; print(subprocess.Popen([sys.executable, '-c', sys.argv[1]], "
    start += "start_new_session=True).pid, flush=True); time.sleep(60)"
    parent = subprocess.Popen([sys.executable, "-c", start, child], stdout=subprocess.PIPE, text=True)
    number = int(parent.stdout.readline())
    other = psutil.Process(number)
    peers["worker"].end_processes(
        SimpleNamespace(pid=parent.pid, is_alive=lambda: True, kill=parent.kill, join=parent.wait)
    )
    parent.stdout.close()
    psutil.wait_procs([other], timeout=10)
    assert not other.is_running() or other.status() == psutil.STATUS_ZOMBIE


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such parents")
def test_processes_that_a_crashed_fit_started_are_ended():
    code = """
import os, subprocess, sys
from benchmarks.peers import worker

def crash():
    print(subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]).pid, flush=True)
    os._exit(7)

worker.adopt_orphans()
print(worker.in_a_fork(crash, 60.0)["error"])
"""
    run = subprocess.run(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, cwd=ROOT, timeout=60, check=True
    )
    number, error = run.stdout.splitlines()
    assert error == "the process ended with code 7"
    assert not psutil.pid_exists(int(number)) or psutil.Process(int(number)).status() == psutil.STATUS_ZOMBIE


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such signal")
def test_a_killed_run_leaves_no_fit_behind():
    code = "from benchmarks.peers.worker import Worker; worker = Worker('coview TMvKSCR', 0, 16); "
    code += "worker._start(); print(worker._process.pid, flush=True); worker('400000 samples', 600)"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, cwd=ROOT) as run:
        process = psutil.Process(int(run.stdout.readline()))
        for _ in range(100):
            if started := process.children():
                break
            time.sleep(0.1)
        assert len(started) == 1  # the fork with the fit
        run.kill()
    psutil.wait_procs([process, *started], timeout=10)
    for each in (process, *started):
        assert not each.is_running() or each.status() == psutil.STATUS_ZOMBIE


class FakeWorker:
    """A worker whose fits end at once, with the result that a function gives for the name of the data set."""

    def __init__(self, answer, calls):
        self._answer, self._calls = answer, calls

    def __call__(self, name, limit):
        self._calls.append(name)
        return self._answer(name, limit)

    def close(self):
        pass


def run_with(peers, monkeypatch, path, answer, parts, names=("coview OPMC",)):
    """Run methods whose fits are fake; return the data sets that were fitted and the rows."""
    calls, options = [], SimpleNamespace(seed=0, memory=8, jobs=2)
    monkeypatch.setattr(peers["run"], "Worker", lambda *arguments: FakeWorker(answer, calls))
    peers["run"].run_all(path, parts, names, options)
    return calls, peers["run"].stored(path)


def test_an_error_of_the_script_ends_the_run(peers, monkeypatch, tmp_path):
    names, calls = [f"{n} samples" for n in range(100, 200)], []

    def refuse(name, limit):
        calls.append(name)
        time.sleep(0.01)
        if name == names[3]:
            raise OSError("no processes are left")
        return {"ari": 1.0, "seconds": 0.0}

    with pytest.raises(OSError, match="no processes are left"):
        run_with(peers, monkeypatch, tmp_path / "rows.jsonl", refuse, {"speed": names}, list(peers["peers"].PEERS)[:9])
    assert len(calls) < 50  # of 900: the other methods end, too
    assert len(peers["run"].stored(tmp_path / "rows.jsonl")) >= 3


def test_a_method_over_the_limit_of_one_part_is_not_run_in_the_next_with_no_longer_limit(peers, monkeypatch, tmp_path):
    gaussian = peers["data"].GAUSSIAN

    def exceed(name, limit):
        return {"error": f"over the time limit of {limit:g} s"}

    parts = {"quality": [gaussian], "speed": ["1000 samples"], "large": ["100000 samples"]}
    calls, rows = run_with(peers, monkeypatch, tmp_path / "rows.jsonl", exceed, parts)
    assert calls == [gaussian, "1000 samples"]
    assert [(each["part"], each["error"]) for each in rows] == [
        ("quality", "over the time limit of 60 s"),
        ("speed", "over the time limit of 600 s"),
        ("large", "not run: over the time limit of 600 s on 1000 samples"),
    ]


def test_a_later_part_does_not_change_the_rows_of_an_earlier_one(peers, monkeypatch, tmp_path):
    gaussian, path = peers["data"].GAUSSIAN, tmp_path / "rows.jsonl"
    error = {"error": "over the time limit of 600 s"}
    run_with(peers, monkeypatch, path, lambda name, _: error, {"speed": ["1000 samples"]})
    calls, rows = run_with(
        peers, monkeypatch, path, lambda name, _: {"ari": 1.0, "seconds": 1.0}, {"quality": [gaussian]}
    )
    assert calls == [gaussian]
    assert [each["part"] for each in rows] == ["speed", "quality"]


def test_a_method_that_fails_in_its_first_fit_is_not_run_in_any_part(peers, monkeypatch, tmp_path):
    error = {"error": "first fit of 150 samples: over the time limit of 120 s"}
    parts = {"quality": [peers["data"].GAUSSIAN], "speed": ["1000 samples"]}
    calls, rows = run_with(peers, monkeypatch, tmp_path / "rows.jsonl", lambda name, _: error, parts)
    assert len(calls) == 1
    assert [each["error"] for each in rows] == [error["error"]] * 2


def test_samples_without_a_cluster_are_one_cluster(peers):
    as_labels = peers["worker"].as_labels
    assert as_labels([[1.0], [np.nan], [0.0], [np.nan]]).tolist() == [1, -1, 0, -1]
    assert as_labels(np.array(["a", "b"])).tolist() == ["a", "b"]


def test_a_method_that_is_not_installed_is_not_tried_again(peers):
    rows = list(
        peers["run"].rows_left(["a", "b"], {}, lambda name, _: {"error": "ModuleNotFoundError: no snf"}, limit=3)
    )
    assert [each["error"] for each in rows] == ["ModuleNotFoundError: no snf"] * 2


def test_a_method_that_fails_has_the_last_rank(peers):
    one, two, three = "coview Coview", "coview TMvKSCR", "iMML NEMO"
    rows = [row(one, "a", 0.9), row(two, "a", 0.5), row(three, "a", error="ValueError")]
    rows += [row(one, "b", 0.2), row(two, "b", 0.2), row(three, "b", 0.8)]
    rows += [row(one, "c", 0.9)]  # not a data set of all methods
    page = peers["page"]
    cells = page.cells_of(rows, "quality")
    names = page.complete_sets(cells)
    assert names == ["a", "b"]
    assert page.mean_ranks(cells, names) == {one: 1.75, three: 2.0, two: 2.25}
    assert [page._difference(cells, peer) for peer in (one, two, three)] == [
        "–",
        "+0.200 [+0.000, +0.400]",  # of 0.4 on a and 0 on b
        "-0.600 [-0.600, -0.600]",
    ]


def test_the_page_names_the_methods_that_are_ahead(peers):
    page, own = peers["page"], "coview Coview"
    scores = {"iMML NEMO": (0.9, 0.5, 0.3), "snfpy SNF + spectral": (0.8, None, 0.9), "coview KSC": (1.0, 1.0, 1.0)}
    rows = [row(own, name, ari) for name, ari in zip("abc", (0.5, 0.5, 0.2), strict=True)]
    for peer, each in scores.items():
        rows += [
            row(peer, name, ari, error=None if ari else "ValueError") for name, ari in zip("abc", each, strict=True)
        ]
    rows += [row(own, "d", error="ValueError"), row("iMML NEMO", "d", 0.1)]
    cells = page.cells_of(rows, "quality")
    assert page._behind(cells, "abcd") == [
        ["d", "fails", 0.1, "iMML NEMO", 1],
        ["c", "0.200", 0.9, "snfpy SNF + spectral", 2],
        ["a", "0.500", 0.9, "iMML NEMO", 2],
    ]
    ranks, with_missing = {own: 1.5, "iMML NEMO": 2.5}, {"iMML NEMO": 1.0}
    assert page._in_this_run("imml", cells, ranks, with_missing) == (
        "*In this run* its best method by mean rank is iMML NEMO (2.50, place 2 of 2), and with missing views iMML "
        "NEMO (1.00, place 1 of 1). On 3 data sets a method of it is more than 0.05 ahead of `Coview`: a, c, d. 0 of "
        "4 fits of data without missing views have no result."
    )
    failed = page.cells_of([row("snfpy SNF + spectral", "a", error="TypeError")], "quality")
    assert page._in_this_run("snfpy", failed, ranks, {}) == "*In this run* it has no result."
    assert "is not known yet. On 2 data sets" in page._in_this_run("snfpy", cells, ranks, {})
    alone = page.cells_of([row(own, "a", 0.5)], "quality")
    assert page._in_this_run("coview", alone, {own: 1.0}, {}) == (
        f"*In this run* its best method by mean rank is {own} (1.00, place 1 of 1). On no data sets a method of it is "
        "more than 0.05 ahead of `Coview`. 0 of 1 fits of data without missing views have no result."
    )


def test_the_page_states_that_coview_is_not_run(peers):
    page = peers["page"]
    cells = page.cells_of([row("iMML NEMO", "a", 0.5)], "quality")
    assert page._count_behind(cells, [], ["a"]) == "`Coview` is not run yet."
    assert "ahead of" not in page._in_this_run("imml", cells, {"iMML NEMO": 1.0}, {})
    cells |= page.cells_of([row(page.OWN, "a", 0.1)], "quality")
    assert page._count_behind(cells, page._behind(cells, ["a"]), ["a"]).startswith("On 1 of 1 data sets")


def test_the_critical_difference_is_that_of_the_literature(peers):
    # Demšar (2006), section 3.2.2: four classifiers, 14 data sets, q = 2.569.
    assert peers["page"].critical_difference(4, 14) == pytest.approx(1.25, abs=0.005)


def test_missing_rows_of_tables_are_nan(peers):
    data = peers["data"]
    views, truth = data.read(data.GAUSSIAN + data.MISSING, 0)
    tables = peers["peers"].tables(views)
    assert len(truth) == len(tables[0])
    for name, x in zip(views, tables, strict=True):
        np.testing.assert_array_equal(np.isnan(x).all(axis=1), ~views.present[name])
        np.testing.assert_allclose(np.nanstd(x, axis=0), 1, rtol=1e-12)  # of the rows that are present


def test_the_generated_data_sets_are_reproducible(peers):
    data = peers["data"]
    for name in (data.CELLS, "300 samples"):
        (first, truth), (again, _) = data.read(name, 1), data.read(name, 1)
        assert len(truth) == first.n_samples
        for view in first:
            np.testing.assert_array_equal(first[view], again[view])


def test_every_library_has_a_paragraph(peers):
    import tomllib

    texts = tomllib.loads((ROOT / "benchmarks" / "peers" / "texts.toml").read_text())["prefer"]
    assert {name.lower() for name in texts} == {peer.package for peer in peers["peers"].PEERS.values()}


def test_the_page_lists_failures_once_and_states_what_is_missing(peers, tmp_path):
    page = peers["page"]
    rows = [row(p, d, 0.5 + i / 10, seconds=i + 1) for d in ("a", "b") for i, p in enumerate(list(page.PEERS)[:3])]
    error = "TypeError: <function f at 0x7f70a0427100>"
    rows += [row("snfpy SNF + spectral", d, error=error.replace("7f", d)) for d in ("a", "b")]
    rows += [row("coview Coview", "2000 samples", 1.0, part="speed", seconds=12.5)]
    page.write(rows, {"quality": ["a", "b", "c"], "missing": [], "speed": ["2000 samples"], "large": []}, tmp_path)
    text = (tmp_path / "peers.md").read_text()
    assert "**The run is incomplete**: rows of quality 8 of" in text
    assert "Not run yet: coview KPCA," in " ".join(text.split())
    assert "| snfpy SNF + spectral | a and 1 more | TypeError: <function f at 0x…> |" in text
    assert "| coview Coview | 12.5 s, 1 MB |" in text
    assert "has the best mean rank" in text
    for name in (page.RANKS_SVG, page.TIMES_SVG):
        assert "<svg" in (tmp_path / name).read_text()
    with (tmp_path / page.ROWS_CSV).open() as file:
        table = list(csv.DictReader(file))
    assert len(table) == len(rows)
    assert table[-1] | {"part": "speed", "seconds": "12.5", "error": "", "elapsed": ""} == table[-1]


def test_the_committed_page_has_the_sentences_of_the_template(peers):
    import re

    if not any(each["peer"] == peers["page"].OWN for each in peers["page"].read_csv(ROOT / "docs" / "peers.csv")):
        pytest.skip("docs/peers.md has no rows of Coview yet; `make peers` writes it")
    text = " ".join((ROOT / "docs" / "peers.md").read_text().split())
    position = 0
    for literal in re.split(r"\$\w+", (ROOT / "benchmarks" / "peers" / "template.md").read_text()):
        words = " ".join(literal.replace("$$", "$").split())
        assert text.find(words, position) >= 0, words
        position = text.find(words, position)


def test_the_published_rows_are_used_again(peers, monkeypatch, tmp_path):
    page, run, published = peers["page"], peers["run"], ROOT / "docs" / "peers.csv"
    path = tmp_path / "rows.jsonl"
    kept = row("coview TMvKSCR", "ngs", 0.25)
    path.write_text(json.dumps(kept) + "\n")
    run.add_published(path, published)
    rows = run.stored(path)
    assert rows[0] == kept  # what the file has is not replaced
    assert sum(all(each[key] == kept[key] for key in run.KEY) for each in rows) == 1
    run.add_published(path, published)
    assert run.stored(path) == rows
    page.write_csv(page.read_csv(published), tmp_path / "again.csv")

    def lines_of(table):
        with table.open(newline="") as file:
            return [line for line in csv.reader(file) if line[1] in {"peer", *page.PEERS}]

    assert lines_of(tmp_path / "again.csv") == lines_of(published)
    assert len(lines_of(published)) > 1000


def test_rows_are_json(peers, tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps(row("x", "a", 0.5)) + '\n{"incomp')
    assert peers["run"].stored(path) == [row("x", "a", 0.5)]
