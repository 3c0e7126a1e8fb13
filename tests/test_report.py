"""Reports as files: their text, their data, and their protection against injected code."""

import hashlib
import json
import re
import sys
from base64 import b64decode, b64encode
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser
from itertools import pairwise

import numpy as np
import pytest

from coview.compare import Comparison, MethodResult
from coview.core.tree import Branch
from coview.evaluate.structure import Structure
from coview.evaluate.support import LEVELS, ClusterGroup
from coview.evaluate.words import number_in_words, support_in_words
from coview.report import render, write_report
from coview.report.charts import MAX_SIMILARITIES, chart_data, pack
from coview.report.comparison import comparison_overview, preprocessing_descriptions
from coview.report.page import as_script
from coview.report.tables import cross_table, divisions, splits
from coview.summary import Similarities, Truth, summarize
from coview.summary.sentences import overview
from tests.conftest import make_blobs
from tests.summaries import FOUND, bare, make_number, make_summary, make_support

pytest.importorskip("plotly", reason="reports need plotly: pip install 'coview[report]'")
pytest.importorskip("jinja2", reason="reports need jinja2: pip install 'coview[report]'")

MEGABYTE = 1e6
NASTY = "</script><script>alert(1)</script><!-- & \"'\u2028\u2029 <b>{{ 7 * 7 }}</b>"


class Page(HTMLParser):
    """The elements of a page: their attributes, the text of scripts, and the visible text."""

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
        largest_class=0.4 if has_truth else None,
        version="0.1.0",
    )


def test_the_page_has_every_section_in_order(page):
    sections = [attributes["id"] for attributes in page.all("section")]
    assert sections == [
        "overview",
        "support",
        "clusters",
        "samples",
        "spectrum",
        "tree",
        "views",
        "features",
        "uncertain",
        "table",
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


def test_element_ids_are_unique_and_headings_do_not_skip_a_level(page):
    assert len(page.ids()) == len(set(page.ids()))
    levels = [int(tag[1]) for tag, _ in page.elements if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(later <= earlier + 1 for earlier, later in pairwise(levels))


def test_every_control_has_a_label(page):
    labelled = {attributes.get("for") for attributes in page.all("label")}
    controls = page.all("select") + page.all("input")
    assert len(controls) == 9
    assert {attributes["id"] for attributes in controls} <= labelled


def test_sortable_columns_have_an_aria_sort_attribute(page):
    sorts = [attributes["aria-sort"] for attributes in page.all("th") if "aria-sort" in attributes]
    assert sorts.count("ascending") == 3  # clusters by label, least certain samples by margin, all samples by row
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
    assert len(scripts) == 4
    assert rules["script-src"] == " ".join(f"'sha256-{digest}'" for digest in digests) + " 'unsafe-eval'"


def test_the_page_refers_to_no_other_file(page):
    for tag, attributes in page.elements:
        for name in ("src", "href", "srcset", "action", "data", "poster"):
            assert attributes.get(name, "#").startswith("#"), (tag, attributes)
    style = render(make_comparison()).split("<style>")[1].split("</style>")[0]
    assert not re.search(r"url\(|@import", style)


def test_names_are_escaped_in_text_and_data(summary):
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
            feature_means=replace(summary.feature_means, views=(NASTY,) * 6, names=(NASTY,) * 6),
            samples=replace(summary.samples, names=(NASTY,) * 400, classes=(NASTY,) * 400),
            points=points,
            notes=(NASTY,),
            seconds={NASTY: 1.0},
            versions={NASTY: NASTY},
            command=NASTY,
        )
    )
    page = Page(html)
    assert len(page.scripts) == 6
    assert page.data()["points"]["samples"][0] == NASTY
    assert page.data()["points"]["groupings"][-1]["name"] == f"view {NASTY}"
    assert page.text.count(NASTY) > 10
    assert "alert(1)</script>" not in html
    assert json.loads(page.scripts[1])[0]["names"] == [NASTY]  # of all samples
    assert not set("<>&\u2028\u2029") & set(page.scripts[0] + page.scripts[1])


def test_an_unpaired_surrogate_is_replaced(summary, tmp_path):
    broken = replace(summary, notes=("sample \ud800 was dropped",))
    assert "sample ? was dropped" in write_report(broken, tmp_path / "report.html").read_text(encoding="utf-8")


def test_numbers_that_are_not_finite_become_null():
    assert json.loads(as_script({"a": [float("nan"), (float("inf"), 1.5)], "b": None})) == {
        "a": [None, [None, 1.5]],
        "b": None,
    }
    script = as_script({"id": "</script>", "margin": float("nan")})
    assert script == r'{"id":"\u003c/script\u003e","margin":null}'


def unpack(packed):
    codes = np.frombuffer(b64decode(packed["codes"]), dtype="<u2")
    return np.where(codes == 65535, np.nan, packed["low"] + packed["step"] * codes)


