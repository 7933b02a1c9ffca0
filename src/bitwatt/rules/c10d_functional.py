"""The older names of the functional collectives: the rules stand beside the newer ones."""

import bitwatt.rules._c10d_functional  # noqa: F401
