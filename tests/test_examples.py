"""The examples run, and the README shows the first one."""

import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from coview import Tuned, read_views

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs_and_prints(path, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # some write files
    runpy.run_path(str(path), run_name="__main__")
    assert capsys.readouterr().out.strip()


def test_the_readme_starts_with_the_first_example():
    code = EXAMPLES[0].read_text().split('"""\n\n', 1)[1]
    assert code in (ROOT / "README.md").read_text()


def test_the_same_label_alone_and_together(capsys):
    runpy.run_path(str(ROOT / "examples" / "02_new_samples.py"))
    assert "same labels: True" in capsys.readouterr().out


def test_the_commands_of_the_readme_label_like_python(tmp_path):
    """Three files, a fit, and the labels of new files, as a reader of the README would type them."""
    block = next(part for part in (ROOT / "README.md").read_text().split("```") if "coview fit" in part)
    commands = [line.split("#")[0].split() for line in block.strip().splitlines()]
    assert [command[:2] for command in commands[1:]] == [["coview", "fit"], ["coview", "predict"]]
    commands[0] = [sys.executable, str(ROOT / commands[0][1])]
    for command in commands:
        command[0] = shutil.which(command[0], path=Path(sys.executable).parent) or command[0]
        subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, timeout=300)

    written = ["labels.csv", "model.safetensors", "report.html", "summary.json", "tuning.csv"]
    assert sorted(file.name for file in (tmp_path / "run").iterdir()) == written
    names = {"pixels": "pixels.csv", "fourier": "fourier.parquet", "gradients": "gradients.npy"}
    train, new = (
        read_views({view: tmp_path / folder / name for view, name in names.items()}, ids="image")
        for folder in ("digits", "new-digits")
    )
    model = Tuned(10, budget="small", random_state=0).fit(train.views)
    for file, loaded, labels in (
        (tmp_path / "run" / "labels.csv", train, model.labels_),
        (tmp_path / "labels.csv", new, model.predict(new.views)),
    ):
        expected = [f"{sample},{label}" for sample, label in zip(loaded.ids, labels, strict=True)]
        assert file.read_text().splitlines() == ["image,cluster", *expected]
