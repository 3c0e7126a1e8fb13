"""Stability: clusters and samples that models of half of the samples find again."""

import json
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.exceptions import NotFittedError

from coview import (
    KSC,
    OPMC,
    Concat,
    CoReg,
    Coview,
    FixedSize,
    InputError,
    PerView,
    Preprocessed,
    Stratified,
    TMvKSCR,
    load,
    save,
    stability,
    summarize,
)
from coview.certainty.stability import (
    ClusterStability,
    Stability,
    _halves,
    hennig_reading,
    large_clusters_only,
    summarize_halves,
)
from coview.summary import Refits, Summary
from coview.summary.sentences import refits_in_words
from tests import naive
from tests.conftest import make_blobs
from tests.summaries import bare, make_summary


def seeded(n_samples, n_repeats, seed):
    """The halves and the seeds of their models, as `stability` draws them."""
    rng = np.random.default_rng(seed)
    halves = _halves(n_samples, n_repeats, rng)
    return [(half, int(rng.integers(2**31))) for half in halves]


def overlapping(n_samples=90, spread=1.0):
    return make_blobs(n_samples, n_clusters=4, spread=spread)[0]


@pytest.mark.parametrize("method", [TMvKSCR(4), OPMC(4), CoReg(4)], ids=lambda method: type(method).__name__)
def test_stability_is_that_of_the_reference_implementation(method):
    views = overlapping()
    model = clone(method).set_params(random_state=0).fit(views)
    found = stability(model, views, n_repeats=5, random_state=3)
    halves = []
    for half, seed in seeded(90, 5, 3):
        refit = clone(method).set_params(random_state=seed).fit({name: x[half] for name, x in views.items()})
        if hasattr(refit, "predict"):
            halves.append(dict(enumerate(refit.predict(views).tolist())))
        else:
            halves.append(dict(zip(half.tolist(), refit.labels_.tolist(), strict=True)))
    clusters, samples = naive.stability(model.labels_.tolist(), halves)
    assert [each.jaccard for each in found.clusters] == pytest.approx(clusters)
    assert found.samples == pytest.approx(samples)
    assert len(set(found.samples)) > 2  # the clusters overlap
    assert found.predicts == hasattr(model, "predict")


@pytest.mark.parametrize("seed", range(20))
def test_random_labels_have_the_stability_of_the_reference_implementation(seed):
    rng = np.random.default_rng(seed)
    labels = np.array([3, 5, 8])[rng.integers(3, size=200)]  # so many that two ways to match them are not equally good
    halves = []
    for n_found in (2, 3, 4):  # fewer, as many and more clusters than the model
        rows = np.sort(rng.permutation(200)[: rng.integers(60, 201)])
        halves.append((rows, rng.integers(n_found, size=len(rows))))
    clusters, samples = summarize_halves(labels, halves)
    expected = naive.stability(
        labels.tolist(), [dict(zip(rows.tolist(), found.tolist(), strict=True)) for rows, found in halves]
    )
    assert [each.jaccard for each in clusters] == pytest.approx(expected[0])
    assert samples == pytest.approx(expected[1])


def test_a_cluster_without_labelled_members_has_no_stability():
    clusters, samples = summarize_halves(np.repeat([0, 1], 5), [(np.arange(5), np.full(5, 7))])
    assert clusters == (ClusterStability(0, 5, 1.0, 0), ClusterStability(1, 5, None, 0))
    assert samples == (1.0,) * 5 + (None,) * 5
    assert hennig_reading(None) == ""


def test_samples_of_a_cluster_that_is_merged_do_not_stay():
    labels = np.repeat([0, 1], [10, 5])
    clusters, samples = summarize_halves(labels, [(np.arange(15), np.zeros(15, dtype=int))])
    assert [each.jaccard for each in clusters] == pytest.approx([10 / 15, 5 / 15])
    assert [each.dissolved for each in clusters] == [0, 1]
    assert samples == (1.0,) * 10 + (0.0,) * 5


@pytest.mark.parametrize(
    ("jaccard", "words"),
    [(0.0, "not to be trusted"), (0.599, "not to be trusted"), (0.6, "doubtful"), (0.749, "doubtful"),
     (0.75, "stable"), (1.0, "stable")],
)  # fmt: skip
def test_clusters_are_read_as_hennig_does(jaccard, words):
    assert hennig_reading(jaccard) == words


