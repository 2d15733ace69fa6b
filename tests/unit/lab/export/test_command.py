"""`hvpa export` and `hvpa diff`: the files, their changes, what is left alone, and the exit codes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from hvpa_lab.export.document import HEADER
from hvpa_lab.export.folder import Folder
from tests.unit.cli.api_server import Api
from tests.unit.cli.support import NOW, Doc, Live, Ran, Shell, changed, with_fields, without
from tests.unit.lab.report.documents import AGENT, CANARY, ROLLOUT

PATCH = f"""{HEADER}apiVersion: apps/v1
kind: Deployment
metadata:
  name: shop
spec:
  template:
    spec:
      containers:
      - name: app
        resources:
          requests:
            cpu: 1200m
            memory: 1887437k
"""
COMPONENT = f"""{HEADER}apiVersion: kustomize.config.k8s.io/v1alpha1
kind: Component
patches:
- path: deployment-shop.yaml
  target:
    group: apps
    kind: Deployment
    name: shop
"""
VALUES = {
    "workloads": [{"containers": {"*": "{name}.{container}.resources"}, "replicas": "{name}.replicaCount"}]
}


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """The folder of the exported files; it does not exist yet."""
    return tmp_path / "git" / "sizes"


@pytest.fixture
def export(shell: Shell, repository: Path) -> Callable[..., Ran]:
    """Exports documents from a file."""

    def run(documents: list[Doc], *flags: str) -> Ran:
        path = shell.file(documents, "objects.yaml")
        return shell.run("export", "-f", path, "--now", NOW, "--to", str(repository), *flags)

    return run


def files(folder: Path) -> dict[str, str]:
    """The files below a folder."""
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


def container(folder: Path, name: str = "default/deployment-shop.yaml") -> Any:
    """The resources of the only container of a patch."""
    (entry,) = yaml.safe_load((folder / name).read_text())["spec"]["template"]["spec"]["containers"]
    return entry["resources"]


# --- what is written -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("whole", "own", "wanted", "containers"),
    [
        pytest.param(
            {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"memory": "4Gi"}},
            {},
            {"requests": {"cpu": "1200m", "memory": "1887437k"}, "limits": {"memory": "7549748k"}},
            None,
            id="containers share all",
        ),
        pytest.param(
            {"requests": {"cpu": "1500m"}, "limits": {"cpu": "3", "memory": "8Gi"}},
            {"requests": {"cpu": "1", "memory": "1Gi"}},
            {"requests": {"cpu": "1700m"}, "limits": {"cpu": "3400m", "memory": "15099496k"}},
            {"requests": {"cpu": "1200m", "memory": "1887437k"}},
            id="a container requests a part",
        ),
    ],
)
def test_resources_of_the_pod_itself_are_exported(
    export: Callable[..., Ran],
    repository: Path,
    trajectory: list[Doc],
    whole: Doc,
    own: Doc,
    wanted: Doc,
    containers: Doc | None,
) -> None:
    pod = {"spec.template.spec.resources": whole, "spec.template.spec.containers.0.resources": own}
    assert export(with_fields(trajectory, "Deployment", "shop", pod)).code == 0
    (spec,) = [yaml.safe_load((repository / "default/deployment-shop.yaml").read_text())["spec"]]
    expected = {} if containers is None else {"containers": [{"name": "app", "resources": containers}]}
    assert spec["template"]["spec"] == {"resources": wanted, **expected}


def test_a_size_of_the_pod_that_is_held_keeps_all_of_that_resource(
    export: Callable[..., Ran], repository: Path, trajectory: list[Doc]
) -> None:
    """Lower memory needs a longer history, so the pod keeps its memory, and gets its CPU."""
    whole = {"requests": {"cpu": "1", "memory": "8Gi"}, "limits": {"memory": "16Gi"}}
    pod = {"spec.template.spec.resources": whole, "spec.template.spec.containers.0.resources": {}}
    assert export(with_fields(trajectory, "Deployment", "shop", pod)).code == 0
    spec = yaml.safe_load((repository / "default/deployment-shop.yaml").read_text())["spec"]
    resources = spec["template"]["spec"]["resources"]
    assert (resources["requests"]["memory"], resources["limits"]["memory"]) == ("8Gi", "16Gi")
    assert resources["requests"]["cpu"] == "1200m"


def test_a_patch_for_each_workload_and_a_component_for_each_namespace(
    export: Callable[..., Ran], repository: Path, trajectory: list[Doc]
) -> None:
    ran = export(trajectory)
    names = ["default/deployment-shop.yaml", "default/kustomization.yaml"]
    lines = [*(f"{name} written" for name in names), "2 written, 0 removed; workloads without a change: 0"]
    assert (ran.code, ran.out.splitlines(), ran.err) == (0, lines, "")
    assert files(repository) == dict(zip(names, (PATCH, COMPONENT), strict=True))


@pytest.mark.parametrize("mode", ["Apply", "Recommend"])
def test_the_size_is_the_recommended_size_of_explain(
    shell: Shell, export: Callable[..., Ran], repository: Path, gardener: list[Doc], mode: str
) -> None:
    documents = changed(gardener, Hvpa__spec__mode=mode)
    assert export(documents, "--within", "0").code == 0
    explained = shell.explain(documents)["recommended"]["containers"]["resource-consumer"]
    assert container(repository, "default/deployment-resource-consumer.yaml") == explained


def test_the_same_objects_write_nothing_again(
    export: Callable[..., Ran], repository: Path, trajectory: list[Doc]
) -> None:
    export(trajectory)
    before = {path: path.stat().st_mtime_ns for path in repository.rglob("*")}
    assert export(trajectory).out == "0 written, 0 removed; workloads without a change: 1\n"
    assert {path: path.stat().st_mtime_ns for path in repository.rglob("*")} == before


@pytest.mark.parametrize(
    ("target", "flags", "is_kept"),
    [("1300m", (), True), ("1500m", (), False), ("1210m", ("--within", "0"), False)],
)
def test_a_small_movement_changes_no_file(
    export: Callable[..., Ran],
    repository: Path,
    trajectory: list[Doc],
    target: str,
    flags: tuple[str, ...],
    is_kept: bool,
) -> None:
    trajectory = changed(
        trajectory, Hvpa__spec__blend="Additive", Hvpa__spec__weightBasedScalingIntervals=[{"vpaWeight": 1.0}]
    )
    export(trajectory)
    path = "status.recommendation.containerRecommendations.0.target.cpu"
    export(with_fields(trajectory, "VPA", "shop", {path: target}), *flags)
    assert container(repository)["requests"]["cpu"] == ("1200m" if is_kept else target)


def test_a_new_file_has_the_present_size_if_that_is_near(
    export: Callable[..., Ran], repository: Path, trajectory: list[Doc]
) -> None:
    present = {"cpu": "1150m", "memory": "1800Mi"}
    fields = {"spec.template.spec.containers.0.resources.requests": present}
    export(with_fields(trajectory, "Deployment", "shop", fields), "--within", "20")
    assert container(repository) == {"requests": present}


def test_manifests_have_a_namespace_and_no_component(
    export: Callable[..., Ran], repository: Path, trajectory: list[Doc]
) -> None:
    export(trajectory, "--format", "manifests")
    text = PATCH.replace("  name: shop\n", "  name: shop\n  namespace: default\n")
    assert files(repository) == {"default/deployment-shop.yaml": text}


def test_helm_values_at_the_paths_of_a_file(
    shell: Shell, export: Callable[..., Ran], repository: Path, trajectory: list[Doc]
) -> None:
    documents = changed(trajectory, Hvpa__spec__mode="Recommend")
    ran = export(documents, "--format", "helm", "--values", shell.file(VALUES, "paths.yaml"))
    assert (ran.code, ran.err) == (0, "")
    values = yaml.safe_load((repository / "default/deployment-shop.yaml").read_text())
    resources = {"requests": {"cpu": "1200m", "memory": "1887437k"}}
    assert values == {"shop": {"replicaCount": 4, "app": {"resources": resources}}}


def test_limits_are_exported_if_they_change_with_requests(
    export: Callable[..., Ran], repository: Path, gardener: list[Doc]
) -> None:
    name = "default/deployment-resource-consumer.yaml"
    export(gardener)
    assert container(repository, name)["limits"] == {"cpu": "2100m", "memory": "2717987k"}
    policies = [{"containerName": "*", "controlledValues": "RequestsOnly"}]
    path = "spec.vpa.template.spec.resourcePolicy"
    export(with_fields(gardener, "Hvpa", None, {path: {"containerPolicies": policies}}))
    assert "limits" not in container(repository, name)


def test_a_resource_that_the_hvpa_does_not_govern_is_left_out(
    export: Callable[..., Ran], repository: Path, trajectory: list[Doc]
) -> None:
    policies = [{"containerName": "app", "controlledResources": ["memory"]}]
    path = "spec.vpa.template.spec.resourcePolicy.containerPolicies"
    export(with_fields(trajectory, "Hvpa", None, {path: policies}))
    assert set(container(repository)["requests"]) == {"memory"}


# --- replicas --------------------------------------------------------------------------------------------------------
def replicas(folder: Path) -> Any:
    """The replicas of the exported workload; None if they are left out."""
    return yaml.safe_load((folder / "default/deployment-shop.yaml").read_text())["spec"].get("replicas")


@pytest.mark.parametrize(
    ("mode", "flags", "count"),
    [
        ("Recommend", (), 4),
        ("Review", (), None),
        ("Apply", (), None),
        ("Recommend", ("--no-replicas",), None),
    ],
)
def test_replicas_are_exported_if_nothing_else_sets_them(
    export: Callable[..., Ran],
    repository: Path,
    trajectory: list[Doc],
    mode: str,
    flags: tuple[str, ...],
    count: int | None,
) -> None:
    export(changed(trajectory, Hvpa__spec__mode=mode), *flags)
    assert replicas(repository) == count


def test_replicas_that_an_hpa_sets_are_left_out(
    export: Callable[..., Ran], repository: Path, trajectory: list[Doc]
) -> None:
    acting = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "shop"}
    looks = changed(trajectory, Hvpa__spec__mode="Recommend")
    export(with_fields(looks, "HPA", "shop", {"spec.scaleTargetRef": acting}))
    assert replicas(repository) is None


def test_replicas_serve_the_usual_demand(
    export: Callable[..., Ran], repository: Path, trajectory: list[Doc]
) -> None:
    """At night the demand is a fraction of the usual demand, and a file in Git outlasts the night."""
    usual = [
        {
            "container": "app",
            "resource": "cpu",
            "mean": 6000.0,
            "present": 400,
            "weight": 86400.0 * 4,
            "time": NOW,
        }
    ]
    documents = changed(
        trajectory, Hvpa__spec__mode="Recommend", Hvpa__status={"axes": {"vertical": {"usualDemand": usual}}}
    )
    night = {
        "status.currentMetrics.0.resource.current": {"averageUtilization": 10, "averageValue": "100m"},
        "status.desiredReplicas": 1,
    }
    export(with_fields(documents, "HPA", "shop", night))
    count = replicas(repository)
    assert count >= 3


def test_an_hvpa_without_a_vpa_exports_replicas_alone_or_nothing(
    export: Callable[..., Ran], repository: Path, trajectory: list[Doc]
) -> None:
    only_hpa = changed(
        without(trajectory, "VPA"),
        Hvpa__spec__mode="Recommend",
        Hvpa__spec__vpa=None,
        Hvpa__spec__weightBasedScalingIntervals=None,
    )
    assert export(only_hpa).err == ""
    assert yaml.safe_load((repository / "default/deployment-shop.yaml").read_text())["spec"] == {
        "replicas": 4
    }
    assert export(only_hpa, "--no-replicas").out == "0 written, 0 removed; workloads without a change: 0\n"


# --- what holds for Git too ------------------------------------------------------------------------------------------
def test_a_direction_that_the_hvpa_forbids_is_not_exported(
    export: Callable[..., Ran], repository: Path, trajectory: list[Doc]
) -> None:
    off = {"spec.vpa.scaleUp": {"updatePolicy": {"updateMode": "Off"}}, "spec.mode": "Recommend"}
    off["spec.hpa.scaleUp"] = off["spec.vpa.scaleUp"]
    export(with_fields(trajectory, "Hvpa", None, off))
    assert container(repository) == {"requests": {"cpu": "1", "memory": "1Gi"}}
    assert replicas(repository) == 2


def test_a_change_that_waits_for_approval_is_exported(
    export: Callable[..., Ran], repository: Path, trajectory: list[Doc]
) -> None:
    export(changed(trajectory, Hvpa__spec__mode="Review"))
    assert container(repository)["requests"] == {"cpu": "1200m", "memory": "1887437k"}


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        ("Hvpa", {}),
        ("Deployment", {"metadata.generation": 5}),
        (
            "Hvpa",
            {
                "spec.vpa.scaleDown": {"updatePolicy": {"updateMode": "MaintenanceWindow"}},
                "spec.maintenanceTimeWindow": {"begin": "220000-0000", "end": "230000-0000"},
            },
        ),
    ],
    ids=["", "during a rollout", "outside of the maintenance window"],
)
def test_lower_memory_is_not_exported_before_it_has_been_wanted_for_long(
    export: Callable[..., Ran], repository: Path, trajectory: list[Doc], kind: str, fields: Doc
) -> None:
    target = {"status.recommendation.containerRecommendations.0.target.memory": "600Mi"}
    export(with_fields(with_fields(trajectory, "VPA", "shop", target), kind, "shop", fields))
    assert container(repository) == {"requests": {"cpu": "1200m", "memory": "1Gi"}}


def test_gates_that_choose_a_time_do_not_count(
    export: Callable[..., Ran], repository: Path, gardener: list[Doc]
) -> None:
    window = {
        "spec.maintenanceTimeWindow": {"begin": "220000+0000", "end": "230000+0000"},
        "spec.vpa.scaleUp.updatePolicy.updateMode": "MaintenanceWindow",
    }
    export(with_fields(gardener, "Hvpa", None, window))
    assert container(repository, "default/deployment-resource-consumer.yaml")["requests"]["cpu"] == "1100m"


# --- what is not exported --------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("fields", "why", "code"),
    [
        ({"spec.mode": "Paused"}, "spec.mode is Paused: its file stays as it is", 0),
        ({"spec.targetRef.name": "other"}, "Deployment other does not exist", 1),
    ],
)
def test_the_reason_is_on_a_line_and_the_others_are_exported(
    export: Callable[..., Ran],
    repository: Path,
    trajectory: list[Doc],
    gardener: list[Doc],
    fields: Doc,
    why: str,
    code: int,
) -> None:
    ran = export([*with_fields(trajectory, "Hvpa", "shop", fields), *gardener])
    assert (ran.code, ran.err) == (code, f"hvpa: not exported: Hvpa default/shop: {why}\n")
    assert sorted(files(repository)) == [
        "default/deployment-resource-consumer.yaml",
        "default/kustomization.yaml",
    ]


@pytest.mark.parametrize(
    ("kind", "fields", "why"),
    [
        ("VPA", {"status": {}}, "VerticalPodAutoscaler shop has no recommendation yet"),
        ("HPA", {"status.conditions.0.status": "False"}, "the HPA was able to compute the count"),
        ("Deployment", {"spec.replicas": 0}, "the workload has no replicas: its file stays as it is"),
    ],
)
def test_a_size_that_is_unknown_leaves_the_file_as_it_is(
    export: Callable[..., Ran], repository: Path, trajectory: list[Doc], kind: str, fields: Doc, why: str
) -> None:
    export(trajectory)
    before = files(repository)
    ran = export(with_fields(trajectory, kind, "shop", fields))
    assert why in ran.err
    assert ran.code == (0 if kind == "Deployment" else 1)
    assert files(repository) == before


def test_an_unknown_demand_is_not_exported(export: Callable[..., Ran], trajectory: list[Doc]) -> None:
    """Both pods became ready ten seconds ago, and the HPA has not measured them yet."""
    young = dict.fromkeys(
        ("status.startTime", "status.conditions.0.lastTransitionTime"), "2026-11-21T09:59:50Z"
    )
    idle = {"status.currentMetrics.0.resource.current": {"averageUtilization": 0, "averageValue": "0"}}
    documents = with_fields(trajectory, "HPA", "shop", idle)
    for pod in ("shop-1", "shop-2"):
        documents = with_fields(documents, "Pod", pod, young)
    ran = export(documents)
    why = "the demand is unknown: the 2 ready pods are not measured yet"
    assert (ran.code, ran.err) == (1, f"hvpa: not exported: Hvpa default/shop: {why}\n")


def test_of_two_hvpas_of_a_workload_the_one_that_applies_counts(
    export: Callable[..., Ran], repository: Path, trajectory: list[Doc]
) -> None:
    second = changed(trajectory, Hvpa__metadata__name="a", Hvpa__spec__mode="Paused")[0]
    ran = export([*trajectory, second])
    assert (ran.code, ran.err) == (0, "")
    assert files(repository)["default/deployment-shop.yaml"] == PATCH
    rival = changed(trajectory, Hvpa__metadata__name="a")[0]
    ran = export([*trajectory, rival])
    assert (ran.code, "is also the target of" in ran.err) == (1, True)


def custom(hvpa: Doc) -> list[Doc]:
    """A workload of a custom kind under an Hvpa like this."""
    target = {"spec.targetRef": {key: ROLLOUT[key] for key in ("apiVersion", "kind")} | {"name": "canary"}}
    fields = {**target, "spec.updateStrategy": {"type": "InPlace"}, "metadata.namespace": "shop"}
    return [*with_fields([hvpa], "Hvpa", None, fields), *CANARY]


def test_a_custom_kind_needs_helm(
    shell: Shell, export: Callable[..., Ran], repository: Path, trajectory: list[Doc]
) -> None:
    vpa = with_fields(
        trajectory,
        "VPA",
        "shop",
        {
            "metadata.namespace": "shop",
            "spec.targetRef": {key: ROLLOUT[key] for key in ("apiVersion", "kind")} | {"name": "canary"},
        },
    )
    documents = [
        *custom(changed(trajectory, Hvpa__spec__hpa=None, Hvpa__spec__weightBasedScalingIntervals=None)[0]),
        next(document for document in vpa if document["kind"] == "VerticalPodAutoscaler"),
    ]
    ran = export(documents)
    why = "the lists of a Rollout, a custom kind, can't be merged; use --format helm"
    assert (ran.code, ran.err) == (1, f"hvpa: not exported: Hvpa shop/shop: {why}\n")
    ran = export(documents, "--format", "helm", "--values", shell.file(VALUES, "paths.yaml"))
    assert (ran.code, ran.err) == (0, "")
    assert list(files(repository)) == ["shop/rollout.argoproj.io-canary.yaml"]


def test_an_odd_name_is_no_path(export: Callable[..., Ran], repository: Path, trajectory: list[Doc]) -> None:
    for namespace, name in (("../up", "shop"), ("default", "../../shop"), ("default", "a\nb")):
        named = {"metadata.name": name, "metadata.namespace": namespace}
        documents = with_fields(trajectory, "Deployment", "shop", named)
        documents = with_fields(
            documents, "Hvpa", "shop", {"spec.targetRef.name": name, "metadata.namespace": namespace}
        )
        ran = export(documents)
        assert ran.code == 1, ran
        assert files(repository.parent) == {}


# --- files of others -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("content", [b"kind: Deployment\n", b"", b"\xff\xfe"])
@pytest.mark.parametrize("name", ["deployment-shop.yaml", "kustomization.yaml"])
def test_a_file_of_somebody_else_is_never_overwritten(
    export: Callable[..., Ran], repository: Path, trajectory: list[Doc], content: bytes, name: str
) -> None:
    path = repository / "default" / name
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    ran = export(trajectory)
    assert (ran.code, path.read_bytes()) == (1, content)
    assert f"{path} was not written by hvpa export, so it is not overwritten\n" in ran.err


def test_a_link_is_not_followed(
    export: Callable[..., Ran], repository: Path, trajectory: list[Doc], tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "deployment-shop.yaml").write_text(PATCH)
    repository.mkdir(parents=True)
    (repository / "default").symlink_to(outside)
    ran = export(changed(trajectory, Deployment__spec__replicas=3))
    assert (ran.code, "is a symbolic link" in ran.err) == (1, True)
    assert files(outside) == {"deployment-shop.yaml": PATCH}


def test_a_file_that_is_broken_is_written_again(
    export: Callable[..., Ran], repository: Path, trajectory: list[Doc]
) -> None:
    for text in ("", "a: [", "a: 1\n---\nb: 2\n", "- 1\n", "spec: {}\n"):
        path = repository / "default/deployment-shop.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(HEADER + text)
        assert export(trajectory).code == 0
        assert path.read_text() == PATCH


def test_from_files_nothing_is_removed(
    export: Callable[..., Ran], repository: Path, trajectory: list[Doc], gardener: list[Doc]
) -> None:
    export(trajectory)
    export(gardener)
    names = ["deployment-resource-consumer.yaml", "deployment-shop.yaml"]
    component = yaml.safe_load((repository / "default/kustomization.yaml").read_text())
    assert [patch["path"] for patch in component["patches"]] == names


def test_what_can_not_be_written_or_removed_is_reported(
    export: Callable[..., Ran], repository: Path, trajectory: list[Doc], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: Any, **kwargs: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_text", fail)
        ran = export(trajectory)
    path = repository / "default/deployment-shop.yaml"
    assert (ran.code, ran.out) == (1, "0 written, 0 removed; workloads without a change: 0\n")
    assert f"hvpa: not exported: {path} can't be written: No space left on device\n" in ran.err
    with monkeypatch.context() as patch:
        patch.setattr(Path, "read_text", fail)
        assert f"{path} can't be read: No space left on device" in export(trajectory).err
    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", fail)
        with pytest.raises(Exception, match="can't be removed: No space left on device"):
            Folder(repository).remove("default/deployment-shop.yaml")


def test_a_folder_that_can_not_be_made_ends_the_command(shell: Shell, trajectory: list[Doc]) -> None:
    path = shell.file(trajectory)
    why = shell.refuses("export", "-f", path, "--now", NOW, "--to", f"{path}/sizes")
    assert why == f"hvpa: error: --to: {path}/sizes can't be made: Not a directory\n"


# --- diff and --check ------------------------------------------------------------------------------------------------
DIFF = """--- a/default/deployment-shop.yaml
+++ b/default/deployment-shop.yaml
@@ -10,5 +10,5 @@
       - name: app
         resources:
           requests:
