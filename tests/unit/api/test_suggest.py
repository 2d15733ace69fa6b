"""What may have been meant by an unknown field."""

from __future__ import annotations

import pytest

from hvpa.api import suggest
from hvpa.api.suggest import suggestion


@pytest.fixture(autouse=True)
def _afresh() -> None:
    """Tests that are not traced for the coverage gate may have asked before."""
    suggest._spec_schema.cache_clear()


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("spec.hpa.scaleup", "did you mean scaleUp?"),
        ("spec.weightBasedScalingIntervals[0].vpaweight", "did you mean vpaWeight?"),
        ("spec.vpa.template.spec.resourcePolicy.containerPolicies[1].minAllow", "did you mean minAllowed?"),
        ("spec.maxReplica", "did you mean replicas?"),
        ("spec.maxReplicas", "it belongs in spec.trajectory.intervals[] or spec.hpa.template.spec"),
        ("spec.minReplicas", "it belongs in spec.hpa.schedule[] or spec.hpa.template.spec"),
        ("spec.hpa.percentage", None),
        ("spec.xyzzy", None),
        ("spec.xyzzy.unknown.deep", None),
        ("sepc", "did you mean spec?"),
        ("metadata.nmae", None),
        ("", None),
    ],
)
def test_a_name_that_is_near_or_elsewhere_is_suggested(path: str, expected: str | None) -> None:
    answer = suggestion(path)
    assert sorted((answer or "").split()) == sorted((expected or "").split())
