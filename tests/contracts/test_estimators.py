"""Every method of every installed estimator that computes has a rule, is free, or is missing for a stated reason."""

from __future__ import annotations

import importlib.util
import inspect
import sys
from pathlib import Path
from typing import Any

import pytest

from bitwatt.registry import RULES
from bitwatt.testing import check_rule

pytest.importorskip("sklearn")

_PATH = Path(__file__).parents[2] / "docs" / "tables" / "estimators.py"
_LIBRARIES = ("sklearn", "xgboost", "lightgbm", "catboost")
_RULES = sorted(rule.name for rule in RULES if rule.name.split(".")[0] in _LIBRARIES)


@pytest.fixture(scope="module")
def table() -> Any:
    spec = importlib.util.spec_from_file_location("estimators_table", _PATH)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_every_method_has_a_rule_is_free_or_is_missing_for_a_reason(table: Any) -> None:
    without = {op for _, op in table.calls() if RULES.find(op) is None}
    assert not {op for op in without if not table.reason(op)}
    assert not {op for op in table.MISSING if RULES.find(op) is not None}  # reviewed as missing, and not missing now


def test_the_table_holds_all_estimators(table: Any) -> None:
    from sklearn.utils import all_estimators

    named = {call.rsplit(".", 2)[1] for call, _ in table.calls()}
    assert {name for name, _ in all_estimators()} <= named
    assert len(table.calls()) > 900


def test_rules_name_estimators_that_there_are(table: Any) -> None:
    """Rules of mixins stand for those who inherit from them; private estimators are parts of public ones."""
    known = {op.rpartition(".")[0] for call in table.calls() for op in call}
    named = {name.rpartition(".")[0] for name in _RULES if name.startswith("sklearn.")}
    assert not {name for name in named - known if not name.split(".")[-1].startswith("_")}


@pytest.mark.parametrize("name", _RULES)
def test_every_rule_says_its_formula(name: str) -> None:
    check_rule(name)
    rule = RULES.find(name)
    assert rule is not None
    if rule.function is not None:
        assert (inspect.getdoc(rule.function) or "").strip().endswith("."), f"{name}: a formula is a sentence"


def test_a_mixins_method_is_named_by_the_mixin() -> None:
    from sklearn.linear_model import LinearRegression, LogisticRegression
    from sklearn.mixture import GaussianMixture

    from bitwatt.backends.sklearn.names import op_name

    assert op_name(LogisticRegression, "score", LogisticRegression.score) == "sklearn.base.ClassifierMixin.score"
    assert op_name(LinearRegression, "score", LinearRegression.score) == "sklearn.base.RegressorMixin.score"
    assert op_name(GaussianMixture, "score", GaussianMixture.score) == "sklearn.mixture.GaussianMixture.score"
