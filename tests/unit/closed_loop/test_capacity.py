"""Capacity is what pods have, and demand is what was measured of them (DESIGN 5.4, sentences 1, 6, 8, 9 and 12), in
the simulator: probes fail, kubelets defer or refuse, rollouts are paused, metrics measure no resource, one pod is
broken."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from hvpa_lab.simulate.cluster.pods import SimWorkload
from hvpa_lab.simulate.model import NodeModel, Tick, WorkloadModel
from tests.unit.lab.simulate import build
from tests.unit.lab.simulate.joint_build import GIB, HOUR, Run, Shape, joint, metric, run

pytestmark = pytest.mark.long

STRATEGIES = ("Rollout", "InPlace")
WITHIN = {"scaleDown": {"stabilizationDuration": "60s"}}
Hook = Callable[[SimWorkload, float], None]


def hvpa(weight: float, *metrics: dict[str, Any], strategy: str, **spec: Any) -> dict[str, Any]:
    """An Hvpa whose path begins with the requests that the pods have at first."""
    manifest = joint(weight, *metrics, most=40, updateStrategy={"type": strategy}, **spec)
    manifest["spec"]["vpa"]["template"]["spec"] = {}
    return manifest


def pods(strategy: str, cpu: int, memory: int = GIB, **changes: Any) -> WorkloadModel:
    """Pods that use a core for each unit of the load, and half of their memory at first."""
    container = {"cpu_base": 0.0, "cpu_per_unit": 1000.0, "memory_base": memory / 2, "memory_per_unit": 0.0}
    for name in container.keys() & changes.keys():
        container[name] = changes.pop(name)
    requests = {"cpu": cpu, "memory": memory}
    resize = "Recreate" if strategy == "Rollout" else "InPlace"
    values = {"start_up": 20.0, "resize": resize} | changes
    return build.workload(build.container(limits={}, requests=requests, **container), **values)


def simulated(
    spec: dict[str, Any],
    load: build.Shape,
    hours: float,
    replicas: int,
    workload: WorkloadModel,
    **changes: Any,
) -> Run:
    requests = workload.containers[0].requests
    begin = Shape(replicas, requests["cpu"], requests["memory"])
    return run(spec, load, hours / 24, begin, **({"workload": workload, "step": 5.0} | changes))


def least_spare(simulation: Run, since: float = 0.0) -> float:
    """The least that pods could have served beyond the demand, millicores."""
    series = simulation.result.series
    spare = [have - need for have, need in zip(series.capacity, series.demand, strict=True)]
    return min(spare[int(since / series.step) :])


@pytest.fixture
def hook(monkeypatch: pytest.MonkeyPatch) -> Callable[[Hook], None]:
    """Have something done to the workload at each step."""
    advance = SimWorkload.advance

    def install(do: Hook) -> None:
        def hooked(self: SimWorkload, now: float, step: float, load: float) -> Tick:
            do(self, now)
            return advance(self, now, step, load)

        monkeypatch.setattr(SimWorkload, "advance", hooked)

    return install


# --- pods whose probes fail ------------------------------------------------------------------------------------------
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize(("weight", "failing"), [(0, 7), (30, 3), (30, 20)])
def test_pods_that_lose_readiness_are_not_gone(strategy: str, weight: int, failing: int) -> None:
    """7 of 12 pods, 3 of 7 or 8, or all of them fail their probes for 45 s at constant load."""
    blips = ((2 * HOUR, 0.0),) * failing
    simulation = simulated(
        hvpa(weight, metric(70), strategy=strategy),
        build.constant(4.2),
        3,
        12,
        pods(strategy, 500, blips=blips, blip_length=45.0),
    )
    before, after = simulation.at(2 * HOUR - 5), simulation.end
    assert before.cpu == after.cpu
    # The count that the HPA itself asks for, which is inside the overlap otherwise, may be taken.
    assert min(simulation.result.series.replicas[int(2 * HOUR / 5) :]) * before.cpu >= 4200 / 0.7


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_replicas_rise_though_most_pods_lost_readiness(strategy: str) -> None:
    """The load is three times as high when 11 of 12 pods fail their probes."""
    begin = HOUR - 60
    simulation = simulated(
        hvpa(0, metric(70), strategy=strategy),
        build.step(4.2, begin, 12.0),
        1.2,
        12,
        pods(strategy, 500, blips=((HOUR, 0.0),) * 11, blip_length=40.0),
        nodes=NodeModel(headroom="20%"),
    )
    # Less by the overlap: in place, what saturated pods called for beyond that is taken back.
    assert min(shape.cores for when, shape in simulation.shapes if when >= begin + 60) >= 12 / 0.7 * 0.9
    assert strategy != "Rollout" or min(simulation.result.series.replicas[int(HOUR / 5) :]) >= 30


# --- pods that don't get their size ----------------------------------------------------------------------------------
CANARY = {"canary": {"pods": 1, "duration": "5m"}}


@pytest.mark.parametrize(
    ("changes", "more"),
    [
        ({"resize_deferred": 2 * HOUR}, {}),
        ({"resize_refused": True}, {}),
        ({}, CANARY),
        ({"resize_deferred": HOUR}, CANARY),
        ({"resize_refused": True}, CANARY),
        ({}, {}),
    ],
    ids=["deferred", "refused", "canary", "deferred canary", "refused canary", "as wanted"],
)
def test_replicas_stay_until_pods_have_their_size(changes: dict[str, Any], more: dict[str, Any]) -> None:
    """14 x 700m serve 8 cores, for which the path has 4 x 2. A size for which no node has room is held for a day; a
    canary waits for room."""
    spec = hvpa(50, metric(75), strategy="InPlace")
    spec["spec"]["updateStrategy"] |= more
    simulation = simulated(
        spec,
        build.constant(6.0),
        3,
        14,
        pods("InPlace", 700, **changes),
    )
    assert least_spare(simulation) >= 8000 * 0.95 - 6000
    stay = changes.get("resize_refused", False) or ("resize_deferred" in changes and not more)
    assert simulation.end.replicas >= 12 if stay else simulation.end.replicas <= 6
    assert simulation.end.cores <= 8000 * 1.4 / 1000


def test_pods_that_refuse_every_resize_are_replaced_no_more_than_with_rollout() -> None:
    """A wave of 2 to 8 cores in two hours, for half a day: in place the sizes follow it."""
    load = build.Shape(lambda at: 5.0 - 3.0 * math.cos(2 * math.pi * at / (2 * HOUR)))

    def restarts(strategy: str, **changes: Any) -> int:
        workload = pods(strategy, 700, **changes)
        simulation = simulated(hvpa(50, metric(75), strategy=strategy), load, 12, 8, workload, step=30.0)
        assert simulation.result.totals.unmet_share < 0.01
        return simulation.result.totals.restarts

    assert restarts("InPlaceOrRollout") == 0
    assert restarts("InPlaceOrRollout", resize_refused=True) <= restarts("Rollout") + 8


def test_a_starving_pod_whose_kubelet_refuses_is_replaced(hook: Callable[[Hook], None]) -> None:
    """A pod of the first size runs out of memory whenever it starts: it is never ready, so that no rollout is complete.
    The template is patched although that pod is unavailable."""
    killed = []

    def starve(workload: SimWorkload, now: float) -> None:
        pod = next((pod for pod in workload.pods if pod.serial == 3), None)
        if pod is None or not pod.containers[0].running or pod.resources["app"].requests["memory"] > GIB:
            return
        killed.append(now)
        pod.end(pod.containers[0], now, of_heap=False)
        if workload.on_oom is not None:
            workload.on_oom(pod, pod.containers[0], now)
        workload._react(now)

    hook(starve)
    spec = hvpa(50, metric(75), strategy="InPlaceOrRollout")
    simulation = simulated(
        spec, build.constant(6.0), 3, 12, pods("InPlaceOrRollout", 700, resize_refused=True)
    )
    assert max(killed) < 600
    assert simulation.end.memory > GIB


def test_a_size_that_is_taken_back_is_reported() -> None:
    """The path has fewer and larger pods than 14 of 800m. Beside the running pods, no node has room for larger new
    pods, so the canary is never ready."""
    spec = hvpa(40, metric(72), strategy="InPlaceOrRollout")
    spec["spec"]["updateStrategy"] |= {"canary": {"pods": 2, "duration": "3m"}}
    simulation = simulated(
        spec,
        build.constant(6.8),
        1,
        14,
        pods("InPlaceOrRollout", 800, cpu_base=20.0),
        nodes=NodeModel(cpu=2500, memory=16 * GIB, count=5, headroom="20%"),
        step=15.0,
    )
    events = [event.reason for event in simulation.result.events if event.kind in ("Event", "Violation")]
    assert (events.count("RolledBack"), events.count("unexplained")) == (1, 0)


def test_pods_that_no_node_takes_are_taken_back() -> None:
    """14 pods of 800m on nodes of 1000m. With rollouts, the path has fewer pods that are larger than a node."""
    spec, nodes = hvpa(40, metric(72), strategy="Rollout"), NodeModel(cpu=1000, memory=16 * GIB)
    simulation = simulated(spec, build.constant(6.8), 1, 14, pods("Rollout", 800), nodes=nodes)
    assert simulation.result.totals.unmet_share == 0
    assert [event.reason for event in simulation.result.events].count("RolledBack") == 1
    assert simulation.end.cpu <= 1000


def test_a_node_that_is_too_small_keeps_the_replicas() -> None:
    simulation = simulated(
        hvpa(50, metric(75), strategy="InPlace"),
        build.constant(6.0),
        2,
        14,
        pods("InPlace", 700),
        nodes=NodeModel(cpu=900, memory=64 * GIB),
    )
    assert (simulation.end.replicas >= 12, simulation.end.cpu) == (True, 700)
    assert least_spare(simulation) >= 8000 * 0.95 - 6000


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet"])
@pytest.mark.parametrize("weight", [0, 50, 100])
def test_replicas_rise_while_a_rollout_is_held(hook: Callable[[Hook], None], kind: str, weight: int) -> None:
    """A Deployment is paused, or a StatefulSet has a partition; the template grows, the load doubles."""
    hook(lambda workload, now: workload.hold(paused=True, partition=99, now=now) if now == 20 else None)
    spec = hvpa(weight, metric(75), strategy="Rollout")
    spec["spec"]["targetRef"]["kind"] = kind
    simulation = simulated(spec, build.step(3.6, HOUR, 7.2), 1.5, 8, pods("Rollout", 600, kind=kind))
    assert simulation.at(HOUR - 5).replicas == 8
    assert simulation.end.cores >= 7.2 / 0.75 * 0.95
    assert simulation.end.replicas > 8


# --- sizes are for demand that is known ------------------------------------------------------------------------------
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_sizes_do_not_grow_with_replicas_that_came_before_the_vpas_first_target(strategy: str) -> None:
    """12 pods use twice their requests when the Hvpa is made: in the first minute 35 replicas are there, and no target
    yet. 17.1 cores are called for, for which the path has 6 x 2.9. What was called for in pods before the first target,
    and what the many pods request together, says nothing about sizes."""
    simulation = simulated(
        hvpa(50, metric(70), strategy=strategy), build.constant(12.0), 2, 12, pods(strategy, 500)
    )
    assert max(shape.cpu for _, shape in simulation.shapes) <= 3300
    assert simulation.end.cores <= 12 / 0.7 * 1.4


# --- metrics that measure no resource --------------------------------------------------------------------------------
def external(**target: str) -> dict[str, Any]:
    kind = "Value" if "value" in target else "AverageValue"
    return {
        "type": "External",
        "external": {"metric": {"name": "load"}, "target": {"type": kind, **target}},
    }


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize(
    ("target", "replicas"), [({"value": "8"}, 40), ({"value": "25"}, 1), ({"averageValue": "100"}, 1)]
)
def test_a_metric_that_measures_no_resource_sets_no_size(
    strategy: str, target: dict[str, str], replicas: int
) -> None:
    """It stays at 1.25 or .4 times its target whatever is done, or a queue is nearly empty. Pods use 1 core together,
    and 50m each."""
    simulation = simulated(
        hvpa(50, external(**target), strategy=strategy, vpa=WITHIN),
        build.constant(10.0),
        10,
        4,
        pods(strategy, 600, cpu_base=50.0, cpu_per_unit=100.0),
        step=15.0,
    )
    assert simulation.end.replicas == replicas
    needs = 50 + 1000 / replicas
    assert all(needs <= shape.cpu <= max(600, 1.3 * needs) for _, shape in simulation.shapes[-1:])
    assert max(shape.cpu for _, shape in simulation.shapes) <= 1400
    assert simulation.result.totals.unmet_core_seconds == 0


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize(
    ("request_", "use", "least"),
    [(1400, 1250, None), (1400, 1250, "300Mi"), (200, 240, None), (100, 60, None)],
)
def test_memory_that_no_metric_measures_asks_for_no_replicas_and_is_not_shared(
    strategy: str, request_: int, use: int, least: str | None
) -> None:
    """Three pods of 476m CPU that is called for; of memory each uses as much, whatever their count."""
    spec = hvpa(50, metric(70), strategy=strategy, vpa=WITHIN)
    if least:
        policies = [{"containerName": "*", "minAllowed": {"memory": least}}]
        spec["spec"]["vpa"]["template"]["spec"] = {"resourcePolicy": {"containerPolicies": policies}}
    memory = {"memory_base": float(use * build.MIB)}
    simulation = simulated(
        spec,
        build.constant(1.0),
        10,
        3,
        pods(strategy, 500, request_ * build.MIB, **memory),
        step=15.0,
    )
    assert simulation.result.totals.ooms == 0
    assert max(simulation.result.series.replicas) <= 4, "one more while pods are replaced"
    assert simulation.end.replicas <= 3
    assert use * build.MIB <= simulation.end.memory <= max(251, 1.25 * use) * build.MIB


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("request_", [400, 200, 80])
@pytest.mark.parametrize("governed", [["cpu", "memory"], ["memory"]])
def test_an_average_value_above_the_request_rests_at_the_hpas_count(
    strategy: str, request_: int, governed: list[str]
) -> None:
    """12 pods use 600m each, which is the target."""
    spec = hvpa(0, metric("600m"), strategy=strategy)
    policies = [{"containerName": "*", "controlledResources": governed}]
    spec["spec"]["vpa"]["template"]["spec"] = {"resourcePolicy": {"containerPolicies": policies}}
    simulation = simulated(spec, build.constant(7.2), 4, 12, pods(strategy, request_), step=15.0)
    assert simulation.end[:2] == (12, request_)
    assert simulation.steps("Replicas") == []


# --- one broken pod --------------------------------------------------------------------------------------------------
def runs_out_of_memory(workload: SimWorkload, now: float) -> None:
    """The third pod does every 200 seconds."""
    if now < 600 or now % 200 or not workload.pods[2].ready:
        return
    pod = workload.pods[2]
    pod.end(pod.containers[0], now, of_heap=False)
    if workload.on_oom is not None:
        workload.on_oom(pod, pod.containers[0], now)
    workload._react(now)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("weight", [0, 50])
@pytest.mark.parametrize("fate", ["flaps", "runs out of memory"])
def test_one_broken_pod_of_twenty_does_not_freeze_scaling_in(
    hook: Callable[[Hook], None], strategy: str, weight: int, fate: str
) -> None:
    """The load falls to its half at 2 h. There are enough pods for one to be less than a tenth."""
    spec = hvpa(weight, metric(60), strategy=strategy)
    spec["spec"]["hpa"]["template"]["spec"]["minReplicas"] = 6
    blips = tuple((600.0 + 150 * number, 0.0) for number in range(70)) if fate == "flaps" else ()
    if fate != "flaps":
        hook(runs_out_of_memory)
    simulation = simulated(
        spec,
        build.step(4.8, 2 * HOUR, 2.4),
        3,
        20,
        pods(strategy, 400, start_up=10.0, blips=blips, blip_length=50.0),
    )
    before, after = simulation.at(2 * HOUR - 5), simulation.end
    assert after.replicas < before.replicas
    assert after.cores <= 0.85 * before.cores
    assert after.cores >= 2.4 / 0.6 * 0.95


@pytest.mark.parametrize("blend", ["Trajectory", "Additive"])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_pods_that_run_out_of_memory_all_at_once_are_not_made_fewer(strategy: str, blend: str) -> None:
    """At 1 h the load and its memory are 3.5 times as high, and limits hold 1.7 times as much. What pods use while they
    start again would call for a pod or two."""
    spec = hvpa(30, metric(75, "memory"), strategy=strategy, blend=blend)
    limited = build.container(
        requests={"cpu": 1500, "memory": GIB},
        limits={"memory": 1.7 * GIB},
        cpu_base=0.0,
        cpu_per_unit=1000.0,
        memory_base=0.2 * GIB,
        memory_per_unit=0.55 * GIB,
    )
    resize = "Recreate" if strategy == "Rollout" else "InPlace"
    simulation = simulated(
        spec,
        build.step(8.0, HOUR, 28.0),
        4,
        8,
        build.workload(limited, start_up=30.0, resize=resize),
        step=15.0,
        nodes=NodeModel(headroom="20%"),
    )
    series = simulation.result.series
    before = series.replicas[int(HOUR / series.step) - 1]
    assert simulation.result.totals.ooms
    assert min(series.replicas[int(HOUR / series.step) :]) >= before
    assert not [
        event for event in simulation.result.events if event.kind == "OOM" and event.time > 1.5 * HOUR
    ]


@pytest.mark.parametrize("blend", ["Trajectory", "Additive"])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_replicas_end_a_burst_that_kills_all_pods_for_memory(strategy: str, blend: str) -> None:
    """For twenty minutes, the load is three times as high, and the pods already have their largest memory. The HPA has
    no metrics while all pods fail. Without HVPA's own step, all pods fail again and again until the burst ends (24 OOMs
    with `Additive`, 96 with a path)."""
    spec = hvpa(50, metric(75, "memory"), strategy=strategy, blend=blend)
    largest = [{"containerName": "*", "maxAllowed": {"memory": "1Gi"}}]
    spec["spec"]["vpa"]["template"]["spec"] = {"resourcePolicy": {"containerPolicies": largest}}
    spec["spec"]["hpa"]["template"]["spec"]["maxReplicas"] = 12
    limited = build.container(
        requests={"cpu": 1500, "memory": GIB},
        limits={"memory": 1.4 * GIB},
        cpu_base=0.0,
        cpu_per_unit=1000.0,
        memory_base=0.1 * GIB,
        memory_per_unit=0.55 * GIB,
    )
    simulation = simulated(
        spec,
        build.Shape(lambda at: 9.0 if HOUR <= at < HOUR + 1200 else 3.0),
        3,
        2,
        build.workload(
            limited, start_up=47.0, spread=0.2, resize="Recreate" if strategy == "Rollout" else "InPlace"
        ),
        step=15.0,
    )
    assert 0 < simulation.result.totals.ooms <= 8  # twice each of the pods before the burst


# --- Additive, with an HPA on memory ---------------------------------------------------------------------------------
def additive(weight: int, strategy: str) -> dict[str, Any]:
    """An HPA on memory alone, and a VPA that finds the memory far too small."""
    spec = hvpa(weight, metric(60, "memory"), strategy=strategy)
    spec["spec"]["blend"] = "Additive"
    return spec


@pytest.mark.parametrize("weight", [50, 70])
def test_larger_memory_removes_no_pods_that_cpu_needs(weight: int) -> None:
    """The VPA raises memory to its peaks, so between them the HPA removes pods. The others get 1.2 times their CPU
    request at most, so the VPA never sees how much they need."""
    spec = additive(weight, "Rollout")
    spec["spec"]["hpa"]["template"]["spec"]["maxReplicas"] = 9
    simulation = simulated(
        spec,
        build.Shape(lambda at: 1.5 if at % (3 * HOUR) < HOUR / 3 else 0.3),
        24,
        5,
        pods(
            "Rollout", 60, memory=1200 * build.MIB, memory_base=200.0 * build.MIB, memory_per_unit=12.0 * GIB
        ),
        nodes=NodeModel(headroom="20%"),
        step=15.0,
    )
    assert simulation.end.memory > 2 * GIB
    assert simulation.result.totals.unmet_share < 0.15, "9 pods, the maximum, do not serve the peaks"


def test_a_kubelet_that_refuses_every_resize_causes_no_loop() -> None:
    """Once the size is rolled back nothing is written at constant load, and replicas follow the HPA."""
    container = build.container(
        requests={"cpu": 700, "memory": 300 * build.MIB},
        limits={"memory": 700 * build.MIB},
        cpu_base=0.0,
        cpu_per_unit=1000.0,
        memory_base=60.0 * build.MIB,
        memory_per_unit=0.8 * GIB,
    )
    workload = build.workload(container, start_up=20.0, resize="InPlace", resize_refused=True)
    simulation = simulated(additive(80, "InPlace"), build.step(2.0, 2 * HOUR, 5.0), 5, 5, workload)
    back = [event.time for event in simulation.result.events if event.reason == "RolledBack"]
    assert len(back) <= 2, "one for each size"
    assert not simulation.changes(3 * HOUR)
