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
class _Turn:
    """The history of one Lease, in credentials."""

    holder: str = ""
    last: str = ""
    """Who holds it or, where nobody does, has given it back."""
    ended: dict[str, float] = field(default_factory=dict)
    """Until when others held it: when the write was answered that ended their turn (seconds of the epoch)."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A write by a process that does not hold `lease`. `holder` is the credential of who does (empty: nobody); `late`
    the seconds since its own turn, None where it never had one."""

    lease: str
    holder: str
    late: float | None


class Turns:
    """The Leases that say who writes: one for all Hvpas, or one for each of several shards."""

    def __init__(self, shards: int = 1) -> None:
        """`shards`: as the operators were told; 1: one of them leads."""
        names = Names(LEASE_NAME, shards)
        self.leases = [names.shard(one) for one in range(shards)] if shards > 1 else [LEASE_NAME]
        """By number of shard."""
        self.takeovers = 0
        """How often a Lease went to a process that was not the last to hold it."""
        self._turns = {lease: _Turn() for lease in self.leases}

    def note(self, write: Write) -> None:
        """Take note of a write of a Lease. Those of members and of their group say nothing about an Hvpa."""
        turn = self._turns.get(write.name)
        if turn is None:
            return
        holder = write.credential if _names_a_holder(write) else ""
        if holder == turn.holder:
            return
        if turn.holder:
            turn.ended[turn.holder] = write.answered
        turn.holder = holder
        if holder and holder != turn.last:
            turn.last = holder
            self.takeovers += 1

    def problem(self, place: Place, write: Write) -> Problem | None:
        """What is wrong with who wrote this for the Hvpa at `place`. A write is in time when it comes before the
        answer to the one that ends the writer's turn."""
        lease = self.leases[shard_of(Key(*place), len(self.leases))]
        turn = self._turns[lease]
        if write.credential == turn.holder:
            return None
        ended = turn.ended.get(write.credential)
        if ended is None:
            return Problem(lease, turn.holder, None)
        return Problem(lease, turn.holder, write.received - ended) if write.received > ended else None

    def holder(self, lease: str) -> str:
        """The credential of who holds a Lease; empty for nobody."""
        return self._turns[lease].holder

    def unheld(self, living: Collection[str]) -> list[str]:
        """The Leases that none of these credentials holds."""
        return [lease for lease, turn in self._turns.items() if turn.holder not in living]


def _names_a_holder(write: Write) -> bool:
    return bool((write.body or {}).get("spec", {}).get("holderIdentity"))
