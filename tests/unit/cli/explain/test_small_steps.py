"""`hvpa explain -f` on what reviews found: small steps that restarted pods, waits that were not reported, deadlocks.

Each case is what a user would see of one workload; the numbers are those of the review.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.cli.support import Doc, Shell

LONG_AGO = "2026-11-01T00:00:00Z"
NOW = "2026-11-21T10:00:00Z"


def hvpa(weight: int = 100, status: Doc | None = None, **spec: Any) -> Doc:
    return {
        "apiVersion": "autoscaling.k8s.io/v1alpha1",
        "kind": "Hvpa",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {
            "replicas": 3,
            "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "hpa": {
                "deploy": True,
                "selector": {"matchLabels": {"of": "web"}},
                "template": {
                    "metadata": {"labels": {"of": "web"}},
                    "spec": {"minReplicas": 1, "maxReplicas": 30},
                },
            },
            "vpa": {
                "deploy": True,
                "selector": {"matchLabels": {"of": "web"}},
                "template": {"metadata": {"labels": {"of": "web"}}},
            },
            "weightBasedScalingIntervals": [{"vpaWeight": weight}],
            **spec,
        },
        "status": status or {},
    }


def deployment(replicas: int, requests: Doc, **status: int) -> Doc:
    counts = dict.fromkeys(("replicas", "updatedReplicas", "readyReplicas", "availableReplicas"), replicas)
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop", "generation": 1},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {"spec": {"containers": [{"name": "app", "resources": {"requests": requests}}]}},
        },
        "status": {"observedGeneration": 1, **counts, **status},
    }


def hpa(desired: int, replicas: int, utilization: int, **spec: Any) -> Doc:
    cpu = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}
    current = {"name": "cpu", "current": {"averageUtilization": utilization, "averageValue": "1"}}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web", "namespace": "shop", "labels": {"of": "web"}},
        "spec": {
            "scaleTargetRef": {"apiVersion": "autoscaling.k8s.io/v1alpha1", "kind": "Hvpa", "name": "web"},
            "minReplicas": 1,
            "maxReplicas": 30,
            "metrics": [{"type": "Resource", "resource": cpu}],
            **spec,
        },
        "status": {
            "currentReplicas": replicas,
            "desiredReplicas": desired,
            "currentMetrics": [{"type": "Resource", "resource": current}],
            "conditions": [{"type": "ScalingActive", "status": "True"}],
        },
    }


def vpa(provided: str = "True", **target: str) -> Doc:
    return {
        "apiVersion": "autoscaling.k8s.io/v1",
        "kind": "VerticalPodAutoscaler",
        "metadata": {"name": "web", "namespace": "shop", "labels": {"of": "web"}},
        "spec": {
            "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "updatePolicy": {"updateMode": "Off"},
        },
        "status": {
            "recommendation": {"containerRecommendations": [{"containerName": "app", "target": target}]},
            "conditions": [
                {"type": "RecommendationProvided", "status": provided, "lastTransitionTime": LONG_AGO}
            ],
        },
    }


def pods(count: int, requests: Doc, *, ready: int | None = None, created: str = LONG_AGO) -> list[Doc]:
    """So many pods, of which the first `ready` (all by default) are ready."""
    return [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": f"web-{index}",
                "namespace": "shop",
                "labels": {"app": "web"},
                "creationTimestamp": created,
            },
            "spec": {"containers": [{"name": "app", "resources": {"requests": requests}}]},
            "status": {
                "phase": "Running",
                "conditions": [
                    {
                        "type": "Ready",
                        "status": "True" if ready is None or index < ready else "False",
                        "lastTransitionTime": created,
                    }
                ],
            },
        }
        for index in range(count)
    ]


def applied_from(request: str, target: str, weight: int, **more: Any) -> Doc:
    """A status that remembers a step of CPU an hour ago."""
    record = {"container": "app", "resource": "cpu", "target": target, "weight": weight, "request": request}
    return {"axes": {"vertical": {"lastScaleTime": "2026-11-21T09:00:00Z", "appliedFrom": [record | more]}}}


def pending(since: str) -> list[Doc]:
    return [{"container": "app", "resource": "cpu", "direction": "up", "since": since}]


def vertical(weight: int, request: Doc, target: Doc, status: Doc | None = None) -> list[Doc]:
    """Three pods at rest but for the VPA's target."""
    return [
        hvpa(weight, status),
        deployment(3, request),
        hpa(3, 3, 50),
        vpa(**target),
        *pods(3, request),
    ]


