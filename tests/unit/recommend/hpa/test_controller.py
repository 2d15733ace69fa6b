"""One sync of the HPA model: conditions, status, events, and what is not asked of the metrics at all."""

from __future__ import annotations

import datetime as dt
from typing import Any

import msgspec
import pytest

from hvpa.api.objects.read_models import Condition, HpaStatusRead, Metric
from hvpa.recommend.hpa.controller import HorizontalAutoscaler, HpaOutcome, Scale
from tests.unit.recommend.hpa.world import (
    NOW,
    SELECTOR,
    Given,
    Loop,
    before,
    make_hpa,
    make_pod,
    make_pods,
    sync_once,
    told,
)

ON_TARGET = Given([500, 500])
TWO = make_pods("ready", "ready")
LONG_AGO = before(days=1)


def conditions(outcome: HpaOutcome) -> list[tuple[str, str, str]]:
    return [(c.type, c.status, c.reason) for c in outcome.status.conditions or ()]


def test_nothing_to_do() -> None:
    outcome = sync_once(None, ON_TARGET, TWO, Scale(2, 2, SELECTOR))
    assert (outcome.replicas, outcome.events) == (None, ())
    assert (outcome.status.current_replicas, outcome.status.desired_replicas) == (2, 2)
    assert outcome.status.last_scale_time is None
    assert conditions(outcome) == [
        ("AbleToScale", "True", "ReadyForNewScale"),
        ("ScalingActive", "True", "ValidMetricFound"),
        ("ScalingLimited", "False", "DesiredWithinRange"),
    ]
    assert {c.last_transition_time for c in outcome.status.conditions or ()} == {NOW}


def test_the_status_is_the_same_object_while_nothing_changes() -> None:
    loop = Loop({}, 2)
    first = loop.sync(500).status
    assert loop.sync(500).status is first
    assert loop.sync(501).status is not first


def test_times_are_whole_seconds() -> None:
    now = NOW.replace(microsecond=700_000)
    outcome = HorizontalAutoscaler().sync(make_hpa(), Scale(2, 2, SELECTOR), TWO, Given([900, 900]), now)
    assert outcome.status.last_scale_time == NOW
    assert told(outcome, "ScalingActive").last_transition_time == NOW


def test_a_transition_is_a_change_of_status() -> None:
    old = HpaStatusRead(
        conditions=[
            Condition("Other", "True", "Kept", "as it is", LONG_AGO),
            Condition("ScalingLimited", "True", "TooManyReplicas", "", LONG_AGO),
            Condition("AbleToScale", "True", "SucceededRescale", "", LONG_AGO),
        ]
    )
    outcome = sync_once(None, ON_TARGET, TWO, Scale(2, 2, SELECTOR), old)
    assert [(c.type, c.last_transition_time) for c in outcome.status.conditions or ()] == [
        ("Other", LONG_AGO),
        ("ScalingLimited", NOW),
        ("AbleToScale", LONG_AGO),
        ("ScalingActive", NOW),
    ]
    assert told(outcome, "AbleToScale").reason == "ReadyForNewScale"
    assert old.conditions is not None
    assert old.conditions[1].status == "True", "the old status was changed"


@pytest.mark.parametrize(
    ("replicas", "spec", "count", "why"),
    [
        (12, {}, 10, "above Spec.MaxReplicas"),
        (2, {"minReplicas": 3}, 3, "below Spec.MinReplicas"),
        (12, {"behavior": {}}, 10, "above Spec.MaxReplicas"),
    ],
)
def test_outside_the_limits_no_metric_is_asked(
    replicas: int, spec: dict[str, Any], count: int, why: str
) -> None:
    old = HpaStatusRead(
        current_metrics=[Metric()],
        conditions=[
            Condition("ScaledToZero", "False"),
            Condition("ScalingActive", "False", "Told", "", LONG_AGO),
        ],
    )
    outcome = sync_once(spec, Given(), [], Scale(replicas, replicas, ""), old)
    assert outcome.replicas == outcome.status.desired_replicas == count
    assert outcome.status.current_replicas == replicas
    assert outcome.status.last_scale_time == NOW
    assert outcome.status.current_metrics is None
    assert conditions(outcome) == [
        ("ScalingActive", "False", "Told"),
        ("AbleToScale", "True", "SucceededRescale"),
    ]
    assert told(outcome, "AbleToScale").message == (
        f"the HPA controller was able to update the target scale to {count}"
    )
    message = f"New size: {count}; reason: Current number of replicas {why}"
    assert outcome.events == (("Normal", "SuccessfulRescale", message),)


@pytest.mark.parametrize("minimum", [0, 1])
def test_no_replicas_disable_scaling(minimum: int) -> None:
    old = HpaStatusRead(
        current_replicas=4,
        desired_replicas=4,
        current_metrics=[Metric()],
        conditions=[Condition("ScaledToZero", "True")],
    )
    outcome = sync_once({"minReplicas": minimum}, Given(values=[9]), [], Scale(0, 0, SELECTOR), old)
    assert (outcome.replicas, outcome.events) == (None, ())
    assert (outcome.status.current_replicas, outcome.status.desired_replicas) == (0, 0)
    assert outcome.status.current_metrics is None
    assert conditions(outcome) == [
        ("AbleToScale", "True", "SucceededGetScale"),
        ("ScalingActive", "False", "ScalingDisabled"),
    ]


