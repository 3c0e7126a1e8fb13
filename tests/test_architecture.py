"""Who may import whom, what is public, and what starting up costs."""

import ast
import inspect
import json
import subprocess
import sys
from collections import defaultdict
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import coview
from tests.nets.store import INTERFACE

SOURCE = Path(coview.__file__).parent

# Top to bottom: a module may import from its own package and from the ones above it.
RANKS = (
    "_version",
    "errors",
    "base",
    "registry",
    "data",
    "preprocess",
    "neighbors",
    "kernels",
    "core",
    "model",
    "methods",
    "compose",
    "evaluate",
    "certainty",
    "io",
    "persist",
    "metrics",
    "summary",
    "compare",
    "distributed",
    "datasets",
    "plots",
    "report",
    "scverse",
    "cli",
    "__main__",
)
HOMES = {
    "dask": "distributed",
    "distributed": "distributed",
    "matplotlib": "plots",
    "plotly": "report",
    "jinja2": "report",
    "anndata": "scverse",
    "mudata": "scverse",
}


def modules():
    for path in SOURCE.rglob("*.py"):
        layer = path.relative_to(SOURCE).parts[0].removesuffix(".py")
        if layer != "__init__":
            yield layer, path, ast.parse(path.read_text())


def imported(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)  # may be modules, too


def test_every_package_has_one_rank():
    assert sorted({layer for layer, _, _ in modules()}) == sorted(RANKS)


def test_imports_go_one_way():
    for layer, path, tree in modules():
        for name in imported(tree):
            parts = name.split(".")
            if parts[0] == "coview" and len(parts) > 1:
                assert parts[1] in RANKS, f"{path} imports {name}; import it from its own module"
                assert RANKS.index(parts[1]) <= RANKS.index(layer), f"{path} imports {name}"


def test_no_modules_import_each_other():
    """Lazy imports count: a cycle that is hidden in a function is still a cycle."""
    graph = {}
    for _, path, tree in modules():
        parts = ("coview", *path.relative_to(SOURCE).with_suffix("").parts)
        graph[".".join(parts).removesuffix(".__init__")] = set(imported(tree))
    known = set(graph)
    graph = {name: (found & known) - {name} for name, found in graph.items()}
    # A package and its modules: a module inside that imports the package's own __init__ would load itself.
    list(TopologicalSorter(graph).static_order())


def test_no_public_name_is_defined_twice():
    """One word, one meaning; private names need be unique in their module only."""
    homes = defaultdict(list)
    for _, path, tree in modules():
        for node in tree.body:
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and not node.name.startswith("_"):
                homes[node.name].append(str(path.relative_to(SOURCE)))
    assert {name: paths for name, paths in homes.items() if len(paths) > 1} == {}


def test_each_optional_library_has_one_home():
    for layer, path, tree in modules():
        for name in imported(tree):
            home = HOMES.get(name.split(".")[0])
            assert home in (None, layer), f"{path.name} imports {name}, whose home is {home}"


def test_public_names_are_those_that_can_be_imported():
    assert sorted(coview.__all__) == sorted(coview._HOME_OF)
    for name in coview.__all__:
        assert getattr(coview, name) is not None
    assert set(dir(coview)) == set(coview.__all__)


def test_every_public_name_is_explained_in_the_reference():
    reference = (Path(__file__).parents[1] / "docs" / "reference.md").read_text()
    missing = [name for name in coview.__all__ if f"`{name}" not in reference]
    assert not missing


def public_functions():
    """The public functions, and the methods of public classes that users call; kernels and selectors are values."""
    for name in json.loads(INTERFACE.read_text()):
        owner, _, method = name.partition(".")
        value = getattr(coview, owner)
        if inspect.isfunction(value):
            yield name, value
        elif method and (hasattr(value, "get_params") or owner in ("Summary", "Views", "ViewsReader")):
            yield name, getattr(value, method)


def test_public_functions_say_what_they_return():
    found = dict(public_functions())
    assert len(found) > 60
    assert [name for name, function in found.items() if "Returns\n" not in (inspect.getdoc(function) or "")] == []


def test_unknown_names_are_refused():
    try:
        coview.Nonsense  # noqa: B018
    except AttributeError as error:
        assert "Nonsense" in str(error)
    else:
        raise AssertionError


def modules_after(code):
    lines = [code, "import sys", "print(*sys.modules)"]
    run = subprocess.run([sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, check=True)
    return set(run.stdout.split())


NUMERIC = {"numpy", "scipy", "sklearn", "joblib", "threadpoolctl", "narwhals", "safetensors"}
OPTIONAL = {
    *("anndata", "dask", "distributed", "h5py", "jinja2", "matplotlib", "mudata", "openpyxl", "pandas", "plotly"),
    *("polars", "pyarrow", "zarr", "tqdm", "IPython"),
}


@pytest.mark.parametrize(
    ("code", "home"),
    [
        ("import coview", "coview"),
        ("from coview.cli import app\ntry:\n    app(['--help'])\nexcept SystemExit:\n    pass", "coview.cli"),
        ("from coview.cli import app\ntry:\n    app(['fit', '-h'])\nexcept SystemExit:\n    pass", "coview.cli"),
    ],
    ids=["import coview", "coview --help", "coview fit --help"],
)
def test_starting_up_loads_no_heavy_library(code, home):
    loaded = modules_after(code)
    assert home in loaded
    assert not (NUMERIC | OPTIONAL) & loaded


@pytest.mark.parametrize(
    "code",
    [
        "from coview import Coview, TMvKSCR, Views, as_views, read_views, summarize, save, load",
        "import coview.plots",
        "import coview.report",
        "import coview.scverse",
    ],
)
def test_importing_a_part_loads_no_optional_library(code):
    """scikit-learn itself imports pandas if it is installed, and pandas imports pyarrow."""
    assert not OPTIONAL & (modules_after(code) - modules_after("import sklearn.base"))


def test_importing_the_flagship_costs_no_more_than_its_base():
    """Nothing heavy beyond `sklearn.base` and `scipy.linalg`; what a fit needs besides is imported by the fit.

    Modules are counted, because seconds depend on what else the machine is doing.
    """
    base = modules_after("import sklearn.base, scipy.linalg")
    ours = modules_after("from coview import TMvKSCR")
    extra = {name for name in ours - base if name.split(".")[0] not in {"coview", *sys.stdlib_module_names}}
    assert {name.split(".")[0] for name in extra} <= {"numpy", "scipy", "sklearn"}
    assert len(extra) <= 0.05 * len(base), sorted(extra)
