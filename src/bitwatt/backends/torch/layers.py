"""What a module is at first sight: class, weights, and how they are written."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy
from torch.utils._python_dispatch import _disable_current_modes

from bitwatt.backends.torch.encode import dtype_name
from bitwatt.backends.torch.tensors import own
from bitwatt.backends.torch.waits import waiting
from bitwatt.precision import Widths, resolve
from bitwatt.precision.held import is_beside
from bitwatt.precision.registry import reader_of
from bitwatt.precision.resolve import parametrisations
from bitwatt.records import Layer

#: Where torch.ao's modules keep weights that are neither parameters nor buffers.
_PACKED = ("_packed_params", "_all_weight_values", "_packed_weight_ih")
#: Weights with fewer zeros than this among the first values looked at are taken as dense.
_SAMPLE, _SPARSE = 4096, 0.02


@contextmanager
def unseen() -> Iterator[None]:
    """Look at tensors without a trace in graphs being traced, in modes, in transforms such as vmap (which would wrap
    all that is computed), or in what is counted."""
    tracing = torch._C._get_tracing_state()
    torch._C._set_tracing_state(None)
    try:
        with torch._C.DisableTorchFunction(), _disable_current_modes(), torch.no_grad(), waiting(), _untransformed():
            yield
    finally:
        torch._C._set_tracing_state(tracing)


def _untransformed() -> AbstractContextManager[Any]:
    if torch._C._functorch.peek_interpreter_stack() is None:
        return nullcontext()
    from torch._functorch.pyfunctorch import temporarily_clear_interpreter_stack

    outside: AbstractContextManager[Any] = temporarily_clear_interpreter_stack()
    return outside


def prepare() -> None:
    """Load what knows torch's own classes before the program's first step rather than in it."""
    for kind in (nn.Linear, nn.Parameter, Tensor):
        reader_of(kind)


def own_parameters(module: nn.Module) -> list[Any]:
    return [p for p in module._parameters.values() if p is not None]


def has_weights(module: nn.Module) -> bool:
    """Whether anything need be found out about it: most modules of a model hold nothing."""
    held = (module._parameters, module._buffers)  # those of a scripted module are not false when they are empty
    return any(list(place.keys()) for place in held) or is_packed(module) or "_graph" in module.__dict__


def is_packed(module: nn.Module) -> bool:
    return any(name in place for place in (module.__dict__, module._modules) for name in _PACKED)


def is_capturing() -> bool:
    """Whether this thread captures a CUDA graph: reading a value would end that, and the program with it."""
    return bool(torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing())


def describe(module: nn.Module, dense: Collection[int] = ()) -> Layer:
    """Everything about a layer that shapes and dtypes of its ops do not tell. Called inside `unseen`, with the ids of
    weights that are known to be dense."""
    held = own_parameters(module)
    weight = own(module)
    first = weight if weight is not None else next((p for p in held if p.dim() > 1), held[0] if held else None)
    dtype = dtype_name(first.dtype) if first is not None else None
    if not has_weights(module):
        return Layer(type(module).__name__)
    widths, unknown = resolve(module)
    known = [p for p in held if not is_lazy(p) and not p.is_nested]
    sizes = {id(p): p.numel() for p in known}
    shapes = [tuple(map(int, p.shape)) for p in known if p.dim() >= 2]
    kept = sum(_nbytes(p) for p in known)
    if widths is not None and widths.shapes and widths.weights is None:
        shapes += widths.shapes
    elif widths is not None and widths.shapes:
        beside = [p for name, p in module._parameters.items() if is_beside(name)]
        shapes, sizes, kept = _unpacked(widths, [p for p in known if all(p is not b for b in beside)], first)
    return Layer(
        kind=type(module).__name__,
        weight_dtype=dtype or (widths.weights.precision.name if widths and widths.weights else None),
        parameters=sum(sizes.values()),
        shapes=tuple(shapes),
        weight_bytes=kept,
        weights=widths.weights if widths else None,
        activations=widths.activations if widths else None,
        density=_density(module, weight, dense),
        trains=any(p.requires_grad for p in known if p.dim() >= 2),
        unknown=unknown,
    )


def same_precision(one: Layer, other: Layer) -> bool:
    return _format(one) == _format(other) and one.density == other.density and one.weight_dtype == other.weight_dtype


def together(one: Layer, other: Layer) -> Layer:
    """Two of a kind counted under one name."""
    return replace(
        one, parameters=one.parameters + other.parameters, weight_bytes=one.weight_bytes + other.weight_bytes
    )


def _format(layer: Layer) -> tuple[str, ...]:
    return tuple(part.precision.name if part is not None else "" for part in (layer.weights, layer.activations))


def _unpacked(widths: Widths, held: list[Any], first: Any) -> tuple[Any, dict[int, int], int]:
    """Shapes, sizes and bytes with the packed weights as what they stand for."""
    shapes = [tuple(map(int, shape)) for shape in widths.shapes]
    others = [p for p in held if p is not first and p.is_floating_point()]  # integers are the packed weights themselves
    count = sum(map(math.prod, shapes))
    if widths.weights is not None and widths.weights.stored:
        kept = math.ceil(round(count * widths.weights.memory_bits / 8, 3))
    else:
        kept = _nbytes(first) if first is not None else 0
    shapes += [tuple(p.shape) for p in others if p.dim() >= 2]
    return shapes, {0: count} | {id(p): p.numel() for p in others}, kept + sum(map(_nbytes, others))


def _nbytes(tensor: Tensor) -> int:
    """What a tensor takes in memory: of a sparse one, what it stores and where."""
    if _is_semi_structured(tensor):
        return sum(_nbytes(part) for part in (tensor.packed, tensor.meta) if part is not None)
    if tensor.layout is torch.sparse_coo:
        return _nbytes(tensor._values()) + _nbytes(tensor._indices())
    if tensor.layout in (torch.sparse_csr, torch.sparse_bsr):
        return sum(map(_nbytes, (tensor.values(), tensor.crow_indices(), tensor.col_indices())))
    if tensor.layout in (torch.sparse_csc, torch.sparse_bsc):
        return sum(map(_nbytes, (tensor.values(), tensor.ccol_indices(), tensor.row_indices())))
    return int(tensor.numel() * tensor.element_size())


def _is_semi_structured(tensor: Any) -> bool:
    return type(tensor).__name__.startswith("SparseSemiStructured")


def dense_among(weights: Iterable[Any]) -> frozenset[int]:
    """Those with few zeros, by their ids: asked of all at once, as a GPU is waited for each time it is asked. Called
    inside `unseen`."""
    samples = {id(weight): sample for weight in weights if (sample := _sample(weight)) is not None}
    found: set[int] = set()
    for device in {sample.device for sample in samples.values()} if not is_capturing() else ():
        here = {key: sample for key, sample in samples.items() if sample.device == device}
        counts = torch.stack([torch.count_nonzero(sample) for sample in here.values()]).tolist()
        found |= {
            key
            for (key, sample), count in zip(here.items(), counts, strict=True)
            if sample.numel() - count <= _SPARSE * sample.numel()
        }
    return frozenset(found)


def _sample(weight: Any) -> Tensor | None:
    """Some values of a plain matrix."""
    if type(weight) not in (Tensor, nn.Parameter) or weight.layout is not torch.strided or weight.is_meta:
        return None
    if torch._C._functorch.is_functorch_wrapped_tensor(weight):  # in a transform it has no values of its own
        return None
    if not weight.is_floating_point() or weight.dim() < 2 or not weight.numel() or weight.dtype.itemsize == 1:
        return None
    return weight.detach().reshape(-1)[:: max(weight.numel() // _SAMPLE, 1)]


def _density(module: nn.Module, weight: Any, dense: Collection[int]) -> float:
    """The share of weights that are not zero: of a pruning mask, a sparse layout, or a dense tensor full of zeros."""
    masks = [tensor for name, tensor in module._buffers.items() if name.endswith("_mask") and tensor is not None]
    masks = [mask for mask in masks if mask.dim() > 1]
    masks += [m._buffers["mask"] for m in parametrisations(module) if "mask" in m._buffers]
    if masks:
        whole = sum(p.numel() for p in own_parameters(module) if p.dim() > 1)
        left_out = sum(mask.numel() * (1 - _share(mask)) for mask in masks)
        return float(1 - left_out / max(whole, sum(mask.numel() for mask in masks), 1))
    if weight is None or not isinstance(weight, Tensor) or is_lazy(weight):
        return 1.0
    if _is_semi_structured(weight):
        return 0.5
    if weight.layout in (torch.sparse_coo, torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc):
        stored = weight._nnz() if weight.layout is torch.sparse_coo else weight.values().numel()
        return float(stored / max(weight.numel(), 1))
    if id(weight) in dense or _sample(weight) is None or dense_among([weight]):
        return 1.0
    return _share(weight) or 1.0  # all zero is no pruning but a beginning: the second matrix of a LoRA adapter


def _share(tensor: Tensor) -> float:
    if tensor.is_meta or type(tensor) not in (Tensor, nn.Parameter):
        return 1.0
    return float(int(torch.count_nonzero(tensor)) / max(tensor.numel(), 1))
