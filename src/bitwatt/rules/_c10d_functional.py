"""Collectives that return new tensors, as DTensor, FSDP2 and compiled programs call them."""

from bitwatt.registry import free
from bitwatt.rules._collectives import collective

for _space in ("_c10d_functional", "_c10d_functional_autograd", "c10d_functional"):
    collective(_space, "all_reduce all_reduce_coalesced", "Added up over the ranks")
    collective(_space, "all_gather_into_tensor all_gather_into_tensor_coalesced all_gather_into_tensor_out", "Gathered")
    collective(_space, "reduce_scatter_tensor reduce_scatter_tensor_coalesced", "Added up and shared out")
    collective(_space, "reduce_scatter_tensor_out", "Added up and shared out")
    collective(_space, "broadcast all_to_all_single isend irecv batch_p2p_ops", "Sent")
free("_c10d_functional.wait_tensor", "c10d_functional.wait_tensor", reason="waiting for a collective")
free("_c10d_functional._wrap_tensor_autograd", reason="a view: no data moves")
