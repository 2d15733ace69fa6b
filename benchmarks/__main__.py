"""`python -m benchmarks [decision|simulation|client|latency|scale|joint] [options]`: one of them, or all but joint one
after the other, the simulation of three days only. The options are those of latency then, but for `--hvpas N,…`, which
are the sizes of scale (100 and 2,000 by default; its own default is 10,000 too)."""

from __future__ import annotations

import argparse
import sys

from benchmarks import client, decision, latency, simulation


def main() -> int:
    """Run what was asked for; 0 when every goal was met."""
    name, options = (sys.argv[1], sys.argv[2:]) if len(sys.argv) > 1 else ("", [])
    if name == "decision":
        return decision.main(options)
    if name == "simulation":
        return simulation.main(options)
    if name == "client":
        return client.main(options)
    if name == "joint":
        from benchmarks.joint import (
            command as joint,  # what workers of the others need not import: their memory is measured
        )

        return joint.main(options)
    if name == "scale":
        from benchmarks.scale import command as scale

        return scale.main(options)
    if name == "latency":
        del sys.argv[1]
        return latency.main()
    if name and not name.startswith("-"):
        print(
            f"there is no benchmark {name!r}; there are decision, simulation, client, latency, scale and joint",
            file=sys.stderr,
        )
        return 2
    parser = argparse.ArgumentParser(prog="python -m benchmarks", add_help=False)
    parser.add_argument("--hvpas", default="100,2000")
    known, sys.argv[1:] = parser.parse_known_args()
    first = decision.main([]) | simulation.main(["--days", "3"]) | client.main([]) | latency.main()
    from benchmarks.scale import command as scale

    return first | scale.main(["--hvpas", known.hvpas])


if __name__ == "__main__":  # workers of the simulation import this module again
    sys.exit(main())
