"""Folders, kustomizations, and what objects of one input say of each other."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from tests import manifests
from tests.unit.cli.support import Doc, Shell
from tests.unit.cli.validate.test_command import QUIET

ROOT = Path(__file__).parents[4]


def quiet(name: str = "case", **changes: object) -> Doc:
    """A manifest without remarks; changes by path with __ for dots."""
    paths = {path.replace("__", "."): value for path, value in changes.items()}
    return manifests.changed(manifests.base(), {**QUIET, "metadata.name": name, **paths})


def put(folder: Path, **files: object) -> str:
    """Files of a folder: `web_yaml` is web.yaml."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        text = content if isinstance(content, str) else yaml.safe_dump(content)
        (folder / name.replace("_", ".")).write_text(text)
    return str(folder)


def test_a_folder_is_read_as_kubectl_reads_it(shell: Shell) -> None:
    second = json.dumps(quiet("b", spec__targetRef__name="b"))
    folder = put(shell.folder / "all", a_yaml=quiet("a"), b_json=second, values_yml={"image": "nginx"})
    put(shell.folder / "all", notes_txt="kind: [", kustomization_yaml="resources: []")
    put(shell.folder / "all" / "deep", c_yaml=quiet("c", spec__targetRef__name="c"))
    ran = shell.run("validate", "-f", folder)
    assert (ran.code, ran.out) == (0, "2 Hvpas in 3 files: valid\n"), ran.err
    (note,) = ran.err.splitlines()
    assert note.startswith(f"{folder}/kustomization.yaml: note: a kustomization is not a cluster object")
    assert shell.run("validate", "-f", folder, folder).code == 0, "a folder that is named twice is not empty"
    deep = shell.run("validate", "-R", "-f", folder)
    assert (deep.code, deep.out) == (0, "3 Hvpas in 4 files: valid\n"), deep.err


def test_an_empty_folder_is_an_error(shell: Shell) -> None:
    ran = shell.run("validate", "-f", put(shell.folder / "none"))
    assert ran.code == 1
    assert "error: no YAML or JSON file in it; -R includes its subfolders" in ran.err
    assert "-R" not in shell.run("validate", "-R", "-f", str(shell.folder / "none")).err


def test_a_kustomization_among_documents_is_left_out(shell: Shell) -> None:
    ran = shell.run("validate", "-f", shell.file([{"kind": "Kustomization"}, quiet()]))
    assert ran.code == 0
    assert ":1: note: a kustomization is not a cluster object" in ran.err


def test_the_local_files_of_kustomizations_are_followed(shell: Shell) -> None:
    base = put(shell.folder / "base", hvpa_yaml=quiet(), kustomization_yaml="resources: [hvpa.yaml, ../over]")
    over = put(
        shell.folder / "over",
        kustomization_yaml="resources:\n- ../base\n- https://example.com/x.yaml\nnamePrefix: a-\npatches:\n- path: p\n",
    )
    ran = shell.run("validate", "-k", over, base)
    assert (ran.code, ran.out) == (0, "1 Hvpa in 1 file: valid\n"), ran.err
    assert f"{over}/kustomization.yaml:5: note: patches, namePrefix: not applied" in ran.err
    assert (
        f"{over}/kustomization.yaml:3: note: resources: https://example.com/x.yaml is not on this" in ran.err
    )


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        ("resources: [gone.yaml]", "kustomization.yaml:1: error: resources: gone.yaml does not exist"),
        ("resources: [", "kustomization.yaml:2:1: error: not YAML: "),
        ("[1]", "kustomization.yaml:1: error: must be a kustomization"),
        ("resources: [1]", "no Hvpa in it"),
        ("resources: 1", "no Hvpa in it"),
    ],
)
def test_a_wrong_kustomization_is_an_error(shell: Shell, text: str, reported: str) -> None:
    ran = shell.run("validate", "-k", put(shell.folder / "k", kustomization_yaml=text + "\n"))
    assert ran.code == 1
    assert reported in ran.err


def test_a_folder_without_a_kustomization_is_an_error(shell: Shell) -> None:
    assert "error: no kustomization.yaml in it" in shell.run("validate", "-k", put(shell.folder / "k")).err


KNOWN = (": the HPA follows the utilization of ", ": another Hvpa has the same name (")
"""The warnings about what this project shows: gardener's own example, `Additive` to be compared with, and files of
which one is applied at a time."""


