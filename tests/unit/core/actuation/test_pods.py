"""Which pods are resized now, and in which order: `hvpa.core.actuation.pods`."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Any, Final

import pytest

from builders.build import NOW, at, container, decided, hvpa, merged, objects, stamp, vpa, workload
from hvpa.api.hvpa.progress import DesiredSize, RecommendedContainer
from hvpa.api.objects.read_models import Pod
from hvpa.core import Settings, observe
from hvpa.core.actuation.pods import resize_pods
from hvpa.core.gates.gates import GateContext
from hvpa.core.model import Decision
from hvpa.core.values.clock import Clock
from tests.unit.core.actuation.sized_pods import (
    LARGER,
    REQUESTS,
    RESTARTS,
    actuation,
    decision,
    infeasible,
    out_of_memory,
    patches_template,
    ready_of,
    resize_condition,
    resized,
    running,
)

SMALLER: Final = {"cpu": "500m", "memory": "512Mi"}
CPU_ONLY: Final = {"requests": {"cpu": "2", "memory": "1Gi"}}
CLOSED: Final = {"begin": "220000+0000", "end": "230000+0000"}
OPEN: Final = {"begin": "090000+0000", "end": "110000+0000"}
IN_PLACE: Final = {"type": "InPlace"}
JOB: Final = [{"kind": "Job", "name": "import", "uid": "j", "controller": True}]
OR_ROLLOUT: Final = {"type": "InPlaceOrRollout"}


def test_raises_come_first() -> None:
    smaller = running("web-1", {"cpu": "3", "memory": "3Gi"})
    assert list(resized(decision([smaller, running("web-2")]))) == ["web-2", "web-1"]


@pytest.mark.parametrize("mode", ["Recommend", "Paused"])
def test_recommend_and_paused_resize_no_pod(mode: str) -> None:
    outcome = decision([running()], spec={"mode": mode})
    assert not outcome.resizes
    assert outcome.status.desired is not None


@pytest.mark.parametrize(
    ("others", "message"),
    [
        ({}, ""),
        ({"x-1": JOB}, "pod x-1: matches the selector but belongs to Job import, so HVPA does not resize it"),
        (
            {"x-2": JOB, "x-1": []},
            "pod x-1 (and 1 more pods): matches the selector but has no controller, so HVPA does not resize it",
        ),
    ],
)
def test_pods_of_other_owners_are_named_and_left_alone(
    others: Mapping[str, Sequence[Any]], message: str
) -> None:
    pending = resize_condition("Pending", "Deferred", minutes=1)
    own = running("web-1", LARGER, {"requests": REQUESTS}, conditions=[pending])
    over = running("x-0", change={"metadata": {"ownerReferences": JOB}, "status": {"phase": "Succeeded"}})
    of_others = [
        running(name, change={"metadata": {"ownerReferences": owners}}) for name, owners in others.items()
    ]
    outcome = decision([own, over, *of_others])
    assert (actuation(outcome).resized, outcome.resizes) == ("0/1", ())
    reasons = ["pod web-1: the kubelet says Deferred", *([message] if message else [])]
    assert actuation(outcome).message == "; ".join(reasons)


def test_update_strategy_max_unavailable_limits_containers_that_restart() -> None:
    restarting = {"resizePolicy": RESTARTS}
    pods = [running(f"web-{number}", more=restarting) for number in range(8)]
    under_way = running("web-0", LARGER, {"requests": REQUESTS}, more=restarting)
    down = running("web-0", ready=False, more=restarting)
    strategy = {"maxUnavailable": 1}
    assert list(resized(decision(pods))) == ["web-0", "web-1"]
    assert list(resized(decision(pods, strategy=strategy))) == ["web-0"]
    assert list(resized(decision([under_way, *pods[1:]]))) == ["web-1"]
    assert list(resized(decision([down, *pods[1:]], strategy=strategy))) == ["web-0"]
    # A single replica is resized as well, which VPA's updater left alone (kubernetes/autoscaler#9157, #8609).
    assert list(resized(decision(pods[:1], strategy=strategy))) == ["web-0"]
    assert len(resized(decision(pods, CPU_ONLY))) == 8, "it restarts nothing"


# --- the next rung ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("strategy", [IN_PLACE, OR_ROLLOUT], ids=lambda strategy: strategy["type"])
@pytest.mark.parametrize(
    ("pods", "size"),
    [
        # kubernetes/autoscaler#8720
        ([infeasible(), running("web-2", LARGER)], None),
        # Pods without requests keep their QoS class. A rollout gives them requests, once: #9374
        ([running(requests={}, has={})], None),
        # A memory limit that can't be lowered ends after the timeout: #8434
        (
            [
                running(
                    requests=SMALLER,
                    limits={"cpu": "2", "memory": "800M"},
                    has={"requests": SMALLER, "limits": {"cpu": "2", "memory": "1G"}},
                    conditions=[resize_condition("InProgress", "Error", minutes=6)],
                )
            ],
            {"requests": SMALLER, "limits": {"cpu": "2", "memory": "800M"}},
        ),
    ],
    ids=["infeasible", "BestEffort", "too late"],
)
def test_update_strategy_type_in_place_or_rollout_replaces_stuck_pods(
    pods: Sequence[Pod], size: Mapping[str, Any] | None, strategy: Mapping[str, str]
) -> None:
    outcome = decision(pods, size, strategy, since=at(minutes=-6))
    assert patches_template(outcome) == (strategy is OR_ROLLOUT)
    if size is not None:
        assert ready_of(outcome)[0] == "PodsNotResized"
        assert ready_of(outcome)[1].startswith("pod web-1: ")


def test_what_vpa_is_to_know_before_it_evicts_holds_no_resize() -> None:
    """`evictionRequirements` of the VPA that is read, which evicts nothing itself (kubernetes/autoscaler#10181)."""
    required = [{"resources": ["cpu", "memory"], "changeRequirement": "TargetHigherThanRequests"}]
    policy = {"spec": {"updatePolicy": {"updateMode": "Off", "evictionRequirements": required}}}
    outcome = decision([running()], {"requests": SMALLER}, vertical=vpa({"app": SMALLER}, policy))
    assert resized(outcome) == {"web-1": {"requests": SMALLER}}


# --- what waits for something other than the kubelet -----------------------------------------------------------------
def scaling(direction: str, mode: str, window: Mapping[str, str] = CLOSED) -> dict[str, Any]:
    policy = {direction: {"updatePolicy": {"updateMode": mode}}}
    return {"vpa": policy, "maintenanceTimeWindow": window}


IN_WINDOW: Final = scaling("scaleUp", "MaintenanceWindow")
AT_TEN: Final = "held by MaintenanceWindow until 2026-11-21T22:00:00Z"


@pytest.mark.parametrize(
    ("spec", "size", "why"),
    [
        (IN_WINDOW, LARGER, AT_TEN),
        (scaling("scaleUp", "MaintenanceWindow", OPEN), LARGER, ""),
        (scaling("scaleDown", "MaintenanceWindow"), LARGER, ""),
        (scaling("scaleDown", "MaintenanceWindow"), SMALLER, AT_TEN),
        (scaling("scaleDown", "MaintenanceWindow", OPEN), SMALLER, ""),
        (scaling("scaleUp", "Off"), LARGER, "held by UpdatePolicy"),
        (scaling("scaleDown", "Off"), {"cpu": "2", "memory": "512Mi"}, "held by UpdatePolicy"),
    ],
)
def test_maintenance_window_and_update_policy_hold_a_size_decided_before(
    spec: Mapping[str, Any], size: Mapping[str, str], why: str
) -> None:
    outcome = decision([running()], {"requests": size}, spec=spec)
    assert (not outcome.resizes) == bool(why)
    assert (actuation(outcome).waiting, actuation(outcome).message) == (1, why and f"pod web-1: {why}")
    if why == AT_TEN:
        assert outcome.recheck_after is not None
        assert outcome.recheck_after <= dt.timedelta(hours=12)


@pytest.mark.parametrize(
    "one",
    [
        running("web-2", change={"metadata": {"creationTimestamp": stamp(at(seconds=-30))}}),
        out_of_memory("web-2"),
    ],
    ids=["created after the decision", "ran out of memory"],
)
def test_maintenance_window_does_not_hold_new_pods_and_out_of_memory(one: Pod) -> None:
    assert list(resized(decision([running(), one], spec=IN_WINDOW))) == ["web-2"]


def test_maintenance_window_holds_the_other_pods_though_one_ran_out_of_memory() -> None:
    outcome = decision([running(), out_of_memory("web-2", requests=LARGER)], spec=IN_WINDOW)
    assert (outcome.resizes, actuation(outcome).message) == ((), f"pod web-1: {AT_TEN}")


def test_out_of_memory_pod_gets_its_new_size_first() -> None:
    """And no pod is replaced for it (kubernetes/autoscaler#10174)."""
    outcome = decision([running("web-0"), out_of_memory(), running("web-2")], strategy=OR_ROLLOUT)
    assert list(resized(outcome)) == ["web-1"]
    assert not patches_template(outcome)
    assert actuation(outcome).message == (
        "pod web-0 (and 1 more pods): pod web-1, which ran out of memory, gets its new size first"
    )


@pytest.mark.parametrize(
    "first",
    [out_of_memory(requests=LARGER), out_of_memory(minutes=60), running("web-1", LARGER)],
    ids=["has its new size", "ran out of memory long before", "did not run out of memory"],
)
def test_out_of_memory_other_pods_follow_once_the_first_is_confirmed(first: Pod) -> None:
    resizes = resized(decision([running("web-0"), first, running("web-2")]))
    assert resizes.keys() - {"web-1"} == {"web-0", "web-2"}


@pytest.mark.parametrize(
    ("condition", "size"),
    [
        ([resize_condition("Pending", "Infeasible")], None),
        ([], CPU_ONLY),
    ],
    ids=["that pod can't be resized", "only CPU is raised"],
)
def test_a_pod_that_ran_out_of_memory_does_not_hold_up_the_others(
    condition: Sequence[Mapping[str, Any]], size: Mapping[str, Any] | None
) -> None:
    asked = (size or {"requests": LARGER})["requests"]
    first = out_of_memory(requests=asked, has={"requests": {"cpu": "1"}}, conditions=condition)
    assert list(resized(decision([running("web-0"), first], size, OR_ROLLOUT))) == ["web-0"]


def test_maintenance_window_does_not_hold_out_of_memory_raises_in_place() -> None:
    def starving(**spec: Any) -> Decision:
        manifest = hvpa(merged({"hpa": {"deploy": False}, **IN_WINDOW}, spec))
        pods = [out_of_memory(minutes=1), running("web-0")]
        return decided(objects(manifest, workload(2), None, vpa({"app": {"memory": "2Gi"}}), pods))

    assert list(resized(starving(updateStrategy=IN_PLACE))) == ["web-1"]
    assert starving().workload_patch is None


@pytest.mark.parametrize(("window", "is_patched"), [(CLOSED, False), (OPEN, True)])
def test_maintenance_window_holds_the_template_as_well(window: Mapping[str, str], is_patched: bool) -> None:
    spec = scaling("scaleDown", "MaintenanceWindow", window)
    outcome = decision([infeasible(requests=SMALLER)], {"requests": SMALLER}, OR_ROLLOUT, spec=spec)
    assert patches_template(outcome) == is_patched


def test_containers_that_are_alike_change_alike() -> None:
    both = {"spec": {"containers": [container(name, REQUESTS) for name in ("app", "side")]}}
    desired = DesiredSize(
        replicas=1,
        containers=tuple([RecommendedContainer(name=name, requests=LARGER) for name in ("app", "side")]),
        since=at(hours=-1),
    )
    observation = observe(
        objects(
            hvpa({"updateStrategy": IN_PLACE}), workload(1), None, vpa({}), [running("web-0", change=both)]
        ),
        NOW,
        Settings(),
    )
    assert observation.spec is not None
    resizing = resize_pods(GateContext(Clock(NOW), observation.spec, is_settled=True), observation, desired)
    (resize,) = resizing.resizes
    assert [entry["name"] for entry in resize.body["spec"]["containers"]] == ["app", "side"]  # type: ignore[index]
