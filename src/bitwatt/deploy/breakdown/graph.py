"""Which nodes of a graph prepare, which compute and which finish: by where they stand, not by what they are called.

The core is what multiplies, walks trees or attends. What no core node comes before prepares; what no core node comes
after finishes; what stands between two of them belongs to their stretch. Two exceptions keep one operator together
whatever it is written in: converting its operand to integers is part of an integer product, and adding its bias or
scaling it back is part of any.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from bitwatt.deploy.breakdown.timeline import LINEAR, POSTPROCESS, PREPROCESS

#: Operators that are the model's arithmetic, with fused and quantised forms: MatMulIntegerToFloat, QLinearConv, QGemm.
#: Loops are there for what cannot be written otherwise: distances to neighbours, cells.
CORE = re.compile(
    r"MatMul|Gemm|Conv(?!ert)|Attention|Einsum|LSTM|GRU|^RNN|MoE|CDist"
    r"|^SVM|^Linear(Classifier|Regressor)|^TreeEnsemble|^(Scan|Loop|If)$"
)
TO_INTEGERS = frozenset({"QuantizeLinear", "DynamicQuantizeLinear", "DequantizeLinear"})
COMPLETES = frozenset({"Add", "Mul", "QLinearAdd", "Cast", "DequantizeLinear", "QuantizeLinear"})


@dataclass(frozen=True, slots=True)
class Node:
    op: str
    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


def groups(nodes: Sequence[Node], constants: Collection[str] = ()) -> list[str]:
    """The group of each node; nodes come in an order in which they can run. Empty where no node is core."""
    core = [CORE.search(node.op) is not None for node in nodes]
    if not any(core):
        return []
    after = _reached(nodes, core)
    before = [*reversed(_reached([_turned(node) for node in reversed(nodes)], list(reversed(core))))]
    found = [
        LINEAR if core[i] or (after[i] and before[i]) else POSTPROCESS if after[i] else PREPROCESS
        for i in range(len(nodes))
    ]
    _convert(nodes, core, found)
    _complete(nodes, found, set(constants))
    return found


def _turned(node: Node) -> Node:
    return Node(node.op, node.name, node.outputs, node.inputs)


def _reached(nodes: Iterable[Node], core: Sequence[bool]) -> list[bool]:
    """Whether a core node comes before, following the values. Nodes that lead to no core node and come from none
    count as preparing, as their values are there before."""
    fed: set[str] = set()
    found = []
    for node, is_one in zip(nodes, core, strict=True):
        reached = any(value in fed for value in node.inputs if value)
        if reached or is_one:
            fed.update(value for value in node.outputs if value)
        found.append(reached)
    return found


def _convert(nodes: Sequence[Node], core: Sequence[bool], found: list[str]) -> None:
    """What makes integers for a core node is its own; from the end, as one may stand before another."""
    wanted = {value for node, is_one in zip(nodes, core, strict=True) if is_one for value in node.inputs}
    for i in reversed(range(len(nodes))):
        if found[i] == PREPROCESS and nodes[i].op in TO_INTEGERS and wanted.intersection(nodes[i].outputs):
            found[i] = LINEAR
            wanted.update(nodes[i].inputs)


def _complete(nodes: Sequence[Node], found: list[str], constants: set[str]) -> None:
    """Biases and scales: what follows at once and brings nothing of its own but constants."""
    made: set[str] = set()
    for i, node in enumerate(nodes):
        own = [value for value in node.inputs if value and value not in constants]
        if node.op in COMPLETES and own and made.issuperset(own):
            found[i] = LINEAR
        if found[i] == LINEAR:
            made.update(node.outputs)
