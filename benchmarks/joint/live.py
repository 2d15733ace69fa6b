"""The jumps of `python -m benchmarks jumps --cluster`, on the control plane of `localcluster`.

Each policy under each jump is a separate workload, so that all run at the same time in a single cluster, with its real
HPA controller, metrics-server, VPA recommender and operator. The objects are those of the simulator's scenarios. The
periods are Kubernetes' defaults. Pods take 30 seconds to start, resizes 5, and usage is reported as the mean of 15
seconds, 10 seconds late. Repeats are spread evenly over metrics-server's period.

Differences from the simulator: there is no updater and no admission controller of the VPA, so its recommendations reach
no pod; nodes are never full; the load has no noise; a container that ran out of memory is ready again at once.
`minHistory` of an Hvpa is a minute, so that the calm phase need not take an hour.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final, NamedTuple

from benchmarks.joint.loads import LoadCase
from benchmarks.joint.policies import (
    DEFAULT_TARGET,
    POLICY,
    REQUEST,
    RESIZE_DELAY,
    WORKLOADS,
    Case,
    PolicyCase,
    headroom,
)
from benchmarks.joint.run import scenario_of
from hvpa.api.values.quantity import parse_cpu, parse_memory
from hvpa_lab.simulate.model import Reaction
from localcluster.client.api import Json, KubeApi
from localcluster.controlplane.controlplane import ControlPlane
from localcluster.controlplane.flags import AutoscalerSettings
from localcluster.controlplane.manifests import (
    CPU_ANNOTATION,
    MEMORY_ANNOTATION,
    MEMORY_LIMIT_ANNOTATION,
    RESIZE_ANNOTATION,
    START_UP_ANNOTATION,
)
from localcluster.operator.operator import NAMESPACE, Operator, install_operator_rbac
from localcluster.workloads import samples
from localcluster.workloads.load import Delayed, PodLoad, await_pods

SETTINGS: Final = AutoscalerSettings(
    hpa_sync_period="15s",
    hpa_cpu_initialization_period="5m0s",
    hpa_initial_readiness_delay="30s",
    metric_resolution="15s",
    recommender_interval="1m",
    cpu_half_life="24h",
    memory_half_life="24h",
    memory_aggregation_interval="24h",
    memory_aggregation_count=8,
    pod_min_cpu_millicores=25,
    pod_min_memory_megabytes=250,
    node_cpu="256",
    node_memory="1024Gi",
)
"""Defaults of Kubernetes and of the VPA, as in the simulator, and nodes with room for all."""
PERIOD: Final = 15.0
"""metrics-server's period in seconds."""
REPORTED: Final = Delayed(delay=10.0, window=PERIOD)
WORK: Final = 1500.0
"""Millicores of work in the calm phase, here and in the simulation (`jumps`)."""
REPLICAS: Final = 2
"""Replicas of each workload in the calm phase."""
BURST: Final = 1.2
"""Most CPU of a pod as a multiple of its request (the scenarios' `nodes.headroom`)."""
TOLERANCE: Final = 1.1
"""Usage as a multiple of the HPA's target from which the HPA adds replicas."""
CALM: Final = 210.0
"""Seconds from the first pods until the first jump."""
LOOK: Final = 0.5
QUIET: Final = 60.0
"""A workload is done after this number of seconds with covered demand and ready pods."""
LIMIT: Final = 540.0
"""Seconds after which a workload is no longer observed."""
NAME: Final = "jumps"


# --- observations and results ----------------------------------------------------------------------------------------
class WorkloadObservation(NamedTuple):
    """A workload at one time."""

    at: float
    """Seconds since its jump."""
    unmet: bool
    """Whether demand is unmet."""
    shown: bool
    """Whether the metrics API shows more than the target and the HPA's tolerance."""
    looked: bool
    """Whether the HPA desires more replicas than before the jump."""
    grown: bool
    """Whether replicas or requests are larger than before."""
    settled: bool
    """Whether all pods are ready with the resources of their spec."""


def reaction(observations: Sequence[WorkloadObservation]) -> Reaction:
    """Return the reaction to a jump, by the simulator's definitions: `cover_seconds` is the longest continuous time
    with unmet demand. Example: demand that is unmet from 0 to 50 s and from 60 to 65 s gives 50."""
    shown = _first(observations, lambda observation: observation.shown)
    looked = _first(observations, lambda observation: observation.looked)
    grown = _first(observations, lambda observation: observation.grown)
    if grown is not None and (looked is None or looked > grown):
        looked = shown = None  # the HPA was not the reason for growing
    ready = (
        None
        if grown is None
        else _first(observations, lambda observation: observation.settled and observation.at > grown)
    )
    longest = current = unmet = 0.0
    for observation, following in pairwise(observations):
        length = following.at - observation.at
        current = current + length if observation.unmet else 0.0
        unmet += length * observation.unmet
        longest = max(longest, current)
    return Reaction(
        start=0.0,
        end=0.0,
        tolerance=None if shown is None else 0.0,
        metric_age=shown,
        hpa_period=_between(shown, looked),
        gates=_between(looked, grown),
        start_up=_between(grown, ready),
        unmet_seconds=unmet,
        total=grown,
        cover_seconds=longest,
        covered=not observations[-1].unmet,
    )


