"""`python -m hvpa`: the same as the console script."""

from __future__ import annotations

import sys

from hvpa.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
