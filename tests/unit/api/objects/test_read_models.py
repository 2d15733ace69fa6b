"""The read-models: what is decoded, and the small questions that they answer."""

from __future__ import annotations

import datetime as dt
from typing import Any

import msgspec
import pytest

from hvpa.api.objects.read_models import (
    Condition,
    HvpaSizes,
    ManagedFields,
    Meta,
    Metric,
    Vpa,
    VpaMeta,
    condition,
)


def test_the_controller_is_the_owner_that_says_so() -> None:
    meta = msgspec.convert({"ownerReferences": [{"name": "a"}, {"name": "b", "controller": True}]}, type=Meta)
    owner = meta.controller()
    assert owner is not None
    assert owner.name == "b"
    assert Meta().controller() is None


MANAGED: dict[str, tuple[dict[str, Any], bool, bool]] = {
    "nothing": ({}, False, False),
    "replicas": ({"f:spec": {"f:replicas": {}}}, True, False),
    "an empty template": ({"f:spec": {"f:template": {}}}, False, False),
    "an image": (
        {"f:spec": {"f:template": {"f:spec": {"f:containers": {'k:{"name":"a"}': {"f:image": {}}}}}}},
        False,
        False,
    ),
    "no containers": ({"f:spec": {"f:template": {"f:spec": {"f:volumes": {}}}}}, False, False),
    "a request": (
        {
            "f:spec": {
                "f:template": {
                    "f:spec": {
                        "f:containers": {'k:{"name":"a"}': {"f:resources": {"f:requests": {"f:cpu": {}}}}}
                    }
                }
            }
        },
        False,
        True,
    ),
}


@pytest.mark.parametrize(("fields", "replicas", "resources"), MANAGED.values(), ids=MANAGED.keys())
def test_managed_fields_show_who_set_what(fields: dict[str, Any], replicas: bool, resources: bool) -> None:
    entry = msgspec.convert({"manager": "kubectl", "fieldsV1": fields}, type=ManagedFields)
    assert entry.owns_replicas() is replicas
    assert entry.owns_resources() is resources


def test_a_metric_has_the_source_that_is_set() -> None:
    metric = msgspec.convert({"type": "Pods", "pods": {"metric": {"name": "x"}}}, type=Metric)
    source = metric.source()
    assert source is not None
    assert source.metric.name == "x"
    assert Metric(type="Pods").source() is None


def test_a_container_has_its_own_policy_before_that_of_all() -> None:
    policies = (
        b'[{"containerName":"*","mode":"Off"},{"containerName":"app","controlledValues":"RequestsOnly"}]'
    )
    raw = b'{"metadata":{},"spec":{"resourcePolicy":{"containerPolicies":' + policies + b"}}}"
    spec = msgspec.json.decode(raw, type=Vpa).spec
    assert spec.policy("app").controlled_values == "RequestsOnly"
    assert spec.policy("sidecar").mode == "Off"
    assert msgspec.json.decode(b'{"metadata":{}}', type=Vpa).spec.policy("app").mode == "Auto"


@pytest.mark.parametrize(("times", "written"), [([], None), ([9, None, 11, 10], 11)])
def test_a_vpas_status_was_written_when_its_last_entry_was(
    times: list[int | None], written: int | None
) -> None:
    entries = [
        {"subresource": "status"} | ({} if hour is None else {"time": f"2026-11-21T{hour:02}:00:00Z"})
        for hour in times
    ]
    later = {"subresource": "", "time": "2026-11-21T12:00:00Z"}
    meta = msgspec.convert({"managedFields": [*entries, later]}, type=VpaMeta)
    assert meta.written_at() == (
        None if written is None else dt.datetime(2026, 11, 21, written, tzinfo=dt.UTC)
    )


def test_a_condition_is_found_by_its_type() -> None:
    ready = Condition(type="Ready", status="True")
    assert condition([Condition(type="Other"), ready], "Ready") is ready
    assert condition([ready], "Paused") is None
    assert condition(None, "Ready") is None


def test_sizes_of_new_pods_are_found_by_their_hvpa() -> None:
    sizes = {
        "Deployment.apps/b": "one; app 1:2 :",
        "StatefulSet.apps/c": "two; app 1: :",
        "Deployment.apps/a": "one",
    }
    assert HvpaSizes(metadata=Meta(), sizes=sizes).by_hvpa() == {
        "one": (("Deployment.apps/a", "one"), ("Deployment.apps/b", "one; app 1:2 :")),
        "two": (("StatefulSet.apps/c", "two; app 1: :"),),
    }
