"""Which GPUs CUDA_VISIBLE_DEVICES leaves to a program, worked out as CUDA does, without starting it."""

from __future__ import annotations

import os
from typing import Any


def chosen(nvml: Any, visible: str | None) -> tuple[list[tuple[Any, list[str]]], list[str]]:
    """((handle, the MIG instances of it that are named), ...) and notes; all GPUs where nothing is said."""
    handles = [nvml.nvmlDeviceGetHandleByIndex(index) for index in range(nvml.nvmlDeviceGetCount())]
    if visible is None:
        return [(handle, []) for handle in handles], []
    by_uuid = {nvml.nvmlDeviceGetUUID(handle): handle for handle in handles}
    slices: dict[str, list[str]] = {}
    notes: list[str] = []
    for name in (part.strip() for part in visible.split(",")):
        uuid, part = _find(nvml, name, list(by_uuid))
        if uuid is None:
            break  # CUDA, too, stops at the first name that it does not know
        slices.setdefault(uuid, [])
        slices[uuid] += [part] if part else []
        if name.isdecimal() and not notes:
            notes += _order(nvml, handles)
    return [(by_uuid[uuid], parts) for uuid, parts in slices.items()], notes


def _find(nvml: Any, name: str, uuids: list[str]) -> tuple[str | None, str]:
    """The GPU of a name, which may be a number, the beginning of a UUID, or a MIG instance; and the instance."""
    if name.isdecimal():
        return (uuids[int(name)], "") if int(name) < len(uuids) else (None, "")
    if name.startswith("MIG-GPU-"):  # the older way to write one: MIG-<UUID of the GPU>/<instance>/<instance>
        parent = name.removeprefix("MIG-").partition("/")[0]
        return (parent, name) if parent in uuids else (None, "")
    if name.startswith("MIG-"):
        try:
            instance = nvml.nvmlDeviceGetHandleByUUID(name)
            return nvml.nvmlDeviceGetUUID(nvml.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(instance)), name
        except nvml.NVMLError:
            return None, ""
    found = [uuid for uuid in uuids if name and uuid.startswith(name)]
    return (found[0], "") if len(found) == 1 else (None, "")


def _order(nvml: Any, handles: list[Any]) -> list[str]:
    """CUDA counts from the fastest GPU, the driver by place on the bus: that differs only where GPUs do."""
    if os.environ.get("CUDA_DEVICE_ORDER") == "PCI_BUS_ID" or len({nvml.nvmlDeviceGetName(h) for h in handles}) < 2:
        return []
    return [
        "GPUs differ, and CUDA may number them otherwise than the driver: set CUDA_DEVICE_ORDER=PCI_BUS_ID to be sure"
    ]
