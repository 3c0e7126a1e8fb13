"""Reports as files: what they say, what they hold, and that nothing in them can get out or break in."""

import hashlib
import json
import re
import sys
from base64 import b64decode, b64encode
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise

import numpy as np
import pytest

from coview.compare import Comparison, MethodResult
from coview.report import render, render_comparison, write_comparison, write_report
from coview.report.charts import MOST_SIMILARITIES, chart_data, pack
from coview.report.marks import mark
from coview.report.page import as_script
from coview.report.tables import best_tried, cross_table, splits
from coview.report.words import comparison_story, story
from coview.summary import Similarities, Truth, summarize
from tests.conftest import make_blobs
from tests.summaries import bare, make_split_tuning, make_summary, make_tuning

pytest.importorskip("plotly", reason="reports need plotly: pip install 'coview[report]'")
pytest.importorskip("jinja2", reason="reports need jinja2: pip install 'coview[report]'")

MEGABYTE = 1e6
NASTY = "</script><script>alert(1)</script><!-- & \"'\u2028\u2029 <b>{{ 7 * 7 }}</b>"


class Page(HTMLParser):
    """The elements of a page: their attributes, the text of scripts, and the text that is read."""

    def __init__(self, html):
        super().__init__(convert_charrefs=True)
        self.elements, self.scripts, self.text, self.inside = [], [], "", None
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self.inside = tag
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag):
        self.inside = None

    def handle_data(self, data):
        if self.inside == "script":
            self.scripts[-1] += data
        elif self.inside != "style":
            self.text += data

    def all(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]

    def ids(self):
        return [attributes["id"] for _, attributes in self.elements if "id" in attributes]

    def data(self):
        return json.loads(self.scripts[0])


@pytest.fixture(scope="module")
def summary():
    return make_summary()


@pytest.fixture(scope="module")
def page(summary):
    return Page(render(summary))


def one_method(name, **given):
    values = dict.fromkeys(["seconds", "error", "n_found", "sizes", "silhouette", "ari", "nmi", "accuracy", "purity"])
    return MethodResult(**{**values, "name": name, "estimator": f"{name}(3)", "notes": (), **given})


def make_comparison(has_truth=True):
    beside = {"ari": 0.9, "nmi": 0.8, "accuracy": 0.95, "purity": 0.95} if has_truth else {}
    worse = {name: value / 2 for name, value in beside.items()}
    return Comparison(
        methods=(
            one_method("tmvkscr", seconds=0.5, n_found=3, sizes=(20, 20, 20), silhouette=0.6, **beside),
            one_method("opmc", seconds=0.1, n_found=20, sizes=(3,) * 20, notes=("stopped early",), **worse),
            one_method("comic", error="the graph is not connected <b>"),
        ),
        agreements=((1.0, 0.5, None), (0.5, 1.0, None), (None, None, None)),
        labels={"tmvkscr": (0, 1, 2) * 20, "opmc": tuple(range(20)) * 3},
        n_clusters=3,
        n_samples=60,
        views={"text": 5, "image": 8},
        preprocess={"text": "standard", "image": "standard"},
        random_state=0,
        has_truth=has_truth,
        version="0.1.0",
    )


def test_the_page_has_every_section_in_order(page):
    sections = [attributes["id"] for attributes in page.all("section")]
    assert sections == [
        "short",
        "clusters",
        "samples",
        "spectrum",
        "views",
        "features",
        "uncertain",
        "truth",
        "similarities",
        "notes",
        "settings",
    ]
    assert [a["href"] for a in page.all("a")] == ["#content", *(f"#{name}" for name in sections)]


def test_the_numbers_of_the_summary_are_on_the_page(page, summary):
    cluster = summary.clusters[7]
    for text in [
        "10 clusters in 400 samples",
        "pixels_7_0",
        f"{cluster.size}",
        "RBF(sigma2=9.277)",
        "image 5",
        summary.notes[0],
        summary.command,
        "random_state",
        "3.5 s",
        "20 ms",
        "2.0.0",
    ]:
        assert text in page.text