def test_packed_numbers_are_restored_within_half_a_step():
    values = np.random.default_rng(0).normal(size=1000) * 1e-3
    values[[3, 5]] = np.nan, np.inf
    packed = pack(values)
    found = unpack(packed)
    assert np.isnan(found[[3, 5]]).all()
    known = np.isfinite(values)
    assert np.abs(found - values)[known].max() <= 0.501 * np.ptp(values[known]) / 65534
    packed = pack([1.0, 3.0])
    assert (packed["low"], packed["step"] * 65534, packed["codes"]) == (1.0, 2.0, "AAD+/w==")


@pytest.mark.parametrize("values", [[2.0, 2.0], [np.nan, np.nan], [1e300, -1e-300], []])
def test_extreme_values_can_be_packed(values):
    np.testing.assert_allclose(unpack(pack(values)), values, rtol=1e-4, atol=1e296)


def test_points_keep_their_scores_and_their_order(summary):
    points = chart_data(summary)["points"]
    scores = np.asarray(summary.points.scores)
    np.testing.assert_allclose(unpack(points["spaces"][0]["components"][3]), scores[:, 3], atol=1e-3)
    assert [space["name"] for space in points["spaces"]] == ["all views", "pixels", "fourier", "gradients"]
    clusters = points["groupings"][0]
    assert [clusters["numbers"][code] for code in clusters["codes"]] == list(summary.points.labels)
    assert sum(clusters["counts"]) == len(summary.points.labels)


def test_a_view_can_have_fewer_components(summary):
    few = {name: tuple(row[:2] for row in scores) for name, scores in summary.points.view_scores.items()}
    spaces = chart_data(replace(summary, points=replace(summary.points, view_scores=few)))["points"]["spaces"]
    assert [len(space["components"]) for space in spaces] == [9, 2, 2, 2]


def test_the_map_and_all_quantities_are_in_the_data(summary):
    points = chart_data(summary)["points"]
    np.testing.assert_allclose(
        np.transpose([unpack(axis) for axis in points["map"]]), summary.points.positions, atol=1e-4
    )
    shown = {quantity["name"]: unpack(quantity["values"]) for quantity in points["quantities"]}
    assert list(shown) == ["margin", "membership", "novelty"]
    np.testing.assert_allclose(shown["margin"], summary.points.margins, atol=1e-4)
    np.testing.assert_allclose(shown["membership"], summary.points.memberships, atol=1e-4)
    np.testing.assert_allclose(shown["novelty"], summary.points.novelties, atol=1e-4)
    unknown = {"margins": None, "memberships": None, "novelties": None}
    without = replace(summary, map=None, points=replace(summary.points, positions=(), **unknown))
    assert chart_data(without)["points"]["map"] is None
    assert chart_data(without)["points"]["quantities"] == []
    assert "On the map" not in render(without)


def test_small_branches_and_many_clusters_are_not_drawn(summary):
    tree = (Branch(2, 0, 3, 0, 996), Branch(2, 0, 3, 2, 4), Branch(2, 1, 3, 1, 500), Branch(3, 0, 30, 0, 1500))
    data = chart_data(replace(summary, tree=tree))["tree"]
    assert data["nodes"] == [[2, 0], [3, 0], [2, 1], [3, 1]]
    assert (data["sources"], data["targets"], data["sizes"]) == ([0, 2], [1, 3], [996, 500])
    only_many = chart_data(replace(summary, tree=(Branch(2, 0, 30, 0, 5),)))["tree"]
    assert only_many["nodes"] == [[2, 0], [30, 0]]


def test_divided_clusters_have_two_parts_of_some_size():
    tree = (
        Branch(2, 0, 3, 0, 89),
        Branch(2, 0, 3, 2, 11),
        Branch(2, 1, 3, 1, 91),
        Branch(2, 1, 3, 2, 9),
        Branch(3, 0, 25, 0, 50),
        Branch(3, 0, 25, 1, 50),
    )
    assert divisions(tree) == [(2, 3, 0, [(0, 0.89), (2, 0.11)])]


def test_long_names_are_shortened_in_the_plots(summary):
    points = replace(summary.points, samples=("x" * 500, *summary.points.samples[1:]))
    assert chart_data(replace(summary, points=points))["points"]["samples"][0] == "x" * 40 + "…" + "x" * 39


@pytest.mark.parametrize(("n_samples", "n_clusters"), [(20_000, 12), (50_000, 10), (50_000, 100)])
def test_a_report_of_many_samples_is_small_and_states_how_many_it_plots(n_samples, n_clusters, tmp_path):
    big = make_summary(n_samples, n_clusters)
    path = write_report(big, tmp_path / "report.html")
    assert path.stat().st_size < 8 * MEGABYTE
    page = Page(path.read_text(encoding="utf-8"))
    assert f"The plot shows 5,000 of {n_samples:,} samples" in page.text
    assert "trained on 2,000 samples. The labels of all other samples are predicted." in page.text
    assert len(page.data()["points"]["samples"]) == 5000


