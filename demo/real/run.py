"""The demo on real nodes from beginning to end: the run of the Hvpa, the run of an HPA and a VPA, and the verdict."""

from __future__ import annotations

from dataclasses import replace

from demo.demo_cluster import NAME, operator_on
from demo.options import Options
from demo.real.cluster import RealCluster, RivalCluster, real_plane
from demo.real.comparison import GOAL, Run, outcome, table
from demo.real.show import RealShow, RivalShow, introduce
from demo.scenario import Scenario
from demo.show import Screen, conclude
from demo.verdict import Verdict
from localcluster.node import node
from localcluster.programs.build import build_vpa
from localcluster.vpa import LIFETIME_SECONDS, UPDATER_SECONDS
from localcluster.workloads.traffic import recovered

SECONDS = 160.0
"""Length of the load by default."""
_LOW, _HIGH = 75.0, 600.0
"""Millicores, at 5 ms of CPU for each request. Slow machines take 8 ms: two pods must still be enough for the low load,
with the overlap, and six pods of the first size too few for the high load where a request takes its 5 ms."""
# As `make deploy` does: new pods begin with their size, just as the VPA's webhook sets it in the comparison.
_CONFIGS = ("default", "size-at-creation")


def why_simulated(chosen: Options) -> str:
    """The reason that the demo's nodes are simulated, in a line; empty if they are real."""
    if chosen.nodes == "simulated":
        return "NODES=simulated"
    if chosen.keep:
        return "KEEP=1 is for them alone"
    if chosen.sizes == "Rollout":
        return "DEMO=rollout is for them alone"
    return node.why_simulated()


def run_on_real_nodes(chosen: Options, screen: Screen) -> int:
    """Run it and return the exit code. Raises the exceptions of starting."""
    scenario = Scenario(seconds=chosen.seconds or SECONDS, low_cpu=_LOW, high_cpu=_HIGH)
    if chosen.compares:
        build_vpa(report=screen.report)
    screen.report("nodes: real (kubelet, containerd, runc): pods are processes of this machine")
    with (
        real_plane(screen.report) as plane,
        operator_on(plane, chosen, screen.report, _CONFIGS) as (operator, user),
    ):
        own = RealCluster(plane, operator, user, scenario, chosen.sizes, fast=chosen.fast)
        own.put_up_workload(chosen.mode)
        screen.report(f"workload: Deployment and Hvpa {own.namespace}/{NAME}")
        if chosen.fast:
            screen.report(
                "with the fast signal (spec.fastSignal): the operator reads the load from the kubelet"
            )
        with own.load:
            introduce(scenario, screen)
            own.await_recommendations(screen.report)
            show = RealShow(own, screen)
            verdict = show.run()
            length, result = own.elapsed, own.result("this Hvpa")
        verdict = replace(verdict, faults=(*verdict.faults, *faults(result, show.grown, scenario)))
        comparison: list[str] = []
        other: Run | None = None
        for fault in verdict.faults:  # known, whatever becomes of the comparison
            screen.report(f"FAILED: {fault}")
        if chosen.compares:
            own.remove()
            rivals = RivalCluster(plane, operator, user, scenario, chosen.sizes)
            other = _run_of_rivals(rivals, screen, length)
            comparison = list(table(result, other, scenario.phases, length))
        last_screen = tuple(outcome(result, other, length))
        conclude(replace(with_more(verdict, comparison), outcome=last_screen), screen)
    return verdict.exit_code


def _run_of_rivals(rivals: RivalCluster, screen: Screen, seconds: float) -> Run:
    with rivals.vpa:
        rivals.put_up()
        for text in (
            "",
            "For comparison the same load on the same node, scaled by an HPA (AverageValue) and a VPA",
            "(InPlaceOrRecreate) with the same bounds and hold before scaling in: the VPA's own recommender, webhook",
            f"and updater, which looks every {UPDATER_SECONDS} s, and {LIFETIME_SECONDS} s after a pod's start at any"
            " difference of a tenth.",
            "",
        ):
            screen.report(text)
        with rivals.load:
            rivals.await_recommendations(screen.report)
            show = RivalShow(rivals, screen, seconds)
            show.watch()
            return rivals.result("HPA and VPA")


def faults(result: Run, grown: set[str], scenario: Scenario) -> list[str]:
    """The parts of the story on real nodes that were not observed; `judge` has the parts of any demo."""
    problems = []
    if not grown:
        problems.append("no running container was granted more CPU")
    begin, end = scenario.phase("rise").start, scenario.phase("fall").start
    if recovered(result.answers, begin, end, GOAL) is None:
        problems.append("latency did not come back within its goal while the load was high")
    return problems


def with_more(verdict: Verdict, comparison: list[str]) -> Verdict:
    """The verdict with more lines of summary."""
    return replace(verdict, summary=(*verdict.summary, *(("", *comparison) if comparison else ())))
