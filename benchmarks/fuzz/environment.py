"""Commands in an environment that fails them: a full disk, a closed output, a folder without permission, another run.

The results must be entirely old after an error and entirely new otherwise, the error one line, and the next run
complete. Full disks are limits of the size of a file (RLIMIT_FSIZE) and small file systems, where these can be mounted.
"""

from __future__ import annotations

import os
import random
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.fuzz.case import Case, Finding
from benchmarks.fuzz.faults import COMMANDS, Command, Setting, contents, run

_NOBODY = 65534
_LIMIT = 120.0  # seconds of one command, with its imports


def _check_error(code: int, printed: str) -> None:
    """Check that a command has ended with success, or with one line on the error, which names no hidden folder."""
    errors = [line for line in printed.splitlines() if line.startswith("Error: ")]
    if code not in (0, 1, 2) or (code and len(errors) != 1) or "Traceback" in printed or ".coview" in printed:
        raise Finding(f"exit code {code}: {printed[-250:]}")


def _outcome_of(setting: Setting, command: str, code: int, printed: str) -> str:
    _check_error(code, printed)
    found = setting.outcome(command, printed)
    if found != ("old" if code else "new"):
        raise Finding(f"exit code {code}, and the results are {found}")
    return "refused" if code else "complete"


def _file_size_limit(setting: Setting, command: str, rng: random.Random) -> str:
    folder = setting.prepared(command)
    sizes = [len(each) for each in contents(setting.whole(command, 1)).values()]
    limit = int(max(sizes) * rng.random() ** 3)
    code, printed, _ = run(
        setting.words(command, 1, folder), lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    )
    return _outcome_of(setting, command, code, printed)


def _small_file_system(setting: Setting, command: str, rng: random.Random) -> str:
    """Mount a file system of a few pages as the folder of results; only root may."""
    folder = setting.prepared(command)
    before = contents(folder)
    pages = 1 + rng.randrange(20) + sum(1 + len(each) // 4096 for each in before.values())
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={pages * 4}k", "coview-fuzz", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
        return "not possible here"
    try:
        for name, each in contents(setting.whole(command, 0)).items() if before else ():
            shutil.copy(setting.whole(command, 0) / name, folder) if each or name == "summary.json" else None
        old = contents(folder)
        code, printed, _ = run(setting.words(command, 1, folder))
        _check_error(code, printed)
        if contents(folder) != (old if code else contents(setting.whole(command, 1))):
            raise Finding(f"exit code {code}, and the results are others: {sorted(contents(folder))}")
        if left := [path.name for path in folder.iterdir() if path.name.startswith(".")]:
            raise Finding(f"exit code {code}, and {left} are left")
    finally:
        subprocess.run(["umount", str(folder)], check=True)
    return "refused" if code else "complete"


def _read_only(setting: Setting, command: str, rng: random.Random) -> str:
    """Make the folder of results read-only; root becomes another user, because permissions do not stop it."""
    folder = setting.prepared(command)
    place = folder if folder.exists() else folder.parent
    place.chmod(0o555)
    try:
        code, printed, _ = run(
            setting.words(command, 1, folder), lambda: os.setuid(_NOBODY) if os.geteuid() == 0 else None
        )
    finally:
        place.chmod(0o755)
    if code != 2:
        raise Finding(f"a folder without permission gives exit code {code}: {printed[-250:]}")
    return _outcome_of(setting, command, code, printed)


def _two_writers(setting: Setting, command: str, rng: random.Random) -> str:
    """Run a command on two data sets with the same folder, the second up to a whole run later."""
    folder = setting.prepared(command)
    first = Command(setting.words(command, 0, folder))
    time.sleep(rng.random() ** 2 * setting.seconds[command])
    second = Command(setting.words(command, 1, folder))
    codes = [each.wait(_LIMIT) for each in (first, second)]
    printed = [each.printed() for each in (first, second)]
    for code, text in zip(codes, printed, strict=True):
        _check_error(-1 if code is None else code, text)
    found = contents(folder)
    complete = [contents(setting.whole(command, number)) for number in (0, 1)]
    if not any(code == 0 and found == run_of for code, run_of in zip(codes, complete, strict=True)):
        raise Finding(f"exit codes {codes}, and {sorted(found)} are of neither run")
    if command == "fit" and codes.count(0) != 1:
        raise Finding(f"exit codes {codes} of two runs without --force")
    if found == complete[1]:
        setting.outcome(command, "")
    return "one refused" if any(codes) else "one after the other"


def _process(words: list[str], shell: str, **environment: str | None) -> tuple[int, str]:
    """Run a command with its imports, in a shell with this redirection; return its exit code and its errors."""
    kept = {name: value for name, value in os.environ.items() if name not in environment}
    changed = {name: value for name, value in environment.items() if value is not None}
    line = ["bash", "-c", f'set -o pipefail; "$0" -m coview "$@" {shell}', sys.executable, *words]
    done = subprocess.run(
        line, env=kept | changed, capture_output=True, text=True, errors="replace", timeout=_LIMIT, check=False
    )
    return done.returncode, done.stderr


def _no_stdout(setting: Setting, command: str, rng: random.Random) -> str:
    folder = setting.prepared(command)
    words = [word for word in setting.words(command, 1, folder) if word != "-q" or rng.random() < 0.3]
    words += ["--json"] if rng.random() < 0.5 else []
    shell = rng.choice((">&-", "2>&-", "> /dev/full", "2> /dev/full", "| true", "<&- >&- 2>&-"))
    code, printed = _process(words, shell)
    if "Traceback" in printed or code != 0:
        raise Finding(f"{shell}: exit code {code}: {printed[-250:]}")
    return setting.outcome(command, printed)


def _other_environment(setting: Setting, command: str, rng: random.Random) -> str:
    """Run with the C locale, or without a home and with a report; names that the locale lacks are refused."""
    folder = setting.prepared(command)
    words = [word for word in setting.words(command, 1, folder) if word != "-q"]
    changes: dict[str, str | None] = {"LC_ALL": "C", "LANG": None, "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    kind = rng.choice(("home", "locale", "name"))
    if kind == "home":
        changes = {"HOME": rng.choice((None, "/nonexistent")), "XDG_CACHE_HOME": None, "MPLCONFIGDIR": None}
        words = [word for word in words if word != "--no-report"]
    elif kind == "name":
        words = [word.replace("--view=a=", "--view=größe=") for word in words]
    code, printed = _process(words, "", **changes)
    _check_error(code, printed)
    labels = contents(folder).get("labels.csv")
    if (code, kind) != (2, "name") and (code or labels != contents(setting.whole(command, 1))["labels.csv"]):
        raise Finding(f"exit code {code}: {printed[-250:]}")
    return "refused" if code else "complete"


_FAULTS: dict[str, Callable[[Setting, str, random.Random], str]] = {
    "file size limit": _file_size_limit,
    "small file system": _small_file_system,
    "read-only folder": _read_only,
    "two writers": _two_writers,
    "no standard output": _no_stdout,
    "C locale or no home": _other_environment,
}


def cases(seed: int, folder: Path) -> Iterator[Case]:
    """Yield all faults of all commands in turn."""
    setting = Setting(folder)
    folder.chmod(0o755)  # for the other user
    names = list(_FAULTS)
    for i in range(10**9):
        rng = random.Random(f"environment {seed} {i}")
        name, command = names[i % len(names)], COMMANDS[i // len(names) % len(COMMANDS)]

        def fail(name: str = name, command: str = command, rng: random.Random = rng) -> str:
            return _FAULTS[name](setting, command, rng)

        yield Case(f"{name}: {command}", fail)
