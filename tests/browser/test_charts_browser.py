"""Charts that a page draws itself, with the script that comes inside vl-convert, under the strictest policy."""

from __future__ import annotations

import base64
import hashlib
import re

import pytest

from bitwatt import charts
from bitwatt.reports.html.layout import data
from bitwatt.reports.html.style import CHARTS, STYLE
from browsing import browser, open_tab  # noqa: F401
from showcase import HOSTILE, every_chart

pytestmark = pytest.mark.skipif(not charts.available(), reason="charts are not installed")
DRAW = """
(async () => {
  for (const spec of JSON.parse(document.getElementById("specs").textContent)) {
    const place = document.createElement("div");
    document.querySelector("main").append(place);
    await bitwattDraw(place, spec);
  }
  document.title = "drawn";
})();
"""


@pytest.mark.parametrize("name", ["plain", *HOSTILE])
def test_a_page_draws_every_chart_without_eval(name, browser, tmp_path):  # noqa: F811
    made = every_chart(name, charts.WIDE)
    style = STYLE + CHARTS
    allowed = f"script-src {digest(charts.script())} {digest(DRAW)}; style-src {digest(style)}"
    page = tmp_path / "page.html"
    page.write_text(
        "<!doctype html><meta charset='utf-8'>"
        f"<meta http-equiv='Content-Security-Policy' content=\"default-src 'none'; {allowed}\">"
        f"<style>{style}</style><body class='bitwatt'><main></main>{data('specs', [chart.spec for chart in made])}"
        f"<script>{charts.script()}</script><script>{DRAW}</script>",
        encoding="utf-8",
    )
    with open_tab(browser, page.as_uri()) as tab:
        tab.page.wait_for_function("document.title === 'drawn'", timeout=60_000)
        assert tab.refused == []
        assert [line for line in tab.complaints if not line.startswith("warning")] == []
        assert tab.asked == [page.as_uri()]
        assert tab.page.evaluate("window.hacked") is None
        assert tab.page.locator("svg.marks").count() == len(made)
        if name == "plain":
            bar = tab.page.locator("[aria-roledescription=bar]").first
            assert bar.evaluate("e => getComputedStyle(e).fill") == "rgb(94, 149, 219)"  # the page's own colour
            assert bar.get_attribute("aria-label") == "plain, plain: plain"


def digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def test_data_for_a_script_cannot_end_it():
    text = data("it's", {name: [name, float("nan"), 2**70] for name in HOSTILE})
    assert text.count("<") == 2
    assert re.fullmatch(r'<script type="application/json" id="it&#x27;s">[^<>&]*</script>', text)
