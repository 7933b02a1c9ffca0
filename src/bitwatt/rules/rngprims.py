"""Random numbers of functionalised programs."""

from bitwatt.rules._tables import written

written("philox_rand", "A number drawn and written", family="random", space="rngprims", random=1)
