"""A what-if: an Hvpa with other bounds, another target or another blend, simulated under the recent load.

It makes a scenario from the measurements and runs `hvpa simulate` on it. The load is the CPU in cores that all
containers used beyond the base usage of each pod. It is repeated for hours, since recommenders need time to find a
size; the first third does not count.
"""

from __future__ import annotations

import asyncio
import copy
import json
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from hvpa.api.hvpa.resource import parse_spec
from hvpa.api.values.quantity import RESOURCES, format_memory
from hvpa.cli.errors import CommandError, plain_line
from hvpa.cli.output import Json
from hvpa.core.model import Objects
from hvpa.core.path.curve import NONE
from hvpa.core.path.path import ResourceKey
from hvpa.core.trajectory.config import reserves
from hvpa.core.workload.pod_owner import by_owner
from hvpa.kube.client.errors import ApiError
from hvpa.kube.client.transport import Transport
from hvpa.kube.objects.resources import HPAS, HVPAS, VPAS
from hvpa.reconcile.ports import Key
from hvpa_lab.simulate.history.fit import memory_line
from hvpa_lab.simulate.history.pods import start_up
from hvpa_lab.simulate.scenario.fields import MAX_REPLICAS

STEP: Final = 5.0
"""Seconds between values of the load."""
LEAST: Final = 12
"""Minimum number of values: a minute's."""
DURATION: Final = "6h"
WARM_UP: Final = "2h"
TIME_LIMIT: Final = 120.0
"""Timeout of a simulation in seconds."""
DEFAULT_HEADROOM: Final = 20
AS_IT_IS: Final = "as it is"
WHAT_IF: Final = "what if"
_MOST_PERCENT: Final = 1000
_PLACE: Final = re.compile(r"^(?:hvpa: error: )?(?:\S*scenario\.yaml)?(?::\d+)?:? ?")


class WhatIfError(CommandError):
    """A what-if can't be simulated; `status` is the HTTP status of the response."""

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.status = status


class FieldChanges(NamedTuple):
    """The changed fields; None leaves a field unchanged."""

    blend: str | None = None
    target: int | None = None
    """The HPA's CPU utilization target, in percent of the requests."""
    least: int | None = None
    """minReplicas."""
    most: int | None = None
    """maxReplicas."""
    headroom: int = DEFAULT_HEADROOM
    """CPU that a pod may use beyond its request, in percent of the request.

    It describes the nodes, so it applies to the unchanged Hvpa as well.
    """


def read_changes(query: Mapping[str, str]) -> FieldChanges:
    """The changes in a query; an empty value leaves a field unchanged. Raises WhatIfError, which names the field."""
    given = {name: value.strip() for name, value in query.items() if value.strip()}
    unknown = sorted(given.keys() - {"blend", "target", "minReplicas", "maxReplicas", "headroom"})
    if unknown:
        raise WhatIfError(f"{plain_line(unknown[0])[:40]}: unknown field")
    blend = given.get("blend")
    if blend not in (None, "Additive", "Trajectory"):
        raise WhatIfError("blend: must be Additive or Trajectory")
    headroom = _whole(given, "headroom", 0, _MOST_PERCENT)
    changes = FieldChanges(
        blend,
        _whole(given, "target", 1, _MOST_PERCENT),
        _whole(given, "minReplicas", 1, MAX_REPLICAS),
        _whole(given, "maxReplicas", 1, MAX_REPLICAS),
        DEFAULT_HEADROOM if headroom is None else headroom,
    )
    if changes.least is not None and changes.most is not None and changes.least > changes.most:
        raise WhatIfError("minReplicas: must not be greater than maxReplicas")
    return changes


def _whole(given: Mapping[str, str], name: str, least: int, most: int) -> int | None:
    text = given.get(name)
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(most)) and least <= int(text) <= most):
        raise WhatIfError(f"{name}: must be a whole number from {least} to {most}")
    return int(text)


# --- the Hvpa ---------------------------------------------------------------------------------------------------
async def read_manifest(transport: Transport, namespace: str, name: str) -> Json:
    """The Hvpa as a manifest for a simulation: in mode Apply, with its own copies of the recommenders that it names.

    Raises ApiError, Unreachable, and WhatIfError if the spec is not valid.
    """
    spec = copy.deepcopy((await _get(transport, HVPAS.path(namespace, name))).get("spec", {}))
    _, problems = parse_spec(spec)  # the names in it become paths
    if problems:
        raise WhatIfError(f"an invalid Hvpa can't be simulated: {problems[0]}", 409)
    for axis, resource, fields in (
        ("hpa", HPAS, ("minReplicas", "maxReplicas", "metrics", "behavior")),
        ("vpa", VPAS, ("resourcePolicy",)),
    ):
        own = spec.get(axis) or {}
        if named := own.pop("name", None):
            named_spec = (await _get(transport, resource.path(namespace, named))).get("spec", {})
            own["template"] = {"spec": {field: named_spec[field] for field in fields if field in named_spec}}
            own["deploy"] = True
    spec["mode"] = "Apply"
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "autoscaling.k8s.io/v1alpha1", "kind": "Hvpa", "metadata": metadata, "spec": spec}


