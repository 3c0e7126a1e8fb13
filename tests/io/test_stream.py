"""Streams: aligned blocks of rows from files, selected rows, and labels written in blocks."""

import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from coview import InputError, TMvKSCR
from coview.compose import Concat, FixedSize, Preprocessed
from coview.io import ViewsReader, label_file
from tests.conftest import make_blobs

pa = pytest.importorskip("pyarrow", reason="tables need pyarrow: pip install 'coview[io]'")
parquet = pytest.importorskip("pyarrow.parquet")
feather = pytest.importorskip("pyarrow.feather")


def table(x, **others):
    return pa.table({**others, **{f"x{j}": np.ascontiguousarray(column) for j, column in enumerate(x.T)}})


def as_npy(path, x, number):
    np.save(path.with_suffix(".npy"), x)
    return path.with_suffix(".npy")


def as_memmap(path, x, number):
    return np.load(as_npy(path, x, number), mmap_mode="r")


def as_npz(path, x, number):
    np.savez(path.with_suffix(".npz"), x)
    return str(path.with_suffix(".npz"))


def as_parquet(path, x, number):
    parquet.write_table(table(x), path.with_suffix(".parquet"), row_group_size=19 + 12 * number)
    return path.with_suffix(".parquet")


def as_folder(path, x, number):
    (path / "later").mkdir(parents=True)
    cut = 30 + 11 * number
    parquet.write_table(table(x[:cut]), path / "early.parquet")
    parquet.write_table(table(x[cut:]), path / "later" / "rest.parquet")
    (path / "_metadata.parquet").write_bytes(b"no data")
    return path


def as_arrow(path, x, number):
    with pa.ipc.new_file(path.with_suffix(".arrow"), table(x).schema) as file:
        file.write_table(table(x), max_chunksize=23 + 5 * number)
    return path.with_suffix(".arrow")


def as_feather(path, x, number):
    feather.write_feather(table(x), path.with_suffix(".feather"), compression="lz4", chunksize=41)
    return path.with_suffix(".feather")


def as_zarr(path, x, number):
    zarr = pytest.importorskip("zarr", reason="pip install 'coview[zarr]'")
    zarr.create_array(str(path.with_suffix(".zarr")), data=x, chunks=(17 + number, 2))
    return path.with_suffix(".zarr")


KINDS = [as_npy, as_memmap, as_npz, as_parquet, as_folder, as_arrow, as_feather, as_zarr]


def stored(folder, views, kind):
    return {name: kind(folder / name, x, number) for number, (name, x) in enumerate(views.items())}


def in_precision(dtype, n=211):
    return {name: x.astype(dtype) for name, x in make_blobs(n, spread=1.0)[0].items()}


def with_ids(folder, ids, **columns):
    """One Parquet file for each view: the ids and one column of ones."""
    files = {}
    for name, of_view in {"a": ids, **columns}.items():
        files[name] = folder / f"{name}.parquet"
        parquet.write_table(table(np.ones((len(of_view), 1)), id=of_view), files[name], row_group_size=50)
    return files


class ByFirstColumn:
    """A model without cost."""

    def predict(self, views):
        return (next(iter(views.values()))[:, 0] > 0).astype(np.int32)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kind", KINDS)
def test_labels_of_a_stream_are_those_of_the_arrays(tmp_path, kind, dtype):
    views = in_precision(dtype)
    model = TMvKSCR(3, random_state=0).fit({name: x[:80] for name, x in views.items()})
    expected = model.predict(views)
    sources = stored(tmp_path, views, kind)
    for batch_size in (1, 7, 1000):
        out = label_file(model, ViewsReader(sources, batch_size=batch_size), tmp_path / "labels.npy")
        labels = np.load(out)
        assert labels.dtype == np.int64
        np.testing.assert_array_equal(labels, expected)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kind", KINDS)
