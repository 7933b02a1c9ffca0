"""Every way of running an optimizer costs the same: tensor by tensor, in lists, in one kernel."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from bitwatt.pricing import totals
from rules.capture import ledger_of, works_of

SHAPES = ((100, 150), (5000,))  # 20,000 parameters
SINGLE, FOREACH, FUSED = {"foreach": False}, {"foreach": True}, {"fused": True}


def _per_parameter(kind: str, *, steps: int = 3, **options: Any) -> float:
    """Operations per parameter of the last step: the first may do less, as momentum has nothing to add to."""
    torch.manual_seed(0)
    parameters = [torch.nn.Parameter(torch.randn(shape)) for shape in SHAPES]
    optimizer = getattr(torch.optim, kind)(parameters, **options)
    for _ in range(steps):
        for parameter in parameters:
            parameter.grad = torch.randn_like(parameter)
        priced = totals(ledger_of(optimizer.step))
        assert not priced.missing
    return priced.total / 20_000


@pytest.mark.parametrize(
    ("kind", "options", "expected"),
    [
        ("SGD", {}, 2),  # p - lr·g
        ("SGD", {"weight_decay": 0.1}, 4),  # g + w·p
        ("SGD", {"momentum": 0.9}, 4),  # μ·b + g
        ("SGD", {"momentum": 0.9, "dampening": 0.1, "weight_decay": 0.1}, 7),
        ("SGD", {"momentum": 0.9, "nesterov": True}, 6),
        ("SGD", {"maximize": True}, 2),
        ("Adam", {}, 13),  # lerp 3, mul 1, addcmul 3, sqrt 1, div 1, add 1, addcdiv 3
        ("Adam", {"amsgrad": True}, 13),  # the maximum is a compare
        ("Adam", {"weight_decay": 0.1}, 15),
        ("AdamW", {}, 14),  # p·(1 - lr·w)
        ("AdamW", {"amsgrad": True, "maximize": True}, 14),
        ("Adagrad", {}, 7),  # s + g·g 2, √s + ε 2, p + v·g/√s 3
        ("Adagrad", {"weight_decay": 0.1}, 9),
    ],
)
def test_an_optimizer_costs_the_same_one_by_one_in_lists_and_fused(kind: str, options: dict, expected: int) -> None:
    for way in (SINGLE, FOREACH, FUSED):
        assert _per_parameter(kind, **way, **options) == pytest.approx(expected, rel=1e-3), way


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("RMSprop", {}),
        ("RMSprop", {"momentum": 0.9, "centered": True, "weight_decay": 0.1}),
        ("Adadelta", {}),
        ("Adamax", {}),
        ("NAdam", {}),
        ("Rprop", {}),
        ("Adafactor", {}),
    ],
)
def test_an_optimizer_without_a_kernel_of_its_own_costs_the_same_in_lists(kind: str, options: dict) -> None:
    assert _per_parameter(kind, **SINGLE, **options) == pytest.approx(
        _per_parameter(kind, **FOREACH, **options), rel=1e-3
    )


def test_a_learning_rate_in_a_tensor_changes_nothing() -> None:
    rate = torch.tensor(0.01)
    assert _per_parameter("AdamW", lr=rate, **FUSED) == _per_parameter("AdamW", lr=0.01, **FUSED)


def test_a_list_of_tensors_is_each_tensor_with_its_bytes() -> None:
    a, b = [torch.ones(10), torch.ones(4, 5)], [torch.ones(10), torch.ones(4, 5)]
    listed = works_of(lambda: torch._foreach_add_(a, b, alpha=0.5))["aten._foreach_add_"]
    apart = works_of(lambda: [x.add_(y, alpha=0.5) for x, y in zip(a, b, strict=True)])["aten.add_"]
    assert listed.ops == apart.ops
    assert (listed.bytes_read, listed.bytes_written) == (apart.bytes_read, apart.bytes_written) == (240, 120)


def test_the_norms_of_a_list_are_norms() -> None:
    tensors = [torch.ones(10), torch.ones(20)]
    counts = {kind: n for kind, _, _, n in works_of(lambda: torch._foreach_norm(tensors))["aten._foreach_norm"].ops}
    assert counts == {"mul": 30, "add": 30, "sqrt": 2}


def test_a_fused_step_writes_parameters_and_moments() -> None:
    parameter = torch.nn.Parameter(torch.ones(1000))
    parameter.grad = torch.ones(1000)
    optimizer = torch.optim.AdamW([parameter], fused=True)
    work = works_of(optimizer.step)["aten._fused_adamw_"]
    assert work.bytes_written == 3 * 4000  # parameter, both moments
    assert work.bytes_read == 4 * 4000 + 4  # and the gradient, and a step counter


def test_unscaling_gradients_is_a_product_and_a_test_each() -> None:
    gradients = [torch.ones(30), torch.ones(70)]
    found, scale = torch.zeros(1), torch.ones(1)
    works = works_of(lambda: torch._amp_foreach_non_finite_check_and_unscale_(gradients, found, scale))
    counts = {kind: n for kind, _, _, n in works["aten._amp_foreach_non_finite_check_and_unscale_"].ops}
    assert counts == {"compare": 100, "mul": 100}