async def hvpa_exists(transport: Transport, key: Key) -> bool | None:
    """Whether an Hvpa exists; None if it can't be read. Raises Unreachable."""
    try:
        await _get(transport, HVPAS.path(key.namespace, key.name))
    except ApiError as error:
        return False if error.status == 404 else None
    return True


async def _get(transport: Transport, path: str) -> Json:
    obj: Json = json.loads(await transport.request("GET", path))
    return obj


def changed(manifest: Json, changes: FieldChanges) -> Json:
    """The manifest with the changes. Raises WhatIfError if the manifest has no field to change."""
    made = copy.deepcopy(manifest)
    spec = made["spec"]
    if changes.blend is not None:
        spec["blend"] = changes.blend
        if changes.blend == "Additive":
            spec.pop("trajectory", None)
    hpa: Json | None = ((spec.get("hpa") or {}).get("template") or {}).get("spec")
    if (changes.target, changes.least, changes.most) == (None, None, None):
        return made
    if hpa is None:
        raise WhatIfError("this Hvpa has no HPA, so it has no target and no replica bounds")
    for field, value in (("minReplicas", changes.least), ("maxReplicas", changes.most)):
        if value is not None:
            hpa[field] = value
    if changes.target is not None:
        targets = [place for metric in hpa.get("metrics") or () for place in _cpu_targets(metric)]
        if not targets:
            raise WhatIfError("target: the HPA has no CPU utilization metric")
        for place, field in targets:
            place[field] = changes.target
    return made


def _cpu_targets(metric: Json) -> Iterator[tuple[Json, str]]:
    """The object and field of a metric's target, if it is CPU utilization: in v2, or next to the name (v2beta1, which
    gardener's manifests use)."""
    source = metric.get("resource") or metric.get("containerResource") or {}
    places = ((source.get("target") or {}, "averageUtilization"), (source, "targetAverageUtilization"))
    if source.get("name") == "cpu":
        yield from (place for place in places if place[1] in place[0])


# --- the scenario -----------------------------------------------------------------------------------------------
class Measured(NamedTuple):
    """The input of a scenario."""

    objects: Objects
    """The objects that were read last."""
    desired: Mapping[str, Json]
    """The size that was decided last, in the form of `docs/status.schema.json`."""
    samples: Sequence[Json]
    """The samples, oldest first."""


def scenario(measured: Measured, manifest: Json, changes: FieldChanges, load_file: str) -> tuple[Json, str]:
    """The scenario, and its load as CSV, which it refers to as `load_file`. Raises WhatIfError if there are too few
    measurements."""
    workload = measured.objects.workload
    if workload is None:
        raise WhatIfError("the workload does not exist, so there is nothing to simulate")
    samples = [sample for sample in measured.samples if sample["replicas"]["ready"] and sample["used"]]
    values = _steps(samples)
    if len(values) < LEAST:
        seconds = f"{len(values) * STEP:.0f} s of pod usage are known, at least a minute is needed"
        raise WhatIfError(f"{seconds}: try again a little later")
    names = [container.name for container in workload.spec.template.spec.containers]
    base = _base(measured, names)
    loads = [_load(sample, base) / 1000 for sample in values]
    if not any(loads):
        raise WhatIfError("the pods have used no CPU beyond their base usage: there is no load")
    begin = values[0]["time"]
    rows = [f"{begin + STEP * at:.3f},{load:.6g}" for at, load in enumerate(loads)]
    in_place = measured.objects.hvpa.spec is not None and measured.objects.hvpa.spec.strategy.in_place
    return {
        "name": f"{manifest['metadata']['namespace']}/{manifest['metadata']['name']}",
        "description": f"{len(values) * STEP / 60:.1f} minutes of measured load, repeated.",
        "duration": DURATION,
        "warmUp": WARM_UP,
        "step": "10s",
        "load": {"csv": {"file": load_file}, "repeat": True},
        "workload": {
            "kind": workload.kind,
            "name": workload.metadata.name,
            "namespace": workload.metadata.namespace,
            "replicas": max(1, min(workload.spec.replicas, MAX_REPLICAS)),
            "startUp": f"{start_up(by_owner(measured.objects.pods, workload).own) or 0.0:.0f}s",
            "resize": "InPlace" if in_place else "Recreate",
            "containers": [_container(measured, name, base, samples) for name in names],
        },
        "nodes": {"headroom": f"{changes.headroom}%"},
        "policies": [
            {"name": AS_IT_IS, "hvpa": manifest},
            {"name": WHAT_IF, "hvpa": changed(manifest, changes)},
        ],
    }, "\n".join(["timestamp,value", *rows, ""])