def test_an_empty_list_of_metrics_is_as_good_as_none() -> None:
    first = sync_once(None, Given(), [], Scale(0, 0, SELECTOR)).status
    old = msgspec.structs.replace(first, current_metrics=[])
    assert sync_once(None, Given(), [], Scale(0, 0, SELECTOR), old).status is old


def test_without_a_selector() -> None:
    old = HpaStatusRead(current_replicas=2, desired_replicas=7, current_metrics=[Metric()])
    outcome = sync_once(None, ON_TARGET, TWO, Scale(2, 2, ""), old)
    assert outcome.replicas is None
    assert (outcome.status.current_replicas, outcome.status.desired_replicas) == (2, 7)
    assert outcome.status.current_metrics is None
    assert conditions(outcome) == [
        ("AbleToScale", "True", "SucceededGetScale"),
        ("ScalingActive", "False", "InvalidSelector"),
    ]
    assert told(outcome, "ScalingActive").message == "the HPA target's scale is missing a selector"
    assert outcome.events == (
        ("Warning", "SelectorRequired", "selector is required"),
        ("Warning", "FailedComputeMetricsReplicas", "selector is required"),
    )


def test_with_a_wrong_selector() -> None:
    outcome = sync_once(None, ON_TARGET, TWO, Scale(2, 2, "app=,"))
    message = (
        "couldn't convert selector into a corresponding internal selector object: "
        "found '', expected: identifier after ','"
    )
    assert (told(outcome, "ScalingActive").reason, told(outcome, "ScalingActive").message) == (
        "InvalidSelector",
        message,
    )
    assert [event[1] for event in outcome.events] == ["InvalidSelector", "FailedComputeMetricsReplicas"]
    assert outcome.events[0][2] == outcome.events[1][2] == message


def test_pods_that_the_selector_does_not_know_are_left_out() -> None:
    stranger = make_pod("p1")
    stranger = msgspec.structs.replace(
        stranger, metadata=msgspec.structs.replace(stranger.metadata, labels={"app": "db"})
    )
    outcome = sync_once(None, Given([900, 0]), [make_pod("p0"), stranger], Scale(1, 1, SELECTOR))
    assert outcome.replicas == 2
    outcome = sync_once(None, Given([900, 0]), [stranger], Scale(1, 1, SELECTOR))
    assert outcome.events[0][2].endswith("no pods returned by selector while calculating replica count")


def test_down_to_zero_where_the_minimum_allows_it() -> None:
    """Only with the feature HPAScaleToZero does the API server accept it; the arithmetic is the same."""
    hpa = make_hpa({"minReplicas": 0})
    autoscaler = HorizontalAutoscaler()
    idle = Given([0, 0])
    assert autoscaler.sync(hpa, Scale(2, 2, SELECTOR), TWO, idle, NOW).replicas is None
    later = NOW + dt.timedelta(minutes=6)
    outcome = autoscaler.sync(hpa, Scale(2, 2, SELECTOR), TWO, idle, later)
    assert outcome.replicas == 0
    assert outcome.events[-1][2] == "New size: 0; reason: All metrics below target"


def test_a_count_below_zero_is_none() -> None:
    spec = {
        "metrics": [{"type": "External", "external": {"metric": {"name": "m"}, "target": {"value": "1"}}}]
    }
    outcome = sync_once(spec, Given(values=[-5000]), TWO, Scale(2, 2, SELECTOR))
    assert outcome.replicas is None
    assert told(outcome, "AbleToScale").reason == "ScaleDownStabilized"


def test_a_changed_spec_counts_at_once() -> None:
    loop = Loop({}, 4)
    loop.sync(500)
    status = loop.hpa.status
    loop.hpa = make_hpa({}, status)  # the same bytes
    loop.sync(500)
    loop.hpa = make_hpa({"maxReplicas": 3}, status)
    assert loop.sync(500).replicas == 3


def test_a_behavior_that_comes_later_knows_no_earlier_changes() -> None:
    """Without a behaviour no change of the count is remembered, but recommendations are."""
    loop = Loop({"maxReplicas": 100}, 10)
    assert loop.counts(1000, 1) == [20]
    rules = {"policies": [{"type": "Pods", "value": 5, "periodSeconds": 60}]}
    loop.hpa = make_hpa({"maxReplicas": 100, "behavior": {"scaleUp": rules}}, loop.hpa.status)
    assert loop.counts(1000, 3) == [25, 25, 25]


def test_disabled_directions_leave_the_count() -> None:
    off = {"selectPolicy": "Disabled"}
    loop = Loop({"maxReplicas": 100, "behavior": {"scaleUp": off, "scaleDown": off}}, 10)
    outcomes = [loop.sync(usage, wait=600.0) for usage in (5000, 0, 5000)]
    assert [outcome.replicas for outcome in outcomes] == [None, None, None]
    assert [outcome.status.desired_replicas for outcome in outcomes] == [10, 10, 10]
    assert told(outcomes[-1], "ScalingLimited").reason == "ScaleUpLimit"
