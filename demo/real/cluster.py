"""The demo on real nodes: its control plane, requests to the ready pods, and the resources that the kernel grants their
containers. After the Hvpa an HPA and a VPA scale the same workload, in a separate namespace."""

from __future__ import annotations

import string
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import yaml

from demo.demo_cluster import NAME, DemoCluster, Json, Report
from demo.options import SizeStrategy
from demo.real.comparison import Run, Sample
from demo.scenario import Scenario
from demo.snapshot import Snapshot
from localcluster.client.api import wait_for
from localcluster.controlplane.controlplane import ControlPlane
from localcluster.controlplane.flags import AutoscalerSettings
from localcluster.node.cgroups import Granted
from localcluster.node.config import IMAGE, Size
from localcluster.process import Process, free_port
from localcluster.programs.build import build, build_node
from localcluster.vpa import VpaActs
from localcluster.workloads.load import await_pods
from localcluster.workloads.traffic import REQUEST_CPU, TIMEOUT_SECONDS, Answers, Traffic

HERE = Path(__file__).resolve().parent
_GONE_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class RunningContainer:
    """A running container: its resources granted by the kernel, and its number of restarts."""

    pod: str
    granted: Granted
    restarts: int


class RealCluster(DemoCluster[Traffic]):
    """The workload on real nodes, scaled by an Hvpa."""

    def __init__(
        self,
        plane: ControlPlane,
        operator: Process,
        account: str,
        scenario: Scenario,
        sizes: SizeStrategy,
        *,
        fast: bool = False,
    ) -> None:
        super().__init__(plane, operator, account, scenario, sizes)
        self._fast = fast
        self.needs_usual = False  # pods that are resized in place follow the last minutes
        self._port = free_port()
        self._samples: list[Sample] = []
        self.containers: list[RunningContainer] = []
        """At the last look."""
        self.load = Traffic(
            plane.api,
            self.namespace,
            f"app={NAME}",
            self._port,
            build_node()["traffic"],
            plane.folder,
            lambda: scenario.cpu(self.elapsed) / REQUEST_CPU,
        )

    def manifest(self, name: str) -> Json:
        """The object in a file of the demo on real nodes."""
        (manifest,) = self.manifests(name)
        if self._fast and manifest["kind"] == "Hvpa":
            manifest["spec"]["fastSignal"] = {"mode": "Raise"}
        return manifest

    def manifests(self, name: str) -> list[Json]:
        """The objects in a file."""
        text = string.Template((HERE / name).read_text()).safe_substitute(
            NAMESPACE=self.namespace, IMAGE=IMAGE, PORT=self._port
        )
        return list(yaml.safe_load_all(text))

    def see(self) -> Snapshot:
        """The workload and its recommenders now."""
        snapshot = super().see()
        self.containers = self._containers()
        self._samples.append(Sample(self.elapsed, snapshot.asked, snapshot.asked_memory))
        return snapshot

    def answers(self) -> dict[int, Answers]:
        """The requests by the second since the load began; requests of the last two seconds have not ended."""
        begin = round(self._began_at.timestamp())
        return {second - begin: answers for second, answers in self.load.answers().items() if second >= begin}

    def result(self, name: str) -> Run:
        """All measurements since the load began."""
        end = self.elapsed
        time.sleep(TIMEOUT_SECONDS + 1)
        return Run(
            name,
            self.answers(),
            [sample for sample in self._samples if 0 < sample.elapsed <= end],
            self.see().restarts,
        )

    def remove(self) -> None:
        """Delete the workload's autoscalers, and then the workload; wait until no pod is left."""
        api = self.plane.api
        for kind in ("Hvpa", "HorizontalPodAutoscaler", "VerticalPodAutoscaler", "Deployment"):
            api.delete(kind, NAME, self.namespace)
        wait_for(lambda: not api.list("Pod", self.namespace), _GONE_SECONDS, "no pod is left")

    def _containers(self) -> list[RunningContainer]:
        nodes = {node.name: node for node in self.plane.nodes}
        containers = []
        for pod in self.plane.api.list("Pod", self.namespace, f"app={NAME}"):
            try:
                granted = nodes[pod["spec"]["nodeName"]].granted(pod)
                status = pod["status"]["containerStatuses"][0]
            except (OSError, KeyError, IndexError):  # not started yet, or gone
                continue
            containers.append(RunningContainer(pod["metadata"]["name"], granted, status["restartCount"]))
        return containers


class RivalCluster(RealCluster):
    """The same workload, scaled by an HPA and a VPA."""

    namespace = "hvpa-demo-hpa-vpa"

    def __init__(
        self, plane: ControlPlane, operator: Process, account: str, scenario: Scenario, sizes: SizeStrategy
    ) -> None:
        super().__init__(plane, operator, account, scenario, sizes)
        self.vpa = VpaActs(plane, self.namespace)
        """Applies the VPA's recommendation to the sizes of pods."""

    def check(self) -> None:
        """Raise `DemoError` or `RuntimeError` when a required process has ended."""
        super().check()
        self.vpa.check()

    def put_up(self) -> None:
        """Create namespace, Deployment, HPA and VPA, and wait for the pods."""
        api = self.plane.api
        api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}})
        for document in (self.manifest("workload.yaml"), *self.manifests("rivals.yaml")):
            api.create(document)
        await_pods(api, self.namespace, NAME)


@contextmanager
def real_plane(report: Report) -> Iterator[ControlPlane]:
    """A control plane with one real node; it is always ended. Raises `BuildError` if a program can't be built, and
    `RuntimeError` if a program does not start."""
    programs = build(report=report)
    build_node(report=report)
    began = time.monotonic()
    # The whole machine, except for the control plane's minimum.
    settings = AutoscalerSettings(reserved=Size(cpu="100m"))
    with ControlPlane(nodes="real", settings=settings, programs=programs) as plane:
        report(f"control plane: {', '.join(plane.processes)} ({time.monotonic() - began:.0f} s)")
        yield plane