def test_a_stability_is_shown_with_the_digits_that_decide_on_its_reading():
    indices = (0.59999, 0.6 - 1e-12, 0.7496)  # the second is 0.6 less a rounding error
    found = Stability(3, 30, True, tuple(ClusterStability(i, 9, x, 0) for i, x in enumerate(indices)), ())
    assert repr(found) == "Stability(3 models of 30 samples; 0: 0.59999, 1: 0.60, 2: 0.7496)"
    assert [row["reading"] for row in found.table()] == ["not to be trusted", "doubtful", "doubtful"]
    assert "<td>0.59999</td>" in found._repr_html_()


@pytest.mark.parametrize(
    "model",
    [
        TMvKSCR(3, kernel="rbf"),
        Preprocessed(TMvKSCR(3), steps="standard"),
        FixedSize(TMvKSCR(3), n_train=80),
        FixedSize(TMvKSCR(3), n_train=0.5, select=Stratified(np.arange(120) % 2)),
        FixedSize(Coview(3), n_train=80),
        Concat(KSC(3)),
        Concat(KMeans(3, n_init=3)),
        PerView(KSC(3)),
        Coview(3),
        Coview("auto"),
        Preprocessed(Coview(3), steps="l2"),
    ],
    ids=lambda model: repr(model)[:40],
)
def test_well_separated_clusters_are_stable_for_every_model(model):
    views, _ = make_blobs(120, spread=8.0)
    found = stability(clone(model).fit(views), views, n_repeats=2, random_state=0)
    assert found.n_repeats == 2
    assert found.n_drawn == 60
    assert [row["reading"] for row in found.table()] == ["stable"] * 3
    assert min(found.samples) == 1.0


def test_noise_is_not_stable():
    rng = np.random.default_rng(0)
    views = [rng.normal(size=(200, 5)), rng.normal(size=(200, 8))]
    found = stability(TMvKSCR(5, random_state=0).fit(views), views, n_repeats=6, random_state=0)
    assert {row["reading"] for row in found.table()} == {"not to be trusted"}
    assert np.mean(found.samples) < 0.75


@pytest.mark.parametrize("wrap", [lambda model: model, lambda model: FixedSize(model, n_train=100, random_state=0)])
def test_the_number_of_clusters_is_not_selected_again(wrap, monkeypatch):
    views, _ = make_blobs(120, spread=8.0)
    model = wrap(Coview("auto", random_state=0)).fit(views)
    given = wrap(Coview(3, random_state=0)).fit(views)
    selecting = "coview.evaluate.coview.fit_with_selected_number"
    monkeypatch.setattr(selecting, lambda *_: pytest.fail("the number is selected again"))
    found = stability(model, views, n_repeats=2, random_state=0)
    assert len(found.clusters) == model.n_clusters_ == 3
    assert found == stability(given, views, n_repeats=2, random_state=0)


def test_the_result_depends_on_the_seed_and_not_on_the_number_of_threads():
    views = overlapping()
    model = TMvKSCR(4).fit(views)  # the model itself has no seed
    alone = stability(model, views, n_repeats=6, n_jobs=1, random_state=0)
    assert alone == stability(model, views, n_repeats=6, n_jobs=3, random_state=0)
    assert alone != stability(model, views, n_repeats=6, n_jobs=1, random_state=1)


def test_neither_model_nor_views_are_changed(tmp_path):
    views, _ = make_blobs(60)
    given = {name: x.copy() for name, x in views.items()}
    model = Coview(3, random_state=0).fit(views)
    first = save(model, tmp_path / "before.safetensors")
    stability(model, views, n_repeats=2, random_state=0)
    assert first.read_bytes() == save(model, tmp_path / "after.safetensors").read_bytes()
    for name, x in views.items():
        np.testing.assert_array_equal(x, given[name])
    assert stability(load(first), views, n_repeats=2, random_state=0) == stability(
        model, views, n_repeats=2, random_state=0
    )


@pytest.mark.parametrize("model", [TMvKSCR(3, random_state=0), Coview(3, random_state=0)])
def test_samples_may_lack_views(model):
    views, _ = make_blobs(120, spread=8.0)
    views["a"][:30] = np.nan
    views["b"][30:50] = np.nan
    found = stability(clone(model).fit(views), views, n_repeats=4, random_state=0)
    assert found.n_repeats == 4
    assert min(found.samples) > 0.7
    assert all(row["reading"] == "stable" for row in found.table())


@pytest.mark.parametrize("method", [TMvKSCR, CoReg])
def test_the_rows_and_columns_of_a_precomputed_kernel_are_drawn(method):
    views, _ = make_blobs(90, spread=8.0)
    grams = {name: np.exp(-((x[:, None] - x[None]) ** 2).sum(axis=2) / 40) for name, x in views.items()}
    found = stability(method(3, kernel="precomputed", random_state=0).fit(grams), grams, n_repeats=2, random_state=0)
    assert [each.jaccard for each in found.clusters] == pytest.approx([1.0] * 3)