def test_blocks_and_selected_rows_have_the_values_of_the_files(tmp_path, kind, dtype):
    views = in_precision(dtype)
    reader = ViewsReader(stored(tmp_path, views, kind), batch_size=60)
    assert (reader.names, reader.n_samples) == (("a", "b", "c"), 211)
    assert reader.n_features == {"a": 4, "b": 6, "c": 3}
    assert repr(reader) == "ViewsReader(211 samples; a: 4, b: 6, c: 3)"
    for _ in range(2):
        blocks = list(reader)
        assert [block.n_samples for block in blocks] == [60, 60, 60, 31]
        assert blocks[0].dtype == dtype
        for name, x in views.items():
            np.testing.assert_array_equal(np.concatenate([block[name] for block in blocks]), x)
    for rows in ([0], [210], [3, 29, 30, 31, 199], np.arange(211)):
        for name, x in reader.take(rows).items():
            np.testing.assert_array_equal(x, views[name][rows])


def test_formats_can_be_mixed(tmp_path):
    views = in_precision("float32")
    sources = {
        "a": as_parquet(tmp_path / "a", views["a"], 0),
        "b": as_npy(tmp_path / "b", views["b"], 1),
        "c": views["c"],
    }
    for block, start in zip(ViewsReader(sources, batch_size=50), range(0, 211, 50), strict=True):
        for name, x in views.items():
            np.testing.assert_array_equal(block[name], x[start : start + 50])


def test_training_from_a_stream_equals_training_from_arrays(tmp_path):
    views = in_precision("float64")
    model = FixedSize(TMvKSCR(3, random_state=0), n_train=70, n_repeats=2, random_state=0)
    reader = ViewsReader(stored(tmp_path, views, as_parquet), batch_size=40)
    labels = np.load(label_file(model.train(reader), reader, tmp_path / "labels.npy"))
    np.testing.assert_array_equal(labels, model.fit(views).labels_)


def test_wrapped_scikit_learn_models_label_streams(tmp_path):
    from sklearn.cluster import KMeans

    views = in_precision("float64")
    model = Concat(KMeans(3, n_init=1, random_state=0)).fit(views)
    labels = np.load(label_file(model, ViewsReader(views, batch_size=50), tmp_path / "labels.npy"))
    np.testing.assert_array_equal(labels, model.predict(views))


def test_columns_of_integers_and_booleans_are_features(tmp_path):
    columns = {"count": pa.array([1, 2], pa.int16()), "seen": [True, False], "ratio": pa.array([0.5, 2], pa.float32())}
    parquet.write_table(pa.table(columns), tmp_path / "x.parquet")
    (views,) = ViewsReader({"a": tmp_path / "x.parquet", "b": np.array([[1], [2]])})
    np.testing.assert_array_equal(views["a"], [[1, 1, 0.5], [2, 0, 2]])
    assert (views["a"].dtype, views["b"].dtype) == (np.float32, np.float64)
    assert views.columns == {"a": ("count", "seen", "ratio"), "b": None}


@pytest.mark.parametrize(("ids", "expected"), [(False, [0, 1]), (None, [7, 9]), ("sample", [7, 9])])
def test_a_pandas_index_is_not_a_feature(tmp_path, ids, expected):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"x.1": [1.0, 2.0], "x": [3.0, 4.0]}, index=pd.Index([7, 9], name="sample"))
    frame.to_parquet(tmp_path / "x.parquet")
    reader = ViewsReader({"a": tmp_path / "x.parquet"}, ids=ids)
    assert next(iter(reader)).columns == {"a": ("x.1", "x")}
    np.testing.assert_array_equal(reader.take([0, 1])["a"], frame)
    found = parquet.read_table(label_file(ByFirstColumn(), reader, tmp_path / "labels.parquet"))
    assert found.to_pydict()["sample"] == expected


def test_columns_in_another_order_than_in_training_are_refused(tmp_path):
    x = table(make_blobs()[0]["a"])
    model = TMvKSCR(3, random_state=0).fit({"a": x})
    parquet.write_table(x.select(["x1", "x0", "x2", "x3"]), tmp_path / "a.parquet")
    with pytest.raises(InputError, match="has the column 'x1' where 'x0' was"):
        label_file(model, ViewsReader({"a": tmp_path / "a.parquet"}), tmp_path / "labels.npy")


