"""HvpaPolicy and ClusterHvpaPolicy: what is valid, what is reported about the rest, and their CRDs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from hvpa.api.crd import main, render_policy_crd
from hvpa.api.objects.read_models import Meta, RawHvpa
from hvpa.api.policy.resource import SPECS, PolicyKey, PolicyKind, PolicyObject, read_policy, validate_policy
from hvpa.api.policy.spec import merged
from hvpa.api.policy.status import PolicyStatus
from hvpa.core.policies.check import policy_problems
from tests.unit.api.test_crd import FILE, is_bounded, is_structural, schemas

Json = dict[str, Any]
CONFIG = Path(__file__).parents[4] / "config" / "hvpa-policy"
TEMPLATE = {"hpa": {"deploy": True, "template": {"spec": {"maxReplicas": 5}}}}
WITHOUT_BOUND = {"hpa": {"template": {"spec": {"maxReplicas": 0}}}}


def read(spec: object, kind: PolicyKind = "HvpaPolicy", status: object = None) -> PolicyObject:
    raw = RawHvpa(
        Meta(name="a"),
        msgspec.Raw(msgspec.json.encode(spec)),
        msgspec.Raw(msgspec.json.encode(status or {})),
    )
    return read_policy(kind, raw)


def problems(spec: object, kind: PolicyKind = "HvpaPolicy") -> list[str]:
    return [str(problem) for problem in read(spec, kind).problems]


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ({}, "spec.template: is required"),
        ({"template": []}, "spec.template: must be an object"),
        ({"template": TEMPLATE, "stage": "Off"}, "spec.stage: must be 'Recommend', 'Review' or 'Apply'"),
        ({"template": TEMPLATE, "namespaces": {"all": True}}, "spec.namespaces: unknown field"),
        (
            {"template": {**TEMPLATE, "mode": "Apply"}},
            "spec.template.mode: is set by the policy, not by the template",
        ),
        ({"template": {"hpas": {}}}, "spec.template: hpas: unknown field"),
        (
            {"template": TEMPLATE, "cases": [{"when": {"minCpu": "1"}, "patch": WITHOUT_BOUND}]},
            "spec.cases[0].patch: hpa.template.spec.maxReplicas: is required and must be greater than 0 if deploy is "
            "true",
        ),
        (
            {"template": TEMPLATE, "cases": [{"when": {}, "patch": {}}]},
            "spec.cases[0].when: has no condition: set selector, minCpu or minMemory",
        ),
        (
            {"template": TEMPLATE, "cases": [{"when": {"minCpu": "1"}, "patch": {"targetRef": {}}}]},
            "spec.cases[0].patch.targetRef: is set by the policy, not by the template",
        ),
        (
            {
                "template": TEMPLATE,
                "cases": [{"when": {"minCpu": "1"}, "patch": {"hpa": {"template": None}}}],
            },
            "spec.cases[0].patch.hpa.template: must not be null: set another value",
        ),
        (
            {"template": TEMPLATE, "rollout": {"maxConcurrent": 0}},
            "spec.rollout.maxConcurrent: must be greater than or equal to 1",
        ),
    ],
)
def test_a_bad_policy_is_reported_by_field(spec: Json, problem: str) -> None:
    assert problems(spec) == [problem]


def test_a_cluster_policy_must_say_which_namespaces() -> None:
    assert problems({"template": TEMPLATE}, "ClusterHvpaPolicy") == ["spec.namespaces: is required"]
    choices: list[Json] = [{}, {"all": False}, {"selector": {}}, {"names": []}]
    for nothing in choices:
        spec = {"template": TEMPLATE, "namespaces": nothing}
        assert problems(spec, "ClusterHvpaPolicy") == [
            "spec.namespaces: selects no namespace: set all, names or selector"
        ]
    for some in ({"all": True}, {"names": ["a"]}, {"selector": {"matchLabels": {"a": "b"}}}):
        assert not problems({"template": TEMPLATE, "namespaces": some}, "ClusterHvpaPolicy")


def test_what_is_no_json_is_reported() -> None:
    policy = read_policy("HvpaPolicy", RawHvpa(Meta(), msgspec.Raw(b"{"), msgspec.Raw(b"{")))
    assert policy.spec is None
    assert policy.problems
    assert policy.status == PolicyStatus()
    assert read({"template": TEMPLATE}, status={"selected": "many"}).status == PolicyStatus()


def test_templates_are_read_with_their_cases() -> None:
    policy = read(
        {"template": TEMPLATE, "cases": [{"when": {"minCpu": "1"}, "patch": {"blend": "Trajectory"}}]}
    )
    assert policy.spec is not None
    read_specs = policy.spec.specs()
    assert [(at, spec.blend) for at, spec in read_specs] == [
        ("template", None),
        ("cases[0].patch", "Trajectory"),
    ]


def test_keys_read_like_names() -> None:
    assert str(PolicyKey("HvpaPolicy", "shop", "team")) == "HvpaPolicy shop/team"
    assert str(PolicyKey("ClusterHvpaPolicy", "", "all")) == "ClusterHvpaPolicy all"


documents = st.recursive(
    st.integers(0, 2),
    lambda inner: st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(st.sampled_from("abc"), documents, max_size=3)


def leaves(document: Json, path: tuple[str, ...] = ()) -> dict[tuple[str, ...], object]:
    found: dict[tuple[str, ...], object] = {}
    for key, value in document.items():
        found |= leaves(value, (*path, key)) if isinstance(value, dict) else {(*path, key): value}
    return found


@given(objects, objects)
def test_fields_of_a_patch_win_and_the_others_stay(document: Json, patch: Json) -> None:
    result, patched = leaves(merged(document, patch)), leaves(patch)
    assert result.items() >= patched.items()
    for path, value in leaves(document).items():
        hidden = any(path[: len(other)] == other or other[: len(path)] == path for other in patched)
        assert hidden or result.get(path, value) == value
    assert merged(merged(document, patch), patch) == merged(document, patch)


# --- the CRDs --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("kind", "plural"), [("HvpaPolicy", "hvpapolicies"), ("ClusterHvpaPolicy", "clusterhvpapolicies")]
)
def test_the_file_in_config_is_what_is_printed(
    kind: PolicyKind, plural: str, capsys: pytest.CaptureFixture[str]
) -> None:
    main(kind)
    text = capsys.readouterr().out
    assert (CONFIG / f"crd_{plural}.yaml").read_text(encoding="utf-8") == text, "run `make generate`"
    crd = yaml.load(text, yaml.CSafeLoader)
    assert crd["spec"]["names"]["plural"] == plural
    assert crd["metadata"]["name"] == f"{plural}.autoscaling.k8s.io"
    in_template = FILE.read_text(encoding="utf-8").count("preserve-unknown-fields")
    assert text.count("preserve-unknown-fields") == in_template + 1  # the patch of a case


@pytest.mark.parametrize("kind", SPECS)
def test_the_schemas_are_structural_described_and_bounded(kind: PolicyKind) -> None:
    (version,) = render_policy_crd(kind)["spec"]["versions"]
    found = dict(schemas(version["schema"]["openAPIV3Schema"]))
    for path, schema in found.items():
        assert is_structural(schema), path
        if not path.endswith("[]") and path != ".metadata":
            assert schema.get("description"), path
        if path.startswith(".spec") and not path.endswith(".annotations[]"):
            assert is_bounded(schema), path
    assert not {".spec.template.targetRef", ".spec.template.mode", ".spec.template.replicas"} & found.keys()
    assert ".spec.template.hpa.template.spec.maxReplicas" in found


# --- a manifest ------------------------------------------------------------------------------------------------------
def manifest(kind: str, **spec: object) -> Json:
    body = {"apiVersion": "autoscaling.k8s.io/v1alpha1", "kind": kind, "metadata": {"name": "a"}}
    if kind == "ClusterHvpaPolicy":
        spec["namespaces"] = {"names": ["shop"]}
    return {**body, "spec": {"template": TEMPLATE, **spec}}


@pytest.mark.parametrize("kind", ["HvpaPolicy", "ClusterHvpaPolicy"])
def test_a_manifest_is_read_or_its_errors_are_named(kind: str) -> None:
    spec, errors = validate_policy(manifest(kind))
    assert (spec is not None, errors) == (True, ())
    spec, errors = validate_policy(manifest(kind, stage="Off"))
    assert spec is None
    assert [str(error) for error in errors] == ["spec.stage: must be 'Recommend', 'Review' or 'Apply'"]
    assert validate_policy("text")[0] is None


def test_a_schedule_that_never_comes_is_named_once() -> None:
    never = {"schedule": "0 0 30 2 *", "duration": "1h", "minReplicas": 2}
    template = merged(TEMPLATE, {"hpa": {"schedule": [never]}})
    cases = [{"when": {"minCpu": "2"}, "patch": {"forecast": {}}}]
    spec, _ = validate_policy(manifest("HvpaPolicy", template=template, cases=cases))
    assert spec is not None
    (error,) = policy_problems(spec)
    assert error.path.startswith("spec.template.hpa.schedule[0]")
