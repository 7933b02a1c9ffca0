"""Activation functions and their derivatives: g is the incoming gradient, y the forward result, σ the sigmoid."""

from functools import partial
from typing import Any

from bitwatt.formulas.pointwise import pointwise, stored
from bitwatt.records import TensorSpec, Work
from bitwatt.registry import rule
from bitwatt.rules._tables import Specs
from bitwatt.rules._tables import each as _each

each = partial(_each, family="activation")

each("relu threshold", "max(x, 0)", compare=1)
each("threshold_backward", "g where x > 0", compare=1)
each("relu6 hardtanh hardtanh_backward", "x between two bounds", compare=2)
each("hardshrink hardshrink_backward softshrink_backward", "x or g outside ±λ, 0 within", compare=2)
each("softshrink", "x ∓ λ outside ±λ, 0 within", compare=2, add=1)
each("leaky_relu prelu _prelu_kernel", "x, or w·x where x < 0", compare=1, mul=1)
each("leaky_relu_backward", "g, or w·g where x < 0", compare=1, mul=1)
each("_prelu_kernel_backward", "g or w·g, and x·g for the slope where x < 0", compare=1, mul=2)
each("sigmoid special_expit", "σ(x)", sigmoid=1)
each("sigmoid_backward", "g·(1 - y)·y", add=1, mul=2)
each("tanh", "tanh x", tanh=1)
each("tanh_backward", "g·(1 - y²)", add=1, mul=2)
each("silu", "x·σ(x)", sigmoid=1, mul=1)
each("silu_backward", "g·σ·(1 + x·(1 - σ))", sigmoid=1, add=2, mul=3)
each("mish", "x·tanh(log(1 + e^x))", exp=1, log=1, tanh=1, mul=1)
each("mish_backward", "g·(t + x·σ·(1 - t²)), t = tanh(log(1 + e^x))", exp=1, log=1, tanh=1, sigmoid=1, mul=4, add=2)
each("hardswish", "x·min(max(x + 3, 0), 6)/6", add=1, compare=2, mul=2)
each("hardswish_backward", "g·(x/3 + ½) between ±3", add=1, compare=2, mul=2)
each("hardsigmoid", "min(max(x + 3, 0), 6)/6", add=1, compare=2, mul=1)
each("hardsigmoid_backward", "g/6 between ±3", compare=2, mul=1)
each("log_sigmoid log_sigmoid_forward", "min(x, 0) - log(1 + e^-|x|)", logic=1, exp=1, log=1, compare=1, add=1)
each("log_sigmoid_backward", "g·σ(-x)", logic=1, sigmoid=1, mul=1)
each("selu", "s·x, or s·α·(e^x - 1) where x < 0", compare=1, exp=1, mul=2)
each("glu", "a·σ(b), a and b the halves of x", sigmoid=1, mul=1)
each("glu_jvp", "ẏ = ȧ·σ(b) + y·(1 - σ(b))·ḃ", sigmoid=1, add=2, mul=3)
each("glu_backward_jvp", "the derivative of glu_backward in a direction", sigmoid=1, add=3, mul=6)


@rule("aten.glu_backward", family="activation")
def glu_backward(grad_output: TensorSpec, **_: Any) -> Work:
    """∂a = g·σ(b), ∂b = g·σ·(1 - σ)·a: 1 sigmoid, 1 add, 3 mul per element of the gradient."""
    return pointwise(grad_output, stored(grad_output), sigmoid=1, add=1, mul=3)


@rule("aten.gelu", family="activation")
def gelu(out: Specs, approximate: str = "none", **_: Any) -> Work:
    """x·½·(1 + erf(x/√2)): 3 mul, 1 add, 1 erf per element; approximate="tanh", ½·x·(1 + tanh(k·(x + c·x³))):
    6 mul, 2 add, 1 tanh."""
    kinds = {"mul": 6, "add": 2, "tanh": 1} if approximate == "tanh" else {"mul": 3, "add": 1, "erf": 1}
    return pointwise(out[0], stored(out[0]), **kinds)


