"""The cheap marks of an event: what can be told of a call before it runs, without looking at a single op.

A mark is found in two ways. The quick key is made for every event and is only ever compared. The slow way, taken once
for each new quick key, splits it into a form (who is called, with what kinds of values) and sizes (the integers in it),
so that calls which differ in sizes alone are known as such.
"""

from __future__ import annotations

import itertools
import weakref
from operator import itemgetter
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.dropout import _DropoutNd
from torch.nn.utils.rnn import PackedSequence

from bitwatt.backends.torch.encode import key_of

Sizes = tuple[int, ...]

_any_autocast = torch._C._is_any_autocast_enabled
_grad_enabled = torch.is_grad_enabled
_inference = torch.is_inference_mode_enabled
_tracing = torch._C._get_tracing_state
_PLAIN = frozenset({int, bool, float, str, type(None), torch.dtype, torch.device})
#: Objects of the user's are looked into so deep for tensors: a cache of keys and values holds a list of layers.
_DEPTH, _WIDE = 4, 32
#: States of models that are remembered.
_MODELS = 1_000
#: Options of optimizers that are used whatever they are: a schedule may lead to 0. And what stands for one that is 1.0.
SETTLED, ONE = frozenset({"lr", "eps"}), "one"
#: Marks the class whose instances tell when they are frozen (replay.announced).
TELLS = "_bitwatt_tells"
#: Attributes that may decide what a module does, in how many modules of the program's own they are read at most, and
#: how many values one may have.
_DECIDING = frozenset({int, bool, str, type(None)})
_OWN, _FICKLE = 64, 12


def flags() -> Any:
    """Grad, inference and autocast state of the thread."""
    if not _any_autocast():
        return 2 * _inference() + _grad_enabled()
    kinds = [(kind, torch.get_autocast_dtype(kind)) for kind in ("cpu", "cuda") if torch.is_autocast_enabled(kind)]
    return _grad_enabled(), _inference(), tuple(kinds)


def quick(value: Any, depth: int = _DEPTH) -> Any:
    """A hashable stand-in for an argument, as fine as a cheap look can make it."""
    kind = type(value)
    if kind is Tensor or kind is nn.Parameter:
        try:
            known = value.shape, value.dtype, value.requires_grad
            return known if value.is_contiguous() else (*known, "strided")
        except RuntimeError:  # a strided nested tensor has no sizes
            return key_of(value)
    if kind in _PLAIN:
        return value if kind is not float else kind
    if kind is tuple or kind is list:
        return kind, tuple([quick(item, depth - 1) for item in value])
    if isinstance(value, Tensor):
        return kind, key_of(value)
    if kind is PackedSequence:  # how many sequences are there at each time decides what is computed
        return kind, quick(value.data), torch.Size(value.batch_sizes.tolist())
    if isinstance(value, tuple):
        return kind, tuple([quick(item, depth - 1) for item in value])
    if isinstance(value, dict):
        return kind, tuple([(_name(name), quick(item, depth - 1)) for name, item in value.items()])
    held = getattr(value, "__dict__", None)
    if held and depth > 0 and len(held) < _WIDE and not isinstance(value, (nn.Module, type)) and not callable(value):
        return kind, tuple([(name, quick(item, depth - 1)) for name, item in held.items()])
    return kind


def arguments(args: Any, kwargs: Any, *, sizes: bool = False) -> tuple[Any, ...]:
    """Stand-ins for what a call is given. A number given as such decides what is done more often than how much of it,
    unless it is said to be one of the `sizes`."""
    values: list[Any] = [quick(arg) if sizes or type(arg) is not int else (int, str(arg)) for arg in args]
    for name, value in kwargs.items() if kwargs else ():
        values.append((name, quick(value) if sizes or type(value) is not int else (int, str(value))))
    return tuple(values)


def in_use(name: str, value: Any) -> bool | str | None:
    """Of an optimizer's option, as far as it decides what is done: None leaves the choice to torch, and a factor of one
    takes no multiplication."""
    if type(value) is float and value == 1.0:
        return ONE
    return None if value is None else name in SETTLED or bool(value)


