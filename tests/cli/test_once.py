"""What a run computes for each sample is computed once, however many files have it."""

from collections import Counter

import pytest

from coview.model.model import Model
from tests.cli.running import call

COLUMNS = ("membership", "usualness", "contributions")


@pytest.fixture
def samples(monkeypatch):
    """The number of samples for which a model has computed each column."""
    counts = Counter()
    for name in COLUMNS:
        method = getattr(Model, name)

        def counted(model, views, name=name, method=method):
            counts[name] += views.n_samples
            return method(model, views)

        monkeypatch.setattr(Model, name, counted)
    return counts


@pytest.mark.parametrize("method", ["coview", "tmvkscr"])
def test_label_file_summary_and_report_have_the_same_columns(method, data, tmp_path, capsys, samples):
    run = tmp_path / "run"
    assert call(capsys, "fit", *data["train_files"], "--ids=id", "-k3", f"-m{method}", "-o", run)[0] == 0
    assert samples == dict.fromkeys(COLUMNS, 90)
    samples.clear()
    command = ["predict", run, *data["new_files"], "--ids=id", "-o", tmp_path / "new.csv"]
    assert call(capsys, *command, "--report", tmp_path / "new.html")[0] == 0
    assert samples == dict.fromkeys(COLUMNS, len(next(iter(data["new"].values()))))
