"""The dashboard in a real browser: what a person does with it, on a desk, on a phone, by keyboard."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from dataclasses import replace
from datetime import UTC, datetime
from urllib.parse import quote

import pytest

from bitwatt.charts import available
from browsing import CONTRAST, PHONE, browser, open_tab  # noqa: F401
from showcase import HOSTILE, hostile_run

pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")
pytestmark = pytest.mark.skipif(not available(), reason="charts are not installed")
WIDE = {"width": 1400, "height": 900}
PAGES = {
    "runs": "/", "run": "/runs/run-004", "compare": "/compare?run=run-004&run=run-006", "trends": "/trends",
    "ranks": "/ranks/job-1?name=spread", "jobs": "/ranks", "live": "/live", "lost": "/runs/nothing",
}  # fmt: skip
PICTURES = [("run", WIDE, "light"), ("compare", WIDE, "dark"), ("trends", WIDE, "light"), ("runs", PHONE, "light")]
#: A run that is written often, and ends when it is told to.
PROGRAM = """
import sys, time, pathlib, torch, bitwatt
from bitwatt import journal
journal.FIRST, journal.INTERVAL, journal.RANK_FIRST, journal.SHARE = 0.2, 0.5, 0.2, 1.0
with bitwatt.measure(sys.argv[2], store=sys.argv[1], meter=False):
    model, began = torch.nn.Linear(256, 256), time.time()
    while not pathlib.Path(sys.argv[3]).exists() and time.time() - began < 600:
        loss = model(torch.randn(64, 256)).square().mean()
        loss.backward()
        bitwatt.metric("loss", loss.item())
        time.sleep(0.02)