def request_after(explained: Any, resource: str = "cpu") -> str:
    requests: dict[str, str] = explained["containers"]["app"]["requests"]
    return requests[resource]


def holds(explained: Any) -> list[tuple[str, str, str, Any]]:
    return [(one["axis"], one["direction"], one["reason"], one["until"]) for one in explained["blocked"]]


# --- minChange protects against restarts ------------------------------------------------------------------------------
def test_a_millicore_more_restarts_no_pod_however_long_it_is_wanted(shell: Shell) -> None:
    status = applied_from("1", "1", 100)
    status["axes"]["vertical"]["pending"] = pending("2026-11-21T09:40:00Z")
    explained = shell.explain(vertical(100, {"cpu": "1"}, {"cpu": "1001m"}, status))
    assert not explained["changes"]
    assert holds(explained) == [("vertical", "up", "MinChange", None)]


@pytest.mark.parametrize(
    ("request_now", "target", "passes"),
    [
        pytest.param("1", "1100m", True, id="a tenth of the request, and half of minChange"),
        pytest.param("1", "1099m", False, id="less than both"),
        pytest.param("500m", "550m", True, id="a tenth of a small request"),
        pytest.param("500m", "549m", False, id="less than a tenth of it"),
        pytest.param("4", "4100m", True, id="half of minChange of a large request"),
        pytest.param("4", "4099m", False, id="less than half of minChange"),
    ],
)
def test_min_change_timeout_lets_through_what_is_worth_it(
    shell: Shell, request_now: str, target: str, passes: bool
) -> None:
    status = {"axes": {"vertical": {"pending": pending("2026-11-21T09:45:00Z")}}}
    explained = shell.explain(vertical(100, {"cpu": request_now}, {"cpu": target}, status))
    assert explained["changes"] == passes
    assert request_after(explained) == (target if passes else request_now)


@pytest.mark.parametrize(
    ("small_steps", "until"),
    [
        (None, "2026-11-21T10:15:00Z"),
        (1, "2026-11-21T10:30:00Z"),
        (2, "2026-11-21T11:00:00Z"),
        (6, "2026-11-22T02:00:00Z"),
        (7, "2026-11-22T10:00:00Z"),
        (50, "2026-11-22T10:00:00Z"),
    ],
)
def test_each_small_step_doubles_the_timeout_up_to_a_day(
    shell: Shell, small_steps: int | None, until: str
) -> None:
    status = applied_from("1", "1", 100, **({} if small_steps is None else {"smallSteps": small_steps}))
    explained = shell.explain(vertical(100, {"cpu": "1"}, {"cpu": "1150m"}, status))
    assert holds(explained) == [("vertical", "up", "MinChange", until)]


def test_a_request_does_not_rise_for_a_target_below_it(shell: Shell) -> None:
    explained = shell.explain(vertical(100, {"memory": "1Gi"}, {"memory": "1073741500"}))
    assert not explained["changes"]
    assert holds(explained) == []


# --- one step per recommendation --------------------------------------------------------------------------------------
def test_a_target_that_moves_a_little_does_not_pull_the_request_all_the_way(shell: Shell) -> None:
    status = applied_from("750m", "1", 50)
    status["axes"]["vertical"]["pending"] = pending("2026-11-21T09:40:00Z")
    explained = shell.explain(vertical(50, {"cpu": "750m"}, {"cpu": "1001m"}, status))
    assert not explained["changes"]
    assert explained["recommended"]["containers"]["app"]["requests"]["cpu"] == "751m", "and not 876m"


def test_only_the_movement_of_a_target_counts(shell: Shell) -> None:
    status = applied_from("750m", "1", 50)
    status["axes"]["vertical"]["pending"] = pending("2026-11-21T09:40:00Z")
    explained = shell.explain(vertical(50, {"cpu": "750m"}, {"cpu": "1199m"}, status))
    assert request_after(explained) == "850m", "750m + 199m x 0.5, rounded up, wanted for 20 minutes"


def horizontal(weight: int, replicas: int, desired: int, utilization: int, **rest: Any) -> list[Doc]:
    """A workload whose HPA wants another count, and whose VPA wants what is requested."""
    status, ready = rest.pop("status", None), rest.pop("ready", replicas)
    counts = {} if ready == replicas else {"readyReplicas": ready, "availableReplicas": ready}
    request = {"cpu": "1"}
    return [
        hvpa(weight, status, **rest.pop("spec", {})),
        deployment(replicas, request, **counts),
        hpa(desired, replicas, utilization, **rest.pop("hpa", {})),
        vpa(**{"provided": rest.pop("provided", "True"), **request}),
        *pods(replicas, request, ready=ready, **rest),
    ]


