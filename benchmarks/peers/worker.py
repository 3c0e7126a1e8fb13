"""A process that fits one method to one data set after another, within limits of time and memory.

The method is first fitted to a few samples, so that imports and compilation are not part of the seconds; they happen
once for each process. A process that crashes or exceeds the time limit is ended, with those that it started, and
replaced for the next data set. A method that crashes or takes too long in its first fit is not run again.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import warnings
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
PR_SET_PDEATHSIG = 1  # of Linux: the signal that a process gets at the end of the one that started it
Row = dict[str, Any]


class Worker:
    """Call it with the name of a data set; the result is a row, with an error if the fit fails.

    Parameters
    ----------
    peer : str
    seed : int
    limit : float
        Seconds of a fit, with reading of the data.
    gigabytes : float
        Largest address space of the process.
    """

    def __init__(self, peer: str, seed: int, limit: float, gigabytes: float) -> None:
        self._arguments, self._limit = (peer, seed, gigabytes), limit
        self._process: Any = None

    def __call__(self, name: str) -> Row:
        try:
            if self._process is None:
                warm = self._start()
                if "error" in warm:
                    imports = warm["error"].startswith(NOT_INSTALLED)
                    return warm if imports else {"error": f"{WARM_UP} of {WARM_SAMPLES} samples: {warm['error']}"}
            self._connection.send(name)
            return self._answer(self._limit)
        except OSError:
            if self._process is None:  # it could not be started
                raise
            return self._ended()

    def close(self) -> None:
        """End the process, and those that it started, such as Octave."""
        if self._process is None:
            return
        started = psutil.Process(self._process.pid).children(recursive=True) if self._process.is_alive() else []
        self._process.kill()
        for child in started:
            with suppress(psutil.NoSuchProcess):
                child.kill()
        self._process.join()
        self._connection.close()
        self._process = None

    def _start(self) -> Row:
        """Start a process, and return what its first fit gives."""
        context = get_context("spawn")  # threads of libraries do not survive a fork
        self._connection, other = context.Pipe()
        process = context.Process(target=serve, args=(other, *self._arguments), daemon=True)
        process.start()
        other.close()
        self._process = process
        return self._answer(WARM_SECONDS)

    def _answer(self, limit: float) -> Row:
        if not self._connection.poll(limit):
            self.close()
            return {"error": f"{TIME_LIMIT} of {limit:g} s"}
        try:
            found: Row = self._connection.recv()
        except (EOFError, OSError):
            return self._ended()
        if "error" in found:
            self.close()  # a failed fit may leave its memory
        return found

    def _ended(self) -> Row:
        """Return the error of a process that ended by itself."""
        self._process.join()
        code = self._process.exitcode
        self.close()
        return {"error": f"the process ended with code {code}"}


def serve(connection: Connection, peer: str, seed: int, gigabytes: float) -> None:
    """Fit a method to the data sets whose names arrive, in the process of a worker."""
    # A killed run ends its fits. The thread that starts a process must live longer than it, as those of a pool do.
    with suppress(AttributeError):  # another system
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    most = int(gigabytes * 2**30)
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    warnings.simplefilter("ignore")  # of the libraries, on their own future versions
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for output in (1, 2):  # some libraries print
        os.dup2(nowhere, output)
    connection.send(_or_error(lambda: _warm(peer, seed)))
    while True:
        name = connection.recv()
        connection.send(_or_error(lambda name=name: measure(peer, name, seed)))


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
