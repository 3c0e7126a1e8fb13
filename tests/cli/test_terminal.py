"""Output of a command."""

import io
import json
import sys
import threading
import warnings

import pytest
from sklearn.exceptions import ConvergenceWarning

from coview.cli import terminal as module
from coview.cli.terminal import Terminal, in_options


class Screen(io.StringIO):
    def isatty(self):
        return True


def print_all(terminal):
    terminal.table("Title", ("name", "value"), [("a [b]", "1")])
    terminal.line("a line [of] text")
    with terminal.working():
        terminal.note("worth knowing")
        terminal.note("worth knowing")
    terminal.print_json({"value": 1})


def test_tables_lines_and_notes_are_printed(capsys):
    print_all(Terminal())
    printed = capsys.readouterr()
    assert "Title" in printed.out
    assert "a [b]" in printed.out  # brackets are text, not markup
    assert "a line [of] text\n" in printed.out
    assert printed.err == "Note: worth knowing\n"


def test_the_end_of_a_long_name_is_printed(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    Terminal().table("Title", ("name",), [("ENSG" + "0" * 60 + "12345",)])
    assert "12345" in capsys.readouterr().out


def test_json_is_one_object(capsys):
    print_all(Terminal(as_json=True))
    printed = capsys.readouterr()
    assert json.loads(printed.out) == {"value": 1, "notes": ["worth knowing"]}
    assert printed.err == ""


def test_quiet_prints_nothing(capsys):
    print_all(Terminal(quiet=True))
    assert capsys.readouterr() == ("", "")


def test_long_work_shows_its_stages_on_a_terminal(monkeypatch):
    screen = Screen()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr(module, "_BAR_DELAY", 0.0)
    monkeypatch.setenv("TERM", "xterm")
    with Terminal().working() as progress:
        started = [thread for thread in threading.enumerate() if isinstance(thread, threading.Timer)]
        for timer in started:
            timer.join(10)
        progress("reading [/x]", 1, 4)  # text, not markup
    assert "reading [/x]" in screen.getvalue()
    assert "1/4" in screen.getvalue()


def test_short_work_shows_no_bar(monkeypatch):
    screen = Screen()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr(module, "_BAR_DELAY", 60.0)
    with Terminal().working() as progress:
        progress("reading", 1, 4)
    assert "reading" not in screen.getvalue()


@pytest.mark.parametrize(("stream", "quiet"), [(io.StringIO, False), (Screen, True)])
def test_no_bar_without_a_terminal_or_when_quiet(monkeypatch, stream, quiet):
    screen = stream()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr(module, "_BAR_DELAY", 0.0)
    before = set(threading.enumerate())
    with Terminal(quiet=quiet).working() as progress:
        progress("reading", 1, 4)
        assert set(threading.enumerate()) <= before  # a thread of another test may end meanwhile
    assert screen.getvalue() == ""


def test_work_that_fails_prints_no_notes(capsys):
    with pytest.raises(ValueError, match="bad"):
        failing(Terminal())
    assert capsys.readouterr().err == ""


def failing(terminal):
    with terminal.working():
        terminal.note("worth knowing")
        raise ValueError("bad")


def test_the_bar_is_removed_after_a_failure(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Screen())
    before = set(threading.enumerate())
    with pytest.raises(KeyboardInterrupt), Terminal().working():
        raise KeyboardInterrupt
    assert set(threading.enumerate()) <= before  # a thread of another test may end meanwhile


def test_warnings_of_the_library_become_notes(capsys):
    terminal = Terminal()
    with terminal.working():
        warnings.warn("found 2 distinct\nclusters", ConvergenceWarning, stacklevel=1)
        warnings.warn("something old", DeprecationWarning, stacklevel=1)
    assert terminal.notes == ["found 2 distinct clusters"]
    assert capsys.readouterr().err == "Note: found 2 distinct clusters\n"
    with pytest.raises(UserWarning):  # as before
        warnings.warn("later", UserWarning, stacklevel=1)


HOSTILE = "\x1b]0;title\x07\x1b[2Jred\x9b31m\u202ename\r\x7f"


def test_names_cannot_control_the_terminal(capsys, monkeypatch):
    terminal = Terminal()
    terminal.table("Title", ("name",), [(HOSTILE,)])
    terminal.line(HOSTILE)
    with terminal.working():
        terminal.note(HOSTILE)
    printed = capsys.readouterr()
    for text in (printed.out, printed.err):
        assert not {*HOSTILE} & {*text} - {*"]0;title[2Jred31mname"}
    assert r"\x1b[2Jred\x9b31m\u202ename\r\x7f" in printed.out


def test_names_in_errors_cannot_control_the_terminal(tmp_path, capsys):
    from tests.cli.running import call

    code, _, err = call(capsys, "info", tmp_path / HOSTILE)
    assert code == 2
    assert "\x1b" not in err
    assert r"\x1b[2J" in err


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("keep only the common samples (align='inner')", "keep only the common samples (--align inner)"),
        ("use it as the ids (ids='patient id')", "use it as the ids (--ids 'patient id')"),
        ('use it as the ids (ids="it\'s"), or', "use it as the ids (--ids 'it'\"'\"'s'), or"),
        ("or pair the samples by row order (ids=False)", "or pair the samples by row order (--no-ids)"),
        ("name the column of the ids (ids=…)", "name the column of the ids (--ids COLUMN)"),
        ("n_clusters=91: expected an integer", "-k 91: expected an integer"),
        ("rho=1.5: expected a number", "--rho 1.5: expected a number"),
        ("as in FixedSize(Coview(…), n_train=5000)", "as in --method coview --n-train 5000"),
        ("use kernel='auto', or set dtype='float32'", "use --kernel auto"),
        ("view 'a' (ids.csv) has the column 'kids=3'", "view 'a' (ids.csv) has the column 'kids=3'"),
    ],
)
def test_arguments_become_options(message, expected):
    assert in_options(message) == expected
