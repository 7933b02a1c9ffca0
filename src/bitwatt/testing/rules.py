"""Checks for people who add a rule or a cost model: the same that bitwatt's own have to pass."""

from __future__ import annotations

import inspect

from bitwatt.ledger import Row
from bitwatt.pricing import Charge, CostModel, Entry, find_model
from bitwatt.records import ELEMENTARY, Op, Work
from bitwatt.registry import RULES, Rule, work_of

#: What conventions may know an op by.
FAMILIES = frozenset(
    [
        "matmul",
        "conv",
        "attention",
        "rnn",
        "norm",
        "softmax",
        "loss",
        "pointwise",
        "activation",
        "cast",
        "copy",
        "reduction",
        "pool",
        "index",
        "sort",
        "fft",
        "linalg",
        "optimizer",
        "random",
        "comm",
        "text",
        "other",
        # estimators, by what they are
        "bagging",
        "boosting",
        "centroids",
        "classification",
        "clusters",
        "covariance",
        "decomposition",
        "dummy",
        "encoding",
        "forest",
        "gaussian process",
        "imputation",
        "isotonic",
        "kernel",
        "libsvm",
        "linear",
        "manifold",
        "mixture",
        "neighbours",
        "network",
        "projection",
        "propagation",
        "scaling",
        "score",
        "selection",
        "tree",
        "voting",
    ]
)


def check_rule(name: str, *ops: Op) -> None:
    """Raise AssertionError unless the rule for `name` keeps its manners, also on each of `ops`."""
    rule = RULES.find(name)
    assert rule is not None, f"no rule covers {name}"
    if rule.function is None:
        assert len(rule.reason) >= 8, f"{name} is free: say why"
        return
    assert len(rule.formula.strip()) >= 5, f"{name}: the docstring of a rule is its formula, for `bitwatt explain`"
    assert rule.family in FAMILIES, f"{name}: family {rule.family!r} is none of {', '.join(sorted(FAMILIES))}"
    parameters = inspect.signature(rule.function).parameters.values()
    takes_any = any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters)
    assert takes_any, f"{name}: a rule takes **_, since ops gain arguments from version to version"
    for op in ops:
        check_work(work_of(rule, op), str(op))


def check_work(work: Work, of: str) -> None:
    """Raise AssertionError unless `work` is whole numbers of known kinds, and its bytes are known."""
    counts = [n for *_, n in work.ops] + [n for _, n in work.products] + [work.bytes_read, work.bytes_written]
    assert all(type(n) is int and n >= 0 for n in counts), f"{of}: counts are ints and not negative"
    assert {kind for kind, *_ in work.ops} <= ELEMENTARY, f"{of}: unknown kinds of work"


def check_cost_model(model: CostModel | str, *ops: Op) -> None:
    """Raise AssertionError unless the model explains itself and charges whole numbers for each of `ops`."""
    model = find_model(model)
    assert model.about, f"{model}: the docstring of a cost model is its formula"
    assert model.source, f"{model}: say where the convention comes from"
    for op in ops:
        rule: Rule | None = RULES.find(op.name)
        assert rule is not None, f"no rule covers {op.name}"
        charges = list(model.charges(Entry(Row("forward", "", op, 1), rule, work_of(rule, op))))
        amounts = [Charge(*charge).amount for charge in charges]
        assert all(type(amount) is int and amount >= 0 for amount in amounts), f"{model} on {op}: not whole numbers"