def hung(optimizer: Any) -> tuple[int, int]:
    """How many functions a program has hung on an optimizer's steps."""
    return len(optimizer._optimizer_step_pre_hooks), len(optimizer._optimizer_step_post_hooks)


def is_own(hook: Any) -> bool:
    """Whether a function that hangs on something is the program's: what it does, and when, nobody knows."""
    return not str(getattr(hook, "__module__", None) or type(hook).__module__).startswith(("torch.", "bitwatt."))


def _name(name: Any) -> Any:
    """A key of a dict. Others than these may not like to be compared, and would be kept alive."""
    return name if type(name) in (str, int) else type(name)


def split(key: Any, sizes: list[int]) -> Any:
    """The form behind a quick key; its integers go to `sizes`."""
    if isinstance(key, torch.Size):
        sizes.extend(key)
        return ("shape", len(key))
    if type(key) is int:
        sizes.append(key)
        return int
    if isinstance(key, tuple):
        return tuple([split(part, sizes) for part in key])
    return key


class Structure:
    """What a model is made of, as far as it changes what a call does: its modules, which of them train, what the
    program's own have for plain attributes, its parameters, which of them get gradients, and in what format they are.
    It keeps nothing alive."""

    __slots__ = (
        "attributes", "flags", "modules", "number", "parameters", "readers", "ref", "stamp", "values", "version",
    )  # fmt: skip

    def __init__(self, module: nn.Module) -> None:
        self.ref = weakref.ref(module)
        self.version = self.stamp = -1
        self.modules: list[weakref.ref[Any]] = []
        self.parameters: list[weakref.ref[Any]] = []
        #: A module, how to read its attributes, and what they were.
        self.attributes: list[tuple[weakref.ref[Any], Any, Any]] = []
        self.readers: list[Any] = []  # how to read those of modules of torch's own, for each module
        self.values: dict[tuple[int, str], set[Any]] = {}  # that an attribute was seen to have
        self.flags: tuple[Any, ...] = ()
        self.number = 0

    def read(self) -> tuple[Any, ...]:
        return (
            *self.read_seldom(),
            [p.requires_grad for p in self._alive()],
            [read(ref().__dict__) for ref, read, _ in self.attributes],
        )

    def read_seldom(self) -> tuple[Any, Any]:
        """What few programs change in other ways than those that are announced (`install`): that a module trains, a
        stride, a `forward` put in the place of another, the format and shape of a parameter."""
        held = [ref().__dict__ for ref in self.modules]
        return (
            [(one.get("training"), id(one.get("forward")), read(one)) for one, read in zip(held, self.readers)],  # noqa: B905
            [(p.dtype, _shape(p)) for p in self._alive()],
        )

    def _alive(self) -> list[Any]:
        return [ref() for ref in self.parameters]

    def read_attributes(self, modules: list[nn.Module]) -> None:
        """A depth, a mode, a switch: a number or a name that decides what the program's own code does. One that is
        never the same for long counts something, and decides nothing."""
        self.attributes, self.readers = [], []
        for one in modules:
            if hasattr(one, "training"):  # frozen scripts have none
                self.readers.append(_reader(one))
            own = not type(one).__module__.startswith("torch.")
            if len(self.attributes) >= _OWN or not (own or isinstance(one, _DropoutNd)):
                continue
            names = []
            for name, value in one.__dict__.items():
                if (type(value) in _DECIDING and name[0] != "_" and name != "training") if own else name == "p":
                    seen = self.values.setdefault((id(one), name), set())
                    if len(seen) < _FICKLE:
                        seen.add(value)
                        names.append(name)
            if names:
                read = itemgetter(*names)
                self.attributes.append((weakref.ref(one), read, read(one.__dict__)))


