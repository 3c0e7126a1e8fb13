import subprocess
import sys
from colorsys import rgb_to_hsv
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from coview import OPMC, InputError, MvKSC, TMvKSCR, plots
from coview.report.charts import SHAPES, swatch
from coview.summary import summarize
from tests.conftest import make_blobs, rendered
from tests.summaries import bare, make_summary, make_support

matplotlib = pytest.importorskip("matplotlib")

from matplotlib.colors import to_hex  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402

WITH_TICKS = [
    *(plots.sorted_scores, plots.spectrum, plots.scatter, plots.similarity_matrix, plots.kept_together),
    plots.support,
]
OF_SUMMARIES = [*WITH_TICKS, plots.sample_map]


@cache
def summary_of(n_clusters, n_samples=None):
    views, _ = make_blobs(n_samples=n_samples or max(60, 6 * n_clusters), n_clusters=n_clusters, spread=12.0)
    return summarize(TMvKSCR(n_clusters, random_state=0).fit(views), views)


@pytest.mark.parametrize("n_clusters", [2, 10, 100])
@pytest.mark.parametrize("draw", WITH_TICKS)
def test_summaries_of_any_number_of_clusters_can_be_drawn(draw, n_clusters):
    ax = rendered(draw(summary_of(n_clusters)))
    written = [text for text in [*ax.get_xticklabels(), *ax.get_yticklabels()] if text.get_text()]
    boxes = [text.get_window_extent() for text in written]
    assert written
    assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i]), "tick labels overlap"


@pytest.mark.parametrize("draw", OF_SUMMARIES)
def test_the_given_axes_are_drawn_on_and_nothing_global_changes(draw):
    data = summary_of(3)
    before = dict(matplotlib.rcParams)
    figure = Figure()
    left, right = figure.subplots(1, 2)
    assert draw(data, ax=right) is right
    assert right.has_data()
    assert not left.has_data()
    new, newer = draw(data), draw(data)
    assert new.figure is not newer.figure
    assert dict(matplotlib.rcParams) == before


def test_drawing_neither_needs_nor_starts_pyplot():
    code = (
        "import sys; from coview import plots; assert 'matplotlib' not in sys.modules\n"
        "from tests.summaries import make_summary\n"
        "plots.support(make_summary(60, 3))\n"
        "assert 'matplotlib.figure' in sys.modules and 'matplotlib.pyplot' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_missing_matplotlib_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r'pip install "coview\[report\]"'):
        plots.support(make_summary())


def test_a_cluster_has_the_same_style_in_plots_and_in_the_report():
    assert tuple(SHAPES) == plots.MARKERS
    assert [SHAPES[marker][0] for marker in "o^*"] == ["circle", "triangle-up", "star"]
    for label in range(120):
        colour, marker = plots.cluster_style(label)
        assert swatch(label) == (colour, SHAPES[marker][1])
    assert len({plots.cluster_style(label) for label in range(100)}) == 100
    assert len({swatch(label) for label in range(100)}) == 100


def test_no_cluster_is_grey():
    """Grey points look as if they had no cluster."""
    for colour in plots.PALETTE:
        _, saturation, value = rgb_to_hsv(*(int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)))
        assert saturation > 0.3, colour
        assert value > 0.3, colour


def test_a_cluster_keeps_its_style_if_others_are_empty():
    summary = summary_of(3)
    points = replace(summary.points, labels=tuple({0: 1, 1: 4, 2: 17}[label] for label in summary.points.labels))
    clusters = tuple(replace(c, label=label) for c, label in zip(summary.clusters, (1, 4, 17), strict=True))
    clusters += (replace(clusters[0], label=5, size=0),)
    ax = rendered(plots.scatter(replace(summary, points=points, clusters=clusters)))
    assert [to_hex(dots.get_facecolor()[0]) for dots in ax.collections] == [plots.PALETTE[i] for i in (1, 4, 7)]
    assert [text.get_text() for text in ax.texts] == ["1", "4", "17"]


@pytest.mark.parametrize("component", [0, 1])
def test_scores_of_each_view_and_their_mean_are_sorted_by_cluster(component):
    summary = summary_of(3)
    ax = plots.sorted_scores(summary, component)
    labels, mean = np.array(summary.points.labels), np.array(summary.points.scores)[:, component]
    order = np.lexsort((mean, labels))
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), mean[order])
    for dots, (name, scores) in zip(ax.collections, summary.points.view_scores.items(), strict=True):
        assert dots.get_label() == name
        np.testing.assert_array_equal(dots.get_offsets()[:, 1], np.array(scores)[order, component])
    borders = [line.get_xdata()[0] for line in ax.lines[2:]]
    assert borders == (np.cumsum(np.bincount(labels))[:-1] - 0.5).tolist()
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["a", "b", "c", "mean"]
    assert ax.get_ylabel() == f"score {component + 1}"
    (above,) = ax.child_axes
    assert [text.get_text() for text in above.get_xticklabels()] == ["0", "1", "2"]


def test_scores_without_view_scores_are_drawn_alone():
    summary = summary_of(3)
    ax = plots.sorted_scores(replace(summary, points=replace(summary.points, view_scores={})))
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["score"]


