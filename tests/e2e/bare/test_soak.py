"""A short soak: `make soak` runs a long one."""

from __future__ import annotations

from tests.e2e.soak.run import soak

SEED = 11


def test_a_short_soak_ends_well() -> None:
    report = soak(SEED, minutes=0.25, hvpas=30)
    assert report.is_good, str(report)
    faults = report.facts["faults"]
    assert isinstance(faults, dict)
    assert len(faults) > 3, str(report)
