"""Explain one op, cost model or layer: its formula or precision, where that comes from, and what it gave in a run."""

from __future__ import annotations

import argparse
import difflib
import inspect
import os
import sys
import textwrap
from collections.abc import Container
from typing import TYPE_CHECKING

from bitwatt.cli.options import add_store_option

if TYPE_CHECKING:
    from bitwatt.pricing import Entry
    from bitwatt.records import Run
    from bitwatt.registry import Rule


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", help="an op such as aten.mm, a cost model such as flops, or a layer of the run")
    add_store_option(parser)
    parser.add_argument("--run", help="the run to look in (default: the newest)")


def main(args: argparse.Namespace) -> int:
    from bitwatt.cli.layers import explain_layer
    from bitwatt.errors import UnknownNameError
    from bitwatt.pricing import cost_models
    from bitwatt.registry import RULES
    from bitwatt.reports.text import fitting

    run = _run(args)
    models = cost_models()
    asked, args.name = args.name, _as_recorded(args.name, models)
    entries = _entries(run, args.name)
    rule = RULES.find(args.name)
    if args.name in models:
        model = models[args.name]
        lines = [f"{model.name}: a cost model, in {model.unit}", *_wrapped(model.about), f"  source   {model.source}"]
    elif rule is not None or entries:
        lines = [*_rule(args.name, rule, entries), *_seen(run, entries)]
    elif run is not None and asked in (scopes := {*run.layers, *(row.scope for row in run.ledger)} - {""}):
        lines = explain_layer(run, asked)
    else:
        known = {*models, *(rule.name for rule in RULES)}
        known |= {*run.layers, *scopes, *(row.op.name for row in run.ledger)} if run is not None else set()
        near = difflib.get_close_matches(args.name, known, n=8, cutoff=0.5)
        near += sorted(name for name in known if args.name in name and name not in near)[:5]
        hint = f"did you mean {', '.join(near)}?" if near else "ops are named as in aten.mm, models as in flops"
        raise UnknownNameError(f"no op with a rule, cost model or layer of the run is called {asked!r}; {hint}")
    print(fitting("\n".join(lines), sys.stdout.encoding))
    return 0


def _as_recorded(name: str, models: Container[str]) -> str:
    """`aten::mm`, `aten.mm.default`, `mm` and `FLOPS` are what people have at hand for aten.mm and flops."""
    from bitwatt.registry import RULES

    if name.lower() in models:
        return name.lower()
    name = name.replace("::", ".")
    for candidate in (name, name.rpartition(".")[0], f"aten.{name}"):
        if candidate and RULES.find(candidate) is not None:
            return candidate
    return name


def _rule(name: str, rule: Rule | None, entries: list[Entry]) -> list[str]:
    if rule is None:
        return [f"{name}: missing, no rule covers it", "  add one with @bitwatt.rule, or bitwatt.free with the reason"]
    if rule.function is None:
        return [f"{name}: free", *_wrapped(rule.reason)]
    failed = next((entry.reason for entry in entries if entry.work is None), "")
    title = f"{name}: missing, {failed}" if failed else f"{name}: counted"
    twin = [f"  rule     {rule.name}"] if rule.name != name else []
    code = inspect.unwrap(rule.function).__code__
    return [
        title,
        *_wrapped(rule.formula or "(its rule has no docstring)"),
        *twin,
        f"  family   {rule.family}",
        f"  defined  {_place(code.co_filename)}:{code.co_firstlineno}",
    ]


def _seen(run: Run | None, entries: list[Entry]) -> list[str]:
    from bitwatt.ledger import Ledger
    from bitwatt.pricing import totals
    from bitwatt.units import format_bytes, format_count

    if run is None:
        return []
    if not entries:
        return ["", f"not called in run {run.id} ({run.name})"]
    calls = sum(entry.calls for entry in entries)
    shapes: dict[str, list[Entry]] = {}
    for entry in entries:
        shapes.setdefault(str(entry.op).partition("(")[2].removesuffix(")"), []).append(entry)
    folded = [max((entry.op.folded.sizes for entry in same if entry.op.folded), default=1) for same in shapes.values()]
    at_most, distinct = "up to " if sum(folded) > len(shapes) else "", sum(folded)
    seen = f"{calls:,} {_s('call', calls)}, {at_most}{distinct:,} distinct {_s('shape', distinct)}"
    lines = ["", f"in run {run.id} ({run.name}): {seen}"]
    if all(entry.work is None for entry in entries):
        return lines

    def price(chosen: list[Entry], model: str) -> int:
        return totals(Ledger(entry.row for entry in chosen), model).total

    moved = sum(
        entry.row.calls * ((entry.work.bytes_read or 0) + (entry.work.bytes_written or 0))
        for entry in entries
        if entry.work
    )
    amounts = [format_count(price(entries, "flops"), "FLOP"), format_count(price(entries, "bops"), "BOP")]
    lines.append(f"  {' · '.join(amounts)} · {format_bytes(moved)} moved")
    priced = sorted(((price(chosen, "flops"), shape, chosen) for shape, chosen in shapes.items()), reverse=True,
                    key=lambda item: item[0])  # fmt: skip
    for flops, shape, chosen in priced[:8]:
        times = sum(entry.calls for entry in chosen)
        lines.append(f"  {format_count(flops, 'FLOP'):>12}  {times:>8,}x  {shape or '(no tensors)'}")
    return lines if len(priced) <= 8 else [*lines, f"  … {len(priced) - 8} more shapes"]


def _run(args: argparse.Namespace) -> Run | None:
    from bitwatt.errors import BitwattError
    from bitwatt.store import load

    try:
        return load(args.run, args.store)
    except BitwattError:
        if args.run:
            raise
        return None


def _entries(run: Run | None, name: str) -> list[Entry]:
    from bitwatt.pricing import entries_of

    return [entry for entry in entries_of(run.ledger, run.layers) if entry.op.name == name] if run else []


def _place(file: str) -> str:
    """Relative to the folder that holds the package, where the file is part of it."""
    home = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    return os.path.relpath(file, home) if file.startswith(home + os.sep) else file


def _wrapped(text: str) -> list[str]:
    return [
        line
        for paragraph in text.split("\n\n")
        for line in textwrap.wrap(" ".join(paragraph.split()), 98, initial_indent="  ", subsequent_indent="  ")
    ]


def _s(word: str, n: int) -> str:
    return word if n == 1 else f"{word}s"
