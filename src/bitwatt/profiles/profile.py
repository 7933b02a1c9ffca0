"""What a trace of another tool tells, as far as it does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Profile:
    """None is "the trace does not say". Seconds by name are sums over all calls."""

    source: str  # torch.profiler, Nsight Compute
    span_s: float | None = None  # from its first event to its last
    kernels: int = 0  # on a GPU
    kernel_s: float | None = None  # their time, one after the other
    busy_s: float | None = None  # time in which at least one ran
    by_kernel: Mapping[str, float] = field(default_factory=dict)
    by_op: Mapping[str, float] = field(default_factory=dict)  # host time of an op, without ops that it calls
    by_phase: Mapping[str, float] = field(default_factory=dict)  # what the trace marks: annotations, backward
    flops: float | None = None  # executed: 2·FMA + ADD + MUL, and those of tensor cores
    tensor_flops: float | None = None  # those of tensor cores, where they were asked for
    dram_bytes: float | None = None
    capability: str = ""  # of the GPU: 9.0


def most(seconds: Mapping[str, float], limit: int) -> dict[str, float]:
    """The largest ones."""
    return dict(sorted(seconds.items(), key=lambda item: -item[1])[:limit])


def union(spans: list[tuple[float, float]]) -> float:
    """Length of what (begin, end) pairs cover together."""
    total, reached = 0.0, float("-inf")
    for begin, end in sorted(spans):
        total += max(0.0, end - max(begin, reached))
        reached = max(reached, end)
    return total
