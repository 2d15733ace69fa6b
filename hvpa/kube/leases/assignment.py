"""Who works on what when replicas share the work: pure functions of names, without clock or requests.

An Hvpa belongs to one of N shards for ever. A shard goes to the member that wins it by rendezvous hashing (Thaler and
Ravishankar, 1998): each member has a hash with each shard, and the highest wins. So everybody who knows the same
members comes to the same result, and when a member joins or leaves, only the shards move that it wins or had won.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from hashlib import blake2b

from hvpa.reconcile.ports import Key

LABEL_LEASE = "hvpa.autoscaling.k8s.io/lease"
"""Label of all Leases of one installation: the name of its main Lease."""
LABEL_SHARDS = "hvpa.autoscaling.k8s.io/shards"
"""Label: how many shards the one who made this Lease knew."""


def shard_of(key: Key, shards: int) -> int:
    """The shard of an Hvpa, 0 to `shards` - 1; the same in every process and release."""
    return _hash(f"{key.namespace}/{key.name}") % shards


def winner(shard: int, members: Collection[str]) -> str | None:
    """Which of the members a shard goes to; None when there are none."""
    return max(members, key=lambda member: (_hash(f"{shard}/{member}"), member), default=None)


@dataclass(frozen=True, slots=True)
class Plan:
    """What a member does next. `take`: shards to get the Lease of; `leave`: shards to give up; `lost`: shards that it
    thought were its own and that are not."""

    take: frozenset[int] = frozenset()
    leave: frozenset[int] = frozenset()
    lost: frozenset[int] = frozenset()


def plan(me: str, live: Collection[str], holders: Mapping[int, str | None], held: frozenset[int]) -> Plan:
    """What `me` does where these members are alive. `holders`: which live member each shard's Lease names, None where
    that is nobody or a dead one; `held`: the shards whose Lease `me` knows to be its own. It takes nothing that another
    live member still holds, whoever wins it: that one has to give it up first."""
    mine = {shard for shard in holders if winner(shard, {*live, me}) == me}
    free = {shard for shard, holder in holders.items() if holder is None}
    named = frozenset(shard for shard, holder in holders.items() if holder == me)
    return Plan(take=frozenset((free | named - held) & mine), leave=named - mine, lost=held - named)


@dataclass(frozen=True, slots=True)
class Names:
    """Names of the Leases of one installation whose work is divided into `shards`."""

    lease: str
    shards: int

    @property
    def group(self) -> str:
        """Who holds the main Lease: all members together."""
        return f"shards-{self.shards}"

    @property
    def labels(self) -> dict[str, str]:
        """Labels of members' and shards' Leases."""
        return {LABEL_LEASE: self.lease, LABEL_SHARDS: str(self.shards)}

    @property
    def selector(self) -> str:
        """Selects members' and shards' Leases, those of other numbers of shards included."""
        return f"{LABEL_LEASE}={self.lease}"

    def member(self, identity: str) -> str:
        """The Lease by which a member shows that it is alive. `identity` ends in `_` and what makes it unique."""
        return f"{self.lease}-member-{identity.rpartition('_')[2]}"

    def is_member(self, name: str) -> bool:
        """Whether a Lease is that of a member."""
        return name.startswith(f"{self.lease}-member-")

    def shard(self, shard: int) -> str:
        """The Lease of a shard."""
        return f"{self.lease}-shard-{shard}-of-{self.shards}"

    def is_shard(self, name: str) -> bool:
        """Whether a Lease is that of a shard, of whatever number."""
        return re.fullmatch(re.escape(self.lease) + "-shard-[0-9]+-of-[0-9]+", name) is not None


def _hash(text: str) -> int:
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big")