def test_points_and_similarities_above_the_limits_are_thinned(summary):
    n = 2 * MAX_SIMILARITIES
    labels = tuple(range(n))
    similarities = Similarities("mean similarity", labels, tuple(map(tuple, np.eye(n).tolist())))
    data = chart_data(replace(make_summary(9000, 3, n_drawn=9000), similarities=similarities))
    assert len(data["points"]["samples"]) == 5000
    assert len(data["similarities"]["labels"]) == MAX_SIMILARITIES


def test_settings_contain_the_preprocessing_of_each_view(summary):
    first, *others = summary.views
    page = Page(render(replace(summary, views=(replace(first, preprocessing="tf-idf, L2-normalised rows"), *others))))
    settings = " ".join(page.text.split("The settings, versions and run times")[1].split())
    assert f"Preprocessing pixelstf-idf, L2-normalised rows fourier{others[0].preprocessing}" in settings


def table_rows(html, table):
    """Return the text of the cells of each row of the body of a table."""
    body = html.split(f'id="{table}"')[1].split("<tbody>")[1].split("</tbody>")[0]
    rows = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.DOTALL) for row in body.split("<tr>")[1:]]
    return [[unescape(re.sub("<[^>]*>", "", cell)) for cell in row] for row in rows]


@pytest.mark.parametrize("level", LEVELS)
def test_the_picture_of_the_support_has_the_ratios_and_the_stability_of_all_clusters(summary, level):
    data = chart_data(replace(summary, support=make_support(10, level)))["support"]
    ratios, stability = data["measures"]
    assert (ratios["name"], ratios["supported"], ratios["bound"]) == ("valley ratio", (0.0, 0.4), 0.7)
    assert (stability["name"], stability["supported"], stability["bound"]) == ("stability", (0.75, 1.0), 0.6)
    assert ratios["values"] == make_support(10, level).valleys
    assert stability["values"] == (0.9,) * 10
    assert ratios["texts"][3].startswith("cluster 3: valley ratio 0.")
    if level == "strong":
        assert max(ratios["values"]) <= 0.4
        assert data["groups"] == []
    else:
        (group,) = data["groups"]
        assert group["name"] == ("0, 1, 2" if level == "moderate" else "all samples")
        assert (group["excess"] >= group["needed"]) == (level != "none")


def test_excess_modularity_is_in_the_shaded_area_exactly_if_structure_is_found(summary):
    for excess in (-0.01, 0.019999, 0.02, 0.03, 0.1):
        for deviation in (0.0, 0.01, 0.015, 0.0150001, 0.04):
            structure = Structure(6.0, excess, deviation)
            support = make_support(10, "weak")
            support = replace(support, groups=(replace(support.groups[0], structure=structure),))
            group = chart_data(replace(summary, support=support))["support"]["groups"][0]
            assert (group["excess"] >= group["needed"]) == structure.is_found, structure


def test_one_cluster_has_its_excess_modularity_only(summary):
    one = replace(
        summary,
        clusters=(replace(summary.clusters[0], stability=None),),
        n_clusters=1,
        support=make_support(1, "none"),
        number=replace(make_number(2), n_clusters=1, parts=make_number(3).parts[1:2]),
    )
    data = chart_data(one)["support"]
    assert data["measures"] == []
    assert [group["name"] for group in data["groups"]] == ["all samples"]
    page = Page(render(one))
    assert "excess" in page.ids()
    assert "ratios" not in page.ids()
    assert "No cluster structure found in 400 samples" in page.text
    assert "Valley ratio" not in page.text
    unknown = replace(one.support.groups[0], structure=Structure(2.5, None, None))  # a curve
    without = Page(render(replace(one, support=replace(one.support, groups=(unknown,)))))
    assert "support" not in without.ids()
    assert "as those of a curve or a surface" in without.text


def test_missing_stability_and_support_are_not_drawn(summary):
    unknown = tuple(replace(cluster, stability=None) for cluster in summary.clusters)
    assert [each["name"] for each in chart_data(replace(summary, clusters=unknown))["support"]["measures"]] == [
        "valley ratio"
    ]
    assert [each["name"] for each in chart_data(replace(summary, support=None))["support"]["measures"]] == ["stability"]
    assert chart_data(replace(summary, support=None, clusters=unknown))["support"] is None
    assert "support" not in Page(render(replace(summary, support=None, clusters=unknown))).ids()


