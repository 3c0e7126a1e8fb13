"""The examples run, the README contains the first one, and its commands and links work."""

import re
import runpy
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from coview import Coview, read_views

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs_and_prints(path, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # some examples write files
    runpy.run_path(str(path), run_name="__main__")
    assert capsys.readouterr().out.strip()


def test_the_readme_contains_the_first_example():
    code = EXAMPLES[0].read_text().split('"""\n\n', 1)[1]
    assert code in (ROOT / "README.md").read_text()


def test_the_readme_is_short_and_its_picture_is_small():
    assert len((ROOT / "README.md").read_text().splitlines()) <= 90
    assert (ROOT / "docs" / "report.png").stat().st_size <= 200_000


def headings(page):
    """Return the anchors that GitHub gives to the headings of a page."""
    titles = re.findall(r"^#+ (.+)$", page.read_text(), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_between_pages_lead_to_files_and_headings_that_exist(page):
    prose = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(), flags=re.DOTALL)
    for link in re.findall(r"\]\(([^)\s]+)\)", prose):
        if not link.startswith("http"):
            name, _, anchor = link.partition("#")
            target = (page.parent / name).resolve() if name else page
            assert target.exists(), link
            assert not anchor or anchor in headings(target), link


def test_a_new_sample_has_the_same_label_alone_and_in_a_batch(capsys):
    runpy.run_path(str(ROOT / "examples" / "02_new_samples.py"))
    assert "same labels: True" in capsys.readouterr().out


def test_the_commands_of_the_readme_give_the_labels_of_the_python_api(tmp_path):
    """Write three files, fit, and label new files, with the commands as they are printed in the README."""
    block = next(part for part in (ROOT / "README.md").read_text().split("```") if "coview fit" in part)
    commands = [shlex.split(line, comments=True) for line in block.replace("\\\n", "").strip().splitlines()]
    assert [command[:2] for command in commands[1:]] == [["coview", "fit"], ["coview", "predict"]]
    commands[0] = [sys.executable, str(ROOT / commands[0][1])]
    for command in commands:
        command[0] = shutil.which(command[0], path=Path(sys.executable).parent) or command[0]
        subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, timeout=300)

    written = {"labels.csv", "labels.csv-metadata.json", "map.csv", "model.safetensors", "report.html", "summary.json"}
    assert {file.name for file in (tmp_path / "run").iterdir()} == written
    names = {"pixels": "pixels.csv", "fourier": "fourier.parquet", "gradients": "gradients.npy"}
    train, new = (
        read_views({view: tmp_path / folder / name for view, name in names.items()}, ids="image")
        for folder in ("digits", "new-digits")
    )
    model = Coview(random_state=0).fit(train.views)
    for file, loaded, labels in (
        (tmp_path / "run" / "labels.csv", train, model.labels_),
        (tmp_path / "labels.csv", new, model.predict(new.views)),
    ):
        expected = [f"{sample},{label}" for sample, label in zip(loaded.ids, labels, strict=True)]
        assert [",".join(line.split(",")[:2]) for line in file.read_text().splitlines()] == ["image,cluster", *expected]
