"""The JSON of `hvpa explain -o json`, a stable contract (DESIGN 9), as types.

`python -m hvpa.cli.explain.contract.decision` prints its JSON Schema, which stands in `docs/explain.schema.json`.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from hvpa.api.hvpa.status import to_wire
from hvpa.api.values.quantity import format_resource
from hvpa.api.values.text import printable_json
from hvpa.api.values.timestamp import format_timestamp
from hvpa.cli.explain.contract.path import Count, Part, PathView, Quantities, path_view
from hvpa.cli.explain.contract.reported import (
    Condition,
    Report,
    ReportDifference,
    condition_view,
    report,
    report_differences,
)
from hvpa.core.model import Blocked, Decision, Observation, ResourceRequirements
from hvpa.core.values.weight import FULL, percent

Percent = Annotated[int, Meta(ge=0, le=100)] | Annotated[float, Meta(ge=0, le=100)]
"""A whole number where it is one."""


class Replicas(Part, frozen=True):
    """Replica counts."""

    current: Annotated[Count, Meta(description="What the workload has now.")]
    hpa: Annotated[
        Count | None,
        Meta(description="The HPA's desired replicas as they are used; null where they are not."),
    ]
    target: Annotated[Count, Meta(description="What the workload is set to after this decision.")]


class Weights(Part, frozen=True):
    """What each axis weighs now, in percent; both together are 100."""

    hpa: Percent
    vpa: Percent


class Container(Part, frozen=True):
    """Requests and limits of one container."""

    requests: Quantities
    limits: Quantities


Containers = dict[str, Container]


class Recommended(Part, frozen=True):
    """What is recommended, before gates and maxStep: what would be applied if nothing were blocked."""

    replicas: Annotated[Count | None, Meta(description="null where nothing can be decided.")]
    containers: Containers


class BlockedChange(Part, frozen=True):
    """A change that is wanted and held back."""

    axis: Literal["horizontal", "vertical"]
    direction: Literal["up", "down"]
    reason: Annotated[
        str,
        Meta(
            description="The first gate that blocks: Paused, Contested, Weight, UpdatePolicy, Refused, "
            "MinHistory, OutOfMemory, RecentRaise, StabilizationWindow, MaintenanceWindow, Rollout, PodReplacement, "
            "SustainedDemand, Measurement, MinChange or MaxStep."
        ),
    ]
    container: Annotated[str | None, Meta(description="null on the horizontal axis.")]
    resource: Annotated[Literal["cpu", "memory"] | None, Meta(description="null on the horizontal axis.")]
    current: Annotated[
        int | str, Meta(description="The present number of replicas, or request as a quantity.")
    ]
    wanted: Annotated[
        int | str, Meta(description="What would be applied: a number of replicas, or a quantity.")
    ]
    until: Annotated[
        str | None,
        Meta(description="When the gate opens, an RFC 3339 timestamp; null where no clock opens it."),
    ]


class InModeApply(Part, frozen=True):
    """What mode Apply would do now."""

    replicas: Annotated[Count | None, Meta(description="null where nothing can be decided.")]
    containers: Containers
    changes: Annotated[bool, Meta(description="Whether the workload would be changed.")]
    blocked: list[BlockedChange]
    ready: Annotated[Condition | None, Meta(description="The condition Ready that the Hvpa would have.")]


class Explanation(Part, frozen=True):
    """What `hvpa explain -o json` prints. All keys are always there."""

    replicas: Annotated[Replicas | None, Meta(description="null where there is no workload to decide on.")]
    weights: Annotated[Weights | None, Meta(description="null where nothing can be decided.")]
    containers: Annotated[
        Containers,
        Meta(description="What the workload is set to after this decision; as now where nothing changes."),
    ]
    recommended: Recommended
    changes: Annotated[bool, Meta(description="Whether the workload is changed by this decision.")]
    blocked: Annotated[list[BlockedChange], Meta(description="What is wanted and held back.")]
    conditions: list[Condition]
    recheck_after_seconds: Annotated[
        float | None,
        Meta(
            description="When time alone can change the decision, in seconds from now; null where it can't."
        ),
    ]
    path: Annotated[
        PathView | None,
        Meta(description="How both axes were solved together; null for the blend Additive."),
    ]
    patch: Annotated[
        dict[str, Any] | None,
        Meta(
            description="The body of the strategic merge patch of the workload, as the operator sends it; null where "
            "the workload is not changed."
        ),
    ]
    next_status: Annotated[
        dict[str, Any],
        Meta(
            description="The complete status of the Hvpa after this decision, as the API server stores it. It takes "
            "the place of the present status."
        ),
    ]
    scale_replicas: Annotated[
        Count | None,
        Meta(
            description="What spec.replicas of the Hvpa, the replicas of its scale subresource, is set to; null where "
            "it stays as it is."
        ),
    ]
    reported: Report
    differences: Annotated[
        list[ReportDifference],
        Meta(description="Conditions that the operator last reported otherwise than they are decided now."),
    ]
    in_mode_apply: Annotated[InModeApply | None, Meta(description="null where spec.mode is Apply.")]


def explanation(seen: Observation, decision: Decision, applied: Decision | None = None) -> Explanation:
    """The decision in the contract's form; `applied` is the one that mode Apply would make, in another mode."""
    view, weight, wait = decision.replicas, decision.weight_ppm, decision.recheck_after
    decided = view is not None
    return Explanation(
        replicas=None if view is None else Replicas(current=view.current, hpa=view.hpa, target=view.target),
        weights=None if weight is None else Weights(hpa=percent(FULL - weight), vpa=percent(weight)),
        containers=containers_view(decision.containers),
        recommended=Recommended(
            replicas=view.recommended if decided and view is not None else None,
            containers=containers_view(decision.recommended),
        ),
        changes=decision.workload_patch is not None,
        blocked=[_blocked(one) for one in decision.blocked],
        conditions=[condition_view(one) for one in decision.status.conditions],
        recheck_after_seconds=None if wait is None else wait.total_seconds(),
        path=None if decision.joint is None else path_view(decision.joint),
        patch=patch_body(decision),
        next_status=to_wire(decision.status),
        scale_replicas=decision.scale_replicas,
        reported=report(seen),
        differences=report_differences(seen, decision),
        in_mode_apply=None if applied is None else _in_mode_apply(applied),
    )


