"""The order in which a layer is asked for its precision."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from bitwatt.precision import probe
from bitwatt.precision.registry import Widths, reader_of


def resolve(module: Any) -> tuple[Widths | None, str]:
    """What is known of a layer beyond the dtypes of its tensors, and if it looks quantised but nothing is, why not.

    Readers that fail, since a library has changed, are as good as none: the layer is then reported by its dtype.
    """
    problems = []
    answers = []
    for thing in (_weight(module), module):
        found = reader_of(type(thing)) if thing is not None else None
        if found is None:
            continue
        name, reader = found
        try:
            answer = reader(thing)
        except Exception as error:
            problems.append(f"{name} could not be read: {type(error).__name__}: {error}")
        else:
            answers.append(answer and _signed(answer, name))
    known = [answer for answer in answers if answer is not None]
    if known:
        return _merged(known), ""
    if answers and not problems:  # someone who knows this class says that it is not quantised
        return None, ""
    probed = probe.probe(module)
    if probed is not None:
        return probed, ""
    return None, "; ".join(problems) or probe.suspicion(module)


def _weight(module: Any) -> Any:
    parameters, buffers = getattr(module, "_parameters", {}), getattr(module, "_buffers", {})
    weight = parameters.get("weight")
    return weight if weight is not None else buffers.get("weight")


def _signed(widths: Widths, name: str) -> Widths:
    """With the class that told, where the reader said no more than the attributes."""
    parts = {
        field: replace(part, source=f"{name}: {part.source}" if part.source else name)
        for field in ("weights", "activations")
        if (part := getattr(widths, field)) is not None
    }
    return replace(widths, **parts)


def _merged(answers: list[Widths]) -> Widths:
    """The tensor's answer first, what it leaves open from its module."""
    first = answers[0]
    for other in answers[1:]:
        first = Widths(
            first.weights or other.weights, first.activations or other.activations, first.shapes or other.shapes
        )
    return first