TUTORIAL = "examples/tutorial"
"""It has a Deployment `web` as well, and the other examples' Hvpas are not for that."""
EXAMPLES = sorted(
    {str(path.parent.relative_to(ROOT)) for path in (ROOT / "examples").rglob("*.yaml")} - {TUTORIAL}
)


@pytest.mark.parametrize("flags", [("-f", "config/samples"), ("-k", "config/samples"),
                                   ("-R", "-f", *EXAMPLES), ("-f", TUTORIAL),
                                   ("-f", "docs"), ("-f", "demo/hvpa.yaml", "demo/workload.yaml")])  # fmt: skip
def test_what_this_project_shows_has_no_error(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, flags: tuple[str, ...]
) -> None:
    monkeypatch.chdir(ROOT)
    ran = shell.run("validate", *flags)
    assert ran.code == 0, ran.err
    warning_lines = [line for line in ran.err.splitlines() if ": warning: " in line]
    assert [line for line in warning_lines if not any(known in line for known in KNOWN)] == []


# --- objects beside each other ------------------------------------------------------------------------------------
def warnings(shell: Shell, *documents: Doc) -> list[str]:
    """The warnings about these documents, without file and line."""
    ran = shell.run("validate", "-f", shell.file(list(documents)))
    assert ran.code == 0, ran.err
    return [line.partition(": warning: ")[2] for line in ran.err.splitlines()]


def workload(*containers: object) -> Doc:
    metadata = {"name": "app", "namespace": "default"}
    spec = {"template": {"spec": {"containers": list(containers)}}}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}


def recommender(kind: str, spec: Doc, **metadata: object) -> Doc:
    return {"kind": kind, "metadata": {"name": "old", "namespace": "default", **metadata}, "spec": spec}


TARGET = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "app"}


def test_two_hvpas_of_one_target_are_named(shell: Shell) -> None:
    both = warnings(shell, quiet("a"), quiet("b"))
    assert [warning.split(": ")[0] for warning in both] == ["Hvpa default/a", "Hvpa default/b"]
    assert "Hvpa default/b (" in both[0]
    assert "scales Deployment app too: neither Hvpa will scale it" in both[0]
    assert warnings(shell, quiet("a"), quiet("b", spec__mode="Recommend")) == []
    assert warnings(shell, quiet("a"), quiet("b", metadata__namespace="other")) == []
    assert warnings(shell, quiet("a"), quiet("b", spec__targetRef__name="other")) == []


def test_two_hvpas_of_one_name_are_named(shell: Shell) -> None:
    assert all(
        "metadata.name: another Hvpa has the same name" in warning
        for warning in warnings(shell, quiet(), quiet())
    )


def test_a_container_that_is_not_there_is_named(shell: Shell) -> None:
    policies = [{"containerName": "ap"}, {"containerName": "*"}, {"mode": "Off"}]
    metrics = [{"type": "ContainerResource",
                "containerResource": {"name": "cpu", "container": "xyz", "targetAverageValue": "1"}}]  # fmt: skip
    hvpa = quiet(
        spec__vpa__template__spec__resourcePolicy__containerPolicies=policies,
        spec__hpa__template__spec__metrics=metrics,
    )
    reported = warnings(shell, hvpa, workload({"name": "app"}, {"name": 3}, "x"))
    assert "containerPolicies[0].containerName: Deployment default/app (" in reported[1] + reported[0]
    assert any("has no container ap; did you mean app?" in warning for warning in reported)
    assert any("has no container xyz; it has app" in warning for warning in reported)
    assert warnings(shell, hvpa, workload()) == []
    bare = manifests.changed(hvpa, {}, ["spec.vpa.template.spec", "spec.hpa"])
    bare = manifests.changed(
        bare, {"spec.hpa": {"name": "h", "scaleDown": {"updatePolicy": {"updateMode": "MaintenanceWindow"}}}}
    )
    assert warnings(shell, bare, workload({"name": "app"})) == []


BY_NAME = {"scaleTargetRef": {"name": "app"}}
ACTING = {"targetRef": TARGET, "updatePolicy": {"updateMode": "Auto"}}
OURS = {"role": "app-hpa"}


@pytest.mark.parametrize(
    ("other", "path"),
    [
        (recommender("HorizontalPodAutoscaler", {"scaleTargetRef": TARGET}), "spec.hpa"),
        (recommender("ScaledObject", BY_NAME), "spec.hpa"),
        (recommender("ScaledObject", BY_NAME, labels=OURS), "spec.hpa"),
        (recommender("VerticalPodAutoscaler", {"targetRef": TARGET}), "spec.vpa"),
        (recommender("VerticalPodAutoscaler", ACTING), "spec.vpa"),
    ],
)
def test_what_scales_the_workload_itself_is_named(shell: Shell, other: Doc, path: str) -> None:
    (reported,) = warnings(shell, quiet(), other)
    assert reported.startswith(f"Hvpa default/case: {path}: {other['kind']} default/old (")
    assert warnings(shell, quiet(spec__mode="Recommend"), other) == []
    assert warnings(shell, quiet(spec__targetRef__name="other"), other) == []


