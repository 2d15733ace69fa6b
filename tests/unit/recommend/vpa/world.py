"""Builders for the tests of the VPA model: a VPA in, its status taken apart."""

from __future__ import annotations

import datetime as dt
from typing import Any

import msgspec

from hvpa.api.objects.read_models import ContainerRecommendation, Vpa, VpaMeta, VpaStatusRead

NOW = dt.datetime(2026, 11, 21, 12, 0, 0, 250_000, tzinfo=dt.UTC)
LATER = NOW + dt.timedelta(minutes=1)
START = dt.datetime(2026, 11, 20, tzinfo=dt.UTC).timestamp()


def vpa(
    *policies: dict[str, Any],
    status: VpaStatusRead = VpaStatusRead(),  # noqa: B008  # frozen
) -> Vpa:
    """A VPA with these container policies."""
    spec = {"resourcePolicy": {"containerPolicies": list(policies)}}
    return Vpa(metadata=VpaMeta(name="app"), raw_spec=msgspec.Raw(msgspec.json.encode(spec)), status=status)


def found(status: VpaStatusRead) -> dict[str, ContainerRecommendation]:
    """The recommendations by container."""
    assert status.recommendation is not None
    return {one.container_name: one for one in status.recommendation.container_recommendations or ()}


def conditions(status: VpaStatusRead) -> list[tuple[str, str, str]]:
    """Type, status and reason of each condition."""
    return [(one.type, one.status, one.reason) for one in status.conditions or ()]
