"""Collective communication: 1 comm per element sent or received here; reductions included, since adding up happens on
the way. The ring's share for each rank depends on the world size, which an op does not tell."""

from typing import Any

from bitwatt.records import Work
from bitwatt.rules._tables import Specs, named, size_of, tensors


def collective(space: str, names: str, what: str) -> None:
    """Register `names`: what goes out is read, what comes in is written; the larger of both is on the wire."""

    def function(out: Specs = (), **args: Any) -> Work:
        sent = list(tensors(tuple(value for name, value in args.items() if not name.startswith("out"))))
        given = list(tensors(tuple(value for name, value in args.items() if name.startswith("out"))))
        received = given or list(out) or sent  # c10d hands its outputs in, or works in place
        counted = max(sum(spec.numel for spec in specs) for specs in (sent, received))
        work = Work.of(sent[0].precision, comm=counted) if sent else Work()
        return Work(work.ops, (), size_of(tuple(sent)), size_of(tuple(received)))

    named(names, f"{what}: 1 comm per element, its bytes read and written.", function, "comm", space)
