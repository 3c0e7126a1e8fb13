import threading

import numpy as np
import pytest
from joblib import cpu_count
from threadpoolctl import threadpool_info

from coview import InputError
from coview.base import runtime
from coview.base.runtime import KeptMemory, Workers, count_threads


def blas_threads():
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


def test_results_keep_the_order_of_the_items_for_any_number_of_threads():
    for n_jobs in (1, 2, 3, 8):
        with Workers(n_jobs) as workers:
            assert workers.map(lambda i: i * i, range(23)) == [i * i for i in range(23)]
            assert workers.map(lambda i: i, []) == []


def test_either_large_items_or_their_parts_are_in_threads():
    def threads(item, workers):
        own = threading.current_thread() is threading.main_thread()
        return own, workers.n_threads

    with Workers(2) as workers:
        assert workers.map_large(threads, [0]) == [(True, 2)]
        assert workers.map_large(threads, range(4)) == [(False, 1)] * 4
    with Workers(1) as workers:
        assert workers.map_large(threads, range(2)) == [(True, 1)] * 2


def test_blas_has_one_thread_inside_and_its_usual_number_outside():
    before = blas_threads()
    with Workers(2) as workers:
        assert set().union(*workers.map(lambda i: blas_threads(), range(4))) == {1}
    assert blas_threads() == before


def test_blas_gets_its_threads_back_after_overlapping_uses():
    before = blas_threads()
    first, second = Workers(1), Workers(2)
    with first:
        second.__enter__()
    assert blas_threads() == {1}  # the second is still inside
    second.__exit__()
    assert blas_threads() == before


def test_errors_reach_the_caller_and_threads_end():
    def fail(i):
        raise KeyError(i)

    before = set(threading.enumerate())
    with pytest.raises(KeyError), Workers(3) as workers:
        workers.map(fail, range(9))
    assert set(threading.enumerate()) <= before


def test_the_number_of_threads_follows_scikit_learn():
    assert count_threads(3) == 3
    assert count_threads(-1) == cpu_count()
    assert count_threads(1_000_000) == 4 * cpu_count()
    assert count_threads(None) == max(blas_threads())
    for wrong in (0, 1.5, "two", True):
        with pytest.raises(InputError, match=f"^n_jobs={wrong!r}: expected an integer other than 0, or None"):
            count_threads(wrong)


def test_available_memory_is_positive_or_unknown():
    available = runtime.available_memory()
    assert available is None or available > 0


def test_a_task_that_needs_too_much_memory_is_refused_with_figures_and_advice(monkeypatch):
    monkeypatch.setattr(runtime, "available_memory", lambda: 3 * 2**30)
    with pytest.raises(MemoryError, match=r"fitting needs about 4\.0 GiB and 3\.0 GiB are available; take a nap"):
        runtime.require_memory(4 * 2**30, "fitting", "take a nap")
    runtime.require_memory(2 * 2**30, "fitting", "take a nap")


def test_no_task_is_refused_if_the_available_memory_is_unknown(monkeypatch):
    monkeypatch.setattr(runtime, "available_memory", lambda: None)
    runtime.require_memory(2**60, "fitting", "take a nap")


def test_the_limit_of_a_container_counts_less_its_use(monkeypatch, tmp_path):
    # The free memory of the system changes between two calls, so it is a file of the test as well.
    places = {"/sys/fs/cgroup": tmp_path, "/proc/meminfo": tmp_path / "meminfo"}
    monkeypatch.setattr(runtime, "Path", places.__getitem__)
    (tmp_path / "meminfo").write_text("MemTotal:  9 kB\nMemAvailable:  5 kB\n")
    (tmp_path / "memory.current").write_text("400\n")
    for limit, available in (("1000\n", 600), ("max\n", 5 * 1024), ("300\n", 0), ("900000\n", 5 * 1024)):
        (tmp_path / "memory.max").write_text(limit)
        assert runtime.available_memory() == available


def test_systems_without_proc_use_sysconf(monkeypatch, tmp_path):
    monkeypatch.setattr(runtime, "Path", lambda path: tmp_path / "nothing")
    assert runtime.available_memory() > 0

    def unknown(name):
        raise ValueError(name)

    monkeypatch.setattr(runtime.os, "sysconf", unknown)
    assert runtime.available_memory() is None


def test_memory_of_a_fit_is_used_by_the_next_one():
    size = 12_345  # of no other matrix
    with Workers(1) as workers:
        first, second = workers.empty(size, np.float64), workers.empty(size, np.float64)
        assert not np.shares_memory(first, second)
    with Workers(1) as workers:
        again = workers.empty(size, np.float64)
        assert np.shares_memory(again, first) or np.shares_memory(again, second)
        with Workers(1) as others:  # a fit at the same time
            other = others.empty(size, np.float64)
            assert not np.shares_memory(other, again)


def test_kept_memory_is_bounded():
    memory = KeptMemory(most=100)
    blocks = [memory.take(60) for _ in range(3)]
    memory.keep(blocks)
    assert memory.take(60) is blocks[-1]
    assert not any(memory.take(60) is block for block in blocks)
