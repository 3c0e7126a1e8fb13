"""A process for one method, which fits it to one data set after another, each in a copy of itself.

The method is first fitted to a few samples, so that imports and compilation are not part of the seconds. Each data set
is then fitted in a fork of this process, which is ended with the processes that it started, and leaves no memory
behind. After a crash or a fit over the time limit, the first fit is not repeated. A method that crashes or takes too
long in its first fit is not run again.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import warnings
from collections.abc import Callable, Iterable
from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection
from time import perf_counter
from typing import Any

import numpy as np
import psutil
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from benchmarks.memory import MemoryRise
from benchmarks.peers.data import make_clusters, read
from benchmarks.peers.peers import PEERS

NOT_INSTALLED = ("ImportError", "ModuleNotFoundError")
NOT_ERRORS = (KeyboardInterrupt, SystemExit)
TIME_LIMIT = "over the time limit"
WARM_UP = "first fit"  # of an error
WARM_SAMPLES = 150
WARM_SECONDS = 120.0
LIMITS = {"quality": 60.0, "missing": 60.0, "speed": 600.0, "large": 300.0}  # seconds of a fit in each part
IN_A_ROW = 3  # data sets over the time limit, after which a method is not run on as many samples or more
PR_SET_PDEATHSIG = 1  # of Linux: the signal that a process gets at the end of the one that started it
PR_SET_CHILD_SUBREAPER = 36  # of Linux: processes whose parent has ended become children of this one
Row = dict[str, Any]


class Worker:
    """Call it with the name of a data set and a time limit; the result is a row, with an error if the fit fails.

    Parameters
    ----------
    peer : str
    seed : int
    gigabytes : float
        Largest address space of a process.
    """

    def __init__(self, peer: str, seed: int, gigabytes: float) -> None:
        self._arguments = (peer, seed, gigabytes)
        self._process: Any = None

    def __call__(self, name: str, limit: float) -> Row:
        if self._process is None:
            warm = self._start()
            if "error" in warm:
                self.close()
                imports = warm["error"].startswith(NOT_INSTALLED)
                return warm if imports else {"error": f"{WARM_UP} of {WARM_SAMPLES} samples: {warm['error']}"}
        try:
            self._connection.send((name, limit))
            row: Row = self._connection.recv()
        except (EOFError, OSError):  # the process ended by itself; the next call starts another one
            row = _ended(self._process)
            self.close()
        return row

    def close(self) -> None:
        """End the process, and those that it started."""
        if self._process is not None:
            end_processes(self._process)
            self._connection.close()
            self._process = None

    def _start(self) -> Row:
        """Start the process, and return what its first fit gives."""
        context = get_context("spawn")  # threads of this process do not survive a fork
        self._connection, other = context.Pipe()
        process = context.Process(target=serve, args=(other, *self._arguments))
        process.start()
        self._process = process
        other.close()
        return answer_within(WARM_SECONDS, process, self._connection)


def answer_within(limit: float, process: Any, connection: Connection) -> Row:
    """Return what a process sends within the time limit, or an error."""
    if not connection.poll(limit):
        return {"error": f"{TIME_LIMIT} of {limit:g} s"}
    try:
        found: Row = connection.recv()
    except (EOFError, OSError):
        return _ended(process)
    return found


def _ended(process: Any) -> Row:
    """Return the error of a process that ended by itself."""
    process.join()
    return {"error": f"the process ended with code {process.exitcode}"}


def end_processes(process: Any) -> None:
    """End a process, and those that it started, such as Octave."""
    started = psutil.Process(process.pid).children(recursive=True) if process.is_alive() else []
    process.kill()
    _kill(started)
    process.join()


def _kill(processes: Iterable[psutil.Process]) -> None:
    for each in processes:
        with suppress(psutil.NoSuchProcess):
            each.kill()


def serve(connection: Connection, peer: str, seed: int, gigabytes: float) -> None:
    """Fit a method to the data sets whose names arrive, in the process of a worker."""
    end_with_parent()
    adopt_orphans()
    most = int(gigabytes * 2**30)
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    warnings.simplefilter("ignore")  # of the libraries, on their own future versions
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for output in (1, 2):  # some libraries print
        os.dup2(nowhere, output)
    connection.send(_or_error(lambda: _warm(peer, seed)))
    while True:
        name, limit = connection.recv()
        connection.send(in_a_fork(lambda name=name: measure(peer, name, seed), limit))


def end_with_parent() -> None:
    """Let the system end this process with the thread that started it, so that a killed run ends its fits."""
    _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def adopt_orphans() -> None:
    """Let processes that a crashed fork leaves behind become children of this process, so that it finds them."""
    _prctl(PR_SET_CHILD_SUBREAPER, 1)


def _prctl(option: int, value: int) -> None:
    with suppress(AttributeError):  # another system
        ctypes.CDLL(None).prctl(option, value)


def in_a_fork(work: Callable[[], Row], limit: float) -> Row:
    """Return what a function gives in a fork of this process, or its error; processes that it started are ended."""
    context, before = get_context("fork"), psutil.Process().children()
    connection, other = context.Pipe(duplex=False)
    process = context.Process(target=_send, args=(other, work))
    process.start()
    other.close()
    try:
        return answer_within(limit, process, connection)
    finally:
        end_processes(process)
        _kill(child for child in psutil.Process().children() if child not in before)  # of a fork that crashed
        connection.close()


def _send(connection: Connection, work: Callable[[], Row]) -> None:
    end_with_parent()
    connection.send(_or_error(work))
    signal.pause()  # until it is ended, with the processes that it started


def measure(peer: str, name: str, seed: int) -> Row:
    """Return the scores, the seconds and the memory of one fit."""
    views, truth = read(name, seed)
    k, memory, start = len(np.unique(truth)), MemoryRise(), perf_counter()
    labels = as_labels(PEERS[peer].fit(views, k, seed))
    seconds, rise = perf_counter() - start, memory.rise()
    if labels.shape != truth.shape:
        raise ValueError(f"returned {labels.size} labels for {truth.size} samples")
    return {
        "ari": round(float(adjusted_rand_score(truth, labels)), 4),
        "nmi": round(float(normalized_mutual_info_score(truth, labels)), 4),
        "found": len(np.unique(labels)),
        "seconds": round(seconds, 3),
        "memory": rise,
    }


def as_labels(found: Any) -> np.ndarray:
    """Return labels as one array; samples without a cluster, for which MONET has NaN, are one cluster."""
    labels = np.asarray(found).ravel()
    return np.where(np.isnan(labels), -1, labels) if labels.dtype.kind == "f" else labels


def _warm(peer: str, seed: int) -> Row:
    views, truth = make_clusters(WARM_SAMPLES, 0)
    try:
        PEERS[peer].fit(views, len(np.unique(truth)), seed)
    except (ImportError, *NOT_ERRORS):
        raise
    except BaseException:  # an error of the method is a result on the data sets
        return {}
    return {}


def _or_error(run: Any) -> Row:
    try:
        found: Row = run()
    except MemoryError:
        return {"error": "MemoryError"}
    except NOT_ERRORS:
        raise
    except BaseException as error:  # any error of a method is a result; leidenalg raises a BaseException
        return {"error": f"{type(error).__name__}: {' '.join(str(error).split())}".rstrip(": ")}
    return found
