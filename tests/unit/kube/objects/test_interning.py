"""Equal values, held once."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hvpa.api.hvpa.resource import read_spec
from hvpa.api.hvpa.spec import HvpaSpec
from hvpa.api.hvpa.status import HvpaStatus, read_status, to_wire
from hvpa.kube.objects import interning as sharing
from hvpa.kube.objects.interning import InternTable, ModelSharer, share, text


def spec_of(name: str, percent: int = 50) -> dict[str, Any]:
    down = {"stabilizationDuration": "5m", "minChange": {"cpu": {"value": "100m"}}}
    labels = {"app": name}
    return {
        "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name},
        "hpa": {"deploy": False, "selector": {"matchLabels": labels}},
        "vpa": {"deploy": True, "scaleDown": down},
        "weightBasedScalingIntervals": [{"vpaWeight": percent}],
    }


def shared_spec(sharer: ModelSharer, document: dict[str, Any]) -> HvpaSpec:
    raw = json.dumps(document).encode()
    spec, problems = read_spec(raw)
    assert spec is not None, problems
    fresh = HvpaSpec.model_validate(document, by_alias=True, by_name=False)
    sharer.share(fresh, raw)
    assert fresh == spec
    return fresh


@pytest.fixture(autouse=True)
def tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Empty ones."""
    for name in ("_texts", "_parts"):
        monkeypatch.setattr(sharing, name, InternTable())


def test_equal_values_are_one_and_lists_of_different_things_are_not() -> None:
    first = {"app": "web"}
    assert share(first) is first
    assert share({"app": "web"}) is first
    assert share({"app": "other"}) is not first
    names = share(["a"], "names")
    assert share(["a"], "names") is names
    assert share(["a"], "texts") is not names


def test_what_no_object_uses_any_more_is_let_go_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sharing, "SMALL", 4)
    used = [[share(["used", str(number)]) for _ in range(2)] for number in range(10)]
    for number in range(100):
        assert share([str(number)]) == [str(number)]
    assert 10 <= len(sharing._parts) <= 2 * 10
    for number, (first, second) in enumerate(used):
        assert share(["used", str(number)]) is first is second


def test_large_values_are_not_kept() -> None:
    assert share("x" * sharing.LARGEST) == "x" * sharing.LARGEST
    assert not len(sharing._parts)


def test_short_texts_are_one() -> None:
    assert text("".join(["we", "b"])) is text("".join(["w", "eb"]))
    long = "x" * 1000
    assert text(long) is long


def test_texts_that_are_used_stay_one_and_the_table_does_not_grow_with_texts_that_are_not() -> None:
    used = text("".join(["us", "ed"]))
    for number in range(100 * sharing.SMALL):
        text(f"name-{number}")
    assert len(sharing._texts) <= sharing.SMALL
    assert text("".join(["u", "sed"])) is used


def test_parts_that_come_again_are_held_once_and_what_differs_is_not() -> None:
    sharer = ModelSharer()
    specs = [shared_spec(sharer, spec_of(f"web-{number}")) for number in range(4)]
    spec, other = specs[0], specs[1]
    assert spec.vpa is other.vpa
    assert spec.hpa.scale_up is other.hpa.scale_up  # a default
    assert spec.weight_based_scaling_intervals is other.weight_based_scaling_intervals
    assert spec.target_ref.name == "web-0"
    assert other.target_ref.name == "web-1"
    assert spec.hpa.selector is not other.hpa.selector
    different = shared_spec(sharer, spec_of("web-4", 51))
    assert different.weight_based_scaling_intervals is not spec.weight_based_scaling_intervals


def test_parts_of_one_document_that_are_alike_are_held_once() -> None:
    document = spec_of("web")
    document["vpa"]["selector"] = document["hpa"]["selector"]
    spec = shared_spec(ModelSharer(), document)
    assert spec.hpa.selector is spec.vpa.selector


def test_what_was_not_given_is_still_not_given() -> None:
    sharer = ModelSharer()
    spec = [shared_spec(sharer, spec_of("web")) for _ in range(3)][-1]
    assert spec.hpa.model_fields_set == {"deploy", "selector"}
    copy = spec.hpa.model_copy(update={"deploy": True})
    assert copy.model_fields_set is not spec.hpa.model_fields_set


VALUES = st.sampled_from(["1", "2", 1, 1.0, 0, 0.0, True, False, "500m", "1Gi"])
CONDITIONS = st.lists(
    st.fixed_dictionaries(
        {
            "type": st.sampled_from(["Ready", "HpaActive"]),
            "status": st.sampled_from(["True", "False"]),
            "reason": st.sampled_from(["A", "B"]),
            "message": st.sampled_from(["", "x", "y"]),
            "lastTransitionTime": st.sampled_from(["2026-11-21T10:00:00Z", "2026-11-21T10:00:01Z"]),
        }
    ),
    max_size=3,
)
STATUSES = st.fixed_dictionaries(
    {},
    optional={
        "hpaWeight": st.sampled_from([0, 1, 1.0, 50]),
        "replicas": st.integers(0, 3),
        "overrideScaleUpStabilization": st.booleans(),
        "conditions": CONDITIONS,
        "recommended": st.fixed_dictionaries(
            {"replicas": st.integers(0, 2)},
            optional={
                "containers": st.lists(
                    st.fixed_dictionaries({"name": st.sampled_from("ab"), "requests": st.just({"cpu": "1"})}),
                    max_size=2,
                )
            },
        ),
    },
)


@given(st.lists(STATUSES, min_size=1, max_size=8))
def test_a_shared_status_is_the_status(documents: list[dict[str, Any]]) -> None:
    sharer = ModelSharer()
    for document in documents * 2:
        raw = json.dumps(document).encode()
        status = HvpaStatus.model_validate(document, by_alias=True, by_name=False)
        sharer.share(status, raw)
        fresh = read_status(raw)[0]
        assert status == fresh
        assert to_wire(status) == to_wire(fresh)
        assert json.dumps(to_wire(status)) == json.dumps(to_wire(fresh))


def test_what_is_no_object_is_left_as_it_is() -> None:
    status = HvpaStatus()
    ModelSharer().share(status, msgspec.Raw(b"[]"))
    assert status == HvpaStatus()
