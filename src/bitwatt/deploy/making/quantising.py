"""INT8 by onnxruntime's quantiser: weights once, activations as they come (dynamic) or by rows seen before (static).

Only operators with products are quantised, and in a static graph those that pass 8-bit values on between them. What
the quantiser would also take (Concat, Softmax, ArgMax) costs accuracy and saves nothing.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bitwatt.deploy.given import rows as rows_of
from bitwatt.deploy.making import feeding, pruning
from bitwatt.deploy.records import SAME_ROWS, Case

#: Operators with multiply-accumulates that the quantiser knows.
PRODUCTS = ("MatMul", "Gemm", "Conv", "Attention", "LSTM")
BETWEEN = (
    "Relu",
    "Clip",
    "Add",
    "MaxPool",
    "AveragePool",
    "GlobalAveragePool",
    "Reshape",
    "Flatten",
    "Transpose",
    "Squeeze",
    "Unsqueeze",
)
ROWS = 512  # that calibrate


def dynamic(model: Any) -> Any:
    """A graph whose activations are quantised in each call."""
    from onnxruntime.quantization import QuantType, quantize_dynamic

    convolves = any(node.op_type == "Conv" for node in model.graph.node)
    kind = QuantType.QUInt8 if convolves else QuantType.QInt8  # onnxruntime's ConvInteger has no signed weights

    def quantise(given: str, out: str) -> None:
        quantize_dynamic(given, out, weight_type=kind, reduce_range=saturates(), extra_options=untyped())

    return _made(model, quantise)


#: How a static graph says what is quantised: by pairs of Quantize and Dequantize around float operators, which
#: onnxruntime fuses where it knows the pattern, or by integer operators from the start.
FORMS = ("QDQ", "QOperator")


def static(model: Any, feeds: list[dict[str, Any]], rows: Any, form: str = FORMS[0]) -> Any:
    """A graph whose activations have the ranges that the rows showed."""
    from onnxruntime.quantization import QuantFormat, QuantType, quantize_static

    def quantise(given: str, out: str) -> None:
        quantize_static(
            given, out, _reader(feeds, rows), quant_format=QuantFormat[form],
            op_types_to_quantize=[*PRODUCTS, *BETWEEN],
            activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8, reduce_range=saturates(),
            extra_options=untyped(),
        )  # fmt: skip

    return _made(model, quantise)


def untyped() -> dict[str, Any]:
    """What a value is whose type cannot be inferred, behind operators of other domains."""
    import onnx

    return {"DefaultTensorType": onnx.TensorProto.FLOAT}


def has_products(model: Any) -> bool:
    return any(node.op_type in PRODUCTS for node in model.graph.node)


def calibration(case: Case) -> tuple[Any, str]:
    """Rows to calibrate with, drawn with a fixed seed, and where they are from."""
    import numpy as np

    source = case.inputs if case.train is None else case.train
    total = rows_of.count(source)
    drawn = np.sort(np.random.default_rng(0).permutation(total)[:ROWS])
    told = "training rows" if case.train is not None else f"{SAME_ROWS} (give training rows for an honest figure)"
    return rows_of.take(source, drawn), f"calibrated with {len(drawn)} {told}"


def saturates() -> bool:
    """Whether sums of two 8-bit products overflow 16 bits here, so that weights must do with 7: x86 without VNNI."""
    import platform

    if platform.machine().lower() not in ("x86_64", "amd64"):
        return False
    try:
        flags = Path("/proc/cpuinfo").read_text()
    except OSError:
        return True
    return "avx512_vnni" not in flags and "avx_vnni" not in flags


def _made(model: Any, quantise: Any) -> Any:
    """By way of files, which is how the quantiser works. Shapes are inferred and constants folded before."""
    import onnx
    import onnxruntime
    from onnxruntime.quantization.shape_inference import quant_pre_process

    onnxruntime.set_default_logger_severity(3)  # its optimiser leaves weights over, and warns of them itself
    with tempfile.TemporaryDirectory() as folder:
        plain, ready, out = (str(Path(folder) / name) for name in ("plain.onnx", "ready.onnx", "quantised.onnx"))
        bare = onnx.ModelProto()
        bare.CopyFrom(model)
        del bare.graph.value_info[:]  # weights are transposed, and would contradict the shapes that are written there
        onnx.save(bare, plain)
        try:
            quant_pre_process(plain, ready, skip_symbolic_shape=True)
        except Exception:  # a graph that cannot be prepared can often be quantised as it is
            ready = plain
        onnx.save(unshared(pruning.imported(onnx.load(ready))), ready)
        quantise(ready, out)
        return onnx.load(out)


def unshared(model: Any) -> Any:
    """With weights of their own for all Gemm nodes, in place. The quantiser transposes them where they are, so that
    other nodes with the same weights compute something else; square ones without a word."""
    import onnx

    held = {weight.name: weight for weight in model.graph.initializer}
    uses = Counter(name for node in model.graph.node for name in pruning.read(node))
    for node in model.graph.node:
        for at, name in enumerate(node.input):
            if node.op_type == "Gemm" and name in held and uses[name] > 1:
                copied = onnx.TensorProto()
                copied.CopyFrom(held[name])
                copied.name = node.input[at] = f"{name}_of_{node.output[0]}"
                model.graph.initializer.append(copied)
    return model


def _reader(feeds: list[dict[str, Any]], rows: Any) -> Any:
    from onnxruntime.quantization import CalibrationDataReader

    class Reader(CalibrationDataReader):  # type: ignore[misc, unused-ignore]
        def __init__(self) -> None:
            self.batches = _batches(feeds, rows)

        def get_next(self) -> Any:
            return next(self.batches, None)

    return Reader()


def _batches(feeds: list[dict[str, Any]], rows: Any, size: int = 64) -> Iterator[Any]:
    feed = feeding.fed(feeds)
    for at in range(0, rows_of.count(rows), size):
        yield feed(rows_of.take(rows, slice(at, at + size)))
