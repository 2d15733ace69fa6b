"""`hvpa explain`: what a decision waits for, in words."""

from __future__ import annotations

import json

import pytest

from hvpa.api.hvpa.status import ROLLOUT
from tests.unit.cli.support import NOW, Doc, Shell, changed, load

STEP = {"lastScaleTime": "2026-11-21T09:50:00Z", "appliedFrom": {"replicas": 3, "desired": 4, "weight": 60}}
ONE_PENDING = {
    "Hvpa__status": {"axes": {"horizontal": STEP}},
    "Deployment__status__readyReplicas": 2,
    "Deployment__status__availableReplicas": 2,
}
HELD = json.dumps(
    {
        "generation": 5,
        "since": "2026-11-21T09:58:00Z",
        "held": True,
        "previous": [{"name": "resource-consumer", "requests": {"cpu": "1"}}],
    }
)
"""A size that is tried on the first pods."""
MEASURED = "next measurement: counts 60 seconds after the last change, with the rollout complete"


def unready(since: str) -> Doc:
    """The first pod of the example, which has not been ready since it was created."""
    ready = {"type": "Ready", "status": "False", "lastTransitionTime": since}
    return {
        "Pod__metadata__creationTimestamp": since,
        "Pod__status": {"phase": "Running", "conditions": [ready]},
    }


def explained(shell: Shell, documents: list[Doc]) -> list[str]:
    """The lines of the explanation."""
    ran = shell.run("explain", "-f", shell.file(documents), "--now", NOW)
    assert (ran.code, ran.err) == (0, "")
    return [line.strip() for line in ran.out.splitlines()]


@pytest.mark.parametrize(
    ("changes", "lines"),
    [
        pytest.param(
            ONE_PENDING | unready("2026-11-21T09:55:00Z"),
            (
                "last rollout: not complete: 2 of 3 pods are available",
                "not ready: resource-consumer-1",
                "waited for until its progress deadline 2026-11-21T10:05:00Z (in 5m)",
                MEASURED,
                "replicas: 3 applied when the HPA asked for 4, at weight 60, 2026-11-21T09:50:00Z",
            ),
            id="a rollout that goes on",
        ),
        pytest.param(
            ONE_PENDING | unready("2026-11-21T09:49:30Z"),
            (
                "no longer waited for: its progress deadline was 2026-11-21T09:59:30Z",
                f"{MEASURED}: the rollout passed its progress deadline at 2026-11-21T09:59:30Z",
            ),
            id="a rollout past its progress deadline",
        ),
        pytest.param(
            {
                "Deployment__metadata__generation": 5,
                "Deployment__status__updatedReplicas": 2,
                "Deployment__status__replicas": 4,
            },
            (
                "last rollout: not complete: its controller has not seen the latest spec; 4 pods exist, 3 are wanted; "
                "2 of 3 pods are updated",
                "waited for until it is complete",
            ),
            id="a rollout without a deadline",
        ),
        pytest.param(
            {
                "Hvpa__spec__updateStrategy": {"canary": {}},
                "Deployment__metadata__generation": 5,
                "Deployment__metadata__annotations": {ROLLOUT: HELD},
                "Deployment__spec__paused": True,
                "Deployment__status__updatedReplicas": 1,
            },
            ("last rollout held by Canary: 1 of 3 pods are replaced; the new size is tried on them first",),
            id="a rollout that is held",
        ),
        pytest.param(
            {
                "Hvpa__status": {
                    "axes": {
                        "vertical": {
                            "appliedFrom": [
                                {
                                    "container": "resource-consumer",
                                    "resource": "cpu",
                                    "target": "1",
                                    "weight": 60,
                                    "request": "500m",
                                    "smallSteps": 2,
                                }
                            ]
                        }
                    }
                }
            },
            ("resource-consumer cpu: 500m applied from target 1 at weight 60, small step 2 in a row",),
            id="a small step",
        ),
    ],
)
def test_what_is_waited_for_is_shown(
    shell: Shell, gardener: list[Doc], changes: Doc, lines: tuple[str, ...]
) -> None:
    shown = explained(shell, changed(gardener, **changes))
    assert [line for line in lines if line not in shown] == [], shown


def test_pods_that_are_not_measured_yet_are_counted(shell: Shell) -> None:
    documents = load("trajectory.yaml")
    for one in documents:
        if one["kind"] == "Pod":
            one["status"]["conditions"][0]["lastTransitionTime"] = "2026-11-21T09:59:50Z"
    measured = "the 2 ready pods are not measured yet, the first of them is at 2026-11-21T10:00:20Z"
    assert f"{measured}; using 2" in explained(shell, documents)
