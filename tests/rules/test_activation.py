"""Activations written out with numbers that count themselves: the value must be torch's, the count the rule's."""

from __future__ import annotations

import math

import pytest
import torch
from torch.nn import functional as F

from rules.capture import (
    Number,
    erf,
    exp,
    expm1,
    kinds_of,
    larger,
    log,
    log1p,
    sigmoid,
    smaller,
    tallied,
    tanh,
)

RATIO = math.sqrt(2 / math.pi)


def gelu(x):
    return x * 0.5 * (1 + erf(x * math.sqrt(0.5)))


def gelu_tanh(x):
    return 0.5 * x * (1 + tanh(RATIO * (x + 0.044715 * (x * x * x))))


def gelu_backward(x, g):
    cumulative = 0.5 * (1 + erf(x * math.sqrt(0.5)))
    density = (1 / math.sqrt(2 * math.pi)) * exp(x * x * -0.5)
    return g * (cumulative + x * density)


def gelu_tanh_backward(x, g):
    square = x * x
    t = tanh(RATIO * (x + 0.044715 * (square * x)))
    inner = RATIO * (1 + 3 * 0.044715 * square)
    return g * (0.5 * (1 + t) + 0.5 * x * (1 - t * t) * inner)


def silu_backward(x, g):
    s = sigmoid(x)
    return g * s * (1 + x * (1 - s))


def mish_backward(x, g):
    t, s = tanh(log1p(exp(x))), sigmoid(x)
    return g * (t + x * s * (1 - t * t))


def elu(x):
    return x if x > 0 else 1.0 * expm1(x)


def softplus(x):
    return x if x > 20 else log1p(exp(x))


def leaky(x):
    return x if x > 0 else 0.01 * x


def minus_size(x):
    """-|x|: the sign bit set, one step of logic."""
    return Number(-float(abs(x)))


NEGATIVE = -0.7  # the side where piecewise functions do their arithmetic: rules charge every element for it

FORWARD = {
    "gelu": (F.gelu, gelu),
    "gelu tanh": (lambda x: F.gelu(x, approximate="tanh"), gelu_tanh),
    "silu": (F.silu, lambda x: x * sigmoid(x)),
    "mish": (F.mish, lambda x: x * tanh(log1p(exp(x)))),
    "elu": (F.elu, elu),
    "softplus": (F.softplus, softplus),
    "leaky_relu": (F.leaky_relu, leaky),
    "sigmoid": (torch.sigmoid, sigmoid),
    "tanh": (torch.tanh, tanh),
    "relu": (F.relu, lambda x: larger(x, 0)),
    "hardtanh": (F.hardtanh, lambda x: smaller(larger(x, -1), 1)),
    "hardswish": (F.hardswish, lambda x: x * smaller(larger(x + 3, 0), 6) * (1 / 6)),
    "hardsigmoid": (F.hardsigmoid, lambda x: smaller(larger(x + 3, 0), 6) * (1 / 6)),
    "log_sigmoid_forward": (F.logsigmoid, lambda x: smaller(x, 0) - log1p(exp(minus_size(x)))),
}


BACKWARD = {
    "gelu_backward": (F.gelu, gelu_backward),
    "gelu_backward tanh": (lambda x: F.gelu(x, approximate="tanh"), gelu_tanh_backward),
    "silu_backward": (F.silu, silu_backward),
    "mish_backward": (F.mish, mish_backward),
    "sigmoid_backward": (torch.sigmoid, lambda x, g: _from_result(x, lambda y: g * (1 - y) * y, torch.sigmoid)),
    "tanh_backward": (torch.tanh, lambda x, g: _from_result(x, lambda y: g * (1 - y * y), torch.tanh)),
    "hardswish_backward": (F.hardswish, lambda x, g: g * (x * (1 / 3) + 0.5) if -3 < x < 3 else x),
    "softplus_backward": (F.softplus, lambda x, g: g if x > 20 else g * sigmoid(x)),
    "leaky_relu_backward": (F.leaky_relu, lambda x, g: g if x > 0 else 0.01 * g),
}


def _from_result(x, derivative, function):
    return derivative(Number(function(torch.tensor(float(x), dtype=torch.float64)).item()))


@pytest.mark.parametrize("name", FORWARD)
def test_an_activation_written_out_gives_torchs_value_and_the_rules_count(name: str) -> None:
    function, written = FORWARD[name]
    x = torch.full((3, 4), NEGATIVE, dtype=torch.float64)
    value, counts = tallied(written, Number(NEGATIVE))
    assert value == pytest.approx(function(x)[0, 0].item(), rel=1e-9)
    # every one of 12 elements is charged alike
    assert kinds_of(f"aten.{name.split()[0]}", lambda: function(x)) == {kind: 12 * n for kind, n in counts.items()}


@pytest.mark.parametrize("name", BACKWARD)
def test_a_derivative_written_out_gives_torchs_gradient_and_the_rules_count(name: str) -> None:
    function, written = BACKWARD[name]
    x = torch.full((3, 4), NEGATIVE, dtype=torch.float64, requires_grad=True)
    value, counts = tallied(written, Number(NEGATIVE), Number(1.5))

    def step() -> None:
        x.grad = None
        function(x).backward(torch.full((3, 4), 1.5, dtype=torch.float64))

    counted = kinds_of(f"aten.{name.split()[0]}", step)
    assert value == pytest.approx(x.grad[0, 0].item(), rel=1e-9)
    assert counted == {kind: 12 * n for kind, n in counts.items()}


def test_the_gradient_of_relu_chooses_and_computes_nothing() -> None:
    x = torch.randn(5, 4, requires_grad=True)
    assert kinds_of("aten.threshold_backward", lambda: F.relu(x).backward(torch.ones(5, 4))) == {"compare": 20}


def test_a_gated_unit_counts_halves_forward_and_the_gradient_of_each_backward() -> None:
    x = torch.randn(3, 8, requires_grad=True)
    # a·σ(b) over 3·4 pairs; backward ∂a = g·σ, ∂b = g·σ·(1 - σ)·a
    assert kinds_of("aten.glu", lambda: F.glu(x)) == {"sigmoid": 12, "mul": 12}
    assert kinds_of("aten.glu_backward", lambda: F.glu(x).backward(torch.ones(3, 4))) == {
        "sigmoid": 12,
        "add": 12,
        "mul": 36,
    }


def test_softplus_with_a_slope_scales_before_and_after() -> None:
    plain = kinds_of("aten.softplus", lambda: F.softplus(torch.ones(10)))
    steep = kinds_of("aten.softplus", lambda: F.softplus(torch.ones(10), beta=2))
    assert {kind: n - plain.get(kind, 0) for kind, n in steep.items()} == {
        "exp": 0,
        "log": 0,
        "compare": 0,
        "mul": 10,
        "div": 10,
    }


def test_selu_and_celu_are_elu_with_a_scale() -> None:
    elu = kinds_of("aten.elu", lambda: F.elu(torch.ones(10)))
    selu = kinds_of("aten.elu", lambda: F.selu(torch.ones(10)))
    celu = kinds_of("aten.celu", lambda: F.celu(torch.ones(10), alpha=1.7))
    assert selu["mul"] == celu["mul"] == elu["mul"] + 10


def test_log_of_a_positive_number_is_one_operation() -> None:
    value, counts = tallied(log, Number(2.0))
    assert value == pytest.approx(math.log(2))
    assert kinds_of("aten.log", lambda: torch.full((1,), 2.0).log()) == counts
