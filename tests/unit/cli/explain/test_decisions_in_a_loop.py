"""`hvpa explain -o json` in a loop over files: `patch`, `nextStatus` and `scaleReplicas` are enough to apply one
decision after the other, and what becomes of the objects is what the operator's reconcile makes of them."""

from __future__ import annotations

import copy
import datetime as dt
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest
import yaml

from hvpa.api.hvpa.status import HvpaStatus
from hvpa.api.objects.read_models import Meta
from hvpa.cli.input.gather import gather
from hvpa.core.model import Objects, Settings, WorkloadPatch
from hvpa.reconcile.ports import Key
from hvpa.reconcile.reconciler import Reconciler
from hvpa.reconcile.telemetry import Silent
from tests.unit.cli.support import Doc, Shell, load, of_kind
from tests.unit.reconcile.fakes import FakeClock, FakeCluster, drive, patched

ANNOTATION = "hvpa.autoscaling.k8s.io/last-applied"
START = dt.datetime(2026, 11, 21, 10, tzinfo=dt.UTC)
LOADS: tuple[tuple[int, int, int, str, str], ...] = (
    # minute, replicas that the HPA wants, utilization that it measures, CPU and memory that the VPA recommends
    (0, 6, 100, "1500m", "2Gi"),
    (1, 6, 100, "1500m", "2Gi"),
    (16, 6, 100, "1500m", "2Gi"),
    (20, 8, 80, "1500m", "2Gi"),
    (120, 3, 25, "1", "1500Mi"),
    (121, 3, 25, "1", "1500Mi"),
    (600, 3, 40, "2", "2500Mi"),
)


class Files:
    """Documents in a file, and their changes: by recommenders and the workload's controller, and by whoever decides."""

    def __init__(self, shell: Shell, documents: list[Doc], name: str) -> None:
        self.documents = copy.deepcopy(documents)
        self.hvpa, self.workload = (of_kind(self.documents, kind) for kind in ("Hvpa", "Deployment"))
        self._shell = shell
        self._name = name

    def file(self) -> str:
        # Objects that are the same must not become YAML anchors that are shared by what is changed later.
        return self._shell.file(
            yaml.dump_all(copy.deepcopy(self.documents), Dumper=yaml.CSafeDumper), self._name
        )

    def under(self, wanted: int, utilization: int, cpu: str, memory: str) -> None:
        """The HPA and the VPA say so, and the last rollout is complete."""
        replicas = self.workload["spec"]["replicas"]
        counts = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")
        self.workload["status"] |= dict.fromkeys(counts, replicas)
        hpa, vpa = (
            of_kind(self.documents, f"{prefix}Autoscaler") for prefix in ("HorizontalPod", "VerticalPod")
        )
        hpa["status"] |= {"desiredReplicas": wanted, "currentReplicas": replicas}
        for metric in hpa["status"]["currentMetrics"]:
            metric["resource"]["current"]["averageUtilization"] = utilization
        for recommendation in vpa["status"]["recommendation"]["containerRecommendations"]:
            recommendation["target"] = {"cpu": cpu, "memory": memory}
            recommendation.pop("uncappedTarget", None)

    def patch_workload(self, body: Mapping[str, Any]) -> None:
        """`kubectl patch --type strategic`, as far as a decision needs it."""
        annotations = self.workload["metadata"].setdefault("annotations", {})
        annotations |= body["metadata"]["annotations"]
        spec = self.workload["spec"]
        spec["replicas"] = body["spec"].get("replicas", spec["replicas"])
        containers = {container["name"]: container for container in spec["template"]["spec"]["containers"]}
        for change in body["spec"].get("template", {}).get("spec", {}).get("containers", []):
            containers[change["name"]]["resources"] = patched(
                containers[change["name"]]["resources"], change["resources"]
            )


class FileCluster(FakeCluster):
    """The cluster port over files. HPA and VPA stay as they are, and no Hvpa here resizes pods in place."""

    def __init__(self, files: Files) -> None:
        super().__init__(None)
        self.files = files
        self.patches: list[Any] = []

    def objects(self, key: Key) -> Objects | None:
        return gather([self.files.file()], None).objects

    async def patch_workload(self, hvpa: Meta, patch: WorkloadPatch) -> None:
        body = msgspec.to_builtins(patch.body)
        del body["metadata"]["resourceVersion"]  # files have none
        self.patches.append(body)
        self.files.patch_workload(body)

    async def patch_status(self, hvpa: Meta, patch: Mapping[str, object], status: HvpaStatus) -> None:
        self.files.hvpa["status"] = patched(self.files.hvpa.get("status"), patch)

    async def write_scale_replicas(self, hvpa: Meta, replicas: int) -> None:
        self.files.hvpa["spec"]["replicas"] = replicas


@pytest.mark.parametrize("name", ["gardener.yaml", "trajectory.yaml"])
def test_decisions_played_forward_with_files_are_what_the_operator_does(shell: Shell, name: str) -> None:
    played = Files(shell, load(name), "played.yaml")
    cluster = FileCluster(Files(shell, load(name), "reconciled.yaml"))
    reconciler = Reconciler(cluster, clock := FakeClock(), Settings(), Silent())
    key = Key("default", played.hvpa["metadata"]["name"])
    patches: list[Any] = []
    for minute, wanted, utilization, cpu, memory in LOADS:
        clock.time = START + dt.timedelta(minutes=minute)
        for files in (played, cluster.files):
            files.under(wanted, utilization, cpu, memory)
        explained = shell.explain(played.documents, now=clock.time.isoformat())
        if explained["patch"] is not None:
            patches.append(explained["patch"])
            played.patch_workload(explained["patch"])
        played.hvpa["status"] = explained["nextStatus"]
        if explained["scaleReplicas"] is not None:
            played.hvpa["spec"]["replicas"] = explained["scaleReplicas"]
        assert drive(reconciler.reconcile(key)).outcome == "done"
        assert played.documents == cluster.files.documents, f"after {minute} minutes"
    assert patches == cluster.patches
    assert len(patches) >= 2, "a walk of several steps"
    assert {key for patch in patches for key in patch["spec"]} == {"replicas", "template"}, "on both axes"


def test_where_nothing_changes_there_is_no_patch_and_the_status_stays(
    shell: Shell, gardener: list[Doc]
) -> None:
    played = Files(shell, gardener, "played.yaml")
    first = shell.explain(played.documents)
    assert first["changes"]
    assert set(first["patch"]) == {"metadata", "spec"}
    assert ANNOTATION in first["patch"]["metadata"]["annotations"]
    played.patch_workload(first["patch"])
    played.hvpa["status"] = first["nextStatus"]
    played.hvpa["spec"]["replicas"] = first["scaleReplicas"]
    second = shell.explain(played.documents)
    assert (second["changes"], second["patch"], second["scaleReplicas"]) == (False, None, None)
    played.hvpa["status"] = second["nextStatus"]
    assert shell.explain(played.documents)["nextStatus"] == second["nextStatus"]


def test_the_patch_is_conditional_on_the_resource_version_that_was_read(
    shell: Shell, gardener: list[Doc]
) -> None:
    assert "resourceVersion" not in shell.explain(gardener)["patch"]["metadata"]
    of_kind(gardener, "Deployment")["metadata"]["resourceVersion"] = "77"
    assert shell.explain(gardener)["patch"]["metadata"]["resourceVersion"] == "77"
