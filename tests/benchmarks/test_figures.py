"""The figures of the paper's experiments: what they draw, and which tables they refuse."""

import numpy as np
import pandas as pd
import pytest

from coview import InputError
from tests.conftest import rendered

matplotlib = pytest.importorskip("matplotlib")

from matplotlib.figure import Figure  # noqa: E402

from benchmarks.paper import figures  # noqa: E402

RHO = {"rho": [0.0, 0.5, 1.0, 0.5], "ari": [0.1, 0.2, 0.3, 0.4], "nmi": [0.5, 0.6, 0.7, 0.8]}
SIZES = {"n_train": [50, 500, 5000], "ari": [0.5, 0.7, 0.8]}
KAPPA = [
    {"kappa text": 0.1, "kappa image": 1.0, "ari": 0.3, "nmi": 0.9},
    {"kappa text": 1.0, "kappa image": 1.0, "ari": 0.6, "nmi": 0.8},
    {"kappa text": 1.0, "kappa image": 1.0, "ari": 0.8, "nmi": 0.8},
    {"kappa text": 1.0, "kappa image": 10.0, "ari": 0.5, "nmi": 0.1},
]


@pytest.mark.parametrize(
    ("draw", "table"), [(figures.rho_curve, RHO), (figures.size_curve, SIZES), (figures.kappa_surface, KAPPA)]
)
def test_the_given_axes_are_drawn_on_and_nothing_global_changes(draw, table):
    before = dict(matplotlib.rcParams)
    left, right = Figure().subplots(1, 2)
    assert draw(table, ax=right) is right
    assert right.has_data()
    assert not left.has_data()
    new, newer = draw(table), draw(table)
    assert new.figure is not newer.figure
    assert dict(matplotlib.rcParams) == before


def test_repeated_settings_are_drawn_as_mean_and_band():
    ax = rendered(figures.rho_curve(RHO))
    np.testing.assert_array_equal(ax.lines[0].get_xdata(), [0, 0.5, 1])
    np.testing.assert_allclose(ax.lines[0].get_ydata(), [0.1, 0.3, 0.3])
    np.testing.assert_allclose(ax.lines[1].get_ydata(), [0.5, 0.7, 0.7])
    band = ax.collections[0].get_paths()[0].vertices
    assert sorted(set(band[band[:, 0] == 0.5][:, 1])) == [0.2, 0.4]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["ari", "nmi"]


def test_tables_can_be_lists_of_rows_or_data_frames():
    rows = [dict(zip(RHO, values, strict=True)) for values in zip(*RHO.values(), strict=True)]
    for table in (rows, pd.DataFrame(RHO)):
        np.testing.assert_array_equal(figures.rho_curve(table).lines[1].get_ydata(), [0.5, 0.7, 0.7])


def test_sizes_are_on_a_logarithmic_axis_with_their_own_ticks():
    ax = rendered(figures.size_curve(SIZES))
    assert ax.get_xscale() == "log"
    assert [text.get_text() for text in ax.get_xticklabels()] == ["50", "500", "5,000"]
    assert ax.get_ylabel() == "ari"
    assert ax.get_legend() is None


def test_the_surface_is_a_grid_with_a_star_at_the_best():
    ax = rendered(figures.kappa_surface(KAPPA))
    np.testing.assert_allclose(ax.images[0].get_array().filled(np.nan), [[0.3, 0.7], [np.nan, 0.5]])
    assert [text.get_text() for text in ax.get_xticklabels()] == ["0.1", "1"]
    assert [text.get_text() for text in ax.get_yticklabels()] == ["1", "10"]
    assert (ax.get_xlabel(), ax.get_ylabel(), ax.get_title()) == ("kappa text", "kappa image", "best ari: 0.7")
    assert ax.lines[0].get_xydata().tolist() == [[1, 0]]
    assert figures.kappa_surface(KAPPA, "nmi").get_title() == "best nmi: 0.9"


@pytest.mark.parametrize(
    ("draw", "table", "message"),
    [
        (figures.rho_curve, {"kappa": [1], "ari": [1]}, "has the columns kappa, ari: expected 'rho'"),
        (figures.rho_curve, {"rho": [1]}, "expected 'rho' and one or more columns of results"),
        (figures.rho_curve, {"rho": [1], "ari": ["high"]}, "remove columns of strings"),
        (figures.rho_curve, {"rho": [1, 2], "ari": [1]}, "columns of equal length"),
        (figures.rho_curve, {"rho": [], "ari": []}, "at least one row"),
        (figures.rho_curve, {"rho": [[1]], "ari": [[1]]}, "columns of equal length"),
        (figures.rho_curve, {"rho": 1, "ari": [1]}, "columns of equal length"),
        (figures.rho_curve, {}, "columns of equal length"),
        (figures.rho_curve, [], "list of dictionaries"),
        (figures.rho_curve, [{"rho": 1, "ari": 1}, {"rho": 1}], "list of dictionaries with the same keys"),
        (figures.rho_curve, 5, "remove columns of strings"),
        (
            figures.kappa_surface,
            {"kappa 1": [1], "ari": [1]},
            "two columns with names that start with 'kappa', and 'ari'",
        ),
        (figures.kappa_surface, {"kappa 1": [1], "kappa 2": [1]}, "and a column of results"),
    ],
)
def test_invalid_tables_are_refused(draw, table, message):
    with pytest.raises(InputError, match=message):
        draw(table)


def test_unknown_columns_are_named():
    with pytest.raises(InputError, match="and 'accuracy'"):
        figures.kappa_surface(KAPPA, "accuracy")
