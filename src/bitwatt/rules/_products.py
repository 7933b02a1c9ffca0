"""What the rules for products share: their operands, the bias and scale around them, the activation fused behind."""

from collections.abc import Mapping
from typing import Any

from bitwatt.formulas.linalg import bias_add, matrix_product, scaling
from bitwatt.formulas.pointwise import pointwise
from bitwatt.records import TensorSpec, Work

Specs = tuple[TensorSpec, ...]


def named(names: str, space: str = "aten") -> list[str]:
    """Full names of the ops in a list with spaces between."""
    return [f"{space}.{name}" for name in names.split()]


def flat(spec: TensorSpec) -> TensorSpec:
    """All but the last axis made one, those of nested tensors too."""
    width = spec.shape[-1] if spec.parts is None else spec.parts[0][-1] if spec.parts else 0
    return TensorSpec((spec.numel // width if width else 0, width), spec.dtype)


def transposed(spec: TensorSpec) -> TensorSpec:
    return TensorSpec(tuple(reversed(spec.shape)), spec.dtype, spec.nnz)


def affine(x: TensorSpec, weight: TensorSpec, bias: TensorSpec | None, out: TensorSpec) -> Work:
    """x·Wᵀ + b: rows·in·out multiply-accumulates and an addition per output element."""
    work = matrix_product(x, transposed(weight))
    return work if bias is None else work + bias_add(out.numel, out.precision)


def combined(self: TensorSpec, out: TensorSpec, beta: Any, alpha: Any) -> Work:
    """β·self + α·product: an addition per element unless β is 0, a multiplication for each of β, α that is not 1."""
    work = bias_add(out.numel, out.precision) if beta != 0 else Work()
    if beta not in (0, 1):
        work += scaling(self.numel, out.precision)
    if alpha != 1:
        work += scaling(out.numel, out.precision)
    return work


#: Per element, what an activation costs on its own.
ACTIVATIONS: Mapping[str, Mapping[str, int]] = {
    "relu": {"compare": 1},
    "leaky_relu": {"compare": 1, "mul": 1},
    "gelu": {"mul": 3, "add": 1, "erf": 1},
    "silu": {"sigmoid": 1, "mul": 1},
    "swish": {"sigmoid": 1, "mul": 1},
    "sigmoid": {"sigmoid": 1},
    "tanh": {"tanh": 1},
    "hardtanh": {"compare": 2},
    "hardswish": {"add": 1, "compare": 2, "mul": 1, "div": 1},
    "hardsigmoid": {"add": 1, "compare": 2, "div": 1},
    "sum": {"add": 1},
    "add": {"add": 1},
    "add_relu": {"add": 1, "compare": 1},
    "sub": {"add": 1},
    "mul": {"mul": 1},
}


def fused(name: str | None, out: TensorSpec) -> Work:
    """What is fused behind a product, on every element of its result; nothing for None, "none" or an empty name."""
    if name in (None, "", "none"):
        return Work()
    return pointwise(out, out.numel, **ACTIVATIONS[str(name)])
