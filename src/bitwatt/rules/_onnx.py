"""What the rules for ONNX's domains share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from bitwatt.dtypes import dtype
from bitwatt.formulas.conv import gather, scatter, unrolled
from bitwatt.formulas.linalg import bias_add
from bitwatt.formulas.pointwise import pointwise
from bitwatt.records import Product, TensorSpec, Work
from bitwatt.rules._tables import Specs

SPACE = "onnx"
Carried = tuple[tuple[str, str], ...]


def channels_first(spec: TensorSpec) -> TensorSpec:
    """A tensor whose channels are last, with them where formulas look for them."""
    return replace(spec, shape=(spec.shape[0], spec.shape[-1], *spec.shape[1:-1]))


def convolved(x: TensorSpec, weight: TensorSpec, out: TensorSpec, *, transposed: bool = False) -> Work:
    """The multiply-accumulates of a convolution, or of a transposed one."""
    kernel = unrolled(x, out, weight) if transposed else unrolled(out, x, weight)
    return (scatter if transposed else gather)(kernel, x, weight)


def biased(bias: TensorSpec | None, out: TensorSpec) -> Work:
    return Work() if bias is None else bias_add(out.numel, out.precision)


def constant(constants: tuple[tuple[str, Any], ...], name: str, default: Any = None) -> Any:
    """A small constant that the graph holds."""
    return dict(constants).get(name, default)


def expanded(work: Work, carried: Carried, a: str, b: str) -> Work:
    """A product whose operands were expanded by DequantizeLinear: they carry what they were expanded from, and the
    multiplier works in what they were expanded to."""
    told = dict(carried)
    if a not in told and b not in told:
        return work

    def carry(product: Product) -> Product:
        return replace(
            product,
            a=dtype(told[a]).precision if a in told else product.a,
            b=dtype(told[b]).precision if b in told else product.b,
            ran=product.executed,
        )

    return replace(work, products=tuple((carry(product), n) for product, n in work.products))


#: What a fused activation is called in ONNX, per element.
ACTIVATIONS: Mapping[str, Mapping[str, int]] = {
    "Relu": {"compare": 1},
    "Clip": {"compare": 2},
    "Tanh": {"tanh": 1},
    "Sigmoid": {"sigmoid": 1},
    "LeakyRelu": {"compare": 1, "mul": 1},
    "ThresholdedRelu": {"compare": 1},
    "HardSigmoid": {"mul": 1, "add": 1, "compare": 2},
    "HardSwish": {"mul": 2, "add": 1, "compare": 2},
    "Elu": {"compare": 1, "exp": 1, "mul": 1},
    "Selu": {"compare": 1, "exp": 1, "mul": 2},
    "Softplus": {"exp": 1, "log": 1, "compare": 1},
    "Softsign": {"logic": 1, "add": 1, "div": 1},
    "Affine": {"mul": 1, "add": 1},
    "ScaledTanh": {"mul": 2, "tanh": 1},
    "Gelu": {"mul": 3, "add": 1, "erf": 1},
    "Silu": {"sigmoid": 1, "mul": 1},
    "Swish": {"sigmoid": 1, "mul": 1},
    "Softmax": {"compare": 1, "add": 2, "exp": 1, "div": 1},
}


def activated(name: str, out: TensorSpec) -> Work:
    """What is fused behind a product, on each element of its result."""
    return pointwise(out, out.numel, **ACTIVATIONS[name.capitalize() if name.islower() else name]) if name else Work()


def first(out: Specs, otherwise: TensorSpec) -> TensorSpec:
    """The first result; the input where how much comes out depends on data."""
    return out[0] if out else otherwise
