"""HDF5 and MATLAB files are read by a process of their own, which is stopped if the library hangs or crashes."""

import base64
import signal
import struct
import subprocess
import sys
import threading
import zlib
from pathlib import Path

import numpy as np
import pytest

from coview import InputError
from coview.io import isolate, read_views
from coview.io.hdf5 import read_anndata, variables_of_anndata
from coview.io.table import InputFile

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
    monkeypatch.setattr(isolate, "_SECONDS", 2.0)
    with pytest.raises(
        InputError,
        match=r"cells.*the library that reads it gave no answer for 2 seconds and was stopped; .* may be damaged",
    ):
        read_views(write(tmp_path / "x.h5ad", HANGS))


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("import os; os.abort()", "the library that reads it crashed (SIGABRT)"),
        ("raise SystemExit(3)", "the process that reads it ended (exit code 3: )"),
        ("", "the process that reads it ended (exit code 0: )"),
        ("print('no answer')", "the process that reads it ended (exit code 0: )"),
        ("import nowhere", "(exit code 1: ModuleNotFoundError: No module named 'nowhere')"),
    ],
)
def test_a_reader_that_ends_without_an_answer_is_explained(tmp_path, monkeypatch, code, message):
    monkeypatch.setattr(isolate, "_PROGRAM", code)
    with pytest.raises(InputError) as caught:
        read_views(write(tmp_path / "x.h5ad", HANGS))
    assert message in str(caught.value)


