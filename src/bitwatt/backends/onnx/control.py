"""Graphs inside nodes: branches, loops, scans, and a body for each item of a sequence."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy
import onnx

from bitwatt.backends.onnx.values import Value, of_array

if TYPE_CHECKING:
    from bitwatt.backends.onnx.walk import Walk

Values = dict[str, Value]
Walked = Callable[["Walk", onnx.NodeProto, Sequence[Value | None], Values, str], list[Value]]

#: Loops of up to so many rounds are walked round by round, since shapes may hang on the round.
_EACH = 64
#: And of loops whose state changes its shape, at most so many.
_MOST = 1000
#: A limit that means there is none.
_ENDLESS = 2**31


def branch(walk: Walk, node: onnx.NodeProto, inputs: Sequence[Value | None], values: Values, scope: str) -> list[Value]:
    """If: the branch that a constant condition takes; else the one with more nodes, as an estimate."""
    graphs = {a.name: a.g for a in node.attribute}
    condition = inputs[0]
    if condition is not None and condition.data is not None:
        taken = graphs["then_branch" if bool(condition.data) else "else_branch"]
        return walk.graph(taken, values, scope)
    larger = max(graphs.values(), key=_nodes)
    smaller = next(graph for graph in graphs.values() if graph is not larger)
    if _nodes(larger):
        walk.notes.append(f"{scope}: which branch is taken depends on data; the larger one was counted")
    with walk.repeated(1, assumed=True):
        made = walk.graph(larger, values, scope)
    with walk.repeated(0):  # for its shapes alone
        other = walk.graph(smaller, values, scope)
    return [one if one.dims == two.dims else _either(one, two) for one, two in zip(made, other, strict=True)]


def _either(one: Value, two: Value) -> Value:
    """What holds whichever branch was taken; the larger one's shape, which was counted, goes on."""
    return replace(one if one.spec is not None else two, data=None)


def _nodes(graph: onnx.GraphProto) -> int:
    inner = (a.g for node in graph.node for a in node.attribute if a.HasField("g"))
    return sum(node.op_type not in ("Constant", "Identity") for node in graph.node) + sum(map(_nodes, inner))


def loop(walk: Walk, node: onnx.NodeProto, inputs: Sequence[Value | None], values: Values, scope: str) -> list[Value]:
    """Loop: as many rounds as its constant trip count says; once, as an estimate, where data decide."""
    body = node.attribute[0].g
    trips, condition, *state = inputs
    rounds = None if trips is None or trips.data is None else int(trips.data.reshape(-1)[0])
    if condition is not None and condition.data is not None and not bool(condition.data):
        rounds = 0
    held = [value or Value() for value in state]
    if walk.once and rounds is not None:
        rounds = min(rounds, 1)
    if rounds is None or rounds >= _ENDLESS:
        walk.notes.append(f"{scope}: how often the loop runs depends on data; one round was counted")
        with walk.repeated(1, assumed=True):
            made = _round(walk, body, held, values, None, scope)
        return _finished(made[1:], len(held), None)
    doubt = not _goes_on(body)
    if doubt and rounds:
        walk.notes.append(f"{scope}: the loop may end early; all of its {rounds:,} rounds were counted")
    made = [Value(), *held, *[Value(why="the loop runs not once")] * (len(body.output) - 1 - len(held))]
    done = 0
    while done < rounds:
        steady = done > 0 and rounds > _EACH and _alike(made[1:], held)
        left = rounds - done if steady or done == _MOST else 1
        if done:
            held = made[1 : 1 + len(held)]
        if left > 1:  # what a round computes from its number is no longer known
            held = [replace(value, data=None) for value in held]
        if left > 1 and not steady:
            walk.notes.append(f"{scope}: each round of the loop differs; those after {done:,} were taken like the next")
        with walk.repeated(left, assumed=doubt or (left > 1 and not steady)):
            made = _round(walk, body, held, values, done if left == 1 else None, scope)
        done += left
    return _finished(made[1:], len(held), rounds)


def _round(
    walk: Walk, body: onnx.GraphProto, state: Sequence[Value], values: Values, at: int | None, scope: str
) -> list[Value]:
    counter = Value(onnx.TensorProto.INT64, ()) if at is None else of_array(numpy.array(at, "int64"))
    fed = [counter, of_array(numpy.array(True)), *state]
    names = [given.name for given in body.input]
    return walk.graph(body, {**values, **dict(zip(names, fed, strict=False))}, scope)


