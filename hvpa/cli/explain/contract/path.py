"""The key `path` of `hvpa explain -o json`: how `blend: Trajectory` solved both axes together, as types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from hvpa.api.values.quantity import format_resource
from hvpa.core.model import JointResource, JointView
from hvpa.core.path.path import Point, ResourceKey

Quantities = Annotated[
    dict[str, str],
    Meta(description='CPU and memory as Kubernetes quantities: {"cpu": "800m", "memory": "1Gi"}.'),
]
Count = Annotated[int, Meta(ge=0)]
_MEAN_DIGITS = 2


class Part(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """Base of all parts of the contract."""


class ResourceName(Part, frozen=True):
    """One container's one resource."""

    container: str
    resource: Literal["cpu", "memory"]


class PathCounts(Part, frozen=True):
    """The replica counts of the path."""

    min: Count
    max: Annotated[Count | None, Meta(description="null where there is no end.")]


class PathResource(Part, frozen=True):
    """One container's one resource on the path. Amounts are quantities; those that are needed are of all pods
    together, without what each pod uses before it does any work (baseResourcesPerReplica)."""

    base: Annotated[str, Meta(description="The request where the path begins.")]
    current: Annotated[str, Meta(description="The request now.")]
    wanted: Annotated[str, Meta(description="The request that is wanted when nothing is held back.")]
    usual: Annotated[str | None, Meta(description="What is usually needed; null where nobody tells.")]
    usual_from: Annotated[str | None, Meta(description="Who tells what is usually needed, in words.")]
    usual_replicas: Annotated[Count | None, Meta(description="The replicas of the path that serve that.")]
    present: Annotated[
        str | None, Meta(description="What is needed now; null where no metric of the HPA tells.")
    ]
    present_from: Annotated[str | None, Meta(description="Which metrics tell what is needed now, in words.")]
    present_replicas: Annotated[
        Count | None, Meta(description="The replicas of the wanted request that serve that.")
    ]


class PathPoint(Part, frozen=True):
    """A point on the path: so many replicas, each with these requests."""

    replicas: Count
    requests: Annotated[dict[str, Quantities], Meta(description="By container.")]
    binding: Annotated[ResourceName | None, Meta(description="Who asks for that many; null where none does.")]
    saturated: Annotated[
        list[ResourceName],
        Meta(description="What can't be served even so: replicas and request are at their ends."),
    ]


class PathView(Part, frozen=True):
    """How both axes were solved together."""

    usual_replicas: Annotated[
        Annotated[float, Meta(ge=0)] | None,
        Meta(description="How many pods the VPA's targets speak of; null where there are none."),
    ]
    counts: PathCounts
    containers: Annotated[
        dict[str, dict[str, PathResource]],
        Meta(description="What is on the path, by container and resource."),
    ]
    usual: Annotated[
        PathPoint | None, Meta(description="Where the usual demand is served; null where there is none.")
    ]
    wanted: Annotated[PathPoint, Meta(description="Where the path leads when nothing is held back.")]
    because: Annotated[str, Meta(description="What bound the replicas, in words.")]


def path_view(view: JointView) -> PathView:
    """A joint decision's way in the contract's form."""
    containers: dict[str, dict[str, PathResource]] = {}
    for item in view.items:
        containers.setdefault(item.key.container, {})[item.key.resource] = _item(item)
    return PathView(
        usual_replicas=round(view.mean_replicas, _MEAN_DIGITS) if view.items else None,
        counts=PathCounts(min=view.path.counts.lower, max=view.path.counts.upper),
        containers=containers,
        usual=None if view.usual is None else _point(view.usual),
        wanted=_point(view.wanted),
        because=view.because,
    )


def _item(item: JointResource) -> PathResource:
    def told(amount: int) -> str:
        return format_resource(item.key.resource, amount)

    return PathResource(
        base=told(item.base),
        current=told(item.current),
        wanted=told(item.size),
        usual=None if item.usual is None else told(item.usual),
        usual_from=item.usual_from or None,
        usual_replicas=item.usual_replicas,
        present=None if item.present is None else told(item.present),
        present_from=item.present_from or None,
        present_replicas=item.present_replicas,
    )


def _point(point: Point) -> PathPoint:
    return PathPoint(
        replicas=point.replicas,
        requests=_requests(point.sizes),
        binding=None if point.binding is None else _name(point.binding),
        saturated=[_name(key) for key in point.saturated],
    )


def _requests(sizes: Mapping[ResourceKey, int]) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for key, size in sizes.items():
        found.setdefault(key.container, {})[key.resource] = format_resource(key.resource, size)
    return found


def _name(key: ResourceKey) -> ResourceName:
    return ResourceName(container=key.container, resource=key.resource)
