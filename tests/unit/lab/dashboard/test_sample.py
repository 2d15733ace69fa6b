"""Numbers for the charts: demand, capacity and usage in the same unit, over the same containers."""

from __future__ import annotations

from typing import Any

from hvpa.cli.input.gather import gather
from hvpa.cli.status import view_of
from hvpa.core.model import Objects
from hvpa.kube.objects.usage import Usage
from hvpa_lab.dashboard.sample import sample
from tests.unit.cli.support import Doc, Shell, without
from tests.unit.lab.dashboard import shop

GIB = 2**30
USAGE: Usage = {
    ("shop-1", "app"): {"cpu": 900, "memory": 600},
    ("shop-2", "app"): {"cpu": 800, "memory": 500},
    ("another", "app"): {"cpu": 5000, "memory": 1},
}


def objects(shell: Shell, documents: list[Doc]) -> Objects:
    return gather([shell.file(documents)], None).objects


def sampled(shell: Shell, documents: list[Doc], usage: Usage = USAGE) -> Any:
    gathered = objects(shell, documents)
    observation, decision = shop.decided(gathered)
    return sample(view_of(gathered, observation), decision, usage)


def test_two_pods_at_ninety_percent_of_a_target_of_fifty_have_a_demand_of_3600m(shell: Shell) -> None:
    point = sampled(shell, shop.documents())
    assert point["cpu"] == {"demand": 3600, "capacity": 2000, "used": 1700}
    assert point["memory"] == {"demand": None, "capacity": 2 * GIB, "used": 1100}
    assert point["replicas"] | {"wanted": 0} == {"current": 2, "ready": 2, "desired": 2, "wanted": 0}
    assert point["sizes"] == {"app": {"cpu": 1000, "memory": GIB}}
    assert point["used"] == {"app": {"cpu": 1700, "memory": 1100}}


def test_what_pods_use_before_any_work_is_part_of_demand_as_it_is_of_capacity(shell: Shell) -> None:
    base = {"baseResourcesPerReplica": {"cpu": {"value": "100m"}}}
    point = sampled(shell, shop.documents(trajectory=base))
    assert point["cpu"] == {"demand": 3600, "capacity": 2000, "used": 1700}


def test_with_blend_additive_demand_is_what_the_metric_calls_for(shell: Shell) -> None:
    point = sampled(shell, shop.documents(blend="Additive"))
    assert point["cpu"]["demand"] == 3600
    assert point["memory"]["demand"] is None


def test_without_an_hpa_metrics_and_pods_nothing_is_made_up(shell: Shell) -> None:
    point = sampled(shell, without(shop.documents(), "HPA", "Pod"), {})
    nothing = {"demand": None, "capacity": None, "used": None}
    assert (point["cpu"], point["memory"], point["sizes"], point["used"]) == (nothing, nothing, {}, {})
    point = sampled(shell, without(shop.documents(blend="Additive"), "HPA"), {})
    assert point["cpu"] == {"demand": None, "capacity": 2000, "used": None}


def test_without_a_workload_there_are_no_counts(shell: Shell) -> None:
    point = sampled(shell, without(shop.documents(), "Deployment"))
    assert point["replicas"] == {"current": None, "ready": None, "desired": None, "wanted": None}
