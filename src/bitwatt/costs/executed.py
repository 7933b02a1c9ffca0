"""Operations that a processor really executes: exp, division, tiles and recomputation at what its kernels spend."""

from __future__ import annotations

from collections.abc import Iterable

from bitwatt.hardware.avx2 import AVX2
from bitwatt.hardware.processor import Processor, elements_of
from bitwatt.hardware.sm90 import SM90
from bitwatt.pricing import Charge, CostModel, Entry, cost_model
from bitwatt.records import ARITHMETIC, MASKED, Op


def charges(entry: Entry, processor: Processor) -> Iterable[Charge]:
    """The kernel's formula where there is one, else operations per element, else the price of each kind of work."""
    precision = _floating(entry.op)
    if precision is None:
        return
    exact = _known(entry.op, processor)
    if exact is not None:
        if exact:
            yield Charge(_main_kind(entry), precision, round(exact))
        return
    assert entry.work is not None
    for product, times in entry.work.products:
        share = product.visible / product.macs if MASKED in processor.skips and product.macs else 1
        yield Charge("mac", product.executed.name, round(processor.product(product) * share * times))
    for kind, of, part, n in entry.work.ops:
        if kind in ARITHMETIC and part not in processor.skips and of.kind in {"float", "complex"}:
            yield Charge(kind, of.name, round(n * processor.kinds.get(kind, 1.0)), part)


def _known(op: Op, processor: Processor) -> float | None:
    """Operations of one call from the processor's tables; an op in place is executed like its functional twin."""
    for name in (op.name, op.name.rstrip("_")):
        if any(spec.is_complex for spec in op.inputs):
            if name in processor.complex:
                return processor.complex[name] * elements_of(op)
            if "fft" not in name:
                continue  # the work's kinds count the components
        if name in processor.double and any(spec.dtype == "float64" for spec in op.inputs):
            return processor.double[name] * elements_of(op)
        if name in processor.kernels:
            try:
                return processor.kernels[name](dict(op.args), op)
            except (KeyError, IndexError, TypeError, ValueError, AttributeError, AssertionError):
                return None  # arguments of another overload or version: the work's kinds still say something
        if name in processor.elements:
            return processor.elements[name] * elements_of(op)
    return None


def _floating(op: Op) -> str | None:
    """The widest floating format among the tensors, None where a call computes with integers only."""
    formats = [spec.precision for spec in (*op.inputs, *op.out) if spec.precision.kind in {"float", "complex"}]
    return max(formats, key=lambda precision: precision.bits).name if formats else None


def _main_kind(entry: Entry) -> str:
    if entry.work is None or entry.work.products or not entry.work.ops:
        return "mac" if entry.work is not None and entry.work.products else "add"
    return max((op for op in entry.work.ops), key=lambda op: (op[0] in ARITHMETIC, op[3]))[0]


def _model(processor: Processor) -> CostModel:
    def price(entry: Entry) -> Iterable[Charge]:
        return charges(entry, processor)

    price.__doc__ = (
        f"Floating-point operations executed by {processor.name} kernels: a fused multiply-add is 2, every lane of a "
        "vector or tile counts, functions cost what their code executes; compares, moves and integers are 0."
    )
    return cost_model(f"flops:executed@{processor.name}", unit="FLOP", source=processor.source)(price)


EXECUTED_AVX2, EXECUTED_SM90 = _model(AVX2), _model(SM90)
