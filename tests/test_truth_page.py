"""docs/accuracy.md: what it says of estimators is what the stored counts and bitwatt give."""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks" / "accuracy"))

pytest.importorskip("sklearn")

import marked
import truth_page

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "accuracy.md").read_text()
ROWS = [json.loads(line) for line in truth_page.EXECUTED.read_text().splitlines()]
#: Fits whose amount follows from shapes or from trees that are grown the same everywhere, and that take milliseconds.
CHEAP = (
    "LinearRegression", "Ridge.cholesky", "StandardScaler", "MinMaxScaler", "GaussianNB", "PCA.covariance_eigh",
    "KNN.brute", "DecisionTreeClassifier", "EmpiricalCov",
)  # fmt: skip


def _line(name: str) -> list[str]:
    part = marked.part(PAGE, truth_page.PART).partition("### Every fit")[2]
    line = next(line for line in part.splitlines() if line.startswith(f"| {name} |"))
    return [cell.strip() for cell in line.strip("|").split("|")]


@pytest.mark.parametrize("name", CHEAP)
def test_the_page_says_what_bitwatt_counts(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fits, _ = truth_page.gather(row for row in ROWS if row["name"] == name)
    assert truth_page.line(fits)[:7] == _line(name)[:7]  # all but floppy-tracker's, which is not installed here


def test_every_measured_fit_is_on_the_page() -> None:
    sizes: dict[str, list[str]] = {}
    for row in ROWS:
        sizes.setdefault(row["name"], []).append(truth_page.amount(row["fit"]["f64"] + row["fit"]["f32"]))
    assert {name: _line(name)[2] for name in sizes} == {name: " / ".join(found) for name, found in sizes.items()}


def test_the_other_script_leaves_the_part_in_place() -> None:
    page = "before\n" + marked.framed("estimators", "old") + "after\n"
    assert marked.part(page, "estimators") == "old"
    assert marked.replaced(page, "estimators", "new") == "before\n" + marked.framed("estimators", "new") + "after\n"
    with pytest.raises(ValueError, match="no part"):
        marked.replaced("nothing", "estimators", "new")
