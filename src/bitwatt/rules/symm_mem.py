"""Collectives over symmetric memory."""

from typing import Any

from bitwatt.records import TensorSpec, Work
from bitwatt.registry import rule
from bitwatt.rules._collectives import collective
from bitwatt.rules._tables import Specs, as_twin, idle, written

collective(
    "symm_mem",
    "multimem_all_reduce_ multimem_one_shot_all_reduce multimem_one_shot_all_reduce_out multimem_one_shot_reduce_out "
    "one_shot_all_reduce one_shot_all_reduce_copy one_shot_all_reduce_copy_out one_shot_all_reduce_out "
    "two_shot_all_reduce_ two_shot_all_reduce_out reduce_scatter_out nccl_reduce_scatter_offset tile_reduce "
    "multi_root_tile_reduce _low_contention_reduce_scatter",
    "Added up over the ranks",
)
collective(
    "symm_mem",
    "all_to_all_vdev all_to_all_vdev_2d all_to_all_vdev_2d_offset multimem_all_gather_out nccl_get nccl_put "
    "nccl_put_with_signal nccl_put_signal nvshmem_all_to_all nvshmem_broadcast nvshmem_get nvshmem_put "
    "nvshmem_put_with_signal _low_contention_all_gather get_remote_tensors",
    "Sent",
)
written("memset32_ stream_write_value32_", "Filled.", space="symm_mem")


@rule("symm_mem._async_input_mm", family="matmul")
def async_input_mm(a: TensorSpec, b: TensorSpec, out: Specs = (), **_: Any) -> Work:
    """A matrix product whose rows arrive while it runs: as aten.mm."""
    return as_twin("aten.mm", {"self": a, "mat2": b}, out)


idle(
    "_barrier _rendezvous nccl_wait_for_signal nccl_wait_signal nvshmem_wait_for_signal",
    "ranks wait for each other",
    space="symm_mem",
)