"""


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    from served import fill, serving

    folder = tmp_path_factory.mktemp("project") / ".bitwatt"
    fill(folder)
    with serving(folder) as found:
        yield found


def until(is_so) -> None:
    """Playwright's own waiting evaluates text, which the pages' policy forbids."""
    deadline = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def follow(page, act) -> None:
    """Do what leads to another page, and wait until that is there."""
    with page.expect_navigation():
        act()


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("size", [WIDE, PHONE], ids=["desk", "phone"])
def test_every_page_opens_without_a_complaint(name, size, browser, served):  # noqa: F811
    for scheme in ("light", "dark"):
        with open_tab(browser, served.url + PAGES[name], viewport=size, color_scheme=scheme) as tab:
            assert [text for text in tab.complaints if "404" not in text] == []
            assert tab.refused == []
            assert tab.overflow <= 0
            assert tab.page.get_by_role("heading", level=1).is_visible()
            assert all(one.startswith(served.url) for one in tab.asked)
            assert tab.page.evaluate(CONTRAST) == []
            ids = tab.page.evaluate("[...document.querySelectorAll('[id]')].map(e => e.id)")
            assert len(ids) == len(set(ids))
            assert tab.page.locator("table:not(:has(caption)), th:not([scope])").count() == 0
            if (name, size, scheme) in PICTURES:
                tab.picture(f"dashboard-{name}{'' if size is WIDE else '-phone'}")


def test_runs_are_found_sorted_and_shown_in_other_columns(browser, served):  # noqa: F811
    with open_tab(browser, served.url, viewport=WIDE) as tab:
        page = tab.page
        table = page.get_by_role("table", name="Runs")
        assert table.get_by_role("rowheader").count() == 14  # ranks of a job in one line
        box = page.get_by_label("Filters")
        box.fill("name~small accuracy>0.78")
        follow(page, lambda: box.press("Enter"))
        assert "there is no field 'accuracy'" in page.get_by_role("alert").inner_text()
        assert box.input_value() == "name~small accuracy>0.78"
        box.fill("name~small metric.accuracy > 0.78")
        follow(page, lambda: box.press("Enter"))
        assert table.get_by_role("rowheader").all_inner_texts() == [
            "small-gpt\nrun-010", "small-gpt\nrun-008", "small-gpt\nrun-006"
        ]  # fmt: skip
        follow(page, table.get_by_role("link", name="energy").click)
        assert "run-010" in table.get_by_role("rowheader").first.inner_text()
        follow(page, table.get_by_role("link", name="energy").click)
        assert "run-006" in table.get_by_role("rowheader").first.inner_text()
        assert table.get_by_role("columnheader", name="energy").get_attribute("aria-sort") == "ascending"
        page.locator("summary", has_text="Columns").click()
        page.get_by_role("checkbox", name="param.lr").check()
        page.get_by_role("checkbox", name="bops").uncheck()
        follow(page, page.get_by_role("button", name="Show these").click)
        heads = table.get_by_role("columnheader").all_inner_texts()
        assert "lr" in heads
        assert "BOPs" not in heads
        assert box.input_value() == "name~small metric.accuracy > 0.78"
        assert "run-006" in table.get_by_role("rowheader").first.inner_text()
        assert table.get_by_role("row").nth(1).get_by_role("cell", name="0.0006").is_visible()
        page.locator("summary", has_text="Columns").click()
        follow(page, page.get_by_role("link", name="The usual ones").click)
        assert "BOPs" in table.get_by_role("columnheader").all_inner_texts()
        assert tab.complaints == [
            "error: Failed to load resource: the server responded with a status of 400 (Bad Request)"
        ]


def test_two_runs_are_marked_compared_and_read(browser, served):  # noqa: F811
    with open_tab(browser, served.url, viewport=WIDE) as tab:
        page = tab.page
        button = page.locator("button[data-count]")
        assert button.is_disabled()
        page.get_by_role("row", name=re.compile("run-008")).get_by_role("checkbox").check()
        assert button.is_disabled()
        page.get_by_role("row", name=re.compile("run-010")).get_by_role("checkbox").check()
        assert button.inner_text() == "Compare 2 marked"
        tab.picture("dashboard-marked", clip={"x": 0, "y": 0, "width": 1400, "height": 860})
        follow(page, button.click)
        assert page.get_by_role("heading", level=1).inner_text() == "Comparison"
        sides = page.locator(".sides li").all_inner_texts()
        assert [re.search(r"run-\d+", text)[0] for text in sides] == ["run-008", "run-010"]  # the older one first
        mark = page.locator("#totals .wide [aria-label^='FLOPs, B ']")
        mark.hover()
        assert re.fullmatch(r"FLOPs, B small-gpt: 560 TFLOP, \+[\d.]+ %", page.locator(".tip").inner_text())
        before = page.locator(".sides li").first.inner_text()
        follow(page, page.get_by_role("link", name="The other way round").click)
        assert page.locator(".sides li").nth(1).inner_text()[1:] == before[1:]
        page.get_by_label("Quality").select_option("accuracy")
        follow(page, page.get_by_role("button", name="Compare").click)
        assert "accuracy" in page.locator("header").inner_text()
        assert tab.complaints == []


def test_a_run_is_opened_and_its_values_read(browser, served):  # noqa: F811
    with open_tab(browser, f"{served.url}/?q=run-004", viewport=WIDE) as tab:
        page = tab.page
        follow(page, page.get_by_role("table", name="Runs").get_by_role("link", name="small-gpt").click)
        assert page.get_by_role("heading", level=1).inner_text() == "small-gpt"
        mark = page.locator("#phases .wide [role=graphics-symbol]").first
        mark.hover()
        assert page.locator(".tip").inner_text() == mark.get_attribute("aria-label")
        layers = page.locator("#layers")
        layers.get_by_text("BOPs", exact=True).click()
        assert layers.locator("figcaption").nth(1).is_visible()
        page.get_by_role("navigation", name="Sections").get_by_role("link", name="Machine").click()
        assert page.get_by_text("Intel(R) Xeon(R) Platinum 8480C").is_visible()
        follow(page, page.get_by_role("link", name="Compare with the one before").click)
        assert ["run-002" in text for text in page.locator(".sides li").all_inner_texts()] == [True, False]
        entries = "performance.getEntriesByType('resource').filter(e => e.name.includes('/static/'))"
        assert set(page.evaluate(f"{entries}.map(e => e.transferSize)")) == {0}  # kept from the page before
        assert tab.complaints == []


def test_trends_show_the_front_and_other_axes(browser, served):  # noqa: F811
    with open_tab(browser, f"{served.url}/trends", viewport=WIDE) as tab:
        page = tab.page
        sections = page.get_by_role("heading", level=2).all_inner_texts()
        assert sections == [
            "Choose",
            "accuracy against BOPs",
            "accuracy against energy",
            "From version to version",
            "Versions",
        ]
        labels = page.locator("#bops .wide [role=graphics-symbol]").evaluate_all("e => e.map(x => x.ariaLabel)")
        assert len(labels) == 12
        assert any(re.fullmatch(r"tiny-gpt 1\.9: BOPs [\d.]+ PBOP, accuracy 799 m", label) for label in labels)
        page.locator("#bops .wide [role=graphics-symbol]").first.hover()
        assert page.locator(".tip").inner_text() in labels
        best = page.get_by_role("table", name="Versions").get_by_role("row", name=re.compile("tiny-gpt 1.1 "))
        assert "quality and BOPs" in best.inner_text()
        page.get_by_role("checkbox", name="BOPs").uncheck()
        page.get_by_role("checkbox", name="energy").uncheck()
        page.get_by_role("checkbox", name="time").check()
        page.get_by_label("A dot is", exact=True).select_option("run")
        page.get_by_label("Filters").fill("name~tiny")
        follow(page, page.get_by_role("button", name="Draw").click)
        assert page.get_by_role("heading", level=2).all_inner_texts() == ["Choose", "accuracy against time", "Runs"]
        assert page.locator("#seconds .wide [role=graphics-symbol]").count() == 6
        assert tab.complaints == []


def test_a_straggler_is_found_from_the_list_of_jobs(browser, served):  # noqa: F811
    with open_tab(browser, f"{served.url}/ranks") as tab:
        follow(tab.page, tab.page.get_by_role("table", name="Jobs").get_by_role("link", name="spread").click)
        assert "rank 3 held up 100 % of steps" in tab.page.locator("header").inner_text()
        row = tab.page.get_by_role("table", name="Ranks").get_by_role("row", name=re.compile("^3 "))
        assert "node-1" in row.inner_text()
        assert tab.complaints == []


def test_a_run_appears_grows_and_ends_while_one_looks(browser, tmp_path):  # noqa: F811
    from served import fill, serving

    fill(tmp_path / ".bitwatt")
    with serving(tmp_path / ".bitwatt") as found, open_tab(browser, f"{found.url}/live", viewport=WIDE) as tab:
        page = tab.page
        assert page.get_by_text("Nothing is under way").is_visible()
        name = "finetune"
        command = [sys.executable, "-c", PROGRAM, str(found.folder), name, str(tmp_path / "stop")]
        process = subprocess.Popen(command)
        try:
            row = page.get_by_role("table", name="Runs under way").get_by_role("row").nth(1)
            flops = row.locator("td[data-field=flops]")
            flops.filter(has_text="FLOP").wait_for()
            assert row.get_by_role("rowheader").inner_text() == name
            first = flops.inner_text()
            until(lambda: flops.inner_text() != first)
            assert re.match(r"loss [\d.]+", row.locator("td[data-field=metrics]").inner_text())
            line = row.locator("svg.spark polyline")
            until(lambda: len(line.get_attribute("points").split()) > 3)
            assert page.get_by_text("Nothing is under way").is_hidden()
            assert "Connected" in page.locator("#state").inner_text()
            tab.picture("dashboard-live", clip={"x": 0, "y": 0, "width": 1400, "height": 420})
            (tmp_path / "stop").touch()
            row.locator("td[data-field=state]").get_by_text("ok", exact=True).wait_for()
            assert page.locator("#said").inner_text() == f"{name} has ended: ok"
            follow(page, row.get_by_role("link").click)
            assert page.get_by_role("heading", level=1).inner_text() == name
        finally:
            (tmp_path / "stop").touch()
            process.wait(120)
        assert page.evaluate("window.hacked") is None
        assert tab.complaints == []


def test_names_that_mean_harm_do_none(browser, tmp_path):  # noqa: F811
    from served import fill_badly, keep, serving

    fill_badly(tmp_path)
    ids = ("<img src=x onerror=alert(1)>", "javascript:alert(1)")
    both = "&".join(f"run={quote(id, safe='')}" for id in ids)
    paths = ["/", "/trends", "/ranks", "/live", f"/compare?{both}", *(f"/runs/{quote(id, safe='')}" for id in ids)]
    paths += [f"/?q={quote(HOSTILE[1])}", f"/?sort={quote(HOSTILE[0])}", f"/runs/{quote(HOSTILE[1], safe='')}"]
    with serving(tmp_path) as found:
        for size in (WIDE, PHONE):
            for path in paths:
                with open_tab(browser, found.url + path, viewport=size) as tab:
                    assert [text for text in tab.complaints if not re.search("status of 40[04]", text)] == [], path
                    assert tab.refused == [], path
                    assert tab.page.evaluate("window.hacked") is None, path
                    assert tab.page.locator("img, iframe, svg[onload], [onerror], style").count() == 0, path
                    assert all(one.startswith(f"{found.url}/") for one in tab.asked), path
                    assert tab.overflow <= 0, path
        with open_tab(browser, found.url) as tab:
            follow(tab.page, tab.page.get_by_role("link", name=HOSTILE[1], exact=True).first.click)
            assert tab.page.get_by_role("heading", level=1).inner_text() == HOSTILE[1]
            tab.page.evaluate(  # what slips through would be stopped
                "() => { document.body.insertAdjacentHTML('beforeend', \"<img src=x onerror='window.hacked = 1'>\");"
                " const s = document.createElement('script'); s.textContent = 'window.hacked = 1';"
                " document.body.append(s); }"
            )
            until(lambda: tab.page.wait_for_timeout(50) or len(tab.refused) >= 2)  # which lets events in
            assert tab.page.evaluate("window.hacked") is None
        with open_tab(browser, f"{found.url}/live") as tab:
            now = datetime.now(UTC).isoformat(timespec="milliseconds")
            run = replace(hostile_run(), id=ids[0], name=HOSTILE[1], started=now, status="under way", rank=None)
            keep(run, tmp_path)
            row = tab.page.get_by_role("row", name=HOSTILE[1])
            row.wait_for()
            assert row.get_by_role("link").get_attribute("href") == f"/runs/{quote(ids[0], safe='')}"
            assert HOSTILE[3] in row.inner_text()  # a metric's name
            assert tab.page.locator("img").count() == 0
            assert tab.complaints == []


def test_the_keyboard_is_enough(browser, served):  # noqa: F811
    with open_tab(browser, served.url, viewport=WIDE) as tab:
        page = tab.page
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
        page.keyboard.press("Enter")
        assert page.evaluate("document.activeElement.id") == "content"
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.id") == "q"
        page.keyboard.type("name~tiny")
        follow(page, lambda: page.keyboard.press("Enter"))
        assert "q=name" in page.url
        marked, seen = 0, set()
        for _ in range(60):
            page.keyboard.press("Tab")
            kind, outlined = page.evaluate(
                "() => { const e = document.activeElement, s = getComputedStyle(e);"
                " return [e.name === 'run' ? 'mark' : e.tagName, parseFloat(s.outlineWidth) > 0]; }"
            )
            assert outlined, kind
            seen.add(kind)
            if kind == "mark" and marked < 2:
                page.keyboard.press("Space")
                marked += 1
                if marked == 2:
                    break
        assert {"A", "SELECT", "BUTTON", "SUMMARY", "mark"} <= seen
        follow(page, lambda: page.keyboard.press("Enter"))  # sends the form that the mark is in
        assert "/compare?" in page.url
        assert page.locator(".sides li").count() == 2


def test_without_scripts_it_can_all_be_read(browser, served):  # noqa: F811
    with open_tab(browser, served.url, java_script_enabled=False) as tab:
        page = tab.page
        page.get_by_label("Filters").fill("name~tiny")
        follow(page, page.get_by_role("button", name="Show", exact=True).click)
        table = page.get_by_role("table", name="Runs")
        assert table.get_by_role("rowheader").count() == 6
        for number in (1, 2):
            table.get_by_role("row").nth(number).get_by_role("checkbox").check()
        follow(page, page.get_by_role("button", name="Compare the marked").click)
        assert page.get_by_role("table", name="Totals").get_by_role("rowheader", name="FLOPs").is_visible()
        assert page.locator("#totals .wide svg").is_visible()
        page.goto(f"{served.url}/live")
        assert '<noscript><meta http-equiv="refresh" content="10">' in page.content()
        assert tab.complaints == []


def test_a_person_shows_the_token_once(browser, served):  # noqa: F811
    from served import TOKEN, serving

    with (
        serving(served.folder, token=TOKEN, loopback=False) as found,
        open_tab(browser, f"{found.url}/trends", viewport=PHONE) as tab,
    ):
        page = tab.page
        assert page.url.endswith("/login")
        assert page.get_by_role("navigation").count() == 0
        assert page.evaluate(CONTRAST) == []
        page.get_by_label("Token").fill("something else")
        follow(page, page.get_by_role("button", name="Open").click)
        assert page.get_by_role("alert").inner_text() == "That is not the token."
        page.get_by_label("Token").fill(TOKEN)
        follow(page, page.get_by_role("button", name="Open").click)
        assert page.get_by_role("heading", level=1).inner_text() == "Runs"
        follow(page, page.get_by_role("link", name="Live").click)
        page.get_by_text("Connected").wait_for()  # the stream gets the cookie too
        assert page.evaluate("document.cookie") == ""
        assert TOKEN not in page.content()
        [cookie] = page.context.cookies()
        assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
        assert tab.refused == []


def test_behind_a_proxy_two_runs_are_compared(browser, served):  # noqa: F811
    from served import serving

    with (
        serving(served.folder, prefix="/costs") as found,
        open_tab(browser, f"{found.url}/costs/", viewport=WIDE) as tab,
    ):
        page = tab.page
        page.get_by_role("row", name=re.compile("run-008")).get_by_role("checkbox").check()
        page.get_by_role("row", name=re.compile("run-010")).get_by_role("checkbox").check()
        follow(page, page.locator("button[data-count]").click)
        assert page.get_by_role("heading", level=1).inner_text() == "Comparison"
        follow(page, page.get_by_role("link", name="Open A").click)
        assert page.url == f"{found.url}/costs/runs/run-008"
        follow(page, page.get_by_role("link", name="Live").click)
        page.get_by_text("Connected").wait_for()
        assert any(one.endswith("/costs/api/live") for one in tab.asked)
        assert (tab.complaints, tab.refused) == ([], [])
        assert all(one.startswith(f"{found.url}/costs/") for one in tab.asked)