@pytest.mark.parametrize(
    "other",
    [
        recommender("HorizontalPodAutoscaler", {"scaleTargetRef": TARGET}, labels=OURS),
        recommender("HorizontalPodAutoscaler", {"scaleTargetRef": {"kind": "Hvpa", "name": "case"}}),
        recommender("VerticalPodAutoscaler", {"targetRef": TARGET, "updatePolicy": {"updateMode": "Off"}}),
        recommender("VerticalPodAutoscaler", {"targetRef": TARGET, "updatePolicy": {"updateMode": False}}),
        recommender("ConfigMap", {}),
    ],
)
def test_what_would_be_adopted_or_only_recommends_is_no_remark(shell: Shell, other: Doc) -> None:
    assert warnings(shell, quiet(), other) == []


def test_named_recommenders_that_act_are_named(shell: Shell) -> None:
    windows = {"updatePolicy": {"updateMode": "MaintenanceWindow"}}
    hvpa = quiet(spec__hpa={"name": "old", "scaleDown": windows}, spec__vpa={"name": "old"})
    hpa = recommender("HorizontalPodAutoscaler", {"scaleTargetRef": TARGET})
    vpa = recommender("VerticalPodAutoscaler", {"targetRef": TARGET})
    reported = sorted(warning.partition(": ")[2] for warning in warnings(shell, hvpa, hpa, vpa))
    assert reported[0].startswith("spec.hpa.name: HorizontalPodAutoscaler default/old (")
    assert reported[1].startswith("spec.vpa.name: VerticalPodAutoscaler default/old (")
    ours = {"apiVersion": "autoscaling.k8s.io/v1alpha1", "kind": "Hvpa", "name": "case"}
    assert warnings(shell, hvpa, recommender("HorizontalPodAutoscaler", {"scaleTargetRef": ours})) == []


LOG: Doc = {"name": "log"}


def sized(request: object, limit: object = None) -> Doc:
    """A container with requests and limits of CPU."""
    parts = {"requests": {"cpu": request}, "limits": {"cpu": limit}}
    return {"name": "app", "resources": parts if limit is not None else {"requests": {"cpu": request}}}


def bounded(**policy: object) -> Doc:
    return quiet(
        spec__vpa__template__spec__resourcePolicy__containerPolicies=[
            {"containerName": "log", "mode": "Off", "maxAllowed": {"cpu": 1}},
            {"containerName": "*", **policy},
        ]
    )


@pytest.mark.parametrize(
    ("policy", "container", "field", "text"),
    [
        ({"maxAllowed": {"cpu": 2}}, sized("2500m"), "maxAllowed[cpu]",
         " requests 2500m of cpu for container app, which is more: the request is lowered to maxAllowed"),
        ({"controlledValues": "RequestsOnly"}, sized(1, "1000m"), "controlledValues",
         "which is its limit: with RequestsOnly the limit stays, and the request is never raised"),
    ],
)  # fmt: skip
def test_requests_that_can_not_be_raised_are_named(
    shell: Shell, policy: Doc, container: Doc, field: str, text: str
) -> None:
    (reported,) = warnings(shell, bounded(**policy), workload(container, LOG))
    assert f"containerPolicies[1].{field}: Deployment default/app (" in reported
    assert text in reported


@pytest.mark.parametrize(
    ("policy", "container"),
    [
        ({"maxAllowed": {"cpu": 2}}, sized(2)),
        ({"maxAllowed": {"cpu": 2}}, {**sized(4), "name": "log"}),
        ({"maxAllowed": {"cpu": 2}}, {"name": "app"}),
        ({"maxAllowed": {"cpu": 2}}, sized([4])),
        ({"maxAllowed": {"cpu": 2}, "controlledResources": ["memory"]}, sized(4)),
        ({"controlledValues": "RequestsOnly"}, sized(1, 2)),
        ({"controlledValues": "RequestsOnly"}, sized(1)),
        ({"controlledValues": "RequestsAndLimits"}, sized(1, 1)),
    ],
)
def test_requests_within_their_bounds_get_no_remark(shell: Shell, policy: Doc, container: Doc) -> None:
    assert warnings(shell, bounded(**policy), workload(container, LOG)) == []


