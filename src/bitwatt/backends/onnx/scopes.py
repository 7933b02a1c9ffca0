"""Where in the model a node belongs: the module that an exporter noted, or the path in its name."""

from __future__ import annotations

import ast

import onnx

_NOTED = "pkg.torch.onnx.name_scopes"


def scope_of(node: onnx.NodeProto, outer: str = "") -> str:
    """`layer1.0.conv1` for a node that torch.onnx exported from that module; the node's own name where there is no
    path; inside a loop or branch, below the node that holds it."""
    inner = _noted(node)
    if inner is None:
        inner = _path(node.name or (node.output[0] if node.output else node.op_type))
    return ".".join(part for part in (outer, inner) if part)


def _noted(node: onnx.NodeProto) -> str | None:
    """torch.export's modules from the outermost in, then the node's own name."""
    for item in node.metadata_props:
        if item.key == _NOTED:
            try:
                names = ast.literal_eval(item.value)
            except (ValueError, SyntaxError):
                return None
            return str(names[-2]) if len(names) > 1 and names[-2] else None
    return None


def _path(name: str) -> str:
    """`/layer1/layer1.0/conv1/Conv`: the last part is the node's own, and a list repeats its name with an index."""
    parts = [part for part in name.split("/") if part]
    if len(parts) < 2:
        return name.strip("/")
    kept: list[str] = []
    for part in parts[:-1]:
        if kept and part.startswith(f"{kept[-1]}."):
            kept[-1] = part
        else:
            kept.append(part)
    return ".".join(kept)
