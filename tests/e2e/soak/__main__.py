"""`python -m tests.e2e.soak`: random faults for as long as one likes. Exit code: 0 all well, 1 something was wrong."""

from __future__ import annotations

import argparse
import random
import sys

from tests.e2e.soak.plan import schedule
from tests.e2e.soak.run import soak


def main(arguments: list[str]) -> int:
    """Run a soak, or show what one with this seed would do."""
    parser = argparse.ArgumentParser(prog="python -m tests.e2e.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=20, help="how long there are faults (default 20)")
    parser.add_argument("--hvpas", type=int, default=500, help="how many Hvpas (default 500)")
    parser.add_argument("--seed", type=int, help="of the schedule (default: a random one, which is printed)")
    parser.add_argument(
        "--shards", type=int, default=1, help="of the operators (default 1: one of them leads)"
    )
    parser.add_argument("--show", action="store_true", help="print the schedule and end")
    options = parser.parse_args(arguments)
    seed = random.randrange(10**6) if options.seed is None else options.seed
    if options.show:
        print(*schedule(seed, options.minutes * 60, options.hvpas, options.shards), sep="\n")
        return 0
    print(f"soak: seed {seed}", file=sys.stderr, flush=True)
    report = soak(seed, options.minutes, options.hvpas, options.shards)
    print(report)
    return 0 if report.is_good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
