"""HDF5 files are read by a process of their own, which is stopped if the library hangs or crashes."""

import base64
import io
import json
import signal
import subprocess
import sys
import threading
import zlib
from pathlib import Path

import numpy as np
import pytest

from coview import InputError
from coview.io import hdf5_reader, read_views

h5py = pytest.importorskip("h5py", reason="HDF5 needs h5py: pip install 'coview[scverse]'")

# A file of 12 x 2 values in which a few bytes were exchanged, compressed.
HANGS = (
    "eNrtml9IU1Ecx8+519VNp04InItwlNnoxc1WGURX05lCqP0BfQn/kJCBNhyED6VBPij1EiFUVC8Z1EO1px5SuZNefJBaNSoMSbOWQdYqI6GHtb"
    "t7zu7OySWaouTv8/Lj9zu/e+7uvb/72znfrbuspDQ12ZKMVCQJJSETiidMGMtnfTpeRywmtovY2wKN4+iYmcQzyPx83pFDLpeaHeag57EnadaM"
    "gNVImauoSrU1xLcSOySweXT8ZIMnak/VtzL1WTDP82Jk0I7F1LdpVtACRpJHPwbvi5GKVTMzrDKSopFC5ExBzrCojRsiUXVcELUJJVLhoiC2Gb"
    "SUJDKddjhqW9bncLiisgRHrkqiz0H8ez7tJt5Mtk+8Iv5MFvte2zayeVXE9+b9X/Ws9jv1PvL9rnCO47zpiFSRXhyzEeLypAR5drbd/1G/ErQe"
    "AAAAAACAZaWo83X3VKZPHnYNfHwy6VOavcd7q9vfyaFA56e+kYfyVHHQ7MwZV4JPH/fU5ryU95gGcvNGp+Wb/U39pys+y7b7I4PhzqDSN3StZ5"
    "s8rfyatpaPfp1QJoznH9213ZLPbbb037ki+Nq3XD97FA8r7W/3HSz88l35mXvhW1/LByXQe8Z/8cS4YvMHhOK9AWVmMHR1a82IfKnhQcemeyFZ"
    "uvEm+MzjU9zS82Fp9IecnStWl5a/V1on/Zk5HS9kdV3pzdauJZWsM6lv5PwUzpc4fx3nJ3O+wPki5ydxvoHkUH8N56/l8k2cnw7lCVDcaXAPAA"
    "BYVFTNKF5PNxGFzW3R/DoSn0tPH9ugf6cCqw9eT6cyoNnC5rXUNzd6kK7Hlv3jeenvP7z+ayRKJY6sstZHqrK2qeVYYxtCWRhHjzDFPoNE8vQ1"
    "G11/YTSbXq+9KRizej21VJ9PdJ6YPi8gVp/HbnLLfNwVdq2o56zp9Tj2nvstUPuL2Xdt9vn13csO6LvAwtlfXHkAxzXs+D4Y36/p7zfUenbqe2"
    "AmvkvfCzPxAnbeWHy3vjeOn8/jsMf2yGzcwdR7bJ7t+h6eiTv1vTwT36FrAkw8n+3nsbhD1xiYOHlf0xLct/QE85gSzAMAAAAAAAAAAAAAS0Ei"
    "3dbP/T92qXRb/v+4i6HbpqG5dVtez1i4bmvP0Gawcle4snXbLtAbFsRvApAWUA=="
)


def write(path, packed):
    path.write_bytes(zlib.decompress(base64.b64decode(packed)))
    return {"cells": str(path)}


def test_a_damaged_file_that_keeps_the_library_busy_ends_with_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr(hdf5_reader, "_SECONDS", 1.0)
    with pytest.raises(InputError, match=r"cells.*gave no answer for 1 seconds and was stopped; .* may be damaged"):
        read_views(write(tmp_path / "x.h5ad", HANGS))


def replaced_program(tmp_path, monkeypatch, code):
    """Read with another program in place of the HDF5 library."""
    (tmp_path / "hdf5_process.py").write_text(code)
    monkeypatch.setattr(hdf5_reader, "__file__", str(tmp_path / "hdf5_reader.py"))


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("import os; os.abort()", "the HDF5 library crashed (SIGABRT)"),
        ("raise SystemExit(3)", "the HDF5 library crashed (exit code 3)"),
        ("", "cannot be read"),
    ],
)
def test_a_program_that_ends_is_explained(tmp_path, monkeypatch, code, message):
    replaced_program(tmp_path, monkeypatch, code)
    with pytest.raises(InputError) as caught:
        read_views(write(tmp_path / "x.h5ad", HANGS))
    assert message in str(caught.value)


