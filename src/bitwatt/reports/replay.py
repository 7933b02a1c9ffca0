"""How much of a run was counted and how much credited because it was known, in words."""

from __future__ import annotations

from bitwatt.records import Replay, Run
from bitwatt.units import format_duration

#: Share of a run's time in code that nobody watched from which on the line tells of it first.
_NOTABLE = 0.01


def verdict(run: Run) -> str:
    """One line: whether the numbers are exact, and what speaks for it. Nothing where all of every step was counted."""
    replay = run.replay
    if replay is None or (not replay.replayed and replay.exact):
        return ""
    steps = f"{replay.counted:,} steps counted, {replay.replayed:,} replayed"
    if replay.exact:
        return f"exact: {steps}; {_agreed(replay)}"
    if replay.agrees:
        calls = "as known" if replay.unchecked else "exact"
        between = ", not all that ran between them" if _is_longer(run, replay) else ""
        return f"calls and steps {calls}{between}: {steps}; {_agreed(replay)}; {_reservations(run, replay)}"
    return f"replayed, verified {verified(replay):,} of {replay.replayed:,}: {steps}; {_doubts(run, replay)}"


def verified(replay: Replay) -> int:
    """Replayed steps that nothing speaks against."""
    return max(0, replay.replayed - sum(replay.disagreed.values()) - replay.assumed - replay.deviated)


def _agreed(replay: Replay) -> str:
    checks = f"all {replay.agreed.get('calls and steps', 0):,} checksums agreed"
    if blocks := replay.agreed.get("allocations"):
        checks += f", allocator totals {blocks:,} of {blocks:,} times"
    again = "look" if replay.looks == 1 else "looks"
    looks = f"{replay.looks:,} {again} again found the same" if replay.looks else "it was not looked at again"
    return f"{checks}, {looks}"


def _is_longer(run: Run, replay: Replay) -> bool:
    """Whether a notable part of the run passed in code that nobody watched, and where less is known to pass."""
    return bool(replay.unwatched) and replay.paused > _NOTABLE * run.seconds


def _reservations(run: Run, replay: Replay) -> str:
    """What nothing speaks against, and nothing for. Each event has code before it."""
    told = []
    if replay.unchecked:
        told.append(f"{replay.unchecked:,} calls had nothing to compare")
    if replay.unwatched:
        events = replay.agreed.get("calls and steps", 0) + replay.unchecked
        seen = max(events - replay.unwatched, 0)
        told.append(f"the code between them was watched in {seen:,} of {events:,} places")
    if _is_longer(run, replay):
        places = "in another" if replay.pauses == 1 else f"in {replay.pauses:,} others"
        told.append(f"{places} it took {format_duration(replay.paused)} longer than is known of it")
    return ", ".join(told)


def _doubts(run: Run, replay: Replay) -> str:
    doubts = [f"{n:,} times {check} disagreed" for check, n in replay.disagreed.items()]
    if replay.deviated:
        doubts.append(f"{replay.deviated:,} looks found something else, by up to {replay.deviation:.1%} of the FLOPs")
    if replay.assumed:
        doubts.append(f"code before {replay.assumed:,} unexpected calls ran unseen")
    if replay.interval:
        doubts.append(f"what varies was sampled: FLOPs ± {_share(run, replay.interval):.2%} (95 %)")
    return "; ".join(filter(None, (", ".join(doubts), _reservations(run, replay))))


def _share(run: Run, interval: float) -> float:
    from bitwatt.pricing import totals

    return interval / max(float(totals(run).total), 1.0)
