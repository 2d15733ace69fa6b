"""The vertical axis, as decided (DESIGN 5.2, 5.3, 6)."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from builders import build
from builders.build import GIB, MIB, NOW, at, stamp
from hvpa.core import Decision, Objects
from hvpa.core.model import LAST_APPLIED, Blocked
from tests.unit.core.named import named

WINDOW = {"begin": "220000+0000", "end": "230000+0000"}
ANY_CHANGE = {"minChange": {"cpu": {"value": "1m"}, "memory": {"value": "1"}}}


def app(
    cpu: str | None = "1", memory: str | None = "1Gi", limits: Mapping[str, str] | None = None
) -> dict[str, Any]:
    requests = {"cpu": cpu, "memory": memory}
    return build.container(requests={name: value for name, value in requests.items() if value}, limits=limits)


def seen(
    targets: Mapping[str, str] | Mapping[str, Mapping[str, str]],
    containers: Sequence[Mapping[str, Any]] | None = None,
    weight: float = 50,
    spec: Mapping[str, Any] | None = None,
    status: Mapping[str, Any] | None = None,
    **rest: Any,
) -> Objects:
    """An Hvpa whose VPA targets `targets` of container `app` (or of each container), and whose HPA is content."""
    by_name = targets if all(isinstance(one, Mapping) for one in targets.values()) else {"app": targets}
    whole = build.merged({"weightBasedScalingIntervals": [{"vpaWeight": weight}]}, spec or {})
    workload = rest.pop("target", None) or build.workload(
        3, containers or [app()], rest.pop("workload", None)
    )
    vpa = build.vpa(by_name, rest.pop("vpa", None))  # type: ignore[arg-type]
    hpa = rest.pop("horizontal", build.hpa(workload.spec.replicas, replicas=workload.spec.replicas))
    return build.objects(build.hvpa(whole, status), workload, hpa, vpa, **rest)


def requests(decision: Decision, container: str = "app") -> dict[str, int]:
    return {name: value for name, value in decision.containers[container].requests.items()}


def limits(decision: Decision, container: str = "app") -> dict[str, int]:
    return {name: value for name, value in decision.containers[container].limits.items()}


def policy(**fields: Any) -> dict[str, Any]:
    return {"vpa": {"template": {"spec": {"resourcePolicy": {"containerPolicies": [fields]}}}}}


def up(**fields: Any) -> dict[str, Any]:
    return {"vpa": {"scaleUp": fields}}


def down(**fields: Any) -> dict[str, Any]:
    return {"vpa": {"scaleDown": fields}}


def axis(last: dt.datetime | None = None, **more: Any) -> dict[str, Any]:
    return {"axes": {"vertical": {**({"lastScaleTime": stamp(last)} if last else {}), **more}}}


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
        }
    ),
)
def test_requests_are_blended(targets: dict[str, str], weight: float, expected: dict[str, int]) -> None:
    assert requests(build.decided(seen(targets, weight=weight))) == expected


def test_the_patch_holds_what_changes_and_the_record() -> None:
    decision = build.decided(seen({"cpu": "2", "memory": "1Gi"}, [app(limits={"cpu": "2"})]))
    patch = decision.workload_patch
    assert patch is not None
    assert (patch.kind, patch.name, patch.resource_version) == ("Deployment", "web", "7")
    resources = {"requests": {"cpu": "1500m"}, "limits": {"cpu": "3"}}
    assert patch.body["spec"] == {
        "template": {"spec": {"containers": [{"name": "app", "resources": resources}]}}
    }
    metadata = patch.body["metadata"]
    assert isinstance(metadata, dict)
    assert metadata["resourceVersion"] == "7"
    record = json.loads(metadata["annotations"][LAST_APPLIED])
    assert record["vertical"] == {
        "lastScaleTime": "2026-11-21T10:00:00Z",
        "lastScaleUpTime": "2026-11-21T10:00:00Z",
        "appliedFrom": [
            {"container": "app", "resource": "cpu", "target": "2", "weight": 50.0, "request": "1500m"}
        ],
    }
    assert decision.applied == (("vertical", "up"),)
    [event] = [one for one in decision.events if one.involved is None]
    assert (event.reason, event.message) == (
        "ScaledUp",
        "cpu 1 -> 1500m of app; VPA: cpu 2 of app; vpaWeight 50",
    ), "memory did not change"


def test_both_directions_at_once_are_one_patch() -> None:
    decision = build.decided(seen({"cpu": "2", "memory": "512Mi"}))
    assert decision.applied == (("vertical", "down"), ("vertical", "up"))
    assert decision.status.last_scaling is not None
    assert decision.status.last_scaling.last_scale_time == NOW
    assert decision.status.last_scaling.vpa_status is not None


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
def test_a_missing_request(container: dict[str, Any], expected: int, limit: int | None) -> None:
    pods = [build.pod(name, containers=[container]) for name in "abc"]
    decision = build.decided(seen({"cpu": "2"}, [container], pods=pods))
    assert requests(decision)["cpu"] == expected
    assert limits(decision).get("cpu") == limit
    active = next(one for one in decision.status.conditions if one.type == "VpaActive")
    assert (active.status, active.reason) == ("True", "MissingRequest")
    assert "app cpu" in active.message
    assert "MissingRequest" in [event.reason for event in decision.events]


def test_a_request_that_pods_were_given_is_where_the_first_step_begins() -> None:
    """A LimitRange gives each pod half a core; without that it would begin from 0."""
    pods = [build.pod(name, containers=[app("500m")]) for name in "abc"]
    decision = build.decided(seen({"cpu": "2"}, [build.container(requests={})], pods=pods))
    assert requests(decision)["cpu"] == 1250, "500m + 1500m x 0.5"


def test_a_recommendation_for_an_unknown_container_is_ignored_and_told() -> None:
    decision = build.decided(seen({"app": {"cpu": "2"}, "ghost": {"cpu": "2"}}))
    assert set(decision.containers) == {"app"}
    active = next(one for one in decision.status.conditions if one.type == "VpaActive")
    assert (active.status, active.reason) == ("True", "UnknownContainer")
    assert "ghost" in active.message
    assert "UnknownContainer" in [event.reason for event in decision.events]


def test_a_container_without_recommendation_is_left_alone() -> None:
    decision = build.decided(seen({"app": {"cpu": "2"}}, [app(), build.container("sidecar")]))
    assert requests(decision, "sidecar") == {"cpu": 1000, "memory": GIB}
    assert requests(decision)["cpu"] == 1500


# --- what the policies say -------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("fields", "targets", "expected"),
    named(
        {
            "minAllowed bounds the result": ({"minAllowed": {"cpu": "1800m"}}, {"cpu": "2"}, 1800),
            "maxAllowed bounds the result": ({"maxAllowed": {"cpu": "1300m"}}, {"cpu": "2"}, 1300),
            "each resource has its own": ({"maxAllowed": {"memory": "1Gi"}}, {"cpu": "2"}, 1500),
            "a resource that is not controlled": ({"controlledResources": ["memory"]}, {"cpu": "2"}, 1000),
            "none is controlled": ({"controlledResources": []}, {"cpu": "2"}, 1000),
            "a container whose mode is Off": ({"mode": "Off"}, {"cpu": "2"}, 1000),
            "another container's policy": ({"containerName": "other", "mode": "Off"}, {"cpu": "2"}, 1500),
        }
    ),
)
def test_container_policies(fields: dict[str, Any], targets: dict[str, str], expected: int) -> None:
    spec = policy(**{"containerName": "*", **fields})
    assert requests(build.decided(seen(targets, spec=spec)))["cpu"] == expected


def test_a_containers_own_policy_comes_before_the_one_for_all() -> None:
    found = [{"containerName": "*", "mode": "Off"}, {"containerName": "app", "maxAllowed": {"cpu": "1400m"}}]
    spec = {"vpa": {"template": {"spec": {"resourcePolicy": {"containerPolicies": found}}}}}
    assert requests(build.decided(seen({"cpu": "2"}, spec=spec)))["cpu"] == 1400


def test_the_policy_of_a_named_vpa_is_its_own() -> None:
    spec = {"vpa": {"deploy": False, "name": "theirs"}}
    named = {"metadata": {"name": "theirs", "ownerReferences": []}}
    bound = {
        "spec": {
            "resourcePolicy": {
                "containerPolicies": [{"containerName": "app", "maxAllowed": {"cpu": "1200m"}}]
            }
        }
    }
    assert requests(build.decided(seen({"cpu": "2"}, spec=spec, vpa={**named, **bound})))["cpu"] == 1200
    assert requests(build.decided(seen({"cpu": "2"}, spec=spec, vpa=named)))["cpu"] == 1500


def test_the_policy_of_our_own_vpa_is_the_templates_even_before_it_is_applied() -> None:
    behind = {
        "spec": {
            "resourcePolicy": {"containerPolicies": [{"containerName": "app", "maxAllowed": {"cpu": "9"}}]}
        }
    }
    spec = policy(containerName="app", maxAllowed={"cpu": "1300m"})
    assert requests(build.decided(seen({"cpu": "2"}, spec=spec, vpa=behind)))["cpu"] == 1300


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
def test_limits_follow(present: dict[str, str], gap: dict[str, Any], expected: dict[str, int]) -> None:
    spec = {"vpa": {"limitsRequestsGapScaleParams": gap}}
    assert limits(build.decided(seen({"cpu": "2"}, [app(limits=present)], spec=spec))) == expected


def test_limits_that_are_not_controlled_stay_and_bound_the_request() -> None:
    spec = policy(containerName="app", controlledValues="RequestsOnly")
    decision = build.decided(seen({"cpu": "4"}, [app(limits={"cpu": "2"})], spec=spec))
    assert requests(decision)["cpu"] == 2000  # 1 + 3 x 0.5 = 2.5, above the limit
    assert limits(decision) == {"cpu": 2000}


def test_other_resources_are_never_touched() -> None:
    odd = build.container(
        requests={"cpu": "1", "memory": "1Gi", "ephemeral-storage": "1Gi"}, limits={"nvidia.com/gpu": 1}
    )
    decision = build.decided(seen({"cpu": "2", "ephemeral-storage": "9Gi"}, [odd]))
    patch = decision.workload_patch
    assert patch is not None
    assert patch.body["spec"] == {
        "template": {"spec": {"containers": [{"name": "app", "resources": {"requests": {"cpu": "1500m"}}}]}}
    }


# --- all replicas are there ------------------------------------------------------------------------------------------
LIMITED = [
    {"type": "ScalingActive", "status": "True"},
    {"type": "ScalingLimited", "status": "True", "reason": "TooManyReplicas"},
]


def at_max(
    targets: dict[str, str], weight: float = 0, conditions: Any = None, desired: int = 10, **rest: Any
) -> Objects:
    hpa = build.hpa(desired, 90, {"status": {"conditions": conditions or LIMITED}}, replicas=10)
    return seen(targets, weight=weight, target=build.workload(10, [app()]), horizontal=hpa, **rest)


def test_at_max_replicas_what_goes_up_has_full_weight_whatever_the_interval() -> None:
    assert requests(build.decided(at_max({"cpu": "2"})))["cpu"] == 2000
    assert requests(build.decided(at_max({"cpu": "2"}, weight=50)))["cpu"] == 2000
    none = {"weightBasedScalingIntervals": None}
    assert requests(build.decided(at_max({"cpu": "2"}, spec=none)))["cpu"] == 2000


def test_at_max_replicas_what_goes_down_has_the_weight_of_the_interval() -> None:
    assert requests(build.decided(at_max({"cpu": "500m"})))["cpu"] == 1000
    assert requests(build.decided(at_max({"cpu": "500m"}, weight=50)))["cpu"] == 750


def test_at_max_replicas_the_gates_still_judge() -> None:
    decision = build.decided(at_max({"cpu": "2"}, spec=up(updatePolicy={"updateMode": "Off"})))
    assert [entry.reason for entry in decision.blocked] == ["UpdatePolicy"]


@pytest.mark.parametrize(
    "objects",
    named(
        {
            "the HPA is not limited": at_max({"cpu": "2"}, conditions=LIMITED[:1]),
            "not any more": at_max({"cpu": "2"}, conditions=[LIMITED[0], {**LIMITED[1], "status": "False"}]),
            "by minReplicas": at_max(
                {"cpu": "2"}, conditions=[LIMITED[0], {**LIMITED[1], "reason": "TooFewReplicas"}]
            ),
            "it wants fewer than maxReplicas": at_max({"cpu": "2"}, desired=9),
        }
    ),
)
def test_otherwise_the_weight_counts(objects: Objects) -> None:
    assert requests(build.decided(objects))["cpu"] == 1000


def test_below_max_replicas_the_weight_counts_though_the_hpa_is_limited() -> None:
    hpa = build.hpa(10, 300, {"status": {"conditions": LIMITED}})
    assert requests(build.decided(seen({"cpu": "2"}, weight=0, horizontal=hpa)))["cpu"] == 1000


# --- one step per recommendation -------------------------------------------------------------------------------------
def after_step(targets: dict[str, str], **rest: Any) -> Objects:
    before = seen(targets, **rest)
    return build.apply(before, build.decided(before))


def again(
    after: Objects, targets: dict[str, str], now: dt.datetime, weight: float = 50, **spec: Any
) -> Decision:
    """A later decision on other targets, with the state that the step left behind."""
    whole = build.merged({"weightBasedScalingIntervals": [{"vpaWeight": weight}]}, spec)
    one = build.with_status(build.hvpa(whole), after.hvpa.status)
    assert after.workload is not None
    return build.decided(build.objects(one, after.workload, after.hpas[0], build.vpa({"app": targets})), now)


def test_the_same_target_is_not_taken_twice() -> None:
    after = after_step({"cpu": "2"})
    for when in (NOW, at(hours=1), at(days=9)):
        decision = again(after, {"cpu": "2"}, when)
        assert requests(decision)["cpu"] == 1500
        assert decision.blocked == ()
        assert decision.recheck_after is None


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
    assert requests(again(after_step({"cpu": "2"}), {"cpu": target}, at(minutes=1)))["cpu"] == expected


def test_a_target_that_has_moved_a_little_further_waits_for_the_timeout() -> None:
    after = after_step({"cpu": "2"})
    decision = again(after, {"cpu": "2100m"}, at(minutes=1))
    (entry,) = decision.blocked
    assert (entry.reason, entry.wanted, entry.until) == ("MinChange", 1550, None), (
        "its movement, at weight 50"
    )
    assert (
        "app cpu: 1500m now, 2100m recommended, 1550m at weight 50: 1500m was set when 2 was recommended, so "
        "1500m + (2100m - 2) × 50 %"
    ) in decision.steps[-1]


def test_a_target_counts_anew_at_another_weight() -> None:
    assert requests(again(after_step({"cpu": "2"}), {"cpu": "2"}, at(minutes=1), weight=100))["cpu"] == 2000


def test_a_target_counts_anew_where_somebody_changed_the_request() -> None:
    after = after_step({"cpu": "2"})
    assert after.workload is not None
    other = build.workload(3, [app("1200m")])
    decision = build.decided(build.objects(after.hvpa, other, after.hpas[0], after.vpas[0]), at(minutes=1))
    assert requests(decision)["cpu"] == 1600  # 1.2 + 0.8 x 0.5


def test_at_full_weight_a_small_move_escalates_within_the_timeout() -> None:
    # DESIGN 7.4: a pod pinned at its node's headroom never shows a need of minChange more.
    least = {"minChange": {"cpu": {"value": "1"}}}
    now, request = NOW, 1000
    objects = seen({"cpu": "1500m"}, weight=100, spec=up(**least))
    for minutes in (15, 30, 60):
        wait = dt.timedelta(minutes=minutes)
        first = build.decided(objects, now)
        assert [(entry.reason, entry.until) for entry in first.blocked] == [("MinChange", now + wait)]
        waited = build.apply(objects, first)
        now += wait
        second = build.decided(waited, now)
        request += 500
        assert requests(second)["cpu"] == request
        done = build.apply(waited, second)
        objects = build.objects(
            done.hvpa, done.workload, done.hpas[0], build.vpa({"app": {"cpu": f"{request + 500}m"}})
        )


# --- gates -----------------------------------------------------------------------------------------------------------
def only(decision: Decision) -> Blocked:
    (entry,) = decision.blocked
    return entry


@pytest.mark.parametrize(
    ("objects", "reason", "direction", "wanted", "until"),
    named(
        {
            "Paused": (seen({"cpu": "2"}, spec={"mode": "Paused"}), "Paused", "up", 1500, None),
            "no weight: what full weight would be": (
                seen({"cpu": "2"}, weight=0),
                "Weight",
                "up",
                2000,
                None,
            ),
            "no weight, down": (seen({"cpu": "500m"}, weight=0), "Weight", "down", 500, None),
            "up is off": (
                seen({"cpu": "2"}, spec=up(updatePolicy={"updateMode": "Off"})),
                "UpdatePolicy",
                "up",
                1500,
                None,
            ),
            "down is off": (
                seen({"cpu": "400m"}, spec=down(updatePolicy={"updateMode": "Off"})),
                "UpdatePolicy",
                "down",
                700,
                None,
            ),
            "scaled a minute ago": (
                seen({"cpu": "2"}, spec=up(stabilizationDuration="3m"), status=axis(at(minutes=-1))),
                "StabilizationWindow",
                "up",
                1500,
                at(minutes=2),
            ),
            "no window is open": (
                seen(
                    {"cpu": "2"},
                    spec={
                        **up(updatePolicy={"updateMode": "MaintenanceWindow"}),
                        "maintenanceTimeWindow": WINDOW,
                    },
                ),
                "MaintenanceWindow",
                "up",
                1500,
                at(hours=12),
            ),
            "a rollout": (
                seen({"cpu": "2"}, workload={"status": {"updatedReplicas": 2}}),
                "Rollout",
                "up",
                1500,
                None,
            ),
            "150m where the default asks for 200m": (
                seen({"cpu": "1300m"}),
                "MinChange",
                "up",
                1150,
                at(minutes=15),
            ),
            "down has no timeout": (seen({"cpu": "700m"}), "MinChange", "down", 850, None),
            "60 percent of 1, and a shorter timeout": (
                seen({"cpu": "2"}, spec=up(minChange={"cpu": {"percentage": 60}}, minChangeTimeout="1m")),
                "MinChange",
                "up",
                1500,
                at(minutes=1),
            ),
        }
    ),
)
def test_what_holds_a_change_back_is_told(
    objects: Objects, reason: str, direction: str, wanted: int, until: dt.datetime | None
) -> None:
    decision = build.decided(objects)
    entry = only(decision)
    assert entry == Blocked("vertical", direction, reason, 1000, wanted, "app", "cpu", until)  # type: ignore[arg-type]
    assert decision.workload_patch is None
    (told,) = decision.status.last_blocked_scaling
    assert (told.reason, told.axis, told.direction, told.container, told.resource) == (
        reason,
        "vertical",
        direction,
        "app",
        "cpu",
    )
    assert told.vpa_status is not None
    assert decision.recheck_after == (None if until is None else until - NOW)


@pytest.mark.parametrize(
    ("targets", "changed"),
    named(
        {
            "200m is enough CPU": ({"cpu": "1400m"}, True),
            "199.5m is 200m, as it would really be applied": ({"cpu": "1399m"}, True),
            "199m is not": ({"cpu": "1398m"}, False),
            "200M is enough memory": ({"memory": "1473741824"}, True),
            "less is not": ({"memory": "1470000000"}, False),
        }
    ),
)
def test_the_default_threshold(targets: dict[str, str], changed: bool) -> None:
    decision = build.decided(seen(targets))
    assert (decision.workload_patch is not None) is changed


def test_gates_are_judged_for_each_container_and_resource() -> None:
    spec = down(updatePolicy={"updateMode": "Off"})
    decision = build.decided(seen({"cpu": "2", "memory": "256Mi"}, spec=spec))
    assert requests(decision) == {"cpu": 1500, "memory": GIB}
    assert (only(decision).resource, only(decision).reason) == ("memory", "UpdatePolicy")


def test_a_step_of_the_other_axis_does_not_hold() -> None:
    status = {"axes": {"horizontal": {"lastScaleTime": stamp(at(minutes=-1))}}}
    assert build.decided(seen({"cpu": "2"}, spec=up(stabilizationDuration="1h"), status=status)).blocked == ()


def test_a_small_rise_goes_through_once_it_has_been_wanted_for_long_enough() -> None:
    objects = seen({"cpu": "1300m"})
    waiting = build.apply(objects, build.decided(objects))
    assert only(build.decided(waiting, at(minutes=14))).until == at(minutes=15)
    assert requests(build.decided(waiting, at(minutes=15)))["cpu"] == 1150


def test_an_interruption_starts_the_time_anew() -> None:
    objects = seen({"cpu": "1300m"})
    waiting = build.apply(objects, build.decided(objects))
    calm = again(waiting, {"cpu": "1"}, at(minutes=10))
    assert calm.status.axes is not None
    assert calm.status.axes.vertical is not None
    assert calm.status.axes.vertical.pending == ()
    rested = build.apply(waiting, calm)
    assert only(again(rested, {"cpu": "1300m"}, at(minutes=11))).until == at(minutes=26)


def test_a_rise_counts_from_when_it_was_first_wanted_whatever_held_it() -> None:
    held = seen({"cpu": "2"}, workload={"status": {"updatedReplicas": 2}})
    waiting = build.apply(held, build.decided(held))
    done = build.objects(
        waiting.hvpa, build.workload(3), waiting.hpas[0], build.vpa({"app": {"cpu": "1300m"}})
    )
    assert requests(build.decided(done, at(minutes=15)))["cpu"] == 1150


def test_a_time_from_a_wrong_clock_starts_anew() -> None:
    since = {"container": "app", "resource": "cpu", "direction": "up", "since": stamp(at(hours=5))}
    decision = build.decided(seen({"cpu": "1300m"}, status=axis(None, pending=[since])))
    assert only(decision).until == at(minutes=15)


def test_in_recommend_mode_waiting_goes_on_and_nothing_flaps() -> None:
    spec = {"mode": "Recommend"}
    objects = seen({"cpu": "1300m"}, spec=spec)
    waiting = build.apply(objects, build.decided(objects))
    over = build.decided(waiting, at(minutes=20))
    assert over.blocked == ()
    assert over.workload_patch is None
    assert requests(over)["cpu"] == 1000
    assert over.recommended["app"].requests["cpu"] == 1150
    later = build.decided(build.apply(waiting, over), at(minutes=40))
    assert later.status == over.status


# --- starving containers ---------------------------------------------------------------------------------------------
def starving(
    targets: dict[str, Any], containers: Sequence[Mapping[str, Any]] | None = None, **rest: Any
) -> Objects:
    found = list(containers or [app()])
    pods = rest.pop("pods", [build.oom_killed(at(minutes=-1), containers=found)])
    return seen(targets, found, pods=pods, **rest)


@pytest.mark.parametrize(
    ("objects", "expected"),
    named(
        {
            "the target, at full weight": (starving({"memory": "2Gi"}), 2_147_484_000),
            "the target is not above: 20 percent more": (starving({"memory": "1Gi"}), 1_288_491_000),
            "small: at least 100Mi more (in kilobytes)": (
                starving({"memory": "200Mi"}, [app(memory="200Mi")]),
                314_573_000,
            ),
            "past Weight": (starving({"memory": "2Gi"}, weight=0), 2_147_484_000),
            "past StabilizationWindow": (
                starving({"memory": "2Gi"}, spec=up(stabilizationDuration="1h"), status=axis(at(minutes=-2))),
                2_147_484_000,
            ),
            "past Rollout": (
                starving({"memory": "2Gi"}, workload={"status": {"updatedReplicas": 0}}),
                2_147_484_000,
            ),
            "past MinChange": (
                starving({"memory": "1025Mi"}, spec=up(minChange={"memory": {"value": "1Gi"}})),
                1_074_791_000,
            ),
            "never beyond maxAllowed": (
                starving(
                    {"memory": "1Gi"}, spec=policy(containerName="app", maxAllowed={"memory": "1100Mi"})
                ),
                1100 * MIB,
            ),
            "nor beyond four times the target": (starving({"memory": "300Mi"}), 1200 * MIB),
            "where the request is beyond that already, nothing": (starving({"memory": "200Mi"}), GIB),
            "not past Paused": (starving({"memory": "2Gi"}, spec={"mode": "Paused"}), GIB),
            "not past mode Off": (
                starving({"memory": "2Gi"}, spec=up(updatePolicy={"updateMode": "Off"})),
                GIB,
            ),
            "not past a closed window": (
                starving(
                    {"memory": "2Gi"},
                    spec={
                        **up(updatePolicy={"updateMode": "MaintenanceWindow"}),
                        "maintenanceTimeWindow": WINDOW,
                    },
                ),
                GIB,
            ),
            "without a target nothing is known": (starving({"cpu": "2"}), GIB),
            "another's": (
                starving({"memory": "2Gi"}, pods=[build.oom_killed(at(minutes=-1), of="other")], weight=0),
                GIB,
            ),
        }
    ),
)
def test_a_starving_containers_memory_goes_up(objects: Objects, expected: int) -> None:
    assert requests(build.decided(objects))["memory"] == expected


def test_the_flag_is_shown_while_a_container_starves() -> None:
    assert build.decided(starving({"memory": "2Gi"})).status.override_scale_up_stabilization is True
    assert build.decided(seen({"memory": "2Gi"})).status.override_scale_up_stabilization is False


def test_at_most_once_in_ten_minutes() -> None:
    objects = starving({"memory": "1Gi"}, weight=0)
    after = build.apply(objects, build.decided(objects))
    assert after.workload is not None
    raised = after.workload.spec.template.spec.containers[0].resources.requests["memory"]

    def killed_again(when: dt.datetime) -> Decision:
        pod = build.oom_killed(when, containers=[app(memory=str(raised))])
        one = build.objects(after.hvpa, after.workload, after.hpas[0], after.vpas[0], pods=[pod])
        return build.decided(one, when)

    early = killed_again(at(minutes=4))
    assert early.workload_patch is None
    held = [(one.reason, one.direction, one.wanted, one.until) for one in early.blocked]
    assert held == [("RecentRaise", "up", 1_546_190_000, at(minutes=10))]
    assert early.recommended["app"].requests["memory"] == 1_546_190_000
    assert early.recheck_after == dt.timedelta(minutes=6)
    assert requests(killed_again(at(minutes=10)))["memory"] == 1_546_190_000  # 1288491k x 1.2 = 1546189.2k


def test_a_step_that_a_wrong_clock_recorded_hides_no_container_that_starves() -> None:
    objects = starving({"memory": "2Gi"}, weight=0, status=axis(at(hours=1)))
    assert requests(build.decided(objects))["memory"] == 2_147_484_000


def test_what_was_raised_is_not_taken_back_for_the_same_target() -> None:
    objects = starving({"memory": "512Mi"}, spec=down(minChange={"memory": {"value": "1"}}))
    decision = build.decided(objects)
    assert requests(decision)["memory"] == 1_288_491_000
    after = build.apply(objects, decision)
    for weight in (50, 100):
        calm = again(
            after, {"memory": "512Mi"}, at(hours=1), weight, **down(minChange={"memory": {"value": "1"}})
        )
        assert calm.workload_patch is None
        assert [(one.reason, one.direction, one.until) for one in calm.blocked] == [
            ("MinChange", "down", None)
        ]
    lower = again(after, {"memory": "300Mi"}, at(hours=1))
    assert requests(lower)["memory"] < 1_288_491_000, "a target that moves down by minChange counts"


def test_memory_of_a_starving_container_is_not_lowered() -> None:
    bounded = policy(containerName="app", maxAllowed={"memory": "1Gi"})
    decision = build.decided(starving({"memory": "256Mi"}, spec=bounded))
    assert requests(decision)["memory"] == GIB
    assert (only(decision).reason, only(decision).until) == ("OutOfMemory", None)


RAISED = axis(at(minutes=-3), overrides=[{"container": "app", "time": stamp(at(minutes=-3))}])


def test_in_the_ten_minutes_its_memory_has_no_relief() -> None:
    objects = starving({"memory": "2Gi"}, status=RAISED, spec=up(stabilizationDuration="5m"))
    decision = build.decided(objects)
    assert (only(decision).reason, only(decision).until) == ("StabilizationWindow", at(minutes=2))
    assert decision.recheck_after == dt.timedelta(minutes=2)


@pytest.mark.parametrize(
    ("target", "rest", "expected"),
    named(
        {
            "past Weight": ("2Gi", {"weight": 0}, ("RecentRaise", "up", at(minutes=7))),
            "past a longer StabilizationWindow": (
                "2Gi",
                {"spec": up(stabilizationDuration="1h")},
                ("RecentRaise", "up", at(minutes=7)),
            ),
            "instead of being lowered": ("512Mi", {}, ("RecentRaise", "up", at(minutes=7))),
            "no raise is due: it is not lowered": ("100Mi", {}, ("OutOfMemory", "down", None)),
            "gates that the raise does not pass are reported first": (
                "2Gi",
                {"spec": up(updatePolicy={"updateMode": "Off"})},
                ("UpdatePolicy", "up", None),
            ),
        }
    ),
)
def test_the_next_raise_waits_for_its_ten_minutes_where_nothing_raises_the_memory_sooner(
    target: str, rest: dict[str, Any], expected: tuple[str, str, dt.datetime | None]
) -> None:
    decision = build.decided(starving({"memory": target}, status=RAISED, **rest))
    held = only(decision)
    assert (held.reason, held.direction, held.until) == expected


def test_in_the_ten_minutes_memory_is_raised_as_usual() -> None:
    decision = build.decided(starving({"memory": "2Gi"}, status=RAISED))
    assert requests(decision)["memory"] > GIB
    assert not decision.blocked


def test_its_cpu_and_the_other_containers_pass_stabilization_and_min_change_on_their_way_up() -> None:
    both = [app(), build.container("sidecar")]
    targets = {"app": {"cpu": "1100m", "memory": "1Gi"}, "sidecar": {"cpu": "1100m", "memory": "1100Mi"}}
    status = axis(at(minutes=-2))
    decision = build.decided(starving(targets, both, status=status, spec=up(stabilizationDuration="1h")))
    assert requests(decision)["cpu"] == 1050
    assert requests(decision, "sidecar") == {"cpu": 1050, "memory": 1_113_588_000}
    held = build.decided(starving(targets, both, weight=0))
    assert {(entry.container, entry.resource, entry.reason) for entry in held.blocked} == {
        ("app", "cpu", "Weight"),
        ("sidecar", "cpu", "Weight"),
        ("sidecar", "memory", "Weight"),
    }, "but not Weight"


def test_nothing_gets_easier_on_the_way_down() -> None:
    spec = down(stabilizationDuration="1h")
    decision = build.decided(
        starving({"cpu": "200m", "memory": "1Gi"}, status=axis(at(minutes=-2)), spec=spec)
    )
    assert [(entry.resource, entry.reason) for entry in decision.blocked] == [("cpu", "StabilizationWindow")]


@pytest.mark.parametrize(
    ("targets", "expected"),
    named(
        {
            "the target counts, at full weight": ({"memory": "2Gi"}, 2_147_484_000),
            "nothing is added to it": ({"memory": "1Gi"}, GIB),
            "nor is anything taken away": ({"memory": "512Mi"}, GIB),
        }
    ),
)
def test_gardeners_flag_is_honoured(targets: dict[str, str], expected: int) -> None:
    status = {"overrideScaleUpStabilization": True, "lastScaling": {"lastScaleTime": stamp(at(minutes=-1))}}
    decision = build.decided(seen(targets, status=status, weight=0, spec=up(stabilizationDuration="1h")))
    assert requests(decision)["memory"] == expected


def test_where_the_pods_show_it_the_flag_adds_nothing() -> None:
    status = {"overrideScaleUpStabilization": True}
    assert requests(build.decided(starving({"memory": "1Gi"}, status=status)))["memory"] == 1_288_491_000


def test_one_of_our_own_statuses_is_judged_by_its_pods() -> None:
    status = {"overrideScaleUpStabilization": True, "axes": {}}
    assert requests(build.decided(seen({"memory": "2Gi"}, status=status, weight=0)))["memory"] == GIB


# --- somebody else ---------------------------------------------------------------------------------------------------
def edited(after: Objects, cpu: str, memory: str = "1Gi") -> Objects:
    """Somebody has set other requests."""
    entry: dict[str, Any] = {
        "f:template": {"f:spec": {"f:containers": {"app": {"f:resources": {"f:requests": {"f:cpu": {}}}}}}}
    }
    managed = [{"manager": "helm", "time": stamp(NOW), "fieldsV1": {"f:spec": entry}}]
    assert after.workload is not None
    change = {
        "metadata": {"annotations": dict(after.workload.metadata.annotations), "managedFields": managed}
    }
    return build.objects(
        after.hvpa, build.workload(3, [app(cpu, memory)], change), after.hpas[0], after.vpas[0]
    )


def test_what_somebody_sets_back_twice_is_contested() -> None:
    after = after_step({"cpu": "2"})
    back = edited(after, "1")
    second = build.decided(back, at(minutes=1))
    assert requests(second)["cpu"] == 1500
    back = edited(build.apply(back, second), "1")
    third = build.decided(back, at(minutes=2))
    assert (only(third).reason, only(third).until) == ("Contested", at(minutes=3))
    contested = next(one for one in third.status.conditions if one.type == "Contested")
    assert "helm keeps reverting requests: remove the containers' resources" in contested.message
    assert "SetBack" in {event.reason for event in third.events}
    rest = build.decided(build.apply(back, third), at(minutes=2, seconds=30))
    assert rest.status == third.status


def test_one_change_by_somebody_else_counts_once() -> None:
    # Memory is edited, and no step wants it back; a later step of CPU must not take that for a second time.
    after = after_step({"cpu": "2", "memory": "2Gi"})
    one = edited(after, "1500m", "2Gi")
    first = build.decided(
        build.objects(one.hvpa, one.workload, one.hpas[0], build.vpa({"app": {"cpu": "3", "memory": "2Gi"}})),
        at(minutes=1),
    )
    assert requests(first)["cpu"] == 2000
    assert first.status.axes is not None
    assert first.status.axes.vertical is not None
    assert [entry.resource for entry in first.status.axes.vertical.applied_from] == ["cpu"]
    moved = build.apply(one, first)
    second = build.decided(
        build.objects(
            moved.hvpa, moved.workload, moved.hpas[0], build.vpa({"app": {"cpu": "4", "memory": "2Gi"}})
        ),
        at(minutes=2),
    )
    assert second.blocked == ()
    assert requests(second)["cpu"] == 2500


def test_a_container_that_is_gone_contests_nothing() -> None:
    applied_from = {
        "container": "gone",
        "resource": "memory",
        "target": "2Gi",
        "weight": 50,
        "request": "1Gi",
    }
    decision = build.decided(seen({"cpu": "2"}, status=axis(at(minutes=-9), appliedFrom=[applied_from])))
    assert decision.status.axes is not None
    assert decision.status.axes.vertical is not None
    assert [entry.container for entry in decision.status.axes.vertical.applied_from] == ["app"]


def test_a_spent_target_that_cannot_be_read_counts_as_none() -> None:
    applied_from = {"container": "app", "resource": "cpu", "target": "?", "weight": 50, "request": "1"}
    assert (
        requests(build.decided(seen({"cpu": "2"}, status=axis(at(minutes=-9), appliedFrom=[applied_from]))))[
            "cpu"
        ]
        == 1500
    )


def test_at_max_replicas_the_hpa_must_have_measured_that_count() -> None:
    status = {"axes": {"horizontal": {"lastScaleTime": stamp(at(seconds=-20))}}}
    decision = build.decided(at_max({"cpu": "2"}, status=status))
    assert (only(decision).reason, only(decision).until) == ("Measurement", at(seconds=40))
    assert decision.recheck_after == dt.timedelta(seconds=40)
    assert requests(build.decided(at_max({"cpu": "2"}, status=status), at(seconds=40)))["cpu"] == 2000


def test_at_max_replicas_the_usual_weight_counts_until_the_hpa_has_measured_that_count() -> None:
    status = {"axes": {"horizontal": {"lastScaleTime": stamp(at(seconds=-20))}}}
    half = {"weightBasedScalingIntervals": [{"vpaWeight": 50}]}
    assert requests(build.decided(at_max({"cpu": "2"}, spec=half, status=status)))["cpu"] == 1500


@pytest.mark.parametrize(("small_steps", "hours"), [(6, 16), (7, 24), (10**18, 24)])
def test_each_small_step_doubles_the_timeout_up_to_a_day(small_steps: int, hours: int) -> None:
    before = {"container": "app", "resource": "cpu", "target": "1", "weight": 100, "request": "1"}
    status = axis(at(days=-9), appliedFrom=[{**before, "smallSteps": small_steps}])
    assert only(build.decided(seen({"cpu": "1150m"}, weight=100, status=status))).until == at(hours=hours)


def test_a_timeout_of_nothing_stays_one() -> None:
    before = {"container": "app", "resource": "cpu", "target": "1", "weight": 100, "request": "1"}
    status = axis(at(days=-9), appliedFrom=[{**before, "smallSteps": 3}])
    decision = build.decided(
        seen({"cpu": "1150m"}, weight=100, status=status, spec=up(minChangeTimeout="0s"))
    )
    assert requests(decision)["cpu"] == 1150


def test_a_scale_up_by_a_clock_that_was_wrong_hides_no_oom() -> None:
    status = {"axes": {"vertical": {"lastScaleUpTime": stamp(at(days=3))}}}
    decision = build.decided(starving({"memory": "1Gi"}, status=status))
    assert requests(decision)["memory"] > GIB
