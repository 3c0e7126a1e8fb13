"""Who may import whom, what is public, and what starting up costs."""

import ast
import subprocess
import sys
from pathlib import Path

import coview

SOURCE = Path(coview.__file__).parent

# Top to bottom: a module may import from its own layer and from those above it.
LAYERS = [
    ["errors", "extras"],
    ["files"],
    ["views"],
    ["labels", "prepare"],
    ["kernels"],
    ["core"],
    ["methods"],
    ["tune"],
    ["compose"],
    ["scale", "stream", "sweep", "compare", "persist", "summary", "datasets", "io", "metrics"],
    ["plots"],
    ["report"],
    ["cli"],
]
HOMES = {"dask": "scale", "distributed": "scale", "matplotlib": "plots", "plotly": "report", "jinja2": "report"}


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


def layer_number(name):
    return next(number for number, names in enumerate(LAYERS) if name in names)


def test_imports_go_one_way():
    for layer, path, tree in modules():
        for name in imported(tree):
            parts = name.split(".")
            if parts[0] == "coview" and len(parts) > 1:
                assert layer_number(parts[1]) <= layer_number(layer), f"{path.name} imports {name}"


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
    reference = (SOURCE.parents[1] / "docs" / "reference.md").read_text()
    missing = [name for name in coview.__all__ if f"`{name}" not in reference]
    assert not missing


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


def test_help_does_not_import_scikit_learn():
    code = "from coview.cli import app\ntry:\n    app(['--help'])\nexcept SystemExit:\n    pass"
    loaded = modules_after(code)
    assert "coview.cli" in loaded
    assert not {"sklearn", "scipy", "numpy"} & loaded


def test_importing_the_flagship_costs_no_more_than_its_base():
    """Nothing heavy beyond `sklearn.base` and `scipy.linalg`; what a fit needs besides is imported by the fit.

    Modules are counted, because seconds depend on what else the machine is doing.
    """
    base = modules_after("import sklearn.base, scipy.linalg")
    ours = modules_after("from coview import TMvKSCR")
    extra = {name for name in ours - base if name.split(".")[0] not in {"coview", *sys.stdlib_module_names}}
    assert {name.split(".")[0] for name in extra} <= {"numpy", "scipy", "sklearn"}
    assert len(extra) <= 0.05 * len(base), sorted(extra)
