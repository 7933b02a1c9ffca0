"""docs/deployment-claims.md says what was measured."""

from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

import deploy_claims_page

ROOT = Path(__file__).parents[2]
RESULTS = json.loads((ROOT / "docs" / "tables" / "deployment-claims.json").read_text(encoding="utf-8"))


def test_the_page_is_what_the_results_give() -> None:
    page = (ROOT / "docs" / "deployment-claims.md").read_text(encoding="utf-8")
    assert page == deploy_claims_page.page(RESULTS)


def test_the_page_names_its_machine_load_and_versions() -> None:
    page = deploy_claims_page.page(RESULTS)
    assert RESULTS["date"] in page
    assert RESULTS["versions"]["onnxruntime"] in page
    assert "load" in page


def test_what_has_no_integer_product_is_not_counted_as_int8() -> None:
    families = [one for one in RESULTS["families"] if not deploy_claims_page._is_int8(one)]
    left = {**RESULTS, "families": families}
    assert families, "trees are among them"
    assert deploy_claims_page._ratios(left, "onnx-int8", "sklearn-fp64") == []
    assert "never | no model here has integer products" in deploy_claims_page.page(left)


def test_a_claim_is_met_where_its_interval_touches_the_range() -> None:
    cells = [(1.5, 1.2, 1.9), (1.9, 1.7, 2.1), (2.5, 2.4, 2.6), (9.0, 8.0, 10.0)]
    line = deploy_claims_page._claimed("so fast", cells, 2, 3, "×")
    assert "2 of 4; 1 below, 1 above" in line
    assert "1.5 to 9×, median 2.2×" in line


def test_wall_times_that_cpu_times_do_not_bear_out_are_marked() -> None:
    """On a busy machine long calls are interrupted and short ones are not; no interval knows of it."""
    one = {"scenarios": {"a": {"cpu_seconds": {"8x1": 0.001}}, "b": {"cpu_seconds": {"8x1": 0.003}}}}
    cell = {"scenario": "a", "against": "b", "batch": 8, "ratio": 12.0, "low": 10.0, "high": 15.0}
    assert deploy_claims_page._ratio(one, cell) == "12 [10, 15]; CPU 3 !"
    assert deploy_claims_page._ratio(one, {**cell, "ratio": 3.1, "low": 2.9, "high": 3.3}) == "3.1 [2.9, 3.3]; CPU 3"