@pytest.mark.parametrize("batch_size", [7, 1000])
def test_parquet_labels_have_the_ids(tmp_path, batch_size):
    ids = [f"s{i}" for i in range(120)]
    files = with_ids(tmp_path, ids, b=pa.array(ids, pa.large_string()), c=pa.array(ids).dictionary_encode())
    reader = ViewsReader({**files, "d": np.ones((120, 1))}, ids="id", batch_size=batch_size)
    assert reader.n_features == {"a": 1, "b": 1, "c": 1, "d": 1}
    found = parquet.read_table(label_file(ByFirstColumn(), reader, tmp_path / "labels.parquet"))
    blank = dict.fromkeys(["membership", "second_cluster", "novelty", "best_view"], [None] * 120)
    assert found.to_pydict() == {"id": ids, "cluster": [1] * 120, **blank}


@pytest.mark.parametrize(("ending", "delimiter"), [(".csv", ","), (".tsv", "\t")])
def test_text_labels_have_the_ids(tmp_path, ending, delimiter):
    ids = [f"s{i}" for i in range(20)]
    reader = ViewsReader(with_ids(tmp_path, ids), ids="id", batch_size=7)
    written = label_file(ByFirstColumn(), reader, tmp_path / f"labels{ending}").read_text().splitlines()
    heading = delimiter.join(["id", "cluster", "membership", "second_cluster", "novelty", "best_view"])
    assert written == [heading, *(f"{sample}{delimiter}1{delimiter * 4}" for sample in ids)]


def test_samples_without_ids_are_numbered(tmp_path):
    x = np.array([[1.0], [-1.0], [1.0]])
    found = parquet.read_table(label_file(ByFirstColumn(), ViewsReader({"a": x}), tmp_path / "labels.parquet"))
    assert found.select(["sample", "cluster"]).to_pydict() == {"sample": [0, 1, 2], "cluster": [1, 0, 1]}


