"""How far the HPA's desired replicas is trusted, and its scale_replicas (DESIGN 4)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from builders import build
from hvpa.api.objects.read_models import Hpa
from hvpa.core import Decision, Settings

ALL_HORIZONTAL = {"weightBasedScalingIntervals": None}


def spec(scale_replicas: int | None = 3, **change: Any) -> dict[str, Any]:
    return {
        "replicas": scale_replicas,
        "weightBasedScalingIntervals": None,
        "vpa": {"deploy": False},
        **change,
    }


def decide(
    hpa: Hpa,
    replicas: int = 3,
    scale_replicas: int | None = 3,
    status: Mapping[str, Any] | None = None,
    **rest: Any,
) -> Decision:
    one = build.hvpa(spec(scale_replicas, **rest.pop("spec", {})), status)
    return build.decided(build.objects(one, build.workload(replicas), hpa, **rest))


def view(decision: Decision) -> int | None:
    return build.counts(decision).hpa


@pytest.mark.parametrize(
    ("said", "utilization", "replicas", "trusted"),
    [
        pytest.param(6, 100, 3, 6, id="the count is what the metrics call for: 100/50 x 3 = 6"),
        pytest.param(5, 100, 3, 5, id="between r = 3 and e = 6 it is trusted"),
        pytest.param(9, 100, 3, 6, id="beyond e = 6 the nearer of the two counts"),
        pytest.param(2, 100, 3, 3, id="on the other side of r, r counts"),
        pytest.param(7, 50, 3, 3, id="a stale count: all metrics are within tolerance, so e = r"),
        pytest.param(7, 55, 3, 3, id="10 percent above the target is within tolerance"),
        pytest.param(7, 45, 3, 3, id="10 percent below the target is within tolerance"),
        pytest.param(7, 56, 3, 4, id="12 percent above is not: e = ceil(1.12 x 3) = 4"),
        pytest.param(1, 20, 4, 2, id="in: e = ceil(0.4 x 4) = 2, and not further"),
        pytest.param(3, 20, 4, 3, id="in, but less than the metrics allow: trusted"),
        pytest.param(99, 500, 3, 10, id="everything is clamped to maxReplicas"),
        pytest.param(1, 0, 3, 1, id="no use at all: e = 0, clamped to minReplicas"),
    ],
)
def test_the_wish_is_trusted_between_the_count_and_the_estimate(
    said: int, utilization: int, replicas: int, trusted: int
) -> None:
    hpa = build.hpa(said, utilization, replicas=replicas)
    assert view(decide(hpa, replicas, scale_replicas=min(said, 10))) == trusted


def metric(
    kind: str, source: Mapping[str, Any], target: Mapping[str, Any], current: Mapping[str, Any] | None
) -> Any:
    """A metric as (spec entry, status entry); without a value the HPA leaves an empty entry."""
    field = kind[0].lower() + kind[1:]
    asked = {"type": kind, field: {**source, "target": target}}
    measured = {"type": kind, field: {**source, "current": current}} if current is not None else {"type": ""}
    return asked, measured


def with_metrics(said: int, metrics: Sequence[Any], **change: Any) -> Hpa:
    change = {
        "spec": {"metrics": [asked for asked, _ in metrics], **change.pop("spec", {})},
        "status": {"currentMetrics": [measured for _, measured in metrics], **change.pop("status", {})},
    }
    return build.hpa(said, change=change)


CPU = {"name": "cpu"}


def cpu(percent: int) -> Any:
    """CPU at so many percent of its requests, with a target of 50."""
    return metric("Resource", CPU, {"averageUtilization": 50}, {"averageUtilization": percent})


def queue(value: str | None, selector: str = "", target: str = "100") -> Any:
    """An External metric with a target of 100 for all pods."""
    name = {"name": "queue", **({"selector": {"a": selector}} if selector else {})}
    return metric(
        "External", {"metric": name}, {"value": target}, None if value is None else {"value": value}
    )


QUEUE = {"metric": {"name": "queue"}}
INGRESS = {
    "describedObject": {"apiVersion": "v1", "kind": "Service", "name": "web"},
    "metric": {"name": "hits"},
}
ONE_UNREADY = [build.pod("a"), build.pod("b"), build.pod("c", ready=False)]


@pytest.mark.parametrize(
    ("metrics", "expected"),
    [
        pytest.param([cpu(150)], 6, id="CPU counts the two ready pods: 3 x 2"),
        pytest.param(
            [metric("Resource", {"name": "memory"}, {"averageUtilization": 50}, {"averageUtilization": 150})],
            9,
            id="memory counts the three running pods: 3 x 3",
        ),
        pytest.param(
            [metric("Resource", CPU, {"averageValue": "500m"}, {"averageValue": "1250m"})],
            5,
            id="average value: 2.5 x 2",
        ),
        pytest.param(
            [
                metric(
                    "ContainerResource",
                    {**CPU, "container": "app"},
                    {"averageUtilization": 50},
                    {"averageUtilization": 100},
                )
            ],
            4,
            id="one container's CPU: 2 x 2",
        ),
        pytest.param(
            [metric("Pods", QUEUE, {"averageValue": "10"}, {"averageValue": "20"})],
            6,
            id="a pod metric: 2 x 3 running",
        ),
        pytest.param(
            [metric("Object", INGRESS, {"value": "100"}, {"value": "350"})],
            7,
            id="an object's value: 3.5 x 2 ready",
        ),
        pytest.param(
            [metric("Object", INGRESS, {"averageValue": "100"}, {"averageValue": "150"})],
            5,
            id="an object's average value: 1.5 x 3 replicas, rounded up",
        ),
        pytest.param([queue("200")], 4, id="external value: 2 x 2 ready"),
        pytest.param(
            [metric("External", QUEUE, {"averageValue": "1k"}, {"averageValue": "2e3"})],
            6,
            id="external average value: 2 x 3 replicas",
        ),
        pytest.param([cpu(10), queue("250")], 5, id="the largest proposal wins: 2.5 x 2"),
        pytest.param([cpu(10), queue(None)], 3, id="a metric without a value forbids scaling in"),
        pytest.param([cpu(100), queue(None)], 4, id="but not out"),
        pytest.param(
            [queue("100", "1"), queue("300", "2")],
            6,
            id="metrics that differ by their selector alone go by their place: 3 x 2",
        ),
        pytest.param([queue("300", target="0")], None, id="a target of zero has no ratio"),
        pytest.param([queue("300", target="many")], None, id="nor has one that does not parse"),
        pytest.param(
            [metric("Resource", CPU, {"averageUtilization": 50}, {"averageValue": "1"})],
            None,
            id="a utilization is not reckoned from a value",
        ),
        pytest.param([({"type": "Later"}, {"type": "Later"})], None, id="a type of metric that is not known"),
    ],
)
def test_the_estimate_by_metric(metrics: Sequence[Any], expected: int | None) -> None:
    decision = decide(with_metrics(10 if expected is None or expected > 3 else 1, metrics), pods=ONE_UNREADY)
    assert view(decision) == expected


def test_measurements_in_another_order_are_told_apart_by_what_they_are_of() -> None:
    # A status from before the spec's metrics were put in another order.
    hits = metric("External", QUEUE, {"averageValue": "10"}, {"averageValue": "20"})  # calls for 2 x 3
    turned = with_metrics(6, [cpu(50), hits], status={"currentMetrics": [hits[1], cpu(50)[1]]})
    assert view(decide(turned, scale_replicas=6)) == 6


def test_an_hpa_without_metrics_goes_by_cpu_at_80_percent() -> None:
    hpa = build.hpa(6, 160, change={"spec": {"metrics": []}})
    assert view(decide(hpa)) == 6


def test_not_more_pods_are_counted_than_there_were_when_the_hpa_measured() -> None:
    # The HPA saw 3 pods at 100 percent and wished for 6; 5 are ready by now, and 100 percent of 5 would call for 10.
    hpa = build.hpa(8, 100, replicas=3)
    assert view(decide(hpa, replicas=5, scale_replicas=8)) == 6


def test_where_no_pod_is_known_the_status_tells_how_many_there_are() -> None:
    hpa = build.hpa(6, 100, change={"status": {"currentReplicas": 0}})
    assert view(decide(hpa, pods=[])) == 6
    unknown = {"status": {"replicas": 0, "readyReplicas": 0}}
    one = build.objects(build.hvpa(spec()), build.workload(3, change=unknown), hpa, pods=[])
    assert view(build.decided(one)) == 6


@pytest.mark.parametrize(
    ("behavior", "utilization", "expected"),
    [
        pytest.param(
            {"scaleUp": {"tolerance": "0.3"}}, 65, 3, id="a wider one up: 30 percent above is within"
        ),
        pytest.param({"scaleUp": {"tolerance": "0.3"}}, 30, 2, id="it does not widen the other direction"),
        pytest.param({"scaleDown": {"tolerance": "500m"}}, 30, 3, id="a wider one down"),
        pytest.param({"scaleUp": {"tolerance": "0"}}, 51, 4, id="none at all: ceil(1.02 x 3)"),
        pytest.param({"scaleUp": {"tolerance": "?"}}, 56, 4, id="one that does not parse counts as unset"),
        pytest.param({"scaleUp": {}}, 55, 3, id="unset: 0.1"),
    ],
)
def test_the_tolerance_is_the_behaviors(behavior: Mapping[str, Any], utilization: int, expected: int) -> None:
    hpa = build.hpa(4 if utilization > 50 else 2, utilization, change={"spec": {"behavior": behavior}})
    assert view(decide(hpa)) == expected


def test_the_tolerance_is_a_setting_of_the_controller_manager() -> None:
    seen = build.objects(build.hvpa(spec()), build.workload(3), build.hpa(5, 65))
    assert view(build.decided(seen)) == 4
    assert view(build.decided(seen, settings=Settings(hpa_tolerance_ppm=300_000))) == 3


# --- an HPA that can't be used ---------------------------------------------------------------------------------------
INACTIVE = {"conditions": [{"type": "ScalingActive", "status": "False", "reason": "FailedGetResourceMetric"}]}
DISABLED = {"conditions": [{"type": "ScalingActive", "status": "False", "reason": "ScalingDisabled"}]}
UNKNOWN = {"conditions": [{"type": "ScalingActive", "status": "Unknown", "reason": ""}]}


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        pytest.param(INACTIVE, "FailedGetResourceMetric", id="ScalingActive is False"),
        pytest.param(DISABLED, "ScalingDisabled", id="it is switched off"),
        pytest.param(UNKNOWN, "ScalingInactive", id="ScalingActive is Unknown"),
        pytest.param({"currentMetrics": None}, "NoMetrics", id="no currentMetrics"),
        pytest.param({"currentMetrics": [{"type": ""}]}, "NoMetrics", id="currentMetrics without a value"),
    ],
)
def test_an_hpa_that_cannot_be_used_has_no_say(status: Mapping[str, Any], reason: str) -> None:
    hpa = build.hpa(1, 10, change={"status": status})
    decision = decide(hpa, replicas=5)
    assert view(decision) is None
    assert build.counts(decision).target == 5, "replicas don't fall for it"
    active = build.condition(decision, "HpaActive")
    assert (active.status, active.reason) == ("False", reason)
    told = [event.reason for event in decision.events if event.type == "Warning"]
    assert (reason in told) is (reason != "NoMetrics"), "an event, unless it is as at every start"
    outside = decide(hpa, replicas=12)
    assert build.counts(outside).target == 10, "it still brings the count inside [min, max]"


@pytest.mark.parametrize(
    ("reason", "seconds", "reported"),
    [
        ("FailedGetResourceMetric", 59, "NoMetrics"),
        ("FailedGetResourceMetric", 60, "FailedGetResourceMetric"),
        ("FailedGetPodsMetric", 0, "NoMetrics"),
        ("FailedGetScale", 0, "FailedGetScale"),
        ("InvalidMetricSourceType", 0, "InvalidMetricSourceType"),
    ],
)
@pytest.mark.parametrize("mode", ["Apply", "Recommend"])
def test_metrics_are_missing_for_a_minute_before_somebody_has_to_act(
    mode: str, reason: str, seconds: int, reported: str
) -> None:
    since = {"lastTransitionTime": build.stamp(build.NOW - dt.timedelta(seconds=seconds))}
    silent = {"conditions": [INACTIVE["conditions"][0] | since | {"reason": reason, "message": "no metrics"}]}
    decision = decide(build.hpa(1, 10, change={"status": silent}), replicas=5, spec={"mode": mode})
    active = build.condition(decision, "HpaActive")
    assert (active.status, active.reason) == ("False", reported)
    warned = [event.reason for event in decision.events if event.type == "Warning"]
    if reported == "NoMetrics":
        assert active.message == f"for less than a minute, {reason}: no metrics"
        assert warned == []
        assert decision.recheck_after == dt.timedelta(seconds=60 - seconds), "then it is a warning"
    else:
        assert (active.message, warned) == ("no metrics", [reported])


def test_an_hpa_with_too_many_metrics_has_no_say() -> None:
    metric = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization"}}}
    decision = decide(build.hpa(1, 10, change={"spec": {"metrics": [metric] * 101}}), replicas=5)
    active = build.condition(decision, "HpaActive")
    assert (active.status, active.reason) == ("False", "TooManyMetrics")
    assert view(decision) is None


def test_the_other_axis_goes_on_without_it() -> None:
    hpa = build.hpa(1, 10, change={"status": INACTIVE})
    decision = build.decided(
        build.objects(horizontal=hpa, vertical=build.vpa({"app": {"cpu": "3", "memory": "1Gi"}}))
    )
    assert decision.containers["app"].requests["cpu"] == 2000  # 1 + (3 - 1) x 0.5


def test_an_hpa_that_has_not_spoken_yet_wishes_for_what_there_is() -> None:
    assert view(decide(build.hpa(0, 100))) == 3


# --- `spec.replicas`
# -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("scale_replicas", "said", "utilization", "written"),
    [
        pytest.param(None, 3, 50, 3, id="absent: the count, or scale would fail"),
        pytest.param(0, 3, 50, 3, id="0 would switch the HPA off"),
        pytest.param(11, 6, 100, 6, id="beyond maxReplicas: the trusted count"),
        pytest.param(6, 6, 100, None, id="a count that is trusted is left alone"),
        pytest.param(3, 3, 50, None, id="at rest nothing is written"),
        pytest.param(7, 7, 50, 3, id="a stale count is corrected"),
        pytest.param(9, 9, 100, 6, id="a count beyond the estimate is corrected to the nearer of r and e"),
        pytest.param(2, 2, 100, 3, id="a count on the other side of r is corrected to r"),
        pytest.param(7, 6, 50, None, id="the HPA has written anew and its status is still to follow"),
        pytest.param(3, 7, 50, None, id="corrected already: the HPA has yet to see it"),
    ],
)
def test_spec_replicas_is_set_right(
    scale_replicas: int | None, said: int, utilization: int, written: int | None
) -> None:
    assert decide(build.hpa(said, utilization), scale_replicas=scale_replicas).scale_replicas == written


def test_spec_replicas_is_set_right_is_corrected_at_most_twice_for_the_same_status_of_the_hpa() -> None:
    seen = build.objects(build.hvpa(spec(7)), build.workload(3), build.hpa(7, 50))
    for count in (1, 2):
        decision = build.decided(seen)
        assert decision.scale_replicas == 3
        assert decision.status.axes is not None
        assert decision.status.axes.horizontal is not None
        assert decision.status.axes.horizontal.correction is not None
        assert decision.status.axes.horizontal.correction.count == count
        # Somebody sets it back, and the HPA's status stays as it is.
        seen = build.objects(
            build.with_status(build.hvpa(spec(7)), decision.status), build.workload(3), build.hpa(7, 50)
        )
    decision = build.decided(seen)
    assert decision.scale_replicas is None
    active = build.condition(decision, "HpaActive")
    assert (active.status, active.reason) == ("True", "StaleDesiredReplicas")
    assert [event.reason for event in decision.events if event.type == "Warning"] == ["StaleDesiredReplicas"]
    assert view(decision) == 3, "it is not believed for that"
    stuck = build.with_status(build.hvpa(spec(7)), decision.status)
    rewritten = build.hpa(7, 50, change={"metadata": {"resourceVersion": "101"}})
    assert build.decided(build.objects(stuck, build.workload(3), rewritten)).scale_replicas is None, (
        "it says the same"
    )
    other = build.with_status(build.hvpa(spec(8)), decision.status)
    assert build.decided(build.objects(other, build.workload(3), build.hpa(8, 50))).scale_replicas == 3, (
        "it says another"
    )
    calm = build.decided(
        build.objects(build.with_status(build.hvpa(spec(3)), decision.status), None, build.hpa(3, 50))
    )
    later = build.with_status(build.hvpa(spec(7)), calm.status)
    assert build.decided(build.objects(later, None, build.hpa(7, 50))).scale_replicas == 3, (
        "it had given in meanwhile"
    )


def test_before_there_is_an_hpa_the_mailbox_holds_the_count() -> None:
    for scale_replicas, expected in ((None, 3), (0, 3), (4, None)):
        decision = build.decided(build.objects(build.hvpa(spec(scale_replicas)), build.workload(3)))
        assert decision.scale_replicas == expected
        assert [change.action for change in decision.owned] == ["apply"]
    outside = build.decided(build.objects(build.hvpa(spec(None)), build.workload(40)))
    assert outside.scale_replicas == 10, "every write to it is clamped"


def test_an_unusable_hpa_still_has_a_mailbox() -> None:
    hpa = build.hpa(1, 10, change={"status": INACTIVE})
    assert decide(hpa, scale_replicas=0).scale_replicas == 3
    assert decide(hpa, scale_replicas=4).scale_replicas is None


def test_at_0_replicas_the_mailbox_is_kept_in_bounds_and_not_corrected() -> None:
    one = build.hvpa(spec(7))
    assert build.decided(build.objects(one, build.workload(0), build.hpa(7, 50))).scale_replicas is None
    one = build.hvpa(spec(0))
    assert build.decided(build.objects(one, build.workload(0), build.hpa(7, 50))).scale_replicas == 1


def test_without_an_hpa_of_ours_the_mailbox_is_nobodys() -> None:
    one = build.hvpa({"replicas": None, "hpa": {"deploy": False}})
    assert build.decided(build.objects(one)).scale_replicas is None


def test_a_named_hpa_has_its_own_bounds() -> None:
    one = build.hvpa({"hpa": {"deploy": False, "name": "other"}, **ALL_HORIZONTAL, "vpa": {"deploy": False}})
    hpa = build.hpa(
        9,
        200,
        change={
            "metadata": {"name": "other", "ownerReferences": []},
            "spec": {"minReplicas": 2, "maxReplicas": 8},
        },
    )
    decision = build.decided(build.objects(one, build.workload(3), hpa))
    assert build.counts(decision).target == 8
    assert build.decided(build.objects(one, build.workload(3))).replicas is not None


def test_an_hpa_that_may_scale_to_zero_is_followed_there_and_back() -> None:
    jobs = {"metric": {"name": "jobs"}, "target": {"type": "Value", "value": "5"}}

    def case(replicas: int, desired: int, jobs_now: str, before: int, blend: str = "Additive") -> int:
        applied_from = {"replicas": before, "desired": before, "weight": 0}
        one = build.hvpa(
            {
                "blend": blend,
                "replicas": desired,
                "hpa": {"deploy": False, "name": "other"},
                "vpa": {"deploy": False},
                **ALL_HORIZONTAL,
            },
            {"axes": {"horizontal": {"appliedFrom": applied_from}}},
        )
        current = {"metric": {"name": "jobs"}, "current": {"value": jobs_now}}
        hpa = build.hpa(
            desired,
            change={
                "metadata": {"name": "other", "ownerReferences": []},
                "spec": {"minReplicas": 0, "metrics": [{"type": "External", "external": jobs}]},
                "status": {"currentMetrics": [{"type": "External", "external": current}]},
            },
        )
        decision = build.decided(build.objects(one, build.workload(replicas), hpa))
        return build.counts(decision).target

    assert case(3, 0, "0", 3) == 0
    assert case(0, 4, "20", 0) == 4
    assert case(0, 4, "20", 3) == 0, "somebody else scaled it to 0"
    assert case(3, 0, "0", 3, "Trajectory") > 0, "a path has no place for no pods at all"
