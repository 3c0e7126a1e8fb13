"""A cluster of two processes for all tests of this folder."""

import faulthandler

import pytest

dask = pytest.importorskip("dask", reason='Dask is missing; run pip install "coview[dask]"')
distributed = pytest.importorskip("distributed", reason='Dask is missing; run pip install "coview[dask]"')


@pytest.fixture(autouse=True)
def time_limit():
    """End the process with the tracebacks of its threads if a test waits for a cluster that does not answer."""
    faulthandler.dump_traceback_later(240, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()


@pytest.fixture(scope="package")
def cluster():
    settings = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0", "memory_limit": 0, "silence_logs": 50}
    # Every two seconds, the scheduler drops results that several workers hold, such as a model that all need.
    keep = {"distributed.scheduler.active-memory-manager.start": False}
    with (
        dask.config.set(keep),
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, **settings) as cluster,
    ):
        yield cluster


@pytest.fixture
def client(cluster):
    with distributed.Client(cluster) as client:
        client.wait_for_workers(2, timeout=60)
        yield client
