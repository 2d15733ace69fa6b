"""The cost of a simulated month by policy: a workload at 15 s steps, each policy in a process of its own.

The load always changes (a daily and a weekly wave, and noise), so every sync of the HPA finds a new value and the
operator decides at nearly every step. Noise of 2 percent corresponds to 200 independent requests per second within 15
seconds (1 / sqrt(3000)). With 5 percent the HPA's recommendation changes every few minutes, and each change is written.
Seconds depend on the machine; compare the ratios to a fixed size, which is the workload's pods alone, simulated in the
same run.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from hvpa_lab.simulate.engine import quiet, simulate
from hvpa_lab.simulate.scenario.read import load_scenario

GOAL_SECONDS = 20.0
GOAL_MIB = 200
DAYS = 30
NOISE = 0.02
"""Relative standard deviation of each step's load."""
SCENARIO = """
name: A month
duration: {days}d
step: 15s
load: {{formula: "200 + 120 * sin(2 * pi * t / day) + 30 * sin(2 * pi * t / week)", noise: {noise}}}
workload:
  kind: Deployment
  name: web
  replicas: 3
  startUp: 30s
  containers:
    - name: app
      requests: {{cpu: 500m, memory: 512Mi}}
      limits: {{memory: 2Gi}}
      cpu: {{base: 20m, perUnit: 10m}}
      memory: {{base: 200Mi, perUnit: 1Mi}}
nodes: {{cpu: 8, memory: 32Gi, startUp: 2m}}
policies:
  - name: Fixed
    fixed: {{replicas: 6}}
  - name: HPA
    hpa: &hpa {{minReplicas: 2, maxReplicas: 10, metrics: &metrics [*cpu]}}
  - name: VPA
    vpa: {{}}
  - name: HPA + VPA
    hpa: *hpa
    vpa: {{}}
  - name: Hvpa
    hvpa:
      apiVersion: autoscaling.k8s.io/v1alpha1
      kind: Hvpa
      metadata: {{name: web}}
      spec:
        targetRef: {{apiVersion: apps/v1, kind: Deployment, name: web}}
        hpa:
          deploy: true
          template: {{spec: *hpa}}
          scaleDown: {{stabilizationDuration: 5m}}
        vpa:
          deploy: true
          scaleDown: {{stabilizationDuration: 1h}}
        weightBasedScalingIntervals:
          - {{vpaWeight: 50, startReplicaCount: 1, lastReplicaCount: 10}}
""".replace(
    "[*cpu]",
    "[{{type: Resource, resource: {{name: cpu, target: {{type: AverageValue, averageValue: 400m}}}}}}]",
)


class Cost(NamedTuple):
    """The cost of a run: CPU seconds, the process's peak memory in MiB, and the number of steps."""

    seconds: float
    mebibytes: float
    steps: int


def run(path: Path, policy: str) -> Cost:
    """Simulate one policy in this process."""
    quiet()
    began = time.process_time()
    scenario = load_scenario(path, 1)
    chosen = next(chosen for chosen in scenario.policies if chosen.name == policy)
    result = simulate(scenario, chosen)
    seconds = time.process_time() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return Cost(seconds, peak, len(result.series.load))


def main(argv: Sequence[str]) -> int:
    """Run the benchmark; 0 if the goals are met, else 1."""
    summary = (__doc__ or "").splitlines()[0]
    parser = argparse.ArgumentParser(prog="python -m benchmarks simulation", description=summary)
    parser.add_argument("--days", type=float, default=DAYS, help=f"simulated days (default: {DAYS})")
    parser.add_argument(
        "--policy", action="append", help="only these (repeatable; the fixed size always runs)"
    )
    parser.add_argument("--noise", type=float, default=NOISE, help=f"of the load (default: {NOISE})")
    args = parser.parse_args(argv)
    policies = ["Fixed", "HPA", "VPA", "HPA + VPA", "Hvpa"]
    if args.policy:
        policies = ["Fixed", *(name for name in policies[1:] if name in args.policy)]
    costs: dict[str, Cost] = {}
    with TemporaryDirectory() as folder:
        path = Path(folder) / "month.yaml"
        path.write_text(SCENARIO.format(days=args.days, noise=args.noise))
        for policy in policies:
            with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as alone:
                costs[policy] = alone.submit(run, path, policy).result()
    print(
        f"{args.days:g} simulated days, steps of 15 s, noise {args.noise:.0%}; each policy alone on one core\n"
    )
    print(f"{'policy':<12}{'CPU':>10}{'a step':>12}{'ratio':>8}{'memory':>11}")
    for policy, cost in costs.items():
        each, floor = cost.seconds / cost.steps, costs["Fixed"].seconds / costs["Fixed"].steps
        print(
            f"{policy:<12}{cost.seconds:>8.1f} s{each * 1e6:>9.1f} us{each / floor:>8.1f}{cost.mebibytes:>7.0f} MiB"
        )
    worst = costs[policies[-1]]
    allowed = GOAL_SECONDS * args.days / DAYS
    met = worst.seconds <= allowed and worst.mebibytes <= GOAL_MIB
    print(f"\ngoal: {policies[-1]} in {allowed:g} s of CPU and {GOAL_MIB} MiB: {'met' if met else 'NOT met'}")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
