"""What one rank's file says in its first line, so that joining need not read ledgers: work by phase, what it sent, and
which work other ranks may have repeated."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from typing import Any

from bitwatt.pricing import Entry, Totals, entries_of, totals
from bitwatt.records import Op, Run

#: Namespaces of ops that talk to other ranks.
_SPACES = ("c10d", "_c10d_functional", "c10d_functional", "_c10d_functional_autograd", "_dtensor")
_NAMES = {
    "allreduce": "all-reduce", "all_reduce": "all-reduce", "reduce": "reduce", "broadcast": "broadcast",
    "allgather": "all-gather", "all_gather": "all-gather", "gather": "gather", "scatter": "scatter",
    "reduce_scatter": "reduce-scatter", "alltoall": "all-to-all", "all_to_all": "all-to-all",
    "shard_dim_alltoall": "all-to-all", "send": "send", "isend": "send", "recv": "receive", "irecv": "receive",
    "batch_p2p_ops": "send and receive",
}  # fmt: skip

#: The phase in which stages of a pipeline run once to learn their shapes, and the one in which DDP divides gradients.
LEARNING_SHAPES, REDUCING = "learning shapes", "backward/reduce"


def shares(run: Run) -> dict[str, Any]:
    """For the header of a rank's run: FLOPs and BOPs by phase, messages by group and kind, and the work of each call
    whose contents are known, by phase and a name made of call and contents."""
    flops, bops = totals(run, "flops"), totals(run, "bops")
    return {
        "phases": {phase: list(amounts) for phase, amounts in _by_phase(flops, bops).items()},
        "messages": [list(message) for message in messages(run)],
        "shared": _shared(run, flops, bops),
    }


def is_after_reducing(phase: str) -> bool:
    """Whether ranks that share out data may still all do the same in it, as they do once gradients are added up."""
    return phase.rpartition("/")[2] in ("optimizer", "other")


def is_added(phase: str) -> bool:
    """Whether it is work that only a job of several ranks has: the program in one process does without."""
    return LEARNING_SHAPES in phase.split("/") or f"/{phase}".endswith(f"/{REDUCING}")


def messages(run: Run) -> list[tuple[str, str, int, int, int]]:
    """(kind, group, peer or -1, calls, bytes) of everything sent and received."""
    found: dict[tuple[str, str, int], tuple[int, int]] = {}
    for entry in entries_of(run.ledger, run.layers):
        kind = message_kind(entry.op)
        if kind:
            key = (kind, *place_of(entry.op))
            calls, sent = found.get(key, (0, 0))
            found[key] = (calls + entry.calls, sent + _bytes(entry) * entry.row.calls)
    return [(*key, *amounts) for key, amounts in sorted(found.items())]


def message_kind(op: Op) -> str:
    """all-reduce, send, ...; empty for what is no message, such as a barrier or waiting."""
    space, _, name = op.name.partition(".")
    if space not in _SPACES:
        return ""
    words = name.strip("_").split("_")
    return next((_NAMES[known] for n in range(len(words), 0, -1) if (known := "_".join(words[:n])) in _NAMES), "")


def place_of(op: Op) -> tuple[str, int]:
    """The group a message goes through, and to or from which of its members; -1 for all."""
    args = dict(op.args)
    group = args.get("process_group", args.get("group_name", ""))
    peer = args.get("dst", args.get("src", -1))
    return str(group).removeprefix("group "), peer if isinstance(peer, int) else -1


def _bytes(entry: Entry) -> int:
    work = entry.work
    return 0 if work is None else max(work.bytes_read or 0, work.bytes_written or 0)


def _by_phase(*priced: Totals) -> dict[str, tuple[int, ...]]:
    sums = [dict(one.by("phase")) for one in priced]
    phases: Iterable[Any] = dict.fromkeys(phase for one in sums for phase in one)
    return {str(phase): tuple(one.get(phase, 0) for one in sums) for phase in phases}


def _shared(run: Run, *priced: Totals) -> dict[str, dict[str, list[int]]]:
    if run.rank is None:
        return {}
    contents, kinds = run.rank.contents, {axis.kind for axis in run.rank.axes}
    everywhere = not kinds or "tensor" in kinds  # else forward and backward are on data of each rank's own
    found: dict[str, dict[str, list[int]]] = {}
    for number, one in enumerate(priced):
        for entry, charges in one.charged:
            content = contents.get(entry.op)
            amount = sum(charge.amount for charge in charges) * entry.row.calls
            if content is not None and amount and (everywhere or is_after_reducing(entry.row.phase)):
                cells = found.setdefault(entry.row.phase, {})
                cells.setdefault(_name(entry.op, content), [0] * len(priced))[number] += amount
    return found


def _name(op: Op, content: int) -> str:
    """Size, a dash, call and contents. Where contents told nothing (all zeros) a question mark stands in between: such
    a call is taken to be like those of its size."""
    size = zlib.crc32(repr(op.out or op.args[:1]).encode()) & 0xFFFF
    call = zlib.crc32(repr((op.name, op.overload, op.args)).encode(), content)
    return f"{size:04x}{'-' if content else '?'}{call:08x}"
