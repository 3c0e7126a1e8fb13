"""The report in a browser: plots, mouse and keyboard, contrast in both themes, no network requests."""

import csv
import json
import time
from dataclasses import replace

import numpy as np
import pytest

from coview.report import write_report
from coview.summary import SampleMap
from tests.browser import needs_browser, start_browser, wait_for
from tests.summaries import make_number, make_summary, make_support
from tests.test_report import NASTY, make_comparison

FORMULA = '=HYPERLINK("https://example.org","open")'

pytest.importorskip("selenium", reason="browser tests need selenium: pip install 'coview[dev]'")
pytestmark = needs_browser


@pytest.fixture(scope="module")
def browser():
    driver = start_browser()
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def summaries():
    small = make_summary(400, 10)
    nasty = replace(
        small,
        points=replace(small.points, samples=(NASTY,) * len(small.points.samples)),
        samples=replace(small.samples, names=(NASTY, FORMULA, "plain, name", *small.samples.names[3:])),
        views=(replace(small.views[0], name=NASTY), *small.views[1:]),
        notes=(NASTY,),
    )
    tiny = make_summary(300, 2)
    tiny = replace(tiny, samples=replace(tiny.samples, stability=(None, *tiny.samples.stability[1:])))
    return {
        "small": small,
        "nasty": nasty,
        "two": replace(tiny, explained_variance_ratio=(0.00004,), eigenvalues=(0.00003,), further_eigenvalues=None),
        "weak": replace(
            small,
            number=make_number(10),
            support=replace(make_support(10, "weak"), valleys=(2.34, None, *[0.5] * 8)),
            clusters=tuple(replace(c, stability=0.35 + 0.06 * c.label) for c in small.clusters),
        ),
        "new": replace(small, of_training=False, map=SampleMap("made up", (0, 1), ((-1.0, 0.5), (0.5, 1.0)))),
        "hundred": make_summary(4000, 100, n_components=10),
        "large": make_summary(50_000, 10),
    }


@pytest.fixture(scope="module")
def pages(summaries, tmp_path_factory):
    folder = tmp_path_factory.mktemp("reports")
    made = {name: write_report(summary, folder / f"{name}.html") for name, summary in summaries.items()}
    made["comparison"] = write_report(make_comparison(), folder / "comparison.html")
    return made


@pytest.fixture
def opened(browser, pages):
    """Return a function that opens a page, waits until it is ready, and returns the browser."""

    def opened(name, width=1280, height=900, theme="light"):
        for log in ("browser", "performance"):
            browser.get_log(log)  # discard the messages of the previous test
        features = [
            {"name": "prefers-color-scheme", "value": theme},
            {"name": "prefers-reduced-motion", "value": "reduce"},  # clicks do not wait for smooth scrolling
        ]
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        browser.get(pages[name].as_uri())
        wait_for(browser, "document.documentElement.dataset.ready !== undefined")
        return browser

    return opened


def run(browser, script):
    return browser.execute_script(script)


def choose(browser, select, text):
    from selenium.webdriver.support.select import Select

    Select(browser.find_element("id", select)).select_by_visible_text(text)


def trace(browser):
    """Return the data of the scatter plot."""
    return run(browser, "const {x, y, marker} = document.getElementById('scatter').data.at(-1); return {x, y, marker}")


def column(browser, table, number):
    cells = f"#{table} tbody tr:not([hidden]) > :nth-child({number})"
    return [cell.text for cell in browser.find_elements("css selector", cells)]


