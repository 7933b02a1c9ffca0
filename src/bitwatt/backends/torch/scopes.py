"""Names of places in models: module paths, also for shared and nested modules, and who owns a parameter."""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from torch import nn

from bitwatt.backends.torch.layers import (
    dense_among,
    describe,
    has_weights,
    is_capturing,
    is_packed,
    own_parameters,
    same_precision,
    together,
    unseen,
)
from bitwatt.backends.torch.optimizer_states import describe_states
from bitwatt.backends.torch.state import Frame
from bitwatt.backends.torch.tensors import own
from bitwatt.precision.resolve import incoming
from bitwatt.records import Layer

#: Path segments that wrappers add and that are no part of the user's model.
_WRAPPERS = ("_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module")
#: Separates the number of a root model from the path inside it, until the session closes and the names are settled.
_MARK = "\0"

#: Buffers that make a module a model where it has no parameters.
_HELD = ("qweight", "weight")
#: So many models get a name of their own; after that, one takes the place of a dead one of its class.
ROOTS = 1_000
#: Weights that one module may have had, one after another, before they are looked at anew.
_WEIGHTS = 64

V = TypeVar("V")


class ByIdentity(Generic[V]):
    """What is known of objects, by identity: they may be unhashable, and another may come to live at the same id."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[weakref.ref[object], V]] = {}
        self._room = 1_000  # with more of them, those that are gone are dropped

    def get(self, key: object) -> V | None:
        known = self._known.get(id(key))
        return known[1] if known is not None and known[0]() is key else None

    def put(self, key: object, value: V) -> V:
        if len(self._known) >= self._room:
            self._known = {n: known for n, known in list(self._known.items()) if known[0]() is not None}
            self._room = max(1_000, 2 * len(self._known))
        self._known[id(key)] = (weakref.ref(key), value)
        return value


@dataclass(slots=True)
class _Root:
    label: str
    module: weakref.ref[nn.Module]
    inside: tuple[int, str] | None = None  # the root that turned out to contain this one, and where


class Scopes:
    """Every root model seen, and the paths of the modules in it."""

    def __init__(self) -> None:
        self.listeners: list[Callable[[nn.Module], None]] = []  # told of every new root
        self.roots: list[_Root] = []
        self._alive: list[int] = []  # roots that a later one may turn out to contain
        self._models: ByIdentity[bool] = ByIdentity()
        self._known: ByIdentity[str] = ByIdentity()  # module -> scope, by the first path it was seen at
        self._names: ByIdentity[ByIdentity[str]] = ByIdentity()
        self._owners: ByIdentity[str] = ByIdentity()
        self._layers: dict[str, Layer] = {}
        self._later: dict[str, weakref.ref[nn.Module]] = {}  # layers first called where no value may be read
        self._called: set[str] = set()
        self._optimizers: ByIdentity[bool] = ByIdentity()
        self._looked: ByIdentity[tuple[tuple[Any, ...], Layer]] = ByIdentity()
        #: Module -> the scope it was called at and its weight then -> the scope to count under.
        self._calls: ByIdentity[dict[tuple[Any, ...], str]] = ByIdentity()
        self._final: dict[str, str] = {}

    def is_model(self, module: nn.Module) -> bool:
        """Has parameters, or packed ones as quantised modules do; a loss is none even when it has."""
        if self._models.get(module):
            return True
        found = not is_loss(module) and any(
            bool(list(child._parameters.keys())) or is_packed(child) or any(n in child._buffers for n in _HELD)
            for child in _modules(module).values()
        )
        return self._models.put(module, found)  # one without may get some in its first forward: it is asked again

    def root(self, module: nn.Module) -> str:
        """The scope of a module that no other module called."""
        return self._known.get(module) or self._new_root(module)

    def known(self, module: nn.Module | None) -> str | None:
        """The scope of a module that has been called, or called a part of itself, before."""
        return self._known.get(module)

    def within(self, owner: nn.Module, module: nn.Module) -> str | None:
        """The scope of `module` as a part of `owner`, one of whose methods calls it; None if it is no part."""
        name = self._name_in(owner, module)
        return None if name is None else _join(self.root(owner), name)

    def child(self, frames: list[Frame], module: nn.Module) -> str | None:
        """The scope of `module` called by the innermost module on the stack; None where no module is on it."""
        caller = None
        for frame in reversed(frames):
            if isinstance(frame.module, nn.Module):
                name = self._name_in(frame.module, module)
                if name is not None:
                    return _join(frame.scope, name)
                caller = caller or frame
        return _join(caller.scope, type(module).__name__) if caller else None

    def owner(self, parameter: object) -> str | None:
        return self._owners.get(parameter)

    def _new_root(self, module: nn.Module) -> str:
        index = self._heir_of(_label(module)) if len(self.roots) >= ROOTS else len(self.roots)
        scope = self._known.put(module, f"{index}{_MARK}")
        self.roots[index : index + 1] = [_Root(_label(module), weakref.ref(module))]
        self._alive = [i for i in self._alive if i != index and self.roots[i].module() is not None]
        for i in self._alive:
            inner = self.roots[i].module()
            name = self._name_in(module, inner) if inner is not None else None
            if name is not None:
                self.roots[i].inside = (index, name)
        self._alive = [i for i in self._alive if self.roots[i].inside is None] + [index]
        self._describe(scope, module)
        for listener in self.listeners:
            listener(module)
        return scope

    def _heir_of(self, label: str) -> int:
        """In a program that makes models without end, the place of a dead one of the same class, taken again; else a
        new one."""
        for index in range(len(self.roots) - 1, -1, -1):
            root = self.roots[index]
            if root.label == label and root.inside is None and root.module() is None:
                return index
        return len(self.roots)

    def _name_in(self, parent: nn.Module, module: nn.Module) -> str | None:
        names = self._names.get(parent)
        if names is None or names.get(module) is None:  # first time, or a layer added since
            names = self._names.put(parent, ByIdentity())
            for name, child in _modules(parent).items():
                names.put(child, _unwrapped(parent, name))
        return names.get(module)

    def look_later(self) -> None:
        """A CUDA graph has been captured: what was called first in it can be looked at now."""
        later, self._later = self._later, {}
        for scope, ref in later.items():
            if (module := ref()) is not None:
                self._layers[scope] = self._look(module)

    def _describe(self, root: str, module: nn.Module) -> None:
        children = _modules(module)
        with unseen():
            dense = dense_among(own(child) for child in children.values())
            for name, child in children.items():
                scope = _join(root, _unwrapped(module, name))
                if self._known.get(child) is None:
                    self._known.put(child, scope)
                held = own_parameters(child)
                for parameter in held:
                    self._owners.put(parameter, scope)
                if held or scope not in self._layers:
                    self._layers[scope] = self._look(child, scope, dense)

    def called(self, scope: str, module: nn.Module) -> str:
        """A module is called at `scope` for the first time, or with other weights than before: the scope to count it
        under. Where its precision has changed since, that is another one, told by the format."""
        if not has_weights(module):
            self._called.add(scope)
            return scope
        call = (scope, *_weight(module))
        calls = self._calls.get(module) or self._calls.put(module, {})
        if call not in calls:
            if len(calls) >= _WEIGHTS:
                calls.clear()
            calls[call] = self._first_call(scope, module)
        return calls[call]

    def received(self, scope: str, args: object) -> None:
        """What goes into a quantised layer may carry a width of its own, which the layer does not know."""
        layer = self._layers.get(scope)
        if layer is not None and layer.weights is not None and layer.activations is None and not is_capturing():
            with unseen():
                inputs = incoming(args)
            if inputs is not None:
                self._layers[scope] = replace(layer, activations=inputs)

    def _look(self, module: nn.Module, scope: str = "", dense: frozenset[int] | None = None) -> Layer:
        """What the module is, found out once for each weight it has. Reading a value would end the capture of a graph:
        then it is put off."""
        known, weight = self._looked.get(module), _weight(module)
        if known is None or known[0] != weight:
            if is_capturing():
                self._later[scope] = weakref.ref(module)
                return Layer(type(module).__name__)
            with unseen() if dense is None else nullcontext():
                known = self._looked.put(module, (weight, describe(module, dense or ())))
        return known[1]

    def _first_call(self, scope: str, module: nn.Module) -> str:
        layer = self._look(module, scope)
        known = self._layers.get(scope)
        if known is not None and scope in self._called and not same_precision(known, layer):
            weights = layer.weights
            scope = f"{scope} ({weights.precision.name if weights else layer.weight_dtype})"
        self._layers[scope] = layer
        self._called.add(scope)
        return scope

    def stepped(self, optimizer: object) -> None:
        """An optimizer has made a step: what it remembers is looked at once."""
        if self._optimizers.get(optimizer) is None and not is_capturing():
            self._optimizers.put(optimizer, True)
            with unseen():
                layer = describe_states(optimizer)
            if layer is not None:
                scope = type(optimizer).__name__
                known = self._layers.get(scope)
                self._layers[scope] = layer if known is None else together(known, layer)

    def final(self, scope: str) -> str:
        """The name people see. One model: bare paths. Several: each path under its model's class."""
        if _MARK not in scope:
            return scope
        if not self._final:
            self._final = self._labels()
        number, _, path = scope.partition(_MARK)
        index = int(number)
        while (inside := self.roots[index].inside) is not None:
            index, outer = inside
            path = _join(outer, path) if outer else path
        path, label = path.strip("."), self._final[str(index)]
        return (path or label) if "alone" in self._final else _join(label, path)

    def _labels(self) -> dict[str, str]:
        """A label for each root that is in no other, numbered where several have the same class."""
        tops = [i for i, root in enumerate(self.roots) if root.inside is None]
        twins = Counter(self.roots[i].label for i in tops)
        seen: Counter[str] = Counter()
        labels = {"alone": ""} if len(tops) == 1 else {}
        for i in tops:
            label = self.roots[i].label
            seen[label] += 1
            labels[str(i)] = label if twins[label] == 1 else f"{label}#{seen[label]}"
        return labels

    def settle(self) -> None:
        """Names are about to be asked for: those given earlier may have changed with the models seen since."""
        self._final = {}

    def layers(self) -> dict[str, Layer]:
        """Every layer by its final name. Weights of layers that are used without being called, such as the projections
        of nn.MultiheadAttention, are also weights of the nearest layer around them that was."""
        self.look_later()
        layers = dict(self._layers)
        for scope, layer in self._layers.items():
            if layer.shapes and scope not in self._called:
                user = _around(scope)
                while user and user not in self._called:
                    user = _around(user)
                if user in layers and layers[user].weights is None:  # a quantised layer has told all that are
                    layers[user] = replace(layers[user], shapes=(*layers[user].shapes, *layer.shapes))
        return {self.final(scope): layer for scope, layer in layers.items()}


