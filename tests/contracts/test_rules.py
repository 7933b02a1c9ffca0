"""What every rule owes: a formula, a known family, whole numbers; and torch's own samples leave nothing unpriced."""

from __future__ import annotations

import inspect
import itertools
import sys
import types
import unittest
import warnings

import pytest
import torch

from bitwatt.ledger import Ledger
from bitwatt.pricing import entries_of
from bitwatt.records import KINDS
from bitwatt.registry import RULES
from rules.capture import ledger_of

FAMILIES = {
    *("matmul", "conv", "attention", "rnn", "norm", "softmax", "loss", "pointwise", "activation", "cast", "copy"),
    *("reduction", "pool", "index", "sort", "fft", "linalg", "optimizer", "random", "comm", "text", "other"),
}
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
_COUNTED = [rule for rule in _RULES if rule.function is not None]


def test_every_rule_says_its_formula_in_words_and_belongs_to_a_known_family() -> None:
    assert not [rule.name for rule in _RULES if len(rule.formula.strip()) < 5]
    assert not [(rule.name, rule.family) for rule in _COUNTED if rule.family not in FAMILIES]


def test_every_free_op_says_why() -> None:
    assert not [rule.name for rule in _RULES if rule.function is None and len(rule.reason) < 8]


def test_every_rule_takes_arguments_it_does_not_know() -> None:
    def takes_any(function: object) -> bool:
        parameters = inspect.signature(function).parameters.values()
        return any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters)

    assert not [rule.name for rule in _COUNTED if not takes_any(rule.function)]


def test_every_aten_rule_names_an_op_that_torch_has() -> None:
    ops = {name.split(".")[0].replace("::", ".") for name in torch._C._dispatch_get_all_op_names()}
    named = {rule.name for rule in _RULES if rule.name.startswith("aten.")}  # others come with modules not imported yet
    assert not sorted(name for name in named if name not in ops and f"{name}_" not in ops)


def test_a_rule_that_stands_for_another_finds_it() -> None:
    from bitwatt.rules import prims
    from bitwatt.rules.aten import foreach

    twins = {*foreach.TWINS.values(), *prims.TWINS.values()}
    assert not [twin for twin in twins if RULES.find(f"aten.{twin}") is None]


@pytest.fixture(scope="module")
def op_db() -> list:
    """Torch's own list of operators with sample inputs. It needs `expecttest` only as the base of its test classes."""
    stub = types.ModuleType("expecttest")
    stub.TestCase = unittest.TestCase
    sys.modules.setdefault("expecttest", stub)
    try:
        from torch.testing._internal.common_methods_invocations import op_db
    except ImportError as error:  # an internal module: a torch that moves it must not fail us
        pytest.skip(f"torch has no operator list here: {error}")
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
    odd: set[str] = set()
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
                    elif not _sound(entry.work):
                        odd.add(entry.op.name)
    assert len(seen) > 500
    assert not failing
    assert not odd
    assert missing == MISSING
    assert broken <= UNRUNNABLE


def _sound(work: object) -> bool:
    counts = [n for _, _, _, n in work.ops] + [n for _, n in work.products] + [work.bytes_read, work.bytes_written]
    kinds = {kind for kind, *_ in work.ops}
    return all(type(n) is int and n >= 0 for n in counts) and kinds <= KINDS - {"mac"}
