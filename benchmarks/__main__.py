"""`python -m benchmarks [NAME] [options]`: runs one of decision, simulation, client, scale, policies, resizes, joint,
arena, jumps, hostile, node, kubelets, fast, export, report and dashboard.

Without a name it runs the first four in order, with a simulation of three days, and scale with 100 and 2,000 Hvpas
(scale's own default includes 10,000). `jumps --cluster` measures on a local control plane the jumps that `jumps`
simulates.
"""

from __future__ import annotations

import sys
from importlib import import_module

MODULES = {
    "decision": "benchmarks.decision",
    "simulation": "benchmarks.simulation",
    "client": "benchmarks.client",
    "scale": "benchmarks.scale.command",
    "policies": "benchmarks.policies",
    "resizes": "benchmarks.resizes",
    "joint": "benchmarks.joint.command",
    "arena": "benchmarks.arena.command",
    "jumps": "benchmarks.joint.jumps",
    "hostile": "benchmarks.hostile.command",
    "node": "benchmarks.node.command",
    "kubelets": "benchmarks.kubelets",
    "fast": "benchmarks.fast",
    "export": "benchmarks.export",
    "report": "benchmarks.report",
    "dashboard": "benchmarks.dashboard",
}
ALL = {"decision": [], "simulation": ["--days", "3"], "client": [], "scale": ["--hvpas", "100,2000"]}
"""Benchmarks that run without a name, and their options."""


def run(name: str, options: list[str]) -> int:
    """Run a benchmark. Only that benchmark is imported: its workers import it again, and their memory is measured."""
    return int(import_module(MODULES[name]).main(options))


def main() -> int:
    """Run the requested benchmarks; 0 if every goal was met."""
    if len(sys.argv) == 1:
        return max([run(name, options) for name, options in ALL.items()])
    name, *options = sys.argv[1:]
    if name not in MODULES:
        print(f"there is no benchmark {name!r}; there are {', '.join(MODULES)}", file=sys.stderr)
        return 2
    return run(name, options)


if __name__ == "__main__":  # workers of the simulation import this module again
    sys.exit(main())