@rule("aten.gelu_backward", "aten.infinitely_differentiable_gelu_backward", family="activation")
def gelu_backward(out: Specs, approximate: str = "none", **_: Any) -> Work:
    """g·(Φ(x) + x·φ(x)): Φ is 2 mul, 1 add, 1 erf, φ is 3 mul, 1 exp, joined by 2 mul, 1 add: 7 mul, 2 add, 1 erf,
    1 exp per element; approximate="tanh", g·(½·(1 + t) + ½·x·(1 - t²)·k·(1 + 3c·x²)): 12 mul, 5 add, 1 tanh."""
    tanh = {"mul": 12, "add": 5, "tanh": 1}
    kinds = tanh if approximate == "tanh" else {"mul": 7, "add": 2, "erf": 1, "exp": 1}
    return pointwise(out[0], stored(out[0]), **kinds)


@rule("aten.elu", family="activation")
def elu(out: Specs, scale: Any = 1, input_scale: Any = 1, **_: Any) -> Work:
    """s·x, or s·α·(e^(x·r) - 1) where x < 0: 1 compare, 1 exp, 1 mul per element, and 1 mul for each of s, r not 1."""
    return pointwise(out[0], stored(out[0]), compare=1, exp=1, mul=1 + int(scale != 1) + int(input_scale != 1))


@rule("aten.celu", family="activation")
def celu(out: Specs, alpha: Any = 1, **_: Any) -> Work:
    """x, or α·(e^(x/α) - 1) where x < 0: as elu with its input scaled by 1/α."""
    return elu(out=out, input_scale=alpha)


@rule("aten.elu_backward", family="activation")
def elu_backward(out: Specs, is_result: bool = False, input_scale: Any = 1, **_: Any) -> Work:
    """g·s, or where x < 0 g·s·α·r·e^(x·r): 1 compare, 1 exp, 2 mul per element, 1 more mul where r is not 1; from the
    result, g·r·(y + s·α): 1 compare, 1 add, 1 mul."""
    if is_result:
        return pointwise(out[0], stored(out[0]), compare=1, add=1, mul=1)
    return pointwise(out[0], stored(out[0]), compare=1, exp=1, mul=2 + int(input_scale != 1))


@rule("aten.softplus", family="activation")
def softplus(out: Specs, beta: Any = 1, **_: Any) -> Work:
    """log(1 + e^(β·x))/β, x beyond a threshold: 1 exp, 1 log, 1 compare per element, 1 mul, 1 div where β is not 1."""
    scaled = int(beta != 1)
    return pointwise(out[0], stored(out[0]), exp=1, log=1, compare=1, mul=scaled, div=scaled)


@rule("aten.softplus_backward", family="activation")
def softplus_backward(out: Specs, beta: Any = 1, **_: Any) -> Work:
    """g·σ(β·x): 1 sigmoid, 1 mul, 1 compare per element, and 1 mul where β is not 1."""
    return pointwise(out[0], stored(out[0]), sigmoid=1, compare=1, mul=1 + int(beta != 1))


@rule("aten.rrelu", "aten.rrelu_with_noise", "aten.rrelu_with_noise_functional", family="activation")
def rrelu(out: Specs, training: bool = False, **_: Any) -> Work:
    """x, or a·x where x < 0: 1 compare, 1 mul per element; in training a is drawn, 1 random."""
    return pointwise(out[0], stored(out[0]), compare=1, mul=1, random=int(training))


@rule("aten.rrelu_with_noise_backward", family="activation")
def rrelu_backward(out: Specs, training: bool = False, **_: Any) -> Work:
    """g·noise: 1 mul per element; in evaluation g, or a·g where x < 0: 1 compare, 1 mul."""
    return pointwise(out[0], stored(out[0]), mul=1, compare=int(not training))
