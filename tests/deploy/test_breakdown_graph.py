"""Nodes are grouped by where they stand in the graph."""

from __future__ import annotations

from bitwatt.deploy.breakdown.graph import Node, groups


def chain(*ops: str) -> list[Node]:
    return [Node(op, f"n{i}", (f"v{i}", f"w{i}"), (f"v{i + 1}",)) for i, op in enumerate(ops)]


def letters(nodes: list[Node], constants: set[str] | None = None) -> str:
    return "".join(group[0] for group in groups(nodes, constants or {value for n in nodes for value in n.inputs[1:]}))


def test_what_is_between_two_products_belongs_to_their_stretch() -> None:
    assert letters(chain("Sub", "MatMul", "Relu", "MatMul", "Softmax")) == "plllp"
    assert groups(chain("Sub", "MatMul", "Relu", "MatMul", "Softmax"))[-1] == "postprocess"


def test_a_bias_belongs_to_its_product_and_a_later_sum_does_not() -> None:
    assert groups(chain("MatMul", "Add", "Softmax", "Add"), {"w1", "w3"}) == [
        "linear", "linear", "postprocess", "postprocess",
    ]  # fmt: skip
    # a residual brings a value of its own, so it is no bias
    skip = [Node("MatMul", "m", ("x", "w"), ("a",)), Node("Add", "s", ("a", "x"), ("y",))]
    assert groups(skip, {"w"}) == ["linear", "postprocess"]


def test_an_integer_product_is_one_with_its_conversions() -> None:
    nodes = [
        Node("Scaler", "s", ("x",), ("a",)),
        Node("DynamicQuantizeLinear", "q", ("a",), ("aq", "scale", "zero")),
        Node("MatMulInteger", "m", ("aq", "w", "zero"), ("i",)),
        Node("Cast", "c", ("i",), ("f",)),
        Node("Mul", "both", ("scale", "ws"), ("factor",)),
        Node("Mul", "back", ("f", "factor"), ("r",)),
        Node("Add", "bias", ("r", "b"), ("z",)),
        Node("ArgMax", "label", ("z",), ("y",)),
    ]
    assert groups(nodes, {"w", "ws", "b"}) == ["preprocess", *["linear"] * 6, "postprocess"]


def test_quantised_glue_is_no_operator() -> None:
    """QLinearConcat and QLinearSoftmax begin as quantised products do."""
    assert letters(chain("QLinearConcat", "LinearClassifier", "QLinearSoftmax")) == "plp"
    assert groups(chain("Reshape", "QLinearConcat", "Normalizer")) == []


def test_branches_that_meet_before_the_operator_prepare() -> None:
    nodes = [
        Node("OneHotEncoder", "o", ("c",), ("oc",)),
        Node("Scaler", "s", ("n",), ("sn",)),
        Node("Concat", "j", ("oc", "sn"), ("x",)),
        Node("TreeEnsembleClassifier", "t", ("x",), ("label", "p")),
        Node("Cast", "k", ("label",), ("l",)),
        Node("ZipMap", "z", ("p",), ("pz",)),
    ]
    assert groups(nodes)[:4] == ["preprocess"] * 3 + ["linear"]
    assert groups(nodes)[-1] == "postprocess"
