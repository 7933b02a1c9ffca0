"""What the paper prints, and how far its digits reach."""

from __future__ import annotations

from dataclasses import dataclass

TITLE = "Precision-Aware Workload Analytics for AI Systems"


@dataclass(frozen=True)
class Network:
    """A row of Table 2: GFLOPs and G·bits in FP32 and in INT4, and the reduction of the latter in percent."""

    flops: float
    flops_int4: float
    bops: float
    bops_int4: float
    reduction: float


TABLE_2 = {
    "mlp": Network(0.26, 0.30, 8.3, 1.2, 85.5),
    "resnet": Network(3.64, 3.85, 116.5, 15.4, 86.8),
    "transformer": Network(11.20, 11.85, 358.4, 47.4, 86.8),
}
#: The text around Figure 2: G·bits in FP32 and in INT4.
FIGURE_2 = {"resnet": (117.0, 14.7), "transformer": (360.0, 45.0)}
#: Section 4.1, transformer in FP16: GFLOPs.
PHASES = {"forward": 3.76, "backward": 7.41, "loss": 0.08, "optimizer": 0.21}
#: Section 4.3: FLOPs and BOPs.
FOREST, REGRESSION = (6.31e11, 4.04e13), (2.00e9, 1.28e11)
#: Section 2.2: how many times the forward a training step is; backward and optimizer together over the forward.
UNDER_REPORTED, BEYOND_FORWARD = (2.8, 3.4), (2.0, 3.0)
#: Section 4: how far counts on a CPU and on a GPU are apart, in percent.
DEVICES_APART = 1.4

#: Half a unit of the last digit of what Table 2 prints, in its own units.
_HALF_FLOPS, _HALF_BOPS = 0.005, 0.05


def interval(network: Network) -> tuple[float, float]:
    """The FP32 GFLOPs that round to both numbers of the row, its bit-operations being 32 times its FLOPs."""
    lows = (network.flops - _HALF_FLOPS, (network.bops - _HALF_BOPS) / 32)
    highs = (network.flops + _HALF_FLOPS, (network.bops + _HALF_BOPS) / 32)
    return max(lows), min(highs)
