"""Ranks of torch.distributed: which one this is, how the model is spread, and when it waits for the others.

Times come from a few places in Python that every program passes whether ops are counted or not: calls of process groups
and waits for them, the end of backward, steps of optimizers. DDP adds up gradients in C++ while backward runs; there
the rank has arrived when its own part of backward is done, which a callback of the engine tells before DDP's own waits.
"""

from __future__ import annotations

import os
import secrets
import time
import weakref
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.optim.optimizer import register_optimizer_step_post_hook

from bitwatt.backends.torch import parallel
from bitwatt.backends.torch.contents import Contents
from bitwatt.backends.torch.device_clock import DeviceClock
from bitwatt.context import phase
from bitwatt.imports import when_imported
from bitwatt.ranks.arrivals import Recorder
from bitwatt.ranks.identity import from_environment, this_rank
from bitwatt.ranks.shares import LEARNING_SHAPES
from bitwatt.records import Axis, Rank

if TYPE_CHECKING:
    from bitwatt.backends.torch.watch import TorchWatch

_now = time.perf_counter
_queue = torch.autograd.Variable._execution_engine.queue_callback
_is_compiling = torch.compiler.is_compiling

#: Methods of a process group that talk to others. Those a torch lacks are passed over.
CALLS = (
    "allreduce", "allreduce_coalesced", "broadcast", "reduce", "allgather", "all_gather_single", "_allgather_base",
    "allgather_coalesced", "all_gather_single_coalesced", "allgather_into_tensor_coalesced", "gather", "scatter",
    "reduce_scatter", "reduce_scatter_single", "_reduce_scatter_base", "reduce_scatter_single_coalesced",
    "reduce_scatter_tensor_coalesced", "alltoall", "alltoall_base", "all_to_all_single", "send", "recv",
    "recv_anysource", "barrier", "monitored_barrier",
)  # fmt: skip
_WORLD = "torch.distributed.distributed_c10d"


def _job(c10d: Any) -> str:
    """One question to the store that is there already: whoever comes first names the job, and nobody waits for anybody.
    Where the backend has none, the launcher's environment tells."""
    proposal = f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(3)}"
    key = f"bitwatt/job/{os.environ.get('TORCHELASTIC_RESTART_COUNT', '0')}"
    try:
        return str(c10d._get_default_store().compare_set(key, "", proposal).decode())
    except Exception:
        told = from_environment()
        return proposal if told is None else told.job


