"""The JSON contract of `explain -o json` and its schema."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

import pytest

from builders import build
from hvpa.api.hvpa.status import HvpaStatus, StatusCondition
from hvpa.cli.explain.json import to_json
from hvpa.core import Settings, observe
from hvpa.core.model import Blocked, Decision, ReplicaView, ResourceRequirements, WorkloadPatch
from tests.unit.cli.resizing import SMALL, deployment, hvpa, pod, vpa
from tests.unit.cli.support import DATA, NOW, Doc, Shell, changed, load

SCHEMA_FILE = Path(__file__).parents[5] / "docs" / "explain.schema.json"
MEASURED = "HorizontalPodAutoscaler__status__currentMetrics__0__resource__current"
REPORTED = {
    "conditions": [{"type": "Ready", "status": "False", "reason": "WriteFailed", "message": "denied"}],
    "lastError": {"description": "denied", "lastOperation": "PatchWorkload", "lastUpdateTime": NOW},
    "axes": {
        "horizontal": {
            "refused": {
                "count": 1,
                "time": NOW,
                "message": "denied",
                "changes": [{"current": 3, "wanted": 5}],
            }
        }
    },
}


def faults(value: Any, schema: Any, root: Any, path: str = "$") -> list[str]:
    """What is wrong with `value` by as much of JSON Schema as ours uses; an unknown keyword is an error."""
    if "type" in schema and not is_of(value, schema["type"]):
        return [f"{path}: {value!r} is no {schema['type']}"]
    found: list[str] = []
    for keyword, wanted in schema.items():
        if keyword in ("$ref", "properties", "additionalProperties", "items"):
            found += nested_faults(value, keyword, wanted, root, path)
        elif keyword not in ("$schema", "$defs", "title", "description", "default", "type"):
            found += (
                []
                if fits(value, keyword, wanted, root)
                else [f"{path}: {value!r} against {keyword} {wanted!r}"]
            )
    return found


def fits(value: Any, keyword: str, wanted: Any, root: Any) -> bool:
    """Whether a value of the right type is what a keyword asks for."""
    match keyword:
        case "anyOf":
            return any(not faults(value, choice, root) for choice in wanted)
        case "enum":
            return value in wanted
        case "minimum":
            return bool(value >= wanted)
        case "maximum":
            return bool(value <= wanted)
        case "required":
            return set(wanted) <= set(value)
    raise AssertionError(f"{keyword} is not checked")


def nested_faults(value: Any, keyword: str, wanted: Any, root: Any, path: str) -> list[str]:
    """What is wrong below `value`, or by the schema that is referred to."""
    if keyword == "$ref":
        return faults(value, root["$defs"][wanted.rpartition("/")[2]], root, path)
    if keyword == "properties":
        found = [f"{path}.{key}: unknown" for key in value if key not in wanted]
        nested = [(f"{path}.{key}", value[key], wanted[key]) for key in value if key in wanted]
    else:
        found = []
        entries = value.items() if keyword == "additionalProperties" else enumerate(value)
        nested = [(f"{path}[{key}]", entry, wanted) for key, entry in entries]
    return found + [one for below, entry, schema in nested for one in faults(entry, schema, root, below)]


def is_of(value: Any, kind: str) -> bool:
    """Whether a value is of a JSON type."""
    if isinstance(value, bool):
        return kind == "boolean"
    types: dict[str, Any] = {
        "object": dict,
        "array": list,
        "string": str,
        "integer": int,
        "number": (int, float),
        "null": type(None),
        "boolean": bool,
    }
    return isinstance(value, types[kind])


def check(explained: Any) -> None:
    """The explanation follows the schema."""
    schema = json.loads(SCHEMA_FILE.read_text(encoding="utf-8"))
    assert faults(explained, schema, schema) == []
    assert list(explained) == list(schema["$defs"]["Explanation"]["properties"]), "in this order"


def test_the_example_of_the_design_follows_the_schema() -> None:
    check(json.loads((DATA / "contract.json").read_text(encoding="utf-8")))


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("gardener.yaml", {}),
        ("gardener.yaml", {"Hvpa__spec__mode": "Paused"}),
        ("gardener.yaml", {"Hvpa__spec__weightBasedScalingIntervals": [{"vpaWeight": 33.3}]}),
        ("gardener.yaml", {"Hvpa__spec__targetRef__name": "gone"}),
        ("gardener.yaml", {"Hvpa__spec__hpa": {}}),
        ("gardener.yaml", {"Hvpa__spec__vpa": {}}),
        ("gardener.yaml", {"Deployment__spec__replicas": 0}),
        ("gardener.yaml", {"Hvpa__metadata__deletionTimestamp": NOW}),
        ("gardener.yaml", {"Hvpa__spec__vpa__scaleUp__minChange__memory": {"value": "2Gi"}}),
        ("gardener.yaml", {"Hvpa__status": REPORTED}),
        ("trajectory.yaml", {}),
        ("trajectory.yaml", {"Hvpa__spec__vpa": {}}),
        ("trajectory.yaml", {"Hvpa__spec__hpa": {}}),
        ("trajectory.yaml", {"HorizontalPodAutoscaler__status": {}}),
        ("trajectory.yaml", {"Hvpa__spec__targetRef__name": "gone"}),
        ("trajectory.yaml", {"Deployment__spec__replicas": 0}),
        ("trajectory.yaml", {f"{MEASURED}__averageValue": "9"}),
    ],
)
def test_explanations_follow_the_schema(shell: Shell, name: str, changes: Doc) -> None:
    check(shell.explain(changed(load(name), **changes)))


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"mode": "Paused"},
        {"mode": "Recommend", "status": {"desired": None}},
        {"kind": "InPlaceOrRollout"},
        {"kind": "Rollout"},
        {"targetRef": {"kind": "Deployment", "name": "gone"}},
    ],
)
def test_explanations_of_resizes_follow_the_schema(shell: Shell, change: Doc) -> None:
    pods = [pod("a", SMALL), pod("b", has=SMALL), pod("c"), pod("d", deletionTimestamp=NOW)]
    check(shell.explain([hvpa(**change), deployment(), vpa(), *pods]))


def test_each_field_of_a_decision_is_in_the_json() -> None:
    now = dt.datetime(2026, 11, 21, 10, tzinfo=dt.UTC)
    decision = Decision(
        status=HvpaStatus(conditions=(StatusCondition(type="Ready", status="odd", reason="R", message="M"),)),
        workload_patch=WorkloadPatch(
            "Deployment", "web", "7", {"metadata": {"resourceVersion": "7"}, "spec": {"replicas": 4}}
        ),
        scale_replicas=6,
        recheck_after=dt.timedelta(milliseconds=1500),
        replicas=ReplicaView(current=3, hpa=6, target=4, recommended=5),
        weight_ppm=333_000,
        containers={"app": ResourceRequirements({"cpu": 1500, "memory": 1024**3}, {})},
        recommended={"app": ResourceRequirements({"cpu": 2000}, {"memory": 1_100_000_000})},
        blocked=(
            Blocked("horizontal", "up", "MinChange", 3, 5),
            Blocked("vertical", "down", "Rollout", 2000, 500, container="app", resource="cpu", until=now),
        ),
    )
    seen = observe(build.objects(build.hvpa()), now, Settings())
    explained = json.loads(to_json(seen, decision))
    check(explained)
    assert explained == {
        "replicas": {"current": 3, "hpa": 6, "target": 4},
        "weights": {"hpa": 66.7, "vpa": 33.3},
        "containers": {"app": {"requests": {"cpu": "1500m", "memory": "1Gi"}, "limits": {}}},
        "recommended": {
            "replicas": 5,
            "containers": {"app": {"requests": {"cpu": "2"}, "limits": {"memory": "1100M"}}},
        },
        "changes": True,
        "blocked": [
            {
                "axis": "horizontal",
                "direction": "up",
                "reason": "MinChange",
                "container": None,
                "resource": None,
                "current": 3,
                "wanted": 5,
                "until": None,
            },
            {
                "axis": "vertical",
                "direction": "down",
                "reason": "Rollout",
                "container": "app",
                "resource": "cpu",
                "current": "2",
                "wanted": "500m",
                "until": "2026-11-21T10:00:00Z",
            },
        ],
        "conditions": [{"type": "Ready", "status": "Unknown", "reason": "R", "message": "M"}],
        "recheckAfterSeconds": 1.5,
        "path": None,
        "patch": {"metadata": {"resourceVersion": "7"}, "spec": {"replicas": 4}},
        "nextStatus": {"conditions": [{"type": "Ready", "status": "odd", "reason": "R", "message": "M"}]},
        "scaleReplicas": 6,
        "reported": {"conditions": [], "lastError": None, "refused": []},
        "differences": [],
        "inModeApply": None,
        "resizes": [],
        "actuation": None,
    }
