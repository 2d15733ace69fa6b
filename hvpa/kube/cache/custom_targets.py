"""The workloads of custom kinds that Hvpas name, and the custom kinds that the cluster serves.

Two Hvpas may name one workload by two versions of its kind. It is one target (neither may scale it twice), but each of
the versions is served or not, and can be read or not, by itself.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, NamedTuple

from hvpa.api.objects.kinds import is_custom
from hvpa.api.objects.read_models import Workload
from hvpa.api.values.names import is_api_version, is_kind, is_subdomain
from hvpa.kube.cache.targeting import Target, target_in
from hvpa.kube.objects.resources import Resource
from hvpa.kube.objects.stored_hvpa import Links

NOT_YET: Final = ""
"""Why a workload, or those of a kind, are not listed: that is under way."""


class CustomTarget(NamedTuple):
    """A workload, in the version of its kind that an Hvpa names."""

    target: Target
    api_version: str
    kind: str


def custom_target(namespace: str, links: Links) -> CustomTarget | None:
    """The workload of a custom kind that an Hvpa names; None where it names another one, or none that can exist."""
    named = links.target_ref
    if not is_custom(named.api_version, named.kind):
        return None
    if not (is_api_version(named.api_version) and is_kind(named.kind) and is_subdomain(named.name)):
        return None
    return CustomTarget(target_in(namespace, links), named.api_version, named.kind)


class _Named:
    """Which Hvpas name a workload, and why it can't be read: NOT_YET where that was not tried, None where it was."""

    def __init__(self) -> None:
        self.hvpas: set[str] = set()
        self.unreadable: str | None = NOT_YET


class CustomTargets:
    """By namespace, so that no namespace waits for another one."""

    def __init__(self) -> None:
        self.resources: dict[tuple[str, str], Resource[Workload]] = {}
        """By API version and kind: those that the cluster serves, as discovery found them."""
        self._named: dict[str, dict[CustomTarget, _Named]] = {}

    @property
    def namespaces(self) -> Collection[str]:
        """Where there are any."""
        return self._named.keys()

    def of(self, namespace: str) -> list[CustomTarget]:
        """Those of a namespace."""
        return list(self._named.get(namespace, ()))

    def __contains__(self, one: CustomTarget) -> bool:
        return one in self._named.get(one.target.namespace, ())

    def join(self, one: CustomTarget, hvpa: str) -> None:
        """Note that the Hvpa `hvpa` names it."""
        self._named.setdefault(one.target.namespace, {}).setdefault(one, _Named()).hvpas.add(hvpa)

    def leave(self, one: CustomTarget, hvpa: str) -> None:
        """Note that the Hvpa `hvpa` no longer names it."""
        namespace = one.target.namespace
        known = self._named[namespace]
        known[one].hvpas.discard(hvpa)
        if not known[one].hvpas:
            del known[one]
        if not known:
            del self._named[namespace]

    def unreadable(self, one: CustomTarget) -> str | None:
        """Why it can't be read."""
        return self._named[one.target.namespace][one].unreadable

    def set_unreadable(self, one: CustomTarget, why: str | None) -> bool:
        """Note why it can't be read; whether that is news."""
        known = self._named[one.target.namespace][one]
        is_news, known.unreadable = known.unreadable != why, why
        return is_news