class State:
    """A state that a model was seen in: parameters that got gradients, those that did not, and plain attributes."""

    __slots__ = ("attributes", "frozen", "hooked", "model", "plain", "seldom", "tells", "trains")

    def __init__(self, model: Structure) -> None:
        self.model = model
        pairs = list(zip(model.parameters, model.flags[2], strict=True))
        self.trains: list[Any] = [ref for ref, needs in pairs if needs]
        self.frozen: list[Any] = [ref for ref, needs in pairs if not needs]
        self.attributes: list[Any] = model.attributes
        self.seldom = model.flags[:2]
        self.plain = all(_is_plain(ref()) for ref in model.modules)
        #: Whether code of the program's own hangs on its calls, and on its gradients.
        self.hooked = (
            _has_own([getattr(ref(), name, {}) for ref in model.modules for name in _FORWARD_HOOKS]),
            _has_own([getattr(ref(), name, {}) for ref in model.modules for name in _BACKWARD_HOOKS])
            or _has_own([hooks for ref in model.parameters for hooks in _hooks(ref())]),
        )
        #: Whether each of its parameters tells when it is frozen. Wrappers (DTensor) are parameters by name alone.
        self.tells = all(hasattr(type(ref()), TELLS) for ref in model.parameters)

    @property
    def trains_as_known(self) -> bool:
        """Whether the same parameters get gradients. One that has died raises."""
        for ref in self.trains:
            if not ref().requires_grad:
                return False
        return not any(ref().requires_grad for ref in self.frozen)

    @property
    def lasts(self) -> bool:
        """Whether nothing of what is seldom looked at has changed without a word."""
        try:
            return _tracing() is not None or self.model.read_seldom() == self.seldom  # a trace would hold what is read
        except (AttributeError, TypeError):  # a part has died, which is told otherwise
            return True


class Structures:
    """Numbers for the states that models are seen in. A model that changes gets another number."""

    __slots__ = ("_count", "_known", "_numbers", "handles", "needs", "news", "stamp", "states", "version")

    def __init__(self) -> None:
        self.version = 0  # moves on when any module gets a part
        self.stamp = 0  # and also when any is set to train or evaluate
        self.needs = 0  # moves on when any parameter is told whether it gets a gradient, or an optimizer gets a hook
        self.news = 0  # moves on with each of them
        self._known: dict[int, Structure] = {}
        self._numbers: dict[Any, int] = {}
        self.states: dict[int, State] = {}
        self.handles: set[int] = set()  # by which what hangs on models is taken off
        self._count = itertools.count()

    def moved(self, *_: Any) -> None:
        """A module has got a part, or lost one."""
        self.version += 1
        self.switched()

    def switched(self, *_: Any, **__: Any) -> None:
        """A module was set to train or evaluate."""
        self.stamp += 1
        self.news += 1

    def hooked(self, *_: Any) -> None:
        """A parameter was told whether it gets a gradient, or is no more; or an optimizer has got a hook."""
        self.needs += 1
        self.news += 1

    def of(self, module: nn.Module) -> int:
        known = self._known.get(id(module))
        if known is None or known.ref() is not module:
            known = self._known[id(module)] = Structure(module)
        if known.version == self.version:
            try:
                if known.read() == known.flags:
                    known.stamp = self.stamp
                    return known.number
            except (AttributeError, KeyError, TypeError):  # a part has died
                known.version = -1
        self._look(known, module)
        return known.number

    def is_torchs(self, module: nn.Module) -> bool:
        """Whether all of a model is made of torch's own modules: its marks then tell what it does."""
        known = self._known.get(id(module))
        modules = [ref() for ref in known.modules] if known is not None else [None]
        return all(type(one).__module__.startswith("torch.nn.") for one in modules)

    def hooks_calls(self, module: nn.Module) -> bool:
        """Whether code of the program's own hangs on the calls of a model."""
        return self._hooked(module)[0]

    def hooks_gradients(self, module: nn.Module | None) -> bool:
        """Whether code of the program's own hangs on the gradients of a model."""
        return self._hooked(module)[1]

    def _hooked(self, module: nn.Module | None) -> tuple[bool, bool]:
        known = self._known.get(id(module))
        state = self.states.get(known.number) if known is not None else None
        return state.hooked if state is not None else (False, False)

    def has_gradients(self, module: nn.Module) -> bool:
        first = self.first(module)
        return first is not None and first.grad is not None

    def first(self, module: nn.Module | None) -> Any:
        """The first parameter that gets a gradient: where it has one already, backward adds to it."""
        known = self._known.get(id(module))
        for ref in known.parameters if known is not None else ():
            parameter = ref()
            if parameter is not None and parameter.requires_grad:
                return parameter
        return None

    def _look(self, known: Structure, module: nn.Module) -> None:
        modules = _walk(module)
        parameters = [p for one in modules for p in one._parameters.values() if p is not None]
        known.version, known.stamp = self.version, self.stamp
        known.modules = [weakref.ref(one) for one in modules if hasattr(one, "training")]
        known.parameters = [weakref.ref(p, self.hooked) for p in parameters]
        known.read_attributes(modules)
        known.flags = known.read()
        for one in modules:
            self.handles.update(*[getattr(one, name, ()) for name in _HOOKS])
        for p in parameters:
            self.handles.update(*_hooks(p))
        what = (
            tuple([(id(one), one._compiled_call_impl is None, *_hung(one)) for one in modules]),
            tuple([(id(p), type(p), _shape(p), *map(len, _hooks(p))) for p in parameters]),
            *map(tuple, known.flags),
        )
        number = self._numbers.get(what)
        if number is None:
            if len(self._numbers) > _MODELS:  # a program that makes models as it goes
                self._numbers.clear()
                self.states.clear()
                self._known = {key: one for key, one in self._known.items() if one.ref() is not None}
            number = self._numbers[what] = next(self._count)
        known.number = number
        self.states[number] = State(known)


