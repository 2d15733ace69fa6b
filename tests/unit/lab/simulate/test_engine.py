"""Whole simulations: each policy does what the recommenders that it is made of do."""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Any, cast

import pytest

from hvpa.core.invariants import Violation
from hvpa.core.model import ResourceRequirements
from hvpa.reconcile import reconciler
from hvpa_lab.simulate.engine import simulate
from hvpa_lab.simulate.model import NodeModel, Policy, PolicyResult, ResizeMode, Scenario, WorkloadModel
from hvpa_lab.simulate.policy.base import SimulationError
from tests.unit.lab.simulate import build

POLICIES = build.Policies()
HOUR = 3600.0
UTILIZATION = {
    "type": "Resource",
    "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}},
}


def run(policy: Policy, **changes: Any) -> PolicyResult:
    return simulate(build.scenario(**changes), policy)


def kinds(result: PolicyResult) -> set[str]:
    return {event.kind for event in result.events}


def test_a_fixed_size_stays_and_is_recorded_at_every_step() -> None:
    result = run(POLICIES.fixed)
    series, totals = result.series, result.totals
    assert list(series.replicas) == [3] * 240
    assert list(series.ready) == [3] * 240
    assert set(series.demand) == {960.0}, "90 units at 10m, and three times 20m"
    assert set(series.requests["app", "cpu"]) == {500.0}
    assert totals.core_hours_requested == pytest.approx(1.5)
    assert totals.core_hours_used == pytest.approx(0.96)
    assert totals.gib_hours_requested == pytest.approx(1.5)
    assert totals.slack_cpu == pytest.approx(1 - 0.96 / 1.5)
    assert (totals.unmet_core_seconds, totals.unmet_share, totals.ooms, totals.restarts) == (0, 0, 0, 0)
    assert (totals.replica_changes, totals.request_changes) == (0, 0)
    assert (totals.reaction_median_seconds, totals.reaction_max_seconds) == (None, None)
    assert result.events == ()


def test_a_policy_may_begin_with_another_size() -> None:
    own = {"app": ResourceRequirements({"cpu": 1000, "memory": build.MIB}, {})}
    policy = Policy("fixed", "Fixed", replicas=5, resources=own)
    result = run(policy)
    assert set(result.series.replicas) == {5}
    assert set(result.series.requests["app", "cpu"]) == {1000.0}


def test_an_hpa_alone_scales_out_and_after_its_window_in() -> None:
    load = build.Shape(lambda at: 90.0 if at < 600 or at >= 1200 else 300.0)
    result = run(POLICIES.hpa, load=load)
    replicas = result.series.replicas
    assert replicas[0] == 3
    assert max(replicas) == 8, "3000m and the base of eight pods, at 400m each"
    assert replicas[-1] == 3
    down = next(i for i in range(1, 240) if replicas[i] < replicas[i - 1]) * 15
    assert 1500 <= down <= 1560, "five minutes after the load went down"
    assert result.totals.request_changes == 0
    assert kinds(result) - {"Condition"} == {"Replicas"}
    reaction = result.reactions[0]
    assert reaction.start == 600
    assert reaction.total is not None
    assert 15 <= reaction.total <= 60
    phases = (reaction.tolerance, reaction.metric_age, reaction.hpa_period, reaction.gates)
    assert sum(phase or 0 for phase in phases) == reaction.total
    assert reaction.start_up is not None
    assert reaction.start_up >= 30


