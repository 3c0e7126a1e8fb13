"""Tasks whose results stay on the workers of a cluster, and rows of one view as such results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, Self, TypeAlias
from uuid import uuid4

import numpy as np

from coview.base.runtime import Workers
from coview.data.view import Array, Matrix
from coview.errors import InputError
from coview.neighbors.duplicates import Integers

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


class DaskCluster:
    """The workers of the active client."""

    def __init__(self, client: Any) -> None:
        self._client = client

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

    def submit(self, function: Callable[..., Any], *inputs: Any, at: Sequence[str] = ()) -> Future:
        """Return the future result of a function on a worker, computed in one thread; inputs may be future results."""
        key = (
            f"coview-{function.__name__.strip('_').replace('_', '-')}-{uuid4().hex}"  # by which Dask shows its progress
        )
        return submit(self._running(), _in_one_thread, function, *inputs, key=key, at=at)

    def homes(self, futures: Sequence[Future]) -> list[Sequence[str]]:
        """Return the workers that hold each of these results, after they are computed.

        Tasks with two blocks as inputs are submitted to the home of one of them. The scheduler would send either of
        them, and one worker could end up with all blocks.
        """
        self._wait(futures)
        found = self._running().who_has(futures)
        return [found.get(future.key, ()) for future in futures]

    def copy(self, block: Future) -> Future:
        """Return a block as another result, which other workers delete as soon as they have used it."""
        return self.submit(np.copy, block)

    def share(self, value: Any) -> Future:
        """Return a value as a future result, which is sent once to each worker that needs it."""
        return submit(self._running(), _identity, value)

    def compute(self, lazy: Sequence[Any]) -> list[Future]:
        """Return the future results of Dask collections."""
        futures: list[Future] = self._client.compute(list(lazy))
        return futures

    def gather(self, futures: Iterable[Future]) -> list[Any]:
        """Return results in this process."""
        futures = list(futures)
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


class RowBlocks(NamedTuple):
    """The rows of one view on a cluster, as consecutive blocks."""

    cluster: DaskCluster
    blocks: list[Future]
    places: list[slice]
    width: int

    @property
    def shape(self) -> tuple[int, int]:
        return self.places[-1].stop, self.width

    def map(self, function: Callable[..., Any], *inputs: Any) -> list[Future]:
        """Return the function of each block."""
        return [self.cluster.submit(function, block, *inputs) for block in self.blocks]

    def take(self, numbers: Integers) -> Array:
        """Return some rows in this process, given their numbers in increasing order."""
        inside = [numbers[slice(*np.searchsorted(numbers, [rows.start, rows.stop]))] for rows in self.places]
        parts = [
            self.cluster.submit(take_rows, block, some - rows.start)
            for block, rows, some in zip(self.blocks, self.places, inside, strict=True)
            if len(some)
        ]
        return np.concatenate(self.cluster.gather(parts))

    def in_blocks(self, places: Sequence[slice]) -> RowBlocks:
        """Return the same rows in other consecutive blocks."""
        return self._replace(blocks=[self.range(rows) for rows in places], places=list(places))

    def in_order(self, order: Integers, places: Sequence[slice]) -> RowBlocks:
        """Return the rows in another order, as these blocks; a task for each pair of an old and a new block."""
        blocks = []
        for place in places:
            numbers = order[place]
            pieces, where = [], []
            for block, rows in zip(self.blocks, self.places, strict=True):
                inside = np.flatnonzero((numbers >= rows.start) & (numbers < rows.stop))
                if len(inside):
                    pieces.append(self.cluster.submit(take_rows, block, numbers[inside] - rows.start))
                    where.append(inside)
            blocks.append(self.cluster.submit(_put, np.concatenate(where), *pieces))
        return self._replace(blocks=blocks, places=list(places))

    def range(self, rows: slice) -> Future:
        """Return consecutive rows as one block."""
        parts = [
            self.cluster.submit(take_rows, block, slice(max(rows.start - place.start, 0), rows.stop - place.start))
            for block, place in zip(self.blocks, self.places, strict=True)
            if place.start < rows.stop and rows.start < place.stop
        ]
        return self.cluster.submit(_join, *parts)


def take_rows(block: Matrix, numbers: Integers | slice) -> Matrix:
    """Return some rows of a block."""
    return block[numbers]


def _put(where: Integers, *pieces: Array) -> Array:
    rows = np.concatenate(pieces)
    placed = np.empty_like(rows)
    placed[where] = rows
    return placed


def _join(*pieces: Array) -> Array:
    return np.concatenate(pieces)
