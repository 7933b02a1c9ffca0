"""The events of a lap that is taken the swiftest way: each knows what it is known by, and what comes after it.

Between torch's own work caches are cold, and what a comparison costs is the memory that it touches. So what it needs
lies in the slots of one object, not in the cells of a closure, and what never changes unannounced is not looked at.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch.jit import _trace

from bitwatt.backends.torch.replay.functions import standing
from bitwatt.backends.torch.replay.losses import behind, taken
from bitwatt.backends.torch.replay.marks import Structures, arguments, flags, quick
from bitwatt.backends.torch.replay.pace import ADDED, DIRECT, HUNG, QUIET, over
from bitwatt.context import CONTEXT
from bitwatt.passing import handed_on

if TYPE_CHECKING:
    from bitwatt.backends.torch.replay.lessons import Step
    from bitwatt.backends.torch.replay.swift import Row

_Tensor = torch.Tensor
_sequence = torch.autograd._get_sequence_nr
_any_autocast = torch._C._is_any_autocast_enabled
_grad_enabled = torch.is_grad_enabled
_inference = torch.is_inference_mode_enabled
_context = CONTEXT.get
_SCALAR = torch.Size([])

#: Tells whether an event is the one expected, given its kind and what is called.
Expected = Callable[..., bool]
#: What few programs change without a word is looked at in one lap of sixteen; of models also where a row ends. Of rows
#: in which all that is called is torch's own, after so many laps, it is one of sixty-four, and so are which parameters
#: have gradients, options of optimizers, what a model is given but for its sizes, and what kind of number a loss is.
SELDOM, RARELY, SURE = 15, 63, 128
#: In the last lap of a row all of it is.
EVERY = 1 << 62


def is_quiet(step: Step, structures: Structures) -> bool:
    """A call of a model made of torch's own modules alone. Of one whose state has been forgotten nobody knows: a
    program makes many models."""
    seen = structures.states.get(step.key[2][1]) if step.key[2][0] == "call" else None
    return seen is not None and seen.plain


def is_torchs(step: Step, structures: Structures) -> bool:
    """An event in which nothing of the program's own runs, and that was never seen to change."""
    known = not (step.opaque or step.event.changes or step.event.compiled)
    return known and (step.key[2][0] in ("backward", "step") or is_quiet(step, structures))


class Event(ABC):
    """What is expected, and what comes after it."""

    __slots__ = ("after", "context", "end", "next", "nodes", "pace")

    def __init__(self, row: Row, at: int, step: Step, structures: Structures) -> None:
        self.pace, self.context, self.nodes, self.after = row.pace, step.key[1], row.nodes[at], at + 1
        self.next: Expected = over
        self.end: Callable[[], bool] | None = None  # where it is the last of a lap

    @abstractmethod
    def expected(self, kind: str, *given: Any) -> bool:
        """Whether this is it; if so, what comes after it is expected next."""

    def way(self, quiet: bool) -> Expected:
        """How it is found out. Of `quiet` rows, in which all is torch's own, little is compared in most laps once they
        are well known: that stands apart, in as little code as it takes. Whatever else there is to compare, and what is
        not as expected, goes the longer way."""
        return self.expected

    def begin(self) -> None:  # noqa: B027  most have nothing to do
        """A row begins."""

    @property
    def frozen_unheard(self) -> bool:
        """Whether other parameters get gradients than those known, and nobody has announced it."""
        return False

    @property
    def turned_unheard(self) -> bool:
        """Whether an optimizer has other options in use than those known."""
        return False


