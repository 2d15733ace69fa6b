"""`hvpa explain` of `blend: Trajectory` where pods request more than the containers of their template show: sidecars
that a webhook injected, native ones, requests of the pods themselves, and those that a LimitRange filled in."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pytest

from tests.unit.cli.support import NOW, Doc, Shell, changed, load, of_kind

SINCE = "2026-11-20T00:00:00Z"
TARGET = 50
MOST = 20


def container(name: str, cpu: str | None = None, **rest: Any) -> Doc:
    """A container of a pod or of a template."""
    requests = {"memory": "1Gi"} | ({} if cpu is None else {"cpu": cpu})
    return {"name": name, "resources": {"requests": requests}, **rest}


def pods(count: int, **spec: Any) -> list[Doc]:
    """So many ready pods with this spec."""
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": SINCE}
    status = {"phase": "Running", "startTime": SINCE, "conditions": [ready]}
    return [
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"shop-{index}", "labels": {"app": "shop"}}}
        | {"spec": spec, "status": status}
        for index in range(count)
    ]


def shop(
    count: int,
    used: int,
    pod: dict[str, Any],
    requested: int = 1000,
    targets: dict[str, str] | None = None,
    template: Sequence[Doc] = (),
) -> list[Doc]:
    """A Deployment of `count` pods, each of which uses so many millicores of `requested`, by the HPA's rules."""
    utilization = used * 100 // requested
    desired = count
    if abs(utilization / TARGET - 1) > 0.1:
        desired = min(MOST, math.ceil(utilization / TARGET * count))
    status = dict.fromkeys(("replicas", "updatedReplicas", "readyReplicas", "availableReplicas"), count)
    cpu = {"averageUtilization": utilization, "averageValue": f"{used}m"}
    said = [{"containerName": name, "target": {"cpu": one}} for name, one in (targets or {}).items()]
    documents = changed(
        load("trajectory.yaml"),
        Hvpa__spec__replicas=desired,
        Hvpa__spec__hpa__template__spec__maxReplicas=MOST,
        Hvpa__spec__weightBasedScalingIntervals=[{"vpaWeight": 0}],
        Hvpa__spec__vpa__template__spec={
            "resourcePolicy": {"containerPolicies": [{"containerName": "*", "controlledResources": ["cpu"]}]}
        },
        Deployment__spec__replicas=count,
        Deployment__spec__template__spec__containers=list(template) or [container("app", "500m")],
        Deployment__status={"observedGeneration": 4, **status},
        HorizontalPodAutoscaler__spec__maxReplicas=MOST,
        HorizontalPodAutoscaler__status__currentReplicas=count,
        HorizontalPodAutoscaler__status__desiredReplicas=desired,
        HorizontalPodAutoscaler__status__currentMetrics=[
            {"type": "Resource", "resource": {"name": "cpu", "current": cpu}}
        ],
        VerticalPodAutoscaler__status__recommendation={"containerRecommendations": said},
    )
    assert of_kind(documents, "Pod")
    return [one for one in documents if one["kind"] != "Pod"] + pods(count, **pod)


def rest(shell: Shell, documents: Any, count: int = 4) -> list[int]:
    """The counts that are set, one after the other, until the same is set again."""
    found = [count]
    while len(found) < 12:
        target = shell.explain(documents(found[-1]))["replicas"]["target"]
        if target == found[-1]:
            break
        found.append(target)
    return found


APP, PROXY = container("app", "500m"), container("proxy", "500m")
NATIVE = container("proxy", "500m", restartPolicy="Always")
INJECTED: dict[str, Any] = {"containers": [APP, PROXY]}
WITH_NATIVE: dict[str, Any] = {"containers": [APP], "initContainers": [NATIVE]}


