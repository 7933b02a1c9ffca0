"""Random numbers of compiled programs."""

from bitwatt.registry import free
from bitwatt.rules._tables import written

written("random randint", "A number drawn and written", family="random", space="inductor_prims", random=1)
free(
    *(
        f"inductor_prims.{name}"
        for name in ("seed", "seeds", "lookup_seed", "force_stride_order", "_inductor_bucketize")
    ),
    "inductor_prims.inductor_reserve_rng_state",
    reason="seeds and layouts, no data moves",
)