def test_each_sample_is_in_one_half_of_each_pair():
    halves = _halves(11, 5, np.random.default_rng(0))
    assert [len(half) for half in halves] == [6, 5, 6, 5, 6]
    for one, other in zip(halves[::2], halves[1::2], strict=False):
        assert sorted([*one, *other]) == list(range(11))
        assert (np.diff(one) > 0).all()


def test_methods_that_cannot_label_new_samples_label_their_own_half():
    views, _ = make_blobs(60, spread=8.0)
    model = CoReg(3, random_state=0).fit(views)
    found = stability(model, views, n_repeats=1, random_state=0)
    assert not found.predicts
    assert sum(each is None for each in found.samples) == 30
    others = {name: x[::-1] for name, x in views.items()}
    with pytest.raises(InputError, match="CoReg cannot label new samples, and these 60 are not the 60 training"):
        stability(model, others, n_repeats=1)


def test_new_samples_can_be_given_to_a_model_that_labels_them():
    views, _ = make_blobs(120, spread=8.0)
    model = TMvKSCR(3, random_state=0).fit({name: x[:60] for name, x in views.items()})
    found = stability(model, views, n_repeats=2, random_state=0)
    assert len(found.samples) == 120
    assert min(found.samples) == 1.0


def test_halves_on_which_the_method_fails_are_left_out():
    views, _ = make_blobs(5, spread=8.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # three clusters of five samples
        model = OPMC(3, random_state=0).fit(views)
    found = stability(model, views, n_repeats=4, random_state=0)
    assert found.n_repeats == 2  # those of three samples, not those of two
    some = {name: x[:4] for name, x in views.items()}
    with pytest.raises(InputError, match=r"cannot be fitted on half of the 4 samples \(n_samples=2 is too few"):
        stability(model, some, n_repeats=4, random_state=0)


def test_progress_is_reported_after_each_model():
    views, _ = make_blobs(60, spread=8.0)
    model, calls = TMvKSCR(3, random_state=0).fit(views), []
    stability(model, views, 3, n_jobs=2, progress=lambda *call: calls.append(call), random_state=0)
    assert calls == [("stability", i, 3) for i in (1, 2, 3)]


def test_what_cannot_be_used_is_refused():
    views, _ = make_blobs(60)
    model = TMvKSCR(3, random_state=0).fit(views)
    with pytest.raises(InputError, match="n_repeats=0: expected an integer of at least 1"):
        stability(model, views, n_repeats=0)
    with pytest.raises(InputError, match="random_state='x': expected an integer"):
        stability(model, views, random_state="x")
    with pytest.raises(TypeError, match="model is a KMeans; give a fitted method or wrapper of this library"):
        stability(KMeans(3), views)
    with pytest.raises(NotFittedError):
        stability(TMvKSCR(3), views)


def test_the_result_is_a_table_and_plain_values():
    views, _ = make_blobs(60, spread=8.0)
    found = stability(TMvKSCR(3, random_state=0).fit(views), views, n_repeats=2, random_state=0)
    table = pd.DataFrame(found.table())
    assert table.columns.tolist() == ["label", "size", "jaccard", "dissolved", "reading"]
    assert table["size"].tolist() == [20, 20, 20]
    json.dumps([found.table(), found.samples])  # no types of NumPy
    assert repr(found) == "Stability(2 models of 30 samples; 0: 1.00, 1: 1.00, 2: 1.00)"
    html = found._repr_html_()
    assert html.count("<tr>") == 4
    assert "not to be trusted" not in html
    many = Stability(2, 30, True, found.clusters * 10, found.samples)
    assert "10 more clusters" in many._repr_html_()
    assert repr(many).endswith("…)")


def test_a_summary_has_the_stability_that_is_given():
    views = overlapping()
    model = TMvKSCR(4, random_state=0).fit(views)
    found = stability(model, views, n_repeats=4, random_state=0)
    summary = summarize(model, views, stability=found)
    assert [cluster.stability for cluster in summary.clusters] == pytest.approx(
        [each.jaccard for each in found.clusters], rel=1e-4
    )
    assert summary.samples.stability == pytest.approx(found.samples, rel=1e-4)
    assert summary.refits == Refits(4, 45, True, tuple(each.dissolved for each in found.clusters))
    assert Summary.from_json(summary.to_json()) == summary
    without = summarize(model, views)
    assert without.refits is without.samples.stability is None
    assert [each.stability for each in without.clusters] == [None] * 4


def test_a_summary_refuses_the_stability_of_another_model_or_of_other_samples():
    views, _ = make_blobs(60)
    models = [TMvKSCR(k, random_state=0).fit(views) for k in (2, 3)]
    found = stability(models[0], views, n_repeats=1, random_state=0)
    with pytest.raises(InputError, match="stability has other clusters than the model; compute it for the same model"):
        summarize(models[1], views, stability=found)
    with pytest.raises(InputError, match="stability has 60 samples, but the views have 30"):
        summarize(models[0], {name: x[:30] for name, x in views.items()}, stability=found)
    with pytest.raises(TypeError, match=r"stability is a float; give the result of coview.stability\(model, views\)"):
        summarize(models[0], views, stability=0.7)


def test_the_stability_is_described_in_words():
    summary = make_summary()
    values = (0.9, 0.5, None, *[0.7] * 7)
    clusters = tuple(replace(c, stability=value) for c, value in zip(summary.clusters, values, strict=True))
    (words,) = refits_in_words(replace(summary, clusters=clusters))
    assert words.startswith(
        "In 20 models with the same settings, each of 200 samples: of 9 clusters, 1 is stable, 7 are doubtful and 1 is "
        "not to be trusted. On average, a sample stays in its cluster in "
    )
    assert words.endswith("of the models.")
    own_half = replace(summary, refits=replace(summary.refits, predicts=False))
    assert next(refits_in_words(own_half)).endswith("of the models that label it.")
    assert [*refits_in_words(bare(summary))] == []


def test_views_with_categories_have_stability_and_contributions():
    views, truth = make_blobs(90, spread=8.0)
    kinds = pd.DataFrame({"colour": np.array(["x", "y", "z"])[truth], "size": views["a"][:, 0]})
    mixed = {"clinic": kinds.astype({"colour": "category"}), "b": views["b"]}
    model = TMvKSCR(3, random_state=0).fit(mixed)
    found = stability(model, mixed, n_repeats=2, random_state=0)
    assert [each.jaccard for each in found.clusters] == pytest.approx([1.0] * 3)
    assert set(model.view_contributions(mixed)) == {"clinic", "b"}
    summary = summarize(model, mixed, stability=found)
    assert all(view.agreement_without > 0.9 for view in summary.views)


def test_the_stability_of_a_single_cluster_is_not_reported():
    rng = np.random.default_rng(0)
    views = [rng.normal(size=(100, 5)), rng.normal(size=(100, 8))]
    model = Coview("auto", random_state=0).fit(views)
    assert model.n_clusters_ == 1
    found = stability(model, views, n_repeats=2, random_state=0)
    assert found.clusters == (ClusterStability(0, 100, 1.0, 0),)
    summary = summarize(model, views, stability=found)
    assert summary.clusters[0].stability is None
    assert [*refits_in_words(summary)] == []


def test_sparse_views_have_the_stability_of_dense_ones():
    views, _ = make_blobs(60, spread=8.0)
    counts = {name: np.round(np.abs(x)) for name, x in views.items()}
    results = [
        stability(TMvKSCR(3, kernel="cosine", random_state=0).fit(each), each, n_repeats=2, random_state=0)
        for each in (counts, {name: sp.csr_array(x) for name, x in counts.items()})
    ]
    assert results[0] == results[1]


def test_new_samples_need_parameters_that_are_not_those_of_training_samples():
    views = overlapping(60)
    gram = {name: x @ x.T for name, x in views.items()}
    model = TMvKSCR(3, kernel="precomputed", random_state=0, regularization=0.1)
    fitted = TMvKSCR(3, random_state=0).fit(views)
    with pytest.raises(InputError, match="no sample has the view 'a', and stability fits the model again; give all"):
        stability(fitted, {name: x for name, x in views.items() if name != "a"})
    groups = FixedSize(TMvKSCR(3), n_train=30, select=Stratified([0, 1] * 30), random_state=0).fit(views)
    with pytest.raises(InputError, match=r"the select=Stratified\(…\) is given for the training samples; give these"):
        stability(groups, {name: x[:40] for name, x in views.items()})
    gram = {name: x - x.min() + 1 for name, x in gram.items()}
    precomputed = model.set_params(regularization=0).fit(gram)
    with pytest.raises(InputError, match="the kernel of view 'a' is given for the training samples"):
        stability(precomputed, {name: x[:40] for name, x in gram.items()})


def test_clusters_of_a_few_samples_have_no_stability():
    labels = np.repeat([0, 1], [20, 4])
    found, _ = summarize_halves(labels, [(np.arange(24), labels)])
    assert [each.jaccard for each in large_clusters_only(found)] == [1.0, None]
