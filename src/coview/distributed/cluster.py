"""Tasks whose results stay on the workers of a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from typing import Any, Self, TypeAlias
from uuid import uuid4

from coview.base.runtime import Map, Workers, serial_map
from coview.errors import InputError
from coview.neighbors.blocks import Tasks

Future: TypeAlias = Any  # of `distributed`, which has no types
_SECONDS_BETWEEN_CHECKS = 5.0  # while results are awaited
_MOST_CHECKS = 4  # in which all workers are paused


def active_client() -> Any:
    """Return the active client of `distributed`, or None, also if dask.config names another scheduler."""
    from dask.base import get_scheduler

    client: Any = getattr(get_scheduler(), "__self__", None)
    return client if hasattr(client, "submit") else None


def submit(
    client: Any, function: Callable[..., Any], *inputs: Any, key: str | None = None, at: Sequence[str] = ()
) -> Future:
    """Return the future result of a function on a worker, if possible one of these; inputs may be future results.

    Inputs are part of the task. So if a worker fails, the scheduler can compute all of its results again, which it
    cannot do with values that are scattered. Dask warns of large inputs, because it expects them to be sent many times.
    """
    import dask

    with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 TiB"}):
        return client.submit(
            function, *inputs, key=key, pure=False, workers=list(at) or None, allow_other_workers=bool(at)
        )


class DaskCluster(Tasks):
    """The workers of the active client; `map_here` is for what this process computes."""

    def __init__(self, client: Any, map_here: Map = serial_map) -> None:
        super().__init__()
        self._client, self.map_here = client, map_here

    @classmethod
    def active(cls, kind: str) -> Self:
        """Return the cluster of the active client, or raise an InputError for a fit of this kind of model."""
        client = active_client()
        if client is None:
            raise InputError(
                f"{kind} on all samples needs a cluster; start one with distributed.Client(), or use "
                f"FixedSize({kind}(…), n_train=1000), which trains on some of them"
            )
        return cls(client)

    def with_threads(self, map_here: Map) -> DaskCluster:
        """Return the same cluster, with threads for what this process computes."""
        return DaskCluster(self._client, map_here)

    def submit(self, function: Callable[..., Any], *inputs: Any, at: Sequence[str] = ()) -> Future:
        # By the name, Dask shows the progress.
        key = f"coview-{function.__name__.strip('_').replace('_', '-')}-{uuid4().hex}"
        return submit(self._running(), _in_one_thread, function, *inputs, key=key, at=at)

    def split(self, n: int, height: int) -> list[slice]:
        return [slice(0, n)]

    def homes(self, results: Sequence[Future]) -> list[Sequence[str]]:
        self._wait(results)
        found = self._running().who_has(results)
        return [found.get(each.key, ()) for each in results]

    def copy(self, block: Future) -> Future:
        return self.submit(copy, block)

    def share(self, value: Any) -> Future:
        return submit(self._running(), _identity, value)

    def compute(self, lazy: Sequence[Any]) -> list[Future]:
        """Return the future results of Dask collections."""
        futures: list[Future] = self._client.compute(list(lazy))
        return futures

    def gather(self, results: Iterable[Future]) -> list[Any]:
        futures = list(results)
        self._wait(futures)
        with _named_failures():
            found: list[Any] = self._running().gather(futures)
        return found

    def _wait(self, futures: Sequence[Future]) -> None:
        """Wait for results; raise an InputError if they would never come.

        Dask pauses workers whose memory is nearly full, until it has written results to the disk. If the rest is too
        large, they stay paused for ever.
        """
        from distributed import wait

        n_paused = 0
        while True:
            try:
                with _named_failures(), self._running().as_current():
                    wait(futures, timeout=_SECONDS_BETWEEN_CHECKS)
                return
            except TimeoutError:
                n_paused = n_paused + 1 if self._is_paused() else 0
            if n_paused == _MOST_CHECKS:
                raise InputError(
                    "all workers of the cluster are paused, because their memory is full; give them more memory, or "
                    "train on some samples, as in FixedSize(TMvKSCR(…), n_train=1000)"
                )

    def _is_paused(self) -> bool:
        """Return whether all workers are paused; False if there are none, because others may start."""
        workers = self._running().scheduler_info(n_workers=-1)["workers"].values()
        return bool(workers) and all(worker["status"] == "paused" for worker in workers)

    def _running(self) -> Any:
        if self._client.status != "running":
            raise InputError(
                "the cluster with the training rows of this model is closed; fit it again, and call "
                "coview.distributed.gather(model) before the cluster is closed"
            )
        return self._client


@contextmanager
def _named_failures() -> Iterator[None]:
    """Raise an InputError in place of the errors of a cluster that has failed."""
    from distributed import CancelledError, KilledWorker

    try:
        yield
    except KilledWorker as error:
        raise InputError(
            f"{error.allowed_failures + 1} workers of the cluster have ended while they computed {error.task}, maybe "
            "because of too little memory; give them more, or train on some samples, as in FixedSize(TMvKSCR(…))"
        ) from error
    except CancelledError as error:
        raise InputError(
            "the scheduler of the cluster has ended or restarted, so its results are lost; fit the model again"
        ) from error


def _in_one_thread(function: Callable[..., Any], *inputs: Any) -> Any:
    # A worker runs as many tasks at the same time as it has threads.
    with Workers(1):
        return function(*inputs)


def _identity(value: Any) -> Any:
    return value
