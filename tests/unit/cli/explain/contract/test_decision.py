"""The JSON contract of `explain -o json` and its schema."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from builders import build
from hvpa.api.hvpa.status import HvpaStatus, StatusCondition
from hvpa.cli.explain.contract import decision as contract
from hvpa.core import Settings, observe
from hvpa.core.model import Blocked, Decision, ReplicaView, ResourceRequirements, WorkloadPatch
from tests.unit.cli.support import DATA, NOW, Doc, Shell, changed, load

SCHEMA_FILE = Path(__file__).parents[5] / "docs" / "explain.schema.json"


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
    schema = contract.schema()
    assert faults(explained, schema, schema) == []


def test_the_schema_in_the_documents_is_the_one_of_the_types(capsys: pytest.CaptureFixture[str]) -> None:
    contract.main()
    assert SCHEMA_FILE.read_text(encoding="utf-8") == capsys.readouterr().out, (
        "run: python -m hvpa.cli.explain.contract.decision > docs/explain.schema.json"
    )


def test_the_example_of_the_design_follows_the_schema() -> None:
    example = json.loads((DATA / "contract.json").read_text(encoding="utf-8"))
    check(example)
    read = msgspec.json.decode((DATA / "contract.json").read_bytes(), type=contract.Explanation)
    assert json.loads(msgspec.json.encode(read)) == example


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"Hvpa__spec__mode": "Paused"},
        {"Hvpa__spec__weightBasedScalingIntervals": [{"vpaWeight": 33.3}]},
        {"Hvpa__spec__targetRef__name": "gone"},
        {"Hvpa__spec__hpa": {}},
        {"Hvpa__spec__vpa": {}},
        {"Deployment__spec__replicas": 0},
        {"Hvpa__metadata__deletionTimestamp": NOW},
        {"Hvpa__spec__vpa__scaleUp__minChange__memory": {"value": "2Gi"}},
    ],
)
def test_explanations_follow_the_schema(shell: Shell, gardener: list[Doc], changes: Doc) -> None:
    check(shell.explain(changed(gardener, **changes)))


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"Hvpa__spec__vpa": {}},
        {"Hvpa__spec__hpa": {}},
        {"HorizontalPodAutoscaler__status": {}},
        {"Hvpa__spec__targetRef__name": "gone"},
        {"Deployment__spec__replicas": 0},
        {"HorizontalPodAutoscaler__status__currentMetrics__0__resource__current__averageValue": "9"},
    ],
)
def test_explanations_of_joint_decisions_follow_the_schema(shell: Shell, changes: Doc) -> None:
    check(shell.explain(changed(load("trajectory.yaml"), **changes)))


def test_a_decision_is_told_field_by_field() -> None:
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
    told = json.loads(contract.to_json(seen, decision))
    check(told)
    assert told == {
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
    }
