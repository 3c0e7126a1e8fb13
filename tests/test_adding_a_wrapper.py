"""A new wrapper is one file and one line in WRAPPERS: everything else follows from that.

The made-up wrapper is in tests/made_up_wrapper.py. It is registered while these tests run, and not for other tests.
"""

import csv
import json
from inspect import getsource

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import estimator_checks_generator

from coview import (
    KSC,
    OPMC,
    Concat,
    Coview,
    FixedSize,
    InputError,
    PerView,
    Preprocessed,
    Summary,
    TMvKSCR,
    load,
    save,
    summarize,
)
from coview.registry import WRAPPERS
from coview.report import render
from tests import made_up_wrapper
from tests.cli.running import call, split_blobs
from tests.conftest import make_blobs
from tests.made_up_wrapper import Scaled, register

CHECKS = list(estimator_checks_generator(Scaled(KSC(random_state=0))))


@pytest.fixture(autouse=True)
def registered():
    register()
    yield
    WRAPPERS.pop("scaled", None)


@pytest.fixture
def views():
    """Views of different scales."""
    views, _ = make_blobs(90, spread=2.0)
    return {name: scale * x for (name, x), scale in zip(views.items(), (1.0, 50.0, 0.001), strict=True)}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.safetensors"


def method():
    return TMvKSCR(3, random_state=0)


def multiplied(views, model):
    return {name: x * model.factors_[name] for name, x in views.items()}


def rows(views, some):
    return {name: x[some] for name, x in views.items()}


def test_it_is_one_file_of_at_most_120_lines():
    assert len(getsource(made_up_wrapper).splitlines()) <= 120


def test_it_answers_as_its_method_does_on_the_multiplied_views(views):
    model = Scaled(method()).fit(rows(views, slice(60)))
    assert {name: np.abs(x[:60]).max() for name, x in multiplied(views, model).items()} == pytest.approx(
        dict.fromkeys("abc", 1.0)
    )
    inside = method().fit(multiplied(rows(views, slice(60)), model))
    new, seen = views, multiplied(views, model)
    for ask in ("predict", "transform", "predict_proba", "score_samples"):
        np.testing.assert_array_equal(getattr(model, ask)(new), getattr(inside, ask)(seen))
    np.testing.assert_array_equal(model.labels_, inside.labels_)
    np.testing.assert_array_equal(model.eigenvalues_, inside.eigenvalues_)
    for ask in (
        lambda model, views: model.predict(views, per_view=True),
        lambda model, views: model.transform(views, per_view=True),
        lambda model, views: model.score_samples(views, per_view=True),
        lambda model, views: model.view_contributions(views),
        lambda model, views: model.view_labels_,
    ):
        found, expected = ask(model, new), ask(inside, seen)
        for name in "abc":
            np.testing.assert_array_equal(found[name], expected[name])
    novel = model.predict(new, novel_below=0.3)
    np.testing.assert_array_equal(novel, inside.predict(seen, novel_below=0.3))
    assert (novel == -1).any()
    model.recluster(new)
    np.testing.assert_array_equal(model.predict(new), inside.recluster(seen).predict(seen))


def test_it_can_do_what_its_method_can(views):
    assert not hasattr(Scaled(OPMC(3)), "predict_proba")
    assert not hasattr(Scaled(OPMC(3)), "transform")
    lacking = {name: x.copy() for name, x in views.items()}
    lacking["b"][:5] = np.nan
    model = Scaled(method()).fit(lacking)
    np.testing.assert_array_equal(model.predict(lacking), model.labels_)
    assert np.isnan(model.view_contributions(lacking)["b"][:5]).all()
    assert len(model.predict({"a": views["a"]})) == 90
    with pytest.raises(InputError, match="OPMC needs all views of each sample, and 5 of 90 samples lack some"):
        Scaled(OPMC(3)).fit(lacking)
    with pytest.raises(NotFittedError):
        Scaled(method()).predict(views)


