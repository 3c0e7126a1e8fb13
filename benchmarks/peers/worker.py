"""A process that fits one method to one data set after another, within limits of time and memory.

The method is first fitted to a few samples, so that imports and compilation are not part of the seconds; they happen
once for each method. A process that crashes or exceeds the time limit is replaced for the next data set.
"""

from __future__ import annotations

import os
import resource
import warnings
from multiprocessing import get_context
from multiprocessing.connection import Connection
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from benchmarks.memory import MemoryRise
from benchmarks.peers.data import make_clusters, read
from benchmarks.peers.peers import PEERS

TIME_LIMIT = "over the time limit"
WARM_SAMPLES = 300
WARM_SECONDS = 600.0
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
                self._start()
                warm = self._answer(WARM_SECONDS)
                if "error" in warm:
                    return warm
            self._connection.send(name)
            return self._answer(self._limit)
        except (EOFError, OSError):
            self._process.join()
            code = self._process.exitcode
            self.close()
            return {"error": f"the process ended with code {code}"}

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._connection.close()
            self._process = None

    def _start(self) -> None:
        context = get_context("spawn")  # threads of libraries do not survive a fork
        self._connection, other = context.Pipe()
        self._process = context.Process(target=serve, args=(other, *self._arguments), daemon=True)
        self._process.start()
        other.close()

    def _answer(self, limit: float) -> Row:
        if not self._connection.poll(limit):
            self.close()
            return {"error": f"{TIME_LIMIT} of {limit:g} s"}
        found: Row = self._connection.recv()
        if "error" in found:
            self.close()  # a failed fit may leave its memory
        return found


def serve(connection: Connection, peer: str, seed: int, gigabytes: float) -> None:
    """Fit a method to the data sets whose names arrive, in the process of a worker."""
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
    except ImportError:
        raise
    except Exception:  # an error of the method is a result on the data sets
        return {}
    return {}


def _or_error(run: Any) -> Row:
    try:
        found: Row = run()
    except MemoryError:
        return {"error": "MemoryError"}
    except Exception as error:  # any error of a method is a result
        return {"error": f"{type(error).__name__}: {' '.join(str(error).split())}".rstrip(": ")}
    return found
