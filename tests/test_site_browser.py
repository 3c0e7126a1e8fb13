"""The documentation site in a browser, from the file system: no errors, no network requests, search by keyboard."""

import json
from pathlib import Path

import pytest

from tests.browser import needs_browser, start_browser, wait_for

SITE = Path(__file__).parents[1] / "build" / "site"

pytest.importorskip("selenium", reason="browser tests need selenium: pip install 'coview[dev]'")
pytestmark = [
    pytest.mark.skipif(not (SITE / "index.html").exists(), reason="the site is not built: make docs"),
    needs_browser,
]


@pytest.fixture(scope="module")
def browser():
    driver = start_browser()
    yield driver
    driver.quit()


def opened(browser, page, width=1280):
    for log in ("browser", "performance"):
        browser.get_log(log)  # discard the messages of the previous test
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.get((SITE / page).as_uri())


PAGES = ("start/five-minutes.html", "tutorials/02_cohort.html", "api/generated/coview.Coview.html")


@pytest.mark.parametrize("page", PAGES)
def test_pages_open_without_errors_and_without_the_network(browser, page):
    opened(browser, page)
    assert [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"] == []
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    asked = [m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"]
    assert (SITE / page).as_uri() in asked
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []


@pytest.mark.parametrize("page", PAGES)
def test_narrow_pages_do_not_scroll_sideways(browser, page):
    opened(browser, page, width=390)
    widths = browser.execute_script(
        "return [document.documentElement.scrollWidth, document.documentElement.clientWidth]"
    )
    assert widths[0] <= widths[1]


def test_search_works_by_keyboard_from_the_file_system(browser):
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    opened(browser, "start/five-minutes.html")
    ActionChains(browser).key_down(Keys.CONTROL).send_keys("k").key_up(Keys.CONTROL).perform()
    wait_for(browser, "document.activeElement.matches('input[type=search]')")
    ActionChains(browser).send_keys("missing views", Keys.ENTER).perform()
    wait_for(browser, "document.querySelectorAll('#search-results li a').length > 0")
    found = [link.get_attribute("href") for link in browser.find_elements("css selector", "#search-results li a")]
    assert any("missing" in link for link in found)
