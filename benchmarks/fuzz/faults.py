"""Faults while a command runs: it is killed at random moments, and its output must be entirely old or entirely new.

Each command runs in a process that was forked after all imports, so that kills hit its work. It runs once without a
fault, which measures its time. Half of the kills come at any moment of that time, and half in its last 5 %, in which
the results get their names. SIGKILL, SIGTERM and SIGINT are drawn by the seed, and so is whether standard output or
standard error is closed. The sentence after Ctrl-C must say what is true. Afterwards the command runs again and must
complete, without anything left of the killed run.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import NoReturn

import numpy as np

from benchmarks.fuzz.case import Case, Finding
from coview.cli import main

_SIGNALS = (signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
_IN_COMMAND = re.compile(rb"/(target|predict--report-\d)/| -q| --json")  # what differs in the command of a report
_LIMIT = 60.0  # seconds of one command
COMMANDS = ("fit", "fit --force", "fit auto", "predict", "predict --report")
_CLOSED: tuple[tuple[str, ...], ...] = ((), (), ("stdout",), ("stderr",), ("stdin", "stdout", "stderr"))


def _become(words: list[str], stream: int, before: Callable[[], object]) -> NoReturn:
    """Turn this process into the command, which prints to a pipe."""
    code = 70
    try:
        try:
            sys.stdout = sys.stderr = open(stream, "w")  # noqa: SIM115 - until the process ends
            sys.argv = ["coview", *words]
            before()
        except KeyboardInterrupt:  # before the command has begun
            os._exit(130)
        try:
            main()
        except SystemExit as stopped:
            code = stopped.code if isinstance(stopped.code, int) else 1
        except BaseException:
            traceback.print_exc()
        if sys.stdout is not None:
            sys.stdout.flush()
    finally:
        os._exit(code)


class Command:
    """A command in a process of its own; `before` runs in it first."""

    def __init__(self, words: list[str], before: Callable[[], object] = lambda: None) -> None:
        self._start = time.perf_counter()
        self._printed, stream = os.pipe()
        self.process = os.fork()
        if self.process == 0:
            _become(words, stream, before)
        os.close(stream)

    def printed(self) -> str:
        """Return what the command has printed, after its end; it is short enough for a pipe."""
        with open(self._printed) as stream:
            return stream.read()

    def wait(self, seconds: float) -> int | None:
        """Return the exit code, negative for a signal, or None if the command still runs after so many seconds."""
        end = self._start + seconds
        while True:
            found, status = os.waitpid(self.process, os.WNOHANG)
            if found:
                return os.waitstatus_to_exitcode(status)
            if (left := end - time.perf_counter()) <= 0:
                return None
            time.sleep(min(left, 0.002))

    def end(self, number: signal.Signals) -> None:
        """Send a signal, and wait; a process that does not end is a finding."""
        os.kill(self.process, number)
        if self.wait(time.perf_counter() - self._start + _LIMIT) is None:
            os.kill(self.process, signal.SIGKILL)
            os.waitpid(self.process, 0)
            raise Finding(f"it does not end after {number.name}")


def run(words: list[str], before: Callable[[], object] = lambda: None) -> tuple[int, str, float]:
    """Run a command to its end; return its exit code, what it printed, and its time."""
    start = time.perf_counter()
    command = Command(words, before)
    code = command.wait(_LIMIT)
    if code is None:
        command.end(signal.SIGKILL)
        raise Finding(f"{' '.join(words)} takes more than {_LIMIT} seconds")
    return code, command.printed(), time.perf_counter() - start


def close(streams: Sequence[str]) -> None:
    """Close streams as a shell does before a command starts; those of a forked process are those of its parent."""
    for name in streams:
        setattr(sys, name, None)
        with suppress(OSError):
            os.close(("stdin", "stdout", "stderr").index(name))


def contents(folder: Path) -> dict[str, bytes]:
    """The readable files of a folder; those with the times of the run without their contents."""
    if not folder.exists():
        return {}
    return {
        path.name: b"" if path.name == "summary.json" else _IN_COMMAND.sub(b"", path.read_bytes())
        for path in sorted(folder.iterdir())
        if path.is_file() and not path.name.startswith(".")
    }


class Setting:
    """Two data sets, the results of all commands on each, and the times of the commands."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for number in (0, 1):
            rng = np.random.default_rng(number)
            for view in "ab":
                x = rng.normal(size=(30, 3))
                x[: 10 + 5 * number] += 8
                np.save(folder / f"{view}{number}.npy", x)
        self.seconds: dict[str, float] = {}
        self._complete("fit", 0, folder / "model")
        self._import_all()
        for command in COMMANDS:
            for number in (0, 1):
                self.seconds[command] = self._complete(command, number, self.whole(command, number))

    def _import_all(self) -> None:
        """Run the commands in this process, so that those forked from it import nothing."""
        handler = signal.getsignal(signal.SIGTERM)
        for command in COMMANDS[1:]:
            place = self.folder / "imports"
            place.mkdir(exist_ok=True)
            sys.argv = ["coview", *self.words(command, 0, place)]
            with suppress(SystemExit):
                main()
        signal.signal(signal.SIGTERM, handler)

    def whole(self, command: str, number: int) -> Path:
        return self.folder / f"{command.replace(' ', '')}-{number}"

    def _complete(self, command: str, number: int, folder: Path) -> float:
        folder.mkdir()
        code, printed, seconds = run(self.words(command, number, folder))
        if code:
            raise RuntimeError(printed)
        return seconds

    def words(self, command: str, number: int, folder: Path) -> list[str]:
        views = [f"--view={view}={self.folder / f'{view}{number}.npy'}" for view in "ab"]
        if command.startswith("predict"):
            columns = ["--column", "membership"] * number
            output = ["-o", str(folder / "labels.csv"), "--force", "-q"]
            report = ["--report", str(folder / "new.html")] if command.endswith("--report") else []
            return ["predict", str(self.folder / "model"), *views, *columns, *output, *report]
        k = [] if command == "fit auto" else ["-k", "2", "--method", "tmvkscr"]
        words = [command.split()[0], *views, *k, "--no-report", "-o", str(folder), "-q"]
        return words if command == "fit" else [*words, "--force"]

    def prepared(self, command: str) -> Path:
        """Return the folder of a command that is to fail: with the old results, or absent."""
        folder = self.folder / "target"
        shutil.rmtree(folder, ignore_errors=True)
        if command != "fit":
            shutil.copytree(self.whole(command, 0), folder)
        return folder

    def outcome(self, command: str, printed: str) -> str:
        """Return "old" or "new", whichever results the folder has, after the command has run again in it."""
        folder, old, new = (self.folder / "target", *(contents(self.whole(command, number)) for number in (0, 1)))
        found, old = contents(folder), {} if command == "fit" else old
        if found not in (old, new):
            raise Finding(f"{sorted(found)} are neither old nor new")
        said = {"nothing was written": old, "all results were written": new}
        if "Traceback" in printed or any(text in printed and found != results for text, results in said.items()):
            raise Finding(printed[-200:])
        again, printed, _ = run(self.words("fit --force" if command == "fit" else command, 1, folder))
        left = [path.name for place in (folder, self.folder) for path in place.iterdir() if path.name.startswith(".")]
        if again or left or contents(folder) != new:
            raise Finding(f"the next run: {printed[-200:]} {left}")
        return "old" if found == old else "new"


def _killed(setting: Setting, command: str, fraction: float, number: signal.Signals, closed: Sequence[str]) -> str:
    """Kill a command, and check what it has left."""
    folder = setting.prepared(command)
    running = Command(setting.words(command, 1, folder), lambda: close(closed))
    if running.wait(fraction * setting.seconds[command]) is None:
        running.end(number)
    return setting.outcome(command, running.printed())


def cases(seed: int, folder: Path) -> Iterator[Case]:
    """Yield kills of all commands in turn."""
    setting = Setting(folder)
    rng = random.Random(seed)
    for i in range(10**9):
        command, number = COMMANDS[i % len(COMMANDS)], rng.choice(_SIGNALS)
        fraction = rng.uniform(0.95, 1.02) if i // len(COMMANDS) % 2 else rng.random()
        kill = partial(_killed, setting, command, fraction, number, closed := rng.choice(_CLOSED))
        yield Case(f"{command}, {number.name} at {fraction:.3f} of its time, without {closed}", kill)
