"""Forged model files: saved models whose text or arrays are changed, with correct digests.

`load` and `describe_model` must return a model, or raise an InputError of one line. A change of bytes without a correct
digest must be noticed: a model that is read from such a file labels new samples as before.
"""

from __future__ import annotations

import copy
import hashlib
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import safe_open
from safetensors.numpy import save as save_tensors

from benchmarks.fuzz.case import Case, answer_or_documented_error
from benchmarks.fuzz.files import damaged
from coview import KSC, MVSCBP, OPMC, Concat, Coview, FixedSize, MvKSC, NeighborGraph, PerView, Preprocessed, TMvKSCR
from coview.persist import describe_model, load, save
from coview.persist.file import digest

_VALUES: tuple[Any, ...] = (
    None, True, -1, 0, 1, 2**31, 2**63, 10**30, 1e308, -0.5, "", "x", "auto", [], {}, [[]], {"tensor": "0"},
    {"range": [0, 10**12, 1]}, {"float": "nan"}, {"tuple": []}, {"dict": [["a", 1]]}, "../../etc/passwd", "\x1b[2J",
)  # fmt: skip
_FORGED = "forged: "  # changes with a correct digest


def valid_models(folder: Path) -> list[tuple[Path, dict[str, np.ndarray]]]:
    """Save small models of several kinds, and return their paths with new samples."""
    rng = np.random.default_rng(0)
    views = {
        name: np.abs(rng.normal(size=(24, width))) + np.arange(24)[:, None] % 2 * 5
        for name, width in (("a", 4), ("b", 3))
    }
    one = {"a": views["a"]}
    models = [
        TMvKSCR(2, random_state=0).fit(views),
        TMvKSCR(2, kernel=NeighborGraph(5), random_state=0).fit(views),
        MvKSC(2, random_state=0).fit(views),
        OPMC(2, random_state=0).fit(views),
        MVSCBP(2, random_state=0).fit(views),
        KSC(2, random_state=0).fit(one),
        Preprocessed(TMvKSCR(2, random_state=0), "standard").fit(views),
        FixedSize(TMvKSCR(2, random_state=0), n_train=12).fit(views),
        Concat(KSC(2, random_state=0)).fit(views),
        PerView(KSC(2, random_state=0)).fit(views),
        Coview(2, random_state=0).fit(views),
        Coview("auto", random_state=0).fit(views),
    ]
    return [
        (save(model, folder / f"{i}.safetensors"), one if len(model.view_names_) == 1 else views)
        for i, model in enumerate(models)
    ]


def _places(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of every value in a document."""
    if path:
        yield path
    for key, inner in node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ():
        yield from _places(inner, (*path, key))


def _forged(document: dict[str, Any], arrays: dict[str, np.ndarray], rng: random.Random) -> str:
    """Change the text or an array of a model in place, and return the change in words."""
    if arrays and rng.random() < 0.3:
        name = rng.choice(sorted(arrays))
        array = arrays[name] = arrays[name].copy()
        kind = rng.choice(("value", "shape", "type", "empty"))
        if kind == "value" and array.size:
            extreme = (
                rng.choice((0, 1, -1, np.inf, np.nan, 1e300)) if array.dtype.kind == "f" else rng.choice((0, 1, 7))
            )
            array.reshape(-1)[rng.randrange(array.size)] = extreme
        elif kind == "shape":
            arrays[name] = array.reshape(-1)
        elif kind == "type":
            arrays[name] = (
                array.astype(rng.choice((np.float32, np.int64, np.uint8)), copy=False)
                if np.isfinite(array).all()
                else array
            )
        else:
            arrays[name] = array[:0]
        return f"{kind} of array {name}"
    place = rng.choice(list(_places(document["model"])))
    node = document["model"]
    for key in place[:-1]:
        node = node[key]
    kind = rng.choice(("value", "delete", "copy", "add"))
    if kind == "delete":
        del node[place[-1]]
    elif kind == "copy":
        other: Any = document["model"]
        for key in rng.choice(list(_places(document["model"]))):
            other = other[key]
        node[place[-1]] = copy.deepcopy(other)
    elif kind == "add" and isinstance(node, dict):
        node["added"] = rng.choice(_VALUES)
    else:
        node[place[-1]] = rng.choice(_VALUES)
    return f"{kind} at {'/'.join(map(str, place))}"[:150]


def cases(seed: int, folder: Path) -> Iterator[Case]:
    """Yield forged models of all kinds in turn."""
    originals = valid_models(folder)
    target = folder / "forged.safetensors"
    rng = random.Random(seed)
    for i in range(10**9):
        path, views = originals[i % len(originals)]
        words, content = _content(path, rng)

        def run(words: str = words, content: bytes = content, views: dict[str, np.ndarray] = views) -> str:
            target.write_bytes(content)
            answer_or_documented_error(lambda: describe_model(target))
            if words.startswith(_FORGED):
                return answer_or_documented_error(lambda: load(target))
            return answer_or_documented_error(lambda: load(target).predict(views))

        yield Case(f"{path.name}: {words}", run)


def _content(path: Path, rng: random.Random) -> tuple[str, bytes]:
    if rng.random() < 0.3:
        changed, words = damaged(path.read_bytes(), rng)
        return words, changed
    with safe_open(path, "np") as file:
        document = json.loads(file.metadata()["coview"])
        arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - no mapping
    words = _FORGED + _forged(document, arrays, rng)
    document.pop("digest")
    document["tensors"] = {
        name: [x.dtype.name, list(x.shape), hashlib.sha256(np.ascontiguousarray(x).tobytes()).hexdigest()]
        for name, x in sorted(arrays.items())
    }
    arrays = {name: np.ascontiguousarray(x) for name, x in arrays.items()}
    return words, save_tensors(arrays, {"coview": json.dumps({**document, "digest": digest(document)})})
