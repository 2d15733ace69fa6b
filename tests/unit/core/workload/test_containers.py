"""Resources of containers as numbers."""

from __future__ import annotations

from hvpa.api.objects.read_models import Resources
from hvpa.core.model import ResourceRequirements
from hvpa.core.workload.containers import read_all


def test_amounts_are_read_however_they_are_written() -> None:
    written = {
        "app": Resources({"cpu": "1", "memory": "1Gi"}, {"memory": "2Gi"}),
        "log": Resources({"cpu": "1000m", "memory": 2**30}, {"memory": "2048Mi"}),
        "proxy": Resources({"cpu": "1", "memory": "1Gi"}, {"memory": "2Gi"}),
    }
    expected = ResourceRequirements({"cpu": 1000, "memory": 2**30}, {"memory": 2**31})
    requirements = read_all(written)
    assert requirements == dict.fromkeys(written, expected)
    assert requirements["app"] is requirements["proxy"]


def test_what_is_a_request_here_and_a_limit_there_is_told_apart() -> None:
    requirements = read_all({"app": Resources({"cpu": "1"}), "log": Resources({}, {"cpu": "1"})})
    assert requirements == {
        "app": ResourceRequirements({"cpu": 1000}, {}),
        "log": ResourceRequirements({}, {"cpu": 1000}),
    }


def test_what_can_not_be_read_is_missing() -> None:
    assert read_all({"app": Resources({"cpu": "much", "nvidia.com/gpu": "1"})}) == {
        "app": ResourceRequirements({}, {})
    }
