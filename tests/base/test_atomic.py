"""Files that are either complete or absent."""

import pytest

from coview.base import atomic
from coview.base.atomic import complete_or_absent


def write(path, content=b"new", during=lambda: None, **options):
    with complete_or_absent(path, **options) as file:
        file.write(content)
        during()


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_file_that_a_killed_process_left_is_used_again(tmp_path):
    (tmp_path / ".labels.part").write_bytes(b"half of a long file")
    write(tmp_path / "labels")
    assert names(tmp_path) == ["labels"]
    assert (tmp_path / "labels").read_bytes() == b"new"


def test_two_writers_do_not_share_a_temporary_file(tmp_path):
    path = tmp_path / "labels"
    write(path, b"first", during=lambda: write(path, b"second and longer"))
    assert path.read_bytes() == b"first"
    assert names(tmp_path) == ["labels"]


def test_a_temporary_file_that_is_taken_at_the_same_moment_is_left_to_its_owner(tmp_path, monkeypatch):
    def taken(*_):
        raise atomic.Locked

    monkeypatch.setattr(atomic, "lock", taken)
    write(tmp_path / "labels")
    assert (tmp_path / "labels").read_bytes() == b"new"
    assert names(tmp_path) == [".labels.part", "labels"]


def test_file_systems_without_locks_are_written_to(tmp_path, monkeypatch):
    def no_locks(*_):
        raise OSError

    monkeypatch.setattr(atomic, "lock", no_locks)
    write(tmp_path / "labels")
    assert names(tmp_path) == ["labels"]


def test_links_in_place_of_a_temporary_file_are_not_followed(tmp_path):
    (tmp_path / "mine").write_bytes(b"old")
    (tmp_path / ".labels.part").symlink_to("mine")
    write(tmp_path / "labels")
    assert (tmp_path / "mine").read_bytes() == b"old"
    assert (tmp_path / "labels").read_bytes() == b"new"


def test_the_description_of_an_old_file_never_stands_beside_a_new_one(tmp_path, monkeypatch):
    path, description = tmp_path / "labels", tmp_path / "description"
    path.write_bytes(b"old")
    description.write_bytes(b"old")

    def killed(*_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write(path, outdated=[description], during=killed)
    assert names(tmp_path) == ["description", "labels"]
    write(path, outdated=[description])
    assert names(tmp_path) == ["labels"]