def _in_mode_apply(decision: Decision) -> InModeApply:
    view = decision.replicas
    return InModeApply(
        replicas=None if view is None else view.target,
        containers=containers_view(decision.containers),
        changes=decision.workload_patch is not None,
        blocked=[_blocked(one) for one in decision.blocked],
        ready=next((condition_view(one) for one in decision.status.conditions if one.type == "Ready"), None),
    )


def patch_body(decision: Decision) -> dict[str, Any] | None:
    """The body of the workload's patch; None where there is none. A workload of a file may have no resource version:
    an empty one is left out, since the API server would store it."""
    if decision.workload_patch is None:
        return None
    body: dict[str, Any] = msgspec.to_builtins(decision.workload_patch.body)
    if not body.get("metadata", {}).get("resourceVersion", "-"):
        del body["metadata"]["resourceVersion"]
    return body


def to_json(seen: Observation, decision: Decision, applied: Decision | None = None) -> str:
    """The decision as indented JSON, without a line break at the end."""
    encoded = msgspec.json.encode(explanation(seen, decision, applied))
    return printable_json(msgspec.json.format(encoded, indent=2).decode())


def containers_view(containers: Mapping[str, ResourceRequirements]) -> Containers:
    """Requests and limits by container, in the contract's form."""
    return {
        name: Container(
            requests={key: format_resource(key, value) for key, value in one.requests.items()},
            limits={key: format_resource(key, value) for key, value in one.limits.items()},
        )
        for name, one in containers.items()
    }


def _blocked(entry: Blocked) -> BlockedChange:
    return BlockedChange(
        axis=entry.axis,
        direction=entry.direction,
        reason=entry.reason,
        container=entry.container,
        resource=entry.resource,
        current=entry.current if entry.resource is None else format_resource(entry.resource, entry.current),
        wanted=entry.wanted if entry.resource is None else format_resource(entry.resource, entry.wanted),
        until=None if entry.until is None else format_timestamp(entry.until),
    )


def schema() -> dict[str, Any]:
    """The JSON Schema of the contract."""
    (_,), definitions = msgspec.json.schema_components([Explanation], ref_template="#/$defs/{name}")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "hvpa explain -o json",
        "$ref": "#/$defs/Explanation",
        "$defs": dict(sorted(definitions.items())),
    }


def main() -> None:
    """Print the schema."""
    sys.stdout.write(msgspec.json.format(msgspec.json.encode(schema()), indent=2).decode() + "\n")


if __name__ == "__main__":
    main()
