"""Inside a PyTorch module: its leaves and attention blocks, by when each ran.

`forward` is replaced on the instances of one loaded copy rather than hooked: with hooks a transformer's encoder leaves
its fast path, and something else would be timed. On a GPU the device is waited for where a part begins and ends.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

from bitwatt.deploy.breakdown.timeline import Part, Timeline, compare
from bitwatt.deploy.records import Breakdown

#: Classes that multiply by weights, by name since quantisation libraries have their own; and blocks that may run as
#: one kernel without calling their children.
CORE = (
    "Linear",
    "Conv",
    "Attention",
    "RNN",
    "LSTM",
    "GRU",
    "Bilinear",
    "TransformerEncoderLayer",
    "TransformerDecoderLayer",
)
LOOKUPS = ("Embedding", "EmbeddingBag")
NORMS = ("Norm",)


def split(loaded: Any, load: Callable[[], Any], batches: Iterator[Any], batch: int, seconds: float) -> Breakdown:
    """`load` gives a second copy, whose modules are watched. What is called is its `call`, else its `module`. Where
    nothing inside is seen there is nothing to change, so that it need not be loaded, and compiled, again."""
    import torch

    called = "call" if hasattr(loaded, "call") else "module"
    note = _opaque(getattr(loaded, called))
    again = copy.copy(loaded) if note else load()
    module = getattr(again, called)
    timeline = Timeline(_clock(module), "rows and results, outside the module")
    with ExitStack() as stack:
        if note:
            setattr(again, called, timeline.wrap(module, Part("all of the module", core=1)))
        elif not _watch(timeline, module, stack):
            note = "no module multiplies by weights of its own: all of it is taken as the operator"
        timed = compare(loaded.predict, lambda rows: timeline.of(lambda: again.predict(rows)), batches, seconds)
    source = f"modules of torch {torch.__version__}, medians of {timed.calls} calls"
    return Breakdown(batch, timed.stages, timed.overhead, timed.plain_ms, source, note)


def _opaque(module: Any) -> str:
    """Why there is nothing to be seen inside."""
    kind = type(module).__name__
    if not hasattr(module, "named_modules"):
        return f"a {kind} has no modules, so it is not split"
    if hasattr(module, "_orig_mod"):
        return "compiled: modules are fused into kernels that belong to none of them, so it is not split"
    if kind in ("RecursiveScriptModule", "ScriptModule", "TopLevelTracedModule"):
        return "TorchScript runs without calling its modules from Python, so it is not split"
    if any(hasattr(part, "graph") and type(part).__name__.startswith("GraphModule") for part in module.modules()):
        return "exported: one graph of operators without modules, so it is not split"
    return ""


def _watch(timeline: Timeline, module: Any, stack: ExitStack) -> int:
    """How many parts are core. All are as before when the stack is left."""
    cores = 0
    for name, part in module.named_modules():
        core, leaf = _is_core(part), not any(True for _ in part.children())
        if core or leaf:
            label = Part(f"{name or 'module'} ({type(part).__name__})", core=int(core))
            _put(timeline, part, label, stack)
            cores += core
        elif part is module:
            _put(timeline, part, Part("between modules"), stack)
    return cores


def _put(timeline: Timeline, module: Any, part: Part, stack: ExitStack) -> None:
    held = vars(module)
    if "forward" in held:
        stack.callback(held.__setitem__, "forward", held["forward"])
    else:
        stack.callback(held.pop, "forward")
    module.forward = timeline.wrap(module.forward, part)


def _is_core(part: Any) -> bool:
    """By its class, or a leaf with a matrix of weights that it does not look rows up in."""
    names = [kind.__name__ for kind in type(part).__mro__]
    if any(name in LOOKUPS or name.endswith(NORMS) for name in names):
        return False
    leaf = not any(True for _ in part.children())
    if any(core in names[0] for core in CORE) and (leaf or "Transformer" in names[0] or "Attention" in names[0]):
        return True
    # positions that are added to every row have one row of their own
    return leaf and any(weight.ndim >= 2 and weight.shape[0] > 1 for weight in part.parameters(recurse=False))


def _clock(module: Any) -> Callable[[], int]:
    import torch

    weights = module.parameters() if hasattr(module, "parameters") else ()
    place = next((weight.device for weight in weights), None)
    if place is None or place.type != "cuda":
        return time.perf_counter_ns

    def waited() -> int:
        torch.cuda.synchronize(place)
        return time.perf_counter_ns()

    return waited
