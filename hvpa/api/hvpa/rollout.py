"""What the operator remembers of a rollout that it began: an annotation of the workload, written in one patch with what
it is about."""

from __future__ import annotations

from typing import Final

from pydantic import Field

from hvpa.api.hvpa.status import RecommendedContainer, RolledBack, Whole
from hvpa.api.schema.base import StatusModel
from hvpa.api.schema.fields import Timestamp

ROLLOUT: Final = "hvpa.autoscaling.k8s.io/rollout"
"""The annotation's key."""


class RolloutRecord(StatusModel):
    """A rollout that the operator began by a change of the pod template."""

    generation: Whole
    """Generation of the workload after the operator's last write: with another one, somebody else changed it since."""
    since: Timestamp
    """When the template was changed."""
    up: bool = False
    """Whether a request or limit was raised."""
    down: bool = False
    """Whether one was lowered."""
    held: bool = False
    """Whether the operator keeps the workload from replacing pods."""
    partition: Whole = 0
    """The partition that a StatefulSet had before the operator held it."""
    previous: tuple[RecommendedContainer, ...] = ()
    """While the new size is tried on the first pods: what the template had before."""
    rolled_back: RolledBack | None = Field(default=None, exclude_if=lambda value: value is None)
    """What this rollout takes back."""
