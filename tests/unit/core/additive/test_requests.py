"""The vertical axis, as decided: blending, policies, limits, one step per recommendation (DESIGN 5.2, 5.3)."""

from __future__ import annotations

import datetime as dt
import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import build
from builders.build import GIB, NOW, at, stamp
from hvpa.core import Decision, Objects
from hvpa.core.model import LAST_APPLIED
from tests.unit.core.additive.vertically import (
    OFF,
    app,
    applied,
    axis,
    blended,
    least,
    limits,
    only,
    policy,
    recommending,
    requests,
    seen,
    up,
)
from tests.unit.core.named import named


# --- blending --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("targets", "weight", "expected"),
    named(
        {
            "up: 1 + 1 x 0.6": ({"cpu": "2"}, 60, {"cpu": 1600, "memory": GIB}),
            "down: 1 - 0.5 x 0.6": ({"cpu": "500m"}, 60, {"cpu": 700, "memory": GIB}),
            "full weight: the target": ({"cpu": "2"}, 100, {"cpu": 2000, "memory": GIB}),
            "no weight: nothing": ({"cpu": "2"}, 0, {"cpu": 1000, "memory": GIB}),
            "memory in whole kilobytes": ({"memory": "2Gi"}, 100, {"cpu": 1000, "memory": 2_147_484_000}),
            "there already": ({"cpu": "1", "memory": "1Gi"}, 50, {"cpu": 1000, "memory": GIB}),
            "both": ({"cpu": "2", "memory": "2Gi"}, 50, {"cpu": 1500, "memory": 1_610_613_000}),
            "memory by a rounding: nothing": ({"memory": "1073742k"}, 100, {"cpu": 1000, "memory": GIB}),
            "memory by less than a thousandth: nothing": (
                {"memory": "1025Mi"},
                100,
                {"cpu": 1000, "memory": GIB},
            ),
            "memory by a thousandth": ({"memory": "1074815566"}, 100, {"cpu": 1000, "memory": 1_074_816_000}),
            "cpu by a thousandth": ({"cpu": "1001m"}, 100, {"cpu": 1001, "memory": GIB}),
            "a request does not rise for a target below it": (
                {"memory": "1073741500"},
                100,
                {"cpu": 1000, "memory": GIB},
            ),
        }
    ),
)
def test_weight_blends_requests(targets: dict[str, str], weight: float, expected: dict[str, int]) -> None:
    any_change = {"vpa": {name: least(cpu="1m", memory="1") for name in ("scaleUp", "scaleDown")}}
    assert requests(build.decided(seen(targets, weight=weight, spec=any_change))) == expected


def test_no_pod_is_replaced_for_the_same_memory_in_another_unit() -> None:
    decision = build.decided(
        seen({"cpu": "1", "memory": "1073742k"}, weight=100, spec=up(**least(memory="1")))
    )
    assert (decision.workload_patch, decision.blocked, "memory" in str(decision.steps)) == (None, (), False)


def test_min_allowed_brings_a_request_inside_by_a_rounding() -> None:
    spec = build.merged(
        policy(containerName="app", minAllowed={"memory": "1073742k"}), up(**least(memory="1"))
    )
    assert (
        requests(build.decided(seen({"memory": "1073742k"}, weight=100, spec=spec)))["memory"]
        == 1_073_742_000
    )


def test_the_patch_holds_what_changes_and_the_record() -> None:
    decision = build.decided(seen({"cpu": "2", "memory": "1Gi"}, [app(limits={"cpu": "2"})]))
    patch = decision.workload_patch
    assert patch is not None
    assert (patch.kind, patch.name, patch.resource_version) == ("Deployment", "web", "7")
    resources = {"requests": {"cpu": "1500m"}, "limits": {"cpu": "3"}}
    assert patch.body["spec"] == {
        "template": {"spec": {"containers": [{"name": "app", "resources": resources}]}}
    }
    metadata: Any = patch.body["metadata"]
    assert metadata["resourceVersion"] == "7"
    entry = {"container": "app", "resource": "cpu", "target": "2", "weight": 50.0, "request": "1500m"}
    assert json.loads(metadata["annotations"][LAST_APPLIED])["vertical"] == {
        "lastScaleTime": "2026-11-21T10:00:00Z",
        "lastScaleUpTime": "2026-11-21T10:00:00Z",
        "appliedFrom": [entry],
    }
    assert decision.applied == (("vertical", "up"),)
    [event] = [event for event in decision.events if event.involved is None]
    assert event.reason == "ScaledUp"
    assert event.message == "cpu 1 -> 1500m of app; VPA: cpu 2 of app; vpaWeight 50", "memory did not change"


