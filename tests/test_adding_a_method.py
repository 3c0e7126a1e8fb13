"""A new method is one file and one line in METHODS: everything else follows from that.

The made-up method is in tests/stacked_kmeans.py. It is registered while these tests run, and not for other tests.
"""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from coview import METHODS, FixedSize, Preprocessed, load, save, summarize
from coview.compare import compare
from coview.errors import InputTypeError
from coview.report import render
from tests.cli.running import call, split_blobs
from tests.conftest import make_blobs
from tests.stacked_kmeans import register

NAME = "stackedkmeans"


@pytest.fixture(autouse=True)
def registered():
    register()
    yield
    del METHODS[NAME]


@pytest.fixture
def data(tmp_path):
    return split_blobs(tmp_path)


def test_it_passes_the_contract_tests():
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.stacked_kmeans", "-p", "no:cacheprovider"]
    run = subprocess.run(
        [*command, "tests/test_contract.py", "-k", f"{NAME} or StackedKMeans"],
        cwd=Path(__file__).parents[1], capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stdout[-3000:]
    n_passed = int(run.stdout.splitlines()[-1].split(" passed")[0].split()[-1])
    assert n_passed > 60  # scikit-learn's checks and those of the library


def test_the_command_fits_it_and_predicts_with_it(data, capsys):
    run, labels = data["folder"] / "run", data["folder"] / "labels.csv"
    truth = f"--truth={data['folder']}/train/truth.csv::kind"
    fit = ["fit", *data["train_files"], "--ids=id", "-k3", f"--method={NAME}", truth, "--json", "-o", run]
    code, out, _ = call(capsys, *fit)
    assert code == 0
    assert json.loads(out)["truth"]["ari"] == 1
    assert "StackedKMeans" in (run / "report.html").read_text()
    model = run / "model.safetensors"
    assert call(capsys, "predict", model, *data["new_files"], "--ids=id", "-o", labels)[0] == 0
    predicted = [int(line.split(",")[1]) for line in labels.read_text().splitlines()[1:]]
    assert predicted == load(model).predict(data["new"]).tolist()


def test_a_class_without_an_entry_is_refused():
    with pytest.raises(InputTypeError, match=r"'mine' is the class \w+; give Entry\('module:Class', 'what it does'\)"):
        METHODS["mine"] = METHODS[NAME]


def test_the_command_lists_and_suggests_it(data, capsys):
    assert NAME in call(capsys, "methods")[1]
    code, _, err = call(capsys, "fit", *data["train_files"], "-k3", "--method=stackedkmean")
    assert code == 2
    assert f"did you mean '{NAME}'?" in err


@pytest.mark.parametrize("wrap", [lambda m: m, Preprocessed, lambda m: FixedSize(m, n_train=30, random_state=0)])
def test_it_is_saved_and_loaded(wrap, tmp_path):
    views, _ = make_blobs(60)
    model = wrap(METHODS[NAME](3, random_state=0)).fit(views)
    loaded = load(save(model, tmp_path / "model.safetensors"))
    np.testing.assert_array_equal(loaded.labels_, model.labels_)
    np.testing.assert_array_equal(loaded.predict(views), model.predict(views))


def test_it_has_a_summary_a_report_and_a_place_in_comparisons():
    views, truth = make_blobs(60)
    model = METHODS[NAME](3, random_state=0).fit(views)
    summary = summarize(model, views, truth=truth)
    assert (summary.method, summary.n_clusters, summary.truth.ari) == ("StackedKMeans", 3, 1)
    assert "StackedKMeans" in render(summary)
    comparison = compare(views, 3, methods="all", truth=truth)
    found = {result.name: result for result in comparison.methods}[NAME]
    assert (found.error, found.ari) == (None, 1)
