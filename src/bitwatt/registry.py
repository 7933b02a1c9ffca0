"""Where rules and other plug-ins are found: by name, imported on first use, third-party ones by entry point."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import pkgutil
import threading
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import entry_points

from bitwatt.records import Op, Work

RuleFunction = Callable[..., Work]


@dataclass(frozen=True, slots=True)
class Rule:
    """How one op turns into work. `function` is None where the op is free; then `reason` says why."""

    name: str
    function: RuleFunction | None
    family: str
    reason: str = ""

    @property
    def formula(self) -> str:
        return self.reason if self.function is None else inspect.cleandoc(self.function.__doc__ or "")


class Rules:
    """Rules by op name. The file that holds them is found by the first word of the name: `aten.mm` -> rules/aten."""

    def __init__(self, package: str, group: str) -> None:
        self._package, self._group = package, group
        self._rules: dict[str, Rule] = {}
        self._loading: set[str] = set()
        self._loaded: set[str] = set()
        self._lock = threading.RLock()
        self.version = 0  # grows with every rule, so that nobody keeps a price made with an older set

    def add(self, rule: Rule) -> None:
        self._rules[rule.name] = rule
        self.version += 1

    def find(self, name: str) -> Rule | None:
        """The rule for `name`; an in-place op (`aten.add_`) uses the rule of its functional twin."""
        self._load(name.partition(".")[0])
        return self._rules.get(name) or self._rules.get(name.rstrip("_"))

    def __iter__(self) -> Iterator[Rule]:
        for module in pkgutil.iter_modules(importlib.import_module(self._package).__path__):
            self._load(module.name)
        return iter(list(self._rules.values()))

    def _load(self, word: str) -> None:
        if word in self._loaded:
            return
        with self._lock:  # other threads wait until all rules are there; this one may come again while it loads them
            if word in self._loading:
                return
            self._loading.add(word)
            if word.isidentifier() and importlib.util.find_spec(f"{self._package}.{word}"):
                module = importlib.import_module(f"{self._package}.{word}")
                for child in pkgutil.iter_modules(getattr(module, "__path__", ())):
                    importlib.import_module(f"{module.__name__}.{child.name}")
            for point in entry_points(group=self._group, name=word):
                try:
                    point.load()
                except Exception as error:  # a broken plug-in costs its own rules, not the user's run
                    warnings.warn(f"bitwatt: the rules of {point.value} could not be loaded: {error}", stacklevel=2)
            self._loaded.add(word)


RULES = Rules("bitwatt.rules", "bitwatt.rules")


def rule(*names: str, family: str = "other") -> Callable[[RuleFunction], RuleFunction]:
    """Register a function from an op's arguments, by name, to Work.

    It is called with the op's arguments and facts as keywords and `out`, the tuple of output specs. `family` tells
    conventions that price whole families (matmul, conv, attention, softmax, norm, pointwise, ...) what the op is.
    """

    def register(function: RuleFunction) -> RuleFunction:
        for name in names:
            RULES.add(Rule(name, function, family))
        return function

    return register


def free(*names: str, reason: str) -> None:
    """Register ops that do no work on purpose, and why."""
    for name in names:
        RULES.add(Rule(name, None, "free", reason))


def work_of(rule: Rule, op: Op) -> Work:
    """Apply a rule to an op, and fill in the bytes it left open."""
    if rule.function is None:
        return Work(bytes_read=0, bytes_written=0)
    # Some backward ops take an argument that is called `out`; what came out wins.
    work = rule.function(**{**dict(op.args), "out": op.out})
    if work.bytes_read is not None and work.bytes_written is not None:
        return work
    read = sum(spec.nbytes for spec in op.inputs) if work.bytes_read is None else work.bytes_read
    written = sum(spec.nbytes for spec in op.out) if work.bytes_written is None else work.bytes_written
    return Work(work.ops, work.products, read, written, work.estimated)
