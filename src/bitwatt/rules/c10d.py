"""Collectives of torch.distributed."""

from bitwatt.registry import free
from bitwatt.rules._collectives import collective

collective("c10d", "allreduce_ allreduce_coalesced_ reduce_", "Added up over the ranks")
collective(
    "c10d", "allgather_ _allgather_base_ allgather_coalesced_ allgather_into_tensor_coalesced_ gather_", "Gathered"
)
collective("c10d", "reduce_scatter_ _reduce_scatter_base_ reduce_scatter_tensor_coalesced_", "Added up and shared out")
collective("c10d", "broadcast_ scatter_ alltoall_ alltoall_base_ send recv_ recv_any_source_", "Sent")
free("c10d.barrier", "c10d.monitored_barrier_", "c10d.check_for_nan", reason="ranks wait for each other or check")
