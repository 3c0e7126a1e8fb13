"""The types that py.typed promises to users."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import coview

pytest.importorskip("mypy", reason="types are checked by mypy")


def test_a_checker_finds_the_types_of_the_public_names(tmp_path):
    """Errors in the library's dependencies do not matter here: only the script is reported."""
    source = Path(coview.__file__).parents[1]
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--follow-imports=silent"]
    run = subprocess.run(
        [*command, f"--cache-dir={tmp_path}", Path(__file__).with_name("typed_user.py")],
        env={**os.environ, "MYPYPATH": str(source)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.stdout.startswith("Success"), run.stdout + run.stderr


def test_the_package_is_marked_as_typed():
    assert Path(coview.__file__).with_name("py.typed").exists()
