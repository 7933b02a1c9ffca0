"""Fake quantisation as NVIDIA ModelOpt's exporters for TensorRT write it."""

from bitwatt.records import QUANTISATION
from bitwatt.rules._tables import each

SPACE = "tensorrt"

each(
    "quantize_op dynamic_block_quantize_op",
    "round(x/s) held in range, ·s",
    family="cast",
    space=SPACE,
    part=QUANTISATION,
    mul=2,
    cast=1,
    compare=2,
)
