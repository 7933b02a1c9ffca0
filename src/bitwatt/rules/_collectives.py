"""Collective communication: 1 comm per element sent or received here; reductions included, since adding up happens on
the way. The ring's share for each rank depends on the world size, which an op does not tell."""

from typing import Any

from bitwatt.records import Work
from bitwatt.rules._tables import Specs, named, tensors


def collective(space: str, names: str, what: str) -> None:
    """Register `names`: every tensor argument read once and, where it receives, every output written once."""

    def function(out: Specs = (), **args: Any) -> Work:
        given = list(tensors(tuple(args.values())))
        results = list(out) or given  # in place, or lists that an op does not return
        if not given:
            return Work(bytes_read=0, bytes_written=0)
        largest = max(sum(spec.numel for spec in specs) for specs in (given, results))
        sent, received = sum(spec.nbytes for spec in given), sum(spec.nbytes for spec in results)
        counted = Work.of(given[0].precision, comm=largest)
        return Work(counted.ops, (), sent, received)

    named(names, f"{what}: 1 comm per element, its bytes read and written.", function, "comm", space)