-            cpu: '1'
-            memory: 1Gi
+            cpu: 1200m
+            memory: 1887437k
"""


def test_diff_shows_the_changes_of_the_cluster(
    shell: Shell, trajectory: list[Doc], gardener: list[Doc]
) -> None:
    ran = shell.run("diff", "-f", shell.file(trajectory), "--now", NOW)
    assert (ran.code, ran.out, ran.err) == (1, DIFF, "")
    ran = shell.run("diff", "-f", shell.file(trajectory), "--now", NOW, "--within", "90")
    assert (ran.code, ran.out, ran.err) == (0, "", "")
    broken = with_fields(gardener, "VPA", None, {"status": {}})
    ran = shell.run("diff", "-f", shell.file([*trajectory, *broken]), "--now", NOW)
    assert (ran.code, ran.out, len(ran.err.splitlines())) == (2, DIFF, 1)


def test_check_writes_nothing_and_its_code_says_whether_something_would_change(
    export: Callable[..., Ran], repository: Path, trajectory: list[Doc]
) -> None:
    ran = export(trajectory, "--check")
    assert ran.code == 1
    assert ran.out.startswith(
        "--- /dev/null\n+++ b/default/deployment-shop.yaml\n@@ -0,0 +1,14 @@\n+# Written"
    )
    assert not repository.exists()
    export(trajectory)
    ran = export(trajectory, "--check")
    assert (ran.code, ran.out) == (0, "")


@pytest.mark.parametrize(
    ("argv", "code", "why"),
    [
        (("diff", "-f", "missing.yaml"), 2, "missing.yaml: can't be read"),
        (("export", "-f", "missing.yaml", "--to", "sizes"), 1, "missing.yaml: can't be read"),
        (("export", "-f", "missing.yaml", "--to", "sizes", "--check"), 2, "missing.yaml: can't be read"),
        (("diff", "-f", "x", "-A"), 2, "can't be used with -f"),
        (("diff", "-n", "shop", "-A"), 2, "not both"),
        (("export", "-A"), 2, "--to"),
        (("export", "-A", "--to", "x", "--format", "helm"), 2, "--format helm needs --values FILE"),
        (("export", "-A", "--to", "x", "--values", "f"), 2, "no other format has it"),
        (("diff", "--within", "101"), 2, "'101' is not a percentage"),
    ],
)
def test_wrong_usage_and_wrong_files(shell: Shell, argv: tuple[str, ...], code: int, why: str) -> None:
    assert why in shell.refuses(*argv, code=code)


def test_files_without_an_hvpa_are_refused(shell: Shell, shop: list[Doc]) -> None:
    path = shell.file(shop)
    assert shell.refuses("diff", "-f", path, code=2) == f"hvpa: error: no Hvpa in {path}\n"


def test_an_object_in_a_file_that_can_not_be_used_fails_the_check(
    export: Callable[..., Ran], repository: Path, trajectory: list[Doc]
) -> None:
    (hvpa,) = (document for document in trajectory if document["kind"] == "Hvpa")
    wrong = with_fields([hvpa], "Hvpa", "shop", {"metadata.name": "wrong", "spec.mode": "Never"})
    for flags, code in (((), 1), (("--check",), 2)):
        ran = export([*trajectory, *wrong], *flags)
        assert (ran.code, "not exported" in ran.err, "spec.mode" in ran.err) == (code, True, True)
    assert set(files(repository)) == {"default/deployment-shop.yaml", "default/kustomization.yaml"}
    ran = export(wrong)
    assert (ran.code, [line.split(": ")[1] for line in ran.err.splitlines()]) == (1, ["skipped", "error"])


# --- a cluster -------------------------------------------------------------------------------------------------------
@pytest.fixture
def exported(live: Live, repository: Path) -> Live:
    """Exports from the server."""
    return lambda *flags: live("export", "--now", NOW, "--to", str(repository), *flags)


def test_a_cluster_is_exported_with_one_list_of_each_kind(
    exported: Live, api: Api, repository: Path, trajectory: list[Doc]
) -> None:
    owned = [
        {
            "apiVersion": "autoscaling.k8s.io/v1alpha1",
            "kind": "Hvpa",
            "name": "shop",
            "uid": "uid-0",
            "controller": True,
        }
    ]
    documents = trajectory
    for kind in ("HPA", "VPA"):
        documents = with_fields(documents, kind, "shop", {"metadata.ownerReferences": owned})
    api.put(documents, "shop")
    api.put(documents, "market")
    ran = exported("-A")
    assert (ran.code, ran.err) == (0, "")
    assert {name for name in files(repository) if "deployment" in name} == {
        "market/deployment-shop.yaml",
        "shop/deployment-shop.yaml",
    }
    listed = [what for what, verb in api.asked if verb == "list"]
    assert sorted(listed) == sorted(set(listed))
    assert {verb for _, verb in api.asked} == {"list", "discovery"}


def test_files_of_workloads_that_are_gone_are_removed(
    exported: Live, api: Api, repository: Path, gardener: list[Doc]
) -> None:
    api.put(gardener, "shop")
    api.put(gardener, "market")
    exported("-A")
    mine = repository / "shop/notes.yaml"
    mine.write_text("mine")
    (repository / "README.yaml").write_text("mine")
    del api.objects["shop", "deployments"]
    assert exported("-n", "market").out == "0 written, 0 removed; workloads without a change: 1\n"
    ran = exported("-A", "--check")
    assert (ran.code, "+++ /dev/null" in ran.out) == (2, True)
    ran = exported("-A")
    assert ran.code == 1
    assert ran.out.splitlines()[:2] == [
        "shop/deployment-resource-consumer.yaml removed",
        "shop/kustomization.yaml removed",
    ]
    assert [str(path.relative_to(repository)) for path in (repository / "shop").iterdir()] == [
        "shop/notes.yaml"
    ]
    del api.objects["market", "hvpas"]
    assert exported("-A").code == 1
    assert not (repository / "market").exists()


def test_an_object_that_can_not_be_read_removes_no_file(
    exported: Live, api: Api, repository: Path, gardener: list[Doc]
) -> None:
    api.put(gardener, "shop")
    exported("-A")
    before = files(repository)
    (deployment,) = api.objects["shop", "deployments"]
    deployment["spec"]["replicas"] = "three"
    ran = exported("-A")
    assert ran.code == 1
    assert "Deployment shop/resource-consumer: it can't be read" in ran.err
    assert files(repository) == before


def test_a_kind_that_may_not_be_read_keeps_its_files(
    exported: Live, api: Api, repository: Path, gardener: list[Doc]
) -> None:
    agent = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent"}
    documents = with_fields(
        without(gardener, "Deployment"),
        "Hvpa",
        None,
        {"spec.targetRef": agent, "spec.hpa": None, "spec.weightBasedScalingIntervals": None},
    )
    documents = with_fields(documents, "VPA", None, {"spec.targetRef": agent})
    api.put([*documents, AGENT], "shop")
    api.fail["daemonsets"] = 403
    path = repository / "shop/daemonset-agent.yaml"
    path.parent.mkdir(parents=True)
    path.write_text(HEADER)
    ran = exported("-A")
    assert (ran.code, path.exists()) == (1, True)
    assert "its target DaemonSet agent can't be read: no right to list daemonsets" in ran.err


@pytest.mark.parametrize("argv", [("diff", "-A"), ("export", "-A", "--to", "x", "--check")])
def test_without_the_crd_nothing_is_removed(live: Live, api: Api, argv: tuple[str, ...]) -> None:
    api.fail["hvpas"] = 404
    api.unserved.add("/apis/autoscaling.k8s.io/v1alpha1")
    ran = live(*argv)
    assert (ran.code, ran.err) == (
        2,
        "hvpa: error: the cluster does not serve Hvpas: the CRD is not installed\n",
    )


def test_a_missing_right_is_named(exported: Live, api: Api) -> None:
    api.fail["pods"] = 403
    ran = exported("-A")
    assert (ran.code, "hvpa export needs the verb list" in ran.err) == (1, True)


def test_a_cluster_that_is_not_reached_has_its_own_code(live: Live, api: Api) -> None:
    api.fail["hvpas"] = 500
    assert live("diff").code == 3


def test_what_no_api_server_would_store_is_reported(
    exported: Live, api: Api, repository: Path, gardener: list[Doc]
) -> None:
    """The namespace is not a name, and the spec of the other Hvpa is invalid."""
    api.put(gardener, "../up")
    api.put(with_fields(gardener, "Hvpa", None, {"spec.mode": "Sometimes"}), "shop")
    ran = exported("-A")
    whys = [
        "Hvpa ../up/hvpa-sample: the name of its target can't be the name of a file",
        "Hvpa shop/hvpa-sample: spec.mode: ",
    ]
    assert ran.code == 1
    assert [
        line.startswith(f"hvpa: not exported: {why}")
        for line, why in zip(ran.err.splitlines(), whys, strict=True)
    ] == [True, True]
    assert files(repository.parent) == {}
