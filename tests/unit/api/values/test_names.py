"""Names of Kubernetes: what the models, the indexes and the API server (by the CRD's patterns) take for one."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hvpa.api.crd import render_crd
from hvpa.api.hvpa.resource import parse_spec
from hvpa.api.values import names

texts = st.one_of(
    st.text(max_size=12),
    st.text("az09AZ-./%?#\n\x00 _*~@", max_size=12),
    st.sampled_from(["web", "apps/v1", "argoproj.io/v1alpha1", "Rollout", "a" * 63, "a" * 254, "..", "é"]),
)


@pytest.mark.parametrize(
    ("is_valid", "valid", "invalid"),
    [
        pytest.param(
            names.is_label,
            ["a", "a-b", "0", "a" * 63],
            ["", "-a", "a-", "A", "a.b", "a" * 64, "a\n", "a/b"],
            id="label",
        ),
        pytest.param(
            names.is_subdomain,
            ["a.b", "web-0", "a" * 253],
            ["", ".", "..", "a..b", ".a", "a.", "a/b", "a%2fb", "a?b", "a#b", "a" * 254, "ü", "a\x00"],
            id="subdomain",
        ),
        pytest.param(names.is_kind, ["Rollout", "x", "A" * 63], ["", "0a", "A/B", "A?", "A.b", "A" * 64], id="kind"),
        pytest.param(
            names.is_api_version,
            ["", "v1", "apps/v1", "argoproj.io/v1alpha1", "a" * 253 + "/v1"],
            ["/", "/v1", "apps/", "a/b/v1", "a/..", "../v1", "argoproj.io/v1alpha1?x0=", "a/V1", "a/1", "v1\n"],
            id="API version",
        ),
        pytest.param(names.is_container_choice, ["", "*", "app"], ["**", "a.b", "a" * 64], id="container or all"),
    ],
)  # fmt: skip
def test_a_name_is_what_kubernetes_takes_for_one(is_valid: Any, valid: list[str], invalid: list[str]) -> None:
    assert [name for name in valid if not is_valid(name)] == []
    assert [name for name in invalid if is_valid(name)] == []


_SPEC = render_crd()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
_TARGET = _SPEC["targetRef"]["properties"]
FIELDS: dict[str, Any] = {
    "spec.targetRef.apiVersion": _TARGET["apiVersion"],
    "spec.targetRef.kind": _TARGET["kind"],
    "spec.targetRef.name": _TARGET["name"],
    "spec.hpa.name": _SPEC["hpa"]["properties"]["name"],
    "spec.vpa.name": _SPEC["vpa"]["properties"]["name"],
}


def with_text(field: str, text: str) -> dict[str, Any]:
    """A spec with this text in one of its names."""
    spec: dict[str, Any] = {"targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}}
    _, part, name = field.split(".")
    spec.setdefault(part, {})[name] = text
    return spec


@given(texts, st.sampled_from(list(FIELDS)))
@example("web\n", "spec.targetRef.name")
def test_the_crd_and_the_models_refuse_the_same_names(text: str, field: str) -> None:
    """Stored objects that predate a pattern are refused by the models, with the field's name."""
    schema = FIELDS[field]
    # RE2's `$` is the end of the text, as Python's `\Z` is.
    pattern = schema["pattern"].removesuffix("$") + r"\Z"
    by_schema = len(text) <= schema["maxLength"] and re.match(pattern, text, re.ASCII) is not None
    spec, problems = parse_spec(with_text(field, text))
    assert (spec is not None) == by_schema
    assert [problem.path for problem in problems] == ([] if by_schema else [field])
