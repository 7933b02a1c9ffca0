"""AOTInductor packages: compiled libraries without Python in them. Nobody can see into one, so each call is named."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from bitwatt.backends.torch.mode import mode_here
from bitwatt.imports import when_imported
from bitwatt.records import Op

if TYPE_CHECKING:
    from bitwatt.backends.torch.watch import TorchWatch

_MODULE = "torch._inductor.package.package"
_CALL = Op("torch.AOTICompiledModel", (("unrecorded", "a compiled library"),), overload="unrecorded")


def install(watch: TorchWatch) -> list[Callable[[], None]]:
    undo: list[Callable[[], None]] = []

    def patch() -> None:
        kind: Any = getattr(sys.modules[_MODULE], "AOTICompiledModel", None)
        if kind is None:
            return
        call = kind.__call__

        def watched_call(self: Any, *args: Any, **kwargs: Any) -> Any:
            mode = mode_here(watch) if watch.on else None
            if mode is not None:
                mode.record_op(_CALL)
            return call(self, *args, **kwargs)

        kind.__call__ = watched_call
        undo.append(lambda: setattr(kind, "__call__", call))

    def restore() -> None:
        while undo:
            undo.pop()()

    return [restore, when_imported(_MODULE, patch)]
