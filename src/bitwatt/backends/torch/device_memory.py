"""Memory of the current GPU by phase, from the allocator's own totals, which nobody resets: they are the program's.

Where a phase has raised the peak, that is how much it needed. Else what is allocated when it ends is a lower bound.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import torch

from bitwatt.context import Context, Token, phase_path

#: Context, the user's phases when the found phase began, that phase: as in ThreadState.seconds.
Key = tuple[Context, tuple[str, ...], str]
BUILT: bool = torch.backends.cuda.is_built()


def totals() -> tuple[int, int] | None:
    """Bytes allocated now, and at most so far; None where CUDA is not in use."""
    if not torch.cuda.is_initialized():
        return None
    stats: Any = torch._C._cuda_memoryStats(torch._C._cuda_getDevice()).get("allocated_bytes", {}).get("all")
    return None if not stats else (stats["current"], stats["peak"])


class DeviceMemory:
    """Of one thread."""

    def __init__(self) -> None:
        self.phases: dict[Key, int] = {}
        self.first: int | None = None  # the peak when it was first looked at
        self._peak = 0

    def booked(self, key: Key) -> None:
        """The phase `key` has ended here, or been left for another."""
        seen = totals()
        if seen is None:
            return
        current, peak = seen
        if self.first is None:
            self.first = self._peak = peak
        self.phases[key] = max(self.phases.get(key, 0), peak if peak > self._peak else current)
        self._peak = peak

    def resolve(self, meaning: Mapping[str, str], token: Token | None) -> None:
        """Phases that were pending have got their name."""
        for key in [one for one in list(self.phases) if one[2] in meaning and token in (None, one[0].token)]:
            named = (key[0], key[1], meaning[key[2]])
            self.phases[named] = max(self.phases.get(named, 0), self.phases.pop(key))

    def taken(self, token: Token) -> dict[str, int]:
        """By phase, for a session that closes; forgotten here."""
        found: dict[str, int] = {}
        for key in [one for one in list(self.phases) if one[0].token is token]:
            context, base, phase = key
            n = self.phases.pop(key)
            if not phase.startswith("?"):
                name = phase_path(phase, base, context.phases)
                found[name] = max(found.get(name, 0), n)
        return found


def collected(parts: Iterable[DeviceMemory | None], token: Token) -> dict[str, Any]:
    """For a Harvest: by phase, and the peak if it was raised since somebody looked."""
    known = [part for part in parts if part is not None and part.first is not None]
    phases: dict[str, int] = {}
    for part in known:
        for name, n in part.taken(token).items():
            phases[name] = max(phases.get(name, 0), n)
    seen = totals() if known else None
    raised = seen is not None and seen[1] > min(part.first or 0 for part in known)
    return {"device_memory": phases, "device_peak": seen[1] if seen is not None and raised else None}
