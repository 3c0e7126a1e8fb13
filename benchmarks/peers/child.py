"""One method on one data set, in a process of its own: `python -m benchmarks.peers.child PEER DATA SEED GB OUT`.

The method is first fitted to a few samples, so that imports and compilation are not part of the seconds. The peak
memory is the rise of the resident memory during the fit. The process may have GB gigabytes of address space.
"""

from __future__ import annotations

import json
import resource
import sys
import warnings
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from benchmarks.memory import reset_peak, resident_bytes
from benchmarks.peers.data import make_clusters, read
from benchmarks.peers.peers import PEERS

WARM_SAMPLES = 300


def measure(peer: str, data: str, seed: int) -> dict[str, Any]:
    """Return the scores, the seconds and the memory of one fit."""
    fit = PEERS[peer].fit
    views, truth = read(data, seed)
    k = len(np.unique(truth))
    warm, classes = make_clusters(WARM_SAMPLES, 0)
    try:
        fit(warm, len(np.unique(classes)), seed)
    except ImportError:
        raise
    except Exception:  # the same error follows, or one of these few samples only
        pass
    reset_peak()
    before, start = resident_bytes("VmRSS"), perf_counter()
    labels = np.asarray(fit(views, k, seed)).ravel()
    seconds, peak = perf_counter() - start, resident_bytes("VmHWM")
    if labels.shape != truth.shape:
        raise ValueError(f"returned {labels.size} labels for {truth.size} samples")
    return {
        "ari": round(float(adjusted_rand_score(truth, labels)), 4),
        "nmi": round(float(normalized_mutual_info_score(truth, labels)), 4),
        "found": len(np.unique(labels)),
        "seconds": round(seconds, 3),
        "memory": max(peak - before, 0),
    }


def main() -> None:
    peer, data, seed, gigabytes, out = sys.argv[1:]
    most = int(float(gigabytes) * 2**30)
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    warnings.simplefilter("ignore")  # of the libraries, on their own future versions
    try:
        found = measure(peer, data, int(seed))
    except MemoryError:
        found = {"error": f"MemoryError: more than {gigabytes} GB"}
    except Exception as error:  # any error of a method is a result
        found = {"error": f"{type(error).__name__}: {' '.join(str(error).split())}".rstrip(": ")}
    Path(out).write_text(json.dumps(found))


if __name__ == "__main__":
    main()