def test_a_load_that_is_known_to_jump_at_nine_finds_its_replicas_there() -> None:
    """8 pods serve 3 cores, of which an HPA learns only when the 2 that there are can't."""
    floor = {"schedule": "50 8 * * *", "duration": "30m", "minReplicas": 8}
    start, load = (
        build.START.replace(hour=8),
        build.Shape(lambda at: 300.0 if HOUR <= at < 1.5 * HOUR else 60.0),
    )
    limited, results = build.workload(build.container(limits={"cpu": 500})), {}
    for name, entries in (("with", [floor]), ("without", [])):
        policy = Policy(name, "Hvpa", hvpa=build.hvpa(weight=0, hpa={"schedule": entries}))
        results[name] = run(policy, start=start, load=load, duration=2 * HOUR, workload=limited)
    floored, reacting = results["with"], results["without"]
    at = {minute: list(floored.series.replicas)[minute * 4] for minute in (49, 51, 59, 61, 79, 119)}
    assert at == {49: 2, 51: 8, 59: 8, 61: 8, 79: 8, 119: 2}, "and the usual rules take them away"
    assert floored.totals.unmet_core_seconds == 0
    assert reacting.totals.unmet_core_seconds > 0
    assert list(reacting.series.replicas)[59 * 4] == 2


def test_a_vpa_alone_evicts_pods_that_come_back_larger() -> None:
    result = run(POLICIES.vpa, load=build.constant(240.0), duration=4 * HOUR)
    assert set(result.series.replicas) == {3}
    assert kinds(result) == {"Evicted"}
    assert result.totals.restarts == len(result.events) >= 3
    assert result.totals.request_changes >= 1
    assert result.series.requests["app", "cpu"][-1] > 800, "they use 820m"


def test_an_hpa_and_a_vpa_side_by_side_do_both() -> None:
    result = run(POLICIES.both, load=build.step(90.0, 600, 300.0), duration=4 * HOUR)
    assert kinds(result) - {"Condition"} == {"Replicas", "Evicted"}
    assert result.totals.replica_changes >= 1
    assert result.totals.request_changes >= 1


def test_a_vpa_that_may_resizes_pods_in_place() -> None:
    policy = Policy("in place", "VPA", vpa={"updatePolicy": {"updateMode": "InPlaceOrRecreate"}})
    workload = build.workload(resize="InPlace")
    result = run(policy, workload=workload, load=build.constant(240.0), duration=4 * HOUR)
    assert {(event.kind, event.reason) for event in result.events} == {("Requests", "InPlaceResizedByVPA")}
    assert len(result.events) >= 3
    assert (result.totals.restarts, set(result.series.ready)) == (0, {3})
    assert 1 <= result.totals.request_changes <= len(result.events) / 3
    assert result.series.requests["app", "cpu"][-1] > 800, "they use 820m"


def test_it_evicts_a_pod_whose_node_has_no_room_for_five_minutes() -> None:
    """Of two pods on a node one grows, at the expense of no other; the second waits, and then goes elsewhere."""
    policy = Policy("in place", "VPA", vpa={"updatePolicy": {"updateMode": "InPlaceOrRecreate"}})
    workload = build.workload(resize="InPlace", replicas=2)
    nodes = NodeModel(cpu=1300)
    result = run(policy, workload=workload, nodes=nodes, load=build.constant(160.0), duration=4 * HOUR)
    reported = [(event.time, event.reason) for event in result.events]
    at = {reason: time for time, reason in reversed(reported)}
    assert at["EvictedByVPA"] - at["ResizeDeferred"] == 420.0, (
        "seen a loop later, and more than five minutes then"
    )
    assert result.totals.restarts == 1
    assert result.series.requests["app", "cpu"][-1] > 800


def test_where_the_api_server_refuses_a_resize_the_pod_is_evicted() -> None:
    """Without requests a pod is BestEffort, and has to stay so."""
    policy = Policy("in place", "VPA", vpa={"updatePolicy": {"updateMode": "InPlaceOrRecreate"}})
    workload = build.workload(build.container(requests={}), resize="InPlace")
    result = run(policy, workload=workload)
    assert {event.reason for event in result.events} == {"EvictedByVPA"}
    assert result.totals.restarts == 3


