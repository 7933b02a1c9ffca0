"""Element-wise arithmetic. A sign flip is logic and rounding to an integer a cast: neither is a FLOP."""

from typing import Any

from bitwatt.formulas.pointwise import magnitude, pointwise, stored
from bitwatt.records import TensorSpec, Work
from bitwatt.registry import rule
from bitwatt.rules._tables import Specs, each

each("mul multiply", "x·y", mul=1)
each("reciprocal", "1/x", div=1)
each("sqrt", "√x", sqrt=1)
each("rsqrt", "1/√x", sqrt=1, div=1)
each("square", "x·x", mul=1)
each("neg negative _neg_view_copy", "-x, a sign bit", logic=1)
each("copysign", "|x| with the sign of y", logic=1)
each("conj_physical _conj_physical _conj_copy", "the imaginary part's sign bit", logic=1)
each("nextafter", "the next number in the format", logic=1)
each("floor ceil trunc fix", "rounding to an integer", cast=1)
each("frac", "x - trunc(x)", cast=1, add=1)
each("floor_divide", "floor(x/y)", div=1, cast=1)
each("remainder fmod", "x - y·round(x/y)", div=1, cast=1, mul=1, add=1)
each("exp exp2 expm1 special_exp2 special_expm1", "an exponential", exp=1)
each("log log2 log10 log1p special_log1p", "a logarithm", log=1)
each("sin cos", "sine or cosine", sin=1)
each("tan asin acos atan atan2 arcsin arccos arctan arctan2", "a tangent or the inverse of a circular function", tan=1)
each("sinh cosh asinh acosh atanh arcsinh arccosh arctanh", "a hyperbolic function or its inverse", tanh=1)
each("sinc special_sinc", "sin(πx)/(πx), 1 at 0", mul=1, sin=1, div=1, compare=1)
each("erf erfc special_erf special_erfc", "the error function", erf=1)
each("hypot", "√(x² + y²)", mul=2, add=1, sqrt=1)
each("deg2rad rad2deg", "x times a constant", mul=1)
each("ldexp", "x·2^y", mul=1, pow=1)
each("float_power", "x^y", pow=1)
each("lerp", "a + w·(b - a)", add=2, mul=1)
each("logaddexp logaddexp2", "max(x, y) + log(1 + e^-|x-y|)", compare=1, add=2, exp=1, log=1)
each("xlogy special_xlogy special_xlog1py", "x·log y, 0 where x is 0", log=1, mul=1, compare=1)
each("special_entr", "-x·log x", log=1, mul=1, logic=1, compare=1)
each("logit special_logit", "log(x/(1 - x))", add=1, div=1, log=1)
each("logit_backward", "g/(x·(1 - x))", add=1, mul=1, div=1)
each("polar", "r·cos θ + i·r·sin θ", of="in", sin=2, mul=2)
each("gcd lcm", "Euclid's algorithm, taken as one function", special=1)
each("frexp", "mantissa and exponent apart", logic=1)
each("_dirichlet_grad _standard_gamma_grad", "the implicit gradient of a sampled gamma variate", special=1)
each("_add_relu", "max(0, x + y)", add=1, compare=1)
each("vander linalg_vander", "each power from the one before", mul=1)
each("cartesian_prod combinations block_diag", "every element copied into place", index=1)


@rule("aten.add", "aten.sub", "aten.subtract", "aten.rsub", family="pointwise")
def add(out: Specs, alpha: Any = 1, **_: Any) -> Work:
    """x ± α·y: 1 add per element, and 1 mul where α is not ±1."""
    return pointwise(out[0], stored(out[0]), add=1, mul=int(alpha not in (1, -1)))


@rule("aten.addcmul", family="pointwise")
def addcmul(out: Specs, value: Any = 1, **_: Any) -> Work:
    """x + v·a·b: 1 mul, 1 add per element, and 1 mul where v is not 1."""
    return pointwise(out[0], stored(out[0]), mul=1 + int(value != 1), add=1)


@rule("aten.addcdiv", family="pointwise")
def addcdiv(out: Specs, value: Any = 1, **_: Any) -> Work:
    """x + v·a/b: 1 div, 1 add per element, and 1 mul where v is not 1."""
    return pointwise(out[0], stored(out[0]), div=1, add=1, mul=int(value != 1))


@rule("aten.div", "aten.divide", "aten.true_divide", family="pointwise")
def div(out: Specs, rounding_mode: str | None = None, **_: Any) -> Work:
    """x/y: 1 div per element, and 1 cast where the quotient is rounded."""
    return pointwise(out[0], stored(out[0]), div=1, cast=int(rounding_mode is not None))


@rule("aten.round", "aten.special_round", family="pointwise")
def round_(out: Specs, decimals: int = 0, **_: Any) -> Work:
    """Rounding to an integer: 1 cast per element; to decimals, also 1 mul and 1 div."""
    scaled = int(decimals != 0)
    return pointwise(out[0], stored(out[0]), cast=1, mul=scaled, div=scaled)


_POWERS: dict[Any, dict[str, int]] = {
    0: {},
    1: {},
    2: {"mul": 1},
    3: {"mul": 2},
    0.5: {"sqrt": 1},
    -0.5: {"sqrt": 1, "div": 1},
    -1: {"div": 1},
    -2: {"mul": 1, "div": 1},
}


@rule("aten.pow", family="pointwise")
def power(out: Specs, exponent: Any = None, **_: Any) -> Work:
    """x^y: x² is 1 mul, x³ 2 mul, √x 1 sqrt, 1/x 1 div, x⁻² 1 mul and 1 div; any other exponent 1 pow per element."""
    known = {} if isinstance(exponent, (TensorSpec, tuple)) else _POWERS
    return pointwise(out[0], stored(out[0]), **known.get(exponent, {"pow": 1}))


@rule("aten.abs", "aten.absolute", family="pointwise")
def absolute(self: TensorSpec, **_: Any) -> Work:
    """|x|: a sign bit, 1 logic per element; |a + bi| = √(a² + b²): 2 mul, 1 add, 1 sqrt."""
    return magnitude(self, stored(self))


@rule("aten.sgn", "aten.sign", family="pointwise")
def sign(self: TensorSpec, **_: Any) -> Work:
    """The sign: 1 compare per element; of a complex number z/|z|: 2 mul, 1 add, 1 sqrt, 2 div."""
    if not self.is_complex:
        return pointwise(self, stored(self), compare=1)
    return magnitude(self, stored(self)) + Work.of(self.precision, div=2 * stored(self))


@rule("aten.angle", family="pointwise")
def angle(self: TensorSpec, **_: Any) -> Work:
    """atan2(b, a) of a complex number, 1 tan per element; of a real one 0 or π, 1 compare."""
    if self.is_complex:
        return Work.of(self.precision, tan=stored(self))
    return Work.of(self.precision, compare=stored(self))


@rule("aten.addr", "aten.ger", "aten.outer", family="pointwise")
def outer(out: Specs, vec1: TensorSpec | None = None, beta: Any = 1, alpha: Any = 1, **_: Any) -> Work:
    """β·A + α·x·yᵀ: 1 mul per element for the outer product, 1 add where it is added, 1 mul for each β, α that is
    not 1."""
    scaled = int(beta not in (0, 1)) + int(alpha != 1)
    return pointwise(out[0], stored(out[0]), mul=1 + scaled, add=int(vec1 is not None))
