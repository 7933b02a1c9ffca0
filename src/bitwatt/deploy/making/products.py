"""Linear operators of ai.onnx.ml written as the products they are: those have integer kernels."""

from __future__ import annotations

from typing import Any

from bitwatt.deploy.making import pruning

#: What may follow the scores, as a standard operator.
AFTER = {"SOFTMAX": "Softmax", "LOGISTIC": "Sigmoid"}


def spelled_out(model: Any) -> Any:
    """A copy of the graph, with MatMul and Add in the place of LinearClassifier and LinearRegressor."""
    import onnx

    found = onnx.ModelProto()
    found.CopyFrom(model)
    graph = found.graph
    nodes = []
    for node in graph.node:
        replaced = _spelled(node, graph) if node.op_type in ("LinearClassifier", "LinearRegressor") else None
        nodes += [node] if replaced is None else replaced
    nodes = [onnx.NodeProto.FromString(node.SerializeToString()) for node in nodes]
    del graph.node[:]
    graph.node.extend(nodes)
    return pruning.prune(found, graph.output[0].name)


def _spelled(node: Any, graph: Any) -> list[Any] | None:
    """The nodes that do the same; None where the operator says more than these can."""
    import numpy as np
    from onnx import helper, numpy_helper

    said = {entry.name: helper.get_attribute_value(entry) for entry in node.attribute}
    after = said.get("post_transform", b"NONE").decode()
    columns = len(said.get("intercepts", ())) or int(said.get("targets", 1))
    if (after != "NONE" and after not in AFTER) or len(said["coefficients"]) % columns:
        return None
    classifies = node.op_type == "LinearClassifier"
    labels = said.get("classlabels_ints") or said.get("classlabels_strings") or ()
    if classifies and len(labels) != columns:
        return None
    name = node.output[-1]
    coef = np.asarray(said["coefficients"], dtype=np.float32).reshape(columns, -1).T
    offset = np.asarray(said.get("intercepts") or [0.0] * columns, dtype=np.float32)
    constants = {"coef": np.ascontiguousarray(coef), "offset": offset}
    sums = name if after == "NONE" else f"{name}_sums"
    made = [
        helper.make_node("MatMul", [node.input[0], f"{name}_coef"], [f"{name}_products"], name=f"{name}_MatMul"),
        helper.make_node("Add", [f"{name}_products", f"{name}_offset"], [sums], name=f"{name}_Add"),
    ]
    if after != "NONE":
        made.append(helper.make_node(AFTER[after], [sums], [name], name=f"{name}_{AFTER[after]}"))
    if classifies and node.output[0]:
        texts = [one.decode() if isinstance(one, bytes) else one for one in labels]
        constants["labels"] = np.array(texts, dtype=object if isinstance(texts[0], str) else np.int64)
        made.append(helper.make_node("ArgMax", [sums], [f"{name}_highest"], axis=1, keepdims=0, name=f"{name}_ArgMax"))
        made.append(
            helper.make_node("Gather", [f"{name}_labels", f"{name}_highest"], [node.output[0]], name=f"{name}_Gather")
        )
    graph.initializer.extend(numpy_helper.from_array(array, f"{name}_{key}") for key, array in constants.items())
    return made
