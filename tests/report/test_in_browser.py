"""The page in a real browser, at desktop and phone width, in light and dark."""

import io
import shutil
from collections.abc import Iterator
from pathlib import Path

import matplotlib.image
import pytest

selenium = pytest.importorskip("selenium", reason="selenium is not installed (pip install 'enfa[dev]')")
CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(
    not (CHROMIUM and DRIVER), reason="no chromium and chromedriver (apt-get install chromium chromium-driver)"
)
WIDTHS = {"desktop": 1280, "phone": 390}
OPTIONS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip


@pytest.fixture(scope="module")
def browser() -> Iterator["selenium.webdriver.Chrome"]:
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM or ""
    for option in OPTIONS:
        options.add_argument(option)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    yield driver
    driver.quit()


def _open(browser: "selenium.webdriver.Chrome", page: Path, width: int, theme: str) -> None:
    theme_of = {"features": [{"name": "prefers-color-scheme", "value": theme}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", theme_of)
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.get(page.resolve().as_uri())


def _numbers(browser: "selenium.webdriver.Chrome") -> list[str]:
    return browser.execute_script(
        "return [...document.querySelectorAll('.bag:not([hidden]) .row text')].map(t => t.textContent)"
    )


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", list(WIDTHS))
def test_clicking_through_the_layers(browser, whole_report: Path, width: str, theme: str) -> None:  # type: ignore[no-untyped-def]
    _open(browser, whole_report / "index.html", WIDTHS[width], theme)
    wide = browser.execute_script("return document.documentElement.scrollWidth")
    assert wide <= WIDTHS[width], "the page itself must not scroll sideways"

    seen = [_numbers(browser)]
    on = browser.find_element("id", "how-on")
    while on.is_enabled():
        on.click()
        seen.append(_numbers(browser))
    assert len(seen) == 5
    distinct = [len(set(numbers)) for numbers in seen]
    assert distinct == sorted(distinct) and distinct[0] == 4 < distinct[-1], "rows only ever become more different"

    browser.find_element("id", "how-back").click()
    assert _numbers(browser) == seen[-2]
    for policy in browser.find_elements("css selector", "button[data-policy]"):
        policy.click()
        assert policy.get_attribute("aria-pressed") == "true"
        assert len(browser.find_elements("css selector", ".bag:not([hidden])")) == 1
        atom = browser.find_element("css selector", ".bag:not([hidden]) figure:nth-child(3) .row")
        atom.click()
        same = browser.find_elements("css selector", ".bag:not([hidden]) .row.same text")
        assert same and len({text.text for text in same}) == 1
        assert browser.find_element("id", "how-row").text.startswith(f"Row {same[0].text}: ")
    assert browser.get_log("browser") == []


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_stands_out_from_the_page(browser, whole_report: Path, theme: str) -> None:  # type: ignore[no-untyped-def]
    _open(browser, whole_report / "index.html", WIDTHS["desktop"], theme)
    ink, paper = browser.execute_script("const s = getComputedStyle(document.body); return [s.color, s.backgroundColor]")
    light = [sum(int(v) for v in colour.strip("rgba()").split(",")[:3]) for colour in (ink, paper)]
    assert (light[0] < light[1]) == (theme == "light") and abs(light[0] - light[1]) > 500


def test_figures_are_drawn(browser, whole_report: Path) -> None:  # type: ignore[no-untyped-def]
    _open(browser, whole_report / "index.html", WIDTHS["phone"], "light")
    boxes = browser.execute_script(
        "return [...document.querySelectorAll('.panel svg')].map(s => [s.getBoundingClientRect().width, s.getBBox().width])"
    )
    assert len(boxes) > 8 and all(250 < width < 390 and inside > 100 for width, inside in boxes)


def test_tables_scroll_inside_their_frame(browser, whole_report: Path) -> None:  # type: ignore[no-untyped-def]
    _open(browser, whole_report / "index.html", WIDTHS["phone"], "light")
    for details in browser.find_elements("css selector", "summary"):
        details.click()
    assert browser.execute_script("return document.documentElement.scrollWidth") <= WIDTHS["phone"]
    inner = browser.execute_script("return [...document.querySelectorAll('.scroll')].map(s => s.scrollWidth > s.clientWidth)")
    assert any(inner)
    assert browser.get_log("browser") == []


def test_accuracies_fit(browser) -> None:  # type: ignore[no-untyped-def]
    """Of the published report, which has runs: without scrolling sideways on a desktop."""
    published = Path(__file__).resolve().parents[2] / "docs" / "report" / "index.html"
    _open(browser, published, WIDTHS["desktop"], "light")
    script = "const s = document.querySelector('#accuracy .scroll'); return [s.scrollWidth, s.clientWidth]"
    inside, frame = browser.execute_script(script)
    assert 0 < inside <= frame


def _sides(browser: "selenium.webdriver.Chrome", frame: str) -> tuple[float, float]:
    """How light the paper is at the left and right inside a frame: of each line of pixels downwards, the lightest."""
    script = f"const b = {frame}.getBoundingClientRect(); return [b.left, b.right, b.top, b.bottom]"
    left, right, top, bottom = (round(v) for v in browser.execute_script(script))
    picture = matplotlib.image.imread(io.BytesIO(browser.get_screenshot_as_png()), format="png")
    inside = picture[top + 40 : bottom - 10, :, :3].mean(2)  # without the head of the table, and its scroll bar
    return float(inside[:, left + 3].max()), float(inside[:, right - 9].max())


def test_a_shade_shows_on_which_side_a_table_goes_on(browser, whole_report: Path) -> None:  # type: ignore[no-untyped-def]
    _open(browser, whole_report / "index.html", WIDTHS["phone"], "light")
    frame = "[...document.querySelectorAll('.scroll')].find(s => s.clientWidth && s.scrollWidth > s.clientWidth + 200)"
    for scrolled, shaded in ((0, (False, True)), (100, (True, True)), (9999, (True, False))):
        browser.execute_script(f"const s = {frame}; s.scrollIntoView({{block: 'center'}}); s.scrollLeft = {scrolled}")
        assert tuple(light < 0.95 for light in _sides(browser, frame)) == shaded, scrolled