def test_both_directions_at_once_are_one_patch() -> None:
    decision = build.decided(seen({"cpu": "2", "memory": "512Mi"}))
    assert decision.applied == (("vertical", "down"), ("vertical", "up"))
    last = decision.status.last_scaling
    assert last is not None
    assert (last.last_scale_time, last.vpa_status is None) == (NOW, False)


@pytest.mark.parametrize(
    ("container", "expected", "limit"),
    named(
        {
            "no request: from 0": (build.container(requests={}), 1000, None),
            "a limit and no request: from the limit": (
                build.container(requests={}, limits={"cpu": "4"}),
                3000,
                3000,
            ),
            "a request that cannot be read": (build.container(requests={"cpu": "soon"}), 1000, None),
        }
    ),
)
def test_a_missing_request_counts_from_0_or_the_limit(
    container: dict[str, Any], expected: int, limit: int | None
) -> None:
    pods = [build.pod(name, containers=[container]) for name in "abc"]
    decision = build.decided(seen({"cpu": "2"}, [container], pods=pods))
    assert (requests(decision)["cpu"], limits(decision).get("cpu")) == (expected, limit)
    active = build.condition(decision, "VpaActive")
    assert (active.status, active.reason) == ("True", "MissingRequest")
    assert "app cpu" in active.message
    assert "MissingRequest" in [event.reason for event in decision.events]


def test_a_request_that_pods_were_given_is_where_the_first_step_begins() -> None:
    """A LimitRange gives each pod half a core; without that it would begin from 0."""
    pods = [build.pod(name, containers=[app("500m")]) for name in "abc"]
    decision = build.decided(seen({"cpu": "2"}, [build.container(requests={})], pods=pods))
    assert requests(decision)["cpu"] == 1250, "500m + 1500m x 0.5"


def test_a_recommendation_for_an_unknown_container_is_ignored_and_reported() -> None:
    decision = build.decided(seen({"app": {"cpu": "2"}, "ghost": {"cpu": "2"}}))
    assert set(decision.containers) == {"app"}
    active = build.condition(decision, "VpaActive")
    assert (active.status, active.reason) == ("True", "UnknownContainer")
    assert "ghost" in active.message
    assert "UnknownContainer" in [event.reason for event in decision.events]


def test_a_container_without_recommendation_is_left_alone() -> None:
    decision = build.decided(seen({"app": {"cpu": "2"}}, [app(), build.container("sidecar")]))
    assert requests(decision, "sidecar") == {"cpu": 1000, "memory": GIB}
    assert requests(decision)["cpu"] == 1500


# --- policies and limits ---------------------------------------------------------------------------------------------
ALLOWED = {
    "resourcePolicy": {"containerPolicies": [{"containerName": "app", "maxAllowed": {"cpu": "1200m"}}]}
}
NAMED = {"metadata": {"name": "theirs", "ownerReferences": []}}
THEIRS = {"vpa": {"deploy": False, "name": "theirs"}}


@pytest.mark.parametrize(
    ("fields", "expected"),
    named(
        {
            "minAllowed bounds the result": ({"minAllowed": {"cpu": "1800m"}}, 1800),
            "maxAllowed bounds the result": ({"maxAllowed": {"cpu": "1300m"}}, 1300),
            "each resource has its own": ({"maxAllowed": {"memory": "1Gi"}}, 1500),
            "a resource that is not controlled": ({"controlledResources": ["memory"]}, 1000),
            "none is controlled": ({"controlledResources": []}, 1000),
            "a container whose mode is Off": ({"mode": "Off"}, 1000),
            "another container's policy": ({"containerName": "other", "mode": "Off"}, 1500),
        }
    ),
)
def test_min_allowed_max_allowed_and_mode_of_container_policies(
    fields: dict[str, Any], expected: int
) -> None:
    spec = policy(**{"containerName": "*", **fields})
    assert requests(build.decided(seen({"cpu": "2"}, spec=spec)))["cpu"] == expected


