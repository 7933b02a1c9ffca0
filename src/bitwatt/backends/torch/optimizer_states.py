"""What an optimizer remembers of each weight, and in what precision: 8-bit moments, master weights in float32."""

from __future__ import annotations

from collections import Counter
from typing import Any

from torch import Tensor

from bitwatt.backends.torch.encode import dtype_name
from bitwatt.precision.formats import format_named
from bitwatt.precision.registry import reader_of
from bitwatt.records import Layer, Quantised

#: In place of a module's class.
KIND = "optimizer"


def describe_states(optimizer: Any) -> Layer | None:
    """One value for each value of a parameter and each moment; scales and tables beside them enter the effective bits.

    Called inside `layers.unseen`, once for each optimizer, after a step has made the states.
    """
    values: Counter[str] = Counter()
    names: Counter[str] = Counter()
    kept, tables = 0, set[int]()
    for parameter, state in optimizer.state.items():
        if not isinstance(state, dict) or not isinstance(parameter, Tensor):
            continue
        for name, tensor in state.items():
            if not isinstance(tensor, Tensor):
                continue
            format, nbytes = _format(tensor)
            # else a step count, scales, or a table that many share
            is_value = tensor.numel() > 1 and tuple(tensor.shape)[-parameter.dim() :] == tuple(parameter.shape)
            place = id(tensor) if is_value or tensor.is_meta else tensor.data_ptr()
            kept += nbytes if place not in tables else 0
            tables.add(place)
            if is_value:
                values[format] += tensor.numel()
                names[f"{name} {format}"] += 1
    if not values:
        return None
    main = values.most_common(1)[0][0]
    count = sum(values.values())
    told = Quantised(format_named(main), 8 * kept / count, ", ".join(f"{name} ({n}x)" for name, n in names.items()))
    quantised = told if told.bits < 16 else None
    return Layer(KIND, weight_dtype=main, parameters=count, weight_bytes=kept, weights=quantised)


def _format(tensor: Tensor) -> tuple[str, int]:
    found = reader_of(type(tensor))
    widths = found[1](tensor) if found is not None else None
    if widths is not None and widths.weights is not None:
        return widths.weights.precision.name, round(tensor.numel() * widths.weights.effective_bits / 8)
    return dtype_name(tensor.dtype), tensor.numel() * tensor.element_size()
