"""A real browser for tests: Debian's chromium, driven by Playwright, with everything it complains about written down.

from browsing import Tab, browser, open_tab  # noqa: F401, browser is a fixture

def test_something(browser, tmp_path):
    with open_tab(browser, (tmp_path / "page.html").as_uri()) as tab:
        tab.page.get_by_role("heading", name="Phases").click()
        assert tab.complaints == []
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

#: Where pictures for docs/ go; without it none are written.
PICTURES = os.environ.get("BITWATT_PICTURES", "")
PHONE, DESK = {"width": 390, "height": 844}, {"width": 1200, "height": 900}
#: What the page's policy refused, kept where tests find it.
_LISTEN = (
    "window.refused = [];"
    "addEventListener('securitypolicyviolation', e => window.refused.push(e.violatedDirective + ' ' + e.blockedURI));"
)

#: Of text against what is behind it, by WCAG: 4.5, or 3 where it is large.
CONTRAST = """
() => {
  const channel = (v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
  const parse = (text) => (text.match(/[\\d.]+/g) || []).map(Number);
  const behind = (element) => {
    for (let e = element; e; e = e.parentElement) {
      const color = parse(getComputedStyle(e).backgroundColor);
      if (color.length === 3 || color[3] > 0.99) return color.slice(0, 3);
    }
    return [255, 255, 255];
  };
  const bad = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || element.closest("script, svg, .hidden, .skip")) continue;
    if (!element.checkVisibility()) continue;
    const style = getComputedStyle(element);
    let opacity = 1;
    for (let e = element; e; e = e.parentElement) opacity *= Number(getComputedStyle(e).opacity);
    const back = behind(element);
    const ink = parse(style.color).slice(0, 3).map((v, i) => v * opacity + back[i] * (1 - opacity));
    const [a, b] = [light(ink), light(back)].sort((x, y) => y - x);
    const large = parseFloat(style.fontSize) >= 24 || (parseFloat(style.fontSize) >= 18.6 && style.fontWeight >= 700);
    const ratio = (a + 0.05) / (b + 0.05);
    if (ratio < (large ? 3 : 4.5)) bad.push(`${walker.currentNode.data.trim().slice(0, 40)}: ${ratio.toFixed(2)}`);
  }
  return bad;
}
"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """For each file of tests, since Playwright keeps an event loop running while it is open."""
    driver = pytest.importorskip("playwright.sync_api", reason="pip install playwright")
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if program is None:
        pytest.skip("no chromium here: apt-get install chromium")
    with driver.sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-dev-shm-usage"])
        yield opened
        opened.close()


@dataclass
class Tab:
    """A page, what it asked for, and what went wrong in it."""

    page: Any
    asked: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    @property
    def refused(self) -> list[str]:
        """What the content security policy stopped."""
        return list(self.page.evaluate("window.refused"))

    @property
    def overflow(self) -> int:
        """Pixels that the page is wider than the screen."""
        wide = "Math.max(document.documentElement.scrollWidth, document.body.scrollWidth) - innerWidth"
        return int(self.page.evaluate(wide))

    def picture(self, name: str, **options: Any) -> None:
        """For docs/images, where they are asked for."""
        if PICTURES:
            Path(PICTURES).mkdir(parents=True, exist_ok=True)
            self.page.screenshot(path=str(Path(PICTURES) / f"{name}.png"), **options)


@contextmanager
def open_tab(browser: Any, url: str, **options: Any) -> Iterator[Tab]:
    """`options` as Playwright's new_context takes them: viewport, color_scheme, java_script_enabled, ..."""
    context = browser.new_context(**{"viewport": DESK, "reduced_motion": "reduce", **options})
    try:
        context.set_default_timeout(120_000)  # a crowded machine takes its time
        context.add_init_script(_LISTEN)
        tab = Tab(context.new_page())
        tab.page.on("request", lambda request: tab.asked.append(request.url))
        tab.page.on("console", lambda message: tab.complaints.append(f"{message.type}: {message.text}"))
        tab.page.on("pageerror", lambda error: tab.complaints.append(f"error: {error}"))
        tab.page.on("dialog", lambda dialog: (tab.complaints.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        tab.page.goto(url, wait_until="load")
        yield tab
    finally:
        context.close()
