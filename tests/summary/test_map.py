"""The map: samples of a cluster are close to each other, and every sample has the same place in any batch."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.cluster import KMeans
from threadpoolctl import threadpool_limits

from coview import OPMC, Concat, CoReg, Coview, FixedSize, InputError, TMvKSCR, load, save
from coview.summary import SampleMap, Summary, summarize
from coview.summary import map as sample_map
from coview.summary.gather import Given, summarize_with_positions
from coview.summary.map import arrange, place
from tests import naive
from tests.conftest import make_blobs

N_CLUSTERS = 4


def rays(n=200, n_components=3, noise=0.1, seed=0):
    """Scores near four rays, in the order of the clusters, at various distances from the origin."""
    rng = np.random.default_rng(seed)
    centres = np.vstack([np.eye(n_components), -np.ones(n_components) / np.sqrt(n_components)])[:N_CLUSTERS]
    labels = np.sort(np.arange(n) % len(centres))
    scores = centres[labels] + noise * rng.normal(size=(n, n_components))
    return scores * rng.uniform(0.1, 10, size=(n, 1)), labels


def nearest_cluster(positions, arranged, labels):
    distances = np.linalg.norm(positions[:, None] - arranged, axis=2)
    return labels[distances.argmin(axis=1)]


@pytest.fixture(scope="module")
def groups():
    scores, labels = rays()
    return scores, labels, arrange(scores)


def test_samples_of_a_cluster_are_close_to_each_other(groups):
    _, labels, positions = groups
    assert positions.shape == (200, 2)
    assert np.abs(positions).max() == pytest.approx(1)
    distances = np.linalg.norm(positions[:, None] - positions, axis=2)
    np.fill_diagonal(distances, np.inf)
    assert (labels[distances.argmin(axis=1)] == labels).mean() > 0.98


def test_the_map_depends_on_directions_only(groups):
    scores, _, positions = groups
    longer = scores * np.random.default_rng(1).uniform(1, 3, size=(len(scores), 1))
    np.testing.assert_array_equal(arrange(longer), positions)


@pytest.mark.parametrize("n_threads", [1, 2])
def test_the_map_does_not_depend_on_the_number_of_threads(groups, n_threads):
    scores, _, positions = groups
    with threadpool_limits(n_threads):
        np.testing.assert_array_equal(arrange(scores), positions)


@pytest.mark.parametrize("n", [1, 2, 3, 7, 8, 9, 12])
@pytest.mark.parametrize("n_components", [1, 2, 5])
def test_few_samples_have_a_map(n, n_components):
    positions = arrange(np.random.default_rng(0).normal(size=(n, n_components)))
    assert positions.shape == (n, 2)
    assert np.abs(positions).max() <= 1
    assert len(np.unique(positions, axis=0)) == n


@pytest.mark.parametrize("n_components", [1, 3])
def test_equal_samples_have_the_same_place(n_components):
    scores = np.ones((20, n_components))
    placed = place(scores, scores, arrange(scores))
    np.testing.assert_array_equal(placed, placed[[0] * 20])
    assert np.isfinite(arrange(np.zeros((20, n_components)))).all()
    if n_components > 1:
        repeated, _ = rays(60)
        positions = arrange(np.vstack([repeated, 2 * repeated]))
        np.testing.assert_array_equal(positions[:60], positions[60:])


def test_one_component_is_stacked_by_its_score():
    scores = np.r_[np.random.default_rng(0).normal([[-3], [2]], 0.3, size=(2, 100)).ravel(), 2.0]
    x, y = arrange(scores[:, None]).T
    order = np.argsort(scores)
    assert (np.diff(x[order]) >= 0).all()
    np.testing.assert_allclose(np.corrcoef(x, scores)[0, 1], 1)
    assert len(np.unique(np.column_stack([x, y]).round(9), axis=0)) == len(np.unique(scores.round(9)))
    assert np.abs(y).max() <= 0.5


def test_places_are_those_of_the_reference_implementation(groups):
    scores, _, positions = groups
    new, _ = rays(30, seed=1)
    directions = [each / np.linalg.norm(each, axis=1, keepdims=True) for each in (new, scores)]
    expected = naive.places_on_map(*directions, positions)
    np.testing.assert_allclose(place(new, scores, positions), expected, atol=1e-4)  # directions have six decimals


def test_arranged_samples_keep_their_place(groups):
    scores, _, positions = groups
    # The other neighbours have a weight of about (1e-5 / distance)².
    np.testing.assert_allclose(place(scores, scores, positions), positions, atol=1e-4)


def test_a_sample_has_the_same_place_alone_and_in_any_batch(groups):
    scores, labels, positions = groups
    new, expected = rays(400, seed=2)
    together = place(new, scores, positions)
    np.testing.assert_array_equal(np.vstack([place(row[None], scores, positions) for row in new]), together)
    np.testing.assert_array_equal(place(new[::-1], scores, positions)[::-1], together)
    assert (nearest_cluster(together, positions, labels) == expected).mean() > 0.97


MODELS = {
    "tmvkscr": TMvKSCR(3, random_state=0),
    "two clusters": TMvKSCR(2, random_state=0),
    "coview": Coview(3, random_state=0),
    "fixed size": FixedSize(TMvKSCR(3, random_state=0), n_train=60, random_state=0),
    "no predict": CoReg(3, random_state=0),
    "no kept scores": Concat(KMeans(3, n_init=1, random_state=0)),
}


@pytest.fixture
def few(monkeypatch):
    """Arrange few samples, so that most are placed by these."""
    monkeypatch.setattr(sample_map, "ARRANGED", 40)


@pytest.mark.parametrize("name", MODELS)
def test_summaries_have_a_map_that_shows_the_clusters(name, blobs, few):
    views, _ = blobs
    model = MODELS[name].fit(views)
    summary, positions = summarize_with_positions(model, model.check(views), Given())
    assert len(summary.map.rows) == len(summary.map.positions) == 40
    np.testing.assert_allclose(np.array(summary.points.positions), positions, atol=1e-4)  # five digits
    distances = np.linalg.norm(positions[:, None] - positions, axis=2)
    np.fill_diagonal(distances, np.inf)
    labels = np.array(summary.points.labels)
    assert (labels[distances.argmin(axis=1)] == labels).mean() > 0.95
    assert Summary.from_json(summary.to_json()) == summary


@pytest.mark.parametrize("name", ["tmvkscr", "coview", "fixed size"])
def test_new_samples_are_placed_on_the_map_of_the_training_samples(name, blobs, few, tmp_path):
    views, _ = blobs
    model = MODELS[name].fit(views)
    of_training = summarize(model, views)
    rows = np.arange(0, len(model.labels_), 3)
    new = {name: x[rows] for name, x in views.items()}
    loaded = load(save(model, tmp_path / "model.safetensors"))
    placed = summarize(loaded, new, on_map=Summary.from_json(of_training.to_json()).map)
    assert placed.map == of_training.map
    assert of_training.of_training
    assert not placed.of_training
    expected = np.array(of_training.points.positions)[rows]
    # The same samples have the same scores up to rounding errors.
    np.testing.assert_allclose(np.array(placed.points.positions), expected, atol=1e-3)
    again = summarize(loaded, new)  # computed again from the scores that the model keeps
    assert again.map == of_training.map


def test_samples_that_lack_views_have_a_place():
    views, truth = make_blobs()
    views["a"][::4] = np.nan
    model = TMvKSCR(3, random_state=0).fit(views)
    positions = np.array(summarize(model, views).points.positions)
    complete = np.arange(len(truth)) % 4 > 0
    assert (
        nearest_cluster(positions[~complete], positions[complete], truth[complete]) == truth[~complete]
    ).mean() > 0.9


def test_methods_without_scores_have_no_map(blobs):
    views, _ = blobs
    model = OPMC(3, random_state=0).fit(views)
    summary, positions = summarize_with_positions(model, model.check(views), Given())
    assert summary.map is positions is None
    assert summary.points.positions == ()


def test_the_map_of_another_model_is_refused(blobs):
    views, _ = blobs
    model = TMvKSCR(3, random_state=0).fit(views)
    with pytest.raises(InputError, match="on_map is not a map of this model"):
        summarize(model, views, on_map=SampleMap(model.model_.fingerprint, (10**6,), ((0.0, 0.0),)))


def test_a_changed_map_is_refused(blobs):
    views, _ = blobs
    summary = summarize(TMvKSCR(3, random_state=0).fit(views), views)
    shorter = replace(summary, map=replace(summary.map, positions=summary.map.positions[1:]))
    with pytest.raises(InputError, match="'map'"):
        Summary.from_json(shorter.to_json())
    without = replace(summary, points=replace(summary.points, positions=()))
    with pytest.raises(InputError, match="'points'"):
        Summary.from_json(without.to_json())


def test_the_map_of_other_training_samples_is_refused():
    views = make_blobs(60, n_clusters=3)[0]
    one, other = (TMvKSCR(3, random_state=0).fit({name: x[rows] for name, x in views.items()}) for rows in
                  (slice(0, 40), slice(20, 60)))  # fmt: skip
    of_other = summarize(other, {name: x[20:] for name, x in views.items()}).map
    with pytest.raises(InputError, match="on_map is not a map of this model"):
        summarize(one, views, on_map=of_other)


def test_arranged_samples_of_one_component_keep_their_position():
    views = make_blobs(200, n_clusters=2, spread=8.0)[0]  # one component
    summary = summarize(TMvKSCR(2, random_state=0).fit(views), views)
    placed = dict(zip(summary.points.rows, summary.points.positions, strict=True))
    assert [placed[row] for row in summary.map.rows] == list(summary.map.positions)
