"""Ensembles of trees: how far a row walks on average, read from the nodes; the lists themselves are not kept."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy
import onnx

OPS = frozenset(["TreeEnsemble", "TreeEnsembleClassifier", "TreeEnsembleRegressor"])
_LEAF = b"LEAF"


def facts(node: onnx.NodeProto) -> Iterator[tuple[str, Any]]:
    """Trees, splits, leaves and the values they add; the splits that a row passes in all trees together, in millionths
    (counts are whole), and how that is known; bytes of all lists."""
    options = {a.name: a for a in node.attribute}
    yield from (_newer(options) if node.op_type == "TreeEnsemble" else _older(options)).items()
    for name in ("n_targets", "post_transform", "aggregate_function"):
        if name in options:
            held = onnx.helper.get_attribute_value(options[name])
            yield name, held.decode() if isinstance(held, bytes) else held
    yield "nbytes", sum(_size(attribute) for attribute in node.attribute)


def _size(attribute: onnx.AttributeProto) -> int:
    """Bytes of a list as an operator keeps it: floats and indices of 4, modes of 1."""
    if attribute.HasField("t"):
        return math.prod(map(int, attribute.t.dims)) * (1 if attribute.name == "nodes_modes" else 4)
    return 4 * (len(attribute.floats) + len(attribute.ints)) + len(attribute.strings)


def _older(options: dict[str, Any]) -> dict[str, Any]:
    """Nodes in parallel lists, told apart by tree and number; children are numbers in the same tree."""
    trees, numbers, yes, no = (
        numpy.array(options[name].ints, "int64")
        for name in ("nodes_treeids", "nodes_nodeids", "nodes_truenodeids", "nodes_falsenodeids")
    )
    inner = numpy.array([mode != _LEAF for mode in options["nodes_modes"].strings], bool)
    width = int(numbers.max(initial=0)) + 1
    order = numpy.argsort(trees * width + numbers, kind="stable")
    keys = (trees * width + numbers)[order]
    children = [order[numpy.searchsorted(keys, (trees * width + to)[inner])] for to in (yes, no)]
    rates = numpy.array(options["nodes_hitrates"].floats) if "nodes_hitrates" in options else numpy.array([])
    targets = options.get("class_ids") or options.get("target_ids")
    values = len(targets.ints) if targets is not None else int((~inner).sum())
    return _walked(inner, children, rates, values)


def _newer(options: dict[str, Any]) -> dict[str, Any]:
    """TreeEnsemble: splits and leaves in lists of their own; a child is a place in either."""
    yes, no, yes_ends, no_ends = (
        numpy.array(options[name].ints, "int64")
        for name in ("nodes_truenodeids", "nodes_falsenodeids", "nodes_trueleafs", "nodes_falseleafs")
    )
    splits, leaves = len(yes), len(options["leaf_targetids"].ints)
    children = [yes + splits * yes_ends.astype(bool), no + splits * no_ends.astype(bool)]
    inner = numpy.arange(splits + leaves) < splits
    rates = numpy.array([])
    if "nodes_hitrates" in options:
        rates = numpy.concatenate([onnx.numpy_helper.to_array(options["nodes_hitrates"].t), numpy.zeros(leaves)])
    return _walked(inner, children, rates, leaves, list(options["tree_roots"].ints))


def _walked(inner: Any, children: list[Any], rates: Any, values: int, roots: Any = None) -> dict[str, Any]:
    """All trees level by level. `children` has the two of each split, in the order of the splits.

    A row passes a split as often as its hit rate says, where the model has some. Else all leaves of a tree are taken as
    equally likely, as they are in a tree that was grown until each holds few samples.
    """
    if roots is None:
        below = numpy.zeros(len(inner), bool)
        below[numpy.concatenate(children).astype("int64")] = True
        roots = numpy.flatnonzero(~below)
    nodes = numpy.asarray(roots, "int64")
    place = numpy.cumsum(inner) - 1  # of a node among the splits
    tree = numpy.arange(len(nodes))
    depths, leaves, hits = (numpy.zeros(len(nodes)) for _ in range(3))
    told = len(rates) == len(inner) and len(set(rates.tolist())) > 1
    depth = 0
    while len(nodes):
        splits = inner[nodes]
        ends = numpy.bincount(tree[~splits], minlength=len(leaves))
        depths, leaves = depths + depth * ends, leaves + ends
        if told:
            hits += numpy.bincount(tree[splits], rates[nodes[splits]], len(leaves))
        nodes, tree = (
            numpy.concatenate([to[place[nodes[splits]]] for to in children]).astype("int64"),
            numpy.concatenate([tree[splits]] * 2),
        )
        depth += 1
    steps = hits / numpy.maximum(rates[numpy.asarray(roots)], 1e-30) if told else depths / numpy.maximum(leaves, 1)
    return {
        "trees": len(steps),
        "splits": int(inner.sum()),
        "leaves": int((~inner).sum()),
        "values": values,
        "steps_millionths": round(float(steps.sum()) * 1e6),
        "known_by": "hit rates" if told else "mean depth of leaves",
    }
