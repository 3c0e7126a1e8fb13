"""Comparison of methods: results, failures and agreement."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning

from coview import KSC, METHODS, OPMC, Concat, Coview, InputError, TMvKSCR, summarize
from coview.compare import compare, for_views, method_names
from coview.compose import Preprocessed
from coview.registry import Entry
from tests.conftest import make_blobs

QUICK = ["tmvkscr", "ksc", "opmc"]


@pytest.fixture(scope="module")
def everything():
    views, truth = make_blobs(60)
    return compare(views, 3, truth=truth)


def test_all_methods_run_and_find_clear_clusters(everything):
    assert [method.name for method in everything.methods] == [*METHODS]
    assert [method.error for method in everything.methods] == [None] * len(METHODS)
    for method in everything.methods:
        assert sum(method.sizes) == 60
        assert method.n_found == len(method.sizes) == len(set(everything.labels[method.name]))
        assert method.seconds > 0
        if method.name != "comic":  # which finds the number of clusters itself
            assert (method.ari, method.nmi, method.accuracy, method.purity) == (1.0, 1.0, 1.0, 1.0)


def test_particularities_of_a_method_are_noted(everything):
    notes = {method.name: " ".join(method.notes) for method in everything.methods}
    assert "columns of all views" in notes["ksc"]
    assert "columns of all views" in notes["kpca"]
    assert "finds the number of clusters itself" in notes["comic"]
    assert notes["tmvkscr"] == notes["coview"] == ""  # the number of clusters is given


def test_labels_are_those_of_the_methods_themselves(everything):
    views, _ = make_blobs(60)
    estimators = {
        "tmvkscr": TMvKSCR(3, random_state=0),
        "ksc": Concat(KSC(3, random_state=0)),
        "coview": Coview(3, random_state=0),
    }
    for name, estimator in estimators.items():
        assert everything.labels[name] == tuple(estimator.fit(views).labels_.tolist())


def test_only_methods_with_scores_have_a_silhouette(everything):
    silhouettes = {method.name: method.silhouette for method in everything.methods}
    with_scores = {"coview", "tmvkscr", "ksc", "kpca", "mvksc", "coreg", "oplfmvc", "mvscbp"}
    assert {name for name, value in silhouettes.items() if value is not None} == with_scores
    assert all(silhouettes[name] > 0.5 for name in with_scores)


@pytest.mark.parametrize("name", ["coview", "tmvkscr", "mvksc", "coreg", "mvscbp"])
def test_the_silhouette_is_that_of_the_summary(everything, name):
    views, _ = make_blobs(60)
    summary = summarize(METHODS[name](3, random_state=0).fit(views), views)
    assert {method.name: method.silhouette for method in everything.methods}[name] == summary.silhouette


def test_agreements_are_symmetric_with_ones_for_equal_labels(everything):
    matrix = np.array(everything.agreements)
    np.testing.assert_array_equal(matrix, matrix.T)
    np.testing.assert_array_equal(np.diag(matrix), 1.0)
    order = [method.name for method in everything.methods]
    assert matrix[order.index("tmvkscr"), order.index("opmc")] == 1.0


def test_the_table_has_the_mean_agreement_with_the_others(blobs):
    found = compare(blobs[0], 3, methods=QUICK)
    shown = dict(zip(QUICK, found.agreements, strict=True))
    for name, _, _, agreement in found.table()[1]:
        assert agreement == f"{(sum(shown[name]) - 1) / 2:.3f}"
    assert compare(blobs[0], 3, methods="opmc").table()[1][0][3] == "–"


def test_it_can_be_written_as_json(everything):
    stored = json.loads(everything.to_json())
    assert stored == json.loads(json.dumps(everything.to_dict()))
    assert stored["views"] == {"a": 4, "b": 6, "c": 3}
    assert [method["name"] for method in stored["methods"]] == [*METHODS]
    assert len(stored["labels"]["opmc"]) == stored["n_samples"] == 60


class Failing(OPMC):
    def fit_model(self, views, report):
        raise MemoryError("too little memory")


def test_a_method_that_fails_is_recorded_and_the_others_go_on(blobs, monkeypatch):
    monkeypatch.setitem(METHODS.entries, "opmc", Entry("tests.test_compare:Failing", "raises an error"))
    found = compare(blobs[0], 3, methods=["opmc", "tmvkscr"])
    failed, good = found.methods
    assert failed.error == "too little memory"
    assert failed.sizes is failed.seconds is None
    assert good.error is None
    assert list(found.labels) == ["tmvkscr"]
    assert found.agreements == ((None, None), (None, 1.0))
    assert "opmc: too little memory" in repr(found)
    assert "<li>opmc: too little memory</li>" in found._repr_html_()


def test_a_method_that_takes_too_long_is_left_out(blobs, monkeypatch):
    opmc = METHODS.entries["opmc"]
    monkeypatch.setitem(METHODS.entries, "opmc", replace(opmc, most_samples=89))
    found = compare(blobs[0], 3, methods=["opmc"])
    assert found.methods[0].error == "left out: it takes very long for more than 89 samples"
    monkeypatch.setitem(METHODS.entries, "opmc", replace(opmc, most_samples=90))
    assert compare(blobs[0], 3, methods=["opmc"]).methods[0].error is None


def test_the_limits_are_documented():
    limits = {name: entry.most_samples for name, entry in METHODS.entries.items() if entry.most_samples is not None}
    assert limits == {"tsvdmsc": 3_000, "comic": 5_000, "coreg": 10_000}
    for name, most in limits.items():
        assert f"{METHODS[name].__name__} above {most:,}" in " ".join(compare.__doc__.split())


def test_warnings_become_notes(blobs):
    same = {name: np.ones_like(x) for name, x in blobs[0].items()}
    (method,) = compare(same, 3, methods=["opmc"]).methods
    assert any("found 1 distinct clusters" in note for note in method.notes)


@pytest.mark.filterwarnings("ignore:2 clusters are requested for 2:sklearn.exceptions.ConvergenceWarning")
def test_one_cluster_has_no_silhouette():
    two = np.array([[0.0], [1.0]])  # as many clusters as samples
    (method,) = compare([two, two], 2, methods=["tmvkscr"]).methods
    assert method.error is None
    assert method.silhouette is None


def test_without_truth_there_are_no_scores(blobs):
    found = compare(blobs[0], 3, methods=QUICK)
    assert not found.has_truth
    assert {method.ari for method in found.methods} == {None}
    assert "ARI" not in repr(found)


def test_views_can_be_preprocessed(blobs):
    views, truth = blobs
    rng = np.random.default_rng(1)
    far = {**views, "a": np.column_stack([views["a"], 1e6 * rng.normal(size=len(truth))])}
    found = compare(far, 3, methods=["ksc"], truth=truth, preprocess="standard")
    expected = Preprocessed(Concat(KSC(3, random_state=0))).fit(far).labels_
    assert found.labels["ksc"] == tuple(expected.tolist())
    assert found.methods[0].ari > compare(far, 3, methods=["ksc"], truth=truth).methods[0].ari
    assert found.methods[0].silhouette is not None
    assert found.methods[0].estimator.startswith("Preprocessed(")
    assert found.preprocess == {"a": "standard", "b": "standard", "c": "standard"}


def test_the_usual_preprocessing_depends_on_the_kernel_of_the_method(blobs):
    views, _ = blobs
    found = compare(views, 3, methods=["tmvkscr", "opmc", "mvksc"], preprocess=None)
    assert [method.estimator.startswith("Preprocessed(") for method in found.methods] == [False, True, True]
    assert found.labels["tmvkscr"] == tuple(TMvKSCR(3, random_state=0).fit(views).labels_.tolist())
    mixed = compare(views, 3, methods=["tmvkscr", "opmc"], preprocess={"a": "l2", "b": None})
    assert mixed.preprocess == {"a": "l2", "b": None, "c": "none"}
    for method, usual in zip(mixed.methods, ["none", "standard"], strict=True):
        assert f"{{'a': 'l2', 'b': '{usual}', 'c': 'none'}}" in method.estimator


def test_each_view_can_have_its_own_preprocessing(blobs):
    views, _ = blobs
    found = compare(views, 3, methods=["tmvkscr"], preprocess={"a": "l2", "b": "standard+pca2"})
    expected = Preprocessed(TMvKSCR(3, random_state=0), ["l2", "standard+pca2", "none"]).fit(views)
    assert found.labels["tmvkscr"] == tuple(expected.labels_.tolist())
    assert found.preprocess == {"a": "l2", "b": "standard+pca2", "c": "none"}
    assert "'b': 'standard+pca2'" in found.methods[0].estimator


@pytest.mark.parametrize(
    "settings", [{"preprocess": "median+standard"}, {"preprocess": "standard", "impute": {"a": "median"}}]
)
def test_empty_cells_are_filled_before_each_method(blobs, settings):
    views, truth = blobs
    gaps = np.array(views["a"])
    gaps[[0, 7], [0, 1]] = np.nan
    found = compare({**views, "a": gaps}, 3, methods=["coview", "ksc", "opmc"], truth=truth, **settings)
    assert [(method.error, method.ari) for method in found.methods] == [(None, 1.0)] * 3
    expected = Preprocessed(Concat(KSC(3, random_state=0)), "median+standard").fit({**views, "a": gaps})
    assert found.labels["ksc"] == tuple(expected.labels_.tolist())
    with pytest.raises(InputError, match="view 'a' contains NaN in 2 of 90 samples"):
        compare({**views, "a": gaps}, 3, preprocess="standard", impute={"b": "median"})


def test_one_view_is_not_concatenated(blobs):
    found = compare({"a": blobs[0]["a"]}, 3, methods=["ksc"])
    assert found.methods[0].notes == ()
    assert for_views(KSC(3), 1).__class__ is KSC
    assert for_views(KSC(3), 2).__class__ is Concat
    assert for_views(TMvKSCR(3), 2).__class__ is TMvKSCR


def test_progress_is_called_before_each_method(blobs):
    calls = []
    compare(blobs[0], 3, methods=["opmc", "tmvkscr"], progress=lambda *stage: calls.append(stage))
    assert calls == [("opmc", 0, 2), ("tmvkscr", 1, 2), ("agreement", 2, 2)]


def test_the_table_puts_the_best_first():
    views, truth = make_blobs(60, spread=1.2)
    found = compare(views, 3, methods=QUICK, truth=truth)
    headings, rows = found.table()
    assert headings == ("method", "seconds", "clusters", "agreement", "ARI", "NMI", "accuracy", "purity")
    values = [float(row[4]) for row in rows]
    assert values == sorted(values, reverse=True)
    lines = repr(found).splitlines()
    assert lines[0] == "Comparison(3 methods; 60 samples; a: 4, b: 6, c: 3)"
    assert len(lines) == 5
    assert found._repr_html_().count("<tr>") == 4
    assert "<ul>" not in found._repr_html_()


def test_names_are_checked_and_suggested():
    assert method_names("all") == (*METHODS,)
    assert method_names("ksc") == ("ksc",)
    assert method_names(["ksc", "opmc", "ksc"]) == ("ksc", "opmc")
    with pytest.raises(InputError, match=r"method 'tmvksc' is unknown; did you mean 'tmvkscr'\?"):
        method_names(["tmvksc"])
    with pytest.raises(InputError, match=r"method 'spam' is unknown\. Known: coview, tmvkscr"):
        method_names("spam")
    with pytest.raises(InputError, match="methods is empty"):
        method_names([])


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"n_clusters": 1}, "n_clusters=1: expected an integer of at least 2"),
        ({"n_clusters": True}, "n_clusters=True: expected an integer"),
        ({"n_clusters": 91}, "n_clusters=91: expected an integer of at most n_samples=90"),
        ({"n_clusters": 2.5}, "n_clusters=2.5: expected an integer"),
        ({"preprocess": "max"}, r"preprocess 'max' is unknown\. Known: none, standard, l2"),
        ({"impute": "l2"}, r"impute 'l2' is unknown\. Known: none, median, nearest"),
        ({"preprocess": {"d": "l2"}}, r"preprocess names the view 'd'\. Views: a, b, c"),
        ({"truth": [0, 1]}, r"truth has shape \(2,\); give one class for each of the 90 samples"),
    ],
)
def test_bad_arguments_are_refused_before_the_work(blobs, arguments, sentence):
    with pytest.raises(InputError, match=sentence):
        compare(blobs[0], **{"n_clusters": 3, **arguments})


def test_coview_has_its_own_preprocessing(blobs):
    coview, opmc = compare(blobs[0], 3, methods=["coview", "opmc"], preprocess="l2").methods
    assert "Preprocessed" not in coview.estimator
    assert "Preprocessed" in opmc.estimator


def test_more_clusters_than_half_of_the_samples_give_one_warning():
    views, _ = make_blobs(n_samples=12)
    with pytest.warns(ConvergenceWarning, match="12 clusters are requested for 12 training samples") as caught:
        found = compare(views, 12, methods=["tmvkscr", "opmc", "coview"])
    assert len(caught) == 1
    assert not any("requested" in note for method in found.methods for note in method.notes)
    assert [method.n_found for method in found.methods] == [12, 12, 12]


@pytest.mark.parametrize("use", ["compare", "summarize"])
def test_known_classes_in_another_order_are_refused(use):
    """A pandas Series has row labels, by which a user expects it to be paired with the rows of data frames."""
    views, classes = make_blobs()
    labels = [f"s{i}" for i in range(90)]
    frames = {name: pd.DataFrame(x, index=labels) for name, x in views.items()}
    model = TMvKSCR(3, random_state=0).fit(frames)

    def ari(truth):
        if use == "summarize":
            return summarize(model, frames, truth=truth).truth.ari
        return compare(frames, 3, methods=["tmvkscr"], truth=truth).methods[0].ari

    series = pd.Series(classes, index=labels)
    assert ari(series) == ari(series.to_numpy()) == ari(series.reset_index(drop=True)) == 1.0
    with pytest.raises(InputError, match=r"truth has other row labels than the views, or .* truth.loc\[frame.index\]"):
        ari(series[::-1])