def test_the_support_has_a_text_alternative(summary):
    support = replace(summary.support, valleys=(0.40004, *summary.support.valleys[1:3], None, *[0.3] * 6))
    html = render(replace(summary, support=support))
    header = re.findall(r'<button type="button">(.*?)</button>', html.split('id="clusters-table"')[1])
    place = header.index("Valley ratio")
    column = [row[place] for row in table_rows(html, "clusters-table")]
    assert column == ["0.40004 with 1", "0.71 with 2", "0.72 with 3", "–", *[f"0.30 with {c}" for c in range(5, 10)],
                      "0.30 with 0"]  # fmt: skip
    labels = {a["id"]: a["aria-label"] for a in Page(html).all("div") if a.get("role") == "img"}
    assert labels["ratios"].startswith("Valley ratio and stability of each cluster")
    assert "0, 1, 2: excess modularity 0.15, at least 0.01 is needed" in labels["excess"]


def test_many_clusters_of_a_group_are_counted_and_many_groups_cut(summary):
    big = make_summary(400, 30)
    groups = tuple(ClusterGroup((2 * i, 2 * i + 1), 80, FOUND) for i in range(15))
    data = chart_data(replace(big, support=replace(big.support, groups=groups)))["support"]
    assert [group["name"] for group in data["groups"]] == ["0, 1", "2, 3", "4, 5", "6, 7", "8, 9", "10, 11"]
    groups = tuple(ClusterGroup(tuple(range(*ends)), 10, FOUND) for ends in ((0, 4), (4, 9), (9, 30)))
    data = chart_data(replace(big, support=replace(big.support, groups=groups)))["support"]
    names = [group["name"] for group in data["groups"]]
    assert names == ["0, 1, 2, 3", "4, 5, 6\nand 2 more", "9, 10, 11\nand 18 more"]
    hundred = make_summary(400, 100)
    assert chart_data(hundred)["support"]["height"] <= 800


def test_a_single_similarity_can_be_drawn(summary):
    data = chart_data(replace(summary, similarities=Similarities("mean similarity", (0,), ((1.0,),))))
    assert data["similarities"]["range"] == [0.0, 1.0]


def test_missing_parts_are_omitted(summary):
    html = render(bare(summary))
    page = Page(html)
    assert [a["id"] for a in page.all("section")] == ["overview", "clusters", "samples", "views", "table", "settings"]
    assert "there is no scatter plot" in page.text
    assert "None" not in page.text.replace("sigma2=None", "")
    assert "unsafe-eval" not in html
    assert len(html) < 0.1 * MEGABYTE  # without Plotly


@pytest.mark.parametrize("missing", ["silhouette", "eigenvalues", "explained_variance_ratio", "truth", "similarities"])
def test_any_single_part_can_be_missing(summary, missing):
    page = Page(render(replace(summary, **{missing: None})))
    assert "spectrum" in page.ids()
    assert ("heatmap" in page.ids()) == (missing != "similarities")
    assert ("contingency" in page.ids()) == (missing != "truth")


def test_two_clusters_have_one_component():
    page = Page(render(make_summary(60, 2)))
    assert "The method uses 1 component." in page.text
    assert [len(space["components"]) for space in page.data()["points"]["spaces"]] == [1, 1, 1, 1]


def test_an_empty_cluster_is_not_counted(summary):
    empty = replace(
        summary.clusters[9],
        size=0,
        fraction=0.0,
        silhouette=None,
        margin=None,
        kept_together={},
        features=(),
        classes={},
    )
    page = Page(render(replace(summary, clusters=(*summary.clusters[:9], empty))))
    assert "9 clusters in 400 samples" in page.text


def test_distinguishing_features_name_their_view_if_there_are_several(summary):
    assert "↑ pixels_0_0 pixels" in Page(render(summary)).text
    assert "↓ fourier_0_1 fourier" in Page(render(summary)).text
    assert "↑ pixels_0_0 pixels" not in Page(render(replace(summary, views=summary.views[:1]))).text


def test_known_classes_are_listed_in_reading_order(summary):
    classes = ("10", "2", "b10", "b9", "nan", "-1")
    points = replace(summary.points, classes=tuple(classes[i % 6] for i in range(len(summary.points.rows))))
    counts = tuple(points.classes.count(name) for name in classes)
    truth = replace(summary.truth, classes=classes, contingency=(counts,) + ((0,) * 6,) * 9)
    by_class = Page(render(replace(summary, points=points, truth=truth))).data()["points"]["groupings"][1]
    assert by_class["names"] == ["-1", "2", "10", "b9", "b10", "nan"]
    assert [by_class["names"][code] for code in by_class["codes"]] == list(points.classes)
    assert by_class["counts"] == [points.classes.count(name) for name in by_class["names"]]
    assert by_class["numbers"] == list(range(6))


def sentences(summary):
    return " ".join(sentence for part in overview(summary).parts.values() for sentence in part)


