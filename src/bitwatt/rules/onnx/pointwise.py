"""Element-wise operators: arithmetic, functions, activations, comparing, bits."""

from functools import partial
from typing import Any

from bitwatt.formulas.dropout import dropout as dropped
from bitwatt.formulas.pointwise import magnitude, pointwise
from bitwatt.records import TensorSpec, Work
from bitwatt.registry import rule
from bitwatt.rules._onnx import SPACE, constant
from bitwatt.rules._tables import Specs
from bitwatt.rules._tables import each as _each
from bitwatt.rules.aten import activation as torch_activation
from bitwatt.rules.aten.pointwise import power

each = partial(_each, space=SPACE)
activation = partial(_each, space=SPACE, family="activation")

each("Add Sub", "x ± y", add=1)
each("Mul", "x·y", mul=1)
each("Div", "x/y", div=1)
each("Reciprocal", "1/x", div=1)
each("Sqrt", "√x", sqrt=1)
each("Neg", "-x, a sign bit", logic=1)
each("Exp", "an exponential", exp=1)
each("Log", "a logarithm", log=1)
each("Sin Cos", "sine or cosine", sin=1)
each("Tan Asin Acos Atan", "a tangent or the inverse of a circular function", tan=1)
each("Sinh Cosh Asinh Acosh Atanh", "a hyperbolic function or its inverse", tanh=1)
each("Erf", "the error function", erf=1)
each("Floor Ceil Round", "rounding to an integer", cast=1)
each("Mod", "x - y·floor(x/y)", div=1, cast=1, mul=1, add=1)
each("Equal Greater Less GreaterOrEqual LessOrEqual", "x ≷ y", of="in", compare=1)
each("IsNaN IsInf", "a test of each number", of="in", compare=1)
each("Sign", "the sign", compare=1)
each("And Or Xor Not", "truth values", logic=1)
each("BitwiseAnd BitwiseOr BitwiseXor BitwiseNot BitShift", "bits", logic=1)

activation("Relu", "max(x, 0)", compare=1)
activation("ThresholdedRelu", "x where x > α, else 0", compare=1)
activation("LeakyRelu PRelu", "x, or w·x where x < 0", compare=1, mul=1)
activation("Sigmoid", "σ(x)", sigmoid=1)
activation("Tanh", "tanh x", tanh=1)
activation("Mish", "x·tanh(log(1 + e^x))", exp=1, log=1, tanh=1, mul=1)
activation("HardSigmoid", "max(0, min(1, α·x + β))", mul=1, add=1, compare=2)
activation("HardSwish", "x·max(0, min(1, x/6 + ½))", mul=2, add=1, compare=2)
activation("Selu", "s·x, or s·α·(e^x - 1) where x < 0", compare=1, exp=1, mul=2)
activation("Elu", "x, or α·(e^x - 1) where x < 0", compare=1, exp=1, mul=1)
activation("Softplus", "log(1 + e^x)", exp=1, log=1, compare=1)
activation("Softsign", "x/(1 + |x|)", logic=1, add=1, div=1)
activation("Shrink", "x ∓ bias outside ±λ, 0 within", compare=2, add=1)
activation("ScaledTanh", "α·tanh(β·x)", mul=2, tanh=1)
activation("ParametricSoftplus", "α·log(1 + e^(β·x))", mul=2, exp=1, log=1, compare=1)
activation("Affine ImageScaler", "α·x + β", mul=1, add=1)
activation("Scale", "α·x", mul=1)


@rule("onnx.Abs", family="pointwise")
def absolute(X: TensorSpec, **_: Any) -> Work:
    """|x|: a sign bit, 1 logic per element."""
    return magnitude(X, X.numel)


@rule("onnx.Pow", family="pointwise")
def pow_(out: Specs, constants: Any = (), **_: Any) -> Work:
    """x^y: x² is 1 mul, x³ 2 mul, √x 1 sqrt, 1/x 1 div where the graph holds y; any other 1 pow per element."""
    exponent = constant(constants, "Y")
    return power(out=out, exponent=exponent[0] if isinstance(exponent, tuple) and exponent else exponent)


@rule("onnx.Clip", family="pointwise")
def clip(out: Specs, min: Any = None, max: Any = None, **_: Any) -> Work:
    """min(max(x, lower), upper): 1 compare per element for each bound."""
    return pointwise(out[0], out[0].numel, compare=int(min is not None) + int(max is not None))


@rule("onnx.Gelu", family="activation")
def gelu(out: Specs, approximate: str = "none", **_: Any) -> Work:
    """x·½·(1 + erf(x/√2)): 3 mul, 1 add, 1 erf per element; approximate="tanh": 6 mul, 2 add, 1 tanh."""
    return torch_activation.gelu(out=out, approximate=approximate)


@rule("onnx.Celu", family="activation")
def celu(out: Specs, alpha: float = 1.0, **_: Any) -> Work:
    """x, or α·(e^(x/α) - 1) where x < 0: 1 compare, 1 exp, 1 mul per element, and 1 mul where α is not 1."""
    return torch_activation.celu(out=out, alpha=alpha)


@rule("onnx.Swish", family="activation")
def swish(out: Specs, alpha: float = 1.0, **_: Any) -> Work:
    """x·σ(α·x): 1 sigmoid, 1 mul per element, and 1 mul where α is not 1."""
    return pointwise(out[0], out[0].numel, sigmoid=1, mul=1 + int(alpha != 1))


@rule("onnx.SwiGLU", family="activation")
def swiglu(out: Specs, alpha: float = 1.0, **_: Any) -> Work:
    """a·σ(α·a)·b: 1 sigmoid, 2 mul per element, and 1 mul where α is not 1."""
    return pointwise(out[0], out[0].numel, sigmoid=1, mul=2 + int(alpha != 1))


def _several(data_0: Specs, out: Specs, kind: str, **more: int) -> Work:
    return pointwise(out[0], out[0].numel * (len(data_0) - 1), **{kind: 1}) + pointwise(out[0], out[0].numel, **more)


@rule("onnx.Sum", family="pointwise")
def sum_(data_0: Specs, out: Specs, **_: Any) -> Work:
    """n tensors added up: n - 1 add per element."""
    return _several(data_0, out, "add")


@rule("onnx.Mean", family="pointwise")
def mean(data_0: Specs, out: Specs, **_: Any) -> Work:
    """The mean of n tensors: n - 1 add, 1 div per element."""
    return _several(data_0, out, "add", div=1)


@rule("onnx.Max", "onnx.Min", family="pointwise")
def extreme(data_0: Specs, out: Specs, **_: Any) -> Work:
    """The largest or smallest of n tensors: n - 1 compare per element."""
    return _several(data_0, out, "compare")


@rule("onnx.Where", family="pointwise")
def where(out: Specs, **_: Any) -> Work:
    """x where the condition holds, y elsewhere: 1 compare per element."""
    return pointwise(out[0], out[0].numel, compare=1)


@rule("onnx.Dropout", family="random")
def dropout(data: TensorSpec, out: Specs, constants: Any = (), **_: Any) -> Work:
    """A copy, since models are asked and not trained; x·mask/(1 - p) where the graph says training: 1 random, 1 div,
    1 mul per element."""
    training = constant(constants, "training_mode", False)
    return dropped(out[0].numel, data.precision) if training else Work()
