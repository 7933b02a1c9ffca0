"""Questions that TorchScript's primitives ask of a tensor."""

from bitwatt.registry import free

free(
    "prim.device",
    "prim.layout",
    "prim.dtype",
    "prim.itemsize",
    "prim.data",
    reason="a question about a tensor, answered without reading it",
)
