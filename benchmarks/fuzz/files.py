"""Damaged data files: valid files of every format with changed bytes, and files that claim too much.

A reader must return views or raise an InputError of one line that names the file, within the limit of a case.
"""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import scipy.io
import scipy.sparse as sp

from benchmarks.fuzz.case import Case, Finding, answer_or_documented_error
from coview import InputError
from coview.io import ViewsReader, describe_file, isolate, read_labels, read_views

_ROWS = 12
_STREAMED = (".npy", ".npz", ".parquet", ".feather", ".arrow")


def valid_files(folder: Path) -> list[Path]:
    """Write a small valid file of each format, and return their paths."""
    import h5py
    import pyarrow as pa
    from pyarrow import feather, parquet

    rng = np.random.default_rng(0)
    x = rng.normal(size=(_ROWS, 3)).round(3)
    kinds = ["red", "blue", "red"] * (_ROWS // 3)
    lines = ["id,u,v,w", *(f"s{i},{','.join(map(str, row))}" for i, row in enumerate(x.tolist()))]
    text = "\n".join(lines) + "\n"
    (folder / "table.csv").write_text(text)
    (folder / "table.tsv").write_text(text.replace(",", "\t"))
    (folder / "zipped.csv.gz").write_bytes(gzip.compress(text.encode()))
    objects = [json.dumps(dict(zip("uvw", row, strict=True))) for row in x.tolist()]
    (folder / "table.jsonl").write_text("\n".join(objects))
    np.save(folder / "array.npy", x)
    np.savez_compressed(folder / "arrays.npz", X=x)
    sparse = sp.csr_array(np.where(x > 0, x, 0))
    sp.save_npz(folder / "sparse.npz", sparse)
    scipy.io.mmwrite(folder / "matrix.mtx", sparse)
    scipy.io.savemat(folder / "dense.mat", {"X": x}, do_compression=True)
    scipy.io.savemat(folder / "sparse.mat", {"X": sp.csc_matrix(sparse)})
    table = pa.table({**{name: x[:, j] for j, name in enumerate("uvw")}, "kind": pa.array(kinds).dictionary_encode()})
    parquet.write_table(table, folder / "table.parquet")
    feather.write_feather(table, folder / "table.feather", compression="zstd")
    with pa.ipc.new_stream(folder / "stream.arrow", table.schema) as stream:
        stream.write_table(table)
    for name, values in (("dense", x), ("sparse", sparse)):
        with h5py.File(folder / f"{name}.h5ad", "w") as file:
            _write_anndata(h5py, file, values, kinds)
    with h5py.File(folder / "two.h5mu", "w") as file:
        for name in ("rna", "atac"):
            _write_anndata(h5py, file.create_group(f"mod/{name}"), x, kinds)
    return sorted(path for path in folder.iterdir() if path.is_file())


def _write_anndata(h5py, group, values, kinds) -> None:  # type: ignore[no-untyped-def]
    if sp.issparse(values):
        stored = group.create_group("X")
        stored.attrs.update({"encoding-type": "csr_matrix", "shape": values.shape})
        for part in ("data", "indices", "indptr"):
            stored[part] = getattr(values, part)
    else:
        group.create_dataset("X", data=values, chunks=(5, 2), compression="gzip")
    for axis, count in zip(("obs", "var"), values.shape, strict=True):
        frame = group.create_group(axis)
        frame.attrs["_index"] = "names"
        frame.create_dataset("names", data=[f"{axis}{i}" for i in range(count)], dtype=h5py.string_dtype())
    group["obs"].create_dataset("kind", data=kinds, dtype=h5py.string_dtype())


def damaged(content: bytes, rng: random.Random) -> tuple[bytes, str]:
    """Return the content with one to four random changes, and the changes in words."""
    changed, words = bytearray(content), []
    for _ in range(rng.choice((1, 1, 2, 4))):
        at, length = rng.randrange(len(changed)), rng.choice((1, 2, 8, 64))
        kind = rng.choice(("bits", "zeros", "ones", "swap", "cut", "repeat", "number", "delete"))
        words.append(f"{kind} at {at}")
        if kind == "bits":
            changed[at] ^= 1 << rng.randrange(8)
        elif kind in ("zeros", "ones"):
            changed[at : at + length] = (b"\0" if kind == "zeros" else b"\xff") * len(changed[at : at + length])
        elif kind == "swap":
            other = rng.randrange(len(changed))
            first, second = bytes(changed[at : at + length]), bytes(changed[other : other + length])
            changed[at : at + length], changed[other : other + length] = second, first
        elif kind == "cut":
            del changed[max(at, 1) :]
        elif kind == "repeat":
            changed[at:at] = changed[at : at + length] * rng.choice((1, 3, 100))
        elif kind == "number":
            changed[at : at + 4] = rng.choice((b"\xff\xff\xff\x7f", b"9999", b"1e99", b"-1\n,", b"nan "))
        else:
            del changed[at : at + length]
        if not changed:
            changed = bytearray(b"\0")
    return bytes(changed), ", ".join(words)


def _names_the_file(read: Callable[[], object], path: Path) -> Callable[[], object]:
    def checked() -> object:
        try:
            return read()
        except InputError as error:
            if path.name not in str(error):
                raise Finding(f"a message that does not name the file: {str(error)[:150]}") from None
            raise

    return checked


def _readers(path: Path) -> dict[str, Callable[[], object]]:
    """Return the ways to read a file, by name."""
    ways: dict[str, Callable[[], object]] = {
        "read_views": lambda: read_views({"a": path}, categories="onehot"),
        "read_labels": lambda: read_labels(path, column="kind"),
        "describe_file": lambda: describe_file(path),
    }
    if path.suffix in _STREAMED:
        ways["ViewsReader"] = lambda: list(ViewsReader({"a": path}, batch_size=5))
    return ways


def cases(seed: int, folder: Path) -> Iterator[Case]:
    """Yield damaged files of all formats in turn."""
    isolate._SECONDS = 3.0  # tiny files; the limit of users is for large ones on slow disks
    originals = [(path, path.read_bytes()) for path in valid_files(folder)]
    rng = random.Random(seed)
    for i in range(10**9):
        path, content = originals[i % len(originals)]
        changed, words = damaged(content, rng)
        way = rng.choice(list(_readers(path)))

        def run(path: Path = path, changed: bytes = changed, way: str = way) -> str:
            path.write_bytes(changed)
            return answer_or_documented_error(_names_the_file(_readers(path)[way], path))

        yield Case(f"{path.name}, {way}: {words}", run)
