"""Replaying a scenario of the VPA's updater and webhook to our model, and comparing what both did."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from hvpa.api.objects.read_models import Vpa, VpaMeta, VpaStatusRead
from hvpa.api.values.quantity import Resource, parse_resource
from hvpa.core.model import ResourceRequirements
from hvpa_lab.simulate.cluster.state import Resize, SimPod, Template
from hvpa_lab.simulate.policy.admission import admitted
from hvpa_lab.simulate.policy.updater import Updater, UpdaterSettings
from tests.recorded.replay import Json, differences
from tests.recorded.vpa.build import NANOSECONDS

# Field of the updater's configuration -> ours.
_FLAGS = {
    "MinReplicas": "min_replicas",
    "EvictionToleranceFraction": "eviction_tolerance",
    "DefaultUpdateThreshold": "update_threshold",
}
_DURATIONS = {"PodLifetimeUpdateThreshold": "pod_lifetime", "EvictAfterOOMThreshold": "evict_after_oom"}


def settings(flags: Mapping[str, Any]) -> UpdaterSettings:
    """Our settings for a scenario's flags."""
    fields: dict[str, Any] = {_FLAGS[name]: value for name, value in flags.items() if name in _FLAGS}
    fields |= {_DURATIONS[n]: value / NANOSECONDS for n, value in flags.items() if n in _DURATIONS}
    assert len(fields) == len(flags), "a flag has no counterpart"
    return UpdaterSettings(**fields)


def template(containers: Sequence[Json]) -> Template:
    """Resources by container name, of containers as the API server has them."""
    return {container["name"]: _resources(container.get("resources") or {}) for container in containers}


def _resources(given: Json) -> ResourceRequirements:
    return ResourceRequirements(_amounts(given.get("requests")), _amounts(given.get("limits")))


def _amounts(given: Mapping[Resource, str] | None) -> dict[Resource, int]:
    return {resource: parse_resource(resource, quantity) for resource, quantity in (given or {}).items()}


def _pod(given: Json, known: list[Template]) -> SimPod:
    """The pod; those that are alike share their resources, as a simulation's pods do."""
    wanted = template(given["containers"])
    resources = next((resource for resource in known if resource == wanted), wanted)
    known.append(resources)
    made = SimPod(given["name"], 0, resources, resources, 0.0)
    made.node, made.started = (0 if given["node"] else None), given["started"]
    made.deleted = given.get("deleted")
    for container, fields in zip(made.containers, given["containers"], strict=True):
        container.oom_started, container.oom_at = fields.get("oom", (None, None))
    if "desired" in given:
        made.resize = Resize(made, template(given["desired"]), 0.0, given.get("resize", ""))
    return made


class Replay:
    """Our model in a scenario."""

    def __init__(self, scenario: Json) -> None:
        self._updater = Updater(settings(scenario["flags"]))
        self._template = template(scenario["template"])
        self._vpa = Vpa(
            metadata=msgspec.convert(scenario["vpa"]["metadata"], VpaMeta),
            raw_spec=msgspec.Raw(msgspec.json.encode(scenario["vpa"]["spec"])),
        )

    def answer(self, step: Json) -> Json:
        """What the updater does in this loop, and what a new pod gets after it."""
        if "recommendation" in step:
            status = msgspec.convert({"recommendation": step["recommendation"]}, VpaStatusRead)
            self._vpa = msgspec.structs.replace(self._vpa, status=status)
        known: list[Template] = []
        pods = [_pod(pod, known) for pod in step["pods"]]
        refused = {pod["name"] for pod in step["pods"] if pod.get("refused")}
        vpa, replicas, now = self._vpa, step["replicas"], step["at"]
        resize, evict = self._updater.loop(pods, vpa, replicas, now, lambda pod: pod.name in refused)
        return {
            "at": now,
            "resized": [[pod.name, written(admitted(pod.resources, vpa))] for pod in resize],
            "evicted": [pod.name for pod in evict],
            "admitted": written(admitted(self._template, vpa)),
        }


def written(resources: Template) -> Json:
    """Resources in numbers: millicores and bytes, by container, requests or limits, and resource."""
    return {
        f"{name} {kind} {resource}": amount
        for name, requirements in resources.items()
        for kind, amounts in (("requests", requirements.requests), ("limits", requirements.limits))
        for resource, amount in sorted(amounts.items())
    }


def theirs(answer: Json) -> Json:
    """One answer of the real updater and the real webhook, in the same form."""
    return {
        "at": answer["at"],
        "resized": [
            [resized["pod"], written(template(resized["containers"]))] for resized in answer["resized"] or ()
        ],
        "evicted": answer["evicted"] or [],
        "admitted": written(template(answer["admitted"])),
    }


def first_difference(scenario: Json, real: Iterable[Json]) -> str | None:
    """The first loop in which our model and the real one (`theirs` of each answer) differ, with both sides; None where
    they agree."""
    replay = Replay(scenario)
    for number, (step, answer) in enumerate(zip(scenario["steps"], real, strict=True), 1):
        where = f"{scenario['name']}: loop {number}, second {step['at']}"
        if difference := differences(where, replay.answer(step), answer):
            return difference
    return None
