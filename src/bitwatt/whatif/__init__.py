"""What if a run had been computed in other formats: `what_if` and `sweep`. Nothing is run again."""

from bitwatt.whatif.comparison import WhatIf, what_if
from bitwatt.whatif.figures import Figure
from bitwatt.whatif.sweeping import Sweep, sweep

__all__ = ["Figure", "Sweep", "WhatIf", "sweep", "what_if"]
