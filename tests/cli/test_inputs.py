"""Ids of samples and known classes: nothing is paired wrongly without a word."""

import json
import os
from pathlib import Path

import numpy as np
import pytest

from coview.io import read_labels
from tests.cli.running import call, refused
from tests.conftest import make_blobs

BY_ORDER = "paired by row order"
CELLS = [f"cell{i:02}" for i in range(60)]


def write_table(path, **columns):
    rows = zip(*columns.values(), strict=True)
    path.write_text("\n".join([",".join(columns), *(",".join(map(str, row)) for row in rows)]) + "\n")


def columns_of(name, x):
    return {f"{name}{j}": column for j, column in enumerate(x.T)}


@pytest.fixture
def patients(tmp_path, monkeypatch):
    """Two tables with numeric ids in different orders, and the classes in a third order."""
    monkeypatch.chdir(tmp_path)
    views, truth = make_blobs(60)
    rng = np.random.default_rng(1)
    ids = rng.permutation(np.arange(1, 61))
    other, third = rng.permutation(60), rng.permutation(60)
    write_table(tmp_path / "a.csv", patient_id=ids, **columns_of("a", views["a"]))
    write_table(tmp_path / "b.csv", patient_id=ids[other], **columns_of("b", views["b"][other]))
    write_table(tmp_path / "truth.csv", patient=ids[third], site=[1] * 60, subtype=truth[third])
    return ["--view=a=a.csv", "--view=b=b.csv", "--truth=truth.csv::subtype", "-k3", "--no-report", "--json"]


def test_numeric_ids_are_refused_and_both_ways_are_offered(patients, capsys):
    for typed in (["fit", *patients], ["compare", *(p for p in patients if p != "--no-report")]):
        err = refused(capsys, *typed)
        assert "view 'a' (a.csv) has the column 'patient_id', which looks like ids of the samples" in err
        assert "align the samples by it (--ids patient_id), or pair them by row order" in err
        assert err.endswith("(--no-ids)\n")
    code, out, _ = call(capsys, "fit", *patients, "--ids=patient_id", "-o", "run")
    assert code == 0
    answer = json.loads(out)
    assert answer["truth"]["ari"] == 1  # the column of the truth has another name, and the same ids
    assert answer["notes"] == []
    code, out, _ = call(capsys, "fit", *patients, "--no-ids", "-o", "wrong")
    assert code == 0
    answer = json.loads(out)
    assert answer["truth"]["ari"] < 0.2
    assert [note for note in answer["notes"] if BY_ORDER in note] == [
        "the samples of all views are paired by row order",
        "file of known classes (truth.csv): classes and samples are paired by row order",
    ]
    assert answer["notes"][:2] == json.loads(Path("wrong/summary.json").read_text())["notes"][:2]
    assert "exclude each other" in refused(capsys, "fit", *patients, "--no-ids", "--ids=patient_id")


def test_new_samples_with_ids_are_not_paired_by_row(patients, capsys):
    assert call(capsys, "fit", *patients, "--ids=patient_id", "-o", "run")[0] == 0
    err = refused(capsys, "predict", "run", *patients[:2], "-o", "labels.csv")
    assert "(--ids patient_id)" in err
    assert call(capsys, "predict", "run", *patients[:2], "--ids=patient_id", "-o", "labels.csv", "-q")[0] == 0
    order = [line.split(",")[0] for line in Path("a.csv").read_text().splitlines()[1:]]
    found = [read_labels(path, ids="patient_id", order=order) for path in ("labels.csv", "run/labels.csv")]
    assert found[0] == found[1]


def test_a_model_with_an_id_as_a_feature_is_used_as_trained(patients, capsys):
    assert call(capsys, "fit", *patients, "--no-ids", "-o", "run")[0] == 0
    code, _, err = call(capsys, "predict", "run", *patients[:2], "-o", "labels.csv")
    assert (code, err) == (0, "Note: the samples of all views are paired by row order\n")


@pytest.fixture
def modalities(tmp_path, monkeypatch):
    """A MuData file whose modalities have the same cells in different orders, and classes by cell."""
    h5py = pytest.importorskip("h5py", reason="HDF5 needs h5py: pip install 'coview[scverse]'")
    monkeypatch.chdir(tmp_path)
    views, truth = make_blobs(60)
    other, third = (np.random.default_rng(seed).permutation(60) for seed in (1, 2))
    with h5py.File("full.h5mu", "w") as file:
        for name, x, order in (("rna", views["a"], np.arange(60)), ("adt", views["b"], other)):
            group = file.create_group(f"mod/{name}")
            group["X"] = x[order]
            names = group.create_group("obs")
            names.attrs["_index"] = "names"
            names.create_dataset("names", data=[CELLS[i] for i in order], dtype=h5py.string_dtype())
    write_table(tmp_path / "truth.csv", cell=[CELLS[i] for i in third], subtype=truth[third])
    return ["--view=rna=full.h5mu::rna", "--view=adt=full.h5mu::adt", "-k3", "--no-report", "--json"]


@pytest.mark.parametrize("column", ["", "::subtype"])
def test_cells_of_modalities_and_classes_are_paired_by_name(modalities, capsys, column):
    code, out, err = call(capsys, "fit", *modalities, f"--truth=truth.csv{column}", "-o", "run")
    assert (code, err) == (0, "")
    answer = json.loads(out)
    assert (answer["truth"]["ari"], answer["notes"]) == (1, [])
    assert (
        Path("run/labels.csv")
        .read_text()
        .startswith("sample,cluster,membership,second_cluster,novelty,best_view,stability\ncell00,")
    )