def test_container_policies_of_the_template_or_of_a_named_vpa_count() -> None:
    def request(spec: dict[str, Any], vpa: dict[str, Any] | None = None) -> int:
        return requests(build.decided(seen({"cpu": "2"}, spec=spec, vpa=vpa)))["cpu"]

    own = policy(containerName="app", maxAllowed={"cpu": "1400m"})
    both = [{"containerName": "*", "mode": "Off"}, {"containerName": "app", "maxAllowed": {"cpu": "1400m"}}]
    template = {"spec": {"resourcePolicy": {"containerPolicies": both}}}
    assert request({"vpa": {"template": template}}) == 1400, "a container's own comes before the one for all"
    assert request(THEIRS, {**NAMED, "spec": ALLOWED}) == 1200, "a named VPA has its own"
    assert request(THEIRS, NAMED) == 1500, "or none"
    assert request(own, {"spec": ALLOWED}) == 1400, "of our VPA the template's, also before it is applied"


@pytest.mark.parametrize(
    ("present", "gap", "expected"),
    named(
        {
            "proportional: 1.5 x 2": ({"cpu": "2"}, {}, {"cpu": 3000}),
            "equal to the request: the request": ({"cpu": "1"}, {}, {"cpu": 1500}),
            "gap: 1.5 + 1": ({"cpu": "2"}, {"cpu": {"percentage": 30, "value": "1"}}, {"cpu": 2500}),
            "gap: 1.5 x 2": ({"cpu": "2"}, {"cpu": {"percentage": 100, "value": "1"}}, {"cpu": 3000}),
            "gap of the other resource": ({"cpu": "2"}, {"memory": {"percentage": 30}}, {"cpu": 3000}),
            "no limit: none is set": ({}, {"cpu": {"percentage": 30}}, {}),
            "the limit of what does not change stays": ({"memory": "2Gi"}, {}, {"memory": 2 * GIB}),
        }
    ),
)
def test_limits_requests_gap_scale_params_say_how_limits_follow_requests(
    present: dict[str, str], gap: dict[str, Any], expected: dict[str, int]
) -> None:
    spec = {"vpa": {"limitsRequestsGapScaleParams": gap}}
    assert limits(build.decided(seen({"cpu": "2"}, [app(limits=present)], spec=spec))) == expected


def test_controlled_values_requests_only_keeps_limits_and_bounds_requests() -> None:
    spec = policy(containerName="app", controlledValues="RequestsOnly")
    decision = build.decided(seen({"cpu": "4"}, [app(limits={"cpu": "2"})], spec=spec))
    assert requests(decision)["cpu"] == 2000  # 1 + 3 x 0.5 = 2.5, above the limit
    assert limits(decision) == {"cpu": 2000}


def test_other_resources_are_never_touched() -> None:
    amounts = {"cpu": "1", "memory": "1Gi", "ephemeral-storage": "1Gi"}
    odd = build.container(requests=amounts, limits={"nvidia.com/gpu": 1})
    patch = build.decided(seen({"cpu": "2", "ephemeral-storage": "9Gi"}, [odd])).workload_patch
    assert patch is not None
    changed = {"name": "app", "resources": {"requests": {"cpu": "1500m"}}}
    assert patch.body["spec"] == {"template": {"spec": {"containers": [changed]}}}


# --- all replicas are there ------------------------------------------------------------------------------------------
ACTIVE = {"type": "ScalingActive", "status": "True"}
LIMITED = {"type": "ScalingLimited", "status": "True", "reason": "TooManyReplicas"}
JUST_SCALED = {"axes": {"horizontal": {"lastScaleTime": stamp(at(seconds=-20))}}}


def at_max(
    target: str = "2", weight: float = 0, limited: Any = LIMITED, desired: int = 10, **rest: Any
) -> Objects:
    """All ten replicas, and the HPA still wants more."""
    hpa = build.hpa(desired, 90, {"status": {"conditions": [ACTIVE, limited]}}, replicas=10)
    return seen({"cpu": target}, weight=weight, target=build.workload(10, [app()]), horizontal=hpa, **rest)


def test_at_max_replicas_what_goes_up_has_full_weight_whatever_the_interval() -> None:
    def request(*args: Any, **rest: Any) -> int:
        return requests(build.decided(at_max(*args, **rest)))["cpu"]

    assert request() == request(weight=50) == request(spec={"weightBasedScalingIntervals": None}) == 2000
    assert (request("500m"), request("500m", 50)) == (1000, 750), "what goes down has its interval's weight"
    assert only(build.decided(at_max(spec=up(**OFF)))).reason == "UpdatePolicy", "gates still judge"
    assert request(limited={**LIMITED, "status": "False"}) == 1000, "the HPA is not limited"
    assert request(limited={**LIMITED, "reason": "TooFewReplicas"}) == 1000, "by minReplicas"
    assert request(desired=9) == 1000, "it wants fewer than maxReplicas"
    hpa = build.hpa(10, 300, {"status": {"conditions": [ACTIVE, LIMITED]}})
    assert requests(build.decided(seen({"cpu": "2"}, weight=0, horizontal=hpa)))["cpu"] == 1000, "below max"


