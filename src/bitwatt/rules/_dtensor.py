"""Collectives of DTensor's own."""

from bitwatt.rules._collectives import collective
from bitwatt.rules._tables import idle

idle("mesh_get_process_group", "a question about the mesh", space="_dtensor")
collective("_dtensor", "shard_dim_alltoall", "Sent")
