"""A comparison drawn: it fits the terminal, and no name is taken for markup."""

from __future__ import annotations

import json
from html.parser import HTMLParser

import pytest
from compared_runs import metered, network, quality, repeated

from bitwatt.comparing import compare
from bitwatt.config import Settings
from bitwatt.errors import UnknownNameError
from bitwatt.reports.text import length
from factories import transformer_run

EVIL = "<script>alert(1)</script>|\x1b]0;owned\x07\x1b[2J![x](http://e.vil)`\r\nA: fake line\u202eevil"
PLAIN = Settings()


def hostile():
    one = network(name=EVIL, command=EVIL, prefix=f"{EVIL}.", about=quality(**{EVIL: 0.5}), meter=metered(10.0))
    other = network(id=EVIL, name=EVIL, width=32, prefix="b.", about=quality(**{EVIL: 0.6}), meter=metered(12.0))
    comparison = compare(one, other, settings=PLAIN)
    comparison.pareto("energy", "flops")
    return comparison


@pytest.mark.parametrize("width", [40, 60, 80, 100, 200])
@pytest.mark.parametrize("many", [2, 3, 4, 9, 30])
def test_text_fits_the_terminal(width, many):
    runs = [
        transformer_run(layers=6, width=700 + 13 * i, id=f"run{i}", name=f"a rather long name of a run {i}",
                        command=f"python train.py --width {700 + i} --something-long another", meter=metered(100.0 + i),
                        about=quality(accuracy=0.9 + i / 1000))
        for i in range(many)
    ]  # fmt: skip
    comparison = compare(*runs, metric="accuracy", settings=PLAIN)
    comparison.pareto("energy", "accuracy", "bops")
    text = comparison.render(width=width)
    if width >= 80:
        assert max(map(length, text.splitlines())) <= width
    assert "FLOPs" in text
    assert "\x1b" not in text
    assert "\x1b[1m" in comparison.render(width=width, color=True)


def test_repeated_runs_of_long_names_fit_too():
    one = repeated(transformer_run(layers=2, width=64), [1.0, 1.2, 1.1, 1.3, 1.25], [1, 2, 3, 4, 5])
    other = repeated(transformer_run(layers=2, width=80, id="b"), [2.0, 2.2, 2.1, 2.3, 2.25], [1, 2, 3, 4, 5])
    text = compare(one, other, settings=PLAIN).render(width=80)
    assert max(map(length, text.splitlines())) <= 80
    assert "(95 %, n 5 and 5)" in text


def test_no_name_steers_a_terminal():
    text = hostile().render(width=100)
    assert not any(ord(c) < 32 and c != "\n" for c in text)
    assert "\u202e" not in text
    assert not any(line.startswith("A: fake line") for line in text.splitlines())


def test_no_name_is_markdown():
    text = hostile().render("markdown")
    assert "<script>" not in text
    assert "![x](" not in text
    assert "](http" not in text.replace("\\]", "")
    tables = [line for line in text.splitlines() if line.startswith("|")]
    assert tables
    for line in tables:  # a bar in a name makes no new cell
        assert line.replace("\\|", "").count("|") in (4, 5, 6)


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.scripts, self.outside = 0, list[str]()

    def handle_starttag(self, tag, attrs) -> None:
        self.scripts += tag == "script"
        self.outside += [value for name, value in attrs if name in ("src", "href", "onload") and "//" in (value or "")]


def test_no_name_is_html():
    comparison = hostile()
    for page in (comparison.render("html"), comparison._repr_html_()):
        tags = Tags()
        tags.feed(page)
        assert tags.scripts == page.startswith("<!doctype")  # the page has its own
        assert tags.outside == []
    assert comparison.render("html").startswith("<!doctype html>")


def test_json_is_exact_and_whole():
    comparison = compare(network(), network(width=32, seconds=float("1.6")), settings=PLAIN)
    document = json.loads(comparison.render("json"))
    assert document["format"] == "bitwatt.comparison"
    assert document["totals"]["parameters"]["differences"]["B"] == 320
    assert {change["name"] for change in document["layers"]} == {"fc1", "act", "fc2"}
    assert document["measured"]["seconds"]["ratios"]["B"]["low"] is None
    assert document["measured"]["seconds"]["ratios"]["B"]["n"] == [1, 1]
    assert document["equal"] is False


def test_one_table_at_length():
    comparison = compare(network(), network(width=32), settings=PLAIN)
    text = comparison.render(by="op")
    assert "toy.add" in text
    assert "Phases" not in text
    assert "equal" in compare(network(), network(), settings=PLAIN).render(by="scope")
    with pytest.raises(UnknownNameError, match="no table by 'layer'"):
        comparison.render(by="layer")
    with pytest.raises(UnknownNameError, match="there are text, markdown, json, html"):
        comparison.render("pdf")


def test_a_notebook_shows_it():
    comparison = compare(network(), network(width=32), settings=PLAIN)
    assert "B against A" in repr(comparison)
    assert "<table>" in comparison._repr_html_()
