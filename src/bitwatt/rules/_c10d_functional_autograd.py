"""Differentiable collectives: the rules stand beside their functional twins."""

import bitwatt.rules._c10d_functional  # noqa: F401
