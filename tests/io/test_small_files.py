"""Small files that would exhaust memory or time are refused, with the figures."""

import gzip

import numpy as np
import pytest
import scipy.sparse as sp

from coview import InputError
from coview.io import ViewsReader, read_labels, read_views

GIB = 2**30
COORDINATES = "%%MatrixMarket matrix coordinate real general\n"


@pytest.fixture
def two_gib(monkeypatch):
    monkeypatch.setattr("coview.base.runtime.available_memory", lambda: 2 * GIB)


def refused(path, message, read=read_views):
    with pytest.raises(InputError, match=message):
        read({"a": str(path)})


def test_columns_are_counted_before_names_are_made(tmp_path, two_gib):
    (tmp_path / "x.mtx").write_text(COORDINATES + f"6 {10**18} 1\n1 1 1\n")
    refused(tmp_path / "x.mtx", "a table of 1000000000000000000 columns needs about 186264514923.1 GiB")
    sp.save_npz(tmp_path / "x.npz", sp.csr_array((np.ones(1), ([0], [0])), shape=(6, 10**8)))
    refused(tmp_path / "x.npz", "a table of 100000000 columns needs about 18.6 GiB and 2.0 GiB are available; drop")


def test_wide_tables_without_names_have_none(tmp_path):
    """Names for each column, and a set of them for each name, took 97 seconds for 40,000 columns."""
    wide = sp.random_array((6, 10**6), density=1e-5, rng=np.random.default_rng(0), format="csr")
    sp.save_npz(tmp_path / "x.npz", wide)
    loaded = read_views({"a": tmp_path / "x.npz"})
    assert loaded.views.columns["a"] is None
    assert loaded.views.n_features == {"a": 10**6}
    assert "columns" in loaded.notes[0]
    assert len(loaded.notes[0]) < 300


def test_repeated_strings_of_parquet_are_one_string(tmp_path):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    text = "long " * 20_000
    parquet.write_table(pa.table({"x": np.arange(2000.0), "kind": [text, "b"] * 1000}), tmp_path / "x.parquet")
    assert (tmp_path / "x.parquet").stat().st_size < 100_000
    classes = read_labels(tmp_path / "x.parquet", column="kind")
    assert classes == (text, "b") * 1000
    assert len({id(label) for label in classes}) == 2


def test_strings_of_parquet_stay_strings(tmp_path):
    """They are read as categories to save memory, and are still refused as features."""
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    parquet.write_table(pa.table({"x": [1.0, 2.0, 3.0], "kind": ["a", None, "b"]}), tmp_path / "x.parquet")
    refused(tmp_path / "x.parquet", "has strings in the column 'kind'")