def test_measurement_holds_the_full_weight_at_max_replicas() -> None:
    decision = build.decided(at_max(status=JUST_SCALED))
    assert (only(decision).reason, only(decision).until) == ("Measurement", at(seconds=40))
    assert decision.recheck_after == dt.timedelta(seconds=40)
    assert requests(build.decided(at_max(status=JUST_SCALED), at(seconds=40)))["cpu"] == 2000
    usual = at_max(weight=50, status=JUST_SCALED)
    assert requests(build.decided(usual))["cpu"] == 1500, "until then the usual weight counts"


# --- one step per recommendation -------------------------------------------------------------------------------------
def again(after: Objects, target: str, now: dt.datetime, weight: float = 50) -> Decision:
    """A later decision on another target, with the state that the step left behind."""
    spec = {"weightBasedScalingIntervals": [{"vpaWeight": weight}]}
    hvpa = build.with_status(build.hvpa(spec), after.hvpa.status)
    assert after.workload is not None
    containers = [
        msgspec.to_builtins(container) for container in after.workload.spec.template.spec.containers
    ]
    pods = [build.pod(f"web-{index}", containers=containers) for index in range(3)]
    vpa = build.vpa({"app": {"cpu": target}})
    return build.decided(build.objects(hvpa, after.workload, after.hpas[0], vpa, pods), now)


def test_the_same_target_is_not_taken_twice() -> None:
    after = applied(seen({"cpu": "2"}))
    for when in (NOW, at(hours=1), at(days=9)):
        decision = again(after, "2", when)
        assert (requests(decision)["cpu"], decision.blocked, decision.recheck_after) == (1500, (), None)
    assert requests(again(after, "2", at(minutes=1), weight=100))["cpu"] == 2000, "but anew at another weight"


@pytest.mark.parametrize(
    ("target", "expected"),
    named(
        {
            "further up: 1.5 + 0.4 x 0.5, a change of minChange": ("2400m", 1700),
            "further up by less: held": ("2398m", 1500),
            "down: 1.5 - 0.4 x 0.5": ("1600m", 1300),
            "down by less: held": ("1602m", 1500),
            "back to where the request was at first: so is the request": ("1", 1000),
        }
    ),
)
def test_a_request_moves_with_its_target_by_the_weight(target: str, expected: int) -> None:
    assert requests(again(applied(seen({"cpu": "2"})), target, at(minutes=1)))["cpu"] == expected


@pytest.mark.parametrize(
    ("before", "target", "expected"),
    [
        pytest.param("3", "2400m", 1700, id="1 - 0.6 x 0.5 is less than 2.4 x 0.5: 1 + 1.4 x 0.5"),
        pytest.param("8", "2", 1500, id="1 - 6 x 0.5 is negative: 1 + 1 x 0.5"),
        pytest.param("8", "400m", 700, id="also further down"),
    ],
)
def test_a_request_that_does_not_fit_its_target_is_blended_again(
    before: str, target: str, expected: int
) -> None:
    """The request was 4.5 cores after its step from 8 cores; an OOM, a limit or a rollback has since made it 1 core."""
    assert requests(build.decided(seen({"cpu": target}, status=blended(before, 50))))["cpu"] == expected


@given(
    before=st.integers(1, 10_000_000),
    target=st.integers(1, 10_000_000),
    request=st.integers(1, 10_000_000),
    weight=st.integers(1, 99),
)
def test_no_history_of_targets_makes_a_request_less_than_its_target_by_weight(
    before: int, target: int, request: int, weight: int
) -> None:
    status = blended(f"{before}m", weight, f"{request}m")
    objects = seen({"cpu": f"{target}m"}, [app(f"{request}m")], weight, status=status)
    assert requests(build.decided(objects))["cpu"] * 100 >= min(100 * request, target * weight)


