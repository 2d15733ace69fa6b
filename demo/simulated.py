"""The demo on simulated nodes: its control plane, a load that is written to the pods as their usage, and the computed
course of an HPA with a VPA under that load."""

from __future__ import annotations

import textwrap
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Final

from demo.demo_cluster import NAME, NAMESPACE, DemoCluster, Report, operator_on, with_sizes
from demo.options import Options, SizeStrategy
from demo.outcome import Rivals
from demo.scenario import BASE_CPU, BASE_MEMORY, Course, Scenario, hpa_beside_vpa, hvpa_alone, used, worth
from demo.snapshot import WIDTH, Snapshot
from localcluster.controlplane import keeper
from localcluster.controlplane.controlplane import ControlPlane
from localcluster.process import Process
from localcluster.programs.build import build
from localcluster.workloads.load import PodLoad

SECONDS = 300.0
"""Length of the load by default."""
_HOUR: Final = 3600


class SimulatedDemo(DemoCluster[PodLoad]):
    """The demo on simulated nodes."""

    def __init__(
        self, plane: ControlPlane, operator: Process, account: str, scenario: Scenario, sizes: SizeStrategy
    ) -> None:
        super().__init__(plane, operator, account, scenario, sizes)
        self._rival: Course = ()
        self.load = PodLoad(
            plane.api,
            NAMESPACE,
            f"app={NAME}",
            cpu=lambda _: scenario.cpu(self.elapsed),
            memory=lambda _: scenario.memory(self.elapsed),
            base_cpu=BASE_CPU,
            base_memory=BASE_MEMORY,
        )

    def begin(self) -> None:
        """Start the clock of the load, from its beginning."""
        self._rival = self._rival or hpa_beside_vpa(self.scenario, round(self.scenario.seconds)).course
        super().begin()

    @property
    def rival(self) -> float | None:
        """Millicores that an HPA with a VPA would request in total at this time; None before the load begins."""
        passed = [state for begin, state in self._rival if begin <= self.elapsed]
        return passed[-1].replicas * (passed[-1].requests.cpu or 0) if passed else None

    def rivals(self) -> Rivals:
        """The course of an HPA with a VPA until now, and the same load over an hour."""
        seconds, slow = round(self.elapsed), replace(self.scenario, seconds=float(_HOUR))
        own = hvpa_alone(slow, _HOUR, with_sizes(self.manifest("hvpa.yaml"), self._sizes))
        hour = [worth(each.course, used(slow), _HOUR) for each in (own, hpa_beside_vpa(slow, _HOUR))]
        other = hpa_beside_vpa(self.scenario, seconds)
        return Rivals(other.course, used(self.scenario), seconds, other.restarts, (hour[0], hour[1]))

    def see(self) -> Snapshot:
        """The workload and its recommenders now."""
        snapshot = super().see()
        if snapshot.limits.cpu is not None:
            # A container gets no more CPU than its limit, for any load.
            self.load.most_cpu = snapshot.limits.cpu
        return snapshot


@contextmanager
def simulated_cluster(chosen: Options, report: Report) -> Iterator[SimulatedDemo]:
    """Start everything, and always stop it at the end. If the demo is left running, this process is the control plane's
    keeper: `make cluster-down` sends it SIGTERM. Raises `BuildError` if a program can't be built, `DemoError` or
    `RuntimeError` if a program does not start, and `KeeperError` if another control plane is running."""
    programs = build(report=report)
    began = time.monotonic()
    with keeper.host(programs) if chosen.keep else ControlPlane(programs=programs) as plane:
        names = f"control plane: {', '.join(plane.processes)} ({time.monotonic() - began:.0f} s)"
        report(textwrap.fill(names, WIDTH, subsequent_indent="  ", break_on_hyphens=False))
        with operator_on(plane, chosen, report) as (operator, user):
            scenario = Scenario(seconds=chosen.seconds or SECONDS)
            put_up = SimulatedDemo(plane, operator, user, scenario, chosen.sizes)
            put_up.put_up_workload(chosen.mode)
            report(f"workload: Deployment and Hvpa {NAMESPACE}/{NAME}")
            with put_up.load:
                yield put_up
