"""The examples run, and the README shows the first one."""

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs_and_prints(path, capsys):
    runpy.run_path(str(path), run_name="__main__")
    assert capsys.readouterr().out.strip()


def test_the_readme_starts_with_the_first_example():
    code = EXAMPLES[0].read_text().split('"""\n\n', 1)[1]
    assert code in (ROOT / "README.md").read_text()


def test_the_same_label_alone_and_together(capsys):
    runpy.run_path(str(ROOT / "examples" / "02_new_samples.py"))
    assert "same labels: True" in capsys.readouterr().out
