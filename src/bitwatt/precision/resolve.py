"""The order in which a layer is asked for its precision."""

from __future__ import annotations

from typing import Any

from bitwatt.precision import probe
from bitwatt.precision.ordinary import is_ordinary
from bitwatt.precision.registry import Widths, reader_of, signed
from bitwatt.records import Quantised


def resolve(module: Any) -> tuple[Widths | None, str]:
    """What is known of a layer beyond the dtypes of its tensors, and if it looks quantised but nothing is, why not.

    Readers that fail, since a library has changed, are as good as none: the layer is then reported by its dtype.
    """
    problems = []
    answers = []
    for thing in (_weight(module), *parametrisations(module), module):
        found = reader_of(type(thing)) if thing is not None else None
        if found is None:
            continue
        name, reader = found
        try:
            answer = reader(thing)
        except Exception as error:
            problems.append(f"{name} could not be read: {type(error).__name__}: {error}")
        else:
            answers.append(answer and signed(answer, name))
    known = [answer for answer in answers if answer is not None]
    if known:
        return _merged(known), ""
    if answers and not problems:  # someone who knows this class says that it is not quantised
        return None, ""
    if not problems and is_ordinary(module):
        return None, ""
    probed, suspicion = probe.probe(module)
    return probed, "" if probed is not None else "; ".join(problems) or suspicion


def incoming(values: Any) -> Quantised | None:
    """The width that the first argument of a layer carries with it, where its class is one that does."""
    for value in values[:1] if isinstance(values, tuple) else ():
        found = reader_of(type(value)) if type(value).__module__ != "torch" else None
        try:
            widths = found[1](value) if found is not None else None
        except Exception:  # a library that has changed: the dtype stands
            return None
        if found is not None and widths is not None and widths.activations is not None:
            return signed(widths, found[0]).activations
    return None


def _weight(module: Any) -> Any:
    parameters, buffers = getattr(module, "_parameters", {}), getattr(module, "_buffers", {})
    for held in (parameters, buffers):  # without `get`, which those of scripted modules lack
        if "weight" in held and held["weight"] is not None:
            return held["weight"]
    return None


def parametrisations(module: Any) -> list[Any]:
    """What makes the weight of what is stored, where torch's `parametrize` has taken it over."""
    parts = getattr(module, "_modules", {})
    held = parts["parametrizations"] if "parametrizations" in parts else None  # noqa: SIM401
    chain = held._modules.get("weight") if held is not None else None
    return list(chain._modules.values()) if chain is not None else []


def _merged(answers: list[Widths]) -> Widths:
    """The tensor's answer first, what it leaves open from its module."""
    first = answers[0]
    for other in answers[1:]:
        first = Widths(
            first.weights or other.weights, first.activations or other.activations, first.shapes or other.shapes
        )
    return first
