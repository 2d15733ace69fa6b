"""What users of VPA reported about resizes in place (kubernetes/autoscaler, by number), and what happens instead."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from builders.build import at, decided, hvpa, merged, objects, stamp, vpa, workload
from hvpa.core.model import Decision
from tests.unit.core.actuation.test_pods import LARGER, REQUESTS, decision, resize_condition, resized, running

IN_PLACE = {"updateStrategy": {"type": "InPlace"}}
OR_ROLLOUT = {"updateStrategy": {"type": "InPlaceOrRollout"}}


def patches_template(found: Decision) -> bool:
    """Whether the workload's pods are to be replaced, the only way in which a pod ends here."""
    return found.workload_patch is not None and not found.workload_patch.is_scale


def infeasible(generation: int = 2) -> Any:
    return running(
        requests=LARGER,
        has={"requests": REQUESTS},
        conditions=[resize_condition("PodResizePending", "Infeasible", generation, minutes=1)],
    )


@pytest.mark.parametrize("kind", [IN_PLACE, OR_ROLLOUT])
def test_9157_pods_at_the_least_count_are_resized(kind: Mapping[str, Any]) -> None:
    """VPA's updater left workloads below its own minReplicas (2) alone, though nothing had to be evicted."""
    found = decision([running()], spec=kind)
    assert set(resized(found)) == {"web-1"}
    assert not patches_template(found)


def test_8609_a_single_pod_is_resized_also_where_no_disruption_is_allowed() -> None:
    found = decision([running()], strategy={"maxUnavailable": 1})
    assert set(resized(found)) == {"web-1"}


def test_8720_in_place_means_that_no_pod_is_replaced_when_that_fails() -> None:
    found = decision([infeasible(), running("web-2", LARGER)], spec=IN_PLACE)
    assert not patches_template(found)
    assert patches_template(decision([infeasible(), running("web-2", LARGER)], spec=OR_ROLLOUT))


def test_10181_what_vpa_is_to_know_before_it_evicts_holds_no_resize() -> None:
    """`evictionRequirements` of the VPA that is read; it evicts nothing itself."""
    required = [{"resources": ["cpu", "memory"], "changeRequirement": "TargetHigherThanRequests"}]
    policy = {"spec": {"updatePolicy": {"updateMode": "Off", "evictionRequirements": required}}}
    smaller = {"requests": {"cpu": "500m", "memory": "500M"}}
    since = stamp(at(minutes=-1))
    desired = {"replicas": 1, "containers": [{"name": "app", **smaller}], "since": since, "generation": 1}
    status = {"desired": desired, "axes": {"vertical": {"lastScaleTime": since}}}
    one = hvpa(merged(IN_PLACE, {"hpa": {"deploy": False}}), status)
    recommended = vpa({"app": smaller["requests"]}, policy)
    found = decided(objects(one, workload(1), None, recommended, [running()]))
    assert resized(found) == {"web-1": smaller}


def test_10093_that_a_size_was_infeasible_is_forgotten_with_the_spec_it_was_said_of() -> None:
    found = decision([infeasible(generation=1)])
    assert found.status.actuation is not None
    assert (found.status.actuation.infeasible, found.status.actuation.in_progress) == (0, 1)


@pytest.mark.parametrize("kind", [IN_PLACE, OR_ROLLOUT])
def test_9374_pods_without_requests_are_left_alone_in_place(kind: Mapping[str, Any]) -> None:
    """Their QoS class can't be changed. Where the user allows a rollout, that gives them requests, once."""
    found = decision([running(requests={}, has={})], spec=kind)
    assert not found.resizes
    assert patches_template(found) == (kind is OR_ROLLOUT)


@pytest.mark.parametrize(("kind", "replaced"), [(IN_PLACE, False), (OR_ROLLOUT, True)])
def test_8434_a_memory_limit_that_can_not_be_lowered_ends_after_the_timeout(
    kind: Mapping[str, Any], replaced: bool
) -> None:
    size = {"requests": {"cpu": "1", "memory": "500M"}, "limits": {"cpu": "2", "memory": "800M"}}
    error = resize_condition("PodResizeInProgress", "Error", minutes=6)
    had = {"requests": {"cpu": "1", "memory": "500M"}, "limits": {"cpu": "2", "memory": "1G"}}
    pod = running(requests=size["requests"], limits=size["limits"], has=had, conditions=[error])
    found = decision([pod], size, since=at(minutes=-6), spec=kind)
    assert patches_template(found) == replaced
    ready = next(one for one in found.status.conditions if one.type == "Ready")
    assert (ready.status, ready.reason) == ("False", "PodsNotResized")
    assert ready.message.startswith("pod web-1: ")


def test_10174_of_pods_one_of_which_ran_out_of_memory_that_one_is_resized_and_none_replaced() -> None:
    ended = {"reason": "OOMKilled", "exitCode": 137, "finishedAt": stamp(at(minutes=-1))}
    killed = {
        "status": {
            "containerStatuses": [
                {
                    "name": "app",
                    "restartCount": 1,
                    "resources": {"requests": REQUESTS},
                    "lastState": {"terminated": ended},
                }
            ]
        }
    }
    found = decision([running("web-0"), running("web-1", change=killed), running("web-2")], spec=OR_ROLLOUT)
    assert list(resized(found)) == ["web-1"]
    assert not patches_template(found)


def test_7229_a_native_sidecar_keeps_its_size_and_counts_for_the_class() -> None:
    """VPA 1.7's recommender takes no samples of init containers, so nobody says what a sidecar needs. With a sidecar's
    requests a pod is not BestEffort, so that its container may get some."""
    sidecar = {"name": "proxy", "restartPolicy": "Always", "resources": {"requests": {"cpu": "50m"}}}
    beside: Mapping[str, Any] = {"spec": {"initContainers": [sidecar]}}
    assert resized(decision([running(change=beside)])) == {"web-1": {"requests": LARGER}}
    bare = decision([running(requests={}, has={}, change=beside)])
    assert resized(bare) == {"web-1": {"requests": LARGER}}
