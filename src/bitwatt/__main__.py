"""`python -m bitwatt` is the bitwatt command."""

import sys

from bitwatt.cli import main

if __name__ == "__main__":
    sys.exit(main())
