"""Policies with several targets, and which of them is enough."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hvpa.api.values.prices import Prices
from hvpa_lab.simulate.model import Policy, PolicyResult
from hvpa_lab.simulate.policy.base import SimulationError
from hvpa_lab.simulate.report.compare import compare
from hvpa_lab.simulate.scenario.schema import HpaAlone
from hvpa_lab.simulate.sweep import FACTORS, reading, swept, variants
from tests.unit.lab.simulate import build
from tests.unit.lab.simulate.report import results


def utilization(percent: int, resource: str = "cpu", source: str = "resource") -> dict[str, Any]:
    target = {"type": "Utilization", "averageUtilization": percent}
    return {"type": "Resource", source: {"name": resource, "target": target}}


def hpa(*metrics: dict[str, Any]) -> Policy:
    return Policy("mine", "HPA", hpa={"maxReplicas": 5, "metrics": list(metrics)})


def test_an_hpa_is_tried_with_several_targets() -> None:
    policies = variants(hpa(utilization(80), utilization(50, "memory", "containerResource")))
    assert [variant.name for variant in policies] == [
        f"cpu {cpu} %, memory {memory} %: mine"
        for cpu, memory in ((56, 35), (64, 40), (72, 45), (80, 50), (88, 55), (96, 60))
    ]
    metrics: Any = policies[0].hpa and policies[0].hpa["metrics"]
    assert metrics == [utilization(56), utilization(35, "memory", "containerResource")]
    assert policies[0].hpa is not None
    assert policies[0].hpa["maxReplicas"] == 5


def test_no_utilization_goes_above_100_percent() -> None:
    assert [variant.name for variant in variants(hpa(utilization(95)))] == [
        "cpu 66 %: mine",
        "cpu 76 %: mine",
        "cpu 86 %: mine",
        "cpu 95 %: mine",
    ]
    assert [variant.name for variant in variants(hpa(utilization(150)))] == [
        "cpu 105 %: mine",
        "cpu 120 %: mine",
        "cpu 135 %: mine",
        "cpu 150 %: mine",
    ], "nor above what is given"


def test_an_hvpa_is_tried_with_other_amounts_and_keeps_the_rest() -> None:
    policy = Policy("joint", "Hvpa", hvpa=build.hvpa(blend="Trajectory"))
    policies = variants(policy)
    assert [variant.name.partition(":")[0] for variant in policies] == [
        "cpu 280m",
        "cpu 320m",
        "cpu 360m",
        "cpu 400m",
        "cpu 440m",
        "cpu 480m",
    ]
    assert policies[FACTORS.index(1.0)].hvpa == policy.hvpa
    spec: Any = policies[0].hvpa and policies[0].hvpa["spec"]
    assert spec["hpa"]["template"]["spec"]["metrics"][0]["resource"]["target"]["averageValue"] == "280m"


def test_what_has_no_such_target_is_left_out_and_refused_where_nothing_is_left() -> None:
    other = {
        "type": "External",
        "external": {"metric": {"name": "load"}, "target": {"type": "Value", "value": 1}},
    }
    none = [hpa(other), Policy("vpa", "VPA", vpa={}), Policy("hvpa", "Hvpa", hvpa={"spec": {"hpa": {}}})]
    assert [variants(policy) for policy in none] == [[], [], []]
    scenario = build.scenario(policies=(*none, hpa(other, utilization(50))))
    assert len(swept(scenario).policies) == len(FACTORS)
    with pytest.raises(SimulationError, match="test: no policy has an HPA with a CPU or memory target"):
        swept(replace(scenario, policies=tuple(none)))


@given(st.integers(1, 10**6), st.sampled_from(["cpu", "memory"]), st.booleans())
def test_every_variant_is_a_policy_that_can_be_read(amount: int, resource: str, rel: bool) -> None:
    target = {"type": "AverageValue", "averageValue": f"{amount}{'m' if resource == 'cpu' else ''}"}
    metric = {"type": "Resource", "resource": {"name": resource, "target": target}}
    if rel:
        metric = utilization(amount % 100 + 1, resource)
    policies = variants(hpa(metric))
    assert 1 <= len(policies) <= len(FACTORS)
    for variant in policies:
        HpaAlone.model_validate(variant.hpa, by_alias=True, by_name=False)


def result(name: str, core_hours: float, unmet: float) -> PolicyResult:
    totals = msgspec.structs.replace(
        results.TOTALS, core_hours_requested=core_hours, gib_hours_requested=0.0, unmet_demand_share=unmet
    )
    return replace(results.policy(name), totals=totals)


def test_the_cheapest_that_serves_enough_is_read_off() -> None:
    policies = (result("a", 10, 0.0), result("b", 8, 0.0009), result("c", 5, 0.02))
    compared = compare(replace(results.result(), policies=policies), Prices(1, 1))
    assert (
        reading(compared, 0.001)
        == "The cheapest with at most 0.10 % unmet demand is b (cost 8.000, 0.09 % unmet)."
    )
    assert reading(compared, 0.0).startswith("The cheapest with at most 0 % unmet demand is a (cost 10")
    short = compare(replace(results.result(), policies=policies[1:]), Prices(1, 1))
    assert (
        reading(short, 0.0)
        == "No policy leaves at most 0 % of the demand unmet; the closest is b (0.09 % unmet)."
    )
