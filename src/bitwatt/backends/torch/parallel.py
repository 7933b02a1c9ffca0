"""How a model is spread over ranks, read off the objects that spread it: DDP, FSDP, DTensor, pipeline stages."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from torch import nn

from bitwatt.records import Axis, spread

#: Of a model that may leave out weights, about so many are asked whether backward has reached them.
_ASKED = 4


def ranks_of(group: Any) -> str:
    from torch.distributed.distributed_c10d import get_process_group_ranks

    return spread(get_process_group_ranks(group))


def axes_of(module: nn.Module) -> Iterator[Axis]:
    """The axes along which `module`, a whole model, is spread. Axes of one rank are none."""
    found = {axis.ranks: axis for child in module.modules() for axis in _data(child)}
    for child in module.modules():
        for parameter in child.parameters(recurse=False):
            for axis in _tensor(parameter):
                found.setdefault(axis.ranks, axis)  # FSDP's own shards are DTensors too, on the axis it has named
    return (axis for axis in found.values() if not axis.ranks.isdigit())


def reduced_in_backward(module: nn.Module) -> Iterator[tuple[nn.Module, str, list[nn.Parameter]]]:
    """Where C++ adds up gradients while backward runs, and Python sees none of it: who does, the group, and a weight
    that tells when backward has come so far; a few, where any of them may be left out."""
    for child in module.modules():
        if _is(child, "DistributedDataParallel"):
            trained = [parameter for parameter in child.parameters() if parameter.requires_grad]
            asked = trained[:: max(1, len(trained) // _ASKED)] if child.find_unused_parameters else []
            if trained:
                yield child, str(child.process_group.group_name), [*asked, trained[-1]]


def _data(module: nn.Module) -> Iterator[Axis]:
    if _is(module, "DistributedDataParallel") or _is(module, "FullyShardedDataParallel"):
        yield Axis("data", ranks_of(module.process_group), type(module).__name__)
    elif _is(module, "FSDPModule"):
        source = "replicate" if _is(module, "ReplicateModule") else "fully_shard"
        info = getattr(module._get_fsdp_state()._fsdp_param_group, "mesh_info", None)
        for name in ("shard_process_group", "replicate_process_group"):
            group = getattr(info, name, None)
            if group is not None:
                yield Axis("data", ranks_of(group), source)


def _tensor(parameter: Any) -> Iterator[Axis]:
    if _is(parameter, "DTensor"):
        mesh = parameter.device_mesh
        for dim in range(mesh.ndim):
            yield Axis("tensor", ranks_of(mesh.get_group(dim)), "DTensor")


def stage_axis(stage: Any) -> Axis:
    """Of one stage of a pipeline."""
    return Axis("pipeline", ranks_of(stage.group) if stage.group is not None else _everyone(), type(stage).__name__)


def _everyone() -> str:
    from torch.distributed.distributed_c10d import get_world_size

    return spread(range(get_world_size()))


def _is(thing: Any, name: str) -> bool:
    """By the name of a class, so that nothing is imported that the program did not."""
    return any(kind.__name__ == name and kind.__module__.startswith("torch.") for kind in type(thing).__mro__)


def stage_class() -> Any:
    """torch's pipeline stages, if the program has imported them."""
    return getattr(sys.modules.get("torch.distributed.pipelining.stage"), "_PipelineStageBase", None)


def first_looks() -> Iterator[tuple[Any, str]]:
    """Where schedules of pipelines let their stages run once on made-up numbers, to learn what they will exchange."""
    schedules = sys.modules.get("torch.distributed.pipelining.schedules")
    for kind, name in (("Single", "_initialize_stage"), ("Multi", "_initialize_stages")):
        owner = getattr(schedules, f"PipelineSchedule{kind}", None)
        if owner is not None and name in vars(owner):
            yield owner, name