def test_classes_without_names_are_paired_by_row_order_with_a_note(modalities, capsys):
    np.save("truth.npy", np.arange(60) % 3)
    code, out, _ = call(capsys, "fit", *modalities, "--truth=truth.npy", "-o", "run")
    note = "file of known classes (truth.npy): classes and samples are paired by row order"
    assert (code, json.loads(out)["notes"]) == (0, [note])
    assert note in json.loads(Path("run/summary.json").read_text())["notes"]
    code, out, _ = call(
        capsys, "compare", *(m for m in modalities if "report" not in m), "--truth=truth.npy", "--methods=opmc"
    )
    assert note in json.loads(out)["notes"]


# Messages


def test_labels_are_refused_in_a_folder_without_permission(data, fitted, tmp_path, capsys, monkeypatch):
    """The superuser may write everywhere, so the answer of the system is replaced."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "closed").mkdir()
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path).name != "closed")
    err = refused(capsys, "predict", fitted, *data["new_files"], "--ids=id", "-o", "closed/labels.csv")
    assert err == f"Error: closed/labels.csv cannot be written: no permission to write in {tmp_path / 'closed'}\n"


def test_a_file_that_cannot_be_written_has_its_own_name_in_the_message(data, fitted, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    opened = Path.open

    def full(path, mode="r", *others, **options):
        if "x" in mode:
            raise OSError(28, "No space left on device", str(path))
        return opened(path, mode, *others, **options)

    monkeypatch.setattr(Path, "open", full)
    err = refused(capsys, "predict", fitted, *data["new_files"], "--ids=id", "-o", "labels.csv", code=1)
    assert err == "Error: labels.csv: No space left on device\n"


@pytest.mark.parametrize(
    ("raised", "message"),
    [
        (None, r"; train on some of them, as in --method tmvkscr --n-train 5000, or use --kernel auto"),
        (
            MemoryError("Unable to allocate 126. GiB"),
            r"Unable to allocate 126. GiB; train on some of the samples, as in",
        ),
        (MemoryError(), "there is too little memory; train on some of the samples, as in --n-train 5000, or use"),
    ],
)
def test_too_little_memory_names_the_options_that_need_less(data, tmp_path, capsys, monkeypatch, raised, message):
    monkeypatch.chdir(tmp_path)

    def fail(*_):
        raise raised

    if raised is None:
        monkeypatch.setattr("coview.methods.kernel_method.KernelMethod.bytes_to_fit", lambda *_: 2**60)
    else:
        monkeypatch.setattr("coview.methods.kernel_method.require_memory", fail)
    command = ["fit", *data["train_files"], "--ids=id", "-k3", "--method=tmvkscr", "--kernel=rbf", "-o", "run"]
    err = refused(capsys, *command, code=1)
    assert message in err
    assert "MemoryError" not in err
    assert "dtype" not in err


@pytest.mark.parametrize("address", ["https://example.org/x.csv", "s3://bucket/x.parquet", "file:///x.npy"])
def test_addresses_are_recognised(address, fitted, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said = f"({address}) is a URL, which is not read; download the file and give its path"
    assert f"Error: view 'a' {said}" in refused(capsys, "fit", f"--view=a={address}", "-k3")
    assert f"Error: file {said}" in refused(capsys, "info", address)
    np.save("a.npy", np.ones((4, 2)))
    truth = f"--truth={address}"
    assert f"file of known classes {said}" in refused(capsys, "fit", "--view=a=a.npy", "-k2", truth)


def test_all_missing_values_are_counted(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    x = np.random.default_rng(0).normal(size=(20, 4))
    x[[3, 3, 7], [1, 2, 1]] = np.nan
    np.save("a.npy", x)
    assert refused(capsys, "fit", "--view=a=a.npy", "-k2") == (
        "Error: view 'a' (a.npy) has no value in 3 cells (2 of 20 rows, 2 of 4 columns; first: row 3, column '1'); "
        "impute them (--impute median), or drop those samples or columns\n"
    )


def test_empty_cells_and_further_ids_name_the_options_that_help(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    x = np.random.default_rng(0).normal(size=(20, 2))
    lines = [f"s{i},{i},{u},{v}\n" for i, (u, v) in enumerate(x)]
    Path("a.csv").write_text("".join(["id,Unnamed: 0,u,v\n", *lines]))
    Path("b.csv").write_text("".join(["id,Unnamed: 0,u,v\n", *lines[:-1], "s19,19,1,\n"]))
    for command in ("fit", "compare"):
        message = refused(capsys, command, "--view=b=b.csv", "--ids=id", "-k2")
        assert message == (
            "Error: view 'b' (b.csv) has no value in row 19, column 'v'; impute it (--impute median), or drop that "
            "sample or column (--drop COLUMN)\n"
        )
    code, _, err = call(capsys, "fit", "--view=a=a.csv", "--ids=id", "-k2", "--no-report", "-o", "run")
    assert code == 0
    assert "it numbers the rows); drop it (--drop COLUMN), unless it is a feature" in " ".join(err.split())
    # The model needs its columns.
    message = refused(capsys, "predict", "run", "--view=a=b.csv", "--ids=id", "-o", "labels.csv")
    assert message == "Error: view 'a' (b.csv) has no value in row 19, column 'v'; impute it, or drop that sample\n"


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        (["fit", "-k3", "--seed=x"], "--seed x: expected an integer of at least 0"),
        (["fit", "-k3", "--seed=-1"], "--seed -1: expected an integer of at least 0"),
        (["compare", "-kx"], "-k x: expected an integer of at least 2"),
        (["compare", "-k3", "--seed=1.5"], "--seed 1.5: expected an integer of at least 0"),
    ],
)
def test_numbers_are_expected_in_the_words_of_the_command(typed, message, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert refused(capsys, *typed, "--view=a=a.npy") == f"Error: {message}\n"
