import pytest

from coview.core import memory


def test_the_machine_says_what_it_has():
    available = memory.available_memory()
    assert available is None or available > 0


def test_too_much_is_refused_with_figures_and_ways_out(monkeypatch):
    monkeypatch.setattr(memory, "available_memory", lambda: 3 * 2**30)
    with pytest.raises(MemoryError, match=r"fitting needs about 4\.0 GiB and 3\.0 GiB are available; take a nap"):
        memory.require_memory(4 * 2**30, "fitting", "take a nap")
    memory.require_memory(2 * 2**30, "fitting", "take a nap")


def test_a_machine_that_says_nothing_is_trusted(monkeypatch):
    monkeypatch.setattr(memory, "available_memory", lambda: None)
    memory.require_memory(2**60, "fitting", "take a nap")


def test_a_container_counts_what_it_has_used(monkeypatch, tmp_path):
    real = memory.Path
    monkeypatch.setattr(memory, "Path", lambda path: tmp_path if path == "/sys/fs/cgroup" else real(path))
    (tmp_path / "memory.current").write_text("400\n")
    (tmp_path / "memory.max").write_text("1000\n")
    assert memory.available_memory() == 600
    (tmp_path / "memory.max").write_text("max\n")
    assert memory.available_memory() == memory._free()


def test_systems_without_proc_are_asked_otherwise(monkeypatch, tmp_path):
    monkeypatch.setattr(memory, "Path", lambda path: tmp_path / "nothing")
    assert memory.available_memory() > 0

    def unknown(name):
        raise ValueError(name)

    monkeypatch.setattr(memory.os, "sysconf", unknown)
    assert memory.available_memory() is None
