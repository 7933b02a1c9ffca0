"""The page of a comparison: one file, with charts of what changed and every table."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from bitwatt.comparing import Comparison
from bitwatt.comparing.sides import sides
from showcase import HOSTILE, hostile_run, training_run


def comparison(repeats: int = 3) -> Comparison:
    """A model and one with two blocks less, each run some times."""
    groups = []
    for layers, name in ((6, "six-blocks"), (4, "four-blocks")):
        run = training_run(layers=layers, name=name)
        groups.append([replace(run, id=f"{name}-{i}", seconds=run.seconds * (1 + 0.01 * i)) for i in range(repeats)])
    return Comparison(sides(groups), metric="loss", lower_is_better=True)


def test_it_is_one_page_with_every_table_and_bars_of_what_changed():
    pytest.importorskip("vl_convert")
    made = comparison()
    made.pareto("energy", "bops")
    text = made.render("html")
    titles = re.findall(r"<h2 [^>]*>([^<]*)</h2>", text)
    assert titles == [table.title for table in made.tables()]
    drawn = [title for title in titles if "<figure" in text.partition(f">{title}</h2>")[2].partition("</section>")[0]]
    assert drawn == ["Totals", "Phases", "Layers", "Ops", "Pareto front"]
    assert "transformer.h.5.mlp.up, A six-blocks: " in text
    assert re.search(r"time, B four-blocks: 0\.\d+×, 0\.\d+ to 0\.\d+ \(95 %, n 3 and 3\)", text)
    assert len(text) < 500_000
    assert "Content-Security-Policy" in text


def test_names_of_runs_are_text():
    runs = [replace(hostile_run(), id=str(i), name=evil) for i, evil in enumerate(HOSTILE[:3])]
    made = Comparison(sides([[run] for run in runs]))
    for text in (made.render("html"), made._repr_html_()):
        assert text.count("<script") == (1 if text.startswith("<!doctype") else 0)
        assert "<img" not in text
        assert text.count("</style>") == 1


def test_without_the_library_the_tables_are_there(monkeypatch):
    monkeypatch.setattr("bitwatt.reports.html.layout.available", lambda: False)
    text = comparison(1).render("html")
    assert "pip install &#x27;bitwatt[charts]&#x27;" in text
    assert "<figure" not in text
    assert text.count("<table") >= 4