@pytest.mark.parametrize("pod", [INJECTED, WITH_NATIVE], ids=["injected", "native"])
@pytest.mark.parametrize(
    "targets",
    [
        pytest.param({"app": "288m"}, id="no word of the proxy"),
        pytest.param({"app": "500m"}, id="a target of what is requested"),
        pytest.param({"app": "288m", "proxy": "288m"}, id="both targets"),
    ],
)
def test_sidecars_that_the_template_does_not_show_count_as_the_hpa_counts_them(
    shell: Shell, pod: dict[str, Any], targets: dict[str, str]
) -> None:
    """The app uses 1000m in sum, the proxy 250m in each pod. The HPA alone rests at 4 pods, and from 2 goes there."""

    def now(count: int) -> list[Doc]:
        return shop(count, 1000 // count + 250, pod, targets=targets)

    assert rest(shell, now) == [4]
    assert rest(shell, now, 2)[-1] == 4


@pytest.mark.parametrize("proxy", [0, 100, 250, 400, 500])
def test_no_share_of_a_proxys_request_that_it_uses_makes_replicas_run_away(shell: Shell, proxy: int) -> None:
    """From its VPA target it is known what the proxy uses. At 500m the HPA alone goes out for ever."""
    targets = {"app": "288m", "proxy": f"{max(12, proxy * 115 // 100)}m"}
    counts = rest(shell, lambda count: shop(count, 1000 // count + proxy, INJECTED, targets=targets))
    assert max(counts) == 4
    assert counts[-1] >= 2


def test_requests_of_the_pods_themselves_count_as_the_hpa_counts_them(shell: Shell) -> None:
    """Pods request 2 cores as a whole, and use half of it, as the HPA is to keep it."""
    pod = {"containers": [APP], "resources": {"requests": {"cpu": "2"}}}
    documents = shop(4, 1000, pod, 2000, {"app": "500m"})
    assert shell.explain(documents)["replicas"]["target"] == 4
    documents = shop(4, 2000, pod, 2000, {"app": "500m"})
    assert shell.explain(documents)["replicas"]["target"] == 8


def test_requests_that_a_limit_range_filled_in_count_as_the_hpa_counts_them(shell: Shell) -> None:
    """The template has no request for the proxy (not governed), or for the app (governed)."""
    for without, targets in (("proxy", {"app": "288m"}), ("app", {"app": "575m"})):
        template = [container(name, None if name == without else "500m") for name in ("app", "proxy")]
        documents = shop(4, 500, INJECTED, targets=targets, template=template)
        assert shell.explain(documents)["replicas"]["target"] == 4, without


def test_a_plain_init_container_and_an_ephemeral_one_request_nothing(shell: Shell) -> None:
    pod = {
        "containers": [APP],
        "initContainers": [container("setup", "4")],
        "ephemeralContainers": [{"name": "debugger", "image": "busybox:1"}],
    }
    assert shell.explain(shop(4, 250, pod, 500, {"app": "288m"}))["replicas"]["target"] == 4


def test_while_pods_differ_the_mean_of_what_they_request_counts(shell: Shell) -> None:
    """A webhook begins to inject a proxy: two pods have it. They request 3000m together and use half of that."""
    documents = [one for one in shop(4, 375, INJECTED, 750, {"app": "288m"}) if one["kind"] != "Pod"]
    documents += pods(4, containers=[APP])[:2] + pods(4, **INJECTED)[2:]
    assert shell.explain(documents)["replicas"]["target"] == 4


def test_where_a_request_is_missing_the_hpa_has_no_value_and_nothing_is_taken_away(shell: Shell) -> None:
    """As the HPA has it: `missing request for cpu in container proxy`."""
    pod = {"containers": [APP, container("proxy")]}
    documents = changed(
        shop(4, 100, pod, targets={"app": "288m"}),
        HorizontalPodAutoscaler__status__currentMetrics=[{"type": ""}],
        HorizontalPodAutoscaler__status__desiredReplicas=4,
    )
    assert shell.explain(documents)["replicas"]["target"] == 4


def test_pods_that_were_all_replaced_are_reported_as_not_measured(shell: Shell) -> None:
    """Somebody set 2 replicas again where 10 are recommended; both pods are ready for ten seconds."""
    flux = {"manager": "flux", "time": "2026-11-21T09:59:40Z", "fieldsV1": {"f:spec": {"f:replicas": {}}}}
    axis = {
        "lastScaleTime": "2026-11-21T09:55:00Z",
        "appliedFrom": {"replicas": 10, "desired": 10, "weight": 0},
        "setBack": {"count": 2, "time": "2026-11-21T09:59:40Z"},
    }
    documents = changed(
        shop(2, 250, {"containers": [APP]}, 500, {"app": "288m"}),
        Pod__status__conditions=[
            {"type": "Ready", "status": "True", "lastTransitionTime": "2026-11-21T09:59:50Z"}
        ],
        Deployment__metadata__managedFields=[flux],
        Hvpa__status={"recommended": {"replicas": 10}, "axes": {"horizontal": axis}},
    )
    found = shell.explain(documents)
    assert found["replicas"] == {"current": 2, "hpa": 10, "target": 2}
    assert found["recommended"]["replicas"] == 10
    assert [(one["reason"], one["until"]) for one in found["blocked"]] == [
        ("Contested", "2026-11-21T10:00:40Z")
    ]
    ran = shell.run("explain", "-f", shell.file(documents), "--now", NOW)
    assert (ran.code, ran.err) == (0, "")
    measured = "the 2 ready pods are not measured yet, the first of them is at 2026-11-21T10:00:20Z"
    assert f"\n    {measured}; using 10\n" in ran.out
    assert "call for" not in ran.out


# --- several governed containers -------------------------------------------------------------------------------------
def test_containers_share_a_measurement_by_their_vpa_targets(shell: Shell) -> None:
    """The app uses 900m of each pod, the proxy 50m; both had 500m at first sight, and have what was decided since. The
    HPA keeps 50 percent: 1900m for each pod, 1800m of it for the app."""
    pod = {"containers": [container("app", "1800m"), container("proxy", "100m")]}
    documents = shop(4, 950, pod, 1900, {"app": "1035m", "proxy": "58m"}, pod["containers"])
    demand = {"weight": 10**9, "time": SINCE, "resource": "cpu"}
    usual = [
        {"container": name, "mean": used * 8, "present": used * 8, **demand}
        for name, used in (("app", 900), ("proxy", 50))
    ]
    base = {name: {"cpu": "500m", "memory": "1Gi"} for name in ("app", "proxy")}
    status = {"axes": {"vertical": {"base": base, "usualDemand": usual}}}
    found = shell.explain(
        changed(documents, Hvpa__status=status, Hvpa__spec__weightBasedScalingIntervals=[{"vpaWeight": 50}])
    )
    now = {name: one["cpu"]["present"] for name, one in found["path"]["containers"].items()}
    assert now == {"app": "7197m", "proxy": "404m"}
    assert found["replicas"]["target"] == 4
    assert not found["changes"]
