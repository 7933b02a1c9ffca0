"""What a rule reads of the calls inside a fit is counted for its estimators: `hears` and `hollow` follow the rules."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import pytest

pytest.importorskip("sklearn")

from sklearn.utils import all_estimators

from bitwatt.backends.sklearn import facts, probes, readers
from bitwatt.backends.sklearn.names import METHODS, op_name
from bitwatt.costs.paper_estimators import flops
from bitwatt.formulas.inside import inside
from bitwatt.records import Op, TensorSpec
from bitwatt.registry import RULES

readers.load()
_OURS = ("bitwatt.rules.", "bitwatt.formulas.")
_NAMES = frozenset(probe.name for probe in probes.PROBES)


#: Probes of MiniBatchNMF, with which NMF shares a formula: it would count what is part of its `factor updates` twice.
_OTHERS = {"NMF": {"divergence", "factor h", "factor w"}}


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _called(function: Any) -> Iterator[FunctionType]:
    """A rule and what it calls of the functions of rules and formulas."""
    waiting, seen = [function], set[FunctionType]()
    while waiting:
        one = waiting.pop()
        one = getattr(one, "__wrapped__", one)
        if not isinstance(one, FunctionType) or one in seen or not one.__module__.startswith(_OURS):
            continue
        seen.add(one)
        yield one
        waiting += [one.__globals__.get(name) for code in _codes(one.__code__) for name in code.co_names]
        waiting += [cell.cell_contents for cell in one.__closure__ or ()]


def _read(function: Any) -> frozenset[str]:
    """Names of the probes that a rule looks for, in functions that have to do with probes; all where it adds up all."""
    found: set[str] = set()
    for one in _called(function):
        if one is inside:
            return _NAMES
        codes = list(_codes(one.__code__))
        if any("probes" in (*code.co_varnames, *code.co_freevars, *code.co_consts) for code in codes):
            lines = [line for code in codes for *_, line in code.co_lines() if line is not None]
            texts = _texts(one.__code__.co_filename)
            found |= {text.removesuffix("_inner") for line, text in texts if min(lines) <= line <= max(lines)}
    return _NAMES & found


@functools.cache
def _texts(path: str) -> list[tuple[int, str]]:
    """Strings in a file, and their lines."""
    nodes = ast.walk(ast.parse(Path(path).read_text()))
    return [(node.lineno, node.value) for node in nodes if isinstance(node, ast.Constant) and type(node.value) is str]


def _cases() -> Iterator[tuple[type, str, Any]]:
    for _, kind in all_estimators():
        for method in METHODS:
            function = getattr(kind, method, None)
            rule = RULES.find(op_name(kind, method, function)) if function is not None else None
            if rule is not None and rule.function is not None:
                yield kind, method, rule.function


def test_what_rules_read_is_heard() -> None:
    cases = list(_cases())
    deaf = {
        (kind.__name__, method): sorted(lost)
        for kind, method, rule in cases
        if (lost := _read(rule) & probes.unheard_by(kind) - _OTHERS.get(kind.__name__, set()))
    }
    assert not deaf
    reading = {kind for kind, _, rule in cases if _read(rule)}
    assert len(reading) > 60  # the names are found at all


def test_methods_of_which_nothing_is_told_are_free_everywhere() -> None:
    kinds = [kind for _, kind in all_estimators()]
    known = {op_name(kind, method, getattr(kind, method, None)) for kind in kinds for method in METHODS}
    assert facts.hollow <= known  # they are called so
    rules = {name: RULES.find(name) for name in facts.hollow}
    assert {name for name, rule in rules.items() if rule is None or rule.function is not None} == set()
    assert {
        name for name in facts.hollow if flops(Op(name, (("X", TensorSpec((9, 3), "float64")),))) is not None
    } == set()
