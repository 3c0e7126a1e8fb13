"""A browser for tests of pages; `needs_browser` skips them if no browser is installed."""

import os
import shutil

import pytest

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")

needs_browser = pytest.mark.skipif(
    not (BROWSER and DRIVER), reason="browser tests need chromium and chromedriver: apt-get install chromium-driver"
)


def start_browser():
    """Return a browser without a window that records console messages and network requests."""
    # By default Selenium searches for a newer driver and sends usage statistics.
    os.environ.update(SE_OFFLINE="true", SE_AVOID_STATS="true")
    from selenium.webdriver import Chrome, ChromeOptions
    from selenium.webdriver.chrome.service import Service

    options = ChromeOptions()
    options.binary_location = BROWSER
    for argument in ("headless=new", "no-sandbox", "disable-dev-shm-usage", "enable-unsafe-swiftshader"):
        options.add_argument(f"--{argument}")
    options.add_argument("--window-size=1280,900")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = Chrome(options=options, service=Service(executable_path=DRIVER))
    driver.set_page_load_timeout(60)
    driver.set_script_timeout(60)
    return driver


def wait_for(browser, condition):
    from selenium.webdriver.support.wait import WebDriverWait

    WebDriverWait(browser, 60, poll_frequency=0.05).until(lambda b: b.execute_script(f"return {condition}"))
