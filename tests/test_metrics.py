import itertools

import numpy as np
import pytest

from coview import InputError
from coview.metrics import accuracy, purity, scores


def best_over_all_matchings(truth, labels):
    """Return the accuracy by an exhaustive search over all matchings."""
    clusters, classes = sorted(set(labels)), sorted(set(truth))
    names = classes + [None] * len(clusters)
    return max(
        np.mean([name[b] == a for a, b in zip(truth, labels, strict=True)])
        for chosen in itertools.permutations(names, len(clusters))
        for name in [dict(zip(clusters, chosen, strict=True))]
    )


@pytest.mark.parametrize(("n_classes", "n_clusters"), [(1, 1), (1, 3), (3, 1), (2, 4), (4, 2), (3, 3)])
def test_accuracy_is_the_best_of_all_matchings(n_classes, n_clusters):
    rng = np.random.default_rng(0)
    for _ in range(10):
        truth, labels = rng.integers(n_classes, size=12), rng.integers(n_clusters, size=12)
        assert accuracy(truth, labels) == pytest.approx(best_over_all_matchings(truth.tolist(), labels.tolist()))


def test_the_best_matching_is_not_the_greedy_one():
    truth = np.repeat([0, 0, 1, 1], [5, 4, 4, 0])
    labels = np.repeat([0, 1, 0, 1], [5, 4, 4, 0])
    assert accuracy(truth, labels) == pytest.approx(
        8 / 13
    )  # cluster 0 is matched with class 1 although it has 5 samples of class 0


def test_purity_takes_the_most_frequent_class_of_every_cluster():
    assert purity([0, 0, 1, 1, 2, 2], [0, 0, 0, 1, 1, 1]) == pytest.approx(4 / 6)
    assert purity([0, 0, 0, 1], [5, 5, 9, 9]) == pytest.approx(3 / 4)


def test_purity_is_never_below_accuracy():
    rng = np.random.default_rng(0)
    for _ in range(50):
        truth, labels = rng.integers(4, size=30), rng.integers(6, size=30)
        assert accuracy(truth, labels) <= purity(truth, labels)


def test_the_names_of_classes_and_clusters_do_not_matter():
    truth, labels = ["b", "a", "a", "c", "b"], np.array([-7, 40, 40, 3, 3])
    renamed = scores([1, 0, 0, 2, 1], [0, 2, 2, 1, 1])
    assert scores(truth, labels) == pytest.approx(renamed)
    assert list(renamed) == ["ari", "nmi", "accuracy", "purity"]
    assert renamed["accuracy"] == renamed["purity"] == pytest.approx(0.8)


def test_ari_and_nmi_by_hand():
    # Of the 6 pairs, 1 is together in both, 2 in the truth and 3 in the labels: (1 - 2·3/6) / ((2+3)/2 - 2·3/6) = 0.
    found = scores([0, 0, 1, 1], [0, 0, 0, 1])
    assert found["ari"] == pytest.approx(0)
    entropy = -(0.75 * np.log(0.75) + 0.25 * np.log(0.25))
    shared = np.log(2) + entropy + 0.5 * np.log(0.5) + 2 * 0.25 * np.log(0.25)
    assert found["nmi"] == pytest.approx(2 * shared / (np.log(2) + entropy))


@pytest.mark.parametrize("metric", [accuracy, purity, scores])
@pytest.mark.parametrize(
    ("truth", "labels", "words"),
    [
        ([0, 1], [0, 1, 1], ["truth has 2", "labels has 3"]),
        ([], [], ["empty"]),
        ([[0, 1]], [0, 1], ["truth is 2-D", "1-D"]),
        ([0, 1], 3, ["labels is 0-D"]),
    ],
)
def test_invalid_input_is_named(metric, truth, labels, words):
    with pytest.raises(InputError) as caught:
        metric(truth, labels)
    for word in words:
        assert word in str(caught.value)
