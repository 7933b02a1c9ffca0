"""`python -m bitwatt.cli`: the bitwatt command."""

import sys

from bitwatt.cli import main

sys.exit(main())
