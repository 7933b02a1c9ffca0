"""The swiftest way: rows of laps in which little more is done than to compare each event with the one expected.

For each event of a lap there is one function, made once, that does all comparisons: the mark, and what has happened
since the lap began (graph nodes made, modules called and how much went into them). Nothing is booked before the row
ends. One lap in many is run the ordinary way, with clocks; the time of the others is shared out as in those.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import torch

from bitwatt.backends.torch.replay.checks import compiled_frames
from bitwatt.backends.torch.replay.functions import standing
from bitwatt.backends.torch.replay.losses import behind, taken
from bitwatt.backends.torch.replay.marks import arguments, flags, in_use, quick
from bitwatt.backends.torch.replay.pace import ADDED, QUIET, over, stepping
from bitwatt.backends.torch.trail import Stretch, chained
from bitwatt.context import CONTEXT

if TYPE_CHECKING:
    from bitwatt.backends.torch.replay.functions import Function
    from bitwatt.backends.torch.replay.lanes import Lane
    from bitwatt.backends.torch.replay.lessons import Lesson, Step
    from bitwatt.backends.torch.replay.marks import Structures
    from bitwatt.backends.torch.replay.rows import Rows

_Tensor = torch.Tensor
_sequence = torch.autograd._get_sequence_nr
_any_autocast = torch._C._is_any_autocast_enabled
_grad_enabled = torch.is_grad_enabled
_inference = torch.is_inference_mode_enabled
_context = CONTEXT.get

_now = time.perf_counter

#: Tells whether an event is the one expected, given its kind and what is called.
Expected = Callable[..., bool]
#: Laps in a row: so many at first, twice as many each time, at most. Then one is timed event by event, and after it the
#: code between events is watched for one unit.
FIRST, MOST = 64, 512
#: What few programs change without a word is looked at in one lap of sixteen; of models also where a row ends.
SELDOM = 15


class Row:
    """Lanes that follow each other in a ring, mostly one, as a list of what is expected next."""

    __slots__ = ("compiled", "ends", "expects", "frames", "inside", "kinds", "lanes", "models", "nodes", "ran")

    def __init__(self, learner: Rows, structures: Structures, lanes: tuple[Lane, ...]) -> None:
        self.lanes = lanes
        steps = [step for lane in lanes for step in lane.steps]
        self.frames = compiled_frames()
        self.compiled = any(step.gap.compiled or step.event.compiled for step in steps)
        self.ran = [(step.gap.ran, step.event.ran) for step in steps]
        #: Up to where each lane goes.
        self.ends = [sum(len(lane.steps) for lane in lanes[: i + 1]) for i in range(len(lanes))]
        #: Graph nodes when each event begins, and the last has ended, counted from the beginning of the lap. And how
        #: often modules were called by then, and how much went into them.
        self.nodes, self.inside = [0], [0]
        for step in steps:
            self.nodes[-1] += ran(step.gap)[0]
            self.nodes.append(self.nodes[-1] + ran(step.event)[0])
            self.inside.append(self.inside[-1] + (0 if _is_quiet(step, structures) else ran(step.event)[1]))
        self.kinds: list[str] = [step.key[2][0] for step in steps]
        self.models = [(number, structures.states[number]) for step in steps for number in _models(step)]
        self.expects: list[Expected] = []
        for at, step in enumerate(steps):
            self.expects.append(_MAKERS[self.kinds[at]](learner, self, at, step, structures))

    def gap(self, at: int) -> int:
        """Graph nodes made by the code before an event."""
        lane, end = next((lane, end) for lane, end in zip(self.lanes, self.ends, strict=True) if at < end)
        return ran(lane.steps[at - end].gap)[0]

    @property
    def excuses(self) -> bool:
        """Whether something was compiled meanwhile, which calls modules and makes graph nodes of its own."""
        return self.compiled and self.frames != compiled_frames()

    def lasts(self, structures: Structures | None) -> bool:
        """Whether the models are what they were when they were last called; what was announced since is seen by the
        next call."""
        return structures is None or all(
            state.lasts
            for number, state in self.models
            if state.model.stamp == structures.stamp and state.model.number == number
        )

    @property
    def trail(self) -> Stretch:
        return chained([(lane.trail[2], lane.trail) for lane in self.lanes])

    def stands(self, lanes: tuple[Lane, ...]) -> bool:
        """Whether it can be taken again: what it expects of compiled code is still so."""
        return (
            self.lanes == lanes
            and self.frames == compiled_frames()
            and self.ran == [(step.gap.ran, step.event.ran) for lane in lanes for step in lane.steps]
        )


def is_settled(lane: Lane) -> bool:
    """Whether it has been timed, and the checksums of its compiled parts have been learned."""
    lessons = [lesson for step in lane.steps for lesson in (step.gap, step.event) if lesson.compiled]
    frames = compiled_frames() if lessons else 0
    return any(lane.seconds) and all(lesson.ran is not None and lesson.frames == frames for lesson in lessons)


def ran(lesson: Lesson) -> tuple[int, int]:
    """The checksums of a lesson when it is replayed."""
    return lesson.ran if lesson.compiled and lesson.ran is not None else (lesson.nodes, lesson.inside or 0)


def _models(step: Step) -> list[int]:
    """The states of the models that an event calls."""
    who = step.key[2]
    return [who[1]] if who[0] == "call" else [number for number, _ in who[3]] if who[0] == "function" else []


def _is_quiet(step: Step, structures: Structures) -> bool:
    return step.key[2][0] == "call" and structures.states[step.key[2][1]].plain


def _at_the_end(learner: Rows, row: Row, after: int) -> Callable[[], bool] | None:
    """What to do where a lap ends, or a lane; elsewhere the next event is expected."""
    expects, pace, nodes, inside = row.expects, learner.pace, row.nodes, row.inside
    if after == row.ends[-1]:

        def lap() -> bool:
            now = _now()
            if now - pace.began > pace.pause:
                learner.tally.pauses += 1
            pace.began = now
            pace.seq += nodes[-1]
            pace.entered += inside[-1]
            pace.at = 0
            pace.done = done = pace.done + 1
            pace.next = expects[0] if done < pace.laps else over
            return True

        return lap
    if after not in row.ends:
        return None
    lane = row.lanes[row.ends.index(after)]

    def change() -> bool:
        pace.at, pace.next = after, expects[after]
        if learner.state.timeline is not None:
            learner.state.timeline.mark_lane(lane, -1)
        return True

    return change


def _call(learner: Rows, row: Row, at: int, step: Step, structures: Structures) -> Callable[..., bool]:
    _, context, (_, number, state), values = step.key
    seen = structures.states[number]
    known = seen.model
    nodes, inside, after, expects = row.nodes[at], row.inside[at], at + 1, row.expects
    get, model, end = _context, known.ref, _at_the_end(learner, row, after)
    trains, frozen, attributes = seen.trains, seen.frozen, seen.attributes
    simple = type(state) is int
    grad, inference = (bool(state & 1), bool(state & 2)) if simple else (False, False)
    tensor = bool(values) and type(values[0]) is tuple and len(values[0]) == 3 and type(values[0][0]) is torch.Size
    shape, dtype, needs = values[0] if tensor else (None, None, None)
    count, pace, mute = len(values), learner.pace, QUIET if _is_quiet(step, structures) else ADDED

    def expected(kind: str, module: Any, args: Any = (), kwargs: Any = None) -> bool:
        try:
            if (
                kind != "call"
                or model() is not module
                or ((known.stamp != structures.stamp or known.number != number) and structures.of(module) != number)
                or _sequence() - pace.seq != nodes
                or pace.inside - pace.entered != inside
                or get() is not context
                or (not pace.done & SELDOM and not seen.lasts)
            ):
                return False
            if simple:
                if _grad_enabled() is not grad or _inference() is not inference or _any_autocast():
                    return False
            elif flags() != state:
                return False
            if tensor and count == 1 and not kwargs and type(arg := args[0]) is _Tensor:
                if len(args) != 1 or arg.shape != shape or arg.dtype is not dtype or arg.requires_grad is not needs:
                    return False
                if not arg.is_contiguous():
                    return False
            elif arguments(args, kwargs) != values:
                return False
            for ref in trains:
                if not ref().requires_grad:
                    return False
            for ref in frozen:
                if ref().requires_grad:
                    return False
            for ref, read, found in attributes:
                if read(ref().__dict__) != found:
                    return False
        except Exception:  # a part that has died, or something of the user's that does not like to be asked
            return False
        pace.mute = mute
        if end is not None:
            return end()
        pace.at = after
        pace.next = expects[after]
        return True

    return expected


def _backward(learner: Rows, row: Row, at: int, step: Step, _: Structures) -> Callable[..., bool]:
    _, context, (_, adds, options, _), values = step.key
    nodes, after, expects, get = row.nodes[at], at + 1, row.expects, _context
    end = _at_the_end(learner, row, after)
    first = step.first if step.first is not None else (lambda: None)
    *values, of, led = values
    values, gap = tuple(values), row.gap(at)
    #: Where gradients are not made anew, which of them are there does not tell where they came from.
    compiled, follows = row.compiled, adds and not row.compiled
    one = len(values) == 1 and len(values[0]) == 3 and type(values[0][0]) is torch.Size
    shape, dtype, needs = values[0] if one else (None, None, None)
    keep, create, inputs, accumulate = options
    pace = learner.pace

    def expected(kind: str, args: Any, kwargs: Any = None, *_: Any) -> bool:
        try:
            if (
                kind != "backward"
                or _sequence() - pace.seq != nodes
                or get() is not context
                or args[2] is not keep
                or args[3] is not create
                or (len(args[4] or ()) if len(args) > 4 else 0) != inputs
                or kwargs.get("accumulate_grad") is not accumulate
            ):
                return False
            roots = args[0]
            if one and len(roots) == 1 and type(root := roots[0]) is _Tensor:
                if root.shape != shape or root.dtype is not dtype or root.requires_grad is not needs:
                    return False
            elif tuple([quick(root) for root in roots]) != values:
                return False
            parameter = first()
            if (parameter is not None and parameter.grad is not None) is not adds:
                return False
            if not (pace.done & SELDOM or compiled) and taken(roots, compiled=False) != of:
                learner.tally.disagrees("marks of losses")  # since when is not known
                return False
            if follows and behind(roots, gap, compiled=False) != led:
                return False
        except Exception:
            return False
        pace.mute = ADDED
        if end is not None:
            return end()
        pace.at = after
        pace.next = expects[after]
        return True

    return expected


#: Numbers that are used whatever they are: they are compared once in a row, with all others.
_SETTLED = frozenset({"lr", "eps"})


def _step(learner: Rows, row: Row, at: int, step: Step, _: Structures) -> Callable[..., bool]:
    _, context, (_, number, (states, (hung_before, hung_after), *options), missing), _ = step.key
    after, expects, get = at + 1, row.expects, _context
    end = _at_the_end(learner, row, after)
    missing = list(missing) if any(missing) else None
    count = len(step.key[2][3])
    #: Of each group: how to read the options that may come into use, their last values, and which of them were in use.
    turning = [[(name, on) for name, on in used if name not in _SETTLED] for used in options]
    groups: list[list[Any]] = [
        [itemgetter(*[name for name, _ in used]) if used else len, None, used] for used in turning
    ]

    pace = learner.pace

    def expected(kind: str, optimizer: Any, args: Any = (), kwargs: Any = None) -> bool:
        if kind != "step" or kwargs or len(args) > 1:
            return False
        try:
            if id(optimizer) != number or get() is not context or len(optimizer.state) != states:
                return False
            if len(optimizer._optimizer_step_pre_hooks) != hung_before:
                return False
            if len(optimizer._optimizer_step_post_hooks) != hung_after:
                return False
            left, given = count, optimizer.param_groups
            if missing is None:
                for group in given:
                    parameters = group["params"]
                    left -= len(parameters)
                    for parameter in parameters:
                        if parameter.grad is None:
                            return False
                if left:
                    return False
            elif [p.grad is None for group in given for p in group["params"]] != missing:
                return False
            if len(given) != len(groups):
                return False
            for group, known in zip(given, groups):  # noqa: B905
                now = known[0](group)
                if now != known[1]:  # a learning rate that follows a schedule is in use as before
                    if [(name, in_use(group[name])) for name, _ in known[2]] != known[2]:
                        return False
                    known[1] = now
        except Exception:
            return False
        if end is not None:
            end()
        else:
            pace.at, pace.next = after, expects[after]
        pace.then, pace.next = pace.next, stepping
        return True

    return expected


def _function(learner: Rows, row: Row, at: int, step: Step, structures: Structures) -> Callable[..., bool]:
    _, number, state, models, optimizers = step.key[2]
    inside, rest = row.inside[at], _whole(learner, row, at, step, structures)
    who = step.key[2]
    parts = [(structures.states[model], model, has) for model, has in models]
    pace = learner.pace

    def expected(kind: str, function: Function, args: Any = (), kwargs: Any = None) -> bool:
        if kind != "function" or function.number != number or pace.inside - pace.entered != inside or flags() != state:
            return False
        for seen, model, has in parts:
            known = seen.model
            if known.stamp != structures.stamp or known.number != model:
                module = known.ref()
                if module is None or structures.of(module) != model:
                    return False
            if (bool(seen.trains) and seen.trains[0]().grad is not None) is not has:
                return False
            for parameter in seen.trains:
                if not parameter().requires_grad:
                    return False
            for parameter in seen.frozen:
                if parameter().requires_grad:
                    return False
            for ref, read, found in seen.attributes:
                if read(ref().__dict__) != found:
                    return False
        if (
            optimizers
            and tuple([standing(one) for ref in function.optimizers.values() if (one := ref())]) != optimizers
        ):
            return False
        given = arguments(args, kwargs, sizes=True)
        return rest(kind, who, given)

    return expected


def _whole(learner: Rows, row: Row, at: int, step: Step, _: Structures) -> Callable[..., bool]:
    """Of a batch that is read, or a CUDA graph that is replayed: the mark is all there is."""
    _, context, who, values = step.key
    nodes, after, expects, get = row.nodes[at], at + 1, row.expects, _context
    end, pace = _at_the_end(learner, row, after), learner.pace

    def expected(kind: str, mark: Any, given: Any = (), *_: Any) -> bool:
        if kind != who[0] or _sequence() - pace.seq != nodes or get() is not context or mark != who or given != values:
            return False
        if end is not None:
            return end()
        pace.at = after
        pace.next = expects[after]
        return True

    return expected


_MAKERS: dict[str, Callable[..., Callable[..., bool]]] = {
    "call": _call, "backward": _backward, "step": _step, "function": _function, "fetch": _whole, "graph": _whole,
}  # fmt: skip
