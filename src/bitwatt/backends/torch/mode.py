"""The dispatch mode: every op a thread runs passes here and is counted where it ran."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch._ops import HigherOrderOperator, OpOverload
from torch._subclasses.fake_tensor import FakeTensor
from torch._subclasses.functional_tensor import FunctionalTensor
from torch.utils._python_dispatch import (
    TorchDispatchMode,
    _get_current_dispatch_mode_stack,
    _pop_mode,
    _push_mode,
)

from bitwatt.backends.torch import code, compact, higher_order
from bitwatt.backends.torch.encode import factor_key, key_of, name_of, operand_key, result_key, scalar_key
from bitwatt.backends.torch.state import (
    AFTER,
    BEFORE,
    BEFORE_GRAPH,
    LOSS,
    Counts,
    Frame,
    Launch,
    ThreadState,
    graph_task,
)
from bitwatt.context import CONTEXT, current
from bitwatt.passing import handed_on
from bitwatt.records import Op

if TYPE_CHECKING:
    from bitwatt.backends.torch.watch import TorchWatch

_getframe = sys._getframe
_autograd_node = torch._C._current_autograd_node
_sequence = torch.autograd._get_sequence_nr
_grad_enabled = torch.is_grad_enabled
_code_kinds = code.kinds

#: What the mode does with an op, decided once per op.
_VIEW, _IN_PLACE, _PLAIN, _COMPOSITE, _HIGHER, _SILENT = range(6)
_IMPLICIT = torch._C.DispatchKey.CompositeImplicitAutograd
#: Calls between two events, or in one, of which it is remembered where each was counted. Longer ones are not learned.
LOG = 50_000
#: Different calls of which one object is kept.
KEYS = 4_000
#: AccumulateGrad nodes carry this instead of a number.
_NO_SEQUENCE = 2**64 - 1


def mode_here(watch: TorchWatch) -> CountingMode | None:
    """The mode under which this thread runs. Inside an op there is none: what its kernel does belongs to it."""
    for mode in _get_current_dispatch_mode_stack():
        if isinstance(mode, CountingMode) and mode.watch is watch:  # a forked child inherits its parent's
            return mode
    return None


class CountingMode(TorchDispatchMode):
    """One per thread. It computes nothing and changes nothing: it calls the op and writes down that it was called."""

    supports_higher_order_operators = True

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # the wrapper torch would add costs more than all of our work; the stance keeps dynamo out

    def __init__(self, watch: TorchWatch) -> None:
        super().__init__()
        self.watch = watch
        self.owner: Any = None  # who entered it on this thread, and will leave it
        self.log: list[tuple[Counts, Any]] | None = None  # where each call was counted, while a step is learned
        self._keys: dict[Any, Any] = {}
        self.held: list[tuple[int, str]] | None = None  # marks that wait with the calls (replay.watched)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        for subclass in types:
            if subclass is FunctionalTensor:  # torch is tracing; its mode lies below and takes the op from here
                return func(*args, **(kwargs or {}))
            if _is_foreign(subclass):
                return NotImplemented  # a wrapper subclass: let it unfold into the plain ops it runs
        plan = _plans.get(id(func)) or self.plan(func)  # hashing the op itself would run Python code
        kind = plan.kind
        if kind is _HIGHER:
            return higher_order.run(self, plan, args, kwargs or {})
        if kind is _COMPOSITE and not any(isinstance(arg, torch.Tensor) and arg.is_nested for arg in args):
            _push_mode(self)
            try:  # the kernel that would run anyway; torch's Python decompositions could take another path
                return func._op_dk(_IMPLICIT, *args, **(kwargs or {}))
            finally:
                _pop_mode()
        out = func(*args, **kwargs) if kwargs else func(*args)
        watch = self.watch
        if watch.on and kind is not _SILENT and (type(out) is not FakeTensor or _estimating()):
            try:
                self.record(plan, args, kwargs, out)
            except Exception as error:  # the user's program comes first: the op is reported as missing
                self.missed(func, error)
        return out

    @staticmethod
    def plan(func: Any) -> Plan:
        return _plans.setdefault(id(func), Plan(func))

    def record(self, plan: Plan, args: Any, kwargs: Any, out: Any) -> None:
        counts = self._counts(args, out)
        kind = plan.kind
        if kind is _VIEW:
            key: Any = plan
        else:
            named = tuple([(name, key_of(kwargs[name])) for name in kwargs]) if kwargs else ()
            key = (plan, tuple(map(key_of, args)), named, None if kind is _IN_PLACE else result_key(out))
        cell = counts.get(key)
        if kind is not _VIEW and (cell is None or self.log is not None):
            if cell is None and plan.numbers:
                key = plan.folded(key)
            key = self._shared(key)
        if self.held is not None and self.log is not None:
            self.log.append((counts, key))
            if len(self.log) > LOG:
                self.book(self.watch.states.here)
                self.log = None
            return
        if cell is not None:
            cell[0] += 1
        else:
            counts.setdefault(key, [0])[0] += 1
        if cell is None and self.watch.contents is not None:
            self.watch.contents.saw(key, args)
        if self.log is not None:
            self.log.append((counts, key))
            if len(self.log) > LOG:
                self.log = None
        if cell is None:
            state = self.watch.states.here
            state.fresh += 1
            if state.fresh > compact.STEP:
                compact.relieve(self.watch, state)

    def _shared(self, key: Any) -> Any:
        """One object for calls that are alike, in whatever layer: tuples by the thousand would make Python look through
        all that the program holds, in search of garbage."""
        if len(self._keys) > KEYS:
            self._keys.clear()
        return self._keys.setdefault(key, key)

    def missed(self, func: Any, error: Exception) -> None:
        """A call that could not be written down is one that no rule can price, and says so."""
        handed_on(error)
        self.watch.failed(func, error)
        with contextlib.suppress(Exception):  # the note above says it in any case
            self.record_op(Op(f"{name_of(func)}", (("unrecorded", type(error).__name__),), overload="unrecorded"))

    def record_op(self, op: Op) -> None:
        """Count a call that passed no dispatcher."""
        counts = self._counts((), None)
        if self.held is None:
            counts.setdefault(op, [0])[0] += 1
        if self.log is not None:
            self.log.append((counts, op))

    def hold(self) -> None:
        """What comes is expected to be known: it is only written down."""
        self.log, self.held = [], []

    def book(self, state: ThreadState) -> None:
        """It was not: what was written down is counted after all."""
        marks, self.held = self.held, None
        if marks is None:
            return
        for counts, key in self.log or ():
            if counts.place is not None:
                state.counts_at(counts.place).setdefault(key, [0])[0] += 1
        for seq, scope in marks:
            state.trail.mark(seq, scope)

    def _counts(self, args: Any, out: Any) -> Counts:
        """Where the running op is counted. Called two frames below the code that called it."""
        state = self.watch.states.here  # not the thread that entered the mode: autograd carries it to its own threads
        frame = state.top
        task = graph_task()
        if task != frame.task:
            return self._backward(state, task, args)
        phase = frame.phase
        if phase == "forward":
            known = _code_kinds.get(id(_getframe(3).f_code))
            if (known[0] if known else code.kind_of(_getframe(3).f_code)) is code.LOSS:
                return self._loss_inside(state, frame)
        elif frame is state.bottom or (phase == "optimizer" and _grad_enabled()):  # the closure of a step
            return self._outside(state, args, out)
        context = CONTEXT.get()
        if context is frame.context or context is None:
            return frame.counts
        return _elsewhere(state, frame)

    def _outside(self, state: ThreadState, args: Any, out: Any) -> Counts:
        """An op that no module, optimizer or loader is running."""
        context = current()
        if context is None:
            return Counts()
        frame = _getframe(4)
        found, scope = code.caller(frame)
        if not _grad_enabled():
            optimizer = code.optimizer_above(frame)
            phase, scope = ("optimizer", optimizer) if optimizer else ("other", scope)
        elif found is code.SEED:
            phase = "backward"
        elif found is code.SCALER:
            phase = "other"
        else:
            graph = _needs_grad(args)
            owner, method = code.module_above(frame) if graph else (None, "")
            if graph:
                scope = self.watch.scopes.known(owner) or scope
                seq = _sequence() - 1
                if state.learner is not None:  # an op that makes no node must not take the last one of a known call
                    seq = max(seq, state.learner.seq)
                if self.held is None:
                    state.trail.mark(seq, scope)
                else:
                    self.held.append((seq, scope))
            if found is code.LOSS:
                phase = LOSS
            elif owner is not None and graph and _is_followed(out) and not _is_training_loop(method):
                phase = "forward"  # a model used through another method than its forward: encode, decode
            elif state.forward_done:  # what autograd does not follow is a metric, or prepares targets
                phase = AFTER if graph and _is_followed(out) else "other"
            else:
                phase = BEFORE_GRAPH if graph else BEFORE
        return state.counts_at((context, context.phases, phase, scope))

    def _loss_inside(self, state: ThreadState, frame: Frame) -> Counts:
        """A known loss function that the model itself calls."""
        context = current()
        return Counts() if context is None else state.counts_at((context, frame.base, "loss", frame.scope))

    def _backward(self, state: ThreadState, task: int, args: Any) -> Counts:
        launch = self.watch.launch_of(state, task)
        context = (launch.context if launch else None) or current()
        if context is None:
            return Counts()
        if task < 0:  # a frame from inside a backward that has ended: an exception left it behind
            state.pop(state.top)
            return state.counts_at((context, context.phases, "other", ""))
        scope = self._scope_of_node(state, launch)
        learner = (launch.state if launch else state).learner
        if self.log is not None and learner is not None and learner.step is not None and not learner.step.opaque:
            learner.step.opaque = code.differentiates_itself(_getframe(3).f_back)
        if _grad_enabled():
            if code.recomputing(_getframe(4)):
                return state.counts_at((context, context.phases, "backward/recompute", scope))
            if _needs_grad(args):  # create_graph: this op makes a node of its own, for the same layer
                state.trail.mark(_sequence() - 1, scope)
        if state.last_backward[0] is not launch or state.last_backward[1] is not scope or launch is None:
            state.last_backward = (launch, scope, state.counts_at((context, context.phases, "backward", scope)))
        return state.last_backward[2]

    def _scope_of_node(self, state: ThreadState, launch: Launch | None) -> str:
        node = _autograd_node()
        if node is None:
            return ""
        seq = node._sequence_nr()
        if seq == _NO_SEQUENCE:
            return self.watch.scopes.owner(getattr(node, "variable", None)) or ""
        return self.watch.scope_at(seq, launch.state if launch else state)


def _is_training_loop(method: str) -> bool:
    """Methods of a module that hold a loss or a step rather than a part of the model."""
    return any(word in method for word in ("loss", "step", "criterion", "fit", "train", "valid"))


def _is_followed(out: Any) -> bool:
    """Whether autograd can follow what came out: numbers that vary smoothly, not indices or truth values."""
    return not isinstance(out, torch.Tensor) or out.is_floating_point() or out.is_complex()


def _estimating() -> bool:
    """Whether fake tensors are what is to be counted; else torch is working out shapes."""
    context = current()
    return context is not None and context.token.fakes


def _needs_grad(args: Any) -> bool:
    """Whether autograd follows this op."""
    for arg in args:
        if isinstance(arg, torch.Tensor):
            if arg.requires_grad:
                return True
        elif isinstance(arg, (list, tuple)) and _needs_grad(arg):
            return True
    return False


def _elsewhere(state: ThreadState, frame: Frame) -> Counts:
    """The user opened or left a phase of his own inside this frame."""
    context = current()
    if context is None:
        return Counts()
    return state.counts_at((context, frame.base, frame.phase, frame.scope))


_foreign: dict[type, bool] = {torch.Tensor: False, torch.nn.Parameter: False, FakeTensor: False}


def _is_foreign(kind: type) -> bool:
    known = _foreign.get(kind)
    if known is None:
        plain = getattr(kind, "__torch_dispatch__", None) in (
            None,
            torch._C._disabled_torch_dispatch_impl,
            torch.Tensor.__torch_dispatch__,
        )
        known = _foreign[kind] = not plain and not issubclass(kind, FakeTensor)
    return known


class Plan:
    """An op and what the mode does with it, decided once. It stands for the op in keys: it hashes quickly."""

    __slots__ = ("func", "kind", "numbers")

    def __init__(self, func: Any) -> None:
        self.func = func
        self.kind = _kind(func)
        #: Arguments that are values to compute with, where they are Python numbers: not sizes, dimensions or counts.
        self.numbers = _numbers(func) if isinstance(func, OpOverload) else {}

    def folded(self, key: Any) -> Any:
        """The key of a call without numbers that may differ each time and change nothing: a step, a seed, an id."""
        numbers = self.numbers
        args = tuple([numbers[i](arg) if i in numbers else arg for i, arg in enumerate(key[1])])
        named = tuple([(name, numbers[name](arg) if name in numbers else arg) for name, arg in key[2]])
        return (self, args, named, *key[3:])


def _numbers(func: OpOverload) -> dict[int | str, Callable[[Any], Any]]:
    """Places and names of such arguments, and what stands for each in a key."""
    arguments = func._schema.arguments
    fused = any(one.name == "tensor1" for one in arguments)  # addcmul and addcdiv, which multiply by a factor, too
    factors = {"alpha", "value"} | ({"scalars"} if fused else set())
    operands = {"other", "scalar"} | (set() if fused else {"scalars"})
    found: dict[int | str, Callable[[Any], Any]] = {}
    for i, argument in enumerate(arguments):
        name, kind = argument.name, str(argument.type)
        number = kind in ("number", "List[number]")
        if kind == "Tensor" or (number and name in operands):
            found[i] = found[name] = operand_key
        elif number and name in factors:
            found[i] = found[name] = factor_key
        elif kind == "number" or (name == "step" and "optimizer" in func.name()):
            found[i] = found[name] = scalar_key
    return found


_plans: dict[int, Plan] = {}


def _kind(func: Any) -> int:
    if isinstance(func, HigherOrderOperator):
        return _HIGHER
    if not isinstance(func, OpOverload):
        return _PLAIN
    if func.namespace == "profiler":  # marks of a span
        return _SILENT
    if func.namespace == "prim":  # answers about a tensor (prim.device)
        return _VIEW
    has = torch._C._dispatch_has_kernel_for_dispatch_key
    if has(func.name(), "CompositeImplicitAutograd") and not (has(func.name(), "CPU") or has(func.name(), "CUDA")):
        return _COMPOSITE  # of silu_backward there are both, which round differently: the device's own is what runs
    returns = func._schema.returns
    aliases = [value.alias_info for value in returns]
    if returns and all(alias is not None and not alias.is_write for alias in aliases):
        return _VIEW
    if len(returns) == 1 and aliases[0] is not None and aliases[0].is_write:
        return _IN_PLACE
    return _PLAIN
