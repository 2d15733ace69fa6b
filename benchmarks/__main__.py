"""`python -m benchmarks`: see `latency.py`."""

from __future__ import annotations

import sys

from benchmarks.latency import main

sys.exit(main())
