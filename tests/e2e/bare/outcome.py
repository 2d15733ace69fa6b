"""Operators that die, and what is left behind of a scenario: compared with what an undisturbed run leaves behind."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any

from localcluster.client.api import Json
from localcluster.operator.operator import Operator
from localcluster.workloads.scenario import Scenario

HPA, VPA = "HorizontalPodAutoscaler", "VerticalPodAutoscaler"


@contextmanager
def dying(operators: Collection[Operator]) -> Iterator[None]:
    """They are started at once, and by the end of the block each has died at its fault point."""
    try:
        for operator in operators:
            operator.start(wait=False)
        yield
        for operator in operators:
            assert operator.process.wait(150) == -9, (operator.process.name, operator.process.tail())
    finally:
        for operator in operators:
            operator.kill()


def applied_from(axes: Json) -> list[Any]:
    return [axes.get(axis, {}).get("appliedFrom") for axis in ("horizontal", "vertical")]


def record(scenario: Scenario) -> Json:
    """The annotation of the workload; empty where there is none."""
    try:
        return scenario.record
    except KeyError:
        return {}


def outcome(scenario: Scenario) -> Json:
    """All that is left behind, without times and what is named by a uid."""
    hvpa, api, namespace = scenario.hvpa, scenario.api, scenario.namespace
    status, written = hvpa["status"], record(scenario)
    axes: Json = status.get("axes", {})
    return {
        "workload": scenario.target["spec"],
        "generation": scenario.target["metadata"]["generation"],
        "appliedFrom": applied_from(axes),
        "record": applied_from(written),
        "clocks": [
            axes.get(axis, {}).get("lastScaleTime") == written.get(axis, {}).get("lastScaleTime")
            for axis in ("horizontal", "vertical")
        ],
        "scale_replicas": hvpa["spec"].get("replicas"),
        "conditions": {
            condition["type"]: (condition["status"], condition["reason"])
            for condition in status["conditions"]
        },
        "recommended": status.get("recommended"),
        "blocked": status.get("lastBlockedScaling"),
        "error": status.get("lastError"),
        **{kind: [recommender(manifest) for manifest in api.list(kind, namespace)] for kind in (HPA, VPA)},
    }


def recommender(manifest: Json) -> Json:
    owners = [owner["kind"] for owner in manifest["metadata"].get("ownerReferences", [])]
    return {"spec": manifest["spec"], "labels": manifest["metadata"]["labels"], "owners": owners}
