"""What pods that run now show of the past."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from hvpa.api.objects.read_models import Pod
from hvpa_lab.simulate.history.pods import start_up

STARTED = "2026-01-05T00:00:00Z"


def pod(ready_after: int, *, restarts: int = 0, status: str = "True") -> Pod:
    """Ready after so many minutes."""
    changed = f"2026-01-05T00:{ready_after:02}:00Z"
    return of(
        {
            "startTime": STARTED,
            "conditions": [{"type": "Ready", "status": status, "lastTransitionTime": changed}],
            "containerStatuses": [{"name": "app", "restartCount": restarts}],
        }
    )


def of(status: dict[str, Any]) -> Pod:
    return msgspec.convert({"metadata": {"name": "web-1", "namespace": "shop"}, "status": status}, Pod)


@pytest.mark.parametrize(
    ("pods", "expected"),
    [
        ([], None),
        ([pod(1), pod(3), pod(2)], 120),
        ([pod(1, restarts=1), pod(2)], 120),
        ([pod(1, status="False")], None),
        ([pod(40)], None),
        ([of({})], None),
        ([of({"startTime": STARTED})], None),
        ([of({"startTime": STARTED, "conditions": [{"type": "Ready", "status": "True"}]})], None),
    ],
    ids=["none", "median", "restarted", "unready", "ready-again", "no-status", "no-condition", "no-time"],
)
def test_start_up_is_the_median_of_pods_that_never_restarted(pods: list[Pod], expected: float | None) -> None:
    assert start_up(pods) == expected
