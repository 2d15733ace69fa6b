"""The status: written as it was read, and read whatever stands there."""

from __future__ import annotations

import datetime as dt
import json
from typing import Any

import pytest
import yaml

from hvpa.api.hvpa.status import (
    MOST_STATUS,
    Axes,
    HvpaStatus,
    StatusCondition,
    VerticalAxis,
    read_status,
    to_wire,
)

NOW = "2026-11-21T10:15:00Z"


def wire(text: str) -> dict[str, Any]:
    """A status as YAML; NOW is the time of everything."""
    document: dict[str, Any] = yaml.safe_load(text.replace("NOW", f'"{NOW}"'))
    return document


WIRE = wire("""\
replicas: 3
targetSelector: app=web
hpaScaleUpUpdatePolicy: {updateMode: Auto}
vpaScaleDownUpdatePolicy: {updateMode: MaintenanceWindow}
hpaWeight: 40
vpaWeight: 60.5
overrideScaleUpStabilization: false
lastBlockedScaling:
  - {reason: MinChange, axis: vertical, direction: up, container: app, resource: memory, current: 1Gi, wanted: 1100Mi,
     until: NOW,
     vpaStatus: {recommendation: {containerRecommendations: [{containerName: app, target: {memory: 1100Mi}}]}}}
  - {reason: Weight, axis: horizontal, direction: down, hpaStatus: {currentReplicas: 3, desiredReplicas: 2}}
lastScaling: {lastScaleTime: NOW, hpaStatus: {currentReplicas: 1, desiredReplicas: 3}}
lastError: {description: refused, lastUpdateTime: NOW, lastOperation: patch}
conditions:
  - {type: Ready, status: "True", reason: Decided, message: "", lastTransitionTime: NOW, observedGeneration: 2}
recommended: {replicas: 4, containers: [{name: app, requests: {cpu: 800m}, limits: {}}]}
axes:
  horizontal:
    lastScaleTime: "2026-11-21T10:15:00.000005Z"
    appliedFrom: {replicas: 3, desired: 5, weight: 60.0}
    setBack: {count: 1, time: NOW}
    correction: {hpaStatus: "12", count: 1}
  vertical:
    lastScaleTime: NOW
    appliedFrom: [{container: app, resource: cpu, target: "1", weight: 60.0, request: 800m}]
    pending: [{container: app, resource: cpu, direction: up, since: NOW}]
    overrides: [{container: app, time: NOW}]
    base: {app: {cpu: 500m, memory: 1Gi}, helper: {}}
    usualReplicas: {mean: 2.5, weight: 216000.0, time: NOW, replicas: 3}
""")

GARDENER = wire("""\
replicas: 1
targetSelector: app=etcd
hpaScaleUpUpdatePolicy: {updateMode: Auto}
vpaWeight: 100
overrideScaleUpStabilization: true
lastBlockedScaling:
  - reason: MaintenanceWindow
    scalingStatus: {lastScaleTime: NOW, hpaStatus: {}, vpaStatus: {recommendation: {containerRecommendations: []}}}
lastScaling:
  lastScaleTime: NOW
  hpaStatus: {currentReplicas: 1, desiredReplicas: 1}
  vpaStatus:
    conditions: [{type: RecommendationProvided, status: "True"}]
    recommendation:
      containerRecommendations: [{containerName: etcd, target: {cpu: "1", memory: 2G}, lowerBound: {cpu: "1"}}]
lastError: {description: x, lastUpdateTime: null}
""")


def encode(value: object) -> bytes:
    """The value as JSON."""
    return json.dumps(value).encode()


def test_a_status_is_written_as_it_was_read() -> None:
    status, unreadable = read_status(encode(WIRE))
    assert unreadable == ()
    assert to_wire(status) == WIRE


def test_an_empty_status_is_written_as_nothing() -> None:
    assert to_wire(HvpaStatus()) == {}
    assert to_wire(read_status(b"{}")[0]) == {}


def test_a_base_that_is_not_known_is_not_written() -> None:
    assert to_wire(HvpaStatus(axes=Axes(vertical=VerticalAxis()))) == {"axes": {"vertical": {}}}
    assert to_wire(VerticalAxis(base={"app": {"cpu": "1"}})) == {"base": {"app": {"cpu": "1"}}}


