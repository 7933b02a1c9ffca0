"""The state of random generators in compiled programs."""

from bitwatt.rules._tables import idle

idle("inductor_reserve_rng_state", "a seed is read, no data moves", space="inductor_prims")
