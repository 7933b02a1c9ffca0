"""What fully sharded data parallel copies around its collectives."""

from bitwatt.registry import free
from bitwatt.rules._tables import moved

moved("all_gather_copy_in split_with_sizes_copy chunk_cat copy_", "Every element read and written.", space="fsdp")
free("fsdp.set_", reason="memory handed over, nothing moves")