def test_min_change_holds_a_target_that_has_moved_a_little_further() -> None:
    decision = again(applied(seen({"cpu": "2"})), "2100m", at(minutes=1))
    entry = only(decision)
    assert (entry.reason, entry.wanted, entry.until) == ("MinChange", 1550, None), (
        "its movement, at weight 50"
    )
    assert (
        "app cpu: 1500m now, 2100m recommended, 1550m at weight 50: 1500m was set when 2 was recommended, so "
        "1500m + (2100m - 2) × 50 %"
    ) in decision.steps[-1]


def test_a_target_counts_anew_where_another_client_changed_the_request() -> None:
    after = applied(seen({"cpu": "2"}))
    other = build.workload(3, [app("1200m")])
    decision = build.decided(build.objects(after.hvpa, other, after.hpas[0], after.vpas[0]), at(minutes=1))
    assert requests(decision)["cpu"] == 1600  # 1.2 + 0.8 x 0.5


def test_a_recorded_target_that_cannot_be_read_counts_as_none() -> None:
    assert requests(build.decided(seen({"cpu": "2"}, status=blended("?", 50))))["cpu"] == 1500


def test_min_change_timeout_lets_small_moves_escalate_at_full_weight() -> None:
    # DESIGN 7.4: a pod pinned at its node's headroom never shows a need of minChange more.
    now, request = NOW, 1000
    objects = seen({"cpu": "1500m"}, weight=100, spec=up(**least(cpu="1")))
    for minutes in (15, 30, 60):
        wait = dt.timedelta(minutes=minutes)
        first = build.decided(objects, now)
        assert (only(first).reason, only(first).until) == ("MinChange", now + wait)
        waited = build.apply(objects, first)
        now += wait
        request += 500
        second = build.decided(waited, now)
        assert requests(second)["cpu"] == request
        objects = recommending(build.apply(waited, second), {"cpu": f"{request + 500}m"})


# --- other clients ---------------------------------------------------------------------------------------------------
def edited(after: Objects, cpu: str, memory: str = "1Gi") -> Objects:
    """Another client has set other requests."""
    fields: dict[str, Any] = {"f:containers": {"app": {"f:resources": {"f:requests": {"f:cpu": {}}}}}}
    entry = {"f:spec": {"f:template": {"f:spec": fields}}}
    assert after.workload is not None
    metadata = {
        "annotations": dict(after.workload.metadata.annotations),
        "managedFields": [{"manager": "helm", "time": stamp(NOW), "fieldsV1": entry}],
    }
    target = build.workload(3, [app(cpu, memory)], {"metadata": metadata})
    return build.objects(after.hvpa, target, after.hpas[0], after.vpas[0])


def test_contested_holds_requests_that_another_client_sets_back_twice() -> None:
    back = edited(applied(seen({"cpu": "2"})), "1")
    second = build.decided(back, at(minutes=1))
    assert requests(second)["cpu"] == 1500
    back = edited(build.apply(back, second), "1")
    third = build.decided(back, at(minutes=2))
    assert (only(third).reason, only(third).until) == ("Contested", at(minutes=3))
    message = build.condition(third, "Contested").message
    assert "helm keeps reverting requests: remove the containers' resources" in message
    assert "SetBack" in {event.reason for event in third.events}
    rest = build.decided(build.apply(back, third), at(minutes=2, seconds=30))
    assert rest.status == third.status


def recorded(decision: Decision) -> list[tuple[str, str]]:
    assert decision.status.axes is not None
    assert decision.status.axes.vertical is not None
    return [(entry.container, entry.resource) for entry in decision.status.axes.vertical.applied_from]


def test_contested_counts_one_change_by_another_client_once() -> None:
    # Memory is edited, and no step wants it back; a later step of CPU must not take that for a second time.
    objects = edited(applied(seen({"cpu": "2", "memory": "2Gi"})), "1500m", "2Gi")
    objects = recommending(objects, {"cpu": "3", "memory": "2Gi"})
    first = build.decided(objects, at(minutes=1))
    assert requests(first)["cpu"] == 2000
    assert recorded(first) == [("app", "cpu")]
    moved = recommending(build.apply(objects, first), {"cpu": "4", "memory": "2Gi"})
    second = build.decided(moved, at(minutes=2))
    assert (second.blocked, requests(second)["cpu"]) == ((), 2500)


def test_contested_ignores_a_container_that_is_gone() -> None:
    gone = {"container": "gone", "resource": "memory", "target": "2Gi", "weight": 50, "request": "1Gi"}
    decision = build.decided(seen({"cpu": "2"}, status=axis(at(minutes=-9), appliedFrom=[gone])))
    assert recorded(decision) == [("app", "cpu")]
