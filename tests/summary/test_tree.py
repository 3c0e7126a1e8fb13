"""The tree of clusters of fitted models: from their first components, or from the search of `Tuned`."""

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

from coview import OPMC, Codebook, Concat, Consensus, FixedSize, InputError, MvKSC, TMvKSCR, Tuned, load, save
from coview.core.tree import cluster_tree
from coview.summary import Summary, summarize, tree
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
        Consensus([TMvKSCR(4, random_state=0), TMvKSCR(4, random_state=1)], random_state=0),
        Tuned(4, random_state=0),
        FixedSize(TMvKSCR(4, random_state=0), n_train=100, random_state=0),
    ],
    ids=["tmvkscr", "codebook", "consensus", "tuned", "fixed size"],
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
        # The graphs of Tuned have no edges between the pairs, so that the order of the splits is arbitrary.
        assert isinstance(model, Tuned) or sorted(found[2].values()) == [55, 75]  # the pairs
    assert Summary.from_json(summary.to_json()) == summary


@pytest.mark.parametrize("k", [2, 3])
def test_labels_for_fewer_clusters_are_those_of_a_model_with_fewer_components(k, pairs):
    views, _ = pairs
    model, fewer = (TMvKSCR(n_clusters, random_state=0).fit(views) for n_clusters in (4, k))
    assert adjusted_rand_score(model._fewer_clusters(model.scores_, k), fewer.labels_) == 1
    consensus, less = (
        Consensus([TMvKSCR(n, random_state=0), TMvKSCR(n, kernel="auto", rho=0.5, random_state=0)], random_state=0)
        for n in (4, k)
    )
    found = consensus.fit(views)._fewer_clusters(consensus.scores_, k)
    assert adjusted_rand_score(found, less.fit(views).labels_) > 0.95  # weights and directions are those of 4 clusters


def test_the_tree_of_several_numbers_is_that_of_the_search(pairs, tmp_path):
    views, truth = pairs
    model = Tuned([2, 4, 6], random_state=0).fit(views)
    branches = tree.tree_of(model)
    found = levels(branches)
    assert list(found) == [2, 4, 6]
    rows, labels = model._tree_labels()
    assert list(labels) == [2, 4, 6]
    sizes = np.bincount(model.labels_[rows])
    assert found[model.n_clusters_] == {c: size for c, size in enumerate(sizes.tolist()) if size}
    expected = cluster_tree({**labels, model.n_clusters_: model.labels_[rows]}, model.n_clusters_)
    assert branches == expected
    assert tree.tree_of(load(save(model, tmp_path / "model.safetensors"))) == branches
    reclustered = FixedSize(Tuned([2, 4], random_state=0), n_train=80, random_state=0).fit(views)
    kept = levels(summarize(reclustered, views).tree)[reclustered.n_clusters_]
    assert set(kept) <= set(reclustered.labels_.tolist())
    assert len(truth) > 80


def test_new_samples_have_the_tree_of_the_training_samples(pairs):
    views, _ = pairs
    model = TMvKSCR(4, random_state=0).fit(views)
    new = {name: x[::2] for name, x in views.items()}
    assert summarize(model, new).tree == summarize(model, views).tree


def test_one_cluster_that_replaces_others_keeps_the_tree():
    rng = np.random.default_rng(0)
    model = Tuned([1, 2, 3], random_state=0).fit([rng.normal(size=(120, 4)), rng.normal(size=(120, 3))])
    assert model.n_clusters_ == 1
    assert list(levels(tree.tree_of(model))) == [2, 3]


def test_many_clusters_have_twenty_numbers_and_their_own(monkeypatch):
    monkeypatch.setattr(tree, "MOST_NUMBERS", 4)
    views, _ = make_blobs(n_clusters=8, n_samples=160)
    assert list(levels(summarize(TMvKSCR(8, random_state=0).fit(views), views).tree)) == [2, 3, 4, 8]


@pytest.mark.parametrize(
    "model",
    [TMvKSCR(2, random_state=0), OPMC(4, random_state=0), Concat(KMeans(4, n_init=1, random_state=0)), Tuned(1)],
)
def test_models_without_a_tree(model, pairs):
    views, _ = pairs
    assert summarize(model.fit(views), views).tree is None


def test_the_eigenvalues_of_the_models_of_a_consensus_are_relative_to_their_largest(pairs):
    views, _ = pairs
    models = [TMvKSCR(4, random_state=0), MvKSC(4, random_state=0)]
    consensus = Consensus(models, random_state=0).fit(views)
    found = summarize(consensus, views).model_eigenvalues
    first, second = consensus.estimators_
    expected = np.append(first.eigenvalues_, first._further_eigenvalues) / first.eigenvalues_[0]
    np.testing.assert_allclose(found["model 1"], expected, rtol=1e-4)
    np.testing.assert_allclose(found["model 2"], second.eigenvalues_ / second.eigenvalues_[0], rtol=1e-4)
    tuned = summarize(Tuned(4, random_state=0).fit(views), views)
    weighted = [row.model for row in tuned.tuning.evaluations if row.weight is not None]
    assert list(tuned.model_eigenvalues) == weighted
    assert all(len(values) == 4 + 3 for values in tuned.model_eigenvalues.values())
    assert summarize(models[0].fit(views), views).model_eigenvalues is None


def test_a_changed_tree_is_refused(pairs):
    views, _ = pairs
    text = summarize(TMvKSCR(4, random_state=0).fit(views), views).to_json()
    with pytest.raises(InputError, match="tree"):
        Summary.from_json(text.replace('"tree":[{"n_clusters":2', '"tree":[{"n_clusters":"2"', 1))
