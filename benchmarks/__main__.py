"""`python -m benchmarks [decision|latency] [options]`: one of them, or both, where the options are those of latency."""

from __future__ import annotations

import sys

from benchmarks import decision, latency

if __name__ == "__main__":
    name = sys.argv[1] if len(sys.argv) > 1 else ""
    if name == "decision":
        sys.exit(decision.main(sys.argv[2:]))
    if name == "latency":
        del sys.argv[1]
        sys.exit(latency.main())
    sys.exit(decision.main([]) | latency.main())
