"""Collectives of DTensor's own."""

from bitwatt.rules._collectives import collective

collective("_dtensor", "shard_dim_alltoall", "Sent")
