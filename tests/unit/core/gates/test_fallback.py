"""`spec.hpa.fallback`: a floor while the HPA has lost its metrics."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from builders.build import NOW, at, counts, decided, hpa, hvpa, merged, objects, stamp, vpa, workload
from hvpa.api.hvpa.resource import validate_manifest
from hvpa.api.hvpa.scaling import Fallback
from hvpa.core.gates.forecast import DAY
from hvpa.core.model import Decision


def lost(minutes: float, reason: str = "FailedGetResourceMetric", current: int = 4) -> Any:
    """An HPA that lost its metrics so many minutes ago."""
    since = stamp(at(minutes=-minutes))
    gone = {"type": "ScalingActive", "status": "False", "reason": reason, "lastTransitionTime": since}
    return hpa(current, None, {"status": {"conditions": [gone]}}, replicas=current)


def after_loss(
    fallback: Mapping[str, Any] | None,
    horizontal: Any,
    status: Mapping[str, Any] | None = None,
    spec: Mapping[str, Any] | None = None,
    replicas: int = 4,
) -> Decision:
    usual: dict[str, Any] = {
        "hpa": {} if fallback is None else {"fallback": dict(fallback)},
        "replicas": replicas,
    }
    own = hvpa(merged(usual, spec or {}), status)
    vertical = vpa({"app": {"cpu": "1", "memory": "1Gi"}})
    return decided(objects(own, workload(replicas), horizontal, vertical))


@pytest.mark.parametrize("blend", ["Additive", "Trajectory"])
@pytest.mark.parametrize(
    ("fallback", "minutes", "expected"),
    [
        ({"replicas": 6}, 6, 6),
        ({"replicas": 6}, 4, 4),
        ({"replicas": 6, "after": "1m"}, 2, 6),
        ({"replicas": 2}, 60, 4),
        ({"replicas": 40}, 60, 10),
        ({"replicas": "Current"}, 60, 4),
        ({}, 60, 4),
        (None, 60, 4),
    ],
)
def test_the_count_rises_to_the_fallback_once_metrics_are_lost_for_long(
    blend: str, fallback: Mapping[str, Any] | None, minutes: float, expected: int
) -> None:
    result = after_loss(fallback, lost(minutes), spec={"blend": blend})
    assert counts(result).target == expected
    if expected == 6:
        since = stamp(at(minutes=-minutes))
        why = f"6 at least since the HPA lost its metrics at {since}, by spec.hpa.fallback"
        assert f"replicas: 4 now, the HPA has no recommendation; {why}" in result.steps


def test_the_fallback_is_due_at_its_time() -> None:
    result = after_loss({"replicas": 6}, lost(4))
    assert result.recheck_after is not None
    assert result.recheck_after <= at(minutes=1) - NOW


@pytest.mark.parametrize("horizontal", [hpa(4, 50, replicas=4), lost(60, "ScalingDisabled"), None])
def test_an_hpa_that_measures_or_is_switched_off_needs_no_fallback(horizontal: Any) -> None:
    assert counts(after_loss({"replicas": 6}, horizontal)).target == 4


def test_as_usual_is_what_this_time_of_day_needed_before() -> None:
    """The record of the forecast, whether or not the forecast is accurate enough to be used."""
    record = {"time": stamp(NOW), "samples": [7], "values": " ".join(["7"] * (4 * DAY))}
    spec = {"forecast": {"history": "3d"}}
    usual = {"replicas": "AsUsual"}
    assert counts(after_loss(usual, lost(60), {"forecast": record}, spec)).target == 7
    assert counts(after_loss(usual, lost(60), None, spec)).target == 4


def test_as_usual_without_a_record_of_the_day_is_refused() -> None:
    manifest = {
        "apiVersion": "autoscaling.k8s.io/v1alpha1",
        "kind": "Hvpa",
        "metadata": {"name": "web"},
        "spec": {
            "targetRef": {"kind": "Deployment", "name": "web"},
            "hpa": {"fallback": {"replicas": "AsUsual"}},
        },
    }
    (problem,) = validate_manifest(manifest)
    assert "spec.hpa.fallback.replicas: AsUsual needs spec.forecast" in str(problem)


@pytest.mark.parametrize("replicas", [0, -1, True, 1.5, "Usual", "3", 2**31])
def test_other_replicas_are_an_error(replicas: object) -> None:
    with pytest.raises(ValidationError, match="replicas"):
        Fallback.model_validate({"replicas": replicas})


@pytest.mark.parametrize("replicas", [6, 6.0])
def test_a_whole_number_is_a_fallback(replicas: float) -> None:
    assert Fallback.model_validate({"replicas": replicas}).replicas == 6


@given(st.integers(1, 2**31 - 1))
def test_any_positive_number_is_a_fallback(replicas: int) -> None:
    assert Fallback.model_validate({"replicas": replicas}).replicas == replicas
    assert Fallback.model_validate({"replicas": float(replicas)}).replicas == replicas