def test_an_interrupt_stops_the_reader_at_once(tmp_path, monkeypatch):
    """The limit of 30 seconds is not waited for: the test ends as soon as the signal arrives."""
    started, processes = threading.Event(), []

    class Watched(subprocess.Popen):
        def __init__(self, *given, **named):
            super().__init__(*given, **named)
            processes.append(self)
            started.set()

    monkeypatch.setattr(isolate, "_PROGRAM", "while True: pass")
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


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not limit the memory of a process")
def test_a_reader_has_a_limit_of_memory(monkeypatch):
    code = (
        "from coview.io import isolate; isolate.available_memory = lambda: 2**20; "
        "isolate._limit_memory(10**9); bytes(2**31)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stderr.endswith("MemoryError\n")


def test_the_answer_of_a_reader_is_the_same_in_this_process(tmp_path):
    """Where a debugger and the coverage see it; here, neither time nor memory is limited."""
    values = np.random.default_rng(0).normal(size=(1000, 20))
    with h5py.File(tmp_path / "x.h5ad", "w") as file:
        file.create_dataset("X", data=values, chunks=(100, 7), compression="gzip")
        file["obsm/link"] = h5py.SoftLink("/nothing")
    source = InputFile("file", tmp_path / "x.h5ad")
    assert np.array_equal(read_anndata(source).numbers, values)
    assert np.array_equal(read_anndata.__wrapped__(source).numbers, values)
    assert variables_of_anndata.__wrapped__(source) == variables_of_anndata(source) == {"X": "(1000x20)"}


def refused(path, message):
    with pytest.raises(InputError, match=message):
        read_views({"x": path})


def test_tables_that_do_not_fit_in_memory_twice_are_refused(tmp_path, monkeypatch):
    """The file stores no name, because all are empty."""
    with h5py.File(tmp_path / "x.h5ad", "w") as file:
        file["X"] = np.ones((3, 2))
        names = file.create_group("obs").create_dataset("_index", (10**9,), h5py.string_dtype(), chunks=(10**6,))
        file["obs"].attrs["_index"] = "_index"
        assert names.id.get_storage_size() == 0
    monkeypatch.setattr("coview.base.runtime.available_memory", lambda: 2**33)
    with pytest.raises(MemoryError, match=r"a table of 1000000000 values needs about 186\.3 GiB"):
        read_anndata.__wrapped__(InputFile("file", tmp_path / "x.h5ad"))


def test_small_files_that_state_large_tables_are_refused(tmp_path):
    """Chunks that are not stored have the fill value: 1,400 bytes would become 4.8 GB."""
    with h5py.File(tmp_path / "x.h5ad", "w") as file:
        file.create_dataset("X", (20_000_000, 30), "f8", chunks=(1000, 30), fillvalue=1.0)
    refused(tmp_path / "x.h5ad", "20000000 x 30 values (needs about|but stores 0 bytes)")
    (tmp_path / "x.mtx").write_text("%%MatrixMarket matrix array real general\n2000000 30\n1\n")
    refused(tmp_path / "x.mtx", "2000000 x 30 values (needs about|but stores 54 bytes)")
    (tmp_path / "x.mtx").write_text("%%MatrixMarket matrix coordinate real general\n100000000 3 1\n1 1 1\n")
    refused(tmp_path / "x.mtx", r"100000003 values (needs about|but stores \d+ bytes)")
    with h5py.File(tmp_path / "x.h5ad", "w") as file:
        x = file.create_group("X")
        x.attrs["encoding-type"], x.attrs["shape"] = "csc_matrix", (10**8, 1)
        x["data"], x["indices"], x["indptr"] = np.ones(1), np.zeros(1, int), np.array([0, 1])
    refused(tmp_path / "x.h5ad", r"100000001 values (needs about|but stores \d+ bytes)")
    header = struct.pack("<4I", 6, 8, 6, 0) + struct.pack("<2I2i", 5, 8, 10**8, 3) + struct.pack("<HH4s", 1, 1, b"X")
    body = header + struct.pack("<2I8x", 9, 8)
    (tmp_path / "x.mat").write_bytes(b"MATLAB".ljust(124) + b"\0\1IM" + struct.pack("<2I", 14, len(body)) + body)
    refused(tmp_path / "x.mat", r"100000000 x 3 values (needs about|but stores \d+ bytes)")


def test_values_that_are_not_numbers_are_named(tmp_path):
    with h5py.File(tmp_path / "x.h5ad", "w") as file:
        file["X"] = np.zeros(3, [("a", "f8"), ("b", "i4")])
    with pytest.raises(InputError, match=r"values of type .*'a'.* in /X; expected numbers or strings"):
        read_views({"x": tmp_path / "x.h5ad"})


def test_reading_does_not_import_the_library_into_this_process(tmp_path):
    write(tmp_path / "x.h5ad", HANGS)
    with h5py.File(tmp_path / "x.h5ad", "w") as file:
        file["X"] = np.arange(6.0).reshape(3, 2)
    code = "import sys; from coview.io import read_views; read_views({'x': sys.argv[1]}); print('h5py' in sys.modules)"
    run = [sys.executable, "-c", code, str(tmp_path / "x.h5ad")]
    assert subprocess.run(run, capture_output=True, text=True, check=True).stdout == "False\n"


def test_a_small_file_cannot_take_all_memory(monkeypatch):
    code = "from coview.io import isolate; isolate._limit_memory(1000); bytes(2**31)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stderr.endswith("MemoryError\n")


def test_strings_of_fixed_length_are_counted(tmp_path):
    with h5py.File(tmp_path / "x.h5ad", "w") as file:
        file.create_dataset("X", data=np.ones((20, 2)))
        file.create_dataset("obs/_index", shape=(20,), dtype="S100000000", chunks=(1,))
        file["obs"].attrs["_index"] = "_index"
    with pytest.raises(InputError, match="states a table of 20 values but stores 0 bytes"):
        read_views({"a": tmp_path / "x.h5ad"}, ids="_index")


def test_a_script_from_standard_input_reads_files_with_the_library_of_its_folder(tmp_path):
    with h5py.File(tmp_path / "x.h5ad", "w") as file:
        file.create_dataset("X", data=np.ones((5, 2)))
    path = str(tmp_path / "x.h5ad")
    code = "import sys; sys.path.insert(0, ''); from coview import read_views; "
    code += f"print(read_views({{'a': {path!r}}}).views)"
    folder = Path(isolate.__file__).parents[2]
    done = subprocess.run([sys.executable, "-"], input=code, capture_output=True, text=True, cwd=folder)
    assert done.stdout == "Views(5 samples; a: 2)\n", done.stderr
