"""Quantise and dequantise as exported graphs write them, one op each."""

from bitwatt.records import QUANTISATION
from bitwatt.rules._tables import each

SPACE = "quantized_decomposed"

each(
    "quantize_per_tensor quantize_per_channel quantize_per_channel_group quantize_per_token",
    "round(x/s + z) held in range",
    family="cast",
    space=SPACE,
    part=QUANTISATION,
    of="in",
    mul=1,
    add=1,
    cast=1,
    compare=2,
)
each(
    "dequantize_per_tensor dequantize_per_channel dequantize_per_channel_group dequantize_per_token",
    "(q - z)·s",
    family="cast",
    space=SPACE,
    part=QUANTISATION,
    add=1,
    mul=1,
    cast=1,
)
each(
    "fake_quant_per_channel",
    "(round(x/s + z) held in range, - z)·s",
    space=SPACE,
    part=QUANTISATION,
    mul=2,
    add=2,
    cast=1,
    compare=2,
)
each("convert_element_type", "another format", family="cast", space=SPACE, cast=1)
