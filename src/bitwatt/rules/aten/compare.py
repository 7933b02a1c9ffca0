"""Comparing, choosing and bit logic: no FLOPs, but work all the same."""

from typing import Any

from bitwatt.formulas.pointwise import pointwise, stored
from bitwatt.records import TensorSpec, Work
from bitwatt.registry import rule
from bitwatt.rules._tables import Specs, each

each("eq ne lt le gt ge not_equal less less_equal greater greater_equal", "x ≷ y", of="in", compare=1)
each("isnan isinf isfinite isposinf isneginf isreal", "a test of each number", of="in", compare=1)
each("isclose", "|x - y| <= atol + rtol·|y|", of="in", add=2, mul=1, logic=2, compare=1)
each("maximum minimum fmax fmin", "the larger or smaller", compare=1)
each("clamp_max clamp_min", "one bound", compare=1)
each("where", "x where the condition holds, y elsewhere", compare=1)
each("heaviside", "0, y or 1 by sign", compare=1)
each("nan_to_num", "tests for nan, inf and -inf", compare=3)
each("signbit", "one bit", of="in", logic=1)
each("bitwise_and bitwise_or bitwise_xor bitwise_not __and__ __or__ __xor__ __iand__ __ior__ __ixor__", "bits", logic=1)
each("bitwise_left_shift bitwise_right_shift __lshift__ __rshift__ __ilshift__ __irshift__", "bits shifted", logic=1)
each("logical_and logical_or logical_xor logical_not", "truth values", logic=1)


@rule("aten.clamp", "aten.clip", family="pointwise")
def clamp(out: Specs, min: Any = None, max: Any = None, **_: Any) -> Work:
    """min(max(x, lower), upper): 1 compare per element for each bound."""
    return pointwise(out[0], stored(out[0]), compare=int(min is not None) + int(max is not None))


@rule("aten.equal", family="reduction")
def equal(self: TensorSpec, **_: Any) -> Work:
    """Are two tensors the same: 1 compare per element."""
    return pointwise(self, stored(self), compare=1)


@rule("aten.allclose", family="reduction")
def allclose(self: TensorSpec, **_: Any) -> Work:
    """|x - y| <= atol + rtol·|y| everywhere: 2 add, 1 mul, 3 logic, 1 compare per element."""
    return pointwise(self, stored(self), add=2, mul=1, logic=3, compare=1)


@rule("aten.isin", family="sort")
def isin(elements: Any = None, test_elements: Any = None, **_: Any) -> Work:
    """Each element against each test element: n·m compares."""
    spec = elements if isinstance(elements, TensorSpec) else test_elements
    others = [stored(s) if isinstance(s, TensorSpec) else 1 for s in (elements, test_elements)]
    return pointwise(spec, others[0] * others[1], compare=1)