def test_a_vpa_that_is_off_recommends_and_changes_nothing() -> None:
    policy = Policy("off", "VPA", vpa={"updatePolicy": {"updateMode": "Off"}})
    result = run(policy, load=build.constant(240.0), duration=4 * HOUR)
    assert result.events == ()
    assert result.totals.restarts == 0


SENSITIVE = Policy("Hvpa", "Hvpa", hvpa=build.hvpa(vpa={"scaleUp": {"minChange": {"cpu": {"value": "50m"}}}}))
"""An Hvpa that takes small steps of CPU, too."""


def test_an_hvpa_scales_both_ways_by_the_operators_own_decision() -> None:
    result = run(SENSITIVE, load=build.step(90.0, 600, 300.0), duration=4 * HOUR)
    assert {"Replicas", "Requests"} <= kinds(result)
    assert result.totals.replica_changes >= 1
    assert result.totals.request_changes >= 1
    assert 3 < result.series.replicas[-1] < 9, "half of the way is gone by larger pods"
    assert result.series.requests["app", "cpu"][-1] > 500


def test_an_hvpa_whose_pods_are_resized_in_place_restarts_none() -> None:
    options: dict[str, Any] = {"load": build.step(90.0, 600, 300.0), "duration": 4 * HOUR}
    body = cast(dict[str, Any], SENSITIVE.hvpa)
    spec = {**body["spec"], "updateStrategy": {"type": "InPlace"}}
    resized = replace(SENSITIVE, hvpa={**body, "spec": spec})
    result = run(resized, workload=build.workload(resize="InPlace"), **options)
    assert result.totals.request_changes >= 1
    assert result.totals.restarts == 0 < run(SENSITIVE, **options).totals.restarts
    assert result.series.requests["app", "cpu"][-1] > 500


def test_an_hvpa_in_recommend_mode_changes_nothing() -> None:
    """At steps shorter than the HPA's period, too."""
    policy = Policy("watch", "Hvpa", hvpa=build.hvpa(mode="Recommend"))
    result = run(policy, load=build.constant(300.0), step=5.0, duration=1200.0)
    assert set(result.series.replicas) == {3}
    assert set(result.series.requests["app", "cpu"]) == {500.0}


def test_an_hvpa_without_recommenders_of_its_own_says_so() -> None:
    policy = Policy("none", "Hvpa", hvpa=build.hvpa(hpa={"deploy": False}, vpa={"deploy": False}))
    result = run(policy)
    assert "NoRecommender" in {event.reason for event in result.events}


def test_an_hvpa_that_is_not_valid_is_refused() -> None:
    policy = Policy("bad", "Hvpa", hvpa=build.hvpa(mode="Now"))
    with pytest.raises(SimulationError, match=r"policy bad: spec\.mode"):
        run(policy)


def test_pods_are_resized_in_place_only_where_kubelets_can() -> None:
    given = Policy("hvpa", "Hvpa", hvpa=build.hvpa(updateStrategy={"type": "InPlace"}))
    with pytest.raises(SimulationError, match="the workload's resize must be InPlace"):
        run(given, workload=build.workload(resize="Recreate"))


@pytest.mark.parametrize("resize", ["InPlace", "Recreate"])
def test_by_default_a_joint_hvpa_resizes_pods_in_place_where_kubelets_can(resize: ResizeMode) -> None:
    body = cast(dict[str, Any], SENSITIVE.hvpa)
    jointly = replace(SENSITIVE, hvpa={**body, "spec": {**body["spec"], "blend": "Trajectory"}})
    options: dict[str, Any] = {"load": build.step(90.0, 600, 300.0), "duration": 12 * HOUR}
    result = run(jointly, workload=build.workload(resize=resize), **options)
    assert result.totals.request_changes >= 1
    assert (result.totals.restarts > 0) == (resize == "Recreate")