class ExpectedCall(Event):
    __slots__ = (
        "alone", "attributes", "dtype", "grad", "inference", "inside", "model", "mute", "needs", "news", "number",
        "quiet", "row", "seen", "shape", "simple", "stamp", "state", "structures", "told", "values",
    )  # fmt: skip

    def __init__(self, row: Row, at: int, step: Step, structures: Structures) -> None:
        super().__init__(row, at, step, structures)
        (_, self.number, self.state), self.values = step.key[2:]
        self.structures, self.seen, self.inside = structures, structures.states[self.number], row.inside[at]
        self.model, self.row = self.seen.model.ref, row
        self.quiet = is_quiet(step, structures)
        self.mute = DIRECT if self.quiet else ADDED
        self.simple = type(self.state) is int
        self.grad, self.inference = (bool(self.state & 1), bool(self.state & 2)) if self.simple else (False, False)
        one = self.values[0] if len(self.values) == 1 else None
        plain = type(one) is tuple and len(one) == 3 and type(one[0]) is torch.Size
        given: Any = one if plain else (None, None, None)
        self.shape, self.dtype, self.needs = given  # of the one tensor it is given
        self.stamp = self.told = self.news = -1  # of what was announced, up to where it made no difference
        self.attributes, self.alone = self.seen.attributes, not any(row.inside)

    def expected(self, kind: str, module: Any = None, args: Any = (), kwargs: Any = None) -> bool:
        pace = self.pace
        try:
            if (
                self.model() is not module  # nor is an optimizer, or what a backward begins with
                or _sequence() - pace.seq != self.nodes
                or _context() is not self.context
                or (not self.alone and pace.inside - pace.entered != self.inside)
                or (self.structures.news != self.news and not self._is_as_announced(module))
                or (not pace.done & pace.seldom and not self._lasts)
                or _trace._trace_module_map is not None
            ):
                return False
            if self.simple:
                if _grad_enabled() is not self.grad or _any_autocast():
                    return False
                if not self.grad and _inference() is not self.inference:  # else it would make no graph, as is checked
                    return False
            elif flags() != self.state:
                return False
            if self.shape is not None and len(args) == 1 and not kwargs and type(arg := args[0]) is _Tensor:
                if arg.shape != self.shape:
                    return False
                if not pace.done & pace.rarely and (
                    arg.dtype is not self.dtype or arg.requires_grad is not self.needs or not arg.is_contiguous()
                ):
                    return self._other()
            elif arguments(args, kwargs) != self.values:
                return False
            for ref, read, found in self.attributes:
                if read(ref().__dict__) != found:
                    return False
        except Exception as error:  # a part that has died, or something of the user's that does not like to be asked
            handed_on(error)
            return False
        pace.mute = self.mute if not (self.quiet and any(HUNG)) else QUIET
        if self.end is not None:
            return self.end()
        pace.at = self.after
        pace.next = self.next
        return True

    def way(self, quiet: bool) -> Expected:
        brief = quiet and self.simple and self.grad and self.shape is not None
        return self._briefly if brief and not self.attributes and self.end is None else self.expected

    def _briefly(self, kind: str, module: Any = None, args: Any = (), kwargs: Any = None) -> bool:
        pace = self.pace
        try:
            known = (
                pace.done & pace.rarely
                and self.model() is module
                and _trace._trace_module_map is None
                and _sequence() - pace.seq == self.nodes
                and _context() is self.context
                and self.structures.news == self.news
                and len(args) == 1
                and not kwargs
                and type(arg := args[0]) is _Tensor
                and arg.shape == self.shape
                and _grad_enabled()
                and not _any_autocast()
                and not any(HUNG)
            )
        except Exception as error:  # a nested tensor has no shape, and a mode of the program's may raise what it likes
            handed_on(error)
            known = False
        if not known:
            return self.expected(kind, module, args, kwargs)
        pace.mute, pace.at, pace.next = DIRECT, self.after, self.next
        return True

    def _is_as_announced(self, module: Any) -> bool:
        """Something has changed in some model: whether this one is what it was, and trains what it did."""
        structures, seen = self.structures, self.seen
        news = structures.news
        if structures.stamp != self.stamp:
            now = structures.stamp
            if structures.of(module) != self.number:
                return False
            self.stamp = now
        if structures.needs != self.told or not seen.tells:
            now = structures.needs
            if not seen.trains_as_known:
                return False
            self.told = now
        if seen.tells:
            self.news = news
        return True

    def _other(self) -> bool:
        """Something is not as known that is not looked at in each lap."""
        if self.pace.rarely:  # since when is not known
            self.row.learner.tally.disagrees("marks of calls")
        return False

    @property
    def _lasts(self) -> bool:
        """Whether nothing has changed without a word."""
        return not self.frozen_unheard and self.seen.lasts  # if not, it is told where the row ends

    @property
    def frozen_unheard(self) -> bool:
        try:
            return self.structures.needs == self.told and not self.seen.trains_as_known
        except AttributeError:  # a part has died, which is told otherwise
            return False


