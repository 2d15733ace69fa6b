"""The count that one metric gives, where numbers leave 64 bits or readings are missing: recorded answers lack that."""

from __future__ import annotations

import msgspec
import pytest

from hvpa.api.objects.read_models import MetricName, ObjectReference
from hvpa.recommend.golang.numbers import MAX_INT32, MAX_INT64, MIN_INT64
from hvpa.recommend.hpa.controller import MetricsError
from hvpa.recommend.hpa.replicas import (
    by_external,
    by_external_per_pod,
    by_object_per_pod,
    by_pods_metric,
    by_resource_usage,
    by_utilization,
)
from tests.unit.recommend.hpa.world import (
    Given,
    make_pod,
    make_pods,
    situation,
)

QPS = MetricName(name="qps")
SOME = ObjectReference(kind="Deployment", name="some-deployment", api_version="apps/v1")
R, U = "ready", "unready"


def test_a_transition_without_a_time_is_long_ago() -> None:
    pod = make_pod("p0", "unready")
    bare = msgspec.structs.replace(pod.status.conditions[0], last_transition_time=None)
    pod = msgspec.structs.replace(pod, status=msgspec.structs.replace(pod.status, conditions=[bare]))
    with pytest.raises(MetricsError, match="pods might be unready"):
        by_utilization(situation([pod], Given([100]), 1), "cpu", "", 50)


def test_no_amount_per_pod() -> None:
    for custom, error in (
        (None, "unable to fetch metrics from custom metrics API: down"),
        ([], "no metrics returned"),
    ):
        with pytest.raises(MetricsError, match=f"^unable to get metric qps: {error}"):
            by_pods_metric(situation(make_pods(R), Given(custom=custom), 1), QPS, 1)
    with pytest.raises(MetricsError, match="did not receive metrics"):
        by_resource_usage(situation(make_pods(U), Given([100]), 1), "cpu", "", 1)


@pytest.mark.parametrize(
    ("value", "target", "current", "replicas", "average"),
    [
        (20000, 5000, 3, 4, 6667),
        (6000, 2000, 5, 3, 1200),
        (20166, 5000, 4, 4, 5042),
        (8600, 2150, 3, 4, 2867),
        (8600, 2867, 5, 3, 1720),
        (8600, 2900, 3, 3, 2867),
        (MAX_INT64, MAX_INT64, 1, 1, MAX_INT64),
    ],
)
def test_per_pod(value: int, target: int, current: int, replicas: int, average: int) -> None:
    here = situation([], Given(value=value, values=[value]), current)
    assert by_external_per_pod(here, QPS, target) == (replicas, average, None)
    if value < MAX_INT64:
        assert by_object_per_pod(here, QPS, SOME, target) == (replicas, average, None)


def test_per_pod_without_pods_in_the_status() -> None:
    here = situation(make_pods(R), Given(value=5000, values=[5000]), 1, status_replicas=0)
    assert by_object_per_pod(here, QPS, SOME, 1000) == (5, MIN_INT64, None)
    assert by_external_per_pod(here, QPS, 1000) == (5, MIN_INT64, None)


def test_sums_of_external_values_stop_at_the_largest_integer() -> None:
    here = situation(make_pods(R), Given(values=[MAX_INT64, 5, 7]), 1)
    assert by_external(here, QPS, 1).measured == MAX_INT64
    assert by_external_per_pod(here, QPS, 1) == (MAX_INT32, MAX_INT64, None)
    here = situation(make_pods(R), Given(values=[-5000, 7000]), 1)
    assert by_external(here, QPS, 1000) == (2, 2000, None)
    assert (
        by_external_per_pod(here, QPS, 1000).measured == MAX_INT64
    )  # Go takes a negative sum for an overflow
