"""Section 4.3: a forest and a logistic regression, as printed, by the paper's formula, and as executed."""

from __future__ import annotations

import json
import sys
import warnings
from typing import Any

from examples.paper import printed
from examples.paper.coverage.probes import ROOT
from examples.paper.tables import science, table

import bitwatt

ROWS, FEATURES, TREES, PASSES = 500_000, 40, 200, 100
#: Of the forest as many trees are grown, since all cost alike; of the regression as many passes are made on small data.
GROWN, FEW = 8, 10
#: Measured fits of tests/data/sklearn_executed.jsonl that are of the two kinds.
EXECUTED = ("LogReg.sag.C2", "RandomForestClassifier")


def _accuracy() -> None:
    """The benchmarks' folder, where the data of measured fits are made."""
    sys.path.insert(0, str(ROOT / "benchmarks" / "accuracy"))


def _fitted(estimator: Any, X: Any, y: Any) -> dict[str, int]:
    with warnings.catch_warnings(), bitwatt.measure("paper", keep=False, meter=False) as session:
        warnings.simplefilter("ignore")
        estimator.fit(X, y)
    assert session.run is not None
    return {model: bitwatt.totals(session.run, model).total for model in ("flops", "bops", "flops:paper")}


def from_shapes() -> dict[str, dict[str, int]]:
    """Both examples in full, from shapes alone: nothing is fitted."""
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression

    shapes = (ROWS, FEATURES), (ROWS,)
    solver = LogisticRegression(solver="sag", max_iter=PASSES)
    runs = {
        "forest": bitwatt.estimate(RandomForestClassifier(TREES), *shapes, classes=2),
        "regression": bitwatt.estimate(solver, *shapes, classes=2, assume={"n_iter_": PASSES}),
    }
    models = ("flops:paper", "bops:paper", "flops", "bops")
    return {name: {model: bitwatt.totals(run, model).total for model in models} for name, run in runs.items()}


def fitted(rows: int) -> dict[str, dict[str, int]]:
    _accuracy()
    from estimator_data import classification
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression

    X, y = classification(rows, FEATURES)
    passes = PASSES if rows == ROWS else FEW
    return {
        "forest": _fitted(RandomForestClassifier(GROWN, random_state=0), X, y),
        "regression": _fitted(LogisticRegression(solver="sag", max_iter=passes, tol=0, random_state=0), X, y),
    }


def executed() -> list[dict[str, Any]]:
    """What an instrument read of such fits, beside what bitwatt and the formula say of them."""
    _accuracy()
    from estimators import make

    found = []
    for line in (ROOT / "tests" / "data" / "sklearn_executed.jsonl").read_text().splitlines():
        row = json.loads(line)
        if row["name"] in EXECUTED:
            counted = _fitted(*make(row))
            about = {"name": row["name"], "rows": row["n"], "features": row["f"]}
            found.append(about | {"executed": row["fit"]["f64"] + row["fit"]["f32"], **counted})
    return found


def measure() -> dict[str, Any]:
    return {
        "estimated": from_shapes(),
        "fitted": {str(rows): fitted(rows) for rows in (5_000, 50_000, ROWS)},
        "executed": executed(),
    }


def whole_forest(data: dict[str, Any], model: str) -> int:
    """All trees, of those that were grown."""
    grown: int = data["fitted"][str(ROWS)]["forest"][model]
    return grown * TREES // GROWN


def text(data: dict[str, Any]) -> str:
    forest, regression = data["estimated"]["forest"], data["estimated"]["regression"]
    large = data["fitted"][str(ROWS)]
    whole = {model: (whole_forest(data, model), large["regression"][model]) for model in ("flops", "bops")}
    paper = forest["flops:paper"], regression["flops:paper"]
    said = printed.FOREST[0], printed.REGRESSION[0]
    ratios = [f"{value / formula:.2f}" for value, formula in zip(said, paper, strict=True)]
    over = [f"{value / formula:.2f}" for value, formula in zip(whole["flops"], paper, strict=True)]
    rows = [
        ["the paper's formula", "trees·N·F·log2 N", "T·N·F·max(C, 1)"],
        ["`flops:paper`", *map(science, paper)],
        ["`bops:paper`", science(forest["bops:paper"]), science(regression["bops:paper"])],
        ["printed in the paper, FLOPs", *map(science, said)],
        ["printed in the paper, BOPs", science(printed.FOREST[1]), science(printed.REGRESSION[1])],
        ["printed over its own formula", f"**{ratios[0]}**", ratios[1]],
        ["executed, `flops`", *map(science, whole["flops"])],
        ["executed, `bops`", *map(science, whole["bops"])],
        ["executed over `flops:paper`", *over],
    ]
    main = table(["", f"RandomForest, {TREES} trees", f"LogisticRegression, {PASSES} SAG passes"], rows, "lrr")
    factors = [
        [f"{int(size):,}", *(f"{found[name]['flops'] / found[name]['flops:paper']:.2f}" for name in found)]
        for size, found in data["fitted"].items()
    ]
    by_rows = table(
        ["rows", "forest, executed over `flops:paper`", "regression, executed over `flops:paper`"], factors, "rrr"
    )
    read = [
        [
            one["name"], f"{one['rows']:,} x {one['features']}", f"{one['executed']:,}",
            *(f"{one[model]:,} ({one[model] / one['executed']:.2f})" for model in ("flops", "flops:paper")),
        ]
        for one in data["executed"]
    ]  # fmt: skip
    truth = table(["fit", "data", "executed", "bitwatt, `flops`", "`flops:paper`"], read, "llrrr")
    shapes = SHAPES.format(forest=science(forest["flops"]), regression=science(regression["flops"]))
    trees = WHAT_IS_EXECUTED.format(grown=science(large["forest"]["flops"]), times=TREES // GROWN)
    return "\n\n".join([INTRODUCTION, main, REASONS, BLOCK, trees, by_rows, shapes, TRUTH, truth])


INTRODUCTION = """\
## Section 4.3: estimators

Two examples, both on 500,000 rows of 40 features: under the paper's own conventions (`flops:paper`, `bops:paper`),
and as the processor executes them (`flops`, `bops`)."""

REASONS = """\
**The forest does not follow from the formula.** 200·500,000·40·log2(500,000) is 7.57e10; the paper prints 8.33
times as much. Its BOPs are 64 times its FLOPs, so the factor is not one of precision. Neither natural logarithms,
nor √F features, nor a part of the rows for training gives 6.31e11. bitwatt's `flops:paper` follows the formula.

**The regression does**, with C = 1 for two classes."""

BLOCK = """\
```python
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

import bitwatt

shapes = (500_000, 40), (500_000,)
forest = bitwatt.estimate(RandomForestClassifier(200), *shapes, classes=2)
passes = bitwatt.estimate(LogisticRegression(solver="sag", max_iter=100), *shapes, classes=2, assume={"n_iter_": 100})
for run, flops, bops in ((forest, 7.57e10, 4.85e12), (passes, 2.00e9, 1.28e11)):
    assert f"{bitwatt.totals(run, 'flops:paper').total:.2e}" == f"{flops:.2e}"
    assert f"{bitwatt.totals(run, 'bops:paper').total:.2e}" == f"{bops:.2e}"
```"""

WHAT_IS_EXECUTED = """\
### What is executed

The executed numbers were counted by bitwatt on real fits of `classification(500_000, 40)` from
`benchmarks/accuracy/estimator_data.py` (two classes, float64, seed 0):

- The regression was fitted as it is: `LogisticRegression(solver="sag", max_iter=100, tol=0, random_state=0)`. A
  pass takes 8 operations for each feature of each row and 40 for the row: the product with the weights, the
  gradient and its sums, and updates that were put off. The formula has one for each feature.
- Of the forest 8 trees were fitted, `RandomForestClassifier(8, random_state=0)`, and their {grown} operations taken
  {times} times: trees are drawn and grown independently. A node looks at √40 ≈ 6 of the features, where the formula
  has all 40, but computes the impurity of both sides anew at every position between two values: 24 operations with
  two classes."""

SHAPES = """\
`bitwatt.estimate` above, which fits nothing, says {forest} and {regression}. The first two rows are 8 trees and 10
passes, the last is as above."""

TRUTH = """\
Fits of both kinds whose executed instructions were read by an instrument
([Accuracy](accuracy.md#what-estimators-execute)), with the ratio to that in brackets:"""
