"""Progress of fits and comparisons: a bar, a function, or nothing."""

import io
import pickle
import sys

import numpy as np
import pytest

from coview import KSC, METHODS, Coview, FixedSize, InputError, MvKSC, Preprocessed, TMvKSCR
from coview.base.progress import progress_bar, reporting
from coview.compare import compare
from tests.conftest import make_blobs


class Screen(io.StringIO):
    def isatty(self):
        return True


def open_screen(monkeypatch):
    """A terminal as standard error; not a fixture, because pytest replaces standard error after those."""
    monkeypatch.setattr(sys, "stderr", Screen())
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    return sys.stderr


@pytest.mark.parametrize(
    ("model", "stage", "last"),
    [
        (KSC(3, progress=True, random_state=0), "labels", "4/4"),
        (TMvKSCR(3, progress=True, random_state=0), "labels", "6/6"),
        (MvKSC(3, progress=True, random_state=0), "labels", "6/6"),
        (
            FixedSize(Preprocessed(TMvKSCR(3, progress=True, random_state=0)), n_train=60, random_state=0),
            "labels",
            "6/6",
        ),
        (Coview(3, progress=True, random_state=0), "clusterings", "2/2"),
        (Coview("auto", progress=True, random_state=0), "number of clusters", "3/3"),
    ],
    ids=lambda value: " ".join(repr(value).split()),
)
def test_true_shows_a_bar(model, stage, last, monkeypatch):
    screen = open_screen(monkeypatch)
    views, _ = make_blobs()
    model.fit(views["a"] if isinstance(model, KSC) else views)
    assert stage in screen.getvalue()
    assert last in screen.getvalue()
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).labels_, model.labels_)  # no bar is stored


def test_a_comparison_shows_a_bar(monkeypatch):
    screen = open_screen(monkeypatch)
    compare(make_blobs()[0], 3, methods=["tmvkscr", "opmc"], progress=True)
    assert "agreement" in screen.getvalue()
    assert "2/2" in screen.getvalue()


def iterative_methods():
    return [name for name, method in METHODS.items() if "max_iter" in method().get_params() and name != "mvksc"]


@pytest.mark.parametrize("name", iterative_methods())
def test_a_bar_shows_the_iterations_of_other_methods(name, monkeypatch):
    """Also in the command, whose bar appears after a second."""
    screen = open_screen(monkeypatch)
    model = METHODS[name](random_state=0)
    with progress_bar() as report:
        report("fitting", 0, 1)
        model.fit(make_blobs()[0])
    assert "fitting: iterations" in screen.getvalue()
    assert f"{model.n_iter_}/{model.max_iter}" in screen.getvalue()
    before = screen.getvalue()
    METHODS[name](random_state=0).fit(make_blobs()[0])  # no bar any more
    assert screen.getvalue() == before


def test_a_bar_in_a_file_is_one_line(monkeypatch):
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    TMvKSCR(3, progress=True, random_state=0).fit(make_blobs()[0])
    assert sys.stderr.getvalue().count("\n") == 1
    assert "\x1b" not in sys.stderr.getvalue()


def test_a_bar_in_a_notebook_needs_no_other_package(monkeypatch):
    """rich draws bars in notebooks with ipywidgets, and warns without them; warnings are errors here."""
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    TMvKSCR(3, progress=True, random_state=0).fit(make_blobs()[0])
    assert "6/6" in sys.stderr.getvalue()


@pytest.mark.parametrize("progress", [None, False])
def test_false_shows_nothing(progress, monkeypatch):
    screen = open_screen(monkeypatch)
    TMvKSCR(3, progress=progress, random_state=0).fit(make_blobs()[0])
    assert screen.getvalue() == ""


def test_a_function_is_called_with_each_stage():
    calls = []
    with reporting(lambda *call: calls.append(call)) as report:
        report("stage", 1, 2)
    assert calls == [("stage", 1, 2)]


@pytest.mark.parametrize(
    ("n_clusters", "stages"),
    [
        (3, [("graphs", 0, 2), ("clusterings", 1, 2), ("clusterings", 2, 2)]),
        ("auto", [("graphs", 0, 3), ("number of clusters", 1, 3), ("all samples", 2, 3), ("all samples", 3, 3)]),
    ],
)
def test_coview_reports_its_stages(n_clusters, stages):
    calls = []
    Coview(n_clusters, progress=lambda *call: calls.append(call), random_state=0).fit(make_blobs()[0])
    assert calls == stages


@pytest.mark.parametrize("estimator", [TMvKSCR(2, progress="yes"), Coview(2, progress=1)])
def test_other_values_are_refused(estimator):
    with pytest.raises(InputError, match=r"^progress=.*: expected True for a bar, False, or a function"):
        estimator.fit(make_blobs()[0])
