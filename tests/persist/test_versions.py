"""Saved models of earlier versions, see RELEASING.md."""

from pathlib import Path

import numpy as np
import pytest

from coview.errors import ModelFileError
from coview.persist import describe_model, load, save
from coview.persist.file import open_file, read_arrays, read_document, write_file

# Written by commit 726686a, before the parameter `recall` of graphs: TMvKSCR(2, kernel=[NeighborGraph(4), "auto"],
# random_state=0), fitted on rows(12).
STORED = Path(__file__).with_name("format1.safetensors")


def rows(n_samples, shift=0.0):
    """Two views of two clusters, the even and the odd rows."""
    i = np.arange(n_samples)
    return {f"view{k}": np.stack([5 * (i % 2) + shift, np.sin(k * i)], axis=1) for k in (1, 2)}


def test_a_model_of_an_earlier_version_predicts_as_before():
    model = load(STORED)
    np.testing.assert_array_equal(model.labels_, [0, 1] * 6)
    np.testing.assert_array_equal(model.predict(rows(20, shift=0.1)), [0, 1] * 10)
    assert describe_model(STORED)["method"] == "TMvKSCR"


def test_parameters_that_a_file_lacks_have_their_defaults(tmp_path):
    model = load(STORED)
    assert model.kernel[0].recall == 0.95
    again = load(save(model, tmp_path / "model.safetensors"))
    assert again.kernel == model.kernel


def test_only_parameters_that_are_newer_than_the_format_may_be_missing(tmp_path):
    with open_file(STORED) as file:
        document = read_document(file)
        arrays = read_arrays(file, document)
    del document["model"]["parameters"]["rho"]
    write_file(tmp_path / "model.safetensors", document["model"], arrays)
    with pytest.raises(ModelFileError, match="parameters: missing: 'rho'"):
        load(tmp_path / "model.safetensors")
