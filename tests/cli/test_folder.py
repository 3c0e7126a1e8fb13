"""Folders of results that are either complete or unchanged."""

import errno
import os
import shutil
import threading
import time

import pytest

from coview import InputError
from coview.base import atomic
from coview.cli import folder as module
from coview.cli.folder import claimed_files, claimed_folder

FILES = ("model", "labels", "map")


def write(path, text="new", files=FILES, *, force=True, during=lambda: None):
    """Replace the results of a run."""
    with claimed_folder(path, FILES, force=force) as folder:
        for name in files:
            (folder / name).write_text(text)
        during()


def old_run(path, files=("model", "labels"), others=("notes",)):
    path.mkdir(exist_ok=True)
    for name in (*files, *others):
        (path / name).write_text("old")
    (path / "figures").mkdir()
    (path / "figures" / "labels").write_text("old")


def contents(path):
    """The readable files of a folder, also through links."""
    return {child.name: child.read_text() for child in path.iterdir() if child.is_file()}


def stop(error=KeyboardInterrupt):
    raise error


def test_a_new_folder_appears_when_it_is_complete(tmp_path):
    run = tmp_path / "deep" / "run"
    write(run, during=lambda: run.exists() and stop())
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["run"]
    assert contents(run) == dict.fromkeys(FILES, "new")


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_a_run_that_stops_leaves_nothing(tmp_path, error):
    with pytest.raises(error):
        write(tmp_path / "deep" / "run", during=lambda: stop(error))
    assert list(tmp_path.iterdir()) == []


