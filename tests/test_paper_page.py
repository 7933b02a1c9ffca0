"""docs/paper.md: its numbers are those of the cost models and of real fits."""

from __future__ import annotations

import sys
import warnings
from functools import cache
from pathlib import Path

import pytest

import bitwatt

pytest.importorskip("sklearn")
ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "paper.md").read_text()
sys.path.insert(0, str(ROOT / "benchmarks" / "accuracy"))


@cache
def _runs() -> tuple[bitwatt.Run, bitwatt.Run]:
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression

    shapes = (500_000, 40), (500_000,)
    solver = LogisticRegression(solver="sag", max_iter=100)
    return (
        bitwatt.estimate(RandomForestClassifier(200), *shapes, classes=2),
        bitwatt.estimate(solver, *shapes, classes=2, assume={"n_iter_": 100}),
    )


def _cells(begin: str) -> list[str]:
    line = next(line for line in PAGE.splitlines() if line.startswith(f"| {begin} |"))
    return [cell.strip(" *") for cell in line.strip("|").split("|")][1:]


@pytest.mark.parametrize("model", ["flops:paper", "bops:paper"])
def test_the_formulas_give_what_the_page_says(model: str) -> None:
    # 200·500,000·40·log2(500,000) and 100·500,000·40; times 64 bits
    found = [f"{bitwatt.totals(run, model).total:.2e}".replace("e+0", "e").replace("e+", "e") for run in _runs()]
    assert _cells(f"`{model}`") == found


def test_the_paper_prints_more_than_its_formula_for_the_forest() -> None:
    printed = map(float, _cells("printed in the paper, FLOPs"))
    ratios = [
        f"{said / bitwatt.totals(run, 'flops:paper').total:.2f}" for said, run in zip(printed, _runs(), strict=True)
    ]
    assert ratios == _cells("printed over its own formula") == ["8.33", "1.00"]


def test_executed_factors_follow_from_the_executed_numbers() -> None:
    executed = map(float, _cells("executed, `flops`"))
    for said, run, factor in zip(executed, _runs(), _cells("executed over `flops:paper`"), strict=True):
        assert said / bitwatt.totals(run, "flops:paper").total == pytest.approx(float(factor), rel=0.005)
        assert said == pytest.approx(bitwatt.totals(run).total, rel=0.05)  # what shapes alone give


def test_small_fits_give_the_factors_of_the_page() -> None:
    from estimator_data import classification
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression

    X, y = classification(5_000, 40)
    for estimator, factor in zip(
        (
            RandomForestClassifier(8, random_state=0),
            LogisticRegression(solver="sag", max_iter=10, tol=0, random_state=0),
        ),
        _cells("5,000"),
        strict=True,
    ):
        with warnings.catch_warnings(), bitwatt.measure(keep=False) as session:
            warnings.simplefilter("ignore")
            estimator.fit(X, y)
        assert session.run is not None
        ratio = bitwatt.totals(session.run).total / bitwatt.totals(session.run, "flops:paper").total
        assert ratio == pytest.approx(float(factor), rel=0.01)
