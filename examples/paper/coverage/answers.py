"""What a profiler returned, as it returned it."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Phases:
    """By phase, in the units the profiler has. What is not there it does not cover."""

    flops: dict[str, float] = field(default_factory=dict)
    macs: dict[str, float] = field(default_factory=dict)

    def of(self, phase: str) -> float | None:
        """In FLOPs. Matrix work is twice the multiply-accumulates, where a profiler tells them."""
        if phase in ("forward", "backward") and phase in self.macs:
            return 2 * self.macs[phase]
        return self.flops.get(phase)


@dataclass
class Layer:
    """Of one quantised layer."""

    flops: float | None = None
    bops: float | None = None
    dtypes: list[str] = field(default_factory=list)