def _first(
    observations: Sequence[WorkloadObservation], holds: Callable[[WorkloadObservation], bool]
) -> float | None:
    return next((observation.at for observation in observations if holds(observation)), None)


def _between(start: float | None, end: float | None) -> float | None:
    return None if start is None or end is None else max(0.0, end - start)


def is_met(work: float, base: float, applied: Sequence[int]) -> bool:
    """Whether ready pods with these CPU requests (millicores) serve the work. They share it equally in addition to
    their base, and use up to `BURST` times their request. Example: two pods of 1267m with a base of 20m serve 3000m."""
    return bool(applied) and all(work / len(applied) + base <= BURST * request for request in applied)


# --- objects ---------------------------------------------------------------------------------------------------------
@dataclass(slots=True)
class JumpingWorkload:
    """A policy under a jump."""

    name: str
    """Its Deployment."""
    policy: PolicyCase
    times: int
    delay: float
    """Seconds from the end of the calm phase until the jump."""
    target: float
    """Millicores that its HPA lets a pod use."""
    load: PodLoad
    jumped: float | None = None
    before: tuple[int, int] = (0, 0)
    """Replicas, and millicores of the largest pod, at the jump."""
    observations: list[WorkloadObservation] = field(default_factory=list)
    """Observations since the jump."""

    def jump(self, before: tuple[int, int]) -> None:
        """Multiply the work by `times` from now on."""
        self.before, self.jumped = before, time.monotonic()
        self.load.cpu, self.load.memory = work(self.times)

    @property
    def done(self) -> bool:
        """Whether demand has been covered by pods that are all ready for `QUIET` seconds."""
        if not self.observations:
            return False
        now = self.observations[-1].at
        late = [observation for observation in self.observations if observation.at >= now - QUIET]
        quiet = now > QUIET and all(
            observation.settled and observation.grown and not observation.unmet for observation in late
        )
        return quiet or now > LIMIT


def work(times: int) -> tuple[float, float]:
    """Return millicores and bytes of the work, in the calm phase (times 1) or after a jump, without the pods' base."""
    cores = WORK / 1000 * times
    return WORK * times, cores * float(WORKLOADS[0].memory_per_core)


def objects(name: str, policy: PolicyCase) -> list[Json]:
    """Return the Deployment and its scalers, as in the simulator's scenario."""
    case = Case(WORKLOADS[0], headroom(DEFAULT_TARGET), policy.resize)
    scenario = scenario_of(LoadCase("jump", {}, 3600.0), case, [policy])
    (container,) = scenario["workload"]["containers"]
    use = {
        CPU_ANNOTATION: case.workload.base_cpu,
        MEMORY_ANNOTATION: case.workload.base_memory,
        START_UP_ANNOTATION: scenario["workload"]["startUp"],
        RESIZE_ANNOTATION: RESIZE_DELAY,
        MEMORY_LIMIT_ANNOTATION: "Enforced",
    }
    deployment = samples.deployment(
        name, NAME, replicas=REPLICAS, limits=container["limits"], annotations=use, **REQUEST
    )
    target, fields = samples.target_of(deployment), scenario["policies"][0]
    metadata = {"name": name, "namespace": NAME}
    made = [deployment]
    if "hpa" in fields:
        kind = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": metadata}
        made.append({**kind, "spec": {"scaleTargetRef": target, **fields["hpa"]}})
    if "vpa" in fields:
        kind = {"apiVersion": "autoscaling.k8s.io/v1", "kind": "VerticalPodAutoscaler", "metadata": metadata}
        made.append({**kind, "spec": {"targetRef": target, **fields["vpa"]}})
    if "hvpa" in fields:
        spec = fields["hvpa"]["spec"]
        vpa = {**spec["vpa"], "scaleDown": {"minHistory": "1m"}}
        made.append(
            {**fields["hvpa"], "metadata": metadata, "spec": {**spec, "targetRef": target, "vpa": vpa}}
        )
    return made


def _requested(pod: Json) -> int:
    """Return the CPU request in the pod's spec."""
    return parse_cpu(pod["spec"]["containers"][0]["resources"]["requests"]["cpu"])


def applied(pod: Json) -> Json:
    """Return the resources that the kubelet has applied, or those of the spec if the pod has not started."""
    statuses = pod["status"].get("containerStatuses") or [{}]
    resources: Json = statuses[0].get("resources") or pod["spec"]["containers"][0]["resources"]
    return resources


def _most(pod: Json) -> float:
    return BURST * parse_cpu(applied(pod)["requests"]["cpu"])


def _is_ready(pod: Json) -> bool:
    conditions = pod["status"].get("conditions") or ()
    return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)