def test_views_can_have_fewer_components_than_the_mean():
    summary = summary_of(3)
    few = {name: tuple(row[:1] for row in scores) for name, scores in summary.points.view_scores.items()}
    assert (
        len(plots.sorted_scores(replace(summary, points=replace(summary.points, view_scores=few)), 1).collections) == 0
    )


def test_spectrum_shows_the_explained_variance_and_its_cumulative_sum():
    summary = summary_of(10)
    ax = plots.spectrum(summary)
    used, further = ([bar.get_height() for bar in bars] for bars in ax.containers)
    np.testing.assert_allclose(used, summary.explained_variance_ratio)
    unit = summary.explained_variance_ratio[0] / summary.eigenvalues[0]
    np.testing.assert_allclose(further, unit * np.array(summary.further_eigenvalues))
    gap, cumulative = ax.lines
    assert set(gap.get_xdata()) == {len(used) + 0.5}
    np.testing.assert_allclose(cumulative.get_ydata(), np.cumsum(summary.explained_variance_ratio))


def test_spectrum_shows_eigenvalues_if_there_is_no_explained_variance():
    views, _ = make_blobs()
    summary = summarize(MvKSC(3, random_state=0).fit(views), views)
    assert summary.explained_variance_ratio is None
    ax = plots.spectrum(summary)
    np.testing.assert_allclose([bar.get_height() for bar in ax.patches], summary.eigenvalues)
    assert not ax.lines
    assert ax.get_ylabel() == "eigenvalue"


@pytest.mark.parametrize("n_clusters", [3, 12])
def test_scatter_shows_clusters_with_their_numbers_and_histograms(n_clusters):
    summary = summary_of(n_clusters)
    ax = plots.scatter(summary, 1, 0)
    labels, scores = np.array(summary.points.labels), np.array(summary.points.scores)
    for c, dots in enumerate(ax.collections):
        np.testing.assert_array_equal(dots.get_offsets(), scores[labels == c][:, [1, 0]])
        assert to_hex(dots.get_facecolor()[0]) == plots.PALETTE[c % 10]
    assert [text.get_text() for text in ax.texts] == [str(c) for c in range(n_clusters)]
    assert ax.texts[1].get_position() == tuple(np.median(scores[labels == 1][:, [1, 0]], axis=0))
    top, side = ax.child_axes
    for histogram, values in ((top, scores[:, 1]), (side, scores[:, 0])):
        counts = [steps.get_data().values - steps.get_data().baseline for steps in histogram.patches]
        np.testing.assert_array_equal(np.sum(counts, axis=1), np.bincount(labels))
        np.testing.assert_array_equal(np.sum(counts, axis=0), np.histogram(values, 50)[0])
    assert (ax.get_legend() is not None) == (n_clusters <= 10)


@pytest.mark.parametrize("n_clusters", [2, 12])
def test_the_map_shows_samples_in_the_style_of_their_cluster(n_clusters):
    summary = summary_of(n_clusters)
    ax = rendered(plots.sample_map(summary))
    labels, positions = np.array(summary.points.labels), np.array(summary.points.positions)
    for c, dots in enumerate(ax.collections):
        np.testing.assert_array_equal(dots.get_offsets(), positions[labels == c])
        assert to_hex(dots.get_facecolor()[0]) == plots.PALETTE[c % 10]
    assert [text.get_text() for text in ax.texts] == [str(c) for c in range(n_clusters)]
    assert (ax.get_legend() is not None) == (n_clusters <= 10)
    assert len(ax.get_xticks()) == len(ax.get_yticks()) == 0
    assert ax.get_aspect() == 1


def test_a_single_component_is_jittered():
    summary = summary_of(2)
    ax = plots.scatter(summary)
    across = np.concatenate([dots.get_offsets() for dots in ax.collections])
    assert sorted(across[:, 0]) == sorted(row[0] for row in summary.points.scores)
    assert 0 <= across[:, 1].min() < across[:, 1].max() <= 1
    assert len(ax.child_axes) == 1
    assert len(ax.get_yticks()) == 0


def test_similarities_have_an_outline_of_each_cluster():
    summary = summary_of(3)
    ax = plots.similarity_matrix(summary)
    np.testing.assert_array_equal(ax.images[0].get_array(), summary.similarities.values)
    sizes = np.bincount(summary.similarities.labels)
    ends = np.cumsum(sizes)
    corners = np.array([line.get_xydata()[[0, 2]] for line in ax.lines])
    np.testing.assert_array_equal(corners[:, 0], np.column_stack([ends - sizes, ends - sizes]) - 0.5)
    np.testing.assert_array_equal(corners[:, 1], np.column_stack([ends, ends]) - 0.5)
    assert [text.get_text() for text in ax.get_xticklabels()] == ["0", "1", "2"]


