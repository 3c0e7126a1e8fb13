import threading

import pytest
from joblib import cpu_count
from threadpoolctl import threadpool_info

from coview import InputError
from coview.core.threads import Workers, count_threads


def blas_threads():
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


def test_results_come_in_order_whoever_computes_them():
    for n_jobs in (1, 2, 3, 8):
        with Workers(n_jobs) as workers:
            assert workers.map(lambda i: i * i, range(23)) == [i * i for i in range(23)]
            assert workers.map(lambda i: i, []) == []


def test_blas_has_one_thread_inside_and_its_own_number_outside():
    before = blas_threads()
    with Workers(2) as workers:
        assert set().union(*workers.map(lambda i: blas_threads(), range(4))) == {1}
    assert blas_threads() == before


def test_overlapping_uses_give_blas_its_threads_back():
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

    before = threading.active_count()
    with pytest.raises(KeyError), Workers(3) as workers:
        workers.map(fail, range(9))
    assert threading.active_count() == before


def test_counting_follows_scikit_learn():
    assert count_threads(3) == 3
    assert count_threads(-1) == cpu_count()
    assert count_threads(None) == max(blas_threads())
    for wrong in (0, 1.5, "two"):
        with pytest.raises(InputError, match="n_jobs"):
            count_threads(wrong)
