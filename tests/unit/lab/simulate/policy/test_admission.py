"""The VPA's webhook. Numbers of `utils/vpa/limit_and_request_scaling_test.go` and `capping_test.go`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from hvpa.api.objects.read_models import ContainerRecommendation, Recommendation, Vpa, VpaMeta, VpaStatusRead
from hvpa.api.values.quantity import Resource
from hvpa.core.model import ResourceRequirements
from hvpa_lab.simulate.policy.admission import admitted, proportional_limit, recommended, update_mode

MIB = 1024 * 1024
Given = Mapping[Resource, int]


def vpa(*recommendations: ContainerRecommendation, mode: str | None = "Recreate", **policy: Any) -> Vpa:
    spec: dict[str, Any] = {"resourcePolicy": {"containerPolicies": [{"containerName": "app", **policy}]}}
    if mode is not None:
        spec["updatePolicy"] = {"updateMode": mode}
    recommendation = (
        Recommendation(container_recommendations=list(recommendations)) if recommendations else None
    )
    return Vpa(
        metadata=VpaMeta(name="app"),
        raw_spec=msgspec.Raw(msgspec.json.encode(spec)),
        status=VpaStatusRead(recommendation=recommendation),
    )


APP = ContainerRecommendation(
    container_name="app",
    target={"cpu": "300m", "memory": "400Mi"},
    lower_bound={"cpu": "200m", "memory": "300Mi"},
    upper_bound={"cpu": "2", "memory": "2Gi"},
)


def pod(requests: Given, limits: Given | None = None) -> dict[str, ResourceRequirements]:
    return {"app": ResourceRequirements(requests, limits or {})}


@pytest.mark.parametrize(
    ("limit", "request_", "wanted", "expected"),
    [
        (2000, 1000, 10_000, 20_000),
        (0, 1000, 10_000, None),
        (2000, 0, 10_000, 10_000),
        (2000, 1000, 0, None),
        (1000, 1000, 10_000, 10_000),
        (2000, 1500, 1000, 1333),
        (200, 150, 100, 133),
    ],
)
def test_limits_keep_their_proportion(limit: int, request_: int, wanted: int, expected: int | None) -> None:
    assert proportional_limit(limit, request_, wanted) == expected


class TestAdmitted:
    def test_requests_as_recommended_and_limits_in_proportion(self) -> None:
        template = pod({"cpu": 100, "memory": 100 * MIB}, {"cpu": 200, "memory": 100 * MIB})
        assert admitted(template, vpa(APP)) == pod(
            {"cpu": 300, "memory": 400 * MIB}, {"cpu": 600, "memory": 400 * MIB}
        )

    def test_without_limits_none_is_set(self) -> None:
        assert admitted(pod({}), vpa(APP)) == pod({"cpu": 300, "memory": 400 * MIB})

    def test_only_requests(self) -> None:
        template = pod({"cpu": 100, "memory": 100 * MIB}, {"cpu": 200, "memory": 1024 * MIB})
        resources = admitted(template, vpa(APP, controlledValues="RequestsOnly"))
        assert resources == pod({"cpu": 200, "memory": 400 * MIB}, {"cpu": 200, "memory": 1024 * MIB})

    def test_a_resource_without_recommendation_stays(self) -> None:
        only = ContainerRecommendation(container_name="app", target={"cpu": "300m"})
        template = pod({"cpu": 100, "memory": 100 * MIB}, {"cpu": 100, "memory": 200 * MIB})
        resources = admitted(template, vpa(only))
        assert resources == pod({"cpu": 300, "memory": 100 * MIB}, {"cpu": 300, "memory": 200 * MIB})

    def test_other_containers_stay(self) -> None:
        template = {**pod({"cpu": 100}), "log": ResourceRequirements({"cpu": 5}, {})}
        other = ContainerRecommendation(container_name="gone", target={"cpu": "1"})
        resources = admitted(template, vpa(other, APP))
        assert resources["log"] is template["log"]
        assert resources["app"].requests["cpu"] == 300
        assert set(resources) == {"app", "log"}

    @pytest.mark.parametrize(
        ("mode", "acts"), [("Off", False), ("Initial", True), ("Auto", True), ("", True)]
    )
    def test_any_mode_but_off(self, mode: str, acts: bool) -> None:
        template = pod({"cpu": 100})
        assert (admitted(template, vpa(APP, mode=mode)) != template) is acts

    def test_without_a_recommendation_nothing_changes(self) -> None:
        template = pod({"cpu": 100}, {"cpu": 200})
        assert admitted(template, vpa(minAllowed={"cpu": "1"})) == template


class TestRecommended:
    def test_policies_bound_all_three(self) -> None:
        requests = recommended(
            pod({}), vpa(APP, minAllowed={"cpu": "250m"}, maxAllowed={"cpu": "1", "memory": "350Mi"})
        )["app"]
        assert requests.target == {"cpu": 300, "memory": 350 * MIB}
        assert requests.lower == {"cpu": 250, "memory": 300 * MIB}
        assert requests.upper == {"cpu": 1000, "memory": 350 * MIB}

    def test_the_most_counts_where_the_least_is_above_it(self) -> None:
        requests = recommended(pod({}), vpa(APP, minAllowed={"cpu": "3"}, maxAllowed={"cpu": "2"}))
        assert requests["app"].target["cpu"] == 2000

    def test_limits_bound_where_only_requests_are_controlled(self) -> None:
        requests = recommended(pod({}, {"cpu": 250}), vpa(APP, controlledValues="RequestsOnly"))["app"]
        assert (requests.target["cpu"], requests.lower["cpu"], requests.upper["cpu"]) == (250, 200, 250)


@pytest.mark.parametrize(
    ("mode", "expected"), [(None, "Recreate"), ("", "Recreate"), ("Off", "Off"), ("Auto", "Auto")]
)
def test_the_default_mode_is_recreate(mode: str | None, expected: str) -> None:
    assert update_mode(vpa(mode=mode)) == expected