# --- the run ---------------------------------------------------------------------------------------------------------
def run(
    policies: Sequence[PolicyCase], jumps: Sequence[int], repeats: int
) -> dict[tuple[str, int], list[Reaction]]:
    """Return the reactions of each policy to each jump, all in a new cluster."""
    with ControlPlane(settings=SETTINGS) as plane:
        kubeconfig = install_operator_rbac(plane)
        flags = ("--leader-elect", "--lease-namespace", NAMESPACE)
        with (
            Operator(plane, kubeconfig, *flags) as operator,
            _workloads(plane.api, policies, jumps, repeats) as all_of,
        ):
            _report(f"{len(all_of)} workloads; calm for {CALM:.0f} s")
            time.sleep(CALM)
            _observe(plane.api, all_of)
            operator.probe("readyz")
    reactions: dict[tuple[str, int], list[Reaction]] = {}
    for workload in all_of:
        reactions.setdefault((workload.policy.full_name, workload.times), []).append(
            reaction(workload.observations)
        )
    return reactions


@contextlib.contextmanager
def _workloads(
    api: KubeApi, policies: Sequence[PolicyCase], jumps: Sequence[int], repeats: int
) -> Iterator[list[JumpingWorkload]]:
    """Create all workloads, and distribute the calm phase's load to their pods."""
    api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAME}})
    use, room = WORKLOADS[0], headroom(DEFAULT_TARGET)
    cpu, memory = work(1)
    made = []
    for number, policy in enumerate(policies):
        for times in jumps:
            for repeat in range(repeats):
                name = f"web-{number}-{times}-{repeat}"
                load = PodLoad(
                    api,
                    NAME,
                    f"app={name}",
                    cpu=cpu,
                    memory=memory,
                    base_cpu=parse_cpu(use.base_cpu),
                    base_memory=parse_memory(use.base_memory),
                    most_cpu=_most,
                    delayed=REPORTED,
                )
                target = (room.share if policy.name == POLICY else room).target
                made.append(JumpingWorkload(name, policy, times, repeat * PERIOD / repeats, target, load))
    for workload in made:
        deployment, *_ = objects(workload.name, workload.policy)
        api.create(deployment)
    with contextlib.ExitStack() as stack:
        for workload in made:
            await_pods(api, NAME, workload.name)
            stack.enter_context(workload.load)
        time.sleep(REPORTED.delay + 2 * PERIOD)  # the recommenders' first data is the calm phase
        for workload in made:
            for manifest in objects(workload.name, workload.policy)[1:]:
                api.create(manifest)
        yield made


def _observe(api: KubeApi, workloads: Sequence[JumpingWorkload]) -> None:
    """Let the loads jump, and observe all workloads until they are done."""
    began = time.monotonic()
    while not all(workload.done for workload in workloads):
        now = time.monotonic()
        view = _View(api)
        for workload in workloads:
            if workload.load.error is not None:
                raise workload.load.error
            if workload.jumped is None and now - began >= workload.delay:
                workload.jump(view.size(workload))
            elif workload.jumped is not None and not workload.done:
                workload.observations.append(view.look(workload, now - workload.jumped))
        time.sleep(max(0.0, LOOK - (time.monotonic() - now)))


class _View:
    """The namespace at one time, according to the API server."""

    def __init__(self, api: KubeApi) -> None:
        self._pods: dict[str, list[Json]] = {}
        for pod in api.list("Pod", NAME):
            if "deletionTimestamp" not in pod["metadata"]:
                self._pods.setdefault(pod["metadata"]["labels"]["app"], []).append(pod)
        self._deployments = _named(api.list("Deployment", NAME))
        self._hpas = _named(api.list("HorizontalPodAutoscaler", NAME))
        self._used: dict[str, list[int]] = {}
        for metrics in api.list("PodMetrics", NAME):
            cpu = sum(parse_cpu(container["usage"]["cpu"]) for container in metrics["containers"])
            self._used.setdefault(metrics["metadata"]["labels"]["app"], []).append(cpu)

    def size(self, workload: JumpingWorkload) -> tuple[int, int]:
        """Return desired replicas, and millicores of the largest pod in the spec."""
        replicas = int(self._deployments[workload.name]["spec"]["replicas"])
        return replicas, max(map(_requested, self._pods[workload.name]))

    def look(self, workload: JumpingWorkload, at: float) -> WorkloadObservation:
        """Return the observation of the workload at this number of seconds after its jump."""
        name = workload.name
        pods = self._pods[name]
        ready = [pod for pod in pods if _is_ready(pod)]
        replicas, largest = self.size(workload)
        used = self._used.get(name, [])
        status = self._hpas[name].get("status", {})
        done = [pod for pod in ready if applied(pod) == pod["spec"]["containers"][0]["resources"]]
        cpu, _ = work(workload.times)
        return WorkloadObservation(
            at=at,
            unmet=not is_met(
                cpu, workload.load.base_cpu, [parse_cpu(applied(pod)["requests"]["cpu"]) for pod in ready]
            ),
            shown=bool(used) and sum(used) / len(used) > TOLERANCE * workload.target,
            looked=status.get("desiredReplicas", 0) > workload.before[0],
            grown=replicas > workload.before[0] or largest > workload.before[1],
            settled=len(done) == replicas == len(pods),
        )


def _named(objects: Sequence[Mapping[str, Any]]) -> dict[str, Json]:
    return {obj["metadata"]["name"]: dict(obj) for obj in objects}


def _report(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
