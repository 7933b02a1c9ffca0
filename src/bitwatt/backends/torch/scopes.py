"""Names of places in models: module paths, also for shared and nested modules, and who owns a parameter."""

from __future__ import annotations

import weakref
from dataclasses import dataclass

from torch import nn

from bitwatt.backends.torch.encode import dtype_name
from bitwatt.backends.torch.state import Frame
from bitwatt.records import Layer

#: Path segments that wrappers add and that are no part of the user's model.
_WRAPPERS = ("_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module")
#: Separates the number of a root model from the path inside it, until the session closes and the names are settled.
_MARK = "\0"


@dataclass(slots=True)
class _Root:
    label: str
    module: weakref.ref[nn.Module]
    inside: tuple[int, str] | None = None  # the root that turned out to contain this one, and where


class Scopes:
    """Every root model seen, and the paths of the modules in it."""

    def __init__(self) -> None:
        self.roots: list[_Root] = []
        self._names: weakref.WeakKeyDictionary[nn.Module, dict[int, str | None]] = weakref.WeakKeyDictionary()
        #: Module -> its own scope -> the scopes of modules it calls: one module may be called through several paths.
        self._below: weakref.WeakKeyDictionary[nn.Module, dict[str, dict[int, str | None]]] = (
            weakref.WeakKeyDictionary()
        )
        self._roots: weakref.WeakKeyDictionary[nn.Module, str] = weakref.WeakKeyDictionary()
        self._models: weakref.WeakKeyDictionary[nn.Module, bool] = weakref.WeakKeyDictionary()
        self._known: weakref.WeakKeyDictionary[nn.Module, str] = weakref.WeakKeyDictionary()
        self._layers: dict[str, Layer] = {}
        self._owners: dict[int, str] = {}

    def is_model(self, module: nn.Module) -> bool:
        """Has parameters, or packed ones as quantised modules do; a loss is none even when it has."""
        known = self._models.get(module)
        if known is None:
            known = self._models[module] = not is_loss(module) and (
                next(module.parameters(), None) is not None
                or any(hasattr(m, "_packed_params") or hasattr(m, "qweight") for m in module.modules())
            )
        return known

    def root(self, module: nn.Module) -> str:
        """The scope of a module that no other module called."""
        scope = self._roots.get(module)
        if scope is None:
            scope = self._roots[module] = self._new_root(module)
        return scope

    def child(self, frames: list[Frame], module: nn.Module) -> str | None:
        """The scope of `module` called by the innermost module on the stack; None where no module is on it."""
        caller = None
        for frame in reversed(frames):
            if isinstance(frame.module, nn.Module):
                if frame.below is None:
                    frame.below = self._below.setdefault(frame.module, {}).setdefault(frame.scope, {})
                scope = frame.below.get(id(module), "")
                if scope == "":
                    name = self._names_in(frame.module, module)[id(module)]
                    scope = frame.below[id(module)] = None if name is None else _join(frame.scope, name)
                if scope is not None:
                    return scope
                caller = caller or frame
        return _join(caller.scope, type(module).__name__) if caller else None

    def owner(self, parameter: object) -> str | None:
        return self._owners.get(id(parameter))

    def _new_root(self, module: nn.Module) -> str:
        if module in self._known:
            return self._known[module]
        index = len(self.roots)
        self.roots.append(_Root(_label(module), weakref.ref(module)))
        for earlier in self.roots[:-1]:
            inner = earlier.module()
            if earlier.inside is None and inner is not None:
                name = self._names_in(module, inner)[id(inner)]
                earlier.inside = (index, name) if name is not None else None
        self._describe(index, module)
        return f"{index}{_MARK}"

    def _names_in(self, parent: nn.Module, module: nn.Module) -> dict[int, str | None]:
        """The paths of all modules below `parent`, None for `module` if it is not among them."""
        names = self._names.get(parent)
        if names is None or id(module) not in names:  # first time, or a layer added since
            names = self._names[parent] = {id(child): _unwrapped(parent, n) for n, child in parent.named_modules()}
            names.setdefault(id(module), None)
        return names

    def _describe(self, index: int, module: nn.Module) -> None:
        for name, child in module.named_modules():
            scope = _join(f"{index}{_MARK}", _unwrapped(module, name))
            self._known.setdefault(child, scope)
            own = list(child.parameters(recurse=False))
            for parameter in own:
                self._owners[id(parameter)] = scope
            if own or scope not in self._layers:
                weight = getattr(child, "weight", None)
                first = weight if any(weight is p for p in own) else own[0] if own else None
                dtype = dtype_name(first.dtype) if first is not None else None
                self._layers[scope] = Layer(type(child).__name__, dtype, sum(p.numel() for p in own))

    def final(self, scope: str) -> str:
        """The name people see. One model: bare paths. Several: each path under its model's class."""
        number, mark, path = scope.partition(_MARK)
        if not mark:
            return scope
        index = int(number)
        while self.roots[index].inside is not None:
            index, outer = self.roots[index].inside  # type: ignore[misc]
            path = _join(outer, path) if outer else path
        path = path.strip(".")
        alone = sum(root.inside is None for root in self.roots) == 1
        label = self._unique_label(index)
        return (path or label) if alone else _join(label, path)

    def _unique_label(self, index: int) -> str:
        label = self.roots[index].label
        twins = [i for i, root in enumerate(self.roots) if root.label == label and root.inside is None]
        return label if len(twins) < 2 else f"{label}#{twins.index(index) + 1}"

    def layers(self) -> dict[str, Layer]:
        return {self.final(scope): layer for scope, layer in self._layers.items()}


_losses: dict[type, bool] = {}


def is_loss(module: nn.Module) -> bool:
    kind = type(module)
    known = _losses.get(kind)
    if known is None:
        named = kind.__name__.endswith(("Loss", "Criterion"))
        known = _losses[kind] = named or issubclass(kind, nn.modules.loss._Loss)
    return known


def _label(module: nn.Module) -> str:
    while (inner := getattr(module, "_orig_mod", None)) is not None:
        module = inner
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
