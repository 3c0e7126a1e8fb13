"""`coview info` and `coview methods`."""

import json

import numpy as np

from coview import METHODS
from tests.cli.running import call


def test_info_about_files_and_models(data, fitted, capsys):
    code, out, _ = call(capsys, "info", data["folder"] / "train" / "c.csv", "--json")
    assert code == 0
    assert json.loads(out)["shape"] == [90, 4]
    for model in (fitted, fitted / "model.safetensors"):
        code, out, _ = call(capsys, "info", model, "--json")
        found = json.loads(out)
        assert (found["class"], found["method"], found["n_clusters"]) == ("Coview", "Coview", 3)
    code, out, _ = call(capsys, "info", fitted)
    assert "n_features" in out
    code, out, _ = call(capsys, "info", data["folder"] / "train" / "a.parquet")
    assert "Parquet" in out


def test_long_lists_are_cut(tmp_path, capsys):
    np.savetxt(tmp_path / "wide.csv", np.ones((3, 40)), delimiter=",", header=",".join(f"x{j}" for j in range(40)))
    code, out, _ = call(capsys, "info", tmp_path / "wide.csv")
    assert code == 0
    assert "… 28 more" in out


def test_all_methods_are_listed_and_coview_is_the_default(capsys):
    code, out, _ = call(capsys, "methods")
    assert code == 0
    assert all(name in out for name in METHODS)
    assert "Without --method, coview fit uses coview." in out
    code, out, _ = call(capsys, "methods", "--json")
    listed = {method["name"]: method for method in json.loads(out)["methods"]}
    predicts = {name: "predict" in method.abilities for name, method in METHODS.items()}
    assert {name: method["predicts"] for name, method in listed.items()} == predicts
    assert {name: m["class"] for name, m in listed.items()} == {n: m.__name__ for n, m in METHODS.items()}
