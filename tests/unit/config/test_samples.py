"""The samples are valid and do what their comments say of them. That an API server takes them is shown end to end."""

from __future__ import annotations

import pytest

from hvpa.api.hvpa.resource import validate_manifest
from hvpa.api.hvpa.spec import HvpaSpec
from hvpa.core.path.build import path_of_weights
from hvpa.core.path.curve import SizeBounds
from hvpa.core.path.path import ResourceKey
from hvpa.core.values.weight import Bounds, weight_intervals
from tests.unit.config.folders import Json, objects

SAMPLES = [document for document in objects("samples") if document["kind"] == "Hvpa"]
IDS = [sample["metadata"]["name"] for sample in SAMPLES]


def _spec(name: str) -> HvpaSpec:
    (sample,) = (sample for sample in SAMPLES if sample["metadata"]["name"] == name)
    return HvpaSpec.model_validate(sample["spec"])


@pytest.mark.parametrize("sample", SAMPLES, ids=IDS)
def test_a_sample_is_valid(sample: Json) -> None:
    assert validate_manifest(sample) == []
    assert HvpaSpec.model_validate(sample["spec"]).warnings == ()


def test_no_two_samples_share_a_target_or_a_name() -> None:
    targets = [
        (sample["spec"]["targetRef"]["kind"], sample["spec"]["targetRef"]["name"]) for sample in SAMPLES
    ]
    assert len(set(targets)) == len(targets)
    assert len(set(IDS)) == len(IDS)


@pytest.mark.parametrize("sample", SAMPLES, ids=IDS)
def test_a_template_that_has_labels_is_found_by_its_selector(sample: Json) -> None:
    spec = HvpaSpec.model_validate(sample["spec"])
    for part in (spec.hpa, spec.vpa):
        if not part.selector.is_empty:
            assert part.selector.matches(part.template.metadata.labels)


def test_gardeners_fractions_are_percentages() -> None:
    assert _spec("ingress").weights_ppm == (0, 600_000, 0)
    assert _spec("apiserver").weights_ppm == (1_000_000, 600_000, 0)


def test_named_recommenders_only_recommend() -> None:
    by_kind = {
        document["kind"]: document
        for document in objects("samples")
        if document["metadata"]["name"].startswith("worker-")
    }
    worker = _spec("worker")
    hpa, vpa = by_kind["HorizontalPodAutoscaler"], by_kind["VerticalPodAutoscaler"]
    assert (worker.hpa.name, worker.vpa.name) == (hpa["metadata"]["name"], vpa["metadata"]["name"])
    assert hpa["spec"]["scaleTargetRef"] == {
        "apiVersion": "autoscaling.k8s.io/v1alpha1",
        "kind": "Hvpa",
        "name": "worker",
    }
    assert vpa["spec"]["updatePolicy"] == {"updateMode": "Off"}


def test_the_joint_sample_has_a_path_as_its_comments_say() -> None:
    spec, cpu = _spec("cart"), ResourceKey("app", "cpu")
    size_bounds = SizeBounds(base=500, lower=500, upper=1000)
    path = path_of_weights(weight_intervals(spec, False), Bounds(2, 10), ((cpu, size_bounds),))
    assert spec.joint
    assert [path.curves[cpu].top(count) for count in range(2, 11)] == [
        500,
        500,
        500,
        625,
        750,
        875,
        *[1000] * 3,
    ]
