import csv
import json

import numpy as np
import pytest
from typer.testing import CliRunner

import coview
from coview.cli import app, main
from coview.datasets import _edge_orientations, _fourier_magnitudes, digits_views

runner = CliRunner()


def test_the_demo_writes_what_it_prints(tmp_path):
    result = runner.invoke(app, ["demo", "-o", str(tmp_path / "run")])
    assert result.exit_code == 0, result.output
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    with (tmp_path / "run" / "labels.csv").open() as file:
        labels = [int(row["cluster"]) for row in csv.DictReader(file)]
    assert len(labels) == summary["n_samples"] == 1797
    assert [labels.count(label) for label in range(10)] == summary["cluster_sizes"]
    assert f"ARI {summary['ari']:.3f}, NMI {summary['nmi']:.3f}" in result.output
    assert len(summary["eigenvalues"]) == 9
    assert summary["ari"] >= 0.60


def test_the_demo_views_are_three_different_descriptions():
    views, digits = digits_views()
    assert views.names == ("pixels", "fourier", "gradients")
    assert views.n_samples == len(digits) == 1797
    images = views["pixels"].reshape(-1, 8, 8)
    moved = np.roll(images, 1, axis=2)
    np.testing.assert_allclose(_fourier_magnitudes(moved), views["fourier"], atol=1e-12)  # does not see where
    turned = _edge_orientations(images[:, ::-1])  # upside down: orientations change, their total does not
    np.testing.assert_allclose(turned.sum(axis=1), views["gradients"].sum(axis=1), atol=1e-12)
    assert not np.allclose(turned, views["gradients"])


def test_version_and_help_and_mistakes():
    assert runner.invoke(app, ["--version"]).output.strip() == f"coview {coview.__version__}"
    assert "demo" in runner.invoke(app, ["--help"]).output
    assert runner.invoke(app, ["dmo"]).exit_code == 2


def test_the_console_script_runs(monkeypatch):
    monkeypatch.setattr("sys.argv", ["coview", "--version"])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 0


def test_a_folder_that_cannot_be_made_is_known_before_the_work(tmp_path):
    (tmp_path / "file").write_text("in the way")
    result = runner.invoke(app, ["demo", "-o", str(tmp_path / "file" / "run")])
    assert result.exit_code == 2
    assert "cannot make the folder" in result.output