@pytest.mark.parametrize("name", ["small", "two", "weak", "new", "hundred", "large", "comparison"])
def test_pages_open_without_errors_and_without_the_network(opened, pages, name):
    browser = opened(name)
    assert [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"] == []
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    asked = [m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"]
    assert pages[name].as_uri() in asked
    assert {url for url in asked if not url.startswith(("data:", "blob:"))} == {pages[name].as_uri()}
    assert run(browser, "return performance.getEntriesByType('resource').map((entry) => entry.name)") == []


def test_the_policy_blocks_network_requests_and_new_scripts(opened):
    browser = opened("small")
    violated = browser.execute_async_script(
        """const done = arguments[0];
        const blocked = [];
        document.addEventListener("securitypolicyviolation", (event) => {
          blocked.push(event.effectiveDirective);
          if (blocked.length === 3) done(blocked.sort());
        });
        fetch("https://example.org/").catch(() => {});
        new Image().src = "https://example.org/picture.png";
        document.head.append(Object.assign(document.createElement("script"), {textContent: "window.escaped = 1"}));"""
    )
    assert violated == ["connect-src", "img-src", "script-src-elem"]
    assert run(browser, "return window.escaped") is None


# The number of pixels of the scatter plot that are not transparent.
PAINTED = """
return [...document.querySelectorAll("#scatter canvas")].reduce((sum, canvas) => {
  const copy = document.createElement("canvas");
  [copy.width, copy.height] = [canvas.width, canvas.height];
  const context = copy.getContext("2d");
  context.drawImage(canvas, 0, 0);
  const pixels = context.getImageData(0, 0, copy.width, copy.height).data;
  return sum + pixels.filter((value, i) => i % 4 === 3 && value > 0).length;
}, 0)"""


@pytest.mark.parametrize("name", ["small", "two", "hundred", "large"])
def test_every_plot_is_drawn(opened, name):
    browser = opened(name)
    assert run(browser, PAINTED) > 1000
    assert run(browser, "return document.getElementById('scatter').data[0].type") == "scattergl"
    for plot in ("decay", "variance"):
        bars = run(browser, f"return document.querySelectorAll('#{plot} .bars .point').length")
        assert bars == len(run(browser, f"return document.getElementById('{plot}').data[0].y"))
    if name == "small":  # nine eigenvalues that are used, and three that are not
        assert run(browser, "return document.getElementById('decay').data[0].text") == ["used"] * 9 + ["not used"] * 3
    assert run(browser, "return document.querySelectorAll('#heatmap .heatmaplayer image').length") == 1


def boxes(browser, selector):
    """Return left, right, top and bottom of all elements of a selector."""
    return run(
        browser,
        f"""return [...document.querySelectorAll("{selector}")].map((each) => {{
          const {{left, right, top, bottom}} = each.getBoundingClientRect();
          return [left, right, top, bottom];
        }})""",
    )


@pytest.mark.parametrize(("theme", "width"), [("light", 1280), ("dark", 1280), ("light", 360)])
def test_the_tree_of_clusters_is_drawn(opened, summaries, theme, width):
    browser = opened("small", theme=theme, width=width)
    tree = summaries["small"].tree
    nodes = {(b.n_clusters, b.cluster) for b in tree} | {(b.next_n_clusters, b.next_cluster) for b in tree}
    bars = boxes(browser, "#sankey .node-rect")
    assert len(bars) == len(nodes) == sum(range(2, 11))
    assert len({round(left) for left, *_ in bars}) == 9  # a column for each number of clusters
    drawn = [branch for branch in tree if branch.size > 1]  # not those of a single sample of a thousand
    assert len(boxes(browser, "#sankey .sankey-link")) == len(drawn)
    titles = [each.text for each in browser.find_elements("css selector", "#sankey .annotation-text")]
    assert titles == [str(k) for k in range(2, 11)]
    ends = [right for _, right, *_ in boxes(browser, "#sankey .annotation-text")]
    assert all(
        end < start for end, (start, *_) in zip(ends, boxes(browser, "#sankey .annotation-text")[1:], strict=False)
    )
    left, right, *_ = boxes(browser, "#sankey")[0]
    for one, other, *_ in boxes(browser, "#sankey .annotation-text, #sankey .node-label"):
        assert left <= one < other <= right + 1
    labels = {each.text for each in browser.find_elements("css selector", "#sankey .node-label")}
    assert labels == {str(c) for c in range(10)}


def test_clusters_that_split_are_listed(opened):
    browser = opened("small")
    assert column(browser, "divisions", 1) == [f"{k} → {k + 1}" for k in range(2, 10)]
    assert column(browser, "divisions", 3)[-1].split() == ["0", "50%,", "9", "50%"]


def test_hovering_over_the_tree_counts_samples(opened):
    from selenium.webdriver import ActionChains

    browser = opened("small")
    run(browser, "document.getElementById('sankey').scrollIntoView({block: 'center', behavior: 'instant'})")
    bar = browser.find_element("css selector", "#sankey .node-rect")
    ActionChains(browser).move_to_element(bar).perform()
    wait_for(browser, "document.querySelector('#sankey .hovertext') !== null")
    text = run(browser, "return document.querySelector('#sankey .hovertext').textContent")
    assert "cluster 0 of 2: " in text
    assert "samples" in text


def test_the_gap_is_marked_in_the_spectrum(opened):
    place = "return document.getElementById('{}').layout.shapes.map(({{x0, x1}}) => [x0, x1])"
    assert run(opened("small"), place.format("decay")) == [[9.5, 9.5]]


OVERLAPPING = """
const boxes = [...document.querySelectorAll(arguments[0])].map((each) => each.getBoundingClientRect());
return boxes.some((a, i) => boxes.slice(0, i).some((b) =>
  a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom))"""


@pytest.mark.parametrize(("theme", "width"), [("light", 1280), ("dark", 1280), ("light", 390), ("dark", 390)])
@pytest.mark.parametrize("name", ["small", "weak"])
def test_the_support_is_drawn_beside_its_limits(opened, summaries, name, theme, width):
    browser = opened(name, theme=theme, width=width)
    support = summaries[name].support
    shown = run(browser, "return document.getElementById('ratios').data.map(({x, y}) => [x, y])")
    assert shown[0][0] == [None if ratio is None else min(ratio, 1.5) for ratio in support.valleys]
    assert shown[1][0] == [cluster.stability for cluster in summaries[name].clusters]
    assert shown[0][1] == shown[1][1] == list(range(10))
    drawn = len(boxes(browser, "#ratios .scatterlayer .point"))
    assert drawn == 20 - support.valleys.count(None)
    shapes = "return document.getElementById('{}').layout.shapes.map(({{x0, x1}}) => [x0, x1])"
    assert run(browser, shapes.format("ratios")) == [[0, 0.4], [0.7, 0.7], [0.75, 1], [0.6, 0.6]]
    assert run(browser, shapes.format("excess"))[0][0] == support.groups[0].structure.needed
    for plot in ("ratios", "excess"):
        for texts in (
            f"#{plot} .annotation-text",
            f"#{plot} .xtick text, #{plot} .x2tick text",
            f"#{plot} .ytick text",
        ):
            assert boxes(browser, texts)
            assert not browser.execute_script(OVERLAPPING, texts), texts
        left, right, top, bottom = boxes(browser, f"#{plot}")[0]
        for one, other, up, down in boxes(browser, f"#{plot} text"):
            assert left - 1 <= one <= other <= right + 1
            assert top - 1 <= up <= down <= bottom + 1
    beyond = run(browser, "return [...document.querySelectorAll('#ratios .textpoint')].map((e) => e.textContent)")
    assert [text for text in beyond if text] == (["2.3"] if name == "weak" else [])


def test_the_rows_of_the_support_are_as_high_as_there_are_clusters(opened):
    heights = {}
    for name in ("two", "small", "hundred"):
        browser = opened(name)
        (_, _, top, bottom) = boxes(browser, "#ratios")[0]
        heights[name] = bottom - top
        assert not browser.execute_script(OVERLAPPING, "#ratios .ytick text")
    assert heights["two"] < heights["small"] < heights["hundred"] < 1000


def test_the_valley_ratio_and_its_cluster_are_in_the_table(opened):
    browser = opened("weak")
    header = column(browser, "clusters-table", 4)
    assert header[:3] == ["2.34 with 1", "–", "0.50 with 3"]


def ticks(browser, plot, axis):
    return [each.text for each in browser.find_elements("css selector", f"#{plot} .{axis}tick text")]


def test_tick_labels_of_the_spectrum_differ(opened):
    browser = opened("two")
    for plot in ("decay", "variance"):
        assert ticks(browser, plot, "x") == ["1"]
        labels = ticks(browser, plot, "y")
        assert len(set(labels)) == len(labels) > 2, labels
    choose(browser, "space", "scores of all views")
    title = run(browser, "return document.querySelector('#scatter .xtitle').textContent")
    assert title == "component 1 (0.004% of the variance)"
    assert ticks(opened("small"), "decay", "x") == [str(i) for i in range(1, 13)]


@pytest.mark.parametrize(
    ("name", "theme", "width"), [("small", "light", 1280), ("small", "dark", 360), ("large", "dark", 1280)]
)
def test_the_map_is_shown_first(opened, summaries, name, theme, width):
    browser = opened(name, theme=theme, width=width)
    expected = np.array(summaries[name].points.positions)
    shown = trace(browser)
    np.testing.assert_allclose(np.column_stack([shown["x"], shown["y"]]), expected, atol=1e-3)  # packed in two bytes
    assert not browser.find_element("id", "across").is_displayed()
    names = [each.text for each in browser.find_elements("css selector", "#scatter .annotation-text")]
    assert names == [str(label) for label in range(10)]
    one, other = run(
        browser,
        """const {xaxis, yaxis} = document.getElementById("scatter")._fullLayout;
        return [xaxis, yaxis].map((axis) => Math.abs(axis.l2p(1) - axis.l2p(0)))""",
    )
    assert one == pytest.approx(other)  # the same unit along both axes


def test_new_samples_are_drawn_before_the_training_samples(opened):
    browser = opened("new")
    read = "return document.getElementById('scatter').data.map(({x, y}) => [x, y])"
    (x, y), new = run(browser, read)
    np.testing.assert_allclose([x, y], [[-1, 0.5], [0.5, 1]], atol=1e-4)
    assert len(new[0]) == 400
    assert "the grey points are training samples" in browser.find_element("id", "samples").text
    choose(browser, "space", "scores of all views")
    assert len(run(browser, read)) == 1
    assert "grey" not in opened("small").find_element("id", "samples").text


def test_components_and_colours_change_the_plot(opened):
    browser = opened("small")
    choose(browser, "space", "scores of all views")
    before = trace(browser)
    choose(browser, "across", "component 4")
    moved = trace(browser)
    assert moved["x"] != before["x"]
    assert moved["y"] == before["y"]
    choose(browser, "up", "component 1")
    assert trace(browser)["y"] == before["x"]
    choose(browser, "space", "scores of fourier")
    assert trace(browser)["y"] != before["x"]
    choose(browser, "colour", "known class")
    by_class = trace(browser)["marker"]["color"]
    assert by_class != before["marker"]["color"]
    choose(browser, "colour", "view pixels")
    assert trace(browser)["marker"]["color"] not in (by_class, before["marker"]["color"])
    for space in ("map (t-SNE)", "scores of all views"):
        choose(browser, "space", space)
        for each in browser.find_elements("css selector", "#colour option"):
            choose(browser, "colour", each.text)
            assert len(trace(browser)["x"]) == len(before["x"])
    choose(browser, "colour", "margin")
    assert trace(browser)["marker"]["colorscale"] is not None
    assert len(set(map(str, trace(browser)["marker"]["color"]))) > 100


def test_the_legend_hides_and_shows_groups(opened):
    browser = opened("hundred")
    boxes = browser.find_elements("css selector", "#legend input")
    assert len(boxes) == 100
    everything = len(trace(browser)["x"])
    assert len({*zip(*[trace(browser)["marker"][key] for key in ("color", "symbol")], strict=True)}) == 100
    browser.find_element("id", "none").click()
    assert trace(browser)["x"] == []
    run(browser, "document.querySelectorAll('#legend input')[57].click()")
    shown = int(browser.find_elements("css selector", "#legend small")[57].get_attribute("textContent"))
    assert len(trace(browser)["x"]) == shown > 0
    browser.find_element("id", "all").click()
    assert len(trace(browser)["x"]) == everything


def hover(browser, number):
    """Move the mouse over a sample of the scatter plot and return the text that appears."""
    from selenium.webdriver import ActionChains

    plot = browser.find_element("id", "scatter")
    run(browser, "document.getElementById('scatter').scrollIntoView({block: 'center', behavior: 'instant'})")
    across, down = run(
        browser,
        f"""const {{data, _fullLayout: {{xaxis, yaxis}}}} = document.getElementById("scatter");
        const [x, y] = [data.at(-1).x, data.at(-1).y].map((axis) => axis[{number}]);
        return [xaxis._offset + xaxis.l2p(x), yaxis._offset + yaxis.l2p(y)]""",
    )
    size = plot.size
    ActionChains(browser).move_to_element_with_offset(
        plot, across - size["width"] / 2, down - size["height"] / 2
    ).perform()
    wait_for(browser, "document.querySelector('#scatter .hovertext') !== null")
    return run(browser, "return document.querySelector('#scatter .hovertext').textContent")


@pytest.mark.parametrize(("name", "sample"), [("small", "image "), ("nasty", "<b>{{ 7 * 7 }}</b>")])
def test_hovering_shows_the_name_of_the_sample_literally(opened, name, sample):
    browser = opened(name)
    text = hover(browser, 7)
    assert sample in text
    assert "cluster: " in text
    assert run(browser, "return document.querySelectorAll('#scatter script, #scatter .hoverlayer a').length") == 0


@pytest.mark.parametrize("space", ["map (t-SNE)", "scores of all views"])
@pytest.mark.parametrize(("theme", "width"), [("light", 1280), ("dark", 1280), ("light", 360)])
@pytest.mark.parametrize("quantity", ["membership", "novelty"])
def test_samples_are_coloured_by_membership_and_novelty(opened, summaries, quantity, theme, width, space):
    browser = opened("small", theme=theme, width=width)
    choose(browser, "space", space)
    choose(browser, "colour", quantity)
    points = summaries["small"].points
    values = {"membership": points.memberships, "novelty": points.novelties}[quantity]
    np.testing.assert_allclose(trace(browser)["marker"]["color"], values, atol=1e-4)  # packed in two bytes
    assert run(browser, PAINTED) > 1000
    assert browser.find_element("css selector", "#scatter .colorbar").text.split("\n")[-1] == quantity
    ((left, right, top, bottom),) = boxes(browser, "#scatter")
    ((start, end, above, below),) = boxes(browser, "#scatter .colorbar")
    assert left <= start < end <= right + 1
    assert top <= above < below <= bottom + 1
    for _, _, _, lowest in boxes(browser, "#scatter .xtitle, #scatter .xtick") if width == 360 else ():
        assert lowest <= above
    across = run(browser, "return document.getElementById('scatter')._fullLayout.xaxis._length")
    assert across > 0.6 * (right - left)
    text = hover(browser, 7)
    number = text.partition("image ")[2].partition("cluster")[0]
    at = points.rows.index(int(number))  # another sample may be at the same place
    for name, expected in (("membership", points.memberships), ("novelty", points.novelties)):
        shown = text.partition(f"{name}: ")[2][:6]
        assert float(shown) == pytest.approx(expected[at], abs=1e-4)
    assert [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"] == []


def test_colours_of_numbers_differ_from_the_paper_in_both_themes(opened):
    """A contrast of at least 3 to 1, as WCAG 2 demands of graphics."""
    for theme in ("light", "dark"):
        browser = opened("small", theme=theme)
        choose(browser, "colour", "novelty")
        scale = [colour for _, colour in trace(browser)["marker"]["colorscale"]]
        paper = run(browser, "return getComputedStyle(document.body).backgroundColor")
        lightness = [luminance(colour) for colour in scale]
        assert lightness == sorted(lightness)  # also in a print without colours
        for each in lightness:
            dark, light = sorted([each, luminance(paper)])
            assert (light + 0.05) / (dark + 0.05) >= 3


def luminance(colour):
    """The relative luminance of WCAG 2 of a colour such as rgb(0, 32, 76)."""
    parts = np.array([int(part) for part in colour.removeprefix("rgb(").removesuffix(")").split(",")]) / 255
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def test_two_clusters_are_jittered_along_one_component(opened):
    browser = opened("two")
    choose(browser, "space", "scores of all views")
    assert run(browser, "return document.getElementById('up').value") == "jitter"
    y = trace(browser)["y"]
    assert 0 <= min(y) < 0.1
    assert 0.9 < max(y) <= 1


def test_the_table_of_clusters_sorts_by_mouse_and_by_keyboard(opened):
    from selenium.webdriver.common.keys import Keys

    browser = opened("small")
    assert column(browser, "clusters-table", 1) == [str(c) for c in range(10)]
    heading = browser.find_element("css selector", "#clusters-table th:nth-child(2)")
    button = heading.find_element("css selector", "button")
    button.click()
    sizes = [int(text) for text in column(browser, "clusters-table", 2)]
    assert sizes == sorted(sizes, reverse=True)
    assert heading.get_attribute("aria-sort") == "descending"
    button.send_keys(Keys.ENTER)
    assert [int(text) for text in column(browser, "clusters-table", 2)] == sizes[::-1]
    assert heading.get_attribute("aria-sort") == "ascending"
    assert browser.find_element("css selector", "#clusters-table th").get_attribute("aria-sort") == "none"


def test_tables_filter_and_count_the_remaining_rows(opened):
    browser = opened("small")
    box = browser.find_element("id", "clusters-table-filter")
    box.send_keys("pixels_4")
    assert column(browser, "clusters-table", 1) == ["4"]
    assert browser.find_element("css selector", "output[for=clusters-table-filter]").text == "1 of 10"
    box.clear()
    box.send_keys("nothing like this")
    assert column(browser, "clusters-table", 1) == []


def shown(browser):
    return browser.find_element("id", "samples-shown").text


def test_the_table_of_samples_is_searched_and_turned_page_by_page(opened):
    browser = opened("small")
    assert column(browser, "samples-table", 1)[:2] == ["image 0", "image 1"]
    assert shown(browser) == "1 to 50 of 400"
    assert not browser.find_element("id", "samples-previous").is_enabled()
    browser.find_element("id", "samples-next").click()
    assert column(browser, "samples-table", 1)[0] == "image 50"
    assert shown(browser) == "51 to 100 of 400"
    box = browser.find_element("id", "samples-search")
    box.send_keys("image 39")
    assert shown(browser) == "1 to 14 of 14"  # 39, 139, 239, 339, and 390 to 399
    box.clear()
    box.send_keys("nothing like this")
    assert shown(browser) == "no sample"
    assert not browser.find_element("id", "samples-download").is_enabled()
    box.clear()
    box.send_keys(" ")
    choose(browser, "samples-cluster", "4")
    assert set(column(browser, "samples-table", 3)) == {"4"}


def test_the_table_of_samples_is_sorted_by_numbers_and_by_names(opened):
    browser = opened("small")
    margin, sample = (browser.find_element("css selector", f"#samples-table th:nth-child({i})") for i in (7, 1))
    margin.find_element("css selector", "button").click()
    margins = [float(text) for text in column(browser, "samples-table", 7)]
    assert margins == sorted(margins)
    assert margin.get_attribute("aria-sort") == "ascending"
    for first in ("image 0", "image 399"):  # 399 is after 50, although "3" is before "5"
        sample.find_element("css selector", "button").click()
        assert column(browser, "samples-table", 1)[0] == first
    assert margin.get_attribute("aria-sort") == "none"


@pytest.mark.parametrize(("place", "name"), [(4, "memberships"), (5, "novelties")])
def test_the_table_of_samples_is_sorted_by_membership_and_novelty(opened, summaries, place, name):
    browser = opened("small")
    expected = sorted(getattr(summaries["small"].samples, name))
    button = browser.find_element("css selector", f"#samples-table th:nth-child({place}) button")
    for values in (expected, expected[::-1]):
        button.click()
        assert [float(text) for text in column(browser, "samples-table", place)] == values[:50]


def test_twenty_thousand_samples_are_listed(opened):
    browser = opened("large")
    assert shown(browser) == "1 to 50 of 20,000"
    browser.find_element("css selector", "#samples-table th:nth-child(4) button").click()
    assert shown(browser) == "1 to 50 of 20,000"


def download(browser, folder):
    """Return the rows of the CSV file that the button saves."""
    behaviour = {"behavior": "allow", "downloadPath": str(folder)}
    browser.execute_cdp_cmd("Browser.setDownloadBehavior", behaviour)
    run(browser, "document.getElementById('samples-download').click()")
    path = folder / "samples.csv"
    for _ in range(200):
        if path.exists() and path.stat().st_size:
            break
        time.sleep(0.05)
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


def test_the_table_of_samples_is_saved_as_csv(opened, summaries, tmp_path):
    browser = opened("small")
    choose(browser, "samples-cluster", "4")
    header, *rows = download(browser, tmp_path)
    assert header == [
        *(
            "sample",
            "row",
            "cluster",
            "membership",
            "novelty",
            "nearest_other",
            "margin",
            "best_view",
            "stability",
            "class",
        )
    ]
    samples = summaries["small"].samples
    for row in rows:  # the numbers of the summary, without rounding
        assert [float(row[i]) for i in (3, 4)] == [
            samples.memberships[int(row[1])],
            samples.novelties[int(row[1])],
        ]
    assert len(rows) > 20
    assert {row[2] for row in rows} == {"4"}
    assert shown(browser).endswith(f"of {len(rows)}")
    assert all(row[0] == f"image {row[1]}" and 0 <= float(row[6]) <= 1 for row in rows)


def test_samples_without_stability_have_a_dash_and_an_empty_cell(opened, tmp_path):
    browser = opened("two")
    assert column(browser, "samples-table", 9)[:3] == ["–", "0.050", "0.100"]
    assert download(browser, tmp_path)[1][7:9] == ["pixels", ""]
    button = browser.find_element("css selector", "#samples-table th:nth-child(9) button")
    button.click()
    assert column(browser, "samples-table", 9)[:2] == ["–", "0"]
    button.click()
    assert column(browser, "samples-table", 9)[0] == "1"


def test_the_contributions_of_the_views_are_coloured(opened):
    browser = opened("small")
    cells = browser.find_elements("css selector", "#contributions tbody tr:first-child td")
    assert [cell.text.split()[0] for cell in cells[:4]] == ["50%", "33%", "17%", "50%"]
    colours = [cell.value_of_css_property("background-color") for cell in cells[:3]]
    assert len(set(colours)) == 3


def test_names_in_the_csv_file_are_not_formulas(opened, tmp_path):
    browser = opened("nasty")
    assert column(browser, "samples-table", 1)[:3] == [" ".join(NASTY.split()), FORMULA, "plain, name"]
    assert run(browser, "return document.querySelectorAll('#samples-table script, #samples-table b').length") == 0
    names = [row[0] for row in download(browser, tmp_path)]
    assert names[1:4] == [NASTY, f"'{FORMULA}", "plain, name"]


def test_failed_methods_stay_last_in_a_comparison(opened):
    browser = opened("comparison")
    button = browser.find_element("css selector", "#methods-table th:nth-child(4) button")
    button.click()
    assert column(browser, "methods-table", 1) == ["tmvkscr", "opmc", "comic"]
    button.click()
    assert column(browser, "methods-table", 1) == ["opmc", "tmvkscr", "comic"]


def test_a_button_colours_the_scatter_plot_by_a_view(opened):
    browser = opened("small")
    run(browser, "document.querySelectorAll('button[data-colour]')[1].click()")
    assert run(browser, "return document.getElementById('colour').selectedOptions[0].text") == "view fourier"


def test_many_clusters_show_one_card_of_features_at_a_time(opened):
    browser = opened("hundred")
    shown = "#features [data-cluster]:not([hidden])"
    assert len(browser.find_elements("css selector", shown)) == 1
    choose(browser, "card", "42")
    assert "Cluster 42" in browser.find_element("css selector", shown).text
    choose(browser, "card", "all")
    assert len(browser.find_elements("css selector", shown)) == 100


# Contrast of every text with its background by the formula of WCAG 2; colours are resolved by painting them.
CONTRASTS = """
const canvas = document.createElement("canvas");
canvas.width = canvas.height = 1;
const context = canvas.getContext("2d", {willReadFrequently: true});
const known = new Map();
function rgba(colour) {
  if (!known.has(colour)) {
    context.clearRect(0, 0, 1, 1);
    context.fillStyle = colour;
    context.fillRect(0, 0, 1, 1);
    known.set(colour, [...context.getImageData(0, 0, 1, 1).data]);
  }
  return known.get(colour);
}
function behind(element) {
  for (let each = element; each; each = each.parentElement) {
    const colour = rgba(getComputedStyle(each).backgroundColor);
    if (colour[3] === 255) return colour;
  }
  return rgba(getComputedStyle(document.body).backgroundColor);
}
function luminance(colour) {
  const linear = (v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  const [r, g, b] = colour.slice(0, 3).map((v) => linear(v / 255));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}
const found = [];
for (const element of document.body.querySelectorAll("*")) {
  if (element.closest("script, style, noscript, .modebar") || !element.getClientRects().length) continue;
  if (![...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim())) continue;
  const style = getComputedStyle(element);
  const text = rgba(element.closest("svg") ? style.fill : style.color);
  const [light, dark] = [luminance(text), luminance(behind(element))].sort((a, b) => b - a);
  found.push([(light + 0.05) / (dark + 0.05), element.tagName, element.textContent.trim().slice(0, 40)]);
}
return found.sort((a, b) => a[0] - b[0]);
"""


@pytest.mark.parametrize("name", ["small", "weak", "comparison"])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_text_has_enough_contrast_in_both_themes(opened, name, theme):
    browser = opened(name, theme=theme)
    paper = run(browser, "return getComputedStyle(document.body).backgroundColor")
    assert (paper == "rgb(255, 255, 255)") == (theme == "light")
    contrasts = run(browser, CONTRASTS)
    assert len(contrasts) > 60
    assert contrasts[0][0] >= 4.5, contrasts[:5]


def test_the_theme_button_changes_page_and_plots(opened):
    browser = opened("small")
    ink = "return getComputedStyle(document.querySelector('#decay .xtick text')).fill"
    before = run(browser, ink)
    button = browser.find_element("id", "theme")
    assert button.text == "Dark theme"
    button.click()
    assert button.text == "Light theme"
    assert run(browser, "return getComputedStyle(document.body).backgroundColor") != "rgb(255, 255, 255)"
    wait_for(browser, f"getComputedStyle(document.querySelector('#decay .xtick text')).fill !== '{before}'")
    assert run(browser, CONTRASTS)[0][0] >= 4.5


@pytest.mark.parametrize("name", ["small", "weak", "hundred", "nasty", "comparison"])
@pytest.mark.parametrize("width", [360, 768, 1920])
def test_no_width_needs_horizontal_scrolling(opened, name, width):
    browser = opened(name, width=width)
    assert run(browser, "return document.documentElement.scrollWidth") <= width


def test_the_layout_does_not_shift_while_the_page_loads(opened):
    browser = opened("small", height=9000)  # only visible elements count
    moved = browser.execute_async_script(
        """const done = arguments[0];
        let sum = 0;
        new PerformanceObserver((list) => list.getEntries().forEach((entry) => (sum += entry.value)))
          .observe({type: "layout-shift", buffered: true});
        setTimeout(() => done(sum), 200);"""
    )
    assert moved < 0.02


def test_the_tab_key_moves_the_focus_from_top_to_bottom(opened):
    from selenium.webdriver import ActionChains
    from selenium.webdriver.common.keys import Keys

    browser = opened("small")
    tops, names = [], []
    for _ in range(40):
        ActionChains(browser).send_keys(Keys.TAB).perform()
        name, top, outline = run(
            browser,
            """const now = document.activeElement;
            const name = now.id || now.getAttribute("href") || now.textContent.trim().slice(0, 20);
            const top = now.closest("section")?.getBoundingClientRect().top + scrollY;
            return [name, top, getComputedStyle(now).outlineStyle]""",
        )
        assert outline != "none", name
        names.append(name)
        if top is not None:
            tops.append(top)
    assert names[:2] == ["#content", "theme"]
    assert {"clusters-table-filter", "colour", "space", "all"} <= set(names)
    assert tops == sorted(tops)


def test_printing_uses_the_light_theme_and_fitting_plots(opened):
    from base64 import b64decode

    browser = opened("small", theme="dark")
    run(
        browser,
        """addEventListener("afterprint", () => (window.classAfterPrint = document.documentElement.className));
        matchMedia("print").addEventListener("change", (event) => {
          if (event.matches) {
            window.colourInPrint = getComputedStyle(document.body).backgroundColor;
            window.widthInPrint = document.querySelector("#scatter .main-svg").clientWidth;
          }
        });""",
    )
    printed = b64decode(browser.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})["data"])
    assert printed.startswith(b"%PDF")
    assert run(browser, "return window.colourInPrint") == "rgb(255, 255, 255)"
    assert run(browser, "return window.widthInPrint") == 520
    assert run(browser, "return window.classAfterPrint") == ""
    assert run(browser, "return getComputedStyle(document.body).backgroundColor") != "rgb(255, 255, 255)"


def processor_fraction():
    """Return the fraction of one processor that a busy loop gets; below 1 if the machine is busy."""
    start, used = time.perf_counter(), time.process_time()
    while time.process_time() - used < 0.2:
        pass
    return (time.process_time() - used) / (time.perf_counter() - start)


def test_fifty_thousand_samples_are_usable_within_three_seconds(opened):
    """The time in milliseconds from the start of the navigation until every plot is drawn.

    The bound holds for an idle machine. The measured time is multiplied by the available fraction of a processor, and
    the measurement is repeated if it exceeds the bound.
    """
    times = []
    while len(times) < 8 and not (times and times[-1] < 3000):
        fraction = processor_fraction()
        ready = float(run(opened("large"), "return document.documentElement.dataset.ready"))
        times.append(ready * min(fraction, processor_fraction()))
    assert times[-1] < 3000, times


def test_fifty_thousand_samples_take_less_than_twice_the_time_of_four_hundred(opened, browser):
    """The processor time until every plot is drawn, which hardly depends on the load of the machine."""
    browser.execute_cdp_cmd("Performance.enable", {"timeDomain": "threadTicks"})
    best = dict.fromkeys(("large", "small"), float("inf"))
    for name in list(best) * 3:
        opened(name)
        metrics = browser.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
        (seconds,) = (metric["value"] for metric in metrics if metric["name"] == "ThreadTime")
        best[name] = min(best[name], seconds)
    browser.execute_cdp_cmd("Performance.disable", {})
    assert 0 < best["large"] < 2 * best["small"], best
