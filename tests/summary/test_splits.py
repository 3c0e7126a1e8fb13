"""The tree of clusters of fitted models: from their first components, or from the consensus of `Coview`."""

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

from coview import OPMC, Codebook, Concat, Coview, FixedSize, InputError, TMvKSCR, load, save
from coview.summary import Summary, splits, summarize
from tests.conftest import make_blobs


@pytest.fixture(scope="module")
def pairs():
    """Four clusters in two pairs: the pairs are far apart, the clusters of a pair are close."""
    rng = np.random.default_rng(0)
    truth = np.repeat([0, 1, 2, 3], [40, 35, 30, 25])
    centres = np.array([[0.0, 0.0, 0.0], [0.0, 5.0, 0.0], [30.0, 0.0, 0.0], [30.0, 0.0, 5.0]])
    views = {name: centres[truth] + rng.normal(size=(len(truth), 3)) for name in "ab"}
    return views, truth


def levels(branches):
    """The sizes of the clusters by number of clusters."""
    found = {}
    for branch in branches:
        for k, c in ((branch.n_clusters, branch.cluster), (branch.next_n_clusters, branch.next_cluster)):
            found.setdefault(k, {}).setdefault(c, 0)
    for branch in branches:
        found[branch.n_clusters][branch.cluster] += branch.size
    last = max(found)
    for branch in branches:
        if branch.next_n_clusters == last:
            found[last][branch.next_cluster] += branch.size
    return found


@pytest.mark.parametrize(
    "model",
    [
        TMvKSCR(4, random_state=0),
        TMvKSCR(4, assigner=Codebook(), random_state=0),
        Coview(4, random_state=0),
        Coview(random_state=0),
        FixedSize(TMvKSCR(4, random_state=0), n_train=100, random_state=0),
    ],
    ids=["tmvkscr", "codebook", "coview", "selected", "fixed size"],
)
def test_the_tree_has_all_numbers_up_to_that_of_the_model(model, pairs):
    views, truth = pairs
    summary = summarize(model.fit(views), views)
    found = levels(summary.tree)
    assert list(found) == [2, 3, 4]
    n = 100 if isinstance(model, FixedSize) else len(truth)
    assert {sum(sizes.values()) for sizes in found.values()} == {n}
    if not isinstance(model, FixedSize):
        assert found[4] == {cluster.label: cluster.size for cluster in summary.clusters}
        # The graphs of Coview have no edges between the pairs, so that the order of the splits is arbitrary.
        assert isinstance(model, Coview) or sorted(found[2].values()) == [55, 75]  # the pairs
    assert Summary.from_json(summary.to_json()) == summary


@pytest.mark.parametrize("k", [2, 3])
def test_labels_for_fewer_clusters_are_those_of_a_model_with_fewer_components(k, pairs):
    views, _ = pairs
    model, fewer = (TMvKSCR(n_clusters, random_state=0).fit(views) for n_clusters in (4, k))
    assert adjusted_rand_score(model.model_.predictor.fewer_clusters(model.scores_, k), fewer.labels_) == 1


def test_the_tree_of_coview_has_the_levels_of_its_consensus(pairs, tmp_path):
    views, _ = pairs
    model = Coview(6, random_state=0).fit(views)
    branches = splits.tree_of(model.model_)
    found = levels(branches)
    assert list(found) == [2, 3, 4, 5, 6]
    for k in (2, 3, 4, 5):
        assert sorted(found[k].values()) == sorted(np.bincount(model.model_.level(k)))
    assert found[6] == dict(enumerate(np.bincount(model.labels_).tolist()))
    # Levels are nested: each cluster is a part of a single one of the level before.
    parents = {}
    for branch in branches:
        parents.setdefault((branch.next_n_clusters, branch.next_cluster), set()).add(branch.cluster)
    assert {len(each) for each in parents.values()} == {1}
    assert splits.tree_of(load(save(model, tmp_path / "model.safetensors")).model_) == branches


def test_new_samples_have_the_tree_of_the_training_samples(pairs):
    views, _ = pairs
    model = TMvKSCR(4, random_state=0).fit(views)
    new = {name: x[::2] for name, x in views.items()}
    assert summarize(model, new).tree == summarize(model, views).tree


def test_many_clusters_have_twenty_numbers_and_their_own(monkeypatch):
    monkeypatch.setattr(splits, "MOST_NUMBERS", 4)
    views, _ = make_blobs(n_clusters=8, n_samples=160)
    assert list(levels(summarize(TMvKSCR(8, random_state=0).fit(views), views).tree)) == [2, 3, 4, 8]


@pytest.mark.parametrize(
    "model",
    [TMvKSCR(2, random_state=0), OPMC(4, random_state=0), Concat(KMeans(4, n_init=1, random_state=0)), Coview(1)],
)
def test_models_without_a_tree(model, pairs):
    views, _ = pairs
    assert summarize(model.fit(views), views).tree is None


def test_a_changed_tree_is_refused(pairs):
    views, _ = pairs
    text = summarize(TMvKSCR(4, random_state=0).fit(views), views).to_json()
    with pytest.raises(InputError, match="tree"):
        Summary.from_json(text.replace('"tree":[{"n_clusters":2', '"tree":[{"n_clusters":"2"', 1))