def stepped(replicas: int, desired: int, when: str) -> Doc:
    """A status that remembers a step out to `replicas` for an HPA that wants `desired`."""
    record = {"replicas": replicas, "desired": desired, "weight": 50}
    return {"axes": {"horizontal": {"lastScaleTime": when, "appliedFrom": record}}}


def test_what_waits_for_a_new_measurement_is_reported_with_its_time(shell: Shell) -> None:
    status = stepped(5, 6, "2026-11-21T09:59:30Z")
    explained = shell.explain(horizontal(50, 5, 6, 60, status=status))
    assert holds(explained) == [("horizontal", "up", "Measurement", "2026-11-21T10:00:30Z")]
    assert explained["replicas"] == {"current": 5, "hpa": 6, "target": 5}
    assert explained["recheckAfterSeconds"] == 30


def test_one_unready_pod_does_not_freeze_scaling_out(shell: Shell) -> None:
    status = stepped(15, 20, "2026-11-21T02:00:00Z")
    explained = shell.explain(horizontal(50, 15, 20, 70, ready=14, status=status))
    assert explained["replicas"] == {"current": 15, "hpa": 20, "target": 18}


def test_while_a_rollout_may_still_go_on_the_wait_has_an_end(shell: Shell) -> None:
    status = stepped(15, 20, "2026-11-21T09:50:00Z")
    young = horizontal(50, 15, 20, 70, ready=14, status=status, created="2026-11-21T09:55:00Z")
    assert holds(shell.explain(young)) == [("horizontal", "up", "Measurement", "2026-11-21T10:06:00Z")]


# --- no deadlocks -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("request_now", "target", "direction"),
    [
        pytest.param("64", "2", "down", id="pods too large for every node"),
        pytest.param("1", "4", "up", id="pods too small to become ready"),
    ],
)
def test_a_change_that_repairs_pods_passes_after_the_progress_deadline(
    shell: Shell, request_now: str, target: str, direction: str
) -> None:
    def case(created: str) -> list[Doc]:
        request = {"cpu": request_now}
        return [
            hvpa(100),
            deployment(4, request, readyReplicas=0, availableReplicas=0),
            hpa(4, 4, 50),
            vpa(cpu=target),
            *pods(4, request, ready=0, created=created),
        ]

    early = shell.explain(case("2026-11-21T09:55:00Z"))
    assert holds(early) == [("vertical", direction, "Rollout", "2026-11-21T10:05:00Z")]
    late = shell.explain(case("2026-11-21T09:50:00Z"))
    assert request_after(late) == target


def test_a_deployment_that_lacks_pods_waits_as_long_as_it_reports_progress(shell: Shell) -> None:
    documents = vertical(100, {"cpu": "1"}, {"cpu": "4"})
    deployed = documents[1]
    deployed["status"] |= {"updatedReplicas": 2}
    assert holds(shell.explain(documents)) == [("vertical", "up", "Rollout", None)]
    deployed["status"]["conditions"] = [
        {"type": "Progressing", "status": "True", "lastUpdateTime": "2026-11-21T09:58:00Z"}
    ]
    assert holds(shell.explain(documents)) == [("vertical", "up", "Rollout", "2026-11-21T10:08:00Z")]
    deployed["status"]["conditions"][0]["lastUpdateTime"] = "2026-11-21T09:48:00Z"
    assert request_after(shell.explain(documents)) == "4"


def test_an_axis_that_is_not_there_does_not_hold_back_the_other(shell: Shell) -> None:
    explained = shell.explain(horizontal(100, 4, 20, 250, provided="False"))
    assert explained["replicas"] == {"current": 4, "hpa": 20, "target": 20}
    assert explained["weights"] == {"hpa": 100, "vpa": 0}
    assert holds(explained) == []


def test_scaling_in_keeps_the_interval_where_the_vertical_axis_is_not_there(shell: Shell) -> None:
    explained = shell.explain(horizontal(50, 10, 4, 20, provided="False"))
    assert explained["replicas"]["target"] == 7


