"""Folders of results that are either complete or unchanged."""

import os

import pytest

from coview import InputError
from coview.cli.folder import check_folder, complete_folder

FILES = ("model", "labels")


def half_written(path, stop):
    with complete_folder(path, FILES) as folder:
        (folder / "labels").write_text("half")
        raise stop


def test_a_new_folder_appears_when_it_is_complete(tmp_path):
    with complete_folder(tmp_path / "deep" / "run", FILES) as folder:
        (folder / "labels").write_text("new")
        assert not (tmp_path / "deep" / "run").exists()
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["run"]
    assert (tmp_path / "deep" / "run" / "labels").read_text() == "new"


@pytest.mark.parametrize("stop", [ValueError, KeyboardInterrupt])
def test_a_run_that_stops_leaves_nothing(tmp_path, stop):
    with pytest.raises(stop):
        half_written(tmp_path / "run", stop)
    assert list(tmp_path.iterdir()) == []


def test_a_run_that_stops_keeps_existing_files(tmp_path):
    (tmp_path / "labels").write_text("old")
    with pytest.raises(KeyboardInterrupt):
        half_written(tmp_path, KeyboardInterrupt)
    assert (tmp_path / "labels").read_text() == "old"


def test_two_runs_are_not_mixed_and_other_files_stay(tmp_path):
    run = tmp_path / "run"
    run.mkdir()
    for name in (*FILES, "notes"):
        (run / name).write_text("old")
    with complete_folder(run, FILES) as folder:
        (folder / "labels").write_text("new")
    assert {path.name: path.read_text() for path in run.iterdir()} == {"labels": "new", "notes": "old"}
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def snapshots(run, monkeypatch, fail_at=None):
    """Replace old files by new ones, and return the contents of the folder before every move."""
    seen, move = [], os.replace

    def watched(source, target):
        seen.append({path.read_text() for path in run.iterdir() if path.name in FILES})
        if len(seen) == fail_at:
            raise KeyboardInterrupt
        move(source, target)

    monkeypatch.setattr(os, "replace", watched)
    with complete_folder(run, FILES) as folder:
        for name in FILES:
            (folder / name).write_text("new")
    return seen


def test_the_folder_never_has_files_of_two_runs(tmp_path, monkeypatch):
    for name in FILES:
        (tmp_path / name).write_text("old")
    seen = snapshots(tmp_path, monkeypatch)
    assert seen == [{"old"}, {"old"}, set(), {"new"}]
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == dict.fromkeys(FILES, "new")


@pytest.mark.parametrize("fail_at", [1, 2, 3, 4])
def test_a_move_that_fails_restores_the_old_files(tmp_path, monkeypatch, fail_at):
    for name in (*FILES, "notes"):
        (tmp_path / name).write_text("old")
    with pytest.raises(KeyboardInterrupt):
        snapshots(tmp_path, monkeypatch, fail_at)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == dict.fromkeys((*FILES, "notes"), "old")


def test_nothing_is_written_beside_an_existing_folder(tmp_path):
    run = tmp_path / "run"
    run.mkdir()
    (tmp_path / "link").symlink_to(run)
    with complete_folder(tmp_path / "link", FILES) as folder:
        (folder / "labels").write_text("new")
        assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "run"]
    assert [path.name for path in run.iterdir()] == ["labels"]


def test_a_folder_that_another_run_made_meanwhile_is_unchanged(tmp_path):
    def late():
        with complete_folder(tmp_path / "run", FILES) as folder:
            (folder / "labels").write_text("late")
            (tmp_path / "run").mkdir()
            (tmp_path / "run" / "labels").write_text("first")

    with pytest.raises(OSError, match="not empty"):
        late()
    assert [path.read_text() for path in (tmp_path / "run").iterdir()] == ["first"]


def test_a_relative_folder_is_made_where_the_command_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    check_folder(type(tmp_path)("run"), FILES, force=False)
    with complete_folder(type(tmp_path)("run"), FILES) as folder:
        (folder / "labels").write_text("new")
    assert (tmp_path / "run" / "labels").read_text() == "new"


def test_earlier_results_are_kept_without_force(tmp_path):
    check_folder(tmp_path, FILES, force=False)
    (tmp_path / "model").write_text("old")
    with pytest.raises(
        InputError, match=r"has results of an earlier run \(model\); name another folder, or add --force"
    ):
        check_folder(tmp_path, FILES, force=False)
    check_folder(tmp_path, FILES, force=True)


def test_folders_that_cannot_be_made_are_refused(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    for folder in (tmp_path / "file", tmp_path / "file" / "run"):
        with pytest.raises(InputError, match=r"cannot make the folder .*file is a file"):
            check_folder(folder, FILES, force=True)
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(InputError, match="no permission to write in"):
        check_folder(tmp_path / "run", FILES, force=True)
