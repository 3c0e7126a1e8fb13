"""The package: one version, the same requirements everywhere, and the command as a module."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import coview

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_all_files_state_the_same_version():
    conda = re.search(r'version = "(.+)"', (ROOT / "conda" / "meta.yaml").read_text())
    citation = re.search(r"^version: (.+)$", (ROOT / "CITATION.cff").read_text(), flags=re.MULTILINE)
    assert conda[1] == citation[1] == coview.__version__


def test_conda_and_pip_have_the_same_requirements():
    text = (ROOT / "conda" / "meta.yaml").read_text()
    run, optional = re.search(r"  run:\n(.*?)  run_constrained:\n(.*?)\n\n", text, flags=re.DOTALL).groups()
    listed = dict(re.findall(r"- (\S+) >=(\S+)", run))
    assert listed.pop("python") == PROJECT["requires-python"].removeprefix(">=")
    assert listed == dict(requirement.split(">=") for requirement in PROJECT["dependencies"])
    extras = PROJECT["optional-dependencies"]
    allowed = dict(
        re.split(r"(?:\[.*\])?>=", r) for name in ("io", "report", "dask", "scverse", "zarr") for r in extras[name]
    )
    for name, version in re.findall(r"- (\S+) >=(\S+)", optional):
        assert version == allowed[name.removesuffix("-base")]  # conda-forge has matplotlib in two packages


def test_the_oldest_versions_are_those_of_the_requirements():
    run = [sys.executable, str(ROOT / ".ci" / "oldest.py"), str(ROOT / "pyproject.toml")]
    printed = subprocess.run(run, capture_output=True, text=True, check=True).stdout.split()
    assert {requirement.replace(">=", "==") for requirement in PROJECT["dependencies"]} <= set(printed)
    assert any(line.startswith("dask==") for line in printed)


def test_the_command_runs_as_a_module():
    run = subprocess.run([sys.executable, "-m", "coview", "--version"], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == f"coview {coview.__version__}"