_losses: weakref.WeakKeyDictionary[type, bool] = weakref.WeakKeyDictionary()


def is_loss(module: nn.Module) -> bool:
    kind = type(module)
    known = _losses.get(kind)
    if known is None:
        named = kind.__name__.endswith(("Loss", "Criterion"))
        known = _losses[kind] = named or issubclass(kind, nn.modules.loss._Loss)
    return known


def _modules(module: nn.Module) -> dict[str, nn.Module]:
    """Path -> module, each by its first path. A walk of our own: subclasses may redefine `named_modules`, and modules
    need not be hashable."""
    found: dict[str, nn.Module] = {}
    seen: set[int] = set()

    def walk(module: nn.Module, path: str) -> None:
        if id(module) in seen:
            return
        seen.add(id(module))
        found[path] = module
        for name, child in module._modules.items():
            if child is not None:
                walk(child, f"{path}.{name}" if path else name)

    walk(module, "")
    return found


def _weight(module: nn.Module) -> tuple[Any, ...]:
    """Another one after the layer was quantised, pruned or cast."""
    weight = own(module)
    return type(weight), id(weight), getattr(weight, "dtype", None), _address(weight)


def _address(weight: Any) -> int:
    try:
        return int(weight.data_ptr())
    except (AttributeError, RuntimeError, ValueError):  # none, fake, lazy or of a class of its own
        return 0


def _around(scope: str) -> str:
    """The scope of what holds this one; nothing around a root."""
    root, mark, path = scope.partition(_MARK)
    return f"{root}{mark}{path.rpartition('.')[0]}" if path else ""


def _label(module: nn.Module) -> str:
    while "_orig_mod" in module._modules:
        module = module._modules["_orig_mod"]
    return type(module).__name__


def _unwrapped(parent: nn.Module, name: str) -> str:
    parts = name.split(".")
    if parts[0] == "module" and type(parent).__name__ in ("DistributedDataParallel", "DataParallel"):
        parts = parts[1:]
    return ".".join(part for part in parts if part not in _WRAPPERS)


def _join(scope: str, name: str) -> str:
    if not name:
        return scope
    return f"{scope}{name}" if not scope or scope.endswith(_MARK) else f"{scope}.{name}"