class Collectives:
    """One for each watch. It does nothing until the program has a process group of several ranks."""

    def __init__(self, watch: TorchWatch) -> None:
        self.watch = watch
        self.rank: Rank | None = None
        self.recorder = Recorder()
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.axes: dict[Axis, None] = {}
        self._ddp: Callable[[], Any] = lambda: None  # who adds up gradients in C++
        self._overlap: float | None = None
        self.device: DeviceClock | None = None  # where the model is on a GPU, whose waits the host does not see
        self._optimizer: Any = None  # the one whose steps count
        self._others = 0  # steps of others since
        self._group = ""  # whose call was the last
        self._undo: list[Callable[[], None]] = []

    def install(self) -> list[Callable[[], None]]:
        return [self._take_out, when_imported(_WORLD, self._listen)]

    def _take_out(self) -> None:
        while self._undo:
            self._undo.pop()()

    def _listen(self) -> None:
        """Every way to make the default group goes through one function, which tells."""
        import torch.distributed.distributed_c10d as c10d

        update = c10d._update_default_pg

        def updated(group: Any) -> None:
            if group is None:  # the program ends its groups, perhaps long before it ends itself
                self._attempt(self._meet)
                self._attempt(self._ask)
            update(group)
            if group is not None and self.watch.on:
                self._attempt(self._join)

        c10d._update_default_pg = updated
        self._undo.append(lambda: setattr(c10d, "_update_default_pg", update))
        if c10d.is_initialized():
            self._attempt(self._join)

    def _attempt(self, do: Callable[[], None]) -> None:
        try:
            do()
        except Exception as error:  # the program runs on, and is one rank less in the joined run
            self.watch.failed("torch.distributed", error)

    def _join(self) -> None:
        import torch.distributed.distributed_c10d as c10d

        world = c10d.get_world_size()
        if world < 2 or self.rank is not None:
            return
        self.rank = this_rank(c10d.get_rank(), world, _job(c10d))
        self.watch.contents = Contents()
        self.watch.scopes.listeners.append(lambda module: self._attempt(lambda: self._saw(module)))
        self._time_groups(c10d)
        self._undo.append(when_imported("torch.distributed._functional_collectives", self._time_functional))
        self._undo.append(when_imported("torch.distributed.pipelining.stage", self._see_stages))
        self._undo.append(when_imported("torch.distributed.pipelining.schedules", self._see_schedules))
        self._undo.append(register_optimizer_step_post_hook(self._stepped).remove)

    # -- what is hung in

    def _time_groups(self, c10d: Any) -> None:
        for name in CALLS:
            if name in vars(c10d.ProcessGroup):
                self._replace(c10d.ProcessGroup, name, self._timed(getattr(c10d.ProcessGroup, name)))
        self._replace(c10d.Work, "wait", self._timed_wait(c10d.Work.wait))

    def _replace(self, owner: Any, name: str, ours: Any) -> None:
        before = vars(owner)[name]  # as it lies there: asked for by name, methods of C++ come unbound
        setattr(owner, name, ours)

        def restore() -> None:
            if getattr(owner, name) is ours:
                setattr(owner, name, before)

        self._undo.append(restore)

    def _timed(self, call: Any) -> Any:
        def timed(group: Any, *args: Any, **kwargs: Any) -> Any:
            arrived = _now() if self.device is None else self._arrived()
            try:
                return call(group, *args, **kwargs)
            finally:
                self._group = group.group_name
                self._left(arrived)

        return timed

    def _timed_wait(self, wait: Any) -> Any:
        def timed(work: Any, *args: Any, **kwargs: Any) -> Any:
            arrived = _now() if self.device is None else self._arrived()
            try:
                return wait(work, *args, **kwargs)
            finally:
                self._left(arrived)

        return timed

    def _arrived(self) -> float:
        if self.device is not None:
            self._on_device(self.device.mark)
        return _now()

    def _left(self, arrived: float) -> None:
        """This rank came to the others and goes on now."""
        left = _now()
        if self.device is None:
            self.recorder.waited(arrived, left)
        else:
            self._on_device(self.device.mark)
        self.seconds[self._group] += left - arrived

    def _on_device(self, do: Callable[[], None]) -> None:
        try:
            do()
        except Exception as error:  # the program's step goes on, without a clock
            self.device = None
            self.watch.failed("the device's clock", error)

    def _time_functional(self) -> None:
        import torch.distributed._functional_collectives as functional

        wait = functional.wait_tensor

        def wait_tensor(tensor: Any) -> Any:
            if _is_compiling():
                return wait(tensor)
            arrived = self._arrived()
            try:
                return wait(tensor)
            finally:
                self._left(arrived)

        self._replace(functional, "wait_tensor", wait_tensor)

    def _time_reducing(self, group: str) -> Callable[[Any], None]:
        """A hook for a weight that DDP looks after. What it queues comes before what DDP queues when it has all
        gradients, which is to wait for the others; what is queued then comes after it. Every line here is felt: it runs
        where torch's own code has just filled the processor's caches."""
        arrived, seconds = -1.0, self.seconds

        def has_gradient(_: Any) -> None:
            _queue(own_part_done)

        def own_part_done() -> None:
            nonlocal arrived
            if arrived < 0.0:  # else another weight has told
                arrived = _now() if self.device is None else self._arrived()
                _queue(reduced)

        def reduced() -> None:
            nonlocal arrived
            left = _now()
            if self.device is None:
                self.recorder.waited(arrived, left)
            else:
                self._on_device(self.device.mark)
            seconds[group] += left - arrived
            arrived = -1.0

        return has_gradient

    def _see_stages(self) -> None:
        stages = parallel.stage_class()
        if stages is None:
            return
        forward = stages.forward_one_chunk

        def forward_one_chunk(stage: Any, *args: Any, **kwargs: Any) -> Any:
            if not any(axis.kind == "pipeline" for axis in self.axes):
                self._attempt(lambda: self.axes.setdefault(parallel.stage_axis(stage)))
            return forward(stage, *args, **kwargs)

        self._replace(stages, "forward_one_chunk", forward_one_chunk)

    def _see_schedules(self) -> None:
        """The program in one process need not learn shapes: this work has a phase of its own."""
        for owner, name in parallel.first_looks():
            self._replace(owner, name, phase(LEARNING_SHAPES)(vars(owner)[name]))

    # -- what is seen

    def _saw(self, module: nn.Module) -> None:
        """A model is called for the first time."""
        for ddp, group, weights in parallel.reduced_in_backward(module):
            self._ddp, hook = weakref.ref(ddp), self._time_reducing(group)
            self._undo += [weight.register_post_accumulate_grad_hook(hook).remove for weight in weights]
        self.axes.update(dict.fromkeys(parallel.axes_of(module)))
        if self.device is None and any(parameter.is_cuda for parameter in module.parameters()):
            self.recorder = Recorder()
            self.device = DeviceClock(self.recorder)

    def _stepped(self, optimizer: Any, *_: Any) -> None:
        """Steps are those of one optimizer: a program with two steps as often as the first of them."""
        if self._optimizer != id(optimizer):
            self._others += 1
            if self._optimizer is not None and self._others < 64:
                return
            self._optimizer = id(optimizer)
        self._others = 0
        if self.device is not None:
            self._on_device(self.device.stepped)
        else:
            self.recorder.stepped()

    def _meet(self) -> None:
        """Write down which groups there are, while there are."""
        import torch.distributed.distributed_c10d as c10d

        if self.rank is not None and c10d.is_initialized():
            groups = {group.group_name: parallel.ranks_of(group) for group in list(c10d._world.pg_map)}
            self.rank = replace(self.rank, groups={**self.rank.groups, **groups})

    def _ask(self) -> None:
        """DDP times some of its steps itself: how long gradients took to add up, and how long beside backward."""
        if (ddp := self._ddp()) is not None:
            told = ddp._get_ddp_logging_data()
            if spent := told.get("avg_backward_comm_time"):
                self._overlap = min(1.0, told.get("avg_backward_compute_comm_overlap_time", 0) / spent)

    def facts(self, running: bool = False) -> Rank | None:
        """What is known of this rank so far. DDP is not asked while it is `running`: it may hold a lock."""
        if self.rank is None:
            return None
        self._attempt(self._meet)
        if not running:
            self._attempt(self._ask)
        return replace(
            self.rank,
            axes=tuple(self.axes),
            comm_seconds=dict(self.seconds),
            overlap=self._overlap,
            clock="host" if self.device is None else "cuda",
            arrivals=self.recorder.packed(),
        )
