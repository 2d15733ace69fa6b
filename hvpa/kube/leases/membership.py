"""Which members are alive, as this process has seen their Leases change. Nothing here waits or asks for the time.

A member is alive for as long as its Lease changes at least once in its duration. Where a shard's holder has no Lease at
all, somebody has deleted that, and the holder may not know yet: it counts as alive for one duration, too.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hvpa.kube.leases.assignment import LABEL_SHARDS, Names
from hvpa.kube.leases.lease import Lease

FORGOTTEN_AFTER = 4.0
"""Durations after which the Lease of a member that is gone is deleted."""


@dataclass(slots=True)
class _Seen:
    lease: Lease
    since: float
    """When it was first seen like this."""
    duration: float

    @property
    def end(self) -> float:
        return self.since + self.duration if self.lease.holder is not None else float("-inf")


class Members:
    """What has been seen of the members' Leases."""

    def __init__(self, names: Names, duration: float) -> None:
        """`duration`: seconds, for Leases that name none."""
        self._names = names
        self._duration = duration
        self._seen: dict[str, _Seen] = {}
        self._missing: dict[str, float] = {}
        """Holders of shards without a Lease of their own, and since when."""
        self._at = 0.0

    def look(self, leases: Iterable[Lease], sent: float, received: float) -> None:
        """These Leases, and no others, were there; the request was sent at `sent`, the response came at `received`."""
        before, self._seen = self._seen, {}
        members, holders = [], set()
        for lease in leases:
            if self._names.is_member(lease.metadata.name):
                members.append(lease)
            elif lease.holder is not None:
                holders.add(lease.holder)
        for lease in members:
            name, known = lease.metadata.name, before.get(lease.metadata.name)
            if known is None or known.lease.metadata.resource_version != lease.metadata.resource_version:
                known = _Seen(lease, received, lease.spec.lease_duration_seconds or self._duration)
            self._seen[name] = known
        present = {one.lease.holder for one in self._seen.values()}
        self._missing = {one: self._missing.get(one, received) for one in holders - present}
        self._at = sent

    def live(self) -> frozenset[str]:
        """Identities of the members, of our number of shards, that were alive at the last look."""
        shards = str(self._names.shards)
        return frozenset(
            one.lease.spec.holder_identity or ""
            for one in self._seen.values()
            if one.end > self._at and one.lease.metadata.labels.get(LABEL_SHARDS) == shards
        )

    def is_dead(self, identity: str) -> bool:
        """Whether whoever it is can't believe any more that its shards are its own."""
        for one in self._seen.values():
            if one.lease.holder == identity:
                return one.end <= self._at
        return self._missing.get(identity, self._at) + self._duration <= self._at

    def next_end(self) -> float | None:
        """When the next member is dead if it does not show that it is alive; None when there is none alive."""
        ends = [one.end for one in self._seen.values()]
        ends += [since + self._duration for since in self._missing.values()]
        return min((end for end in ends if end > self._at), default=None)

    def forgotten(self) -> list[Lease]:
        """Leases of members that have been dead for long."""
        return [
            one.lease for one in self._seen.values() if one.since + FORGOTTEN_AFTER * one.duration <= self._at
        ]