def test_memory_that_runs_out_is_seen_by_the_recommender_and_by_the_totals() -> None:
    limited = build.container(limits={"memory": 512 * build.MIB}, memory_leak=200 * build.MIB / HOUR)
    workload = build.workload(limited)
    fixed = run(POLICIES.fixed, workload=workload, duration=8 * HOUR)
    assert fixed.totals.ooms >= 3
    assert fixed.totals.unmet_core_seconds > 0
    scaled = run(POLICIES.vpa, workload=workload, duration=8 * HOUR)
    assert scaled.series.requests["app", "memory"][-1] > 512 * build.MIB


def test_what_happens_before_the_warm_up_does_not_count() -> None:
    load = build.step(90.0, 600, 300.0)
    cold, warm = run(POLICIES.hpa, load=load), run(POLICIES.hpa, load=load, warm_up=1800.0)
    assert cold.totals.replica_changes > 0
    assert warm.totals.replica_changes == 0
    assert warm.totals.core_hours_requested < cold.totals.core_hours_requested
    assert warm.reactions == ()
    assert warm.series == cold.series


def test_the_same_scenario_gives_the_same_bytes() -> None:
    def once() -> bytes:
        return pickle.dumps(run(POLICIES.hvpa, load=build.step(90.0, 600, 300.0)))

    assert once() == once()


def test_progress_is_reported_until_the_end() -> None:
    seconds: list[float] = []
    simulate(build.scenario(), POLICIES.fixed, seconds.append)
    assert seconds == sorted(seconds)
    assert seconds[-1] == HOUR


def test_the_step_changes_figures_by_little() -> None:
    load = build.Shape(lambda at: 90.0 + at / 40)
    base, *others = (
        run(POLICIES.hpa, load=load, step=step, duration=2 * HOUR).totals for step in (15.0, 5.0, 60.0)
    )
    for other in others:
        assert other.core_hours_requested == pytest.approx(base.core_hours_requested, rel=0.03)
        assert other.core_hours_used == pytest.approx(base.core_hours_used, rel=0.03)


@pytest.mark.parametrize("steps", [1, 1023, 1024, 1025, 2048])
def test_every_step_is_recorded_once(steps: int) -> None:
    load = build.Shape(lambda at: at)
    series = run(POLICIES.fixed, load=load, duration=15.0 * steps).series
    assert list(series.demand) == pytest.approx([60.0 + 150.0 * i for i in range(steps)])
    assert len(series.ready) == len(series.replicas) == len(series.requests["app", "cpu"]) == steps


def test_a_vpa_for_none_of_the_containers_changes_nothing() -> None:
    policies = [{"containerName": "*", "mode": "Off"}]
    policy = Policy("off", "VPA", vpa={"resourcePolicy": {"containerPolicies": policies}})
    result = run(policy, load=build.constant(240.0))
    assert result.events == ()


def test_a_shorter_last_step_counts_for_what_it_is() -> None:
    result = run(POLICIES.fixed, duration=100.0)
    assert len(result.series.demand) == 7
    assert result.totals.core_hours_requested == pytest.approx(1.5 * 100 / HOUR)
    warm = run(POLICIES.fixed, duration=16.0, warm_up=15.0)
    assert warm.totals.core_hours_requested == pytest.approx(1.5 / HOUR)
    starved = run(POLICIES.fixed, duration=100.0, load=build.step(90.0, 90.0, 1e6), workload=capped())
    assert starved.totals.unmet_share == pytest.approx(0.1)


def capped() -> WorkloadModel:
    return build.workload(build.container(limits={"cpu": 1000}))


def test_an_hpa_that_can_not_scale_says_why_and_when_it_can_again() -> None:
    policy = Policy("hpa", "HPA", hpa={"maxReplicas": 5, "metrics": [UTILIZATION]})
    blind = run(policy, workload=build.workload(build.container(requests={})))
    reported = [event for event in blind.events if event.kind == "Condition"]
    assert {event.reason for event in reported} == {"FailedGetResourceMetric"}
    assert "missing request for cpu" in reported[-1].message
    seeing = run(policy)
    assert [event.reason for event in seeing.events if event.kind == "Condition"] == [
        "FailedGetResourceMetric",
        "ValidMetricFound",
    ], "before the first measurement, and after it"