@pytest.mark.parametrize("kind", [as_npy, as_parquet, as_arrow])
def test_memory_does_not_grow_with_the_rows(tmp_path, kind):
    def peaks(n):
        x = np.random.default_rng(0).normal(size=(n, 20)).astype(np.float32)
        reader = ViewsReader({"a": kind(tmp_path / f"x{n}", x, 100)}, batch_size=1000)
        del x
        in_arrow = []

        class Watching(ByFirstColumn):
            def predict(self, views):
                in_arrow.append(pa.total_allocated_bytes())
                return super().predict(views)

        before = pa.total_allocated_bytes()
        tracemalloc.start()
        try:
            label_file(Watching(), reader, tmp_path / "labels.npy")
            reader.take(np.arange(0, n, n // 10))
            return tracemalloc.get_traced_memory()[1], max(in_arrow) - before
        finally:
            tracemalloc.stop()

    peaks(2000)  # imports on first use
    (small, small_in_arrow), (large, large_in_arrow) = peaks(20_000), peaks(80_000)
    assert large < 1.1 * small + 50_000
    assert large_in_arrow < 1.5 * small_in_arrow + 500_000  # the whole file is 6.4 MB


def resident_file_pages():
    status = Path("/proc/self/status")
    if not status.exists():
        pytest.skip("only Linux reports the resident pages of files")
    return 1024 * int(next(line.split()[1] for line in status.read_text().splitlines() if line.startswith("RssFile")))


def test_pages_of_a_memmap_are_released(tmp_path):
    mapped = np.lib.format.open_memmap(tmp_path / "x.npy", "w+", np.float32, (64, 2**18))  # 64 MB
    reader = ViewsReader({"a": mapped}, batch_size=8)
    before = resident_file_pages()
    for _ in reader:
        assert resident_file_pages() - before < 16 * 2**20
    reader.take(np.arange(64))
    assert resident_file_pages() - before < 16 * 2**20


def test_changes_in_a_private_memmap_are_kept(tmp_path):
    mapped = np.load(as_npy(tmp_path / "x", np.ones((100, 2)), 0), mmap_mode="c")
    mapped[:] = 5.0
    assert all((views["a"] == 5.0).all() for views in ViewsReader({"a": mapped}, batch_size=30))
    assert (mapped == 5.0).all()


def test_a_copy_of_a_memmap_is_read(tmp_path):
    mapped = as_memmap(tmp_path / "x", np.ones((100, 2)), 0)
    for copy in (mapped.copy(), mapped.astype(np.float32)):
        reader = ViewsReader({"a": copy}, batch_size=30)
        assert sum(views.n_samples for views in reader) == 100
        assert reader.take([3, 5]).n_samples == 2


def test_parquet_labels_have_large_row_groups(tmp_path, monkeypatch):
    monkeypatch.setattr("coview.io.labels._GROUP_ROWS", 40)
    x = np.where(np.arange(100) % 3, 1.0, -1.0)[:, None]
    path = label_file(ByFirstColumn(), ViewsReader({"a": x}, batch_size=10), tmp_path / "labels.parquet")
    file = parquet.ParquetFile(path)
    assert [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)] == [40, 40, 20]
    assert file.read().column("cluster").to_pylist() == (x[:, 0] > 0).astype(int).tolist()


def test_an_archive_may_have_one_array_for_each_view(tmp_path):
    np.savez(tmp_path / "both.npz", a=np.zeros((3, 1)), b=np.ones((3, 2)))
    (views,) = ViewsReader(dict.fromkeys("ab", tmp_path / "both.npz"))
    assert views.n_features == {"a": 1, "b": 2}
    assert views["b"].all()


def test_endings_may_be_in_upper_case(tmp_path):
    np.save(tmp_path / "x.npy", np.ones((3, 1)))
    (tmp_path / "x.npy").rename(tmp_path / "X.NPY")
    as_parquet(tmp_path / "y", np.ones((3, 1)), 0).rename(tmp_path / "Y.PARQUET")
    reader = ViewsReader({"x": tmp_path / "X.NPY", "y": tmp_path / "Y.PARQUET"})
    assert parquet.read_table(label_file(ByFirstColumn(), reader, tmp_path / "L.Parquet")).num_rows == 3


def test_a_missing_zarr_names_the_extra(tmp_path, monkeypatch):
    (tmp_path / "x.zarr").mkdir()
    monkeypatch.setitem(sys.modules, "zarr", None)
    with pytest.raises(ImportError, match=r'pip install "coview\[zarr\]"'):
        ViewsReader({"a": tmp_path / "x.zarr"})


def test_a_damaged_zarr_is_named(tmp_path):
    pytest.importorskip("zarr")
    (tmp_path / "x.zarr").mkdir()
    with pytest.raises(InputError, match=r"view 'a' \(.*x.zarr\) cannot be read"):
        ViewsReader({"a": tmp_path / "x.zarr"})


def test_a_damaged_chunk_of_zarr_is_named_with_its_rows(tmp_path):
    path = as_zarr(tmp_path / "x", np.random.default_rng(0).normal(size=(100, 2)), 3)
    chunks = sorted(file for file in path.rglob("*") if file.is_file() and file.name != "zarr.json")
    assert len(chunks) == 5
    chunks[2].write_bytes(b"no chunk")
    reader = ViewsReader({"a": path}, batch_size=20)
    with pytest.raises(InputError, match=r"view 'a' \(.*x.zarr\), rows 40 to 59, cannot be read"):
        list(reader)
    with pytest.raises(InputError, match=r"view 'a' \(.*x.zarr\) cannot be read"):
        reader.take([0, 50])
    assert reader.take([0, 99]).n_samples == 2


def test_differing_row_counts_are_refused_at_once(tmp_path):
    sources = {"a": as_npy(tmp_path / "a", np.ones((5, 2)), 0), "b": as_parquet(tmp_path / "b", np.ones((6, 2)), 0)}
    with pytest.raises(
        InputError,
        match=r"view 'b' \(.*b.parquet\) has 6 samples but view 'a' \(.*a.npy\) has 5; .* aligned by ids \(ids=…\)",
    ):
        ViewsReader(sources)


def test_the_first_row_with_different_ids_is_named(tmp_path):
    ids = np.arange(300, dtype=np.int32)
    other = ids.astype(np.int64)
    other[[217, 218]] = 218, 217
    reader = ViewsReader(with_ids(tmp_path, ids, b=other), ids="id", batch_size=32)
    message = r"view 'b' \(.*b.parquet\) has the id 218 in row 217, but view 'a' \(.*a.parquet\) has 217"
    with pytest.raises(InputError, match=message):
        label_file(ByFirstColumn(), reader, tmp_path / "labels.npy")
    with pytest.raises(InputError, match=message):
        reader.take([5, 217])
    assert reader.take([5, 216, 219]).n_samples == 3
    assert not (tmp_path / "labels.npy").exists()


def test_ids_that_cannot_be_compared_are_refused(tmp_path):
    with pytest.raises(InputError, match=r"'id' are string in view 'b' .* but int64 in view 'a'"):
        ViewsReader(with_ids(tmp_path, [1, 2], b=["1", "2"]), ids="id")
    with pytest.raises(InputError, match=r"'id' are date32\[day\] in view 'b'"):
        ViewsReader(with_ids(tmp_path, [1, 2], b=pa.array([1, 2], pa.date32())), ids="id")
    with pytest.raises(InputError, match="no source is a table"):
        ViewsReader({"a": np.ones((2, 2))}, ids="id")
    with pytest.raises(InputError, match=r"x.parquet\) has no column 'id'"):
        ViewsReader({"a": as_parquet(tmp_path / "x", np.ones((2, 2)), 0)}, ids="id")
    parquet.write_table(pa.table({"id": [1, 2]}), tmp_path / "only.parquet")
    with pytest.raises(InputError, match="has no feature columns"):
        ViewsReader({"a": tmp_path / "only.parquet"}, ids="id")


@pytest.mark.parametrize("ending", [".npy", ".parquet", ".csv"])
@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
@pytest.mark.parametrize("old", [None, b"old labels"])
def test_an_interrupted_run_keeps_the_existing_file(tmp_path, ending, error, old):
    class Interrupted(ByFirstColumn):
        calls = 0

        def predict(self, views):
            self.calls += 1
            if self.calls == 3:
                assert len(list(tmp_path.iterdir())) == (1 if old is None else 2)
                raise error
            return super().predict(views)

    path = tmp_path / f"labels{ending}"
    if old is not None:
        path.write_bytes(old)
    with pytest.raises(error):
        label_file(Interrupted(), ViewsReader({"a": np.ones((10, 1))}, batch_size=2), path)
    assert [file.read_bytes() for file in tmp_path.iterdir()] == ([] if old is None else [old])


def test_a_complete_run_replaces_an_old_file_and_nothing_else(tmp_path):
    (tmp_path / "labels.npy").write_bytes(b"old labels")
    label_file(ByFirstColumn(), ViewsReader({"a": np.ones((3, 1))}), str(tmp_path / "labels.npy"))
    assert [file.name for file in tmp_path.iterdir()] == ["labels.npy"]
    np.testing.assert_array_equal(np.load(tmp_path / "labels.npy"), [1, 1, 1])


@pytest.mark.parametrize("kind", [as_npy, as_npz, as_parquet, as_arrow, as_feather])
@pytest.mark.parametrize("fraction", [0, 0.4, 0.99])
def test_truncated_files_are_named(tmp_path, kind, fraction):
    path = kind(tmp_path / "x", np.random.default_rng(0).normal(size=(300, 3)), 0)
    with open(path, "r+b") as file:
        file.truncate(int(fraction * file.seek(0, 2)))
    with pytest.raises(InputError, match=rf"view 'a' \({path}\) cannot be read"):
        ViewsReader({"a": path})


def test_damage_inside_a_file_is_named_and_leaves_no_labels(tmp_path):
    path = as_feather(tmp_path / "x", np.random.default_rng(0).normal(size=(900, 3)), 0)
    with open(path, "r+b") as file:
        file.seek(5000)
        file.write(b"\xff" * 3000)
    with pytest.raises(InputError, match=rf"view 'a' \({path}\) cannot be read"):
        label_file(ByFirstColumn(), ViewsReader({"a": path}), tmp_path / "labels.npy")
    assert [file.name for file in tmp_path.iterdir()] == ["x.feather"]


@pytest.mark.parametrize("kind", [as_npy, as_parquet])
@pytest.mark.parametrize("rows", [50, 150])
def test_files_that_change_after_the_reader_was_made_are_refused(tmp_path, kind, rows):
    reader = ViewsReader({"a": kind(tmp_path / "x", np.ones((100, 2)), 0)}, batch_size=30)
    kind(tmp_path / "x", np.ones((rows, 2)), 0)
    with pytest.raises(InputError, match="has changed since the reader was made"):
        list(reader)


@pytest.mark.parametrize("columns", [{"y0": [1.0]}, {"x0": ["word"]}])
def test_tables_whose_columns_change_after_the_reader_was_made_are_refused(tmp_path, columns):
    path = as_parquet(tmp_path / "x", np.ones((1, 1)), 0)
    reader = ViewsReader({"a": path})
    parquet.write_table(pa.table(columns), path)
    with pytest.raises(InputError, match=rf"view 'a' \({path}\) has changed since the reader was made"):
        list(reader)


def test_files_with_damaged_strings_are_named(tmp_path):
    """Offsets outside the buffer would end the process."""
    path = tmp_path / "x.arrow"
    offsets = np.array([0, 3, 6], dtype=np.int32)
    with pa.ipc.new_file(path, pa.schema([("id", pa.string()), ("x0", pa.float64())])) as file:
        texts = pa.StringArray.from_buffers(2, pa.py_buffer(offsets), pa.py_buffer(b"onetwo"))
        file.write_batch(pa.record_batch([texts, pa.array([1.0, 2.0])], names=["id", "x0"]))
    stored_offsets = offsets.tobytes()
    whole = path.read_bytes()
    assert whole.count(stored_offsets) == 1
    path.write_bytes(whole.replace(stored_offsets, np.array([0, 2**30, 6], dtype=np.int32).tobytes()))
    with pytest.raises(InputError, match=rf"view 'a' \({path}\) cannot be read"):
        list(ViewsReader({"a": path}, ids="id"))


@pytest.mark.parametrize("kind", [as_npy, as_parquet])
def test_bad_values_are_named_with_file_and_rows(tmp_path, kind):
    x = np.ones((1000, 3), np.float32)
    x[777, 1], x[780, 2] = np.nan, np.inf
    reader = ViewsReader({"fine": np.ones((1000, 1)), "b": kind(tmp_path / "x", x, 0)}, batch_size=50)
    message = (
        r"view 'b' \(.*x\..*\) contains NaN or infinity in row 777, column .*1.*, "
        "the first of 2 such rows from 750 to 799; impute them"
    )
    with pytest.raises(InputError, match=message):
        label_file(ByFirstColumn(), reader, tmp_path / "labels.npy")
    with pytest.raises(InputError, match="in row 780"):
        reader.take([3, 780, 999])
    assert not (tmp_path / "labels.npy").exists()


def test_missing_values_are_named_with_file_column_and_row(tmp_path):
    parquet.write_table(pa.table({"x": [1.0, 2.0], "y": [1, 2]}), tmp_path / "0.parquet")
    parquet.write_table(pa.table({"y": [1, None], "x": [1.0, 2.0]}), tmp_path / "1.parquet")
    with pytest.raises(InputError, match=r"view 'a' .* contains NaN or infinity in row 3, column 'y', the first of 1"):
        list(ViewsReader({"a": tmp_path}))


def test_missing_ids_are_named_with_file_and_row(tmp_path):
    parquet.write_table(pa.table({"id": ["s", None], "x": [1.0, 2.0]}), tmp_path / "x.parquet")
    with pytest.raises(InputError, match="has no value in column 'id' in row 1 of the view; each sample needs an id"):
        list(ViewsReader({"a": tmp_path / "x.parquet"}, ids="id"))


def as_parquet_with_nulls(path, x, number):
    """As pandas writes NaN."""
    columns = {f"x{j}": pa.array(column, from_pandas=True) for j, column in enumerate(x.T)}
    parquet.write_table(pa.table(columns), path.with_suffix(".parquet"))
    return path.with_suffix(".parquet")


@pytest.mark.parametrize("kind", [as_npy, as_parquet, as_parquet_with_nulls])
def test_models_that_fill_empty_cells_label_files_with_empty_cells(tmp_path, kind):
    views, _ = make_blobs(120, widths=(4, 3), seed=0)
    views["a"][[0, 5, 77], [0, 2, 1]] = np.nan
    model = Preprocessed(TMvKSCR(3, random_state=0), {"a": "median"}).fit(views)
    reader = ViewsReader({name: kind(tmp_path / name, x, 0) for name, x in views.items()}, batch_size=32)
    label_file(model, reader, tmp_path / "labels.npy")
    np.testing.assert_array_equal(np.load(tmp_path / "labels.npy"), model.labels_)
    blocks = [model.predict(block) for block in reader.filled_by(model)]
    np.testing.assert_array_equal(np.concatenate(blocks), model.labels_)
    trained = FixedSize(model, n_train=110, random_state=0).train(reader)
    assert trained.predict(views).shape == (120,)
    with pytest.raises(InputError, match="in row 0, column"):  # the reader itself has not changed
        next(iter(reader))
    filled = Preprocessed(TMvKSCR(3), {"b": "median"}).fit({"a": np.nan_to_num(views["a"]), "b": views["b"]})
    with pytest.raises(InputError, match=r"view 'a' .* contains NaN or infinity in row 0, column"):
        label_file(filled, reader, tmp_path / "labels.npy")


def test_infinity_is_refused_where_a_model_fills_empty_cells():
    x = np.ones((100, 2))
    x[3, 0], x[77, 1] = np.nan, np.inf
    reader = ViewsReader({"a": x}, batch_size=50).filled_by(Preprocessed(TMvKSCR(2), {"a": "median"}))
    with pytest.raises(InputError, match="view 'a' contains infinity in row 77, column 1, the first of 1 such rows"):
        list(reader)


@pytest.mark.parametrize(
    ("second", "message"),
    [
        ({"x": [1.0], "id": [1]}, r"1.parquet\) has no column 'y'"),
        (
            {"x": [1.0], "y": [1.0], "z": [1.0], "id": [1]},
            r"1.parquet\) has the column 'z', which .*0.parquet does not have",
        ),
        ({"x": ["one"], "y": [1.0], "id": [1]}, r"1.parquet\) has the column 'x' of type string; encode it"),
        ({"x": [1.0], "y": [1.0], "id": ["1"]}, r"1.parquet\) has the column 'id' of type string, but it is int64"),
    ],
)
def test_tables_of_a_folder_must_have_the_same_columns(tmp_path, second, message):
    parquet.write_table(pa.table({"x": [1.0], "y": [1.0], "id": [1]}), tmp_path / "0.parquet")
    parquet.write_table(pa.table(second), tmp_path / "1.parquet")
    with pytest.raises(InputError, match=message):
        ViewsReader({"a": tmp_path}, ids="id")


@pytest.mark.parametrize("kind", [as_npy, as_npz, as_parquet, as_arrow])
def test_sources_without_rows_are_refused(tmp_path, kind):
    with pytest.raises(InputError, match=r"view 'a' \(.*\) has no rows"):
        ViewsReader({"a": kind(tmp_path / "x", np.ones((0, 2)), 0)})


def test_unusable_sources_are_explained(tmp_path):
    np.savez(tmp_path / "two.npz", left=np.ones((2, 2)), right=np.ones((2, 2)))
    np.save(tmp_path / "words.npy", np.array([["word"]]))
    np.save(tmp_path / "objects.npy", np.array([[None]]), allow_pickle=True)
    parquet.write_table(pa.table([[1], [2]], names=["x", "x"]), tmp_path / "twice.parquet")
    (tmp_path / "x.csv").touch()
    (tmp_path / "nothing").mkdir()
    (tmp_path / "mixed").mkdir()
    as_parquet(tmp_path / "mixed" / "x", np.ones((2, 2)), 0)
    as_arrow(tmp_path / "mixed" / "x", np.ones((2, 2)), 0)
    for source, message in [
        (tmp_path / "two.npz", r"two.npz\) has 2 arrays \(left, right\), none with the name of the view"),
        (tmp_path / "words.npy", r"words.npy\) has the type <U4; expected real numbers"),
        (tmp_path / "objects.npy", r"objects.npy\) cannot be read"),
        (tmp_path / "twice.parquet", r"twice.parquet\) has two columns named 'x'; rename one"),
        (tmp_path / "x.csv", "unknown ending; expected one of .npy, .npz, .zarr, .parquet, .arrow, .feather"),
        (tmp_path / "nothing", "is a folder with no tables"),
        (tmp_path / "mixed", "is a folder with both .arrow and .parquet files"),
        (tmp_path / "absent.npy", "does not exist; check the path"),
        (np.ones(3), "view 'a' is 1-D; a view is 2-D"),
        (np.ma.masked_equal([[1, 2]], 2), "impute the masked values"),
        ([[1.0]], "view 'a' is a list; expected a path or a NumPy array"),
    ]:
        with pytest.raises(InputError, match=message):
            ViewsReader({"a": source})
    with pytest.raises(InputError, match="expected a mapping"):
        ViewsReader([np.ones((2, 2))])
    with pytest.raises(InputError, match="two views have the same name among 1, 1; rename one"):
        ViewsReader({1: np.ones((2, 2)), "1": np.ones((2, 2))})
    with pytest.raises(InputError, match="there are no sources"):
        ViewsReader({})
    for batch_size in (0, 1.5, "large", True):
        with pytest.raises(InputError, match=f"batch_size={batch_size!r}: expected an integer of at least 1"):
            ViewsReader({"a": np.ones((2, 2))}, batch_size=batch_size)


@pytest.mark.parametrize("rows", [[], [[0]], [0.0], [True], [1, 0], [1, 1], [-1], [5]])
def test_rows_that_are_not_increasing_numbers_are_refused(rows):
    with pytest.raises(InputError, match=r"rows.*: expected"):
        ViewsReader({"a": np.ones((5, 2))}).take(rows)


def test_labels_that_cannot_be_written_are_refused(tmp_path):
    class Words:
        def predict(self, views):
            return np.array(["word"] * views.n_samples)

    source = as_npy(tmp_path / "x", np.ones((2, 1)), 0)
    reader, mapped = ViewsReader({"a": source}), ViewsReader({"a": np.load(source, mmap_mode="r")[1:]})
    for model, given, path, message in [
        (object(), reader, "labels.npy", "object has no predict"),
        (ByFirstColumn(), {"a": source}, "labels.npy", "reader is a dict; expected a ViewsReader"),
        (
            ByFirstColumn(),
            reader,
            "labels.xml",
            "unknown ending for labels; expected one of .csv, .tsv, .parquet, .npy",
        ),
        (ByFirstColumn(), reader, "absent/labels.npy", "its folder must exist"),
        (ByFirstColumn(), reader, "x.npy", "is one of the sources"),
        (ByFirstColumn(), mapped, "x.npy", "is one of the sources"),
        (Words(), reader, "labels.npy", r"Words.predict returned <U4 of shape \(2,\) for 2 rows"),
    ]:
        with pytest.raises(InputError, match=message):
            label_file(model, given, tmp_path / path)
    parquet.write_table(pa.table({"x": [1.0], "cluster": [1]}), tmp_path / "y.parquet")
    with pytest.raises(InputError, match="'cluster' is the name of a column of labels"):
        label_file(ByFirstColumn(), ViewsReader({"a": tmp_path / "y.parquet"}, ids="cluster"), tmp_path / "z.parquet")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["x.npy", "y.parquet"]


def test_a_missing_pyarrow_names_the_extra(tmp_path, monkeypatch):
    path = as_parquet(tmp_path / "x", np.ones((2, 1)), 0)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(ImportError, match=r'pip install "coview\[io\]"'):
        ViewsReader({"a": path})
    with pytest.raises(ImportError, match=r'pip install "coview\[io\]"'):
        label_file(ByFirstColumn(), ViewsReader({"a": np.ones((2, 1))}), tmp_path / "labels.parquet")
