"""A model from a file, bytes or memory, with its own functions unfolded. Weights kept in other files stay there."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import onnx
import onnx.inliner

from bitwatt.errors import BitwattError


def read(model: Any) -> tuple[onnx.ModelProto, str, str]:
    """The model, a name for it, and the folder that its external data lies in."""
    folder, name = "", "model"
    if isinstance(model, (str, os.PathLike)):
        path = Path(model)
        if not path.is_file():
            raise BitwattError(f"{path} is not there")
        folder, name = str(path.parent), path.name
        model = _parsed(path.read_bytes(), name)
    elif isinstance(model, (bytes, bytearray, memoryview)):
        model = _parsed(bytes(model), "the bytes given")
    if not isinstance(model, onnx.ModelProto):
        raise BitwattError(f"{type(model).__name__} is no ONNX model; pass a path, bytes or a ModelProto")
    if not model.graph.node and not model.graph.output:
        raise BitwattError(f"{name} holds no ONNX graph")
    if name == "model" and model.graph.name:
        name = model.graph.name
    if model.functions:
        model = onnx.inliner.inline_local_functions(model)
    return model, name, folder


def _parsed(content: bytes, name: str) -> onnx.ModelProto:
    try:
        return onnx.ModelProto.FromString(content)
    except Exception as error:  # protobuf's own errors have no common class over its versions
        raise BitwattError(f"{name} could not be read as an ONNX model: {error}") from error
