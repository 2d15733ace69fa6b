"""What an HPA calls for, metric by metric, by its measurements (DESIGN 4, "fractional desired replicas")."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from builders import build
from builders.build import GIB, NOW, at, stamp
from hvpa.api.objects.read_models import Pod
from hvpa.api.values.quantity import Resource
from hvpa.core import Objects
from hvpa.core.recommenders.desired_replicas import DesiredReplicas, measured_replicas, trusted_replicas
from hvpa.core.recommenders.estimate import (
    MICRO,
    MetricDemand,
    is_never_stale,
    measured_from,
    metric_demands,
    readings_of,
)
from hvpa.core.values.clock import Clock
from hvpa.core.values.weight import Bounds
from tests.unit.core.trajectory.jointly import Reading, app, external, state, utilization, value

MEASURED = value("cpu", "500m", "1")


def demands(objects: Objects) -> tuple[tuple[MetricDemand, ...], bool]:
    observation = build.scalable(objects)
    clock = Clock(observation.now)
    return metric_demands(observation, readings_of(observation, objects.hpas[0], clock), clock)


def demand(reading: Reading, replicas: int = 4, **rest: Any) -> MetricDemand:
    (metric_demand,), missing = demands(state(replicas, readings=[reading], **rest))
    assert not missing
    return metric_demand


def desired(readings: Sequence[Reading], replicas: int = 4, **rest: Any) -> DesiredReplicas:
    objects = state(replicas, readings=readings, **rest)
    return trusted_replicas(objects.hpas[0], build.scalable(objects), Bounds(1, 10), Clock(NOW))


def test_an_average_value_is_absolute_and_has_what_a_pod_is_meant_to_use() -> None:
    cpu = demand(value("cpu", "500m", "800m"))
    assert cpu == MetricDemand("cpu", 6_400_000, True, 100_000, "cpu", "", None, 500, 4, used=800)
    memory = demand(value("memory", "1Gi", "512Mi", "app"))
    assert memory == MetricDemand(
        "memory of app", 2_000_000, True, 100_000, "memory", "app", None, GIB, 4, used=GIB // 2
    )


def test_a_utilization_is_of_the_pods_as_they_are_and_of_their_requests() -> None:
    metric_demand = demand(utilization("cpu", 50, 80, "801m"))
    # 4 pods use 3204m; at half of their requests that takes 6408m of them
    assert metric_demand == MetricDemand("cpu", 6_400_000, False, 100_000, "cpu", "", 6408, None, 4, 50, 801)
    assert demand(utilization("cpu", 50, 80, None)).requested is None
    assert demand(utilization("cpu", 50, 80, "a lot")).requested is None


def test_a_target_that_makes_no_sense_calls_for_nothing() -> None:
    target = {"name": "cpu", "target": {"type": "AverageValue", "averageValue": "-1"}}
    negative = {"spec": {"metrics": [{"type": "Resource", "resource": target}]}}
    assert demands(state(4, readings=[MEASURED], hpa=negative)) == ((), True)


@pytest.mark.parametrize(("kind", "absolute"), [("AverageValue", True), ("Value", False)])
def test_what_is_no_resource_counts_pods(kind: str, absolute: bool) -> None:
    metric_demand = demand(external("10", "25", kind=kind))
    assert metric_demand == MetricDemand("External queue", 10_000_000, absolute, 100_000, counted=4)


def test_an_external_average_is_over_the_pods_that_there_are() -> None:
    starting = [build.pod("web-0"), build.pod("web-1", ready=False)]
    assert demand(external("10", "30"), 2, pods=starting).pods == 6_000_000
    assert demand(external("10", "30", kind="Value"), 2, pods=starting).pods == 3_000_000
    none = {"status": {"replicas": 0}}
    assert demand(external("10", "30"), 2, workload=none).pods == 6_000_000


@pytest.mark.parametrize(
    ("since", "ready", "counted"),
    [
        ([-3600, -31, -30, -29, 0], 5, 3),
        pytest.param([], 3, 3, id="no pod is seen: what the workload's status has"),
        pytest.param([], 0, 5, id="nor that: as many as there are to be"),
    ],
)
def test_only_pods_that_have_been_ready_for_a_metric_window_are_measured(
    since: list[float], ready: int, counted: int
) -> None:
    pods = [pod(number, seconds) for number, seconds in enumerate(since)]
    metric_demand = demand(MEASURED, 5, pods=pods, workload={"status": {"readyReplicas": ready}})
    assert metric_demand.pods == counted * 2 * MICRO


def pod(number: int, since: float, ready: bool = True, started: float = -60) -> Pod:
    """A pod whose readiness changed so many seconds ago, and which `started` so long before."""
    condition = {"type": "Ready", "status": str(ready), "lastTransitionTime": stamp(at(seconds=since))}
    start = stamp(at(seconds=since + started))
    return build.pod(f"web-{number}", change={"status": {"conditions": [condition], "startTime": start}})


LATER = {
    "of memory, all that have run for 30 s": ("memory", 3),
    "of CPU, those that are ready or were": ("cpu", 3),
}


@pytest.mark.parametrize(("resource", "counted"), LATER.values(), ids=LATER)
def test_a_pod_that_lost_its_readiness_counts_as_before(resource: Resource, counted: int) -> None:
    blip, starting = pod(2, -10, ready=False, started=-3600), pod(3, -10, ready=False, started=-5)
    pods = [pod(0, -3600), pod(1, -3600), blip, starting]
    reading = value(resource, "1Gi", "2Gi") if resource == "memory" else value("cpu", "1", "2")
    assert demand(reading, 4, pods=pods).pods == counted * 2 * MICRO


@pytest.mark.parametrize(
    ("reading", "status", "counted"),
    [
        (value("memory", "1Gi", "2Gi"), {"replicas": 5}, 5),
        (value("memory", "1Gi", "2Gi"), {"replicas": 0}, 4),
        (external("1", "2", kind="Value"), {"readyReplicas": 3}, 3),
        (external("1", "2", kind="Value"), {"readyReplicas": 0}, 4),
    ],
)
def test_where_no_pod_is_seen_as_many_count_as_the_workload_reports(
    reading: Reading, status: Mapping[str, int], counted: int
) -> None:
    assert demand(reading, 4, pods=(), workload={"status": status}).pods == counted * 2 * MICRO


def test_where_all_are_too_young_the_last_recommendation_counts() -> None:
    desired_replicas = desired([MEASURED], 2, pods=[pod(0, -10), pod(1, -5)])
    assert (desired_replicas.replicas, desired_replicas.demands) == (2, ())
    assert desired_replicas.unknown is not None
    assert desired_replicas.unknown.until == at(seconds=20)


@pytest.mark.parametrize(("seconds", "measured"), [([-29, -10], False), ([-30, -10], True), ([], True)])
@pytest.mark.parametrize("is_joint", [False, True])
def test_when_the_first_of_pods_that_are_all_too_young_is_measured(
    seconds: list[float], measured: bool, is_joint: bool
) -> None:
    pods = [pod(number, since) for number, since in enumerate(seconds)]
    spec = {} if is_joint else {"blend": "Additive"}
    observation = build.scalable(state(2, readings=[MEASURED], pods=pods, spec=spec))
    expected = None if measured or not is_joint else at(seconds=1)
    assert measured_from(observation, Clock(NOW)) == expected


def test_a_metric_without_a_value_is_reported() -> None:
    known_demands, missing = demands(state(4, readings=[value("memory", "1Gi", None), MEASURED]))
    assert [metric_demand.label for metric_demand in known_demands] == ["cpu"]
    assert missing
    assert demands(state(4)) == ((), True)


def test_the_tolerance_is_the_hpas_own_for_scaling_out() -> None:
    rules = {"spec": {"behavior": {"scaleUp": {"tolerance": "0.25"}, "scaleDown": {"tolerance": "0.5"}}}}
    assert demand(MEASURED, hpa=rules).tolerance == 250_000


def test_a_demand_for_fewer_pods_requests_less() -> None:
    metric_demand = demand(utilization("cpu", 50, 80, "801m"))
    half = metric_demand.scaled(3_200_000)
    assert (half.pods, half.requested, half.counted) == (3_200_000, 3204, 4)
    assert demand(MEASURED).scaled(5).requested is None
    nothing = demand(utilization("cpu", 50, 0, "0")).scaled(2 * MICRO)
    assert nothing == MetricDemand("cpu", 2_000_000, False, 100_000, "cpu", "", None, None, 2, 50, 0)


# --- what the HPA stands by ------------------------------------------------------------------------------------------
def test_where_the_desired_replicas_are_what_the_metrics_call_for_fractions_count() -> None:
    desired_replicas = desired([value("cpu", "500m", "800m"), utilization("memory", 50, 20, "200Mi")])
    assert desired_replicas.replicas == 7
    assert [metric_demand.pods for metric_demand in desired_replicas.demands] == [6_400_000, 1_600_000]
    assert desired_replicas.measured == desired_replicas.demands
    assert desired_replicas.held == ()


def test_where_the_hpa_wants_less_its_desired_replicas_count_whole() -> None:
    readings = [value("cpu", "500m", "800m"), value("memory", "1Gi", "1400Mi")]
    desired_replicas = desired(readings, desired=5, hpa={"spec": {"behavior": {}}})
    assert desired_replicas.replicas == 5
    assert [metric_demand.pods for metric_demand in desired_replicas.demands] == [5 * MICRO, 5 * MICRO]
    assert [metric_demand.pods for metric_demand in desired_replicas.measured] == [6_400_000, 5_468_750]
    assert desired_replicas.held == ()


def test_where_the_hpa_wants_more_its_desired_replicas_hold_replicas_and_is_no_demand() -> None:
    desired_replicas = desired([value("cpu", "500m", "250m"), value("memory", "1Gi", "100Mi")], desired=4)
    assert desired_replicas.replicas == 4
    assert [metric_demand.pods for metric_demand in desired_replicas.demands] == [2 * MICRO, 390_625]
    assert [metric_demand.pods for metric_demand in desired_replicas.held] == [4 * MICRO, 390_625]


@pytest.mark.parametrize(
    ("readings", "never"),
    [
        ([value("cpu", "500m", "250m")], True),
        ([external("10", "25")], True),
        pytest.param([value("cpu", "500m", "490m")], False, id="within tolerance it repeats what it finds"),
        pytest.param([value("cpu", "500m", "250m"), value("memory", "1Gi", None)], False, id="unmeasured"),
        pytest.param([utilization("cpu", 50, 20, "200m")], False, id="relative to the pods"),
        pytest.param([external("10", "25", kind="Value")], False, id="relative to their count"),
    ],
)
def test_an_absolute_metric_that_is_measured_is_never_stale(readings: list[Reading], never: bool) -> None:
    objects = state(4, readings=readings)
    observation = build.scalable(objects)
    assert is_never_stale(readings_of(observation, objects.hpas[0], Clock(NOW))) is never


def test_more_than_present_and_estimate_is_believed_where_no_metric_is_ever_stale() -> None:
    # for scaling in the HPA remembers what it wanted when there were other pods
    assert desired([value("cpu", "500m", "250m")], desired=8).replicas == 8
    assert desired([value("cpu", "500m", "490m")], desired=8).replicas == 4
    assert desired([utilization("cpu", 50, 20, "200m")], desired=8).replicas == 4


def test_a_silent_hpa_demands_nothing() -> None:
    desired_replicas = desired([], desired=4)
    assert (
        desired_replicas.replicas,
        desired_replicas.demands,
        desired_replicas.measured,
        desired_replicas.unmeasured,
    ) == (None, (), (), False)


def test_an_additive_decision_asks_for_no_demands() -> None:
    objects = state(4, [app("1")], [MEASURED], spec={"blend": "Additive"})
    desired_replicas = trusted_replicas(objects.hpas[0], build.scalable(objects), Bounds(1, 10), Clock(NOW))
    assert (desired_replicas.replicas, desired_replicas.demands, desired_replicas.measured) == (8, (), ())


# --- pods of other owners --------------------------------------------------------------------------------------------
JOB = {"apiVersion": "batch/v1", "kind": "Job", "name": "import", "uid": "j", "controller": True}


def with_job(blend: str, hpa_wants: int, measured: int) -> DesiredReplicas:
    """4 pods and one of a Job with their labels, of which the HPA measured so many percent of a target of 50."""
    own = [build.pod(f"web-{index}") for index in range(4)]
    job = build.pod("import-1", change={"metadata": {"ownerReferences": [JOB]}})
    hpa = build.hpa(hpa_wants, utilization=measured, replicas=4)
    hvpa = build.hvpa({"blend": blend, "replicas": hpa_wants})
    observation = build.scalable(build.objects(hvpa, build.workload(4), hpa, build.vpa(), [*own, job]))
    return trusted_replicas(hpa, observation, Bounds(1, 10), Clock(NOW))


@pytest.mark.parametrize("blend", ["Additive", "Trajectory"])
def test_the_hpa_counts_a_pod_of_a_job_by_its_labels_and_is_believed(blend: str) -> None:
    desired_replicas = with_job(blend, 8, 80)
    assert (desired_replicas.replicas, desired_replicas.problem, desired_replicas.scale_replicas) == (
        8,
        None,
        None,
    )


def test_demand_is_that_of_the_workloads_own_pods() -> None:
    (metric_demand,) = with_job("Trajectory", 8, 80).demands
    assert metric_demand.pods == 6_400_000


# --- pods that failed -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("failed", "replicas"), [(0, 2), (1, 3), (6, 8), (10, 10)])
@pytest.mark.parametrize("mode", ["Apply", "Recommend"])
def test_pods_that_failed_lately_count_as_full(failed: int, replicas: int, mode: str) -> None:
    """10 pods use a fifth of their target in the mean."""
    pods = [build.oom_killed(at(minutes=-9), f"web-{index}") for index in range(failed)]
    pods += [build.pod(f"web-{index}") for index in range(failed, 10)]
    objects = state(10, readings=[value("memory", "1Gi", "200Mi")], spec={"blend": "Additive"}, pods=pods)
    observation = build.scalable(objects)
    trust = trusted_replicas if mode == "Apply" else measured_replicas
    assert trust(objects.hpas[0], observation, Bounds(1, 10), Clock(NOW)).replicas == replicas
