"""How often the CPU time of the process is asked for between two looks, so that rest beside work is seen."""

from __future__ import annotations

#: So often where it tells something, and else not at all.
PULSES = 4
#: Looks without news after which pulses are left out, but for one look in so many.
CALM = 8
#: They tell something if they find more rest than this share of the time.
NEWS = 0.02


class Pulses:
    """Several threads that work for a part of a second have as much CPU time as one that works for all of it. Where one
    works at a time, looks tell as much as pulses do, and a thread that wakes up seldom costs less."""

    def __init__(self) -> None:
        self._last: tuple[float, float] | None = None
        self._seconds = self._spent = self._rest = 0.0
        self._beats = self._quiet = 0

    def beat(self, now: float, spent: float) -> None:
        if self._last is not None and (span := now - self._last[0]) > 0:
            self._seconds += span
            self._spent += spent - self._last[1]
            self._rest += max(0.0, span - (spent - self._last[1]))
            self._beats += 1
        self._last = now, spent

    def after_look(self) -> int:
        """Into how many parts the time until the next look is cut."""
        unseen = self._rest - max(0.0, self._seconds - self._spent)
        if unseen > NEWS * self._seconds:
            self._quiet = 0
        elif self._beats:
            self._quiet += 1
        self._seconds = self._spent = self._rest = 0.0
        self._beats = 0
        return PULSES if self._quiet < CALM or self._quiet % CALM == 0 else 1