def test_requests_of_a_vpa_that_is_off_or_not_deployed_get_no_remark(shell: Shell) -> None:
    off = {"updatePolicy": {"updateMode": "Off"}}
    hvpa = manifests.changed(
        bounded(maxAllowed={"cpu": 2}), {"spec.vpa.scaleUp": off, "spec.vpa.scaleDown": off}
    )
    assert warnings(shell, hvpa, workload(sized(4), LOG)) == []


def in_place(kind: str) -> Doc:
    return quiet(spec__updateStrategy={"type": kind})


def test_pods_that_can_not_be_resized_are_named(shell: Shell) -> None:
    (reported,) = warnings(shell, in_place("InPlace"), workload({"name": "app"}, LOG))
    assert "spec.updateStrategy.type: Deployment default/app (" in reported
    assert "pods of QoS class BestEffort can't be resized" in reported
    assert warnings(shell, in_place("InPlaceOrRollout"), workload({"name": "app"})) == []
    assert warnings(shell, in_place("InPlace"), workload({"name": "app"}, sized(1))) == []
    assert warnings(shell, in_place("InPlace"), workload()) == []
    whole = workload({"name": "app"})
    whole["spec"]["template"]["spec"]["resources"] = {"requests": {"cpu": "1"}}
    assert warnings(shell, in_place("InPlace"), whole) == []


def of_kind(kind: str, **spec: object) -> Doc:
    manifest = workload(sized(1))
    return {**manifest, "kind": kind, "spec": {**manifest["spec"], **spec}}


@pytest.mark.parametrize("strategy", ["Rollout", "InPlaceOrRollout", "InPlace"])
@pytest.mark.parametrize(
    ("kind", "spec", "why", "remedy"),
    [
        ("StatefulSet", {"updateStrategy": {"type": "OnDelete"}},
         "replaces no pod by itself (updateStrategy OnDelete)", "let its updateStrategy be RollingUpdate"),
        ("DaemonSet", {"updateStrategy": {"type": "OnDelete"}},
         "replaces no pod by itself (updateStrategy OnDelete)", "let its updateStrategy be RollingUpdate"),
        ("StatefulSet", {"updateStrategy": {"rollingUpdate": {"partition": 2}}},
         "replaces not all pods by itself (partition 2)", "set its partition to 0"),
        ("Deployment", {"paused": True}, "replaces no pod by itself (paused true)", "remove spec.paused"),
        ("StatefulSet", {"updateStrategy": {"type": "RollingUpdate"}}, "", ""),
        ("StatefulSet", {"updateStrategy": {"rollingUpdate": {"partition": 0}}}, "", ""),
        ("DaemonSet", {"updateStrategy": {"rollingUpdate": {"partition": 2}}}, "", ""),
        ("StatefulSet", {"updateStrategy": {"rollingUpdate": {"partition": "2"}}}, "", ""),
        ("Deployment", {"updateStrategy": {"type": "OnDelete"}, "paused": "yes"}, "", ""),
        ("ReplicaSet", {"updateStrategy": {"type": "OnDelete"}}, "", ""),
    ],
)  # fmt: skip
def test_a_workload_that_does_not_replace_its_pods_is_named(
    shell: Shell, strategy: str, kind: str, spec: Doc, why: str, remedy: str
) -> None:
    hvpa = quiet(spec__updateStrategy={"type": strategy}, spec__targetRef={**TARGET, "kind": kind})
    if kind == "DaemonSet":
        hvpa["spec"]["hpa"] = {"deploy": False}
    reported = [text for text in warnings(shell, hvpa, of_kind(kind, **spec)) if "by itself" in text]
    assert len(reported) == (1 if why and strategy != "InPlace" else 0)
    for text in reported:
        assert ": spec.updateStrategy.type: " in text
        assert why in text
        assert remedy in text
        assert ("can't be resized" in text) == (strategy == "InPlaceOrRollout")


def test_where_requests_are_not_changed_it_does_not_matter_that_pods_are_not_replaced(shell: Shell) -> None:
    hvpa = quiet(spec__targetRef={**TARGET, "kind": "StatefulSet"})
    hvpa["spec"]["vpa"] = {"deploy": False}
    workload = of_kind("StatefulSet", updateStrategy={"type": "OnDelete"})
    assert [text for text in warnings(shell, hvpa, workload) if "by itself" in text] == []