@pytest.mark.parametrize("level", LEVELS)
def test_the_support_is_stated(summary, level):
    support = make_support(10, level)
    assert support.level == level
    stated = replace(summary, support=support)
    assert all(sentence in sentences(stated) for sentence in support_in_words(support))
    shown = dict(re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", render(stated)))
    assert shown["Support"] == level


def test_a_report_of_clusters_without_support_begins_with_reliability(summary):
    unsupported = replace(summary, support=make_support(10, "none"))
    assert next(iter(overview(unsupported).parts)) == "Reliability"
    assert next(iter(overview(summary).parts)) == "Method"
    one = replace(summary, support=make_support(1, "none"), clusters=summary.clusters[:1], n_clusters=1)
    assert overview(one).title == "No cluster structure found in 400 samples"
    assert overview(replace(one, support=None)).title == "1 cluster in 400 samples"


def test_agreement_and_stability_are_no_evidence_of_clusters_without_support(summary):
    caution = "Clusters without support can be stable, too."
    assert "agree most with those by view" in sentences(summary)
    assert caution not in sentences(summary)
    unsupported = sentences(replace(summary, support=make_support(10, "none")))
    assert "agree most with those by view" not in unsupported
    assert "adjusted Rand index; 1 is identical, 0 is chance" in unsupported  # with the known classes
    assert caution in unsupported


def test_the_selection_of_the_number_of_clusters_is_stated(summary):
    number = make_number(10)
    assert number_in_words(number) in sentences(replace(summary, number=number))
    assert "are merged (partitions of up to" not in sentences(summary)


def test_unknown_support_is_not_stated(summary):
    unknown = replace(summary, support=None)
    html = render(unknown)
    assert "Support" not in re.findall("<dt>(.*?)</dt>", html)
    assert "Valley ratio" not in Page(html).text
    assert "support" not in " ".join(overview(unknown).parts["Reliability"])


@pytest.mark.parametrize(
    ("agreements", "words"),
    [
        ((0.9, 0.85, 0.82), "The labels by each view alone agree with the joint labels: 0.82 to 0.90"),
        ((0.9, 0.5, 0.1), "agree most with those by view pixels alone, 0.90"),
        ((0.2, 0.4, 0.1), "by no single view agree with the joint labels. The closest are those by fourier: 0.40"),
        ((0.1, 0.9, 0.1), "Views pixels and gradients have different labels"),
        ((0.1, 0.9, 0.9), "View pixels has different labels"),
    ],
)
def test_the_agreement_of_the_views_is_described(summary, agreements, words):
    views = tuple(replace(view, agreement=value) for view, value in zip(summary.views, agreements, strict=True))
    assert words in sentences(replace(summary, views=views))


def test_sentences_name_clusters_and_samples_to_check(summary):
    clusters = list(summary.clusters)
    clusters[3] = replace(clusters[3], fraction=0.005)
    assert "Cluster 3 has less than 1% of the samples" in sentences(replace(summary, clusters=tuple(clusters)))
    unclear = tuple(replace(cluster, silhouette=0.1) for cluster in summary.clusters)
    assert "10 clusters have a silhouette below 0.25" in sentences(replace(summary, clusters=unclear))
    assert "Clusters 0, 1 and 2 have a silhouette below 0.25" in sentences(replace(summary, clusters=unclear[:3]))
    assert "Sample image 0 has the smallest margin, between clusters" in sentences(summary)
    assert "are listed below" not in sentences(replace(summary, uncertain=summary.uncertain[:1]))


def test_equal_cluster_sizes_and_a_single_view_are_described(summary):
    equal = tuple(replace(cluster, size=40) for cluster in summary.clusters)
    text = sentences(replace(summary, clusters=equal, views=summary.views[:1]))
    assert "All clusters have the same size: 40 samples." in text
    assert "based on 1 view: pixels (64 columns)." in text


def test_splits_do_not_depend_on_the_numbers_of_the_labels_of_a_view(summary):
    renumbered = {name: tuple(9 - x for x in labels) for name, labels in summary.points.view_labels.items()}
    again = splits(replace(summary, points=replace(summary.points, view_labels=renumbered)))
    assert again == splits(summary)
    worst = again["pixels"][0]
    assert 0.5 <= worst.largest < 1
    assert worst.largest + worst.second == pytest.approx(1)


def test_a_view_with_the_same_labels_divides_no_cluster(summary):
    same = replace(summary.points, view_labels={"pixels": summary.points.labels})
    assert splits(replace(summary, points=same)) == {"pixels": []}


def test_rare_classes_are_summed_up():
    counts = tuple(tuple(range(50)) for _ in range(2))
    table = cross_table(Truth(tuple(map(str, range(50))), counts, 0.1, 0.1, 0.1, 0.1, 0.1))
    assert table.n_other == 10
    assert sorted(table.classes) == [str(i) for i in range(10, 50)]
    assert table.rows[0][-1] == sum(range(10))
    assert sum(table.rows[1]) == sum(range(50))


def test_classes_are_in_the_order_of_the_clusters_that_they_match():
    truth = Truth(("a", "b", "c", "d"), ((1, 0, 9, 0), (8, 2, 0, 0), (0, 7, 0, 1)), 0.1, 0.1, 0.1, 0.1, 0.1)
    table = cross_table(truth)
    assert table.classes == ["c", "a", "b", "d"]
    assert table.rows == [[9, 1, 0, 0], [0, 8, 2, 0], [0, 0, 7, 1]]
    fewer = cross_table(replace(truth, classes=("a", "b"), contingency=((0, 4), (1, 3), (5, 0))))
    assert fewer.classes == ["b", "a"]


def test_the_accuracy_is_beside_the_fraction_of_the_largest_class(summary):
    truth = replace(summary.truth, accuracy=0.7, largest_class=0.78, ari=0.997, nmi=0.003)
    page = Page(render(replace(summary, truth=truth)))
    overview = page.text.split("Known classes")[1]
    assert "largest class 78%" in overview
    assert "A single cluster would reach 78%, the fraction of the largest class." in page.text
    assert page.text.count("0.997") == 3  # key figure, sentence and section
    assert page.text.count("0.003") >= 3
    assert "1.00" not in overview.split("Clusters")[0]


def test_bars_of_fractions_are_relative_to_all_samples(summary):
    cluster = replace(summary.clusters[0], fraction=0.05)
    html = render(replace(summary, clusters=(cluster, *summary.clusters[1:])))
    assert '<span class="meter" style="--v:0.050"></span>5%' in html


def test_the_legend_counts_all_samples_and_not_only_those_drawn():
    big = make_summary(9000, 3)
    groupings = {each["name"]: each for each in chart_data(big)["points"]["groupings"]}
    assert groupings["cluster"]["counts"] == [cluster.size for cluster in big.clusters]
    assert sum(groupings["known class"]["counts"]) == sum(groupings["view pixels"]["counts"]) == 9000
    some = replace(
        big, views=tuple(replace(view, sizes=None) for view in big.views)
    )  # labels of the drawn samples only
    assert chart_data(some)["points"]["groupings"][-1]["counts"] is None


def test_long_names_of_columns_and_classes_stay_distinct(summary):
    names = [f"ENSG1000000000000{i:06}" for i in range(10)]
    clusters = tuple(
        replace(c, features=(replace(c.features[0], name=name),), classes={f"T cell, CD4 positive, {name}": 3})
        for c, name in zip(summary.clusters, names, strict=True)
    )
    truth = replace(summary.truth, classes=tuple(f"T cell, CD4 positive, {name}" for name in names))
    html = render(replace(summary, clusters=clusters, truth=truth))
    tags = re.findall(r'<span class="tag"[^>]*>[↑↓] ([^ ]+)', html)
    assert len(tags) == len(set(tags)) == 10
    header = html.split('id="contingency"')[1].split("</thead>")[0]
    shown = re.findall(r'<span title="[^"]+">([^<]+)</span>', header)
    assert len(shown) == len(set(shown)) == 10
    assert max(map(len, shown)) <= 18


def test_the_spectrum_has_eigenvalues_beyond_those_used(summary):
    data = chart_data(summary)
    assert len(data["eigenvalues"]) == 9
    assert list(data["further"]) == [0.05, 0.04, 0.03]
    small = chart_data(replace(summary, explained_variance_ratio=(0.0003, 0.0001)))["variance"]
    assert small["shown"] == ["0.03%", "0.01%"]
    assert small["cumulative_shown"] == ["0.03%", "0.04%"]


def test_view_cards_have_preprocessing_and_weights(summary):
    text = " ".join(Page(render(summary)).text.split("Most divided clusters")[1].split())
    for words in ("Preprocessingstandardised columns", "kappa2 weight in the sum", "rho0.5 weight of the sum"):
        assert words in text


def test_standardised_means_are_a_table_of_columns_by_clusters(summary):
    html = render(summary)
    table = html.split('id="means"')[1].split("</table>")[0]
    assert table.count("<tr>") == 1 + 6
    assert table.count("<td class=") == 6 * 10
    value = summary.feature_means.values[0][0]
    assert f"{value:+.1f}".replace("-", "\N{MINUS SIGN}") in table.split("<tr>")[2]
    assert 'id="means"' not in render(replace(summary, feature_means=None))


def column_values(column):
    """The values of a column of the table of samples, as the script of the page decodes them."""
    if "values" in column:
        return column["values"]
    width = "<u2" if len(column["names"]) > 256 else "u1"
    return [column["names"][code] for code in np.frombuffer(b64decode(column["codes"]), width)]


def test_the_table_of_samples_states_how_many_it_has():
    big = make_summary(30_000, 3)
    page = Page(render(big))
    assert "The table has 20,000 of 30,000 samples" in page.text
    columns = json.loads(page.scripts[1])
    assert [column["name"] for column in columns] == [
        *("Sample", "Row", "Cluster", "Membership", "Novelty"),
        *("Nearest other", "Margin", "Best view", "Stability", "Class"),
    ]
    values = {column["name"]: column_values(column) for column in columns}
    assert values["Row"] == list(big.samples.rows)
    assert values["Cluster"] == list(big.samples.labels)
    assert values["Best view"] == list(big.samples.best_views)
    assert values["Membership"] == list(big.samples.memberships)  # more than 256 different numbers
    assert values["Novelty"] == list(big.samples.novelties)
    assert {len(each) for each in values.values()} == {20_000}
    assert "The table has" not in Page(render(make_summary(300, 3))).text


def test_the_file_contains_the_page_and_no_temporary_file_remains(summary, tmp_path):
    path = write_report(summary, str(tmp_path / "report.html"))
    assert path.read_bytes().decode() == render(summary)
    assert [file.name for file in tmp_path.iterdir()] == ["report.html"]


def test_a_fitted_model_has_a_report():
    from coview import TMvKSCR

    views, truth = make_blobs()
    model = TMvKSCR(3, random_state=0).fit(views)
    page = Page(render(summarize(model, views, truth=truth)))
    assert "3 clusters in 90 samples" in page.text
    assert len(page.data()["points"]["samples"]) == 90


@pytest.mark.parametrize("module", ["jinja2", "plotly"])
def test_a_missing_extra_is_named(summary, monkeypatch, module):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=rf'{module}: pip install "coview\[report\]"'):
        render(summary)


