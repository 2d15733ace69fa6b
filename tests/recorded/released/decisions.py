"""A decision on objects as a cluster stores them, both as JSON: what is recorded of a version, and what another version
decides about the same objects."""

from __future__ import annotations

from typing import Any

import msgspec

from hvpa.api.hvpa.resource import read_hvpa
from hvpa.api.hvpa.status import to_wire
from hvpa.api.objects.read_models import Hpa, Pod, RawHvpa, Vpa, Workload
from hvpa.api.values.timestamp import format_timestamp, parse_timestamp
from hvpa.cli.explain.json import patch_body, resizes
from hvpa.cli.output import containers
from hvpa.core import decide, observe
from hvpa.core.model import Decision, MemoryUse, Objects, Settings
from tests.recorded.replay import Json


def step(objects: Objects, spec: Json, now: str, decision: Decision) -> Json:
    """A decision with what it was about. `spec` is that of the manifest."""
    own = objects.hvpa
    assert own.spec is not None
    use = objects.memory_use
    return {
        "now": now,
        "metadata": _plain(own.metadata),
        "spec": {**spec, **({} if own.spec.replicas is None else {"replicas": own.spec.replicas})},
        "status": to_wire(own.status),
        "workload": _plain(objects.workload),
        "hpas": _plain(objects.hpas),
        "vpas": _plain(objects.vpas),
        "pods": _plain(objects.pods),
        "memory": None
        if use is None
        else [format_timestamp(use.time), [[*key, of] for key, of in use.of.items()]],
        "decided": _decided(decision),
    }


def decided(step: Json) -> Json:
    """What today's code decides about a recorded step."""
    memory = step["memory"]
    raw = {key: step[key] for key in ("metadata", "spec", "status")}
    objects = Objects(
        hvpa=read_hvpa(_read(raw, RawHvpa)),
        workload=_read(step["workload"], Workload),
        hpas=_read(step["hpas"], tuple[Hpa, ...]),
        vpas=_read(step["vpas"], tuple[Vpa, ...]),
        pods=_read(step["pods"], tuple[Pod, ...]),
        memory_use=None
        if memory is None
        else MemoryUse(parse_timestamp(memory[0]), {(pod, name): used for pod, name, used in memory[1]}),
    )
    return _decided(decide(observe(objects, parse_timestamp(step["now"]), Settings())))


def _remembered(decision: Decision) -> Json:
    """What the operator remembers, without what the last release did not know: the history of recommendations."""
    status = to_wire(decision.status, {"axes": True, "desired": True, "rollout": True})
    status.get("axes", {}).get("vertical", {}).pop("history", None)
    return status


def _decided(decision: Decision) -> Json:
    """The parts of a decision that a version promises, and what the operator remembers for the next one; no texts."""
    replicas = decision.replicas
    return {
        "replicas": None if replicas is None else [replicas.target, replicas.recommended],
        "containers": containers(decision.containers),
        "recommended": containers(decision.recommended),
        "patch": (patch_body(decision) or {}).get("spec"),
        "scaleReplicas": decision.scale_replicas,
        "resizes": resizes(decision),
        "owned": [
            [write.action, write.kind, write.name, (write.manifest or {}).get("spec")]
            for write in decision.owned
        ],
        "blocked": sorted(
            [
                block.axis,
                block.direction,
                block.reason,
                block.container,
                block.resource,
                block.current,
                block.wanted,
            ]
            for block in decision.blocked
        ),
        "remembered": _remembered(decision),
        "conditions": {
            condition.type: f"{condition.status} {condition.reason}"
            for condition in decision.status.conditions
        },
    }


def _plain(value: object) -> Any:
    return msgspec.json.decode(msgspec.json.encode(value))


def _read(value: object, model: Any) -> Any:
    return msgspec.json.decode(msgspec.json.encode(value), type=model)
