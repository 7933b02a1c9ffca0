"""Say which run others are held against: one for each project and kind of machine.

  bitwatt baseline set RUN       it becomes the baseline on machines like the one it ran on
  bitwatt baseline show          those of this project
  bitwatt baseline clear         forget it, on this machine or (with RUN) on the one that a run ran on

Kept in the store, with what it ran on, versions, batch size, and what one epoch of it cost: by phases called epoch,
else by a parameter such as epochs. bitwatt compare and bitwatt check use it.
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from bitwatt.cli.options import add_store_option

if TYPE_CHECKING:
    from bitwatt.store import Place, Where
    from bitwatt.store.baselines import Baseline

ACTIONS = ("set", "show", "clear")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=ACTIONS)
    parser.add_argument("run", nargs="?", help="id, beginning of an id, name or path (set: by default the newest)")
    parser.add_argument(
        "--project", metavar="NAME", help="by default that of this folder's pyproject.toml, or its name"
    )
    parser.add_argument("--format", metavar="FORMAT", default="text", help="text or json")
    add_store_option(parser)


def main(args: argparse.Namespace) -> int:
    from bitwatt.config import project
    from bitwatt.errors import UnknownNameError
    from bitwatt.fingerprint import summary
    from bitwatt.store import baselines, find, load, read

    if args.format not in ("text", "json"):
        raise UnknownNameError(f"--format is one of text, json, not {args.format!r}")
    name = args.project or project()
    if args.action == "set":
        where = find(args.run, args.store)
        run, (header, *_) = load(where), read(*_one(where))[0]
        kept = header.summary or summary(run)
        _print([baselines.put(run, kept, store=args.store, of=name)], args.format)
        return 0
    run_or_here = load(args.run, args.store) if args.run else None
    if args.action == "clear":
        gone = baselines.clear(run_or_here, store=args.store, of=name)
        print(f"the baseline of {name} is forgotten" if gone else f"{name} has no baseline for that machine")
        return 0
    found = baselines.known(args.store, of=name)
    if run_or_here is not None:
        found = [one for one in found if one.machine == baselines.machine_of(run_or_here.machine.facts)]
    if not found and args.format == "text":
        print(f"{name} has no baseline; make one with: bitwatt baseline set RUN")
    else:
        _print(found, args.format)
    return 0


def _one(where: Where) -> tuple[Place, list[str]]:
    from bitwatt.store import split

    there, name = split(where)
    return there, [name]


def _print(found: list[Baseline], format: str) -> None:
    import json
    from dataclasses import asdict

    from bitwatt.reports.text import fitting

    if format == "json":
        print(json.dumps([asdict(one) for one in found], indent=2))
        return
    for one in found:
        for line in _lines(one):
            print(fitting(line, sys.stdout.encoding))


def _lines(one: Baseline) -> list[str]:
    from bitwatt.harmless import on_terminal
    from bitwatt.units import format_count, format_duration

    totals, energy = one.summary.get("totals", {}), one.summary.get("energy_j")
    cost = [format_count(totals[name], unit) for name, unit in (("flops", "FLOP"), ("bops", "BOP")) if name in totals]
    cost += [format_duration(one.seconds)] + ([format_count(float(f"{energy:.3g}"), "J")] if energy is not None else [])
    facts = {
        "run": f"{one.run} ({on_terminal(one.name)}, {one.started[:10]})",
        "hardware": ", ".join(one.hardware.values()),
        "versions": ", ".join(f"{name} {version}" for name, version in one.versions.items()),
        "code": " ".join(
            filter(
                None,
                (
                    one.git.get("commit", "")[:12],
                    one.git.get("branch", ""),
                    "with changes" if one.git.get("dirty") == "yes" else "",
                ),
            )
        ),
        "model": one.version,
        "dataset": one.dataset,
        "batch size": "" if one.batch_size is None else str(one.batch_size),
        "cost": ", ".join(cost),
        "one epoch": "not known: name a phase epoch, or tell the parameter epochs",
    }
    if (epoch := one.epoch) is not None:
        parts = [format_count(epoch.flops, "FLOP")] if epoch.flops is not None else []
        parts += [format_duration(float(f"{epoch.seconds:.3g}"))] if epoch.seconds is not None else []
        parts += [format_count(float(f"{epoch.energy_j:.3g}"), "J")] if epoch.energy_j is not None else []
        facts["one epoch"] = f"{', '.join(parts)} ({epoch.how})"
    lines = [f"baseline of {on_terminal(one.project)} on machine {one.machine}"]
    return lines + [f"  {name:<12}{on_terminal(text)}" for name, text in facts.items() if text]