def test_an_interrupt_stops_the_program_at_once(tmp_path, monkeypatch):
    """The limit of 30 seconds is not waited for: the test ends as soon as the signal arrives."""
    started, processes = threading.Event(), []

    class Watched(subprocess.Popen):
        def __init__(self, *given, **named):
            super().__init__(*given, **named)
            processes.append(self)
            started.set()

    replaced_program(tmp_path, monkeypatch, "while True: pass")
    monkeypatch.setattr(subprocess, "Popen", Watched)

    def interrupt():
        started.wait()
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    thread = threading.Timer(0.2, interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        read_views(write(tmp_path / "x.h5ad", HANGS))
    thread.join()
    assert processes[0].returncode == -signal.SIGKILL


def test_large_datasets_arrive_in_blocks(tmp_path, monkeypatch):
    """Chunks of 100 rows and blocks of 64 KiB: 300 rows of 20 columns at once, and 8 bytes each."""
    values = np.random.default_rng(0).normal(size=(1000, 20))
    with h5py.File(tmp_path / "x.h5ad", "w") as file:
        file.create_dataset("X", data=values, chunks=(100, 7), compression="gzip")
    code = Path(hdf5_reader.__file__).with_name("hdf5_process.py").read_text()
    replaced_program(tmp_path, monkeypatch, code.replace("2**24", "2**16"))
    sizes = []

    def watched(self, name, block_bytes):
        for block in blocks(self, name, block_bytes):
            sizes.append(block["bytes"])
            yield block

    blocks = hdf5_reader._Process.blocks
    monkeypatch.setattr(hdf5_reader._Process, "blocks", watched)
    assert np.array_equal(read_views({"x": tmp_path / "x.h5ad"}).views["x"], values)
    assert sizes == [400 * 160, 400 * 160, 200 * 160]


def test_names_that_do_not_fit_in_memory_are_refused(tmp_path, monkeypatch):
    """The file stores none of them, because all are empty."""
    with h5py.File(tmp_path / "x.h5ad", "w") as file:
        file["X"] = np.ones((3, 2))
        names = file.create_group("obs").create_dataset("_index", (10**9,), h5py.string_dtype(), chunks=(10**6,))
        file["obs"].attrs["_index"] = "_index"
        assert names.id.get_storage_size() == 0
    monkeypatch.setattr("coview.base.runtime.available_memory", lambda: 2**33)
    with pytest.raises(InputError, match=r"a table of 1000000000 values needs about 93\.1 GiB"):
        read_views({"x": tmp_path / "x.h5ad"})


def test_values_that_are_not_numbers_are_named(tmp_path):
    with h5py.File(tmp_path / "x.h5ad", "w") as file:
        file["X"] = np.zeros(3, [("a", "f8"), ("b", "i4")])
    with pytest.raises(InputError, match=r"values of type .*'a'.* in /X; expected numbers or strings"):
        read_views({"x": tmp_path / "x.h5ad"})


def test_the_program_answers_requests(tmp_path):
    """The same code in this process, where a debugger and the coverage see it."""
    from coview.io.hdf5_process import answer

    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["group/numbers"] = np.arange(3.0)
        file["group/one"] = 4
        file["strings"] = ["a", "bcd"]
        file["strings"].attrs["categories"] = file["group"].ref
        file["strings"].attrs["MATLAB_class"] = np.bytes_("char")
        file.attrs["column-order"] = ["x", "y"]
        file.attrs["shape"] = np.array([3, 2])
        file["group"].attrs["shape"] = np.int64(7)
        file["soft"] = h5py.SoftLink("/nothing")
    asked = [{"describe": name} for name in ("/", "/group", "/group/numbers", "/strings", "/soft")]
    asked += [{"read": name} for name in ("/group/numbers", "/group/one", "/strings", "/nothing")]
    replies = io.BytesIO()
    answer(
        str(tmp_path / "x.h5"),
        io.BytesIO(b"".join(json.dumps({**each, "seconds": 9}).encode() + b"\n" for each in asked)),
        replies,
    )
    replies.seek(0)
    root, group, numbers, strings, soft = (json.loads(replies.readline()) for _ in range(5))
    assert root == {"attrs": {"shape": [3, 2], "column-order": ["x", "y"]}, "keys": ["group", "soft", "strings"]}
    assert group == {"attrs": {"shape": 7}, "keys": ["numbers", "one"]}
    assert numbers["content"] == "numbers"
    assert (numbers["shape"], numbers["dtype"], numbers["is_own"]) == ([3], "<f8", True)
    assert strings["attrs"] == {"categories": "/group", "MATLAB_class": {"bytes": "char"}}
    assert soft == {"missing": True}
    found = []
    while line := replies.readline():
        head = json.loads(line)
        found.append((head, replies.read(head.get("bytes", 0))))
    lengths = np.array([1, 3]).tobytes()
    assert found[:6] == [
        ({"bytes": 24}, np.arange(3.0).tobytes()),
        ({}, b""),
        ({"bytes": 8}, np.array(4).tobytes()),
        ({}, b""),
        ({"bytes": 20, "count": 2}, lengths + b"abcd"),
        ({}, b""),
    ]
    assert [*found[6][0]] == ["error"]


def test_reading_does_not_import_the_library_into_this_process(tmp_path):
    write(tmp_path / "x.h5ad", HANGS)
    with h5py.File(tmp_path / "x.h5ad", "w") as file:
        file["X"] = np.arange(6.0).reshape(3, 2)
    code = "import sys; from coview.io import read_views; read_views({'x': sys.argv[1]}); print('h5py' in sys.modules)"
    run = [sys.executable, "-c", code, str(tmp_path / "x.h5ad")]
    assert subprocess.run(run, capture_output=True, text=True, check=True).stdout == "False\n"
