"""Benchmarks that no test runs import only names that exist."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_all_benchmarks_can_be_imported():
    pytest.importorskip("psutil", reason="the peers run in processes")
    paths = sorted((ROOT / "benchmarks").rglob("*.py"))
    names = [".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__") for path in paths]
    assert "benchmarks.stability" in names
    code = "import importlib, sys\nfor name in sys.argv[1:]:\n    importlib.import_module(name)"
    done = subprocess.run([sys.executable, "-c", code, *names], capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr
