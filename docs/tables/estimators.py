"""Writes docs/reference/estimators.md: every method of every installed estimator that computes, whether it is counted,
by which formula, and how far that was from executed operations where they were measured.

Run `python docs/tables/estimators.py` after a rule or an installed library changes. The errors are those that
`python benchmarks/accuracy/estimators.py --write docs/tables/estimator-errors.json` found.
"""

from __future__ import annotations

import importlib
import inspect
import json
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bitwatt.backends.sklearn.names import METHODS, op_name, public_name
from bitwatt.registry import RULES

TARGET = Path(__file__).parents[1] / "reference" / "estimators.md"
ERRORS = Path(__file__).parent / "estimator-errors.json"
STATUSES = ("counted", "free", "missing")
BOOSTERS = {
    "xgboost": ("XGBClassifier", "XGBRegressor", "XGBRanker", "XGBRFClassifier", "XGBRFRegressor"),
    "lightgbm": ("LGBMClassifier", "LGBMRegressor", "LGBMRanker"),
    "catboost": ("CatBoostClassifier", "CatBoostRegressor", "CatBoostRanker"),
}

#: Reviewed: no rule, and why. What ends in `.*` stands for all methods of a class.
MISSING: dict[str, str] = {
    f"catboost.{kind}.{method}": reason
    for kind in BOOSTERS["catboost"]
    for method, reason in {
        "select_features": "trains models that nobody gets to see",
        "grid_search": "trains models that nobody gets to see, but for the last, whose fit is counted",
        "randomized_search": "trains models that nobody gets to see, but for the last, whose fit is counted",
        "get_object_importance": "retraces how each sample moved the leaves",
        "calc_feature_statistics": "statistics of predictions by bins that are not told",
        "virtual_ensembles_predict": "predictions of parts of the model that are not told",
    }.items()
}


def estimators() -> Iterator[type]:
    from sklearn.experimental import enable_halving_search_cv, enable_iterative_imputer  # noqa: F401
    from sklearn.utils import all_estimators

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield from (kind for _, kind in all_estimators())
    for library, names in BOOSTERS.items():
        try:
            module = importlib.import_module(library)
        except ImportError:
            continue
        yield from (getattr(module, name) for name in names if hasattr(module, name))


def calls() -> list[tuple[str, str]]:
    """(estimator.method, the op it is recorded as) for every method that computes."""
    found = []
    for kind in estimators():
        for method in METHODS:
            defined = inspect.getattr_static(kind, method, None)
            function = getattr(defined, "fn", defined)  # behind scikit-learn's available_if
            if callable(function) and not isinstance(function, (type, staticmethod, classmethod)):
                found.append((f"{public_name(kind)}.{method}", op_name(kind, method, function)))
    return sorted(set(found))


def reason(op: str) -> str:
    return MISSING.get(op) or MISSING.get(op.rpartition(".")[0] + ".*", "")


def row(call: str, op: str, errors: dict[str, Any]) -> tuple[str, str, str, str]:
    """Name, status, formula, error."""
    rule = RULES.find(op)
    error = errors.get(call)
    shown = f"{error['median']:.2f} ({error['worst']:.2f}), {error['calls']}" if error else ""
    if rule is None:
        return call, "missing", reason(op), shown
    status = "free" if rule.function is None else "counted"
    return call, status, " ".join(rule.formula.split()).replace("|", "\\|"), shown


def page(rows: list[tuple[str, str, str, str]], version: str) -> str:
    spaces = sorted({_space(name) for name, *_ in rows})
    tally = Counter((_space(name), status) for name, status, *_ in rows)
    lines = [
        "# Estimators",
        "",
        f"Every method that computes of scikit-learn {version}, XGBoost, LightGBM and CatBoost. *Counted*: a rule",
        "turns it into executed arithmetic. *Free*: its own part does none; what it calls is counted. *Missing*: no",
        "rule; a report lists such calls and never prices them at 0. The error is the factor between counted and",
        "executed operations, the larger over the smaller: median (worst), calls measured. Written by",
        "`docs/tables/estimators.py`.",
        "",
        "| module | counted | free | missing |",
        "|---|---:|---:|---:|",
    ]
    for space in spaces:
        lines.append(f"| {space} | " + " | ".join(str(tally[space, status]) for status in STATUSES) + " |")
    totals = Counter(status for _, status, *_ in rows)
    lines.append("| **all** | " + " | ".join(f"**{totals[status]}**" for status in STATUSES) + " |")
    for space in spaces:
        lines += ["", f"## {space}", "", "| method | status | formula or reason | error |", "|---|---|---|---|"]
        lines += [
            f"| `{name.removeprefix(space + '.')}` | {' | '.join(rest)} |"
            for name, *rest in rows
            if _space(name) == space
        ]
    return "\n".join(lines) + "\n"


def _space(name: str) -> str:
    parts = name.split(".")
    return ".".join(parts[:-2])


def main() -> None:
    import sklearn

    errors = json.loads(ERRORS.read_text(encoding="utf-8")) if ERRORS.exists() else {}
    rows = [row(call, op, errors) for call, op in calls()]
    TARGET.write_text(page(rows, sklearn.__version__), encoding="utf-8")
    print(f"{TARGET}: {dict(Counter(status for _, status, *_ in rows))}")


if __name__ == "__main__":
    main()
