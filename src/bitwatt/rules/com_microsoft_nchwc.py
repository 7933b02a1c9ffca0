"""ONNX Runtime's blocked layout, in which its optimizer computes convolutions in floats on a CPU.

Channels are filled up to whole blocks, and what is computed on the filling is counted, since it runs.
"""

from typing import Any

from bitwatt.records import TensorSpec, Work
from bitwatt.registry import rule
from bitwatt.rules import _tables
from bitwatt.rules._products import Specs
from bitwatt.rules.com_microsoft.conv import fused
from bitwatt.rules.onnx import pooling

SPACE = "com_microsoft_nchwc"

_tables.moved("ReorderInput ReorderOutput", "Every element moved between layouts.", space=SPACE)

for _name, _function in (
    ("AveragePool", pooling.average),
    ("MaxPool", pooling.largest),
    ("GlobalAveragePool", pooling.global_average),
    ("GlobalMaxPool", pooling.global_largest),
    ("Upsample", pooling.resize),
):
    rule(f"{SPACE}.{_name}", family="pool")(_function)


@rule(f"{SPACE}.Conv", family="conv")
def conv(X: TensorSpec, W: TensorSpec, out: Specs, **args: Any) -> Work:
    """A convolution's multiply-accumulates; 1 add per result for the bias and for a tensor added; the activation."""
    return fused(X, W, out, False, args)