#: Functions that a program has hung on a module.
_FORWARD_HOOKS, _BACKWARD_HOOKS = ("_forward_hooks", "_forward_pre_hooks"), ("_backward_hooks", "_backward_pre_hooks")
_HOOKS = (*_FORWARD_HOOKS, *_BACKWARD_HOOKS)


def _has_own(hung: list[Any]) -> bool:
    return any(is_own(hook) for hooks in hung if hooks for hook in hooks.values())


def _nothing(_: Any) -> None:
    """Of modules of the program's own attributes are read each time."""


#: Kinds of what modules of torch's own are told when they are made.
_TOLD = frozenset({*_DECIDING, float, tuple})


def _reader(module: nn.Module) -> Any:
    """How to read what a module of torch's own was told: a stride, a mode, a width."""
    if not type(module).__module__.startswith("torch.nn."):
        return _nothing
    names = [name for name, value in module.__dict__.items() if type(value) in _TOLD and name[0] != "_"]
    return itemgetter(*names)


def _hung(module: nn.Module) -> list[int]:
    return [len(getattr(module, name, ())) for name in _HOOKS]


def _is_plain(module: Any) -> bool:
    """One of torch's own, of which what it computes follows from the sizes it is given: nothing hangs on it, and it is
    not the one that leaves out what a mask hides."""
    return (
        type(module).__module__.startswith("torch.nn.modules.")
        and not isinstance(module, nn.TransformerEncoder)
        and module._compiled_call_impl is None
        and "forward" not in module.__dict__
        and not any(_hung(module))
    )


def _hooks(parameter: Any) -> list[Any]:
    """What hangs on a parameter's gradient."""
    return [getattr(parameter, name, None) or () for name in ("_backward_hooks", "_post_accumulate_grad_hooks")]


def _shape(parameter: Any) -> Any:
    try:
        return parameter.shape
    except RuntimeError:  # lazy, or nested: it has none
        return None


def _walk(module: nn.Module) -> list[nn.Module]:
    found: list[nn.Module] = []
    seen: set[int] = set()
    waiting = [module]
    while waiting:
        one = waiting.pop()
        if id(one) not in seen:
            seen.add(id(one))
            found.append(one)
            waiting += [child for child in one._modules.values() if child is not None]
    return found
