"""Reads a scenario's policies (manifests and specs) and checks them against the workload. A policy that uses a feature
that is not simulated is refused; a field that never takes effect gets a note. An Hvpa's HPA and VPA get the same checks
as an HPA or VPA that acts directly."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

from hvpa.api.hvpa.resource import KIND, parse_spec, validate_manifest
from hvpa.api.hvpa.spec import HvpaSpec
from hvpa.api.hvpa.templates import HpaTemplateSpec, VpaTemplateSpec
from hvpa.api.objects.kinds import has_replicas, kind_key
from hvpa.api.schema.base import dotted_path, without_nulls
from hvpa.api.values.quantity import RESOURCES, Resource
from hvpa.core.model import ResourceRequirements
from hvpa.core.spec.check import spec_problems
from hvpa.core.workload.pod_level import POD
from hvpa_lab.simulate.cluster.state import with_default_requests
from hvpa_lab.simulate.model import Policy, PolicyKind, WorkloadModel
from hvpa_lab.simulate.policy.updater import IN_PLACE_OR_RECREATE
from hvpa_lab.simulate.scenario.documents import SourceDocument, read_documents, read_text
from hvpa_lab.simulate.scenario.fields import MAX_REPLICAS
from hvpa_lab.simulate.scenario.schema import FixedPart, FixedSize, Metrics, PolicyModel, VpaAlone

_ALL_CONTAINERS: Final = "*"


class PodProblem(NamedTuple):
    """A resource that containers have more of than their pod."""

    field: str
    reason: str


def beyond_pod(template: Mapping[str, ResourceRequirements]) -> PodProblem | None:
    """The first amount of a pod itself that is less than its containers need (`validatePodResourceConsistency` in
    pkg/apis/core/validation of Kubernetes); None if all suffice."""
    if POD not in template:
        return None
    whole, containers = template[POD], {name: one for name, one in template.items() if name != POD}
    requests = [{**one.limits, **one.requests} for one in containers.values()]
    for resource in RESOURCES:
        total = sum([given.get(resource, 0) for given in requests])
        if total > whole.requests.get(resource, total):
            return PodProblem(f"requests.{resource}", "must not be less than its containers request together")
        if total > whole.limits.get(resource, total):
            return PodProblem(f"limits.{resource}", "must not be less than its containers request together")
        for name, one in containers.items():
            if one.limits.get(resource, 0) > whole.limits.get(resource, math.inf):
                return PodProblem(
                    f"limits.{resource}", f"must not be less than the limit of container {name}"
                )
    return None


def _fixed_part(place: SourceDocument, given: FixedPart, usual: ResourceRequirements) -> ResourceRequirements:
    """The resources of a container or pod of fixed size; others stay as usual."""
    requests = usual.requests if given.requests is None else given.requests.by_resource()
    limits = usual.limits if given.limits is None else given.limits.by_resource()
    for resource, limit in limits.items():
        if requests.get(resource, 0) > limit:
            raise place.refuse(f"limits.{resource}", "must not be less than the request")
    return ResourceRequirements(requests, limits)


def read_policies(
    source: SourceDocument,
    folder: Path,
    models: Sequence[PolicyModel],
    workload: WorkloadModel,
    metrics: Metrics,
) -> tuple[tuple[Policy, ...], list[str]]:
    """The policies of the scenario in `source`, and notes for the user. Manifest files are in `folder`; `metrics` names
    the custom metrics. Raises ScenarioError."""
    reader = _Reader(folder, workload, metrics)
    policies = tuple(
        reader.policy(source.at(f"policies[{index}]"), model) for index, model in enumerate(models)
    )
    return policies, reader.notes


class _Reader:
    def __init__(self, folder: Path, workload: WorkloadModel, metrics: Metrics) -> None:
        self._folder = folder
        self._load_metric = metrics.load
        self._totals = {metrics.load, metrics.share, metrics.queue}
        self._workload = workload
        self._containers = {container.name: container for container in workload.containers}
        self.notes: list[str] = []

    def policy(self, place: SourceDocument, model: PolicyModel) -> Policy:
        """The policy at `place`."""
        if model.hvpa is not None:
            return Policy(model.name, "Hvpa", hvpa=self._hvpa(place.at("hvpa"), model.hvpa))
        if model.fixed is not None:
            return self._fixed(place.at("fixed"), model.name, model.fixed)
        hpa, vpa = model.hpa, model.vpa
        if hpa is not None and not has_replicas(self._workload.kind):
            reason = f"a {self._workload.kind} has no replicas that an HPA could set: its nodes decide them"
            raise place.refuse("hpa", reason)
        kind: PolicyKind = "HPA+VPA" if hpa and vpa else "HPA" if hpa else "VPA"
        if hpa is not None:
            self._check_hpa(place.at("hpa"), hpa)
        if vpa is not None:
            self._check_vpa_alone(place.at("vpa"), vpa)
        specs = hpa.to_v2() if hpa else None, vpa.to_wire() if vpa else None
        return Policy(model.name, kind, None, *specs)

    def _fixed(self, place: SourceDocument, name: str, fixed: FixedSize) -> Policy:
        resources = self._workload.template
        for container, given in fixed.containers.items():
            container_place = place.at(f"containers.{container}")
            if container not in self._containers:
                names = ", ".join(self._containers)
                raise container_place.refuse("", f"the workload has no such container, only {names}")
            resources[container] = _fixed_part(container_place, given, resources[container])
        if fixed.resources is not None:
            if POD not in resources:
                raise place.refuse("resources", "the workload's pods have no resources of their own")
            resources[POD] = _fixed_part(place.at("resources"), fixed.resources, resources[POD])
        if (problem := beyond_pod(resources)) is not None:
            raise place.refuse(f"resources.{problem.field}", problem.reason)
        changed = {part: given for part, given in resources.items() if given != self._workload.template[part]}
        return Policy(name, "Fixed", replicas=fixed.replicas, resources=changed)

    # --- Hvpa -----------------------------------------------------------------------------------------------------
    def _hvpa(self, place: SourceDocument, named: str | dict[str, Any]) -> Mapping[str, object]:
        """The manifest: `named` itself, or from the file of this name."""
        if isinstance(named, dict):
            return self._manifest(place, named)
        file = self._folder / named
        documents = read_documents(str(file), read_text(file, partial(place.refuse, "")))
        hvpas = [
            document
            for document in documents
            if isinstance(document.content, dict) and document.content.get("kind") == KIND
        ]
        if len(hvpas) != 1:
            raise place.refuse("", f"{file} must have a single Hvpa, but has {len(hvpas) or 'none'}")
        return self._manifest(hvpas[0], hvpas[0].content)

    def _manifest(self, place: SourceDocument, content: dict[str, Any]) -> Mapping[str, object]:
        """The checked manifest, in the workload's namespace."""
        problems = validate_manifest(content)
        spec, _ = parse_spec(content.get("spec"))
        if problems or spec is None:
            raise place.refuse(problems[0].path, problems[0].message)
        for problem in spec_problems(spec):
            raise place.refuse(problem.path, problem.message)
        target, workload, metadata = spec.target_ref, self._workload, without_nulls(content["metadata"])
        workload_kind = kind_key(workload.api_version, workload.kind)
        if (kind_key(target.api_version, target.kind), target.name) != (workload_kind, workload.name):
            wanted = f"must be the workload, {workload_kind} {workload.name}"
            raise place.refuse("spec.targetRef", f"{wanted}: is {target.kind} {target.name}")
        if workload.is_custom and spec.strategy.type != "InPlace":
            reason = f"must be InPlace: the pod template of a {target.kind} can't be changed"
            raise place.refuse("spec.updateStrategy.type", reason)
        if (metadata.get("namespace") or workload.namespace) != workload.namespace:
            raise place.refuse("metadata.namespace", f"must be the workload's, {workload.namespace}")
        self._check_recommenders(place, spec)
        self.notes += [f"{place.file}: {warning}" for warning in spec.warnings]
        return content | {"metadata": {"name": workload.name} | metadata | {"namespace": workload.namespace}}

    def _check_recommenders(self, place: SourceDocument, spec: HvpaSpec) -> None:
        """Refuse HPAs and VPAs that can't be simulated."""
        for axis, name in (("hpa", spec.hpa.name), ("vpa", spec.vpa.name)):
            if name is not None:
                reason = "a simulation has only objects that HVPA deploys: set deploy: true"
                raise place.refuse(f"spec.{axis}.name", reason)
        if spec.hpa.template.spec is not None:
            self._check_hpa(place.at("spec.hpa.template.spec"), spec.hpa.template.spec)
        if spec.vpa.template.spec is not None:
            self._check_vpa(place.at("spec.vpa.template.spec"), spec.vpa.template.spec)
        for axis, template in (("hpa", spec.hpa.template.spec), ("vpa", spec.vpa.template.spec)):
            for path in () if template is None else template.passed_on():
                field = dotted_path(("spec", axis, "template", "spec", *path))
                self.notes.append(place.note(field, "this field is not simulated"))

    # --- HPA and VPA ------------------------------------------------------------------------------------------------
    def _check_hpa(self, place: SourceDocument, spec: HpaTemplateSpec) -> None:
        """Refuse bounds and metrics that are not simulated: with a metric without values an HPA never scales in."""
        if spec.max_replicas > MAX_REPLICAS:
            reason = f"must be at most {MAX_REPLICAS}: each replica is simulated"
            raise place.refuse("maxReplicas", reason)
        for index, metric in enumerate(spec.metrics):
            ((field, named),) = (part for part in metric.to_v2().items() if part[0] != "type")
            metric_place = place.at(f"metrics[{index}].{field}")
            self._check_metric(metric_place, metric.type, named)
            if "metric" not in named and named["target"]["type"] == "Utilization":
                self.notes += self._requestless(metric_place, named["name"], named.get("container"))
        if not spec.metrics:  # the HPA's default is CPU at 80 percent
            self.notes += self._requestless(place, "cpu", None)

    def _check_metric(self, place: SourceDocument, kind: str, named: Mapping[str, Any]) -> None:
        if "metric" in named:
            name = named["metric"]["name"]
            if name not in (self._totals if kind != "Pods" else {self._load_metric}):
                raise place.refuse(
                    "", f"a simulation has no metric {name}: only CPU, memory and {self._load_metric}"
                )
            return
        if named["name"] not in RESOURCES:
            raise place.refuse("", f"a simulation has no resource {named['name']}, only cpu and memory")
        container = named.get("container")
        if container is not None and container not in self._containers:
            raise place.refuse("", self._unknown(container))

    def _requestless(self, place: SourceDocument, resource: Resource, container: str | None) -> Iterator[str]:
        """A note for each container without request and limit among those that a utilization covers: `container`, or
        all (None). If the pod requests the resource itself, the HPA needs no other request; if it requests another
        resource, the HPA needs the request of a single container."""
        template = with_default_requests(self._workload.template)
        requested = any(resource in part.requests for part in template.values())
        if container is None and POD in template and template[POD].requests and requested:
            return
        for model in self._workload.containers:
            counts = container in (None, model.name)
            if counts and resource not in model.requests and resource not in model.limits:
                yield place.note(
                    "",
                    f"container {model.name} has no request for {resource}, so the HPA has no utilization",
                )

    def _check_vpa_alone(self, place: SourceDocument, spec: VpaAlone) -> None:
        self._check_vpa(place, spec)
        if self._workload.resources is not None and spec.update_policy.update_mode != "Off":
            reason = (
                "must be Off: a VPA ignores the pod's own resources, so the API server may refuse its pods"
            )
            raise place.refuse("updatePolicy.updateMode", reason)
        if spec.update_policy.update_mode == IN_PLACE_OR_RECREATE and self._workload.resize != "InPlace":
            reason = f"{IN_PLACE_OR_RECREATE} needs workload.resize: InPlace"
            raise place.refuse("updatePolicy.updateMode", reason)

    def _check_vpa(self, place: SourceDocument, spec: VpaTemplateSpec | VpaAlone) -> None:
        """Add a note for each policy of a container that the workload does not have: it has no effect."""
        policies = spec.resource_policy.container_policies if spec.resource_policy is not None else ()
        for index, policy in enumerate(policies):
            name = policy.container_name
            if name not in (None, _ALL_CONTAINERS, *self._containers):
                at = f"resourcePolicy.containerPolicies[{index}].containerName"
                self.notes.append(place.note(at, self._unknown(name)))

    def _unknown(self, container: str | None) -> str:
        return f"the workload has no container {container}, only {', '.join(self._containers)}"