def _alike(made: Sequence[Value], held: Sequence[Value]) -> bool:
    return all(one.dims == two.dims for one, two in zip(made, held, strict=False))


def _finished(made: Sequence[Value], states: int, rounds: int | None) -> list[Value]:
    """What the last round left, and what each round put aside, stacked."""
    why = "" if rounds is not None else "how often a loop runs depends on data"
    last = [replace(value, data=None) if rounds is None else value for value in made[:states]]
    scans = [
        Value(value.elem, None if value.dims is None else (rounds, *value.dims), why=why) for value in made[states:]
    ]
    return [*last, *scans]


def _goes_on(body: onnx.GraphProto) -> bool:
    """Whether its condition stays true: handed through, or a constant."""
    name = body.output[0].name
    made = {output: node for node in body.node for output in node.output}
    while name in made and made[name].op_type in ("Identity", "Cast"):
        name = made[name].input[0]
    constants = {tensor.name for tensor in body.initializer}
    handed = len(body.input) > 1 and name == body.input[1].name
    return handed or name in constants or (name in made and made[name].op_type == "Constant")


def scan(walk: Walk, node: onnx.NodeProto, inputs: Sequence[Value | None], values: Values, scope: str) -> list[Value]:
    """Scan: once for each place along the scanned axis, whose length the shapes tell."""
    options = {a.name: a for a in node.attribute}
    if walk.opsets.versions.get("", 9) < 9:
        walk.notes.append(f"{scope}: scans of opset 8 are not counted")
        return [Value(why="a scan of opset 8")] * len(node.output)
    body, count = options["body"].g, int(options["num_scan_inputs"].i)
    states = len(inputs) - count
    held = [value or Value() for value in inputs]
    axes = list(options["scan_input_axes"].ints) if "scan_input_axes" in options else [0] * count
    out_axes = list(options["scan_output_axes"].ints) if "scan_output_axes" in options else []
    slices, lengths = [], set()
    for value, axis in zip(held[states:], axes, strict=True):
        if value.dims is None:
            slices.append(Value(value.elem, why=value.why))
            continue
        axis %= len(value.dims)
        lengths.add(value.dims[axis])
        slices.append(Value(value.elem, (*value.dims[:axis], *value.dims[axis + 1 :])))
    length = lengths.pop() if len(lengths) == 1 else None
    fed = [*(replace(value, data=None) for value in held[:states]), *slices]
    names = [given.name for given in body.input]
    if length is None:
        walk.notes.append(f"{scope}: how long the scan is depends on data; one step was counted")
    with walk.repeated(1 if length is None else length, assumed=length is None):
        made = walk.graph(body, {**values, **dict(zip(names, fed, strict=True))}, scope)
    scans = made[states:]
    out_axes += [0] * (len(scans) - len(out_axes))
    stacked = [_stacked(value, length, axis) for value, axis in zip(scans, out_axes, strict=True)]
    return [*(replace(value, data=None) for value in made[:states]), *stacked]


def _stacked(value: Value, length: int | None, axis: int) -> Value:
    if value.dims is None:
        return Value(value.elem, why=value.why)
    axis %= len(value.dims) + 1
    return Value(value.elem, (*value.dims[:axis], length, *value.dims[axis:]))


def each(walk: Walk, node: onnx.NodeProto, inputs: Sequence[Value | None], values: Values, scope: str) -> list[Value]:
    """SequenceMap: the body for each item."""
    body = node.attribute[0].g
    names = [given.name for given in body.input]
    sequences: Any = [value for value in inputs if value is not None]
    lengths = [len(value.items) for value in sequences if value.items is not None]
    if not lengths:
        walk.notes.append(f"{scope}: how many items a sequence has is not known; none was counted")
        return [Value(why="the items of a sequence are not known")] * len(node.output)
    rounds: list[list[Value]] = []
    for at in range(lengths[0]):
        if walk.once and at:
            rounds.append(rounds[0])
            continue
        fed = [value if value.items is None else value.items[at] for value in sequences]
        rounds.append(walk.graph(body, {**values, **dict(zip(names, fed, strict=True))}, scope))
    return [Value(items[0].elem, items=tuple(items)) for items in zip(*rounds, strict=True)]


OPS: dict[str, Walked] = {"If": branch, "Loop": loop, "Scan": scan, "SequenceMap": each}