def test_names_of_elements_are_unique_and_headings_do_not_skip_a_level(page):
    assert len(page.ids()) == len(set(page.ids()))
    levels = [int(tag[1]) for tag, _ in page.elements if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(later <= earlier + 1 for earlier, later in pairwise(levels))


def test_every_control_has_a_label(page):
    labelled = {attributes.get("for") for attributes in page.all("label")}
    controls = page.all("select") + page.all("input")
    assert len(controls) == 7
    assert {attributes["id"] for attributes in controls} <= labelled


def test_sortable_columns_say_how_they_are_sorted(page):
    sorts = [attributes["aria-sort"] for attributes in page.all("th") if "aria-sort" in attributes]
    assert sorts.count("ascending") == 2  # clusters by number, samples by margin
    assert set(sorts) == {"ascending", "none"}


def test_the_policy_forbids_everything_but_the_scripts_of_the_page():
    html = render(make_summary(50, 3))
    policy = Page(html).all("meta")[1]
    assert policy["http-equiv"] == "Content-Security-Policy"
    assert html.index("Content-Security-Policy") < html.index("<style") < html.index("<script")
    rules = dict(rule.strip().split(" ", 1) for rule in policy["content"].split(";"))
    assert rules["default-src"] == "'none'"
    assert "connect-src" not in rules
    assert not re.search(r"http|\*|self|unsafe-inline", rules["script-src"])
    scripts = re.findall(r"<script>(.*?)</script>", html, re.DOTALL)
    digests = [b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    assert len(scripts) == 3
    assert rules["script-src"] == " ".join(f"'sha256-{digest}'" for digest in digests) + " 'unsafe-eval'"


def test_the_page_refers_to_no_other_file(page):
    for tag, attributes in page.elements:
        for name in ("src", "href", "srcset", "action", "data", "poster"):
            assert attributes.get(name, "#").startswith("#"), (tag, attributes)
    style = render_comparison(make_comparison()).split("<style>")[1].split("</style>")[0]
    assert not re.search(r"url\(|@import", style)


def test_names_cannot_break_out_of_text_or_data(summary):
    cluster = summary.clusters[0]
    first = replace(cluster, features=(replace(cluster.features[0], name=NASTY, view=NASTY),), classes={NASTY: 3})
    points = replace(
        summary.points,
        samples=(NASTY, *summary.points.samples[1:]),
        classes=(NASTY, *summary.points.classes[1:]),
        view_labels={NASTY: summary.points.labels},
        view_scores={NASTY: summary.points.scores},
    )
    html = render(
        replace(
            summary,
            method=NASTY,
            parameters={NASTY: NASTY},
            views=(replace(summary.views[0], name=NASTY, kernel=NASTY, notes=(NASTY,)), *summary.views[1:]),
            clusters=(first, *summary.clusters[1:]),
            uncertain=(replace(summary.uncertain[0], sample=NASTY),),
            truth=replace(summary.truth, classes=(NASTY, *summary.truth.classes[1:])),
            points=points,
            notes=(NASTY,),
            seconds={NASTY: 1.0},
            versions={NASTY: NASTY},
            command=NASTY,
        )
    )
    page = Page(html)
    assert len(page.scripts) == 4
    assert page.data()["points"]["samples"][0] == NASTY
    assert page.data()["points"]["groupings"][-1]["name"] == f"view {NASTY} alone"
    assert page.text.count(NASTY) > 10
    assert "alert(1)</script>" not in html
    assert not set("<>&\u2028\u2029") & set(page.scripts[0])


def test_half_a_surrogate_pair_does_not_stop_the_report(summary, tmp_path):
    broken = replace(summary, notes=("sample \ud800 was dropped",))
    assert "sample ? was dropped" in write_report(broken, tmp_path / "report.html").read_text(encoding="utf-8")


def test_data_has_no_numbers_that_json_does_not_know():
    assert json.loads(as_script({"a": [float("nan"), (float("inf"), 1.5)], "b": None})) == {
        "a": [None, [None, 1.5]],
        "b": None,
    }


def unpack(packed):
    codes = np.frombuffer(b64decode(packed["codes"]), dtype="<u2")
    return np.where(codes == 65535, np.nan, packed["low"] + packed["step"] * codes)


def test_packed_numbers_come_back_within_half_a_step():
    values = np.random.default_rng(0).normal(size=1000) * 1e-3
    values[[3, 5]] = np.nan, np.inf
    packed = pack(values)
    found = unpack(packed)
    assert np.isnan(found[[3, 5]]).all()
    known = np.isfinite(values)
    assert np.abs(found - values)[known].max() <= 0.501 * np.ptp(values[known]) / 65534


@pytest.mark.parametrize("values", [[2.0, 2.0], [np.nan, np.nan], [1e300, -1e-300], []])
def test_packing_knows_the_extremes(values):
    np.testing.assert_allclose(unpack(pack(values)), values, rtol=1e-4, atol=1e296)


def test_points_keep_their_numbers_and_their_order(summary):
    points = chart_data(summary)["points"]
    scores = np.asarray(summary.points.scores)
    np.testing.assert_allclose(unpack(points["spaces"][0]["components"][3]), scores[:, 3], atol=1e-3)
    assert [space["name"] for space in points["spaces"]] == ["all views together", "pixels", "fourier", "gradients"]
    clusters = points["groupings"][0]
    assert [clusters["numbers"][code] for code in clusters["codes"]] == list(summary.points.labels)
    assert sum(clusters["counts"]) == len(summary.points.labels)


def test_a_view_may_have_fewer_components(summary):
    few = {name: tuple(row[:2] for row in scores) for name, scores in summary.points.view_scores.items()}
    spaces = chart_data(replace(summary, points=replace(summary.points, view_scores=few)))["points"]["spaces"]
    assert [len(space["components"]) for space in spaces] == [9, 2, 2, 2]


def test_long_names_are_cut_in_the_plots(summary):
    points = replace(summary.points, samples=("x" * 500, *summary.points.samples[1:]))
    assert chart_data(replace(summary, points=points))["points"]["samples"][0] == "x" * 79 + "…"


@pytest.mark.parametrize("n_clusters", [10, 100])
def test_a_report_of_fifty_thousand_samples_is_small_and_says_what_it_draws(n_clusters, tmp_path):
    big = make_summary(50_000, n_clusters)
    path = write_report(big, tmp_path / "report.html")
    assert path.stat().st_size < 8 * MEGABYTE
    page = Page(path.read_text(encoding="utf-8"))
    assert "5,000 of 50,000 samples" in page.text
    assert "It learnt from 2,000 of the samples" in page.text
    assert len(page.data()["points"]["samples"]) == 5000


def test_more_points_and_similarities_than_a_page_can_hold_are_thinned(summary):
    n = 2 * MOST_SIMILARITIES
    labels = tuple(range(n))
    similarities = Similarities("mean similarity", labels, tuple(map(tuple, np.eye(n).tolist())))
    data = chart_data(replace(make_summary(9000, 3, n_drawn=9000), similarities=similarities))
    assert len(data["points"]["samples"]) == 5000
    assert len(data["similarities"]["labels"]) == MOST_SIMILARITIES


def test_settings_tell_how_each_view_was_prepared(summary):
    first, *others = summary.views
    page = Page(render(replace(summary, views=(replace(first, preprocessing="tf-idf, rows of length 1"), *others))))
    settings = " ".join(page.text.split("What is needed to repeat this run.")[1].split())
    assert "Preparation pixelstf-idf, rows of length 1 fouriercolumns standardised" in settings


def test_the_choice_of_settings_is_told_with_two_plots(summary):
    tuned = replace(summary, tuning=make_tuning(10))
    page = Page(render(tuned))
    assert "tuning" in [attributes["id"] for attributes in page.all("section")]
    assert {"candidates", "numbers", "tuning-table"} <= set(page.ids())
    assert tuned.tuning.reason in page.text
    assert "→ graph · l2 · ρ 1" in page.text
    assert "The best 20 of 106 rows" in page.text
    assert "chosen from the data among 11 and the number of clusters from 2 to 12, without labels" in page.text
    assert len(page.ids()) == len(set(page.ids()))
    data = page.data()["tuning"]
    place, value = data["chosen"]
    assert data["labels"][place] == "graph · l2 · ρ 1"
    assert value == tuned.tuning.evaluations[tuned.tuning.selected].criterion
    assert [len(each["values"]) for each in data["rounds"]] == [10, 5]
    assert data["numbers"]["places"] == list(range(2, 13))
    assert max(data["numbers"]["lines"]["eigengap (share of the largest)"]) == 1


def test_one_number_of_clusters_has_no_plot_of_numbers(summary):
    page = Page(render(replace(summary, tuning=make_tuning(10, numbers=[10]))))
    assert page.data()["tuning"]["numbers"] is None
    assert "candidates" in page.ids()
    assert "numbers" not in page.ids()
    assert "chosen from the data among 11, without labels" in page.text
    assert "degree <= 0" in page.text  # what failed says why


def test_the_chosen_setting_is_shown_even_where_others_led(summary):
    tuning = make_tuning(10)
    chosen = tuning.evaluations[tuning.selected]
    better = [replace(chosen, kappa=(1.0, 1.0, 2.0 + i), criterion=0.89) for i in range(40)]
    many = replace(tuning, evaluations=(*tuning.evaluations, *better))
    shown = best_tried(many)
    assert shown[-1] is chosen
    assert len(shown) == 20
    data = chart_data(replace(summary, tuning=many))["tuning"]
    assert (data["chosen"], data["labels"][0]) == ([0, chosen.criterion], chosen.label)
    assert len(data["labels"]) == 30


def test_settings_are_listed_by_all_of_their_rounds(summary):
    tuning = make_split_tuning()
    first, second = tuning.evaluations[tuning.selected], tuning.evaluations[tuning.selected + 1]
    told = replace(summary, tuning=tuning)
    assert best_tried(tuning)[:2] == [first, second]
    assert chart_data(told)["tuning"]["labels"][:-3:-1] == [first.label, second.label]
    row = render(told).split(f"→ {first.label}</th>")[1].split("</tr>")[0]
    assert re.findall(r">([\d.,]+)</td>", row)[:5] == ["2", "1,500", "10", "0.85", "0.88"]


def test_names_of_settings_cannot_break_out(summary):
    tuning = make_tuning(10)
    rows = tuple(replace(row, kernel=NASTY, steps=(NASTY,) * 3) for row in tuning.evaluations)
    html = render(replace(summary, tuning=replace(tuning, reason=NASTY, evaluations=rows)))
    assert "alert(1)</script>" not in html


def test_one_similarity_is_no_error(summary):
    data = chart_data(replace(summary, similarities=Similarities("mean similarity", (0,), ((1.0,),))))
    assert data["similarities"]["range"] == [0.0, 1.0]


def test_what_is_missing_leaves_no_trace(summary):
    html = render(bare(summary))
    page = Page(html)
    assert [a["id"] for a in page.all("section")] == ["short", "clusters", "samples", "views", "settings"]
    assert "no picture of the samples" in page.text
    assert "None" not in page.text.replace("sigma2=None", "")
    assert "unsafe-eval" not in html
    assert len(html) < 0.1 * MEGABYTE  # without Plotly


@pytest.mark.parametrize("missing", ["silhouette", "eigenvalues", "explained_variance_ratio", "truth", "similarities"])
def test_any_single_part_may_be_missing(summary, missing):
    page = Page(render(replace(summary, **{missing: None})))
    assert "spectrum" in page.ids()
    assert ("heatmap" in page.ids()) == (missing != "similarities")
    assert ("contingency" in page.ids()) == (missing != "truth")


def test_two_clusters_have_one_component():
    page = Page(render(make_summary(60, 2)))
    assert "uses 1 component;" in page.text
    assert [len(space["components"]) for space in page.data()["points"]["spaces"]] == [1, 1, 1, 1]


def test_an_empty_cluster_is_shown_as_such(summary):
    empty = replace(
        summary.clusters[9], size=0, share=0.0, silhouette=None, margin=None, agreement={}, features=(), classes={}
    )
    page = Page(render(replace(summary, clusters=(*summary.clusters[:9], empty))))
    assert "9 clusters in 400 samples" in page.text


def test_marks_differ_for_a_hundred_clusters():
    marks = {(mark(c).colour, mark(c).shape) for c in range(100)}
    assert len(marks) == 100


def test_columns_that_stand_out_are_named_with_their_view_where_there_are_several(summary):
    assert "↑ pixels_0_0 pixels" in Page(render(summary)).text
    assert "↓ fourier_0_1 fourier" in Page(render(summary)).text
    assert "↑ pixels_0_0 pixels" not in Page(render(replace(summary, views=summary.views[:1]))).text


def test_known_classes_are_listed_in_reading_order(summary):
    classes = ("10", "2", "b10", "b9", "nan", "-1")
    points = replace(summary.points, classes=tuple(classes[i % 6] for i in range(len(summary.points.rows))))
    by_class = Page(render(replace(summary, points=points))).data()["points"]["groupings"][1]
    assert by_class["names"] == ["-1", "2", "10", "b9", "b10", "nan"]
    assert [by_class["names"][code] for code in by_class["codes"]] == list(points.classes)
    assert by_class["counts"] == [points.classes.count(name) for name in by_class["names"]]
    assert by_class["numbers"] == list(range(6))


def sentences(summary):
    return " ".join(sentence for _, part in story(summary).parts for sentence in part)


@pytest.mark.parametrize(
    ("silhouette", "words"),
    [(0.8, "clearly apart"), (0.6, "some samples between"), (0.3, "overlap at their borders"), (-0.2, "hardly stand")],
)
def test_words_for_how_clear_the_clusters_are(summary, silhouette, words):
    assert words in sentences(replace(summary, silhouette=silhouette))


@pytest.mark.parametrize(
    ("agreements", "words"),
    [
        ((0.9, 0.85, 0.82), "tell the same story"),
        ((0.9, 0.5, 0.1), "follow pixels most closely"),
        ((0.2, 0.4, 0.1), "No view alone gives these clusters"),
        ((0.1, 0.9, 0.1), "The views pixels and gradients group the samples otherwise"),
        ((0.1, 0.9, 0.9), "The view pixels groups the samples otherwise"),
    ],
)
def test_words_for_how_the_views_agree(summary, agreements, words):
    views = tuple(replace(view, agreement=value) for view, value in zip(summary.views, agreements, strict=True))
    assert words in sentences(replace(summary, views=views))


def test_words_point_at_what_deserves_a_look(summary):
    clusters = list(summary.clusters)
    clusters[3] = replace(clusters[3], share=0.005)
    assert "Cluster 3 is very small" in sentences(replace(summary, clusters=tuple(clusters)))
    unclear = tuple(replace(cluster, silhouette=0.1) for cluster in summary.clusters)
    assert "10 clusters are less clear" in sentences(replace(summary, clusters=unclear))
    assert "Clusters 0, 1 and 2 are less clear" in sentences(replace(summary, clusters=unclear[:3]))
    assert "Sample image 0 is the least certain, between clusters" in sentences(summary)
    assert "are listed below" not in sentences(replace(summary, uncertain=summary.uncertain[:1]))


def test_equal_clusters_and_one_view_are_told_plainly(summary):
    equal = tuple(replace(cluster, size=40) for cluster in summary.clusters)
    told = sentences(replace(summary, clusters=equal, views=summary.views[:1]))
    assert "All clusters have the same size, 40 samples." in told
    assert "using one view: pixels (64 columns)." in told


def test_splits_do_not_depend_on_how_a_view_numbers_its_groups(summary):
    renumbered = {name: tuple(9 - x for x in labels) for name, labels in summary.points.view_labels.items()}
    again = splits(replace(summary, points=replace(summary.points, view_labels=renumbered)))
    assert again == splits(summary)
    worst = again["pixels"][0]
    assert 0.5 <= worst.largest < 1
    assert worst.largest + worst.second == pytest.approx(1)


def test_a_view_with_the_same_labels_divides_nothing(summary):
    same = replace(summary.points, view_labels={"pixels": summary.points.labels})
    assert splits(replace(summary, points=same)) == {"pixels": []}


def test_rare_classes_are_counted_together():
    counts = tuple(tuple(range(50)) for _ in range(2))
    table = cross_table(Truth(tuple(map(str, range(50))), counts, 0.1, 0.1, 0.1, 0.1))
    assert table.n_other == 10
    assert table.classes[0] == "10"
    assert table.rows[0][-1] == sum(range(10))
    assert sum(table.shares[1]) == pytest.approx(1)


def test_the_file_is_the_page_and_nothing_else_is_left(summary, tmp_path):
    path = write_report(summary, str(tmp_path / "report.html"))
    assert path.read_bytes().decode() == render(summary)
    assert [file.name for file in tmp_path.iterdir()] == ["report.html"]


def test_a_fitted_model_can_be_reported():
    from coview import TMvKSCR

    views, truth = make_blobs()
    model = TMvKSCR(3, random_state=0).fit(views)
    page = Page(render(summarize(model, views, truth=truth)))
    assert "3 clusters in 90 samples" in page.text
    assert len(page.data()["points"]["samples"]) == 90


@pytest.mark.parametrize("module", ["jinja2", "plotly"])
def test_a_missing_extra_says_what_to_install(summary, monkeypatch, module):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=rf'{module}: pip install "coview\[report\]"'):
        render(summary)


def test_a_comparison_shows_methods_agreement_and_failures(tmp_path):
    path = write_comparison(make_comparison(), tmp_path / "comparison.html")
    html = path.read_text(encoding="utf-8")
    page = Page(html)
    assert html == render_comparison(make_comparison())
    for text in [
        "3 methods side by side",
        "the graph is not connected <b>",
        "500 ms",
        "95%",
        "and 8 more",
        "stopped early",
    ]:
        assert text in page.text
    assert "unsafe-eval" not in html
    assert len(html) < 0.1 * MEGABYTE
    assert [a["id"] for a in page.all("section")] == ["short", "methods", "agreement", "settings"]


def test_a_comparison_is_told_in_words():
    told = " ".join(s for _, part in comparison_story(make_comparison()).parts for s in part)
    assert "tmvkscr is nearest to the known classes (adjusted Rand index 0.90" in told
    assert "then opmc (0.45)" in told
    assert "opmc was quickest, tmvkscr slowest" in told
    assert "comic gave no labels" in told
    assert "The views were prepared first (columns standardised)." in told


def test_a_comparison_tells_how_views_were_prepared():
    mixed = replace(make_comparison(), preprocess={"text": "tfidf+l2", "image": "none"})
    told = " ".join(s for _, part in comparison_story(mixed).parts for s in part)
    assert "The views were prepared first (text: tf-idf, rows of length 1; image: as it is)." in told
    assert "Preparation of texttf-idf, rows of length 1" in " ".join(Page(render_comparison(mixed)).text.split())
    assert "tuned" not in told
    tuned = replace(mixed, methods=(replace(mixed.methods[0], name="tuned"), *mixed.methods[1:]))
    told = " ".join(s for _, part in comparison_story(tuned).parts for s in part)
    assert "methods with default settings, or for tuned with settings chosen from the data, looked for" in told
    assert "image: as it is), but for tuned, which has its own way." in told
    raw = replace(make_comparison(), preprocess={"text": "none", "image": "none"})
    assert "prepared" not in " ".join(s for _, part in comparison_story(raw).parts for s in part)


def test_a_comparison_without_classes_calls_no_method_best():
    comparison = make_comparison(has_truth=False)
    third = replace(comparison.methods[0], name="sfmc")
    rows = ((1.0, 0.5, 0.9), (0.5, 1.0, 0.2), (0.9, 0.2, 1.0))
    comparison = replace(comparison, methods=(*comparison.methods[:2], third), agreements=rows)
    told = " ".join(s for _, part in comparison_story(comparison).parts for s in part)
    assert "no method can be called best" in told
    assert "nearest" not in told
    assert "sfmc and tmvkscr agree most with one another (0.90), sfmc and opmc least (0.20)" in told
    assert "ARI" not in Page(render_comparison(comparison)).text.split("Agreement between methods")[0]


def test_a_comparison_of_one_method_is_no_race():
    comparison = make_comparison()
    alone = replace(comparison, methods=comparison.methods[:1], agreements=((1.0,),))
    told = " ".join(s for _, part in comparison_story(alone).parts for s in part)
    assert "1 method with default settings" in told
    assert "quickest" not in told
    assert "then" not in told
