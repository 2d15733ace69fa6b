"""Measures how soon capacity covers demand after a jump of the load, phase by phase: `python -m benchmarks jumps`.

Two hours of 1.5 cores of work, and then 2, 5 or 10 times that, permanently: under an HPA alone, an HPA with a VPA and
joint scaling, with pods replaced and resized in place, with the timing and the rules of `python -m benchmarks joint`.
The seed draws the phases of the controllers, so the figures are medians over seeds, with minimum and maximum.
`--cluster` measures the same on a local control plane (`benchmarks.joint.live`).

*Capacity* is the longest time with unmet demand. The phases before it: until a measurement showed the jump, until the
HPA synced, until the change was made, until all new pods were ready. The goal is half of the HPA's time in place.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from benchmarks.joint import live
from benchmarks.joint.kept import Felt, Phases, keep_jumps
from benchmarks.joint.loads import LoadCase
from benchmarks.joint.policies import BASELINE, DEFAULT_TARGET, POLICIES, POLICY, WORKLOADS, Case, headroom
from benchmarks.joint.report import Rows, markdown, median
from benchmarks.joint.run import SCENARIO, scenario_of, write_scenario
from hvpa_lab.simulate.engine import quiet, simulate
from hvpa_lab.simulate.model import Reaction
from hvpa_lab.simulate.scenario.read import load_scenario

JUMPS: Final = (2, 5, 10)
CALM: Final = 7200.0
SEEDS: Final = 9
SHOWN: Final = (
    "HPA/Recreate",
    f"{BASELINE}/Recreate",
    f"{POLICY}/Recreate",
    f"{BASELINE}/InPlace",
    f"{POLICY}/InPlace",
)
"""The policies, the HPA alone first."""
LIVE: Final = (SHOWN[0], *SHOWN[-2:])
"""The policies on the cluster."""
REPEATS: Final = 6
"""Repeats, spread over metrics-server's period. Whether its first measurement after a jump shows all or only part of
the jump matters a lot, and with 3 repeats a single run moves the median."""
WORKLOAD: Final = WORKLOADS[0]
GOAL: Final = 0.5
"""Goal, as a share of the HPA's time until capacity covers demand."""


def main(argv: Sequence[str]) -> int:
    """Print the table; 0 if the goal is met for each jump or the figures are kept, else 1."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks jumps", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--seeds", type=int, default=SEEDS, help=f"how many (default: {SEEDS})")
    parser.add_argument("--cluster", action="store_true", help="on a local control plane: some 15 minutes")
    parser.add_argument(
        "--repeats", type=int, default=REPEATS, help=f"with --cluster, of each jump (default: {REPEATS})"
    )
    parser.add_argument(
        "--keep",
        action="store_true",
        help="keep the simulated jumps in the repository, where the page cites them",
    )
    args = parser.parse_args(argv)
    if args.keep and args.cluster:
        parser.error("--keep is for simulated jumps")
    if min(args.seeds, args.repeats) < 1:
        parser.error("--seeds and --repeats: at least 1")
    if args.cluster:
        results = on_cluster(args.repeats)
    else:
        quiet()
        results = [felt(policy, times, range(args.seeds)) for times in JUMPS for policy in SHOWN]
    print(table(results))
    ratios = ", ".join(f"× {times}: {ratio:.2f}" for times, ratio in in_place_beside_hpa(results).items())
    print(f"In place beside an HPA alone: {ratios} (goal: {GOAL})")
    if args.keep:
        keep_jumps(results)
        return 0
    return 0 if all(ratio <= GOAL for ratio in in_place_beside_hpa(results).values()) else 1


def felt(policy: str, times: int, seeds: Sequence[int]) -> Felt:
    """Simulate this jump under this policy with these seeds."""
    (case,) = [policy_case for policy_case in POLICIES if policy_case.full_name == policy]
    formula = f"{live.WORK / 1000:g} * (1 if t < {CALM:g} else {times})"
    load = LoadCase("jump", {"formula": formula, "noise": 0.02}, CALM + 1800)
    fields = scenario_of(load, Case(WORKLOAD, headroom(DEFAULT_TARGET), case.resize), [case])
    reactions = []
    with TemporaryDirectory() as folder:
        path = write_scenario(Path(folder) / SCENARIO, fields, "", "")
        for seed in seeds:
            scenario = load_scenario(path, seed)
            reactions.append(simulate(scenario, scenario.policies[0]).reactions[-1])
    return Felt(policy, times, tuple(map(phases, reactions)))


def phases(reaction: Reaction) -> Phases:
    """Convert a reaction to its kept form."""
    measured = (
        None
        if reaction.tolerance is None or reaction.metric_age is None
        else reaction.tolerance + reaction.metric_age
    )
    return Phases(reaction.cover_seconds, measured, reaction.hpa_period, reaction.gates, reaction.start_up)


def on_cluster(repeats: int) -> list[Felt]:
    """Measure all jumps concurrently on a local control plane."""
    reactions = live.run([policy for policy in POLICIES if policy.full_name in LIVE], JUMPS, repeats)
    return [
        Felt(policy, times, tuple(map(phases, reactions[policy, times])))
        for times in JUMPS
        for policy in LIVE
    ]


def in_place_beside_hpa(results: Sequence[Felt]) -> dict[int, float]:
    """Return the time of joint scaling in place as a share of the HPA's, for each jump."""
    covers = {(result.policy, result.times): result.cover for result in results}
    return {
        times: covers[SHOWN[-1], times] / covers[SHOWN[0], times]
        for times in JUMPS
        if (SHOWN[0], times) in covers
    }


def table(results: Sequence[Felt]) -> str:
    """Return a row for each jump and policy; seconds."""
    rows: Rows = [
        (
            "jump",
            "policy",
            "capacity",
            "least to largest",
            "measured",
            "HPA looks",
            "change made",
            "pods ready",
        )
    ]
    for result in results:
        cover, *others = zip(*result.phases, strict=True)
        rows.append(
            (
                f"× {result.times}",
                result.policy.replace("/Recreate", ", replaced").replace("/InPlace", ", in place"),
                f"{result.cover:.0f}",
                f"{min(cover):.0f} to {max(cover):.0f}",
                *map(_median, others),
            )
        )
    return markdown(rows)


def _median(seconds: Sequence[float | None]) -> str:
    middle = median(seconds)
    return "–" if middle is None else f"{middle:.0f}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
