"""`python -m benchmarks [decision|simulation|latency|joint] [options]`: one of them, or the first three one after the
other, the simulation of three days only, where the options are those of latency."""

from __future__ import annotations

import sys

from benchmarks import decision, latency, simulation


def main() -> int:
    """Run what was asked for; 0 when every goal was met."""
    name, options = (sys.argv[1], sys.argv[2:]) if len(sys.argv) > 1 else ("", [])
    if name == "decision":
        return decision.main(options)
    if name == "simulation":
        return simulation.main(options)
    if name == "joint":
        from benchmarks import joint  # what workers of the others need not import: their memory is measured

        return joint.main(options)
    if name == "latency":
        del sys.argv[1]
        return latency.main()
    if name and not name.startswith("-"):
        print(
            f"there is no benchmark {name!r}; there are decision, simulation, latency and joint",
            file=sys.stderr,
        )
        return 2
    return decision.main([]) | simulation.main(["--days", "3"]) | latency.main()


if __name__ == "__main__":  # workers of the simulation import this module again
    sys.exit(main())
