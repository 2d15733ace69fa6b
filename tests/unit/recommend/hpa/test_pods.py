"""The pods that the HPA keeps from one sync to the next."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence

import pytest

from hvpa.api.objects.read_models import Pod
from hvpa.recommend.hpa.controller import HorizontalAutoscaler, HpaOutcome, HpaSettings, Scale
from tests.unit.recommend.hpa.world import NOW, SELECTOR, Given, make_hpa, make_pods

STATES = ("ready", "starting", "unready", "was-ready", "blank", "pending", "failed", "succeeded", "deleted")
USAGE: Sequence[int | None] = (900, 800, 700, 600, 500, None, 400, 300, 200)


def outcomes(pods: Sequence[Pod], minutes: Sequence[int], selector: str = SELECTOR) -> list[HpaOutcome]:
    """What one controller says of these pods at some minutes from now, without stabilization."""
    controller = HorizontalAutoscaler(HpaSettings(downscale_stabilization=0.0))
    scale = Scale(len(pods), len(pods), selector)
    return [
        controller.sync(make_hpa(), scale, pods, Given(USAGE), NOW + dt.timedelta(minutes=one))
        for one in minutes
    ]


@pytest.mark.parametrize(
    "minutes",
    [
        pytest.param((0, 1, 4, 5, 6, 60), id="pods settle while time goes on"),
        pytest.param((60, 6, 0, 5), id="a clock that is set back"),
    ],
)
def test_pods_that_are_kept_count_as_those_that_are_seen_anew(minutes: Sequence[int]) -> None:
    pods = make_pods(*STATES)
    assert outcomes(tuple(pods), minutes) == outcomes(pods, minutes)


def test_pods_settle_when_their_start_is_over() -> None:
    pods = tuple(make_pods("ready", "starting"))
    controller = HorizontalAutoscaler()
    metrics, scale = Given((500, 5000)), Scale(2, 2, SELECTOR)
    found = [
        controller.sync(make_hpa(), scale, pods, metrics, NOW + dt.timedelta(minutes=one)).replicas
        for one in (-1, 5, 6)
    ]
    assert found[0] is None, "the reading is of before the pod was ready"
    assert found[1:] == [4, 4]


def test_other_pods_or_another_selector_are_looked_at_anew() -> None:
    controller = HorizontalAutoscaler()
    metrics, pods = Given((500, 5000)), tuple(make_pods("ready", "ready"))
    asked = [(pods, SELECTOR), (pods[:1], SELECTOR), (pods, SELECTOR), (pods, "app=other"), (pods, SELECTOR)]
    found = []
    for some, selector in asked:
        found.append(controller.sync(make_hpa(), Scale(2, 2, selector), some, metrics, NOW).replicas)
    assert found[0] == found[2] == found[4] == 4
    assert found[3] is None, "no pods"
