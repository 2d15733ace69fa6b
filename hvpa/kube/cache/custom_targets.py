"""The workloads of custom kinds that Hvpas name, and the custom kinds that the cluster serves.

Two Hvpas may name the same workload by two versions of its kind. Both name the same target (two Hvpas must not scale
it), but the cluster may serve, or permit HVPA to read, only one of the versions.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, NamedTuple

from hvpa.api.objects.kinds import is_custom
from hvpa.api.objects.read_models import Workload
from hvpa.api.values.names import is_api_version, is_kind, is_subdomain
from hvpa.kube.cache.targeting import Target, target_in
from hvpa.kube.objects.resources import ApiResource
from hvpa.kube.objects.stored_hvpa import Links

NOT_YET: Final = ""
"""The reason while a workload, or a kind of workload, is still being listed."""


class CustomTarget(NamedTuple):
    """A workload, in the version of its kind that an Hvpa names."""

    target: Target
    api_version: str
    kind: str


def custom_target(namespace: str, links: Links) -> CustomTarget | None:
    """The workload of a custom kind that an Hvpa names; None if its kind is built-in, or if no such object can
    exist."""
    named = links.target_ref
    if not is_custom(named.api_version, named.kind):
        return None
    if not (is_api_version(named.api_version) and is_kind(named.kind) and is_subdomain(named.name)):
        return None
    return CustomTarget(target_in(namespace, links), named.api_version, named.kind)


class _Named:
    """The Hvpas that name a workload, and why it can't be read."""

    def __init__(self) -> None:
        self.hvpas: set[str] = set()
        self.unreadable: str | None = NOT_YET
        """NOT_YET before the first read, None after a successful read."""


class CustomTargets:
    """Workloads by namespace, so that no namespace waits for another."""

    def __init__(self) -> None:
        self.resources: dict[tuple[str, str], ApiResource[Workload]] = {}
        """The kinds that the cluster serves according to discovery, by API version and kind."""
        self._named: dict[str, dict[CustomTarget, _Named]] = {}

    @property
    def namespaces(self) -> Collection[str]:
        """Namespaces with custom targets."""
        return self._named.keys()

    def of(self, namespace: str) -> list[CustomTarget]:
        """The custom targets of a namespace."""
        return list(self._named.get(namespace, ()))

    def __contains__(self, custom: CustomTarget) -> bool:
        return custom in self._named.get(custom.target.namespace, ())

    def join(self, custom: CustomTarget, hvpa: str) -> None:
        """Note that the Hvpa `hvpa` names this target."""
        self._named.setdefault(custom.target.namespace, {}).setdefault(custom, _Named()).hvpas.add(hvpa)

    def leave(self, custom: CustomTarget, hvpa: str) -> None:
        """Note that the Hvpa `hvpa` no longer names this target."""
        namespace = custom.target.namespace
        targets = self._named[namespace]
        targets[custom].hvpas.discard(hvpa)
        if not targets[custom].hvpas:
            del targets[custom]
        if not targets:
            del self._named[namespace]

    def unreadable(self, custom: CustomTarget) -> str | None:
        """Why the target can't be read; None if it can."""
        return self._named[custom.target.namespace][custom].unreadable

    def set_unreadable(self, custom: CustomTarget, why: str | None) -> bool:
        """Note why the target can't be read; returns whether the reason changed."""
        named = self._named[custom.target.namespace][custom]
        is_news, named.unreadable = named.unreadable != why, why
        return is_news
