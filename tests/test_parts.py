import warnings
from concurrent.futures import ThreadPoolExecutor

import pytest
from sklearn.exceptions import ConvergenceWarning

from coview import Coview, TMvKSCR, stability
from coview.parts import is_part_of_measurement, part_of_measurement, warn
from coview.runtime import Workers
from tests.conftest import make_blobs


def test_parts_give_no_warnings():
    with part_of_measurement(), part_of_measurement():
        warn("not given", UserWarning, stacklevel=1)
    with pytest.warns(UserWarning, match="given") as caught:
        warn("given", UserWarning, stacklevel=1)
    assert caught[0].filename == __file__
    assert not is_part_of_measurement()


def test_a_part_ends_with_its_error():
    with pytest.raises(ValueError, match="failed"), part_of_measurement():
        raise ValueError("failed")
    assert not is_part_of_measurement()
    with pytest.warns(UserWarning, match="given"):
        warn("given", UserWarning, stacklevel=1)


def test_other_threads_are_not_parts():
    with ThreadPoolExecutor(1) as pool, part_of_measurement():
        assert not pool.submit(is_part_of_measurement).result()


def test_threads_of_a_part_belong_to_it():
    with Workers(2) as workers, part_of_measurement():
        assert workers.map(lambda _: is_part_of_measurement(), range(4)) == [True] * 4


def test_models_that_are_only_measured_have_no_further_eigenvalues():
    views, _ = make_blobs(60)
    with part_of_measurement():
        measured = TMvKSCR(3, random_state=0).fit(views)
    kept = TMvKSCR(3, random_state=0).fit(views)
    assert len(measured._further_eigenvalues) == 0 < len(kept._further_eigenvalues)
    assert (measured.scores_ == kept.scores_).all()


@pytest.mark.parametrize("model", [TMvKSCR(3, random_state=0), Coview(3, random_state=0)], ids=repr)
def test_measured_fits_do_not_change_the_filters_of_warnings(model, monkeypatch):
    """They belong to the process: fits in two threads could leave each other's filters behind."""
    views, _ = make_blobs(60)
    fit, seen = type(model)._fit, []

    def recorded(self, X):
        seen.append((warnings.filters, list(warnings.filters)))
        return fit(self, X)

    monkeypatch.setattr(type(model), "_fit", recorded)
    before = warnings.filters, list(warnings.filters)
    stability(model.fit(views), views, n_repeats=2, random_state=0)
    assert len(seen) == 3
    assert all(each[0] is before[0] and each[1] == before[1] for each in seen)


def test_fewer_clusters_of_a_measured_model_are_not_reported():
    views, _ = make_blobs(6, n_clusters=2)
    with pytest.warns(ConvergenceWarning, match="4 clusters are requested for 6 training samples"):
        TMvKSCR(4, random_state=0).fit(views)
    with part_of_measurement():
        TMvKSCR(4, random_state=0).fit(views)  # without a warning
