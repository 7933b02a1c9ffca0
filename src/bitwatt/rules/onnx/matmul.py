"""Matrix products of ONNX, in floats and in integers."""

from typing import Any

from bitwatt.formulas.linalg import matmul, matrix_product
from bitwatt.records import TensorSpec, Work
from bitwatt.registry import rule
from bitwatt.rules._onnx import Carried, expanded
from bitwatt.rules._packed import requantised
from bitwatt.rules._products import Specs, combined
from bitwatt.rules.aten.matmul import einsum as contracted


def transposed(spec: TensorSpec, swap: Any = True) -> TensorSpec:
    """The last two axes swapped."""
    if not swap or len(spec.shape) < 2:
        return spec
    return TensorSpec((*spec.shape[:-2], *spec.shape[:-3:-1]), spec.dtype, spec.nnz)


@rule("onnx.MatMul", family="matmul")
def product(A: TensorSpec, B: TensorSpec, carried: Carried = (), **_: Any) -> Work:
    """m·n·k multiply-accumulates for each matrix of the batch. Operands that DequantizeLinear expanded count as what
    they were expanded from, and ran as floats."""
    return expanded(matrix_product(A, B), carried, "A", "B")


@rule("onnx.Gemm", family="matmul")
def gemm(
    A: TensorSpec,
    B: TensorSpec,
    out: Specs,
    C: TensorSpec | None = None,
    transA: int = 0,
    transB: int = 0,
    alpha: float = 1.0,
    beta: float = 1.0,
    carried: Carried = (),
    **_: Any,
) -> Work:
    """α·A·B + β·C: m·n·k multiply-accumulates, an addition per element of the result where C is given, a multiplication
    where β or α is not 1."""
    work = expanded(matrix_product(transposed(A, transA), transposed(B, transB)), carried, "A", "B")
    return work + combined(C or out[0], out[0], 0 if C is None else beta, alpha)


@rule("onnx.MatMulInteger", family="matmul")
def integer_product(A: TensorSpec, B: TensorSpec, **_: Any) -> Work:
    """m·n·k multiply-accumulates of 8-bit integers, summed in 32 bits."""
    return matrix_product(A, B)


@rule("onnx.QLinearMatMul", family="matmul")
def quantised_product(a: TensorSpec, b: TensorSpec, out: Specs, **_: Any) -> Work:
    """m·n·k multiply-accumulates of 8-bit integers; scale, zero point and rounding per result."""
    return matrix_product(a, b) + requantised(out[0], False)


@rule("onnx.Einsum", family="matmul")
def einsum(equation: str, Inputs: Specs, **_: Any) -> Work:
    """Operands contracted from left to right; an ellipsis stands for the leading axes that an operand has more."""
    if len(Inputs) == 1:
        return matmul(0, 0, 0, *Inputs * 2)
    return contracted(equation=_written_out(equation.replace(" ", ""), Inputs), tensors=Inputs)


def _written_out(equation: str, specs: Specs) -> str:
    """Axes behind an ellipsis get letters of their own, counted from the last."""
    if "..." not in equation:
        return equation
    left, arrow, result = equation.partition("->")
    terms = left.split(",")
    spare = [letter for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZ" if letter not in equation]
    widths = [len(spec.shape) - len(term.replace("...", "")) for term, spec in zip(terms, specs, strict=True)]
    most = max(width for width, term in zip(widths, terms, strict=True) if "..." in term)

    def letters(width: int) -> str:
        return "".join(spare[most - width : most])

    filled = [term.replace("...", letters(width)) for term, width in zip(terms, widths, strict=True)]
    if not arrow:
        once = sorted(axis for axis in set(left) - set(".,") if left.count(axis) == 1)
        result = "..." + "".join(once)
    return f"{','.join(filled)}->{result.replace('...', letters(most))}"
