"""What the HPA and the VPA of a policy need of the workload: what a simulation does not have is refused, and what will
never take effect is noted.

What belongs here: checks that need the workload, alike for recommenders that act by themselves and for those that an
Hvpa deploys. The form of their specs is checked where it is read.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from hvpa.api.hvpa.metrics import MetricSpec
from hvpa.api.hvpa.templates import HpaTemplateSpec, VpaTemplateSpec
from hvpa.api.values.quantity import Resource
from hvpa.simulate.cluster.metrics_server import LOAD_METRIC
from hvpa.simulate.model import WorkloadModel
from hvpa.simulate.scenario.fields import MAX_REPLICAS
from hvpa.simulate.scenario.yaml import Source

_RESOURCES: Final = ("cpu", "memory")
_ALL_CONTAINERS: Final = "*"


def check_hpa(source: Source, path: str, spec: HpaTemplateSpec, workload: WorkloadModel) -> list[str]:
    """Refuse bounds and metrics that a simulation does not have: with such metrics an HPA would never scale in. What
    should be known of the rest comes back. Raises ScenarioError."""
    if spec.max_replicas > MAX_REPLICAS:
        raise source.refuse(
            f"{path}.maxReplicas", f"must be at most {MAX_REPLICAS}: each replica is simulated"
        )
    found: list[tuple[str, str]] = []
    for index, metric in enumerate(spec.metrics):
        at = f"{path}.metrics[{index}].{metric.type[0].lower()}{metric.type[1:]}"
        named = _source_of(metric)
        _check_metric(source, at, named, workload)
        if "metric" not in named and named["target"]["type"] == "Utilization":
            found += ((at, note) for note in _requestless(named["name"], named.get("container"), workload))
    if not spec.metrics:  # then it is CPU at 80 percent
        found += ((path, note) for note in _requestless("cpu", None, workload))
    return [_note(source, at, text) for at, text in found]


def _check_metric(source: Source, at: str, named: dict[str, Any], workload: WorkloadModel) -> None:
    if "metric" in named:
        name = named["metric"]["name"]
        if name != LOAD_METRIC:
            raise source.refuse(
                at, f"a simulation has no metric {name}: beside CPU and memory only {LOAD_METRIC}"
            )
        return
    if named["name"] not in _RESOURCES:
        raise source.refuse(at, f"a simulation has no resource {named['name']}, only cpu and memory")
    container = named.get("container")
    if container is not None and container not in _names(workload):
        raise source.refuse(at, _unknown(container, workload))


def _requestless(resource: Resource, container: str | None, workload: WorkloadModel) -> Iterator[str]:
    """What follows of each container without request and limit, where a utilization is reckoned over this container,
    or over all (None)."""
    for one in workload.containers:
        counts = container in (None, one.name)
        if counts and resource not in one.requests and resource not in one.limits:
            yield (
                f"container {one.name} has no request for {resource}: "
                "as long as it has none, the HPA has no utilization"
            )


def vpa_notes(source: Source, path: str, spec: VpaTemplateSpec, workload: WorkloadModel) -> list[str]:
    """What should be known of a VPA's policies: those for containers that the workload does not have do nothing."""
    policies = spec.resource_policy.container_policies if spec.resource_policy is not None else ()
    known = (*_names(workload), _ALL_CONTAINERS)
    notes = []
    for index, policy in enumerate(policies):
        if policy.container_name is not None and policy.container_name not in known:
            at = f"{path}.resourcePolicy.containerPolicies[{index}].containerName"
            notes.append(_note(source, at, _unknown(policy.container_name, workload)))
    return notes


def _note(source: Source, at: str, text: str) -> str:
    return f"{source.file}:{source.line(at)}: {at}: {text}"


def _source_of(metric: MetricSpec) -> dict[str, Any]:
    """What the metric is made of, as autoscaling/v2 writes it."""
    wire: dict[str, Any] = metric.to_v2()
    (found,) = (value for field, value in wire.items() if field != "type")
    return dict(found)


def _names(workload: WorkloadModel) -> list[str]:
    return [one.name for one in workload.containers]


def _unknown(container: str, workload: WorkloadModel) -> str:
    return f"the workload has no container {container}, only {', '.join(_names(workload))}"
