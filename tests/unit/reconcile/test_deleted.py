"""An Hvpa that is deleted leaves neither boosts nor deletion costs in its pods, and gives back what it adopted."""

from __future__ import annotations

from typing import Any

import pytest

from builders import build
from hvpa.core.actuation.removal import LACKS
from hvpa.core.model import DELETION_COST, PodCost
from hvpa.reconcile.ports import Conflict, Refused, Unavailable
from tests.unit.core.actuation.sized_pods import LARGER, running, size_status
from tests.unit.core.actuation.starting_pods import BOOST, DOWN, HAD, SIZE, starting
from tests.unit.reconcile.fakes import Harness

IN_PLACE: Any = {"hpa": {"deploy": False}, "updateStrategy": {"type": "InPlace", "podDeletionCost": "BySize"}}


def boosted(mode: str = "Apply", **failures: Exception) -> Harness:
    """One pod has more CPU for its start, another has started, and a third lacks the decided size."""
    spec = {**IN_PLACE, "startupBoost": [BOOST], "mode": mode}
    hvpa = build.hvpa(spec, {**size_status(3, {"app": SIZE}), **HAD})
    pods = [starting(), running("web-2"), running("web-3", LARGER)]
    web = build.workload(3)
    return Harness(build.objects(hvpa, web, None, build.vpa({"app": SIZE["requests"]}), pods), **failures)


def delete(web: Harness) -> str:
    web.cluster.one = None
    return web.reconcile().outcome


def ended(web: Harness) -> list[tuple[str, Any]]:
    return [
        (resize.pod, resize.body["spec"]["containers"][0]["resources"])
        for resizes in web.written("resizes")
        for resize in resizes
    ]


@pytest.mark.parametrize("mode", ["Apply", "Review"])
def test_the_boosts_of_a_deleted_hvpa_end(mode: str) -> None:
    web = boosted(mode)
    web.reconcile()
    assert ("web-1", DOWN) not in ended(web)
    assert delete(web) == "gone"
    assert ended(web) == [("web-1", DOWN)]
    assert web.names() == ["resizes"]
    assert delete(web) == "gone"
    assert web.names() == []


def test_an_hvpa_that_resizes_nothing_ends_no_boost_when_it_is_deleted() -> None:
    web = boosted("Recommend")
    web.reconcile()
    assert delete(web) == "gone"
    assert web.names() == []


@pytest.mark.parametrize(
    ("error", "outcome"),
    [(Unavailable("no answer"), "failed"), (Refused("no"), "gone"), (Conflict("replaced"), "gone")],
)
def test_the_end_is_tried_again_unless_it_is_refused_or_the_pod_is_another(
    error: Exception, outcome: str
) -> None:
    web = boosted()
    web.reconcile()
    web.cluster.failures["resizes"] = error
    assert delete(web) == outcome
    del web.cluster.failures["resizes"]
    assert delete(web) == "gone"
    assert bool(ended(web)) == (outcome == "failed")


@pytest.mark.parametrize(
    ("mode", "failures"), [("Apply", {}), ("Review", {}), ("Apply", {"costs": Refused("pods is forbidden")})]
)
def test_the_marks_of_a_deleted_hvpa_are_removed(mode: str, failures: dict[str, Exception]) -> None:
    hvpa = build.hvpa({**IN_PLACE, "mode": mode}, size_status(2, {"app": {"requests": LARGER}}))
    marked = running("web-1", change={"metadata": {"annotations": {DELETION_COST: LACKS}}})
    others = running("web-2", change={"metadata": {"annotations": {DELETION_COST: "5"}}})
    for pods in ([running("web-0", LARGER), marked], [marked, others]):
        vpa = build.vpa({"app": LARGER})
        web = Harness(build.objects(hvpa, build.workload(2), None, vpa, pods), **failures)
        web.reconcile()
        assert delete(web) == "gone"
        assert web.written("costs") == [(PodCost("web-1", "web-1", "", None),)]


def test_an_hvpa_without_boosts_and_costs_writes_nothing_when_it_is_deleted() -> None:
    hvpa = build.hvpa({**IN_PLACE, "updateStrategy": {"type": "InPlace"}}, size_status(1, {"app": SIZE}))
    web = Harness(build.objects(hvpa, build.workload(1), None, build.vpa({"app": LARGER}), [running()]))
    web.reconcile()
    assert delete(web) == "gone"
    assert web.names() == []


@pytest.mark.parametrize(
    ("error", "outcome"),
    [(Unavailable("no answer"), "failed"), (Refused("no"), "failed"), (Conflict("changed"), "conflict")],
)
def test_what_a_deleted_hvpa_adopted_is_given_back_and_tried_again_until_it_is(
    error: Exception, outcome: str, caplog: pytest.LogCaptureFixture
) -> None:
    web = Harness(build.objects(), give_back=error)
    web.cluster.has_adopted = True
    assert delete(web) == outcome
    assert web.written("give_back") == []
    web.cluster.failures.clear()
    assert delete(web) == "gone"
    assert web.written("give_back") == ["web"]
