"""Count a model from its ONNX graph: a walk over the nodes with the shapes of what flows between them."""

from bitwatt.backends.onnx.counting import count

__all__ = ["count"]