def test_a_comparison_has_methods_agreement_and_failures(tmp_path):
    path = write_report(make_comparison(), tmp_path / "comparison.html")
    html = path.read_text(encoding="utf-8")
    page = Page(html)
    assert html == render(make_comparison())
    for text in [
        "Comparison of 3 methods",
        "the graph is not connected <b>",
        "500 ms",
        "95%",
        "and 8 more",
        "stopped early",
    ]:
        assert text in page.text
    assert "unsafe-eval" not in html
    assert len(html) < 0.1 * MEGABYTE
    assert [a["id"] for a in page.all("section")] == ["overview", "methods", "agreement", "settings"]


def comparison_sentences(comparison):
    return " ".join(sentence for part in comparison_overview(comparison).parts.values() for sentence in part)


def test_the_result_of_a_comparison_is_described():
    text = comparison_sentences(make_comparison())
    assert "tmvkscr agrees most with the known classes: 0.90 (adjusted Rand index" in text
    assert "followed by opmc (0.45)." in text
    assert "opmc is the fastest method, tmvkscr the slowest." in text
    assert "There are no labels of comic" in text
    described = preprocessing_descriptions(make_comparison())
    assert f"Preprocessing of all views: {described['text']}." in text


def test_the_preprocessing_of_a_comparison_is_described():
    mixed = replace(make_comparison(), preprocess={"text": "tfidf+l2", "image": "none"})
    described = preprocessing_descriptions(mixed)
    assert "tf-idf" in described["text"]
    text = comparison_sentences(mixed)
    assert f"Preprocessing: {described['text']} (text); {described['image']} (image)." in text
    assert f"Preprocessing of text{described['text']}" in " ".join(Page(render(mixed)).text.split())
    assert "consensus" not in text
    with_coview = replace(mixed, methods=(replace(mixed.methods[0], name="coview"), *mixed.methods[1:]))
    assert "coview is the consensus of many clusterings" in comparison_sentences(with_coview)
    usual = replace(make_comparison(), preprocess={"text": None, "image": None})
    assert "Preprocessing of all views: the default of each method." in comparison_sentences(usual)
    raw = replace(make_comparison(), preprocess={"text": "none", "image": "none"})
    assert "Preprocessing" not in comparison_sentences(raw)


