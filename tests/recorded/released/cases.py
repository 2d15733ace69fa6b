"""The Hvpas whose decisions are recorded: the manifests of `config/samples`, some of `examples`, and the first example
of gardener's README; some of them with pods resized in place as well. Each is simulated beside a workload whose load
rises, falls and rises."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import yaml

from tests.recorded.replay import Json

ROOT: Final = Path(__file__).resolve().parents[3]
FILES: Final = (
    *sorted(ROOT.glob("config/samples/*.yaml")),
    *(ROOT / f"examples/{name}.yaml" for name in ("growth/additive", "growth/trajectory")),
    ROOT / "tests/unit/cli/data/gardener.yaml",
)
IN_PLACE: Final = ("config/samples/both-axes", "config/samples/joint")
"""Manifests that are also recorded with pods resized in place."""
LOAD: Final = "20 + 150 * pulse(t, 20 * minute, 40 * minute) + 60 * pulse(t, 13 * hour, 2 * hour)"
START: Final = "2026-01-05T20:40:00Z"
"""A Monday evening: the maintenance windows of the manifests open within the hours that are simulated, and after twelve
of them requests may fall."""


def cases() -> dict[str, Json]:
    """The scenarios by name, each with one Hvpa as its policy."""
    by_name: dict[str, Json] = {}
    for path in FILES:
        stem = str(path.relative_to(ROOT).with_suffix(""))
        for manifest in _hvpas(path):
            name = f"{stem} {manifest['metadata']['name']}"
            by_name[name] = _scenario(name, manifest)
            if stem in IN_PLACE:
                spec = {**manifest["spec"], "updateStrategy": {"type": "InPlace"}}
                by_name[f"{name} InPlace"] = _scenario(name, {**manifest, "spec": spec})
    return by_name


def _hvpas(path: Path) -> Iterator[Json]:
    """The Hvpas of a file that deploy their recommenders: a simulation has no others."""
    for document in yaml.load_all(path.read_text(), yaml.CSafeLoader):
        if document and document.get("kind") == "Hvpa" and not _named(document["spec"]):
            yield document


def _named(spec: Json) -> bool:
    return any(spec.get(axis, {}).get("name") for axis in ("hpa", "vpa"))


def _scenario(name: str, manifest: Json) -> Json:
    spec = manifest["spec"]
    template = spec.get("vpa", {}).get("template", {}).get("spec", {})
    policies = template.get("resourcePolicy", {}).get("containerPolicies", [])
    named = [policy["containerName"] for policy in policies if policy["containerName"] != "*"]
    target = spec["targetRef"]
    container: Json = {
        "requests": {"cpu": "250m", "memory": "256Mi"},
        "limits": {"memory": "1Gi"},
        "cpu": {"base": "20m", "perUnit": "10m"},
        "memory": {"base": "150Mi", "perUnit": "3Mi"},
    }
    in_place = spec.get("updateStrategy", {}).get("type", "Rollout") != "Rollout"
    return {
        "name": name,
        "start": START,
        "duration": "16h",
        "load": {"formula": LOAD},
        "workload": {
            "kind": target["kind"],
            "name": target["name"],
            "replicas": 3,
            "startUp": "30s",
            "containers": [{"name": name, **container} for name in named or ["app"]],
            **({"resize": "InPlace"} if in_place else {}),
        },
        "policies": [{"name": "Hvpa", "hvpa": manifest}],
    }
