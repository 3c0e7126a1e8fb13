import warnings
from concurrent.futures import ThreadPoolExecutor

import pytest
from sklearn.exceptions import ConvergenceWarning

from coview import Concat, Consensus, TMvKSCR, Tuned
from coview.parts import is_part_of_fit, part_of_fit, warn
from tests.conftest import make_blobs


def test_parts_may_give_no_warnings():
    with part_of_fit(warns=False), part_of_fit():
        warn("not given", UserWarning, stacklevel=1)
    with pytest.warns(UserWarning, match="given") as caught, part_of_fit():
        warn("given", UserWarning, stacklevel=1)
    assert caught[0].filename == __file__
    assert not is_part_of_fit()


def test_a_part_ends_with_its_error():
    with pytest.raises(ValueError, match="failed"), part_of_fit(warns=False):
        raise ValueError("failed")
    assert not is_part_of_fit()
    with pytest.warns(UserWarning, match="given"):
        warn("given", UserWarning, stacklevel=1)


def test_other_threads_are_not_parts():
    with ThreadPoolExecutor(1) as pool, part_of_fit():
        assert not pool.submit(is_part_of_fit).result()


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
