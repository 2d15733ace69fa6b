"""Building the scenarios of the VPA's updater and webhook: the pods of each loop, the VPA, its recommendation. The form
is what `modules/addons/updater-replay/scenario.go` reads and `model.py` replays to our model. Times are in seconds from
the scenario's start, and negative before it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tests.recorded.replay import Json

MINUTE = 60
HOUR = 3600
OLD = -13 * HOUR
YOUNG = -11 * HOUR
"""Starts of pods before and after the updater's `--in-recommendation-bounds-eviction-lifetime-threshold` (12 hours)."""
TEMPLATE = {"cpu": "100m", "memory": "100Mi"}


def scenario(
    name: str,
    steps: Iterable[Json],
    *,
    mode: str | None = "Recreate",
    min_replicas: int | None = None,
    policies: Sequence[Json] | None = None,
    flags: Mapping[str, object] | None = None,
    template: Sequence[Json] | None = None,
) -> Json:
    """A VPA `web`; `flags` are fields of the updater's configuration; `template` has the containers of a new pod."""
    spec: Json = {"targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}}
    if mode is not None:
        spec["updatePolicy"] = {"updateMode": mode}
        if min_replicas is not None:
            spec["updatePolicy"]["minReplicas"] = min_replicas
    if policies is not None:
        spec["resourcePolicy"] = {"containerPolicies": list(policies)}
    return {
        "name": name,
        "vpa": {"metadata": {"name": "web", "namespace": "shop"}, "spec": spec},
        "flags": dict(flags or {}),
        "template": list(template or [container(requests=TEMPLATE)]),
        "steps": list(steps),
    }


def loop(
    pods: Sequence[Json],
    *recommendations: Json,
    at: float = 0,
    replicas: int | None = None,
    silent: bool = False,
) -> Json:
    """The updater's loop over these pods, of a workload of `replicas` (as many as there are). The recommendations
    replace those before; without any, `silent` keeps them, and else there are none for any container."""
    step: Json = {"at": at, "replicas": len(pods) if replicas is None else replicas, "pods": list(pods)}
    if not silent:
        step["recommendation"] = {"containerRecommendations": list(recommendations)}
    return step


def pod(name: str, *containers: Json, cpu: str | None = None, **changes: object) -> Json:
    """A pod of these containers, or of one that requests so much CPU, that is old, and runs."""
    made = list(containers) or [container(requests={"cpu": cpu or "100m"})]
    return {"name": name, "node": "n0", "started": OLD, "containers": made} | changes


def pods(count: int, **changes: object) -> list[Json]:
    """So many pods that are alike."""
    return [pod(f"p{number}", cpu="100m", **changes) for number in range(count)]


def container(
    name: str = "app",
    requests: Mapping[str, str] | None = None,
    limits: Mapping[str, str] | None = None,
    oom: tuple[float, float] | None = None,
) -> Json:
    """A container; `oom` is the beginning and the end of a run that ended in an OOM."""
    resources = {
        kind: dict(amounts) for kind, amounts in (("requests", requests), ("limits", limits)) if amounts
    }
    return {"name": name, "resources": resources} | ({"oom": list(oom)} if oom else {})


def recommended(
    target: Mapping[str, str],
    lower: Mapping[str, str] | None = None,
    upper: Mapping[str, str] | None = None,
    name: str = "app",
) -> Json:
    """What is recommended for a container."""
    return {
        "containerName": name,
        "target": dict(target),
        "lowerBound": dict(lower or {}),
        "upperBound": dict(upper or {}),
    }


def cpu(target: str, lower: str | None = None, upper: str | None = None) -> Json:
    """What is recommended for the CPU of the container `app`."""
    return recommended({"cpu": target}, {"cpu": lower} if lower else None, {"cpu": upper} if upper else None)


def policy(name: str = "app", **fields: object) -> Json:
    """A container's policy, its fields as in the VPA's spec."""
    return {"containerName": name, **fields}
