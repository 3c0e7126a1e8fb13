import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from coview import Concat, Consensus, TMvKSCR, Tuned
from coview.parts import is_kept, is_part_of_fit, part_of_fit, warn
from coview.runtime import Workers
from tests.conftest import make_blobs


def test_parts_may_give_no_warnings():
    with part_of_fit(kept=False), part_of_fit():
        warn("not given", UserWarning, stacklevel=1)
    with pytest.warns(UserWarning, match="given") as caught, part_of_fit():
        warn("given", UserWarning, stacklevel=1)
    assert caught[0].filename == __file__
    assert not is_part_of_fit()


def test_a_part_ends_with_its_error():
    with pytest.raises(ValueError, match="failed"), part_of_fit(kept=False):
        raise ValueError("failed")
    assert not is_part_of_fit()
    with pytest.warns(UserWarning, match="given"):
        warn("given", UserWarning, stacklevel=1)


def test_other_threads_are_not_parts():
    with ThreadPoolExecutor(1) as pool, part_of_fit():
        assert not pool.submit(is_part_of_fit).result()


def test_threads_of_a_part_belong_to_it():
    with Workers(2) as workers, part_of_fit(kept=False):
        assert workers.map(lambda _: (is_part_of_fit(), is_kept()), range(4)) == [(True, False)] * 4


def test_models_that_are_only_measured_have_no_further_eigenvalues():
    views, _ = make_blobs(60)
    with part_of_fit(kept=False):
        measured = TMvKSCR(3, random_state=0).fit(views)
    kept = TMvKSCR(3, random_state=0).fit(views)
    assert len(measured._further_eigenvalues) == 0 < len(kept._further_eigenvalues)
    assert np.array_equal(measured.scores_, kept.scores_)


@pytest.mark.parametrize("model", [Tuned(3, random_state=0), Consensus([TMvKSCR(3), Concat(TMvKSCR(3))])], ids=repr)
def test_inner_fits_do_not_change_the_filters_of_warnings(model, monkeypatch):
    """They belong to the process: fits in two threads could leave each other's filters behind."""
    inner, seen = TMvKSCR._latent_space, []

    def recorded(self, *arguments):
        seen.append((warnings.filters, list(warnings.filters)))
        return inner(self, *arguments)

    monkeypatch.setattr(TMvKSCR, "_latent_space", recorded)
    before = warnings.filters, list(warnings.filters)
    model.fit(make_blobs(60)[0])
    assert len(seen) > 1
    assert all(each[0] is before[0] and each[1] == before[1] for each in seen)


def test_fewer_clusters_of_an_inner_model_are_not_reported():
    views, _ = make_blobs(6, n_clusters=2)
    with pytest.warns(ConvergenceWarning, match="4 clusters are requested for 6 training samples"):
        TMvKSCR(4, random_state=0).fit(views)
    assert len(set(Consensus([TMvKSCR(4)], 2, random_state=0).fit(views).labels_)) == 2  # without a warning