class ExpectedBackward(Event):
    __slots__ = (
        "_like", "adds", "compiled", "dtype", "first", "follows", "gap", "hung", "led", "of", "options", "others",
        "row", "values",
    )  # fmt: skip

    def __init__(self, row: Row, at: int, step: Step, structures: Structures) -> None:
        super().__init__(row, at, step, structures)
        (_, self.adds, self.options, self.hung, _), (*values, self.of, self.led) = step.key[2:]
        self.values, self.gap, self.row = tuple(values), row.gap(at), row
        self.first = step.first if step.first is not None else (lambda: None)
        #: Where gradients are not made anew, which of them are there does not tell where they came from.
        self.compiled, self.follows = row.compiled, self.adds and not row.compiled
        #: Others that came after the same events, of other kinds of losses or of losses of more or less.
        self._like = step.node.parent.children if step.node.parent is not None else {}, step.node.steps
        self.begin()
        one: Any = values[0] if len(values) == 1 else ()
        self.dtype = one[1] if len(one) == 3 and one[0] == _SCALAR and one[2] is True else None  # of a loss

    def begin(self) -> None:
        self.others = any(len(forms) > 1 for forms in self._like) and not self.compiled

    def expected(self, kind: str, roots: Any = (), options: Any = (), *_: Any) -> bool:
        pace = self.pace
        try:
            if (
                kind != "backward"
                or _sequence() - pace.seq != self.nodes
                or _context() is not self.context
                or options != self.options
                or pace.hung != self.hung
            ):
                return False
            if not (pace.done & pace.rarely and self.dtype is not None) and not self._is_root(roots):
                return False
            first = self.first()
            if (first is not None and first.grad is not None) is not self.adds:
                return False
            looks = self.others or not (pace.done & pace.seldom or self.compiled)
            if looks and taken(roots, self.gap, compiled=False) != self.of:
                if not self.others:
                    self.row.learner.tally.disagrees("marks of losses")  # since when is not known
                return False
            if self.follows and behind(roots, self.gap, compiled=False) != self.led:
                return False
        except Exception as error:
            handed_on(error)
            return False
        pace.mute, pace.hung = ADDED, 0
        if self.end is not None:
            return self.end()
        pace.at = self.after
        pace.next = self.next
        return True

    def way(self, quiet: bool) -> Expected:
        brief = quiet and self.dtype is not None and not (self.adds or self.compiled or self.hung)
        return self._briefly if brief and self.end is None else self.expected

    def _briefly(self, kind: str, roots: Any = (), options: Any = (), *_: Any) -> bool:
        pace, first = self.pace, self.first()
        if (
            kind == "backward"
            and pace.done & pace.rarely
            and _sequence() - pace.seq == self.nodes
            and _context() is self.context
            and options == self.options
            and not pace.hung
            and first is not None
            and first.grad is None
            and not self.others
        ):
            pace.mute, pace.at, pace.next = ADDED, self.after, self.next
            return True
        return self.expected(kind, roots, options)

    def _is_root(self, roots: Any) -> bool:
        """Whether what it begins with is what is known."""
        if self.dtype is not None and len(roots) == 1 and type(root := roots[0]) is _Tensor:
            return not root.dim() and root.dtype is self.dtype  # one that needs no gradient raises
        return tuple([quick(root) for root in roots]) == self.values


class ExpectedWhole(Event):
    """A batch that is read, or a CUDA graph that is replayed: the mark is all there is."""

    __slots__ = ("values", "who")

    def __init__(self, row: Row, at: int, step: Step, structures: Structures) -> None:
        super().__init__(row, at, step, structures)
        self.who, self.values = step.key[2:]

    def expected(self, kind: str, mark: Any = None, given: Any = (), *_: Any) -> bool:
        return kind == self.who[0] and mark == self.who and given == self.values and self._passes()

    def _passes(self) -> bool:
        pace = self.pace
        if _sequence() - pace.seq != self.nodes or _context() is not self.context:
            return False
        if self.end is not None:
            return self.end()
        pace.at, pace.next = self.after, self.next
        return True


class ExpectedFunction(ExpectedWhole):
    __slots__ = ("inside", "parts", "structures")

    def __init__(self, row: Row, at: int, step: Step, structures: Structures) -> None:
        super().__init__(row, at, step, structures)
        self.structures, self.inside = structures, row.inside[at]
        self.parts = [(structures.states[model], model, has) for model, has in self.who[3]]

    def expected(self, kind: str, function: Any = None, args: Any = (), kwargs: Any = None) -> bool:
        pace, structures = self.pace, self.structures
        _, number, state, _, optimizers = self.who
        if kind != "function" or function.number != number or flags() != state:
            return False
        if pace.inside - pace.entered != self.inside:
            return False
        for seen, model, has in self.parts:
            known = seen.model
            if known.stamp != structures.stamp or known.number != model:
                module = known.ref()
                if module is None or structures.of(module) != model:
                    return False
            if (bool(seen.trains) and seen.trains[0]().grad is not None) is not has or not seen.trains_as_known:
                return False
            for ref, read, found in seen.attributes:
                if read(ref().__dict__) != found:
                    return False
        if (
            optimizers
            and tuple([standing(one) for ref in function.optimizers.values() if (one := ref())]) != optimizers
        ):
            return False
        return bool(arguments(args, kwargs, sizes=True) == self.values) and self._passes()
