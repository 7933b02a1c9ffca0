"""Model-FLOP utilisation: the time the work would take at the peaks of its formats, over the time it took."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from bitwatt.hardware.catalogue import Chip, Peak
from bitwatt.impact.work import MATRIX, Executed
from bitwatt.units import format_percent

#: Work in formats without a known peak is left out up to this share; beyond it there is no utilisation to speak of.
NEGLIGIBLE = 0.01
#: The same for element-wise work beside products.
MINOR = 0.1


@dataclass(frozen=True, slots=True)
class Share:
    """One format's part of the ideal time."""

    unit: str  # matrix, vector
    format: str
    flops: int
    peak: Peak | None

    @property
    def seconds(self) -> float:
        return self.flops / self.peak.value if self.peak else 0.0


@dataclass(frozen=True, slots=True)
class Utilisation:
    """`mfu` is None where the device, or the peak of a format that matters, is unknown; `because` says which."""

    mfu: float | None
    ideal_s: float | None
    wall_s: float
    devices: int
    device: str
    shares: tuple[Share, ...] = ()
    because: str = ""

    def __str__(self) -> str:
        if self.mfu is None:
            return f"unknown: {self.because}"
        main = max((share for share in self.shares if share.peak), key=lambda share: share.seconds)
        many = f"{self.devices} x " if self.devices > 1 else ""
        return f"{format_percent(self.mfu)} of {many}{main.peak}"


def ideal(work: Iterable[Executed], chip: Chip) -> tuple[Share, ...]:
    """Each format's work with the peak it could reach: matrix products that of the matrix units, all else that of the
    vector units."""
    sums: dict[tuple[str, str], int] = {}
    for part in work:
        sums[part.unit, part.format] = sums.get((part.unit, part.format), 0) + part.flops
    return tuple(
        Share(unit, format, flops, chip.matrix(format) if unit == MATRIX else chip.vector(format))
        for (unit, format), flops in sums.items()
    )


def utilisation(
    work: Iterable[Executed], chip: Chip | None, wall_s: float, *, devices: int = 1, name: str = ""
) -> Utilisation:
    """Σ FLOPs_d / peak_d over the formats d, shared by `devices` alike, divided by the wall time."""
    called = name or (chip.name if chip else "unnamed")
    if chip is None:
        return Utilisation(None, None, wall_s, devices, called, because=f"no peak is known for {called!r}")
    shares = ideal(work, chip)
    total = sum(share.flops for share in shares)
    if not total or wall_s <= 0:
        return Utilisation(None, None, wall_s, devices, called, shares, "no work was counted in that time")
    # Beside products, element-wise work is little; on devices that publish no vector peak it is left out.
    main = [share for share in shares if share.unit == MATRIX] or list(shares)
    lost = {share.format: share.flops for share in main if share.peak is None}
    beside = {share.format: share.flops for share in shares if share.peak is None and share not in main}
    if sum(beside.values()) > MINOR * total:
        lost |= beside
    if sum(lost.values()) > NEGLIGIBLE * sum(share.flops for share in main):
        missing = ", ".join(sorted(lost))
        return Utilisation(None, None, wall_s, devices, called, shares, f"no peak of {called} is known for {missing}")
    seconds = sum(share.seconds for share in shares) / devices
    return Utilisation(seconds / wall_s, seconds, wall_s, devices, called, shares)
