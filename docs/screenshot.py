"""Write docs/report.png, the picture in the README: the top of a report and its map, in headless Chromium.

    coview demo && python docs/screenshot.py demo-run/report.html docs/report.png

It needs Chromium with chromedriver, Selenium and Pillow.
"""

import os
import shutil
import sys
from base64 import b64decode
from io import BytesIO
from pathlib import Path

from PIL import Image
from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.support.wait import WebDriverWait

WIDTH, PIXEL_RATIO = 1000, 1.5
MARGIN = 16
MAX_BYTES = 200_000


def open_report(report: Path) -> Chrome:
    """Return a browser that shows the report in light colours, with all plots drawn."""
    os.environ.update(SE_OFFLINE="true", SE_AVOID_STATS="true")  # Selenium must not download a driver
    options = ChromeOptions()
    options.binary_location = shutil.which("chromium") or shutil.which("google-chrome") or ""
    for argument in ("headless=new", "no-sandbox", "disable-dev-shm-usage", "hide-scrollbars"):
        options.add_argument(f"--{argument}")
    browser = Chrome(options=options, service=Service(executable_path=shutil.which("chromedriver")))
    size = {"width": WIDTH, "height": 900, "deviceScaleFactor": PIXEL_RATIO, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.execute_cdp_cmd(
        "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": "light"}]}
    )
    browser.get(report.resolve().as_uri())
    wait = WebDriverWait(browser, 60)
    wait.until(lambda b: b.execute_script("return document.documentElement.dataset.ready !== undefined"))
    return browser


def capture(browser: Chrome) -> Image.Image:
    """Return the title with the key figures, and below it the section with the map."""
    parts = [
        (0, browser.find_element("css selector", "main section dl").rect),
        (browser.find_element("id", "samples").rect["y"], browser.find_element("id", "samples").rect),
    ]
    images = []
    for top, rect in parts:
        clip = {"x": 0, "y": top, "width": WIDTH, "height": rect["y"] + rect["height"] - top + MARGIN, "scale": 1}
        shot = browser.execute_cdp_cmd("Page.captureScreenshot", {"clip": clip, "captureBeyondViewport": True})
        images.append(Image.open(BytesIO(b64decode(shot["data"]))).convert("RGB"))
    picture = Image.new("RGB", (images[0].width, sum(image.height for image in images)), "white")
    for image, top in zip(images, (0, images[0].height), strict=True):
        picture.paste(image, (0, top))
    return picture


def main(report: str = "demo-run/report.html", picture: str = "docs/report.png") -> None:
    """Write the picture of a report, and stop if the file is too large for a README."""
    browser = open_report(Path(report))
    try:
        # 256 colours: the page has few, and fewer than these change the colours of clusters.
        capture(browser).quantize(256, dither=Image.Dither.NONE).save(picture, optimize=True)
    finally:
        browser.quit()
    size = Path(picture).stat().st_size
    if size > MAX_BYTES:
        raise SystemExit(f"{picture}: expected at most {MAX_BYTES} bytes, got {size}; lower PIXEL_RATIO")
    print(f"{picture}: {size} bytes")


if __name__ == "__main__":
    main(*sys.argv[1:])
