"""Words in sentences and tables: whole names, numbers that people read."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
import studies
from sklearn.linear_model import LogisticRegression

from bitwatt.deploy.amounts import percent
from bitwatt.deploy.given import loading
from bitwatt.deploy.judging import drifting
from bitwatt.deploy.records import Quality
from bitwatt.deploy.telling.findings import found
from bitwatt.deploy.telling.tables import scenarios
from bitwatt.deploy.telling.words import of_change


def section(name: str) -> str:
    return studies.usual_page().partition(f'<section id="{name}"')[2].partition("</section>")[0]


def test_formats_are_not_broken_within_and_names_of_rows_stay_flush_left() -> None:
    page = section("scenarios")
    formats = re.findall(r'<td role="cell" class="(\w+)" data-head="in">', page)
    assert formats
    assert set(formats) == {"number"}, "cells of that class are one line"
    assert re.findall(r'class="(\w*)">Scenario</th>', page) == ["", ""]
    assert set(re.findall(r'<td role="cell" class="(\w+)" data-head="Scenario">', section("selection"))) == {"number"}


def test_the_page_has_no_marks_of_another_format() -> None:
    assert "the metric named in metric, on the rows given" in section("all")


@pytest.mark.parametrize("width", range(40, 121, 8))
def test_names_of_scenarios_stay_whole_on_a_terminal(width: int) -> None:
    text = studies.usual_findings().text(width)
    assert "onnx-int8" in text
    assert not re.search(r"(onnx|sklearn)-$", text, re.MULTILINE)


@pytest.mark.parametrize(
    ("share", "told", "changed"),
    [(0.415, "42 %", "+42 %"), (-0.001, "-0.1 %", "−0.1 %"), (2e-4, "0.02 %", "+0.02 %"), (0.0, "0 %", "±0 %"),
     (6.7e-9, "less than 0.001 %", "±0 %"), (-6.7e-9, "less than 0.001 %", "±0 %")],
)  # fmt: skip
def test_shares_have_no_powers_of_ten(share: float, told: str, changed: str) -> None:
    assert (percent(share), of_change(share)) == (told, changed)


def test_a_column_that_nobody_has_a_number_for_is_left_out() -> None:
    """The values of a regressor have no labels that could flip."""
    valued = [replace(one, quality=Quality("r2", 0.9, rows=10, max_difference=0.0)) for one in studies.usual()]
    told = found(studies.study(*valued), studies.calls(studies.MICROSECONDS))
    table = scenarios(told, (1, 1))
    titles = [column.title for column in table.columns]
    assert "r2" in titles
    assert "flips" not in titles
    assert {len(row) for row in table.rows} == {len(titles)}
    assert "flips" in [column.title for column in scenarios(studies.usual_findings(), (1, 1)).columns]
    critical = next(one for one in told.selection if one.need == "accuracy-critical")
    assert "no difference of r2 shown to" in critical.why


def test_rare_classes_are_counted_where_they_are_not_all_named() -> None:
    """Nine of ten classes have no row: five are named."""
    rows, labels = np.random.default_rng(0).normal(size=(50, 3)), np.arange(50) % 10
    case = loading.case(LogisticRegression().fit(rows, labels), rows, np.full(50, 3))
    told = drifting.balance(case).told
    assert told == (
        "10 classes, from 0 % (0) to 100 % (3) of the rows: accuracy hardly shows 0, 1, 2, 4, 5 and 4 more; balanced "
        "accuracy does"
    )