def test_a_comparison_without_classes_ranks_no_method():
    comparison = make_comparison(has_truth=False)
    third = replace(comparison.methods[0], name="sfmc")
    rows = ((1.0, 0.5, 0.9), (0.5, 1.0, 0.2), (0.9, 0.2, 1.0))
    comparison = replace(comparison, methods=(*comparison.methods[:2], third), agreements=rows)
    text = comparison_sentences(comparison)
    assert "the methods cannot be ranked" in text
    assert "agrees most" not in text
    assert "The labels of sfmc and tmvkscr agree most (0.90), those of sfmc and opmc least (0.20)." in text
    assert "ARI" not in Page(render(comparison)).text.split("Agreement between methods")[0]


def test_a_comparison_of_one_method_names_no_fastest_or_second():
    comparison = make_comparison()
    alone = replace(comparison, methods=comparison.methods[:1], agreements=((1.0,),))
    text = comparison_sentences(alone)
    assert "1 method with default settings assigns 60 samples to 3 clusters" in text
    assert "fastest" not in text
    assert "followed" not in text


def test_contributions_are_a_table_of_views_by_clusters(summary):
    table = Page(render(summary)).text.partition("Contributions\n")[2]
    assert "50%" in table  # 0.3 of 0.6
    assert "the same model predicts without the view" in table
    contrary = replace(summary.clusters[0], contributions={"pixels": 0.5, "fourier": 0.1, "gradients": -0.1})
    contrary = replace(contrary, contradicted={"pixels": 0.0, "fourier": 0.2, "gradients": 0.8})
    text = Page(render(replace(summary, clusters=(contrary, *summary.clusters[1:])))).text
    assert "\N{MINUS SIGN}20% 80%" in text
    assert "View gradients contradicts the labels of most samples of cluster 0: it supports another cluster." in text
    without = Page(render(bare(summary))).text
    assert "Contributions" not in without
    assert "predicts without the view" not in without


