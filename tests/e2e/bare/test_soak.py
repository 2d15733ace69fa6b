"""A short soak with shards: `make soak` runs a long one, with a leader where it is not asked for shards, and with
rounds of the same work in which processes that grow are found."""

from __future__ import annotations

import sys

import pytest

from tests.e2e.soak.run import soak

SEED = 11
SHARDS = 8


@pytest.mark.timeout(600)
def test_a_short_soak_ends_well() -> None:
    report = soak(SEED, minutes=0.25, hvpas=10, shards=SHARDS, growth=False)
    if not report.is_good:
        print(report, file=sys.stderr)  # after the logs: of a long output only the end may be shown
    assert report.is_good, str(report)
    faults, takeovers = report.facts["faults"], report.facts["Leases taken over"]
    assert isinstance(faults, dict)
    assert len(faults) > 3, str(report)
    assert isinstance(takeovers, int)
    assert takeovers >= SHARDS, str(report)
