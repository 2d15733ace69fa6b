"""Live members and the assignment of shards to them, without clock or requests.

An Hvpa belongs permanently to one of N shards. A shard goes to the member that wins it by rendezvous hashing (Thaler
and Ravishankar, 1998): each member has a hash with each shard, and the highest hash wins. So all processes that see
the same members get the same result. When a member joins or leaves, only the shards move that it wins or had won.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from hashlib import blake2b

from hvpa.kube.leases.lease_api import Lease
from hvpa.reconcile.ports import Key

LABEL_LEASE = "hvpa.autoscaling.k8s.io/lease"
"""Label of all Leases of an installation: the name of its main Lease."""
LABEL_SHARDS = "hvpa.autoscaling.k8s.io/shards"
"""Label: the number of shards that the creator of this Lease uses."""
FORGOTTEN_AFTER = 4.0
"""Number of lease durations after which the Lease of a dead member is deleted."""


def shard_of(key: Key, shards: int) -> int:
    """The shard of an Hvpa, 0 to `shards` - 1; the same in every process and release."""
    return _hash(f"{key.namespace}/{key.name}") % shards


def winner(shard: int, members: Collection[str]) -> str | None:
    """The member that gets a shard; None without members."""
    return max(members, key=lambda member: (_hash(f"{shard}/{member}"), member), default=None)


@dataclass(frozen=True, slots=True)
class Plan:
    """The next steps of a member."""

    take: frozenset[int] = frozenset()
    """Shards whose Lease to take."""
    leave: frozenset[int] = frozenset()
    """Shards to give up."""
    lost: frozenset[int] = frozenset()
    """Shards that the member believed to hold and does not."""


def plan(me: str, live: Collection[str], holders: Mapping[int, str | None], held: frozenset[int]) -> Plan:
    """The next steps of `me` among these live members.

    `holders` is the live member that each shard's Lease names, None for no member or a dead member. `held` are the
    shards that `me` believes to hold. `me` takes no shard that another live member holds, whoever wins it:
    that member must give it up first.
    """
    mine = {shard for shard in holders if winner(shard, {*live, me}) == me}
    free = {shard for shard, holder in holders.items() if holder is None}
    named = frozenset(shard for shard, holder in holders.items() if holder == me)
    return Plan(take=frozenset((free | named - held) & mine), leave=named - mine, lost=held - named)


@dataclass(frozen=True, slots=True)
class Names:
    """Names of the Leases of an installation whose work is divided into `shards`."""

    lease: str
    shards: int

    @property
    def group(self) -> str:
        """The holder of the main Lease: all members together."""
        return f"shards-{self.shards}"

    @property
    def labels(self) -> dict[str, str]:
        """Labels of members' and shards' Leases."""
        return {LABEL_LEASE: self.lease, LABEL_SHARDS: str(self.shards)}

    @property
    def selector(self) -> str:
        """Selects members' and shards' Leases, also those with another number of shards."""
        return f"{LABEL_LEASE}={self.lease}"

    def member(self, identity: str) -> str:
        """The Lease that shows that a member is alive. `identity` ends in `_` and a unique part."""
        return f"{self.lease}-member-{identity.rpartition('_')[2]}"

    def is_member(self, name: str) -> bool:
        """Whether a Lease is a member's."""
        return name.startswith(f"{self.lease}-member-")

    def shard(self, shard: int) -> str:
        """The Lease of a shard."""
        return f"{self.lease}-shard-{shard}-of-{self.shards}"

    def is_shard(self, name: str) -> bool:
        """Whether a Lease is a shard's, with any number of shards."""
        return re.fullmatch(re.escape(self.lease) + "-shard-[0-9]+-of-[0-9]+", name) is not None


@dataclass(slots=True)
class _Seen:
    lease: Lease
    since: float
    """When the Lease was first seen in this version."""
    duration: float

    @property
    def end(self) -> float:
        return self.since + self.duration if self.lease.holder is not None else float("-inf")


class Members:
    """The live members, by the changes of their Leases that this process has seen. It never waits or reads the clock.

    A member is alive as long as its Lease changes at least once per duration. If the holder of a shard has no Lease,
    a client has deleted the Lease and the holder may not have noticed: it counts as alive for one duration, too.
    """

    def __init__(self, names: Names, duration: float) -> None:
        """`duration`: seconds, for Leases that contain no duration."""
        self._names = names
        self._duration = duration
        self._seen: dict[str, _Seen] = {}
        self._missing: dict[str, float] = {}
        """Holders of shards without a Lease of their own, and since when."""
        self._at = 0.0

    def look(self, leases: Iterable[Lease], sent: float, received: float) -> None:
        """Update from a list of all Leases, requested at `sent` and received at `received`."""
        before, self._seen = self._seen, {}
        members, holders = [], set()
        for lease in leases:
            if self._names.is_member(lease.metadata.name):
                members.append(lease)
            elif lease.holder is not None:
                holders.add(lease.holder)
        for lease in members:
            known = before.get(lease.metadata.name)
            if known is None or known.lease.metadata.resource_version != lease.metadata.resource_version:
                known = _Seen(lease, received, lease.spec.lease_duration_seconds or self._duration)
            self._seen[lease.metadata.name] = known
        present = {observed.lease.holder for observed in self._seen.values()}
        self._missing = {holder: self._missing.get(holder, received) for holder in holders - present}
        self._at = sent

    def live(self) -> frozenset[str]:
        """Identities of the members, with our number of shards, that were alive at the last list."""
        shards = str(self._names.shards)
        return frozenset(
            observed.lease.spec.holder_identity or ""
            for observed in self._seen.values()
            if observed.end > self._at and observed.lease.metadata.labels.get(LABEL_SHARDS) == shards
        )

    def is_dead(self, identity: str) -> bool:
        """Whether this member can no longer believe that its shards are its own."""
        for observed in self._seen.values():
            if observed.lease.holder == identity:
                return observed.end <= self._at
        return self._missing.get(identity, self._at) + self._duration <= self._at

    def next_end(self) -> float | None:
        """When the next member is dead unless its Lease changes; None without live members."""
        ends = [observed.end for observed in self._seen.values()]
        ends += [since + self._duration for since in self._missing.values()]
        return min((end for end in ends if end > self._at), default=None)

    def forgotten(self) -> list[Lease]:
        """Leases of members that have been dead for FORGOTTEN_AFTER."""
        observations = self._seen.values()
        return [
            observed.lease
            for observed in observations
            if observed.since + FORGOTTEN_AFTER * observed.duration <= self._at
        ]


def _hash(text: str) -> int:
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big")
