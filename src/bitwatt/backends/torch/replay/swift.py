"""The swiftest way: laps of a lane in which little more is done than to compare calls of models with those expected.

Calls are compared in full as they begin, and with them what has happened since the lap began: how many graph nodes were
made, how often modules were called and how much went into them. Of a backward and a step only the turn is compared. One
lap in many is run the ordinary way, with clocks; the time of the others is shared out as it was spent in those.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from bitwatt.backends.torch.replay.marks import flags, quick
from bitwatt.context import CONTEXT

if TYPE_CHECKING:
    from torch import nn

    from bitwatt.backends.torch.replay.learner import Learner
    from bitwatt.backends.torch.replay.marks import Structures

_sequence = torch.autograd._get_sequence_nr

#: One lap in about so many is timed event by event, and after it gaps are watched for one unit.
TIMED = 64


def call(learner: Learner, structures: Structures, module: nn.Module, args: tuple[Any, ...]) -> bool:
    """Whether the call of a model is the one that is expected, after what was expected before it."""
    lane, at = learner.lane, learner.at
    if lane is None:
        return False
    _, context, who, values = lane.steps[at].key
    try:
        given = tuple([quick(arg) if type(arg) is not int else (int, str(arg)) for arg in args])
    except Exception:  # something of the user's that does not like to be asked: the long way knows how to go on
        return False
    if (
        lane.turns[at] == "call"
        and structures.is_still(module, who[1])
        and who[2] == flags()
        and CONTEXT.get() is context
        and learner.seq + lane.nodes[at] == _sequence()
        and learner.inside == lane.inside[at]
        and values == given
    ):
        if not at:
            learner.inside = 0
        _pass(learner, lane, at)
        return True
    return False


def backward(learner: Learner, roots: Any, options: Any) -> bool:
    lane, at = learner.lane, learner.at
    if lane is None or lane.turns[at] != "backward":
        return False
    _, context, who, values = lane.steps[at].key
    if lane.adds() != who[1] or options != who[2] or CONTEXT.get() is not context:
        return False
    if values != tuple([quick(root) for root in roots]):
        return False
    _pass(learner, lane, at)
    return True


def step(learner: Learner, optimizer: Any) -> bool:
    lane, at = learner.lane, learner.at
    if lane is None or lane.turns[at] != id(optimizer):
        return False
    _, context, who, _ = lane.steps[at].key
    missing = tuple([p.grad is None for group in optimizer.param_groups for p in group["params"]])
    if missing != who[3] or CONTEXT.get() is not context or len(optimizer.state) != who[2][0]:
        return False
    _pass(learner, lane, at)
    return True


def _pass(learner: Learner, lane: Any, at: int) -> None:
    if at + 1 == len(lane.turns):
        learner.hurried_lap(lane)
    else:
        learner.at = at + 1
