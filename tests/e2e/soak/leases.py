"""Whose each Lease was and is, by the writes of it, and which of them an Hvpa falls under: its shard's, or where one
leads the only one."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from hvpa.kube.leases.assignment import Names, shard_of
from hvpa.reconcile.ports import Key
from tests.e2e.soak.audit_trail import Write
from tests.e2e.soak.objects import Place

LEASE_NAME = "hvpa"
"""The operator's default."""


@dataclass(slots=True)
class _Lease:
    """The history of one Lease, in credentials."""

    holder: str = ""
    last: str = ""
    """Its holder or, where it has none, its last one."""
    ended: dict[str, float] = field(default_factory=dict)
    """Until when others held it: when the write was answered that ended it (seconds of the epoch)."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A write by a process that does not hold `lease`. `holder` is the credential of its holder (empty: none); `late`
    the seconds since it held that itself, None where it never did."""

    lease: str
    holder: str
    late: float | None


class Leases:
    """The Leases that decide who writes: one for all Hvpas, or one for each of several shards."""

    def __init__(self, shards: int = 1) -> None:
        """`shards`: as the operators' flag has it; 1: one of them leads."""
        names = Names(LEASE_NAME, shards)
        self.names = [names.shard(shard) for shard in range(shards)] if shards > 1 else [LEASE_NAME]
        """By number of shard."""
        self.takeovers = 0
        """How often a Lease went to a process that was not the last to hold it."""
        self._leases = {lease: _Lease() for lease in self.names}

    def note(self, write: Write) -> None:
        """Take note of a write of a Lease. Those of members and of their group say nothing about an Hvpa."""
        held = self._leases.get(write.name)
        if held is None:
            return
        holder = write.credential if _names_a_holder(write) else ""
        if holder == held.holder:
            return
        if held.holder:
            held.ended[held.holder] = write.answered
        held.holder = holder
        if holder and holder != held.last:
            held.last = holder
            self.takeovers += 1

    def problem(self, place: Place, write: Write) -> Problem | None:
        """What is wrong with who wrote this for the Hvpa at `place`. A write is in time when it comes before the
        answer to the one after which the writer no longer held the Lease."""
        lease = self.names[shard_of(Key(*place), len(self.names))]
        held = self._leases[lease]
        if write.credential == held.holder:
            return None
        ended = held.ended.get(write.credential)
        if ended is None:
            return Problem(lease, held.holder, None)
        return Problem(lease, held.holder, write.received - ended) if write.received > ended else None

    def holder(self, lease: str) -> str:
        """The credential of a Lease's holder; empty for none."""
        return self._leases[lease].holder

    def unheld(self, living: Collection[str]) -> list[str]:
        """The Leases that none of these credentials holds."""
        return [lease for lease, held in self._leases.items() if held.holder not in living]


def _names_a_holder(write: Write) -> bool:
    return bool((write.body or {}).get("spec", {}).get("holderIdentity"))
