"""Only the pods of Hvpas with `spec.fastSignal` are polled, and what kubelets report of them is decided on."""

from __future__ import annotations

from typing import Any

import pytest

from builders import build
from hvpa.core.model import FastUsage, PodUsage
from tests.unit.core.actuation.sized_pods import running
from tests.unit.reconcile.fakes import KEY, Harness

SIZE = {"cpu": "1", "memory": "1G"}
FAST: dict[str, Any] = {
    "hpa": {"deploy": False},
    "updateStrategy": {"type": "InPlace"},
    "fastSignal": {"mode": "Raise"},
}
SLOW = FAST | {"fastSignal": {"mode": "Off"}}
PAUSED = FAST | {"mode": "Paused"}


def harness(spec: dict[str, Any]) -> Harness:
    pods = [running(f"web-{number}", SIZE) for number in range(2)]
    target = build.workload(2, [build.container(requests=SIZE)])
    return Harness(build.objects(build.hvpa(spec), target, None, build.vpa({"app": SIZE}), pods))


def test_pods_are_raised_at_once_for_what_their_kubelets_report() -> None:
    web = harness(FAST)
    web.cluster.reported = FastUsage(
        build.NOW, {(f"web-{number}", "app"): PodUsage(1200, build.NOW) for number in range(2)}
    )
    web.reconcile()
    assert web.cluster.polled == [("web-0", "web-1")]
    (resizes,) = web.written("resizes")
    cpu = [resize.body["spec"]["containers"][0]["resources"]["requests"]["cpu"] for resize in resizes]
    assert cpu == ["1715m", "1715m"]


@pytest.mark.parametrize("spec", [SLOW, PAUSED], ids=["off", "paused"])
def test_pods_of_other_hvpas_are_never_polled(spec: dict[str, Any]) -> None:
    web = harness(spec)
    web.reconcile()
    web.reconciler.forget(KEY)
    assert web.cluster.polled == []


def test_polling_ends_with_the_field_and_with_the_hvpa() -> None:
    web = harness(FAST)
    web.reconcile()
    web.change(hvpa=build.hvpa(SLOW))
    web.reconcile()
    web.reconcile()
    assert web.cluster.polled == [("web-0", "web-1"), ()]
    web.change(hvpa=build.hvpa(FAST))
    web.reconcile()
    web.cluster.one = None
    web.reconcile()
    assert web.cluster.polled[2:] == [("web-0", "web-1"), ()]
