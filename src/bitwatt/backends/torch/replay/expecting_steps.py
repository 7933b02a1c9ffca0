"""The step of an optimizer that is expected in a lap that is taken the swiftest way (replay.expecting)."""

from __future__ import annotations

import weakref
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from bitwatt.backends.torch.replay.expecting import Event, Expected
from bitwatt.backends.torch.replay.marks import ONE, SETTLED, Structures, hung, in_use
from bitwatt.backends.torch.replay.pace import stepping
from bitwatt.context import CONTEXT
from bitwatt.passing import handed_on

if TYPE_CHECKING:
    from bitwatt.backends.torch.replay.lessons import Step
    from bitwatt.backends.torch.replay.swift import Row

_context = CONTEXT.get


class ExpectedStep(Event):
    __slots__ = (
        "count", "groups", "hung", "lacks", "missing", "number", "optimizer", "row", "settled", "states", "structures",
        "told",
    )  # fmt: skip

    def __init__(self, row: Row, at: int, step: Step, structures: Structures) -> None:
        super().__init__(row, at, step, structures)
        _, self.number, (self.states, self.hung, *options), missing = step.key[2]
        self.structures, self.count, self.row = structures, len(missing), row
        self.missing = list(missing) if any(missing) else None
        self.lacks = missing[0] if missing else None  # a gradient of its first parameter
        #: Of each group: how to read options that may come into use, their last values, and which of them were in use.
        #: Of those that always are it is asked where the row ends whether they have become 1.0.
        turning = [[(name, on) for name, on in used if name not in SETTLED or on == ONE] for used in options]
        self.groups: list[list[Any]] = [
            [itemgetter(*[name for name, _ in used]) if used else len, None, used] for used in turning
        ]
        self.settled = [[name for name, on in used if name in SETTLED and on != ONE] for used in options]
        self.told = -1  # of what was announced, up to where it made no difference
        self.optimizer: Any = None  # a weak reference, once it has been looked at closely

    def expected(self, kind: str, optimizer: Any = None, args: Any = (), kwargs: Any = None) -> bool:
        pace = self.pace
        try:
            if (
                id(optimizer) != self.number
                or kwargs
                or len(args) > 1
                or _context() is not self.context
                or len(optimizer.state) != self.states
                or len(groups := optimizer.param_groups) != len(self.groups)
            ):
                return False
            if pace.done & pace.rarely:
                if (groups[0]["params"][0].grad is None) is not self.lacks:
                    return False
            elif not self._is_as_known(optimizer, groups):
                if pace.rarely:
                    self.optimizer = None
                    self.row.learner.tally.disagrees("marks of optimizers")  # since when is not known
                return False
            if self.structures.news != self.told:
                now = self.structures.news
                if hung(optimizer) != self.hung:
                    return False
                self.told = now
        except Exception as error:
            handed_on(error)
            return False
        if self.end is not None:
            self.end()
            pace.then = pace.next
        else:
            pace.at, pace.then = self.after, self.next
        pace.next = stepping
        return True

    def way(self, quiet: bool) -> Expected:
        return self._briefly if quiet and self.lacks is False else self.expected

    def _briefly(self, kind: str, optimizer: Any = None, args: Any = (), kwargs: Any = None) -> bool:
        pace, end = self.pace, self.end
        try:
            known = (
                id(optimizer) == self.number
                and pace.done & pace.rarely
                and self.structures.news == self.told
                and _context() is self.context
                and len(args) == 1
                and not kwargs
                and len(optimizer.state) == self.states
                and len(groups := optimizer.param_groups) == len(self.groups)
                and groups[0]["params"][0].grad is not None
            )
        except Exception as error:  # its parameters were taken from it
            handed_on(error)
            known = False
        if known and end is not None:
            end()
            pace.next, pace.then = stepping, pace.next
            return True
        return self.expected(kind, optimizer, args, kwargs)

    def _is_as_known(self, optimizer: Any, given: Any) -> bool:
        """Whether the same parameters have gradients, and the same options are in use."""
        if self.optimizer is None:
            self.optimizer = weakref.ref(optimizer)
        left = self.count
        if self.missing is None:
            for group in given:
                parameters = group["params"]
                left -= len(parameters)
                for parameter in parameters:
                    if parameter.grad is None:
                        return False
            if left:
                return False
        elif [p.grad is None for group in given for p in group["params"]] != self.missing:
            return False
        return self._uses_as_known(given)

    def _uses_as_known(self, given: Any) -> bool:
        """The second of these."""
        for group, known in zip(given, self.groups):  # noqa: B905
            values = known[0](group)
            if values != known[1]:  # a number that follows a schedule is in use as before
                if [(name, in_use(name, group[name])) for name, _ in known[2]] != known[2]:
                    return False
                known[1] = values
        return True

    @property
    def turned_unheard(self) -> bool:
        optimizer = self.optimizer() if self.optimizer is not None else None
        if optimizer is None:
            return False
        try:
            given = optimizer.param_groups
            one = any(in_use(name, group[name]) == ONE for group, names in zip(given, self.settled) for name in names)  # noqa: B905
            return one or bool(self.pace.rarely and not self._uses_as_known(given))
        except Exception as error:  # an option that is gone
            handed_on(error)
            return True