def test_a_limit_without_a_request_is_the_request() -> None:
    policy = Policy("hpa", "HPA", hpa={"maxReplicas": 10, "metrics": [UTILIZATION]})
    limited = build.container(requests={}, limits={"cpu": 500, "memory": 1024 * build.MIB})
    result = run(policy, workload=build.workload(limited), load=build.constant(300.0))
    assert result.series.replicas[-1] > 6
    assert set(result.series.requests["app", "cpu"]) == {500.0}


def test_a_vpa_that_resizes_no_pod_changes_no_request() -> None:
    """The first pod that is made anew, by a scale-out, gets what the others have."""
    limited = build.container(requests={}, limits={"cpu": 500, "memory": 1024 * build.MIB})
    none = {"resourcePolicy": {"containerPolicies": [{"containerName": "*", "mode": "Off"}]}}
    policy = Policy("both", "HPA+VPA", hpa={"maxReplicas": 10, "metrics": [UTILIZATION]}, vpa=none)
    result = run(policy, workload=build.workload(limited), load=build.step(60.0, 600.0, 200.0))
    assert result.totals.replica_changes > 0
    assert result.totals.request_changes == 0
    assert result.reactions[0].metric_age is not None, "a limit says what the target is of, too"


def test_a_workload_that_only_crashes_is_not_scaled_in() -> None:
    """Containers that don't run have no metrics, rather than none used."""
    crashing = build.container(
        cpu_base=400.0,
        cpu_per_unit=0.0,
        limits={"memory": 512 * build.MIB},
        memory_leak=150 * 1024 * build.MIB / HOUR,
    )
    policy = Policy("hpa", "HPA", hpa={"maxReplicas": 10, "metrics": [UTILIZATION]})
    result = run(policy, workload=build.workload(crashing, replicas=4), duration=2 * HOUR)
    assert result.totals.ooms > 100
    assert min(result.series.replicas) == 4


def test_more_events_than_are_kept_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hvpa_lab.simulate.measure.MOST_EVENTS", 1)
    result = run(POLICIES.vpa, load=build.constant(240.0), duration=4 * HOUR)
    assert len(result.events) == 1
    assert result.dropped_events >= 2


def test_an_hpa_on_the_load_itself_needs_no_cpu_metric() -> None:
    external = {
        "type": "External",
        "external": {"metric": {"name": "load"}, "target": {"type": "AverageValue", "averageValue": "30"}},
    }
    policy = Policy("queue", "HPA", hpa={"minReplicas": 1, "maxReplicas": 10, "metrics": [external]})
    result = run(policy, load=build.step(90.0, 600, 240.0))
    assert result.series.replicas[30] == 3
    assert result.series.replicas[-1] == 8
    assert result.reactions[0].tolerance is None


def unready(scenario: Scenario) -> Scenario:
    return replace(scenario, workload=replace(scenario.workload, start_up=10 * HOUR))


def test_pods_that_are_never_ready_serve_nothing() -> None:
    scenario = unready(build.scenario(load=build.step(90.0, 600, 300.0)))
    result = simulate(scenario, POLICIES.hpa)
    assert result.series.replicas[-1] > 3
    assert result.series.ready[-1] == 3
    assert result.reactions[0].start_up is None


def test_a_decision_that_breaks_an_invariant_is_an_event(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = (Violation("capacity", "cpu: 2 of 3 served by 2 pods"),)
    monkeypatch.setattr(reconciler, "violations", lambda observation, decision: broken)
    result = run(POLICIES.hvpa, duration=60.0)
    violations = [(event.reason, event.message) for event in result.events if event.kind == "Violation"]
    assert set(violations) == {tuple(broken[0])}