@pytest.mark.parametrize("n_clusters", [3, 30])
def test_members_kept_together_have_a_row_for_each_view_and_a_column_for_each_cluster(n_clusters):
    summary = summary_of(n_clusters)
    ax = plots.kept_together(summary)
    expected = [[cluster.kept_together[view.name] for cluster in summary.clusters] for view in summary.views]
    np.testing.assert_array_equal(ax.images[0].get_array(), expected)
    assert ax.get_yticklabels()[1].get_text() == f"b\n(ARI {summary.views[1].agreement:.2f})"
    assert len(ax.texts) == (9 if n_clusters == 3 else 0)


def test_missing_parts_cannot_be_drawn():
    views, _ = make_blobs()
    summary = summarize(OPMC(3, random_state=0).fit(views), views)
    for draw, message in zip(
        [each for each in OF_SUMMARIES if each is not plots.support],
        ["no scores", "no eigenvalues", "no scores", "no similarities", "no labels of single views", "no scores"],
        strict=True,
    ):
        with pytest.raises(InputError, match=f"OPMC has {message}"):
            draw(summary)


@pytest.mark.parametrize("component", [-1, 2, True, 0.0])
def test_components_that_do_not_exist_are_refused(component):
    with pytest.raises(InputError, match=f"component={component}: expected an integer from 0 to 1"):
        plots.sorted_scores(summary_of(3), component)
    with pytest.raises(InputError, match=f"y={component}: expected an integer from 0 to 1"):
        plots.scatter(summary_of(3), y=component)


def dots(ax):
    """The positions of the markers of each row, without the lines of limits."""
    return [tuple(line.get_xydata()[0]) for line in ax.lines if line.get_linestyle() == "None"]


def limits(ax):
    """The shaded interval and the dashed line."""
    (span,) = {(each.get_x(), each.get_x() + each.get_width()) for each in ax.patches}
    (dashed,) = {line.get_xdata()[0] for line in ax.lines if line.get_linestyle() == "--"}
    return span, dashed


def test_the_support_has_the_valley_ratio_beside_the_stability_and_the_excess_modularity_below():
    summary = make_summary()
    valleys = (2.34, 0.71, None, *[0.3] * 7)
    drawn = replace(summary, support=replace(make_support(10), valleys=valleys))
    ax = plots.support(drawn)
    first, second, third = ax.figure.axes
    assert first is ax
    rendered(ax)
    assert [each.get_xlabel() for each in (first, second, third)] == ["valley ratio", "stability", "excess modularity"]
    assert dots(first) == [(1.5, 0), (0.71, 1), *((0.3, row) for row in range(3, 10))]
    assert "2.3" in [text.get_text() for text in first.texts]
    assert dots(second) == [(0.9, row) for row in range(10)]
    assert dots(third) == [(0.15, 0)]
    assert [to_hex(line.get_color()) for line in first.lines[:1]] == [plots.PALETTE[0]]
    assert limits(first) == ((0.0, 0.4), 0.7)
    assert limits(second) == ((0.75, 1.0), 0.6)
    assert limits(third)[0][0] == drawn.support.groups[0].structure.needed
    assert limits(third)[1] == 0
    assert first.yaxis_inverted()
    boxes = [each.get_window_extent() for each in (first, second, third)]
    assert boxes[0].x1 <= boxes[1].x0
    assert boxes[2].y1 < min(boxes[0].y0, boxes[1].y0)


def test_only_known_parts_of_the_support_are_drawn():
    summary = make_summary()
    unknown = tuple(replace(cluster, stability=None) for cluster in summary.clusters)
    strong = replace(summary, support=make_support(10, "strong"), clusters=unknown)
    assert [ax.get_xlabel() for ax in plots.support(strong).figure.axes] == ["valley ratio"]
    one = replace(strong, support=make_support(1, "none"), clusters=unknown[:1])
    ax = rendered(plots.support(one))
    assert [each.get_xlabel() for each in ax.figure.axes] == ["excess modularity"]
    assert [text.get_text() for text in ax.get_yticklabels()] == ["all samples"]
    without = replace(summary, support=None)
    assert [ax.get_xlabel() for ax in plots.support(without).figure.axes] == ["stability"]
    with pytest.raises(InputError, match="the summary of TMvKSCR has no support to plot"):
        plots.support(bare(summary))


@pytest.mark.parametrize("layout", [None, "constrained", "tight"])
def test_the_support_keeps_inside_the_given_axes(layout):
    figure = Figure(figsize=(12, 6), layout=layout)
    left, right = figure.subplots(1, 2)
    plots.support(make_summary(), ax=right)
    rendered(left)
    space = right.get_subplotspec().get_topmost_subplotspec().get_position(figure)
    for ax in figure.axes[1:]:
        box = ax.get_position()
        assert box.x1 <= space.x1 + 0.1
        assert box.x0 > left.get_position().x1
    free = Figure(figsize=(8, 6))
    ax = free.add_axes((0.1, 0.2, 0.5, 0.6))
    plots.support(make_summary(), ax=ax)
    for each in free.axes:
        x0, y0, x1, y1 = each.get_position().extents
        assert 0.1 - 1e-9 <= x0 < x1 <= 0.6 + 1e-9
        assert 0.2 - 1e-9 <= y0 < y1 <= 0.8 + 1e-9
