"""Model files that are foreign or damaged give one error, and forged files run no code and take little memory."""

import hashlib
import json
import pickle
import random
import re
import tracemalloc
from copy import deepcopy

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

from coview import (
    KPCA,
    KSC,
    MVSCBP,
    OPMC,
    RBF,
    Codebook,
    Concat,
    Coview,
    FixedSize,
    InputError,
    Linear,
    MvKSC,
    NeighborGraph,
    PerView,
    Polynomial,
    Precomputed,
    Stratified,
    TMvKSCR,
    stack_views,
)
from coview.compose import Preprocessed
from coview.errors import ModelFileError
from coview.persist import describe_model, load, save
from coview.persist.file import digest
from tests.persist.test_models import positive_views, rows_like, same


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.safetensors"


def taken_apart(path):
    """Return the JSON document and the arrays of a saved model."""
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little")
    document = json.loads(json.loads(content[8 : 8 + length])["__metadata__"]["coview"])
    return document, load_tensors(content)


def forge(path, document, arrays, *, recount=True):
    """Write a changed model with correct digests."""
    document = {key: value for key, value in document.items() if key != "digest"}
    if recount:
        document["tensors"] = {
            name: [x.dtype.name, list(x.shape), hashlib.sha256(x.tobytes()).hexdigest()]
            for name, x in sorted(arrays.items())
        }
    path.write_bytes(save_tensors(arrays, {"coview": json.dumps({**document, "digest": digest(document)})}))


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Save small models of all kinds."""
    folder = tmp_path_factory.mktemp("models")
    dense, sparse = positive_views(24), positive_views(24, sp.csr_array)
    sparse["b"] = sp.csr_array(np.tile(np.eye(12), (2, 4)))  # with few entries, so that it is stored sparse
    named = {name: pd.DataFrame(x).add_prefix(name) for name, x in dense.items()}
    days = np.array(["Monday", "Tuesday"] * 12)
    models = [
        TMvKSCR(3, random_state=np.random.default_rng(0)).fit(dense),
        TMvKSCR(3, kernel=[RBF(), Polynomial(), "cosine"], assigner=Codebook(), random_state=0).fit(sparse),
        MvKSC(3, kernel=Linear(), random_state=0).fit(named),
        KSC(2, kernel=Precomputed(), random_state=0).fit(RBF()(dense["a"])),
        OPMC(3, random_state=np.random.RandomState(0)).fit(dense),
        OPMC(2, normalize="sample", random_state=0).fit(sparse),
        MVSCBP(3, random_state=0).fit(sparse),
        FixedSize(Preprocessed(TMvKSCR(3, random_state=0)), n_train=12, select=Stratified(days)).fit(dense),
        Concat(KPCA(2, random_state=0), views={"x": slice(0, 6), "y": range(6, 13)}).fit(stack_views(dense)[0]),
        PerView({"a": KSC(2), "b": MVSCBP(2, random_state=0), "c": Preprocessed(OPMC(2), "l2")}).fit(dense),
        Preprocessed(OPMC(2, random_state=0), {"a": "total+log1p+pca2", "b": "tfidf+l2", "c": "standard"}).fit(dense),
        Coview("auto", random_state=0).fit(positive_views(60)),
        KSC(2, kernel=NeighborGraph(), random_state=0).fit(dense["a"]),
    ]
    return [(save(model, folder / f"{i}.safetensors"), model) for i, model in enumerate(models)]


def test_missing_files_and_folders_are_named(tmp_path):
    with pytest.raises(ModelFileError, match=r"nothing cannot be loaded: there is no such file"):
        load(tmp_path / "nothing")
    with pytest.raises(ModelFileError, match="it is a folder; give the file of the model"):
        describe_model(tmp_path)


def test_files_that_cannot_be_read_are_named(path, monkeypatch):
    def refuse(*arguments):
        raise PermissionError(13, "Permission denied")

    path.touch()
    monkeypatch.setattr("pathlib.Path.open", refuse)
    with pytest.raises(ModelFileError, match="cannot be loaded: Permission denied"):
        load(path)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x05\x00",
        b"view,cluster\n1,2\n" * 10,
        pickle.dumps({"weights": [1.0, 2.0]}),
        (2**63).to_bytes(8, "little") + b"{}",
        (10**8 + 1).to_bytes(8, "little") + b"{}",
        (2).to_bytes(8, "little") + b"{}",
        (2).to_bytes(8, "little") + b"[]",
        (2).to_bytes(8, "little") + b"\xff\xff",
        (4).to_bytes(8, "little") + b"nope",
        (20_000).to_bytes(8, "little") + b"[" * 20_000,
        save_tensors({"weights": np.ones(3)}),
        save_tensors({"weights": np.ones(3)}, {"coview": "[]"}),
        save_tensors({"weights": np.ones(3)}, {"coview": "{}"}),
        save_tensors({"weights": np.ones(3)}, {"coview": '{"format": NaN}'}),
        save_tensors({"weights": np.ones(3)}, {"coview": '{"format": 1, "format": 1}'}),
        save_tensors({"weights": np.ones(3)}, {"coview": '{"format": ' + "9" * 5000 + "}"}),
        save_tensors({"weights": np.ones(3)}, {"coview": '{"format": ' + "[" * 100_000 + "}"}),
    ],
)
def test_foreign_files_are_refused(content, path):
    path.write_bytes(content)
    for read in (load, describe_model):
        with pytest.raises(ModelFileError, match="cannot be loaded"):
            read(path)


def test_huge_foreign_files_are_not_read(path):
    with path.open("wb") as file:
        file.write(save_tensors({"weights": np.ones(3)}, {"made by": "someone else"}))
        file.truncate(2**42)  # nothing on disk
    with pytest.raises(ModelFileError, match="it is not a model saved by coview"):
        load(path)


def test_newer_formats_ask_for_an_update(saved, path):
    document, arrays = taken_apart(saved[0][0])
    forge(path, {**document, "format": 3, "coview": "7.1.0", "more": 1}, arrays)
    with pytest.raises(ModelFileError, match=r"was made by coview 7\.1\.0, in a newer format; update coview"):
        load(path)
    for earlier in (0, 1, True, "2", None):
        forge(path, {**document, "format": earlier}, arrays)
        with pytest.raises(ModelFileError, match="unknown format"):
            load(path)


@pytest.mark.parametrize(
    "tensors",
    [
        None,
        {"0": 3},
        {"0": ["float64", [2]]},
        {"0": ["complex128", [2], ""]},
        {"0": ["float64", [-2], ""]},
        {"0": ["float64", [2**70], ""]},
        {"0": ["float64", [2.0], ""]},
    ],
)
def test_invalid_lists_of_tensors_are_refused(tensors, saved, path):
    document, arrays = taken_apart(saved[0][0])
    forge(path, {**document, "tensors": tensors}, arrays, recount=False)
    for read in (load, describe_model):
        with pytest.raises(ModelFileError, match="it is damaged"):
            read(path)


def test_overlapping_tensors_are_refused(saved, path):
    content = saved[0][0].read_bytes()
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    first, second = [entry for entry in header.values() if entry.get("dtype") == "F64" and 0 not in entry["shape"]][:2]
    assert first["data_offsets"] != second["data_offsets"]
    second["data_offsets"] = first["data_offsets"]
    text = json.dumps(header, separators=(",", ":")).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + content[8 + length :])
    for read in (load, describe_model):
        with pytest.raises(ModelFileError, match="it is damaged"):
            read(path)


def test_descriptions_of_damaged_files_are_refused_as_their_models_are(saved, path):
    content = saved[0][0].read_bytes()
    document, arrays = taken_apart(saved[0][0])
    name = next(name for name, x in arrays.items() if x.dtype == np.float64 and x.ndim == 2)
    for damage in (
        lambda: path.write_bytes(content[:-1]),
        lambda: path.write_bytes(content + b"\0"),
        lambda: forge(path, document, {**arrays, name: arrays[name].view(np.int64)}, recount=False),
        lambda: forge(path, document, {**arrays, name: arrays[name].reshape(-1)}, recount=False),
        lambda: forge(path, document, {**arrays, "more": np.ones(3)}),
    ):
        damage()
        messages = []
        for read in (load, describe_model):
            with pytest.raises(ModelFileError, match=r"it is damaged: |unused tensors: more$") as refusal:
                read(path)
            messages.append(str(refusal.value))
        assert messages[0] == messages[1]


def test_unused_tensors_are_refused_before_they_are_read(saved, path):
    document, arrays = taken_apart(saved[0][0])
    forge(path, document, {**arrays, "more": np.ones(3)})
    with pytest.raises(ModelFileError, match="unused tensors: more"):
        load(path)
    del document["digest"]
    document["tensors"]["more"] = ["uint8", [2**40], ""]
    metadata = {"coview": json.dumps({**document, "digest": digest(document)})}
    header = json.dumps({"__metadata__": metadata, "more": {"dtype": "U8", "shape": [2**40]}}).encode()
    with path.open("wb") as file:
        file.write(len(header).to_bytes(8, "little") + header)
        file.truncate(8 + len(header) + sum(x.nbytes for x in arrays.values()) + 2**40)  # nothing on disk
    with pytest.raises(ModelFileError, match="unused tensors: more"):
        load(path)


def test_a_rewritten_file_without_a_change_is_the_same_model(saved, path):
    for original, model in saved:
        forge(path, *taken_apart(original))
        assert path.read_bytes() == original.read_bytes()
        assert same(load(path).predict(rows_like(model)), model.predict(rows_like(model)))


def changed(which, change, target):
    """Return a saved model with a change of its document or arrays, without unused arrays, with correct digests."""
    document, arrays = taken_apart(which)
    change(document["model"], arrays)
    used = re.findall(r'"tensor": "(\w+)"', json.dumps(document["model"]))
    forge(target, document, {name: x for name, x in arrays.items() if name in used})
    return target


def nodes(tree):
    """Yield every object of a JSON tree."""
    if isinstance(tree, dict):
        yield tree
    if isinstance(tree, (dict, list)):
        for inner in tree.values() if isinstance(tree, dict) else tree:
            yield from nodes(inner)


def replaced(*keys, by):
    def change(model, arrays):
        for key in keys[:-1]:
            model = model[key]
        model[keys[-1]] = by

    return change


LEARNT = ("learnt", "value", "fields")
POPEN = {"value": {"class": "Popen", "fields": {"args": "ls"}}}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (replaced("class", by="Popen"), "class: expected a class of coview or a registered one, got Popen"),
        (replaced("class", by="__import__('os')"), "class: expected a class of coview or a registered one"),
        (replaced("class", by=["KSC"]), "class: expected a class of coview or a registered one"),
        (replaced("parameters", "kernel", by=POPEN), "parameters.kernel: class: expected a class of coview, got Popen"),
        (replaced("parameters", "rho", by={"lambda": "x: x"}), "rho: expected one of the tags"),
        (replaced("parameters", "rho", by=10**40), r"rho: expected a number below 2\*\*128"),
        (replaced("parameters", "more", by=1), "parameters: unknown: 'more'"),
        (replaced("parameters", by=3), "parameters: expected an object, got int"),
        (replaced("learnt", by=POPEN), "class: expected a class of coview, got Popen"),
        (replaced("learnt", by=None), "expected a model that can predict"),
        (replaced("learnt", by={"value": {"class": "RBF", "fields": {"sigma2": 1.0}}}), "a model that can predict"),
        (replaced(*LEARNT, "predictor", by=None), "expected a model that can predict"),
        (replaced(*LEARNT, "predictor", by=POPEN), "predictor: class: expected a class of coview, got Popen"),
        (replaced(*LEARNT, "schema", by=None), "expected a model that can predict"),
        (replaced(*LEARNT, "schema", by=3), "it is inconsistent"),
        (replaced(*LEARNT, "stages", by={"tuple": [POPEN]}), "class: expected a class of coview, got Popen"),
        (replaced(*LEARNT, "learnt", by=3), "it is inconsistent"),
        (replaced(*LEARNT, "more", by=1), "unknown: 'more'"),
        (replaced("beside", by={"dict": [["fit", 3]]}), "missing: 'n_features_in_'"),
        (replaced("beside", by={"dict": [["n_features_in_", 13], ["fit", 3]]}), "unknown: 'fit'"),
        (replaced("more", by=1), "unknown: 'more'"),
    ],
)
def test_forged_files_name_no_other_classes(change, message, saved, path):
    changed(saved[0][0], change, path)
    for read in (load, describe_model):
        with pytest.raises(ModelFileError, match=message) as refusal:
            read(path)
        assert "\n" not in str(refusal.value)


def test_deep_nesting_is_refused(saved, path):
    nested = "leaf"
    for _ in range(400):
        nested = {"tuple": [nested]}
    changed(saved[0][0], replaced("parameters", "views", by=nested), path)
    with pytest.raises(ModelFileError, match="it is nested more than 100 levels deep"):
        load(path)


def test_a_layout_of_nested_estimators_is_loaded_without_representing_it(saved, path):
    """The representation takes twice as long for each level: 84 seconds for 12, and hours for these 20."""
    nested = None
    for _ in range(20):
        nested = {"estimator": {"class": "Concat", "parameters": {"estimator": None, "views": nested}}}
    changed(saved[8][0], replaced("parameters", "views", by=nested), path)
    assert isinstance(load(path).views, Concat)
    assert describe_model(path)["parameters"]["views"]["class"] == "Concat"


@pytest.mark.parametrize(
    "place", [("parameters", "views"), (*LEARNT, "notes"), (*LEARNT, "schema", "value", "fields", "n_features")]
)
def test_a_long_range_is_not_expanded(place, saved, path):
    changed(saved[8][0], replaced(*place, by={"range": [0, 10**12, 1]}), path)
    for read in (load, describe_model):
        with pytest.raises(ModelFileError, match="expected at most 1048576 numbers"):
            read(path)


def test_arrays_with_many_sides_are_refused(saved, path):
    """A product of 400,000 numbers takes a minute."""
    document, arrays = taken_apart(saved[0][0])
    document["tensors"]["0"][1] = [2**40] * 400_000
    forge(path, document, arrays, recount=False)
    with pytest.raises(ModelFileError, match="it has tensors without a shape"):
        load(path)


def test_texts_with_very_many_values_are_refused_before_they_are_read(path, monkeypatch):
    header = b'{"__metadata__": {"coview": "' + b"[]," * 2_000_000 + b'"}}'
    path.write_bytes(len(header).to_bytes(8, "little") + header)
    monkeypatch.setattr(json, "loads", None)
    for read in (load, describe_model):
        with pytest.raises(ModelFileError, match="its text has 4000005 values, and at most 4000000 are read"):
            read(path)


def test_models_with_too_many_names_or_levels_are_not_saved(path, monkeypatch):
    model = KSC(2, random_state=0).fit(positive_views(24)["a"])
    monkeypatch.setattr("coview.persist.file._MOST_VALUES", 50)
    with pytest.raises(InputError, match="names and parameters are too many"):
        save(model, path)
    monkeypatch.undo()
    monkeypatch.setattr("coview.persist.file._DEEPEST", 3)
    with pytest.raises(InputError, match="models within models of more than 3 levels are too deep"):
        save(model, path)


def test_false_sizes_take_no_memory(saved, path):
    """Of a sparse view with a number of columns that no array has."""

    def widen(model, arrays):
        for node in nodes(model):
            if "sparse" in node:
                node["sparse"][0][1] = 2**50

    changed(saved[1][0], widen, path)
    load(path)  # imports modules
    tracemalloc.start()
    try:
        load(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 20 * path.stat().st_size


# Many damaged and forged files.

ODD = [None, True, -1, 0, 1, 3, 2**31, 2**60, 10**40, 1.5, -0.5, 0.0, 1e308, 5e-324, "", "a", "0", "RBF", "KSC"]
ODD += [[], {}, [[[[[]]]]], {"class": "Codebook"}, {"tensor": "0"}, {"tensor": "1", "by_columns": True}]
ODD += [{"float": "nan"}, {"float": "inf"}, {"dtype": "float32"}, {"numbers": {"tensor": "2"}}]
ODD += [{"strings": {"tensor": "1"}}, {"objects": [1, "a", None]}, {"sparse": [[2, 2], {"tensor": "0"}]}]
ODD += [{"slice": [0, 3, None]}, {"range": [0, 10**12, 1]}, {"tuple": [1]}, {"dict": [["a", 1]]}]
ODD += [{"value": {"class": "RBF", "fields": {"sigma2": 1.0}}}, {"estimator": {"class": "KSC", "parameters": {}}}]


def flipped(content, rng):
    content = bytearray(content)
    for _ in range(rng.choice([1, 1, 1, 8, 64])):
        content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    return bytes(content)


def cut(content, rng):
    return content[: rng.randrange(len(content))] + bytes(rng.choice([0, 0, 3, 4096]))


def spliced(content, rng):
    """Move, repeat or remove some bytes."""
    a, b, c, d = (rng.randrange(len(content)) for _ in range(4))
    return content[:a] + content[min(b, c) : max(b, c)] + content[d:]


def places(node):
    """Yield every entry of a JSON tree as its container and its key."""
    for key in list(node) if isinstance(node, dict) else range(len(node)):
        yield node, key
        if isinstance(node[key], (dict, list)):
            yield from places(node[key])


def edit(document, rng):
    """Change the document of a model: other values; missing, unknown, repeated, renamed or swapped entries."""
    everywhere = list(places(document))
    for _ in range(rng.choice([1, 1, 2])):
        holder, key = rng.choice(everywhere)
        other_holder, other_key = rng.choice(everywhere)
        kind = rng.randrange(6)
        try:
            if kind == 0:
                del holder[key]
            elif kind == 1:
                holder[key], other_holder[other_key] = other_holder[other_key], holder[key]
            elif kind == 2 and isinstance(holder, dict):
                holder[rng.choice(["a", "b", "class", "tensor", "fields", "value", "dict"])] = holder.pop(key)
            elif kind == 3 and isinstance(holder, list):
                holder.append(holder[key])
            elif kind == 4 and isinstance(holder[key], (int, float)):
                holder[key] = rng.choice([holder[key] + 1, holder[key] - 1, -holder[key], float(holder[key])])
            else:
                holder[key] = deepcopy(rng.choice(ODD))
        except (KeyError, IndexError):  # an earlier edit removed the entry
            continue


def disturb(arrays, rng):
    """Change an array: its numbers, its type or its shape."""
    name = rng.choice(sorted(arrays))
    x = arrays[name].copy()
    kind = rng.randrange(7)
    if kind == 0 and x.size:
        odd = [np.nan, np.inf, 1e300, -1e300, 1e-300, -1.0] if x.dtype.kind == "f" else [0, 1, 2, 100, 2**31 - 1]
        with np.errstate(over="ignore"):  # float32
            x.flat[rng.randrange(x.size)] = rng.choice(odd)
    elif kind == 1:
        x = x.astype(rng.choice([np.float32, np.float64, np.int32, np.int64, np.uint8, np.bool_]))
    elif kind == 2:
        x = x[: len(x) // 2]
    elif kind == 3:
        x = np.concatenate([x, x])
    elif kind == 4:
        x = x.reshape(-1) if x.ndim > 1 else x[:, None]
    elif kind == 5:
        x = np.ascontiguousarray(x.T[::-1])
    else:
        x = x[::-1] * np.asarray(rng.choice([0, 1, 2]), dtype=x.dtype)
    arrays[name] = np.ascontiguousarray(x)


def test_damaged_files_give_the_same_model_or_an_error(saved, path):
    rng = random.Random(0)
    contents = [original.read_bytes() for original, _ in saved]
    refused = 0
    for i in range(1000):
        which = i % len(saved)
        damaged = rng.choice([flipped, cut, spliced])(contents[which], rng)
        path.write_bytes(damaged)
        try:
            loaded = load(path)
        except ModelFileError:
            refused += 1
        else:  # only spaces changed
            _, model = saved[which]
            assert same(loaded.predict(rows_like(model)), model.predict(rows_like(model)))
    assert refused > 990


def test_forged_files_give_a_model_or_one_error(saved, path):
    """The model may be useless: shapes, for example, are not compared, and predictions are then errors of NumPy."""
    rng = random.Random(0)
    originals = [taken_apart(original) for original, _ in saved]
    refused = 0
    for i in range(500):
        document, arrays = deepcopy(originals[i % len(saved)])
        if rng.random() < 0.6:
            edit(document["model"], rng)
        else:
            disturb(arrays, rng)
        forge(path, document, arrays)
        messages = []
        for read in (load, describe_model):
            try:
                read(path)
            except ModelFileError as error:
                messages.append(str(error))
        assert not any("\n" in message for message in messages)
        refused += len(messages) > 0
    assert 150 < refused < 400