def test_a_run_that_stops_keeps_existing_files(tmp_path):
    old_run(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        write(tmp_path, during=stop)
    assert contents(tmp_path) == dict.fromkeys(("model", "labels", "notes"), "old")


def test_two_runs_are_not_mixed_and_other_files_stay(tmp_path):
    run = tmp_path / "run"
    old_run(run)
    write(run, files=("labels", "map"))
    assert contents(run) == {"labels": "new", "map": "new", "notes": "old"}
    assert contents(run / "figures") == {"labels": "old"}
    assert not any(path.is_symlink() for path in run.iterdir())
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


class Killed(BaseException):
    """Stands for SIGKILL: no code that cleans up may run."""


CHANGES = ("link", "symlink", "rename", "replace", "mkdir", "unlink", "rmdir")


def killed_at(run, monkeypatch, moment, command=lambda run: write(run, files=("labels", "map"))):
    """Run a command and stop before a change of the file system, for good; return whether there was such a change."""
    count = 0

    def watched(change):
        def call(*given, **named):
            nonlocal count
            count += 1
            if count >= moment:
                raise Killed
            return change(*given, **named)

        return call

    with monkeypatch.context() as patch:
        for name in CHANGES:
            patch.setattr(os, name, watched(getattr(os, name)))
        patch.setattr(shutil, "rmtree", watched(shutil.rmtree))
        try:
            command(run)
        except Killed:
            return True
    return False


@pytest.mark.parametrize("link", [True, False], ids=["with links", "without hard links"])
def test_a_kill_at_any_moment_leaves_all_of_one_run(tmp_path, monkeypatch, link):
    """`moment` counts the changes of the file system; no file of the old run may stand beside one of the new run."""
    if not link:
        monkeypatch.setattr(os, "link", lambda *_: stop(OSError))
    old = {"model": "old", "labels": "old", "notes": "old"}
    new = {"labels": "new", "map": "new", "notes": "old"}
    seen = []
    for moment in range(1, 100):
        run = tmp_path / str(moment)
        old_run(run)
        killed = killed_at(run, monkeypatch, moment)
        found = contents(run)
        assert found in (old, new), moment
        seen.append(found == new)
        if not killed:
            break
        # The next run takes over, whether it replaces the results or not.
        with pytest.raises(InputError, match="has results of an earlier run"):
            write(run, "newer", force=False)
        assert contents(run) == found
        assert not any(path.is_symlink() or path.name.startswith(".") for path in run.iterdir())
        write(run, "newer")
        assert contents(run) == {**dict.fromkeys(FILES, "newer"), "notes": "old"}
    assert 15 < len(seen) < 99
    assert seen == sorted(seen)
    assert {*seen} == {True, False}


def test_without_symbolic_links_the_next_run_finishes_the_move(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "symlink", lambda *_: stop(OSError(errno.EPERM, "Operation not permitted")))
    new = {"labels": "new", "map": "new", "notes": "old"}
    results = []
    for moment in range(1, 100):
        run = tmp_path / str(moment)
        old_run(run)
        if not killed_at(run, monkeypatch, moment):
            break
        with pytest.raises(InputError, match="has results of an earlier run"):
            write(run, "newer", force=False)
        results.append(contents(run) == new)
        assert results[-1] or contents(run) == {"model": "old", "labels": "old", "notes": "old"}
    assert results == sorted(results)
    assert {*results} == {True, False}
    assert contents(run) == new


def test_a_run_that_was_killed_while_it_removed_its_own_folder_is_finished(tmp_path):
    """Without symbolic links; which folder is removed first depends on the system and on the version of Python."""
    run = tmp_path / "run"
    old_run(run)
    left = run / ".run.coview"
    (left / "now").mkdir(parents=True)
    write(run)
    assert contents(run) == {**dict.fromkeys(FILES, "new"), "notes": "old"}
    assert not left.exists()


def test_what_a_killed_run_left_beside_its_folder_is_removed(tmp_path, monkeypatch):
    run, left = tmp_path / "run", tmp_path / ".run.coview"
    for exists in (False, True):
        (left / "new").mkdir(parents=True)
        (left / "new" / "labels").write_text("half")
        if exists:
            old_run(run)
        write(run)
        assert contents(run).items() >= dict.fromkeys(FILES, "new").items()
        assert not left.exists()
        shutil.rmtree(run)


def test_what_killed_runs_left_in_the_same_place_is_removed(tmp_path):
    """Of runs with other names, and of runs inside the folder, but not of active runs, nor what others have made."""
    run = tmp_path / "run"
    old_run(run)
    for left in (tmp_path / ".other.coview", run / ".labels.csv.coview"):
        (left / "new").mkdir(parents=True)
        (left / "new" / "labels").write_text("half")
    (tmp_path / ".mine.coview").mkdir()
    (tmp_path / ".mine.coview" / "notes").write_text("old")
    write(tmp_path / "active", during=lambda: write(run))
    assert sorted(path.name for path in tmp_path.iterdir()) == [".mine.coview", "active", "run"]
    assert contents(run) == {**dict.fromkeys(FILES, "new"), "notes": "old"}
    assert contents(tmp_path / ".mine.coview") == {"notes": "old"}
    assert contents(tmp_path / "active") == dict.fromkeys(FILES, "new")
    assert not any(path.name.startswith(".") for path in run.iterdir())


@pytest.mark.parametrize("name", [".other.csv.coview", ".labels.csv.coview"], ids=["another claim", "its own claim"])
@pytest.mark.parametrize("now", ["../../private", "new", "old"])
def test_a_forged_claim_moves_no_files_from_elsewhere(tmp_path, name, now):
    data, private = tmp_path / "data", tmp_path / "private"
    (data / name).mkdir(parents=True)
    private.mkdir()
    (private / "key").write_text("secret")
    (data / name / "now").symlink_to(now)
    if now in ("new", "old"):
        (data / name / now).symlink_to("../../private")
    (data / "key").symlink_to(f"{name}/now/key")
    write_files(data / "labels.csv")
    assert contents(private) == {"key": "secret"}
    assert contents(data) == {"labels.csv": "new"}
    assert not (data / name).exists()


@pytest.mark.parametrize("name", [".other.csv.coview", ".labels.csv.coview"], ids=["another claim", "its own claim"])
@pytest.mark.parametrize("next_one", [True, False])
def test_a_forged_claim_removes_and_replaces_no_files(tmp_path, name, next_one):
    for part in ("now", "old", *(["next"] if next_one else [])):
        (tmp_path / name / part).mkdir(parents=True)
    for file in ("old/important.csv", "now/other.csv"):
        (tmp_path / name / file).write_text("forged")
    for file in ("important.csv", "other.csv"):
        (tmp_path / file).write_text("mine")
    write_files(tmp_path / "labels.csv")
    assert contents(tmp_path) == {"important.csv": "mine", "other.csv": "mine", "labels.csv": "new"}
    assert not (tmp_path / name).exists()


@pytest.mark.parametrize("now", ["old", "new"])
def test_a_forged_claim_replaces_only_its_own_links(tmp_path, now):
    left = tmp_path / ".other.csv.coview"
    for part in ("old", "new"):
        (left / part).mkdir(parents=True)
        (left / part / "important.csv").write_text("forged")
    (left / "now").symlink_to(now)
    (tmp_path / "important.csv").write_text("mine")
    write_files(tmp_path / "labels.csv")
    assert contents(tmp_path) == {"important.csv": "mine", "labels.csv": "new"}


@pytest.mark.parametrize("foreign", ["another user", "other files"])
def test_a_claim_that_no_run_of_this_user_has_made_is_refused_and_kept(tmp_path, monkeypatch, foreign):
    left = tmp_path / ".labels.csv.coview"
    (left / "new").mkdir(parents=True)
    if foreign == "another user":
        monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    else:
        (left / "notes").write_text("mine")
    with pytest.raises(InputError, match=r"or delete .*\.labels\.csv\.coview if no run is active"):
        write_files(tmp_path / "labels.csv")
    assert (left / "new").is_dir()
    assert (left / "notes").exists() == (foreign == "other files")


def write_files(*files, text="new", force=True, during=lambda: None):
    with claimed_files(files, force=force) as places:
        for place in places:
            place.write_text(text)
        during()


@pytest.mark.parametrize("old", ["old", None])
@pytest.mark.parametrize("where", ["one folder", "relative and absolute", "through a link", "two folders"])
def test_a_kill_at_any_moment_leaves_files_of_one_run(tmp_path, monkeypatch, old, where):
    """In two folders, the second file may be absent, but is never that of another run."""
    seen, apart = [], where == "two folders"
    for moment in range(1, 100):
        run = tmp_path / str(moment)
        labels, report = run / "labels.csv", run / ("reports" if apart else "") / "new.html"
        report.parent.mkdir(parents=True)
        for file in (labels, report) if old else ():
            file.write_text(old)
        typed = [labels, report]
        if where == "relative and absolute":
            monkeypatch.chdir(run)
            typed[0] = type(labels)("labels.csv")
        elif where == "through a link":
            link = tmp_path / f"link-{moment}"
            link.symlink_to(run)
            typed[1] = link / "new.html"

        def command(_, files=tuple(typed)):
            write_files(*files)

        killed = killed_at(run, monkeypatch, moment, command)
        found = tuple(file.read_text() if file.exists() else None for file in (labels, report))
        seen.append(found)
        if not killed:
            break
        write_files(labels.with_name("other.csv"), report.with_name("other.html"))
        assert tuple(file.read_text() if file.exists() else None for file in (labels, report)) == found
        assert not any(path.is_symlink() or path.name.startswith(".") for path in run.rglob("*"))
    whole = [(old, old), ("new", "new")]
    assert (seen[0], seen[-1]) == (*whole,)
    assert {*seen} <= {*whole, *([(old, None), ("new", None)] if apart else [])}


@pytest.mark.parametrize("name", ["mkdir", "link", "symlink", "replace"])
def test_an_error_while_files_of_two_folders_get_their_names_changes_none(tmp_path, monkeypatch, name):
    """A full disk in the folder of the labels, once all files are written."""
    folder, labels, report = tmp_path / "labels", tmp_path / "labels" / "labels.csv", tmp_path / "reports" / "new.html"
    for file in (labels, report):
        file.parent.mkdir()
        file.write_text("old")
    change = getattr(os, name)

    def full(*given, **named):
        if str(folder) in str(given[1 if name != "mkdir" else 0]):
            raise OSError(errno.ENOSPC, "No space left on device", *given[:1])
        return change(*given, **named)

    with monkeypatch.context() as patch:
        patch.setattr(shutil, "copy2", full)
        with pytest.raises(OSError, match="No space left"):
            write_files(labels, report, during=lambda: patch.setattr(os, name, full))
    assert not list(tmp_path.rglob(".*"))
    assert contents(labels.parent) == {"labels.csv": "old"}
    assert contents(report.parent) == {"new.html": "old"}
    with pytest.raises(InputError, match="labels was removed or replaced during the run"):
        write_files(labels, report, during=lambda: shutil.rmtree(folder))
    assert contents(report.parent) == {"new.html": "old"}


def test_files_that_appear_during_a_run_are_kept_with_all_others(tmp_path):
    labels, report = tmp_path / "labels.csv", tmp_path / "reports" / "new.html"
    report.parent.mkdir()
    with pytest.raises(InputError, match=r"new.html was written by another program meanwhile; nothing is replaced"):
        write_files(labels, report, force=False, during=lambda: report.write_text("first"))
    assert contents(report.parent) == {"new.html": "first"}
    assert [path.name for path in tmp_path.iterdir()] == ["reports"]


def test_runs_may_write_other_files_of_a_folder_at_the_same_time(tmp_path):
    def second():
        write_files(tmp_path / "b.csv")
        with pytest.raises(InputError, match=r"another run is writing to .*a.csv; wait until it ends"):
            write_files(tmp_path / "a.csv")

    write_files(tmp_path / "a.csv", during=second)
    assert contents(tmp_path) == {"a.csv": "new", "b.csv": "new"}


def test_each_file_of_a_run_is_claimed(tmp_path):
    """Otherwise labels of one run could stand beside the report of the other one."""

    def second():
        with pytest.raises(InputError, match=r"another run is writing to .*r.html; wait until it ends"):
            write_files(tmp_path / "b.csv", tmp_path / "r.html", text="second")

    write_files(tmp_path / "a.csv", tmp_path / "r.html", during=second)
    assert contents(tmp_path) == {"a.csv": "new", "r.html": "new"}
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


@pytest.mark.parametrize("left_over", [True, False], ids=["left by a killed run", "just made"])
def test_a_claim_that_another_run_locks_for_a_moment_is_waited_for(tmp_path, monkeypatch, left_over):
    """The other run, of another file in the same folder, takes it for left over."""
    place, lock = tmp_path / ".a.csv.coview", atomic.lock
    taken = []

    def slow_removal():
        with module.ExitStack() as stack:
            stack.callback(os.close, atomic.open_locked(place))
            taken.append(True)
            time.sleep(0.2)
            module._finish(place)

    def other_first(descriptor, path):
        if path == place and threading.current_thread() is threading.main_thread() and not taken:
            other.start()
            while not taken:
                time.sleep(0.01)
        return lock(descriptor, path)

    if left_over:
        (place / "new").mkdir(parents=True)
    other = threading.Thread(target=slow_removal)
    monkeypatch.setattr(atomic, "lock", other_first)
    write_files(tmp_path / "a.csv")
    other.join()
    assert contents(tmp_path) == {"a.csv": "new"}


@pytest.mark.parametrize("exists", [True, False])
@pytest.mark.parametrize("force", [True, False])
def test_a_second_run_in_the_same_folder_is_refused(tmp_path, exists, force):
    run = tmp_path / "run"
    if exists:
        run.mkdir()

    def second():
        with pytest.raises(InputError, match=r"another run is writing to .*run; wait until it ends"):
            write(run, "second", force=force)

    write(run, "first", during=second)
    assert contents(run) == dict.fromkeys(FILES, "first")


@pytest.mark.parametrize("exists", [True, False])
def test_results_that_appear_during_a_run_are_not_replaced(tmp_path, exists):
    run = tmp_path / "run"
    if exists:
        run.mkdir()

    def appear():
        run.mkdir(exist_ok=True)
        (run / "labels").write_text("first")

    with pytest.raises(InputError, match="labels was written by another program meanwhile; nothing is replaced"):
        write(run, force=False, during=appear)
    assert contents(run) == {"labels": "first"}
    assert [path.name for path in run.iterdir()] == ["labels"]


def test_a_folder_that_another_program_made_meanwhile_is_unchanged(tmp_path):
    run = tmp_path / "run"
    with pytest.raises(InputError, match="run was made by another program during the run"):
        write(run, during=lambda: old_run(run, files=()))
    assert contents(run) == {"notes": "old"}


def test_a_folder_that_is_removed_during_the_run_is_named(tmp_path):
    run = tmp_path / "run"
    run.mkdir()
    with pytest.raises(InputError, match="run was removed or replaced during the run; start it again"):
        write(run, during=lambda: shutil.rmtree(run))


@pytest.mark.parametrize("change", ["mkdir", "symlink", "replace"])
def test_a_full_disk_names_no_hidden_folder(tmp_path, monkeypatch, change):
    old_run(tmp_path)

    def full(path, *others, **named):
        other = () if change == "mkdir" else (None, os.fspath(others[0]))
        raise OSError(28, "No space left on device", os.fspath(path), *other)

    monkeypatch.setattr(os, change, full)
    with pytest.raises(OSError, match="No space left on device") as raised:
        write(tmp_path)
    assert ".coview" not in str(raised.value)
    assert str(tmp_path) in str(raised.value)


def test_systems_without_locks_have_claims_too(tmp_path, monkeypatch):
    def no_locks(*_):
        raise OSError

    monkeypatch.setattr("coview.base.atomic.lock", no_locks)
    run = tmp_path / "run"

    def second():
        with pytest.raises(InputError, match=r"or delete .*\.run\.coview if no run is active"):
            write(run)

    write(run, during=second)
    assert contents(run) == dict.fromkeys(FILES, "new")


def test_a_claim_that_ends_while_it_is_taken_is_taken_again(tmp_path, monkeypatch):
    """The first run removes its claim between the moment when the second opens it and the moment when it locks it."""
    run, claim, times = tmp_path / "run", tmp_path / ".run.coview", []

    def late(descriptor, path):
        times.append(path)
        if len(times) == 1:
            claim.rmdir()
        return lock(descriptor, path)

    lock = atomic.lock
    monkeypatch.setattr(atomic, "lock", late)
    write(run)
    assert len(times) == 2
    assert contents(run) == dict.fromkeys(FILES, "new")


def test_nothing_is_written_beside_an_existing_folder(tmp_path):
    run = tmp_path / "run"
    run.mkdir()
    (tmp_path / "link").symlink_to(run)
    beside = []
    write(tmp_path / "link", during=lambda: beside.extend(path.name for path in tmp_path.iterdir()))
    assert sorted(beside) == ["link", "run"]
    assert contents(run) == dict.fromkeys(FILES, "new")
    assert (tmp_path / "link").is_symlink()


def test_results_that_are_links_are_replaced_and_their_targets_stay(tmp_path):
    run, elsewhere = tmp_path / "run", tmp_path / "elsewhere"
    run.mkdir()
    elsewhere.write_text("old")
    (run / "labels").symlink_to("../elsewhere")
    with pytest.raises(InputError, match=r"earlier run \(labels\)"):
        write(run, force=False)
    with pytest.raises(KeyboardInterrupt):
        write(run, during=stop)
    assert contents(run) == {"labels": "old"}
    write(run)
    assert contents(run) == dict.fromkeys(FILES, "new")
    assert elsewhere.read_text() == "old"


def test_a_relative_folder_is_made_where_the_command_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(type(tmp_path)("run"), force=False)
    assert contents(tmp_path / "run") == dict.fromkeys(FILES, "new")
    (tmp_path / "run" / "deep").mkdir()
    monkeypatch.chdir(tmp_path / "run" / "deep")
    write(type(tmp_path)(".."), "newer")
    assert contents(tmp_path / "run") == dict.fromkeys(FILES, "newer")


def test_earlier_results_are_kept_without_force(tmp_path):
    (tmp_path / "model").write_text("old")
    with pytest.raises(
        InputError, match=r"has results of an earlier run \(model\); name another folder, or add --force"
    ):
        write(tmp_path, force=False)
    assert contents(tmp_path) == {"model": "old"}
    assert len(list(tmp_path.iterdir())) == 1


def test_folders_that_cannot_be_made_are_refused(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    for folder in (tmp_path / "file", tmp_path / "file" / "run"):
        with pytest.raises(InputError, match=r"cannot make the folder .*file is a file"):
            write(folder)
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(InputError, match="no permission to write in"):
        write(tmp_path / "run")


def test_a_folder_with_the_name_of_a_result_is_not_replaced(tmp_path):
    (tmp_path / "labels").mkdir()
    (tmp_path / "labels" / "mine").write_text("old")
    for force in (True, False):
        with pytest.raises(InputError, match="labels is a folder, which is not replaced; move it"):
            write(tmp_path, force=force, during=lambda: stop(AssertionError))
    assert contents(tmp_path / "labels") == {"mine": "old"}


def test_a_link_to_nothing_is_refused_before_any_work(tmp_path):
    (tmp_path / "run").symlink_to("nowhere")
    with pytest.raises(InputError, match="run is a symbolic link to nowhere, which does not exist; remove the link"):
        write(tmp_path / "run", during=lambda: stop(AssertionError))
