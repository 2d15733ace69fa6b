"""One sync of the HPA model: what the recorded answers (`tests/unit/recommend/test_recorded.py`) do not show."""

from __future__ import annotations

import datetime as dt

import msgspec
import pytest

from hvpa.api.objects.read_models import Condition, HpaStatusRead, Metric
from hvpa.recommend.hpa.controller import HorizontalAutoscaler, HpaResult, Scale
from tests.unit.recommend.hpa.world import (
    NOW,
    SELECTOR,
    Given,
    Loop,
    before,
    make_hpa,
    make_pods,
    sync_once,
    told,
)

ON_TARGET = Given([500, 500])
TWO = make_pods("ready", "ready")
LONG_AGO = before(days=1)


def conditions(outcome: HpaResult) -> list[tuple[str, str, str]]:
    return [(c.type, c.status, c.reason) for c in outcome.status.conditions or ()]


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


def test_an_empty_list_of_metrics_is_as_good_as_none() -> None:
    first = sync_once(None, Given(), [], Scale(0, 0, SELECTOR)).status
    old = msgspec.structs.replace(first, current_metrics=[])
    assert sync_once(None, Given(), [], Scale(0, 0, SELECTOR), old).status is old


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
