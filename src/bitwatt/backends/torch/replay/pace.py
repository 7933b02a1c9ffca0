"""Where a thread is in a row of laps, in one small object: it is read and written between torch's own work, where each
line of the processor's cache that is touched is felt."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from torch.nn.modules import module as _everywhere
from torch.optim import optimizer as _optimizer

#: What the calls of modules inside an event that is known are: added up, or left alone, where the model is made of
#: torch's own modules alone, which cannot take another way for another batch. And DIRECT: so are these, and nothing
#: hangs on all modules, so that each is called without torch's long way of finding out that nothing hangs on it.
ADDED, QUIET, DIRECT = 1, 2, 3

#: What hangs on the calls of all modules: before and after a call, and before and after its backward.
HUNG: tuple[dict[int, Any], ...] = tuple(
    [getattr(_everywhere, f"_global_{name}_hooks") for name in ("forward_pre", "forward", "backward_pre", "backward")]
)


def over(*_: object) -> bool:
    """The row has ended: no event is expected."""
    return False


def stepping(kind: str, *_: object) -> bool:
    """Expected while an optimizer steps, which may step others, or call something. One that has raised tells nobody:
    the next event finds that no step is running."""
    return _running() > (kind == "step")


def _running() -> int:
    """Steps of optimizers on this thread's stack."""
    running, frame = 0, _frame(2)
    while frame is not None:
        code = frame.f_code
        running += code.co_name == "wrapper" and code.co_filename == _optimizer.__file__
        frame = frame.f_back
    return running


_frame: Any = sys._getframe


class Pace:
    __slots__ = (
        "at",
        "began",
        "done",
        "entered",
        "hung",
        "inside",
        "laps",
        "mute",
        "next",
        "pause",
        "rarely",
        "seldom",
        "seq",
        "then",
    )

    def __init__(self) -> None:
        self.next: Callable[..., bool] | None = None  # whether an event is the one expected; None outside rows
        self.then: Callable[..., bool] | None = None  # what it is once the step that runs has ended
        self.mute = 0  # ADDED, QUIET or DIRECT in a replayed event that calls modules
        self.inside = 0  # how often modules were called, and how much went into them
        self.entered = 0  # what `inside` was when the lap began
        self.hung = 0  # hooks on what forwards computed, since the last backward
        self.seq = 0  # the number of the next graph node when the lap began
        self.at = 0  # the next event of the lap
        self.done = self.laps = 0  # laps taken, and to be taken
        #: What few programs change is looked at in laps whose number has none of these bits; and what few do in which
        #: all is torch's own.
        self.seldom = self.rarely = 0
        self.began = self.pause = 0.0  # when the lap began, and how long a lap is a pause
