"""What every rule owes: a formula, a known family, whole numbers; and torch's own samples leave nothing unpriced."""

from __future__ import annotations

import itertools
import sys
import types
import unittest
import warnings

import pytest
import torch

from bitwatt.ledger import Ledger
from bitwatt.pricing import entries_of
from bitwatt.registry import RULES, Rule
from bitwatt.testing import check_rule, check_work
from rules.capture import ledger_of

#: Reviewed: what torch's samples dispatch and no rule covers.
MISSING: set[str] = set()
#: Raise before bitwatt sees anything: they need a GPU, or have no kernel for this layout.
UNRUNNABLE = {
    "jiterator_unary",
    "jiterator_binary",
    "jiterator_4inputs_with_extra_args",
    "jiterator_binary_return_by_ref",
    "jiterator_2inputs_2outputs",
    "to_sparse",
}

_RULES = sorted((rule for rule in RULES if not rule.name.startswith("toy.")), key=lambda rule: rule.name)


@pytest.mark.parametrize("rule", _RULES, ids=lambda rule: rule.name)
def test_every_rule_keeps_its_manners(rule: Rule) -> None:
    check_rule(rule.name)


def test_every_aten_rule_names_an_op_that_torch_has() -> None:
    ops = {name.split(".")[0].replace("::", ".") for name in torch._C._dispatch_get_all_op_names()}
    named = {rule.name for rule in _RULES if rule.name.startswith("aten.")}  # others come with modules not imported yet
    assert not sorted(name for name in named if name not in ops and f"{name}_" not in ops)


def test_a_rule_that_stands_for_another_finds_it() -> None:
    from bitwatt.rules import prims
    from bitwatt.rules.aten import foreach

    twins = {*foreach.TWINS.values(), *prims.TWINS.values()}
    assert not [twin for twin in twins if RULES.find(f"aten.{twin}") is None]


@pytest.fixture
def op_db(monkeypatch: pytest.MonkeyPatch) -> list:
    """Torch's own list of operators with sample inputs. It needs `expecttest` only as the base of its test classes."""
    stub = types.ModuleType("expecttest")
    stub.TestCase = unittest.TestCase
    sys.modules.setdefault("expecttest", stub)
    try:
        from torch.testing._internal import common_utils
        from torch.testing._internal.common_methods_invocations import op_db
        from torch.testing._internal.opinfo import core
    except ImportError as error:  # an internal module: a torch that moves it must not fail us
        pytest.skip(f"torch has no operator list here: {error}")
    for module in (common_utils, core):  # twice for each operator: two minutes to find that ours is no TestCase
        monkeypatch.setattr(module, "extract_test_fn", lambda: None, raising=False)
    return op_db


def _ledger(info: object, dtype: torch.dtype, *, grad: bool, inference: bool, samples: int) -> Ledger:
    given = list(itertools.islice(info.sample_inputs("cpu", dtype, requires_grad=grad), samples))

    def run() -> None:
        for sample in given:
            out = info.op(sample.input, *sample.args, **sample.kwargs)
            flat = out if isinstance(out, (tuple, list)) else (out,)
            leaves = [o for o in flat if isinstance(o, torch.Tensor) and o.requires_grad]
            if leaves:
                torch.autograd.backward(leaves, [torch.ones_like(o) for o in leaves])

    with torch.inference_mode(inference):
        return ledger_of(run)


def test_every_sample_of_every_operator_is_priced_and_no_rule_fails(op_db: list) -> None:
    missing: set[str] = set()
    failing: dict[str, str] = {}
    seen: set[str] = set()
    broken: set[str] = set()
    cases = (
        (torch.float32, True, False, 2),
        (torch.float32, False, True, 2),
        (torch.complex64, False, False, 1),
        (torch.int64, False, False, 1),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for info in op_db:
            for dtype, grad, inference, samples in cases:
                if dtype not in info.dtypes:
                    continue
                try:
                    grad = grad and info.supports_autograd
                    ledger = _ledger(info, dtype, grad=grad, inference=inference, samples=samples)
                except Exception:  # torch's own sample, not ours
                    broken.add(info.name)
                    continue
                for entry in entries_of(ledger):
                    seen.add(entry.op.name)
                    if entry.rule is None:
                        missing.add(entry.op.name)
                    elif entry.work is None:
                        failing[entry.op.name] = entry.reason
                    else:
                        check_work(entry.work, str(entry.op))
    assert len(seen) > 500
    assert not failing
    assert missing == MISSING
    assert broken <= UNRUNNABLE