# --- running out of memory --------------------------------------------------------------------------------------------
def test_a_step_down_does_not_erase_that_a_container_ran_out_of_memory(shell: Shell) -> None:
    documents = vertical(100, {"cpu": "1", "memory": "1Gi"}, {"cpu": "1", "memory": "1Gi"})
    killed = {"lastState": {"terminated": {"reason": "OOMKilled", "finishedAt": "2026-11-21T09:40:00Z"}}}
    documents[4]["status"]["containerStatuses"] = [{"name": "app", **killed}]
    for last_up, raised in ((None, True), ("2026-11-21T09:30:00Z", True), ("2026-11-21T09:50:00Z", False)):
        axis = {"lastScaleTime": "2026-11-21T09:50:00Z"}
        if last_up is not None:
            axis["lastScaleUpTime"] = last_up
        documents[0]["status"] = {"axes": {"vertical": axis}}
        explained = shell.explain(documents)
        assert (request_after(explained, "memory") != "1Gi") == raised


# --- to zero and back -------------------------------------------------------------------------------------------------
def test_an_hpa_that_may_scale_to_zero_is_followed_there_and_back(shell: Shell) -> None:
    external = {
        "type": "External",
        "external": {"metric": {"name": "jobs"}, "target": {"type": "Value", "value": "5"}},
    }

    def case(replicas: int, desired: int, jobs: str, status: Doc | None = None) -> list[Doc]:
        one = hvpa(0, status)
        one["spec"] |= {"replicas": desired, "hpa": {"deploy": False, "name": "web"}}
        autoscaler = hpa(desired, replicas, 50, minReplicas=0, metrics=[external])
        current = {"metric": {"name": "jobs"}, "current": {"value": jobs}}
        autoscaler["status"]["currentMetrics"] = [{"type": "External", "external": current}]
        return [
            one,
            deployment(replicas, {"cpu": "1"}),
            autoscaler,
            vpa(cpu="1"),
            *pods(replicas, {"cpu": "1"}),
        ]

    down = shell.explain(case(3, 0, "0"))
    assert down["replicas"] == {"current": 3, "hpa": 0, "target": 0}
    back = shell.explain(case(0, 4, "20", stepped(0, 0, "2026-11-21T09:00:00Z")))
    assert back["replicas"] == {"current": 0, "hpa": 4, "target": 4}
    left = shell.explain(case(0, 4, "20", stepped(3, 3, "2026-11-21T09:00:00Z")))
    assert left["replicas"] == {"current": 0, "hpa": None, "target": 0}, "somebody else scaled it to 0"


# --- explanations -----------------------------------------------------------------------------------------------------
def text(shell: Shell, documents: list[Doc]) -> str:
    ran = shell.run("explain", "-f", shell.file(documents), "--now", NOW)
    assert (ran.code, ran.err) == (0, "")
    return ran.out


def test_an_explanation_names_what_a_measurement_and_a_rollout_wait_for(shell: Shell) -> None:
    status = stepped(15, 20, "2026-11-21T09:50:00Z")
    young = horizontal(50, 15, 20, 70, ready=14, status=status, created="2026-11-21T09:55:00Z")
    explained = text(shell, young)
    assert "last rollout: not complete: 14 of 15 pods are available" in explained
    assert "not ready: web-14" in explained
    assert "waited for until its progress deadline 2026-11-21T10:05:00Z (in 5m)" in explained
    assert "next measurement: counts 60 seconds after the last change" in explained
    assert "replicas: 15 applied when the HPA asked for 20, at weight 50, 2026-11-21T09:50:00Z" in explained


def test_an_explanation_says_that_a_rollout_is_no_longer_waited_for(shell: Shell) -> None:
    status = stepped(15, 20, "2026-11-21T02:00:00Z")
    old = horizontal(50, 15, 20, 70, ready=14, status=status, created="2026-11-21T09:49:30Z")
    explained = text(shell, old)
    assert "no longer waited for: its progress deadline was 2026-11-21T09:59:30Z" in explained
    assert "the rollout passed its progress deadline at 2026-11-21T09:59:30Z" in explained


def test_an_explanation_says_what_a_request_was_applied_from(shell: Shell) -> None:
    status = applied_from("750m", "1", 50, smallSteps=2)
    explained = text(shell, vertical(50, {"cpu": "750m"}, {"cpu": "1100m"}, status))
    assert "app cpu: 750m applied from target 1 at weight 50, small step 2 in a row" in explained


def test_a_rollout_of_which_nothing_is_known_is_waited_for_to_its_end(shell: Shell) -> None:
    documents = vertical(100, {"cpu": "1"}, {"cpu": "4"})
    documents[1]["metadata"]["generation"] = 2
    documents[1]["status"] |= {"updatedReplicas": 2, "replicas": 4}
    explained = text(shell, documents)
    assert "its controller has not seen the latest spec; 4 pods exist, 3 are wanted; 2 of 3" in explained
    assert "waited for until it is complete" in explained