def _steps(samples: Sequence[Json]) -> list[Json]:
    """The samples, resampled to every STEP seconds: each value is held until the next."""
    resampled: list[Json] = []
    for sample in samples:
        count = int((sample["time"] - samples[0]["time"]) // STEP) + 1
        resampled += [resampled[-1] if resampled else sample] * (count - len(resampled) - 1)
        resampled += [sample] * (count > len(resampled))
    return resampled


def _base(measured: Measured, names: Sequence[str]) -> dict[str, int]:
    """Millicores that each container uses without load, according to the Hvpa."""
    spec, sizes = measured.objects.hvpa.spec, measured.samples[-1]["sizes"]
    first = {ResourceKey(name, "cpu"): sizes.get(name, {}).get("cpu", 0) for name in names}
    margins = {} if spec is None else reserves(spec, first)
    return {key.container: size - margins.get(key, NONE).work(size) for key, size in first.items()}


def _load(sample: Json, base: Mapping[str, int]) -> float:
    """Millicores that all pods used beyond their base."""
    used = sum(amounts.get("cpu", 0) for amounts in sample["used"].values())
    return max(0.0, float(used - sum(base.values()) * sample["replicas"]["ready"]))


def _container(measured: Measured, name: str, base: Mapping[str, int], samples: Sequence[Json]) -> Json:
    """A container: its current size, its usage without load, and its usage per core of load."""
    own, loads, points = 0.0, 0.0, []
    for sample in samples:
        ready, used, load = sample["replicas"]["ready"], sample["used"].get(name, {}), _load(sample, base)
        own += max(0, used.get("cpu", 0) - base[name] * ready)
        loads += load
        points.append((ready, load / 1000, used.get("memory", 0)))
    line = memory_line(*zip(*points, strict=True))
    cpu = {"base": f"{base[name]}m", "perUnit": f"{1000 * own / max(1.0, loads):.3f}m"}
    memory = {"base": format_memory(round(line.per_replica)), "perUnit": format_memory(round(line.per_unit))}
    return {"name": name, **_resources(measured, name), "cpu": cpu, "memory": memory}


def _resources(measured: Measured, name: str) -> Json:
    """Requests and limits: the decided values, else those of the pod template."""
    workload = measured.objects.workload
    assert workload is not None
    own = next(
        container for container in workload.spec.template.spec.containers if container.name == name
    ).resources
    decided = measured.desired.get(name, {})
    resources = {}
    for section, given in (("requests", own.requests), ("limits", own.limits)):
        amounts = {**given, **decided.get(section, {})}
        resources[section] = {resource: amounts[resource] for resource in RESOURCES if resource in amounts}
    return resources


# --- the run ----------------------------------------------------------------------------------------------------
class Simulator:
    """Runs simulations in a separate process, one at a time. Each user may have one; other users wait."""

    def __init__(self) -> None:
        self._turn = asyncio.Lock()
        self._users: set[str] = set()

    async def run(self, measured: Measured, manifest: Json, changes: FieldChanges, user: str = "") -> Json:
        """The scenario's report, in the form of `docs/simulate.schema.json`. Raises WhatIfError."""
        if user in self._users:
            raise WhatIfError("another simulation of yours is running; try again when it is done", 429)
        self._users.add(user)
        try:
            async with self._turn:
                return await self._run(measured, manifest, changes)
        finally:
            self._users.discard(user)

    async def _run(self, measured: Measured, manifest: Json, changes: FieldChanges) -> Json:
        with tempfile.TemporaryDirectory(prefix="hvpa-what-if-") as folder:
            made, load = scenario(measured, manifest, changes, "load.csv")
            (Path(folder) / "load.csv").write_text(load)
            path = Path(folder) / "scenario.yaml"
            path.write_text(json.dumps(made))
            return await _simulated(path)


async def _simulated(path: Path) -> Json:
    flags = ("-o", "json", "--series", "--baseline", AS_IT_IS, "--jobs", "1", "--progress", "never")
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "hvpa", "simulate", str(path), *flags),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(TIME_LIMIT):
            out, err = await process.communicate()
    except TimeoutError:
        raise WhatIfError(
            f"the simulation took longer than {TIME_LIMIT:.0f} s and was stopped", 504
        ) from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        raise WhatIfError(_PLACE.sub("", plain_line(err.decode(errors="replace"))), 422)
    report: Json = json.loads(out)["scenarios"][0]
    return report
