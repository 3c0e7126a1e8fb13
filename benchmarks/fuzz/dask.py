"""Clusters that fail: workers killed during fit and predict, too little memory, and a scheduler that restarts.

The labels must be those of a fit in memory, or the error one InputError; a call that does not return is a finding. Lazy
labels are computed by Dask, whose errors for lost clusters are right as well. All addresses are of this machine.
"""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from threading import Thread
from typing import Any

import dask
import dask.array as da
import distributed
import numpy as np

from benchmarks.fuzz.case import Case, Finding
from coview import InputError, TMvKSCR
from coview.distributed import fit, gather, predict
from coview.distributed import views as blocks_of_views

_N = 1200
_LOCAL = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0", "silence_logs": 50, "threads_per_worker": 1}
_SETTINGS = {
    # Every two seconds, the scheduler drops results that several workers hold, such as a model that all need.
    "distributed.scheduler.active-memory-manager.start": False,
    "distributed.comm.timeouts.connect": "10s",
}


class _Problem:
    """Views in blocks, and the labels of a fit in memory."""

    def __init__(self) -> None:
        rng = np.random.default_rng(0)
        centres = {name: rng.normal(size=(3, width)) for name, width in (("a", 4), ("b", 6))}
        self.views = {
            name: 2 * each[np.arange(_N) % 3] + rng.normal(size=(_N, each.shape[1])) for name, each in centres.items()
        }
        self.new = {name: x[::2] + 0.01 for name, x in self.views.items()}
        model = TMvKSCR(3, random_state=0).fit(self.views)
        self.labels, self.new_labels = model.labels_, model.predict(self.new)
        self.seconds = {"fit": 0.0, "predict": 0.0}

    @staticmethod
    def in_blocks(views: dict[str, np.ndarray]) -> dict[str, Any]:
        return {name: da.from_array(x, chunks=(150, -1)) for name, x in views.items()}

    def fitted(self) -> Any:
        return fit(TMvKSCR(3, random_state=0), self.in_blocks(self.views))

    def run(self, call: str) -> None:
        """Fit or predict on the cluster of the active client, and compare the labels."""
        start = time.perf_counter()
        if call == "fit":
            found, expected = self.fitted().labels_, self.labels
        else:
            found, expected = predict(self.model, self.in_blocks(self.new)).compute(), self.new_labels
        self.seconds[call] = self.seconds[call] or time.perf_counter() - start
        if not np.array_equal(found, expected):
            raise Finding("the labels are others")

    def measure(self) -> None:
        """Fit and predict once without a fault."""
        self.model = gather(self.fitted())
        for call in ("fit", "predict"):
            self.run(call)


def _answer_or_error(problem: _Problem, call: str) -> str:
    """Fit or predict; labels that are equal, or one error in words, are right."""
    try:
        problem.run(call)
    except (distributed.KilledWorker, distributed.CancelledError):
        if call == "fit":
            raise
        return "error of Dask"
    except InputError as error:
        if "\n" in str(error) or len(str(error)) > 1000:
            raise Finding(f"a message of {len(str(error))} characters: {str(error)[:100]}") from None
        return "refused"
    return "same labels"


@contextmanager
def _later(seconds: float, action: Callable[[], object]) -> Iterator[None]:
    """Do something in another thread after some seconds, and wait for it at the end."""

    def wait() -> None:
        time.sleep(seconds)
        action()

    thread = Thread(target=wait)
    thread.start()
    try:
        yield
    finally:
        thread.join()


def _kill_worker(problem: _Problem, client: Any, call: str, rng: random.Random) -> str:
    client.wait_for_workers(1, timeout=60)  # the nanny may still start the one that the case before has killed
    victim = rng.choice([nanny.pid for nanny in client.cluster.workers.values() if nanny.pid])

    def kill() -> None:
        with suppress(ProcessLookupError):  # which the case before has killed at its end
            os.kill(victim, signal.SIGKILL)

    with _later(rng.random() * problem.seconds[call], kill):
        return _answer_or_error(problem, call)


def _little_memory(problem: _Problem, limit: str) -> str:
    """Fit on a worker whose memory is too small for its imports, or for the rows."""
    with (
        distributed.LocalCluster(n_workers=1, memory_limit=limit, **_LOCAL) as cluster,
        distributed.Client(cluster),
    ):
        return _answer_or_error(problem, "fit")


def _dask(*words: str) -> subprocess.Popen[bytes]:
    """Start a command of Dask."""
    return subprocess.Popen(
        [sys.executable, "-m", "dask", *words, "--host", "127.0.0.1", "--no-dashboard"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def _restarted_scheduler(problem: _Problem, call: str, rng: random.Random) -> str:
    """End the scheduler during a call, and start it again at the same address, with a worker."""
    port = str(_free_port())
    processes: list[subprocess.Popen[bytes]] = []

    def start() -> None:
        processes.append(_dask("scheduler", "--port", port))
        processes.append(_dask("worker", f"tcp://127.0.0.1:{port}", "--nthreads", "1", "--no-nanny"))

    def restart() -> None:
        _end(processes[0])
        time.sleep(0.5)
        start()

    with ExitStack() as stack:
        stack.callback(lambda: [_end(each) for each in processes])
        start()
        client = stack.enter_context(distributed.Client(f"tcp://127.0.0.1:{port}", timeout="60s"))
        client.wait_for_workers(1, timeout=60)
        with _later(rng.random() * problem.seconds[call], restart):
            return _answer_or_error(problem, call)


def cases(seed: int, folder: Path) -> Iterator[Case]:
    """Yield kills of workers, and after 20 of them the other kinds."""
    blocks_of_views._FEWEST_ROWS = 150  # so that a small problem has several blocks
    problem = _Problem()
    with ExitStack() as stack:
        stack.enter_context(dask.config.set(_SETTINGS))
        cluster = stack.enter_context(distributed.LocalCluster(n_workers=2, memory_limit=0, **_LOCAL))
        with distributed.Client(cluster):
            problem.measure()
        for i in range(10**9):
            rng, call = random.Random(f"dask {seed} {i}"), ("fit", "predict")[i % 2]
            kind = {20: "250 MB", 21: "400 MB", 22: "scheduler", 23: "scheduler"}.get(i % 24, "kill")

            def run(kind: str = kind, call: str = call, rng: random.Random = rng) -> str:
                if kind.endswith("MB"):
                    return _little_memory(problem, kind)
                if kind == "scheduler":
                    return _restarted_scheduler(problem, call, rng)
                with distributed.Client(cluster) as client:
                    return _kill_worker(problem, client, call, rng)

            yield Case(f"{kind} during {call if kind in ('kill', 'scheduler') else 'fit'}", run)