@pytest.mark.parametrize("kind", ["file", "stream"])
@pytest.mark.parametrize("compression", ["zstd", None])
def test_batches_of_arrow_are_counted_before_they_are_decompressed(tmp_path, monkeypatch, kind, compression):
    pa = pytest.importorskip("pyarrow")
    table = pa.table({"x": np.zeros(500_000), "kind": pa.array(["a", "b"] * 250_000).dictionary_encode()})
    path = tmp_path / "x.feather"
    opened = pa.ipc.new_file if kind == "file" else pa.ipc.new_stream
    with opened(path, table.schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as writer:
        writer.write_table(table, max_chunksize=200_000)
    assert path.stat().st_size < 100_000 or compression is None
    assert read_views({"a": path}).views.n_features == {"a": 2}
    monkeypatch.setattr("coview.base.runtime.available_memory", lambda: 10**7 if kind == "file" else 5 * 10**6)
    monkeypatch.setattr("coview.io.arrow._from_arrow", None)  # refused before
    refused(path, r"a table of \d+ values needs about 0.0 GiB")


@pytest.mark.parametrize("change", [lambda c: c[:8] + b"\xff" * 400 + c[408:], lambda c: c[:-30] + b"\x7f" * 30])
def test_damaged_metadata_of_arrow_are_refused(tmp_path, change):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import feather

    feather.write_feather(pa.table({"x": np.arange(9.0)}), tmp_path / "x.feather")
    (tmp_path / "x.feather").write_bytes(change((tmp_path / "x.feather").read_bytes()))
    refused(tmp_path / "x.feather", "cannot be read")
    refused(tmp_path / "x.feather", "cannot be read", ViewsReader)


def test_text_cells_are_counted(tmp_path, monkeypatch):
    rows = "".join(f"{'x' * 300}{i},{i}\n" for i in range(20_000))
    (tmp_path / "x.csv").write_text("name,value\n" + rows)
    monkeypatch.setattr("coview.base.runtime.available_memory", lambda: 4 * 10**6)
    refused(tmp_path / "x.csv", r"a table of \d+ x 2 values needs about")


def test_equal_text_cells_are_one_string(tmp_path):
    (tmp_path / "x.csv").write_text("x,kind\n" + "".join(f"{i},{'ab'[i % 2]}\n" for i in range(10_000)))
    classes = read_labels(tmp_path / "x.csv", column="kind")
    assert len(classes) == 10_000
    assert len({id(label) for label in classes}) == 2


def test_cells_of_long_lines_are_counted(tmp_path, monkeypatch):
    monkeypatch.setattr("coview.base.runtime.available_memory", lambda: 10**8)
    (tmp_path / "x.csv.gz").write_bytes(gzip.compress(b"," * 2_000_000 + b"\n"))
    refused(tmp_path / "x.csv.gz", "a table of 2000001 values needs about 0.2 GiB")


def test_wide_text_tables_are_read_in_small_blocks(tmp_path, monkeypatch):
    from coview.io.cells import _Columns

    sizes = []
    monkeypatch.setattr("coview.io.cells._BLOCK_CELLS", 1000)
    add = _Columns.add
    monkeypatch.setattr(_Columns, "add", lambda self, block: sizes.append(len(block)) or add(self, block))
    line = ",".join(map(str, range(200)))
    (tmp_path / "x.csv").write_text(f"{line}\n" * 13)
    assert read_views({"a": tmp_path / "x.csv"}).views.n_samples == 12
    assert sizes == [5, 5, 2]


@pytest.mark.parametrize("ending", [".csv.gz", ".jsonl.gz", ".mtx.gz"])
@pytest.mark.parametrize("line", [b"\n", b"1.5,2.25\n"])
def test_lines_without_end_are_refused_before_they_are_read(tmp_path, ending, line):
    path = tmp_path / f"x{ending}"
    path.write_bytes(gzip.compress(line * (2**24 // len(line) + 1)))
    assert path.stat().st_size < 40_000
    refused(path, "contains more than 300 times the bytes of the compressed file")


def test_tables_are_read_with_one_thread_of_arrow(tmp_path):
    """Datasets of Arrow wait forever then."""
    import os
    import subprocess
    import sys

    pa = pytest.importorskip("pyarrow")
    from pyarrow import feather, parquet

    table = pa.table({"x": np.arange(9.0)})
    parquet.write_table(table, tmp_path / "x.parquet")
    feather.write_feather(table, tmp_path / "x.feather")
    code = "import sys; from coview import ViewsReader; [print(ViewsReader({'a': p}).n_samples) for p in sys.argv[1:]]"
    run = [sys.executable, "-c", code, *map(str, tmp_path.iterdir())]
    environment = {**os.environ, "ARROW_IO_THREADS": "1"}
    assert subprocess.run(run, env=environment, capture_output=True, text=True, timeout=60).stdout == "9\n9\n"


@pytest.mark.parametrize("metadata", [b"{not json", b"\xff\xfe", b"{}", b'{"index_columns": 3}', b"[]"])
def test_damaged_metadata_of_pandas_are_input_errors(tmp_path, metadata):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    table = pa.table({"x": np.arange(9.0)}).replace_schema_metadata({b"pandas": metadata})
    parquet.write_table(table, tmp_path / "x.parquet")
    for read in (ViewsReader, read_views):
        try:
            read({"a": tmp_path / "x.parquet"})
        except InputError as error:
            assert "x.parquet" in str(error)