def test_a_status_of_gardeners_controller_is_read() -> None:
    status, unreadable = read_status(encode(GARDENER))
    assert unreadable == ("lastBlockedScaling",)
    assert status.override_scale_up_stabilization is True
    assert status.last_blocked_scaling == ()
    assert status.last_scaling is not None
    assert status.last_scaling.last_scale_time == dt.datetime(2026, 11, 21, 10, 15, tzinfo=dt.UTC)
    assert status.last_scaling.vpa_status is not None
    assert status.last_scaling.vpa_status.recommendation is not None
    (container,) = status.last_scaling.vpa_status.recommendation.container_recommendations
    assert container.target == {"cpu": "1", "memory": "2G"}
    assert status.last_error is not None
    assert status.last_error.last_update_time is None


UNREADABLE: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "a time that is none": ({"lastScaling": {"lastScaleTime": "yesterday"}}, ("lastScaling",)),
    "a list that is none": ({"conditions": {}}, ("conditions",)),
    "two fields": ({"axes": 1, "recommended": {"containers": [{}]}, "x": 1}, ("axes", "recommended")),
    "null": ({"axes": None}, ()),
    "a base that is none": ({"axes": {"vertical": {"base": {"app": "1"}}}}, ("axes",)),
    "a mean that is none": ({"axes": {"vertical": {"usualReplicas": {"mean": "many"}}}}, ("axes",)),
}


@pytest.mark.parametrize(("fields", "names"), UNREADABLE.values(), ids=UNREADABLE.keys())
def test_a_field_that_can_not_be_read_is_left_out_alone(
    fields: dict[str, Any], names: tuple[str, ...]
) -> None:
    status, unreadable = read_status(encode({"replicas": 3, **fields}))
    assert unreadable == names
    assert status == HvpaStatus(replicas=3)


@pytest.mark.parametrize("raw", [b"", b"null", b"[]", b'"x"', b"{", b'{"a":"\xff"}'])
def test_what_is_no_object_is_an_empty_status(raw: bytes) -> None:
    assert read_status(raw) == (HvpaStatus(), ())


def test_lists_inside_of_lists_are_cleaned_too() -> None:
    assert to_wire(HvpaStatus(conditions=(StatusCondition(type="Ready"),)))["conditions"] == [
        {"type": "Ready", "status": "Unknown", "reason": "", "message": ""}
    ]


def test_of_a_status_that_is_too_large_the_large_fields_are_not_read() -> None:
    pending = [{"container": f"c{n}", "resource": "cpu", "direction": "up"} for n in range(5000)]
    large = encode({"replicas": 3, "axes": {"vertical": {"pending": pending}}, "hpaWeight": "many"})
    assert len(large) > MOST_STATUS
    assert read_status(large) == (HvpaStatus(replicas=3), ("axes", "hpaWeight"))


def test_of_a_status_with_very_many_fields_nothing_is_read() -> None:
    fields = {f"field-{number}": "x" * 100 for number in range(MOST_STATUS // 100)}
    assert read_status(encode({"replicas": 3, **fields})) == (
        HvpaStatus(),
        tuple(sorted({"replicas", *fields})),
    )


def test_a_large_status_that_is_none_is_empty() -> None:
    assert read_status(b"[" + b" " * MOST_STATUS) == (HvpaStatus(), ())


# --- what the version before has written -----------------------------------------------------------------------------
BEFORE = wire("""\
replicas: 3
desired:
  replicas: 3
  containers: [{name: app, requests: {cpu: "1"}}]
  readyPods: [{name: app, requests: {cpu: "2"}}]
  since: NOW
axes:
  vertical:
    pending: [{container: app, resource: cpu, direction: up, since: NOW}]
    usualReplicas: {mean: 2.5, weight: 216000.0, time: NOW, replicas: 3}
    usualDemand:
      - {container: app, resource: memory, mean: 3.5, weight: 60.0, time: NOW, present: 4, peak: 9, peakTime: NOW}
""")


def test_a_status_of_the_version_before_is_read_without_what_is_gone() -> None:
    """CPU that was lent to ready pods and peaks are forgotten; all else is kept."""
    kept = json.loads(json.dumps(BEFORE))
    del kept["desired"]["readyPods"]
    for name in ("peak", "peakTime"):
        del kept["axes"]["vertical"]["usualDemand"][0][name]
    status, unreadable = read_status(json.dumps(BEFORE).encode())
    assert (status, unreadable) == read_status(json.dumps(kept).encode())
    assert unreadable == ()
    assert status.desired is not None
    assert status.desired.replicas == 3
    assert status.axes is not None
    assert status.axes.vertical is not None
    assert status.axes.vertical.usual_replicas is not None
    assert [demand.mean for demand in status.axes.vertical.usual_demand] == [3.5]
    assert [change.direction for change in status.axes.vertical.pending] == ["up"]
