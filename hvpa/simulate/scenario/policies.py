"""From a scenario's policies to what the simulation runs: manifests read and checked against the workload."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from hvpa.api.hvpa.resource import KIND, parse_spec, validate_manifest
from hvpa.api.hvpa.spec import HvpaSpec
from hvpa.api.schema.base import without_nulls
from hvpa.core.model import ResourceRequirements
from hvpa.core.spec.check import spec_problems
from hvpa.simulate.model import Policy, PolicyKind, WorkloadModel
from hvpa.simulate.policy.updater_in_place import IN_PLACE_OR_RECREATE
from hvpa.simulate.scenario.files import Unreadable, read_text
from hvpa.simulate.scenario.policy_schema import FixedContainer, FixedSize, HpaAlone, PolicyModel, VpaAlone
from hvpa.simulate.scenario.recommenders import check_hpa, vpa_notes
from hvpa.simulate.scenario.yaml import Source, read_documents


def read_policies(
    source: Source, folder: Path, models: Sequence[PolicyModel], workload: WorkloadModel
) -> tuple[tuple[Policy, ...], list[str]]:
    """The policies of the scenario in `source`, and what their reader should know; manifests that they name lie in
    `folder`. Raises ScenarioError."""
    reader = _Reader(source, folder, workload)
    policies = tuple(reader.policy(f"policies[{index}]", model) for index, model in enumerate(models))
    return policies, reader.notes


class _Reader:
    def __init__(self, source: Source, folder: Path, workload: WorkloadModel) -> None:
        self._source = source
        self._folder = folder
        self._workload = workload
        self.notes: list[str] = []

    def policy(self, path: str, model: PolicyModel) -> Policy:
        """The policy at `path`."""
        if model.hvpa is not None:
            return Policy(model.name, "Hvpa", hvpa=self._hvpa(f"{path}.hvpa", model.hvpa))
        if model.fixed is not None:
            return self._fixed(path, model.name, model.fixed)
        kind: PolicyKind = "HPA+VPA" if model.hpa and model.vpa else "HPA" if model.hpa else "VPA"
        return Policy(
            model.name,
            kind,
            hpa=None if model.hpa is None else self._hpa(f"{path}.hpa", model.hpa),
            vpa=None if model.vpa is None else self._vpa(f"{path}.vpa", model.vpa),
        )

    # --- Hvpa -----------------------------------------------------------------------------------------------------
    def _hvpa(self, path: str, named: str | dict[str, Any]) -> Mapping[str, object]:
        if isinstance(named, dict):
            return _Manifest(self._source, path, named, self._workload).checked(self.notes)
        try:
            file = self._folder / named
            documents = read_documents(str(file), read_text(file))
        except Unreadable as error:
            raise self._source.refuse(path, str(error)) from None
        hvpas = [
            one for one in documents if isinstance(one.content, dict) and one.content.get("kind") == KIND
        ]
        if len(hvpas) != 1:
            raise self._source.refuse(path, f"{file} must hold one Hvpa, and holds {len(hvpas) or 'none'}")
        return _Manifest(hvpas[0], "", hvpas[0].content, self._workload).checked(self.notes)

    # --- the others -----------------------------------------------------------------------------------------------
    def _hpa(self, path: str, spec: HpaAlone) -> Mapping[str, object]:
        self.notes += check_hpa(self._source, path, spec, self._workload)
        return spec.to_v2()

    def _vpa(self, path: str, spec: VpaAlone) -> Mapping[str, object]:
        self.notes += vpa_notes(self._source, path, spec, self._workload)
        mode = spec.update_policy.update_mode
        if mode == IN_PLACE_OR_RECREATE and self._workload.resize != "InPlace":
            raise self._source.refuse(
                f"{path}.updatePolicy.updateMode", f"{mode} needs workload.resize: InPlace"
            )
        return spec.to_wire()

    def _fixed(self, path: str, name: str, fixed: FixedSize) -> Policy:
        known = {one.name: one for one in self._workload.containers}
        resources = {}
        for container, given in fixed.containers.items():
            at = f"{path}.fixed.containers.{container}"
            if container not in known:
                raise self._source.refuse(at, f"the workload has no such container, only {', '.join(known)}")
            model = known[container]
            resources[container] = self._resources(
                at, given, ResourceRequirements(model.requests, model.limits)
            )
        return Policy(name, "Fixed", replicas=fixed.replicas, resources=resources)

    def _resources(
        self, at: str, given: FixedContainer, before: ResourceRequirements
    ) -> ResourceRequirements:
        requests = before.requests if given.requests is None else given.requests.by_resource()
        limits = before.limits if given.limits is None else given.limits.by_resource()
        for resource, limit in limits.items():
            if requests.get(resource, 0) > limit:
                raise self._source.refuse(f"{at}.limits.{resource}", "must not be less than the request")
        return ResourceRequirements(requests, limits)


class _Manifest:
    """An Hvpa's manifest: where it stands, and the workload that it is to scale."""

    def __init__(self, source: Source, root: str, content: dict[str, Any], workload: WorkloadModel) -> None:
        self._source = source
        self._root = root
        self._content = content
        self._workload = workload

    def checked(self, notes: list[str]) -> Mapping[str, object]:
        """The manifest, in the workload's namespace; warnings are added to `notes`."""
        problems = validate_manifest(self._content)
        spec, _ = parse_spec(self._content.get("spec"))
        if problems or spec is None:
            self._fail(problems[0].path, problems[0].message)
        for problem in spec_problems(spec):
            self._fail(problem.path, problem.message)
        self._check_target(spec)
        notes += self._recommenders(spec)
        notes += [f"{self._source.file}: {warning}" for warning in spec.warnings]
        metadata = {"name": self._workload.name} | without_nulls(self._content["metadata"])
        return self._content | {"metadata": metadata | {"namespace": self._workload.namespace}}

    def _check_target(self, spec: HvpaSpec) -> None:
        target, workload = spec.target_ref, self._workload
        if (target.kind, target.name) != (workload.kind, workload.name):
            self._fail(
                "spec.targetRef",
                f"must be the workload, {workload.kind} {workload.name}: is {target.kind} {target.name}",
            )
        if (self._content["metadata"].get("namespace") or workload.namespace) != workload.namespace:
            self._fail("metadata.namespace", f"must be the workload's, {workload.namespace}")

    def _recommenders(self, spec: HvpaSpec) -> list[str]:
        """Refuse recommenders that a simulation does not have; what should be known of the others."""
        for axis, name in (("hpa", spec.hpa.name), ("vpa", spec.vpa.name)):
            if name is not None:
                self._fail(
                    f"spec.{axis}.name",
                    "a simulation has no objects but those that are deployed: deploy: true",
                )
        hpa, vpa = spec.hpa.template.spec, spec.vpa.template.spec
        notes: list[str] = []
        if hpa is not None:
            notes += check_hpa(self._source, self._path("spec.hpa.template.spec"), hpa, self._workload)
        if vpa is not None:
            notes += vpa_notes(self._source, self._path("spec.vpa.template.spec"), vpa, self._workload)
        return notes

    def _path(self, path: str) -> str:
        return f"{self._root}.{path}" if self._root else path

    def _fail(self, path: str, reason: str) -> NoReturn:
        raise self._source.refuse(self._path(path), reason)
