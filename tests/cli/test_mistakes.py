"""Bad files and mistyped commands: one line, exit code 2, nothing written."""

import numpy as np
import pytest

from coview import TMvKSCR
from coview.cli.terminal import in_options
from coview.persist import save
from tests.bad_files import BAD_FILES
from tests.cli.running import refused


@pytest.fixture(scope="module")
def small_model(tmp_path_factory):
    """A model of the views of the bad files."""
    folder = tmp_path_factory.mktemp("small")
    rng = np.random.default_rng(0)
    views = {name: rng.normal(size=(12, 2)) for name in ("good", "bad")}
    save(TMvKSCR(2, random_state=0).fit(views), folder / "model.safetensors")
    return folder


@pytest.mark.parametrize("name", BAD_FILES)
def test_bad_files_give_one_line_that_names_file_and_view(name, small_model, tmp_path, capsys, monkeypatch):
    case = BAD_FILES[name]
    if case.needs is not None:
        pytest.importorskip(case.needs)
    monkeypatch.chdir(tmp_path)
    sources = case.sources(tmp_path)
    views = [f"--view={view}={file}" for view, file in sources.items()]
    choices = [f"--{option}={value}" for option, value in case.options.items()]
    path = sources["bad"].partition("::")[0]
    err = refused(capsys, "fit", *views, *choices, "-k2", "-o", "run")
    for words in (f"view 'bad' ({path})", *map(in_options, case.words)):
        assert words in err
    for most in (2**29, 0):  # read whole, and in blocks if the format allows it
        monkeypatch.setattr("coview.cli.predict._IN_MEMORY", most)
        err = refused(capsys, "predict", small_model, *views, *choices, "-o", "labels.csv")
        assert f"view 'bad' ({path})" in err


def test_mistakes_give_one_line(data, fitted, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    files, new = data["train_files"], data["new_files"]
    (tmp_path / "file").write_text("in the way")
    (tmp_path / "old.csv").write_text("old")
    (tmp_path / "short.csv").write_text("kind\na\nb\n")
    np.save(tmp_path / "own.npy", data["new"]["b"])
    np.save(tmp_path / "wide.npy", np.ones((30, 7)))
    for typed, sentence in [
        (["dmo"], "No such command 'dmo'"),
        (["dmo"], "demo"),
        (["fit"], "Missing option '--view'"),
        (["fit", *files, "--kernal=rbf", "-k3"], "--kernel"),
        (["fit", *files, "-k", "three"], "-k"),
        (["fit", *files, "-k", "3..x"], "-k 3..x: expected an integer of at least 2, a range such as 2..8, or auto"),
        (["fit", *files, "--ids=id", "-k", "80..95"], "n_samples=90 is too few for -k 95"),
        (["fit", *files, "-m", "tmvkscr"], "the method tmvkscr needs one number of clusters, as in -k 6"),
        (["fit", *files, "-m", "tmvkscr", "-k", "auto"], "the method tmvkscr needs one number of clusters, as in -k 6"),
        (["fit", *files, "-m", "opmc", "-k", "2..4"], "the method opmc needs one number of clusters, as in -k 6"),
        (["fit", *files, "--select=kmeans"], "give their number with --n-train"),
        (["fit", *files, "-k3", "--method=tmvksrc"], "did you mean 'tmvkscr'?"),
        (["fit", *files, "-k3", "--labels-format=xml"], "--labels-format 'xml' is unknown"),
        (["fit", *files, "-k3", "--align=iner", "--ids=id"], "--align 'iner' is unknown; did you mean 'inner'?"),
        (
            ["fit", *files, "-k3", "--align=inner"],
            "--align inner matches samples by their ids; name the column of the ids (--ids COLUMN)",
        ),
        (["fit", *files, "-k3", "-m", "tmvkscr", "--rho=x"], "--rho x: expected a number, got 'x'"),
        (
            ["fit", *files, "-k3", "--ids=idd"],
            "no column 'idd' of ids; did you mean 'id'? It has the 5 columns 'id', 'a0'",
        ),
        (["fit", *files, "-k3", "--categories=1hot"], "did you mean 'onehot'?"),
        (["fit", *files, "-k3", "--ids=cluster"], "rename the column of the ids"),
        (["fit", *files, "-k3", "--ids=id", "--truth=short.csv"], "short.csv"),
        (["fit", *files, "-k3", "--ids=id", "--truth=no.csv"], "file of known classes (no.csv) does not exist; check"),
        (["fit", *files, "-k3", "-o", "file/run"], "cannot make the folder file/run: "),
        (["fit", "--view=b=own.npy", "-k3", "--truth=short.csv"], "short.csv has 2 classes (--truth) for 30 samples"),
        (["fit", *files, "-k3", "--kernel=rbf"], "add --method tmvkscr to use --kernel"),
        (["report", fitted, "--force"], "coview report replaces the report without it; leave it out"),
        (["demo", "-o", "file"], "cannot make the folder file"),
        (["compare", *files, "-k3", "--methods=tmvkscr,opcm"], "--methods 'opcm' is unknown; did you mean 'opmc'?"),
        (["compare", *files, "-k3", "--methods="], "--methods '' is unknown. Known: all, coview, tmvkscr"),
        (["compare", *files, "-k3", "--preprocess=max"], "--preprocess 'max' is unknown"),
        (["compare", *files, "-k3", "--preprocess=bb=l2"], "--preprocess names the view 'bb'; did you mean 'b'?"),
        (["fit", *files, "-k3", "-m", "tmvkscr", "--preprocess=b=tfidf+max"], "--preprocess 'max' is unknown"),
        (["fit", *files, "-k3", "--ids=id", "-m", "tmvkscr", "--preprocess=b=tfidf"], "view 'b' has the value "),
        (["compare", *files, "-k91", "--ids=id"], "-k 91: expected"),
        (["compare", *files, "-k1"], "-k"),
        (["fit", *files, "-k1"], "-k"),
        (["predict", "missing", *new], "missing"),
        (
            ["predict", fitted, *new[:1], "--view=b=wide.npy", new[2], "--ids=id"],
            "view 'b' (wide.npy) has 7 columns, but the model was trained on 6; give the file with the columns of the",
        ),
        (["predict", fitted, *new[:2], "--view=cc=x.csv"], "no view 'cc'"),
        (["predict", fitted, *new, "-o", "labels.xml"], "labels.xml has an unknown ending"),
        (["predict", fitted, *new, "-o", "no/labels.csv"], "its folder must exist"),
        (["predict", fitted, *new, "-o", "old.csv"], "old.csv exists; name another file, or replace it with --force"),
        (["predict", fitted, *new[:1], "--view=b=own.npy", new[2], "-o", "own.npy", "--force"], "the view 'b'"),
        (["info", "missing.csv"], "missing.csv"),
        (["info", "missing.safetensors"], "missing.safetensors"),
    ]:
        assert sentence in refused(capsys, *typed), typed


@pytest.mark.parametrize("command", [["fit"], ["compare", "-k2"]])
def test_an_empty_name_of_the_output_is_refused(command, data, tmp_path, capsys, monkeypatch):
    """As from an unset variable of the shell; it would be the current folder."""
    monkeypatch.chdir(tmp_path)
    assert "the name is empty; name a folder" in refused(capsys, *command, *data["train_files"], "-o", "")
