"""The documentation site: every public name has a page, the code of the pages runs, and all links lead somewhere."""

import re
import shlex
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
SITE = ROOT / "build" / "site"
MODULES = (
    "coview",
    "coview.compare",
    "coview.datasets",
    "coview.distributed",
    "coview.io",
    "coview.metrics",
    "coview.persist",
    "coview.plots",
    "coview.report",
    "coview.scverse",
)
GUIDES = [page for folder in ("start", "howto", "compare") for page in sorted((DOCS / folder).glob("*.md"))]

built = pytest.mark.skipif(not (SITE / "index.html").exists(), reason="the site is not built: make docs")


def public_names():
    """Return the names of the API pages; a name of `coview` is not listed again in its module."""
    top = set(import_module("coview").__all__)
    for module in MODULES:
        for name in import_module(module).__all__:
            if module == "coview":
                yield name
            elif name not in top:
                yield f"{module.removeprefix('coview.')}.{name}"


def test_every_public_name_is_in_the_index_of_the_reference():
    listed = re.findall(r"^   ([\w.]+)$", (DOCS / "api" / "index.md").read_text(), flags=re.MULTILINE)
    assert sorted(listed) == sorted(public_names())


@built
def test_every_public_name_has_a_page():
    missing = [name for name in public_names() if not (SITE / f"api/generated/coview.{name}.html").exists()]
    assert not missing


@pytest.mark.parametrize("page", GUIDES, ids=lambda page: f"{page.parent.name}/{page.stem}")
def test_the_code_of_a_guide_runs(page, tmp_path, monkeypatch):
    """Blocks of `python` and `console` run in order; `py` marks code of other libraries."""
    monkeypatch.chdir(tmp_path)
    names = {"__name__": page.stem}
    for language, code in re.findall(r"^```(python|console)\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL):
        if language == "python":
            exec(compile(code, str(page), "exec"), names)
        else:
            for line in code.splitlines():
                command = shlex.split(line.removeprefix("$ "))
                command[0] = shutil.which(command[0], path=Path(sys.executable).parent)
                subprocess.run(command, check=True, capture_output=True, timeout=300)


@pytest.fixture(scope="module")
def pages():
    """Return the parsed pages of the site by path."""
    soup = pytest.importorskip("bs4").BeautifulSoup
    paths = [path for path in SITE.rglob("*.html") if "_static" not in path.parts]  # templates of the theme
    return {path: soup(path.read_text(encoding="utf-8"), "html.parser") for path in paths}


@built
def test_internal_links_lead_to_pages_and_anchors_that_exist(pages):
    anchors = {path: {tag["id"] for tag in page.find_all(id=True)} for path, page in pages.items()}
    broken = []
    for path, page in pages.items():
        for tag in page.find_all(["a", "img", "link", "script"]):
            link = urlsplit(tag.get("href") or tag.get("src") or "")
            if link.scheme or link.netloc:
                continue
            target = (path.parent / unquote(link.path)).resolve() if link.path else path
            if not target.exists() or (link.fragment and target in anchors and link.fragment not in anchors[target]):
                broken.append(f"{path.relative_to(SITE)}: {link.geturl()}")
    assert not broken


@built
def test_no_page_loads_anything_from_the_network(pages):
    for path, page in pages.items():
        for tag in page.find_all(["img", "link", "script", "iframe"]):
            source = tag.get("src") or (tag.get("href") if tag.name == "link" else None) or ""
            assert not urlsplit(source).netloc, f"{path.relative_to(SITE)}: {source}"