def test_the_stability_has_its_reading_in_words(summary):
    unstable = replace(summary.clusters[0], stability=0.55)
    text = Page(render(replace(summary, clusters=(unstable, *summary.clusters[1:])))).text
    assert "0.55 not to be trusted" in text
    assert "0.90 stable" in text
    assert "(20 models, 200 samples each)" in text
    assert "Cluster 0 has a stability below 0.6, too low to be trusted." in text


def test_numbers_are_shown_with_the_digits_that_decide_on_their_level(summary):
    cluster = replace(summary.clusters[0], stability=0.59999, silhouette=0.2496, fraction=0.00996)
    view = replace(summary.views[0], agreement=0.4998)
    uncertain = replace(summary.uncertain[0], membership=0.497)
    changed = replace(
        summary,
        clusters=(cluster, *summary.clusters[1:]),
        views=(view, *summary.views[1:]),
        uncertain=(uncertain, *summary.uncertain[1:]),
        support=replace(summary.support, valleys=(0.4001, *summary.support.valleys[1:])),
    )
    text = Page(render(changed)).text
    assert "0.59999 not to be trusted" in text
    assert "0.2496" in text
    assert "0.996%" in text
    assert "0.4998 ARI" in text
    assert "0.497" in text
    assert "0.4001 with 1" in text
    almost = replace(cluster, stability=0.6 - 1e-12)
    text = Page(render(replace(changed, clusters=(almost, *summary.clusters[1:])))).text
    assert "0.60 doubtful" in text
    assert "a stability below 0.6" not in text


def with_certainty(summary, memberships, novelties):
    """The summary with these memberships and novelties of its first samples, and usual ones of the others."""
    n = len(summary.samples.rows)
    samples = replace(
        summary.samples,
        memberships=(*memberships, *[0.9] * (n - len(memberships))),
        novelties=(*novelties, *[0.5] * (n - len(novelties))),
    )
    return replace(summary, samples=samples)


def test_samples_of_low_membership_and_high_novelty_are_counted(summary):
    text = Page(render(with_certainty(summary, [0.499, 0.3, 0.5], [0.991, None, 0.99]))).text
    assert "2 of 400 samples (0.5%) have a membership below 0.5. Membership estimates the fraction of models" in text
    assert text.count("Membership estimates the fraction of models") == 2  # also above the table of samples
    of_coview = Page(render(replace(summary, method="FixedSize(Coview)"))).text
    assert of_coview.count("Membership is the mean of two fractions") == 2
    assert "Membership estimates" not in of_coview
    assert "1 of 400 samples (0.2%) has a novelty above 0.99: such a sample is less similar" in text
    assert "at most about 1% of the training samples" in text
    usual = with_certainty(summary, [], [])
    text = Page(render(replace(usual, of_training=False))).text
    assert "No sample has a membership below 0.5" in text
    assert "No sample has a novelty above 0.99" in text
    assert "at most about 1% of the training samples" not in text
    part = with_certainty(make_summary(500, 3, n_drawn=100, n_listed=200), [0.4], [])
    text = Page(render(part)).text
    assert "1 of 200 samples of the table (0.5%) has a membership below 0.5" in text
    assert "No sample of the table has a novelty above 0.99" in text


def test_memberships_are_in_the_tables_of_clusters_and_of_uncertain_samples(summary):
    page = Page(render(summary))
    assert "0.84" in page.text  # the mean of cluster 7
    assert page.text.count("0.40") >= len(summary.uncertain)
    without = Page(render(bare(summary))).text
    assert "Membership" not in without
    assert "membership" not in without
    assert "ovelty" not in without
