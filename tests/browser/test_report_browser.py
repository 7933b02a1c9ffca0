"""The page of a run in a real browser: what a person does with it, on a desk, on a phone, on paper, by keyboard."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import bitwatt
from bitwatt import store
from bitwatt.charts import available
from bitwatt.comparing import Comparison
from bitwatt.comparing.sides import sides
from bitwatt.reports import report
from bitwatt.reports.ranks import render
from browsing import CONTRAST, DESK, PHONE, browser, open_tab  # noqa: F401
from showcase import HOSTILE, empty_run, hostile_run, job_runs, serving_run, training_run

pytestmark = pytest.mark.skipif(not available(), reason="charts are not installed")
RUNS = {"training": training_run, "serving": serving_run, "hostile": hostile_run, "empty": empty_run}
PAGES = [*RUNS, "comparison", "ranks"]


@pytest.fixture(scope="module")
def pages(tmp_path_factory) -> dict[str, str]:
    """Name of a run -> where its page is."""
    folder = tmp_path_factory.mktemp("pages")
    texts = {name: report(make(), format="html") for name, make in RUNS.items()}
    sides_of = sides([[training_run()], [training_run(layers=9, name="fewer-layers")]])
    texts["comparison"] = Comparison(sides_of).render("html")
    for run in job_runs():
        store.save(run, folder)
    texts["ranks"] = render(bitwatt.join(store=folder), "html")
    for name, text in texts.items():
        (folder / f"{name}.html").write_text(text, encoding="utf-8")
    return {name: (folder / f"{name}.html").as_uri() for name in texts}


@pytest.mark.parametrize("name", PAGES)
def test_a_page_asks_for_nothing_and_nothing_is_refused(name, browser, pages):  # noqa: F811
    with open_tab(browser, pages[name]) as tab:
        assert tab.asked == [pages[name]]
        assert tab.complaints == []
        assert tab.refused == []
        assert tab.page.get_by_role("main").is_visible()
        assert tab.overflow <= 0


def test_names_are_text_and_the_policy_would_stop_what_slips_through(browser, pages):  # noqa: F811
    with open_tab(browser, pages["hostile"]) as tab:
        page = tab.page
        assert page.evaluate("window.hacked") is None
        assert page.get_by_role("heading", level=1).inner_text() == HOSTILE[0]
        assert page.locator("svg text", has_text="onerror").count() > 0
        assert page.locator("img, svg[onload], iframe").count() == 0
        page.evaluate(
            "() => { const s = document.createElement('script'); s.textContent = 'window.hacked = 1';"
            " document.body.append(s);"
            " document.body.insertAdjacentHTML('beforeend', \"<img src=x onerror='window.hacked = 1'>\"); }"
        )
        page.wait_for_function("window.refused.length >= 2")
        assert page.evaluate("window.hacked") is None


def test_the_treemap_is_switched_by_mouse_and_by_keyboard(browser, pages):  # noqa: F811
    with open_tab(browser, pages["training"]) as tab:
        layers = tab.page.locator("#layers")
        captions = layers.locator("figcaption")
        assert [captions.nth(i).is_visible() for i in range(3)] == [True, False, False]
        layers.get_by_text("BOPs", exact=True).click()
        assert [captions.nth(i).is_visible() for i in range(3)] == [False, True, False]
        tab.page.keyboard.press("ArrowRight")
        assert [captions.nth(i).is_visible() for i in range(3)] == [False, False, True]
        assert layers.get_by_role("radio", name="Bytes").is_checked()
        tiles = layers.locator(".panel:visible .wide [role=graphics-symbol]")
        assert tiles.count() > 40
        assert "TB" in tiles.first.get_attribute("aria-label")


def test_a_value_is_read_by_pointing_at_it(browser, pages):  # noqa: F811
    with open_tab(browser, pages["training"]) as tab:
        mark = tab.page.locator("#phases .wide [role=graphics-symbol]").first
        mark.hover()
        tip = tab.page.locator(".tip")
        tip.wait_for()
        assert tip.inner_text() == mark.get_attribute("aria-label")
        assert re.fullmatch(r"FLOPs, forward: 1\.\d+ PFLOP, 3\d\.\d %", tip.inner_text())
        tab.page.mouse.move(2, 2)
        tip.wait_for(state="hidden")


def test_a_chart_is_walked_through_by_keyboard(browser, pages):  # noqa: F811
    with open_tab(browser, pages["training"]) as tab:
        chart = tab.page.locator("#phases .wide svg.marks")
        chart.focus()
        seen = []
        for key in ("ArrowRight", "ArrowRight", "End", "Home"):
            tab.page.keyboard.press(key)
            seen.append(tab.page.evaluate("document.activeElement.getAttribute('aria-label')"))
            assert tab.page.locator(".tip").inner_text() == seen[-1]
        assert len(set(seen)) == 3
        assert seen[0] == seen[3]
        tab.page.keyboard.press("Escape")
        tab.page.locator(".tip").wait_for(state="hidden")
        assert chart.evaluate("e => e === document.activeElement")


def test_tab_reaches_everything_and_shows_where_it_is(browser, pages):  # noqa: F811
    with open_tab(browser, pages["training"]) as tab:
        tab.page.keyboard.press("Tab")
        assert tab.page.evaluate("document.activeElement.textContent") == "Skip to the content"
        tab.page.keyboard.press("Enter")
        assert tab.page.evaluate("document.activeElement.id") == "content"
        reached = set()
        for _ in range(60):
            tab.page.keyboard.press("Tab")
            where = tab.page.evaluate(
                "() => { const e = document.activeElement; const s = getComputedStyle(e.matches('input') ?"
                " e.nextElementSibling : e); return [e.closest('section')?.id || '', e.tagName,"
                " parseFloat(s.outlineWidth) > 0 && s.outlineStyle !== 'none']; }"
            )
            if where[1] == "BODY":
                break
            assert where[2], where
            reached.add((where[0], where[1].lower()))
        assert {("phases", "svg"), ("layers", "input"), ("layers", "svg"), ("energy", "svg"), ("ops", "div")} <= reached


def test_a_screen_reader_finds_its_way(browser, pages):  # noqa: F811
    with open_tab(browser, pages["training"]) as tab:
        page = tab.page
        for role in ("banner", "navigation", "main", "contentinfo"):
            assert page.get_by_role(role).count() == 1, role
        links = page.get_by_role("navigation").get_by_role("link")
        titles = [links.nth(i).inner_text() for i in range(links.count())]
        assert titles == page.get_by_role("heading", level=2).all_inner_texts()
        for title in titles:
            assert page.get_by_role("region", name=title, exact=True).first.is_visible(), title
        assert page.get_by_role("table", name="Phases").get_by_role("rowheader", name="backward").count() == 1
        assert page.locator("table:not(:has(caption)), th:not([scope])").count() == 0
        unnamed = "svg:not([aria-hidden=true]):not([aria-label])"
        assert page.locator(unnamed).count() == 0
        chart = page.locator("#energy .wide svg.marks")
        assert chart.get_attribute("role") == "graphics-document document"
        assert "NVIDIA H200: " in chart.locator("desc").text_content()
        ids = page.evaluate("[...document.querySelectorAll('[id]')].map(e => e.id)")
        assert len(ids) == len(set(ids))


@pytest.mark.parametrize("name", PAGES)
def test_a_phone_has_no_sideways_scroll_and_its_own_drawings(name, browser, pages):  # noqa: F811
    with open_tab(browser, pages[name], viewport=PHONE) as tab:
        assert tab.overflow <= 0
        assert tab.page.locator(".wide:visible").count() == 0
        if name == "training":
            chart = tab.page.locator("#phases .narrow svg.marks")
            box = chart.bounding_box()
            assert box["x"] >= 0
            assert box["x"] + box["width"] <= PHONE["width"]
            assert chart.get_attribute("width") == str(round(box["width"]))  # letters are as large as they were drawn
            tab.picture("report-phone")


def test_a_comparison_is_read_like_a_run(browser, pages):  # noqa: F811
    with open_tab(browser, pages["comparison"]) as tab:
        assert tab.page.evaluate(CONTRAST) == []
        mark = tab.page.locator("#totals .wide [aria-label^='FLOPs, B ']")
        mark.hover()
        assert re.fullmatch(r"FLOPs, B fewer-layers: [\d.]+ PFLOP, -[\d.]+ %", tab.page.locator(".tip").inner_text())
        assert tab.page.get_by_role("table", name="Layers").get_by_role("rowheader").count() >= 5
        tab.picture("comparison")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("viewport", [DESK, PHONE], ids=["desk", "phone"])
def test_text_can_be_read_in_the_light_and_in_the_dark(scheme, viewport, browser, pages):  # noqa: F811
    with open_tab(browser, pages["training"], color_scheme=scheme, viewport=viewport) as tab:
        assert tab.page.evaluate(CONTRAST) == []
        page = tab.page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
        assert (sum(map(int, re.findall(r"\d+", page))) < 120) == (scheme == "dark")
        ink = tab.page.locator("#energy .wide .role-axis-label text").first
        soft = ink.evaluate("e => getComputedStyle(e).fill")
        assert (sum(map(int, re.findall(r"\d+", soft))) > 400) == (scheme == "dark")
        if viewport is DESK:
            tab.picture(f"report-{scheme}", clip={"x": 0, "y": 0, **DESK})
            for place in ("layers", "roofline", "energy") if scheme == "light" else ():
                if place != "layers":
                    tab.page.locator(f"#{place}").scroll_into_view_if_needed()
                tab_picture(tab, place)


def tab_picture(tab, place: str) -> None:
    box = tab.page.locator(f"#{place}").bounding_box()
    scroll = tab.page.evaluate("scrollY")
    area = {"x": box["x"], "y": box["y"] + scroll, "width": box["width"], "height": min(box["height"], 640)}
    tab.picture(f"report-{place}", clip=area, full_page=True)


def test_it_prints_on_a4(browser, pages, tmp_path: Path):  # noqa: F811
    with open_tab(browser, pages["training"], viewport={"width": 688, "height": 1000}) as tab:
        tab.page.emulate_media(media="print")
        assert tab.overflow <= 0
        assert tab.page.get_by_role("navigation").count() == 0
        assert tab.page.locator("#phases .wide").is_visible()
        assert tab.page.locator("#phases .narrow").is_hidden()
        assert tab.page.locator("#layers input").first.is_hidden()
        cut = "e => e.filter(one => one.scrollWidth > one.parentElement.clientWidth + 1).length"
        assert tab.page.locator(".scroll").evaluate_all(cut) == 0
        paper = tab.page.pdf(format="A4", prefer_css_page_size=True, print_background=True)
        assert 3 <= len(re.findall(rb"/Type\s*/Page\b", paper)) <= 12
        tab.picture("report-print", clip={"x": 0, "y": 0, "width": 688, "height": 973})


def test_without_scripts_it_can_all_be_read(browser, pages):  # noqa: F811
    with open_tab(browser, pages["training"], java_script_enabled=False) as tab:
        layers = tab.page.locator("#layers")
        assert layers.locator("figcaption").nth(0).is_visible()
        layers.get_by_text("Bytes", exact=True).click()
        assert layers.locator("figcaption").nth(2).is_visible()
        assert tab.page.get_by_role("table").count() >= 5
        assert tab.page.locator("#phases .wide svg text", has_text="Bytes moved").is_visible()
        assert tab.complaints == []
