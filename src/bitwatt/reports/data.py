"""Where a run's data came from, as far as the system tells."""

from __future__ import annotations

from dataclasses import dataclass

from bitwatt.records import Run
from bitwatt.units import format_bytes

#: Less is told of only beside other things.
_MUCH = 1_000_000


@dataclass(frozen=True, slots=True)
class Data:
    """Bytes, None where the system does not tell. Those of the disk and of the cache are the process tree's, those of
    the network the whole machine's."""

    disk_bytes: float | None
    cache_bytes: float | None  # read by calls but not from disk: the page cache, pipes and sockets
    network_received_bytes: float | None
    network_sent_bytes: float | None
    pattern: str | None = None
    pattern_because: str = "the OS does not tell sequential from random"

    @classmethod
    def of(cls, run: Run) -> Data | None:
        use = run.meter.usage if run.meter is not None else {}
        disk, calls = use.get("disk_read_bytes"), use.get("io_read_bytes")
        cache = None if disk is None or calls is None else max(calls - disk, 0.0)
        received, sent = (use.get(f"host.network_{way}_bytes") for way in ("received", "sent"))
        known = any(one is not None for one in (disk, cache, received, sent))
        return cls(disk, cache, received, sent) if known else None

    @property
    def is_much(self) -> bool:
        parts = (self.disk_bytes, self.cache_bytes, self.network_received_bytes, self.network_sent_bytes)
        return sum(one or 0.0 for one in parts) >= _MUCH

    def __str__(self) -> str:
        told = [
            f"{format_bytes(int(amount))} {words}"
            for amount, words in (
                (self.disk_bytes, "from disk"),
                (self.cache_bytes, "from page cache, pipes and sockets"),
                (self.network_received_bytes, "received"),
                (self.network_sent_bytes, "sent by the whole machine"),
            )
            if amount is not None
        ]
        return f"{', '.join(told)}; access pattern unknown: {self.pattern_because}"