@pytest.mark.parametrize(("estimator", "check"), CHECKS, ids=[getattr(c, "func", c).__name__ for _, c in CHECKS])
def test_scikit_learns_own_checks_pass(estimator, check, monkeypatch):
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")  # so that no check is skipped
    check(estimator)


@pytest.mark.parametrize(
    "model",
    [
        Scaled(method()),
        Scaled(OPMC(3, random_state=0)),
        Scaled(Coview(3, random_state=0)),
        Scaled(Preprocessed(method(), "l2")),
        Preprocessed(Scaled(method())),
        FixedSize(Scaled(method()), n_train=50, random_state=0),
        Scaled(FixedSize(method(), n_train=50, random_state=0)),
        PerView(Scaled(KSC(3, random_state=0))),
        Scaled(Concat(KSC(3, random_state=0))),
        Scaled(Scaled(method())),
    ],
    ids=lambda model: " ".join(repr(model).split()),
)
def test_it_is_saved_and_loaded(model, views, path):
    model = clone(model).fit(rows(views, slice(60)))
    loaded = load(save(model, path))
    assert repr(loaded) == repr(model)
    np.testing.assert_array_equal(loaded.labels_, model.labels_)
    for ask in ("predict", "transform", "predict_proba", "score_samples"):
        assert hasattr(loaded, ask) == hasattr(model, ask)
        if hasattr(model, ask):
            np.testing.assert_array_equal(getattr(loaded, ask)(views), getattr(model, ask)(views))


def test_a_model_of_a_wrapper_without_an_entry_is_neither_saved_nor_loaded(views, path):
    model = Scaled(method()).fit(views)
    save(model, path)
    del WRAPPERS["scaled"]
    with pytest.raises(InputError, match="class: expected a class of coview or a registered one, got Scaled"):
        load(path)
    with pytest.raises(InputError, match="Scaled cannot be saved; only classes of coview and registered ones can be"):
        save(model, path)


def test_it_has_a_summary_and_a_report(views):
    model = Scaled(Preprocessed(method(), "standard")).fit(views)
    summary = summarize(model, views)
    assert (summary.method, summary.n_clusters) == ("Scaled(Preprocessed(TMvKSCR))", 3)
    of_b = next(view for view in summary.views if view.name == "b")
    words = f"multiplied by {model.factors_['b']:.3g}, standardised columns"
    assert of_b.preprocessing == words
    page = render(summary)
    assert "Scaled(Preprocessed(TMvKSCR))" in page
    assert words in page


def test_the_command_labels_and_describes_with_a_saved_model(tmp_path, capsys):
    data, run = split_blobs(tmp_path), tmp_path / "run"
    run.mkdir()
    model = Scaled(method()).fit(data["train"])
    save(model, run / "model.safetensors")
    summary = summarize(model, data["train"])
    (run / "summary.json").write_text(summary.to_json())

    labels, report = tmp_path / "labels.csv", tmp_path / "new.html"
    typed = ["predict", run, *data["new_files"], "--ids=id", "-o", labels, "--report", report]
    code, _, err = call(capsys, *typed)
    assert code == 0, err
    found = list(csv.DictReader(labels.read_text().splitlines()))
    assert [int(row["cluster"]) for row in found] == model.predict(data["new"]).tolist()
    membership, usual = model.predict_proba(data["new"]).max(axis=1), model.score_samples(data["new"])
    np.testing.assert_allclose([float(row["membership"]) for row in found], membership, atol=1e-4)
    np.testing.assert_allclose([1 - float(row["novelty"]) for row in found], usual, atol=1e-4)
    assert {row["best_view"] for row in found} <= set("abc")
    assert "Scaled(TMvKSCR)" in report.read_text()

    code, out, _ = call(capsys, "info", run, "--json")
    described = json.loads(out)
    assert code == 0
    assert (described["class"], described["method"], described["n_clusters"]) == ("Scaled", "TMvKSCR", 3)

    assert call(capsys, "report", run)[0] == 0
    assert "Scaled(TMvKSCR)" in (run / "report.html").read_text()
    assert Summary.from_json((run / "summary.json").read_bytes()) == summary
