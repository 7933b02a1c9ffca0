"""Rules in a line: so many operations of each kind for every element, or no operation and only bytes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from bitwatt.formulas.pointwise import pointwise, stored
from bitwatt.records import NECESSARY, Op, TensorSpec, Work
from bitwatt.registry import RULES, RuleFunction, free, rule, work_of

Specs = tuple[TensorSpec, ...]


def tensors(values: Any) -> Iterable[TensorSpec]:
    """Every tensor in a value, in lists and dicts too."""
    if isinstance(values, TensorSpec):
        yield values
    elif isinstance(values, tuple):
        for value in values:
            yield from tensors(value)


def size_of(values: Any) -> int:
    """Bytes of every tensor in a value."""
    return sum(spec.nbytes for spec in tensors(values))


def each(
    names: str,
    formula: str,
    *,
    family: str = "pointwise",
    of: str = "out",
    space: str = "aten",
    part: str = NECESSARY,
    **kinds: int,
) -> None:
    """Register `names`: so many operations of each `kinds` per element of the first output.

    They run in that output's precision or, with `of="in"`, in the first input's: a comparison's output is bool.
    `part` says what for, where it is not the computation itself: QUANTISATION.
    """

    def function(out: Specs = (), **args: Any) -> Work:
        given = next(iter(tensors(tuple(args.values()))), None)
        result = out[0] if out else given
        if result is None:
            return Work()
        spec = given if of == "in" and given is not None else result
        return as_part(pointwise(spec, stored(result), **kinds), part)

    named(names, f"{formula}: {amounts(kinds)} per element.", function, family, space)


def as_part(work: Work, part: str) -> Work:
    """The same element-wise work, all of it done for `part`."""
    return replace(work, ops=tuple((kind, precision, part, n) for kind, precision, _, n in work.ops)) if part else work


def moved(names: str, formula: str, *, family: str = "copy", space: str = "aten") -> None:
    """Register `names`: no arithmetic; the inputs are read and the outputs written."""

    def function(**_: Any) -> Work:
        return Work()

    named(names, formula, function, family, space)


def written(names: str, formula: str, *, family: str = "copy", space: str = "aten", **kinds: int) -> None:
    """Register `names`: every output element written, none read, after `kinds` operations on each."""

    def function(out: Specs = (), **args: Any) -> Work:
        results = out or tuple(tensors(tuple(args.values())))[:1]
        work = sum((pointwise(spec, stored(spec), **kinds) for spec in results), Work())
        return work + Work(bytes_read=0, bytes_written=size_of(results))

    suffix = f": {amounts(kinds)} per element." if kinds else ""
    named(names, formula + suffix, function, family, space)


def idle(names: str, reason: str, *, space: str = "aten") -> None:
    """Register `names` as free, and why."""
    free(*(f"{space}.{name}" for name in names.split()), reason=reason)


def named(names: str, formula: str, function: RuleFunction, family: str, space: str = "aten") -> None:
    """Register one function under several names, with the formula that people read."""
    function.__doc__ = formula
    rule(*(f"{space}.{name}" for name in names.split()), family=family)(function)


def amounts(kinds: dict[str, int]) -> str:
    return ", ".join(f"{n} {kind}" for kind, n in kinds.items()) or "nothing"


def as_twin(twin: str, args: dict[str, Any], out: Specs) -> Work:
    """The work of `args` under the rule of another op; nothing where that op is free."""
    found = RULES.find(twin)
    if found is None:
        raise LookupError(f"no rule is called {twin}")
    return work_of(found, Op(twin, tuple(args.items()), out))
