"""Replicas of the operator that share the work, each with an account of its own, and what the audit log says of who
wrote when."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from dataclasses import dataclass

import yaml

from hvpa.kube.leases.assignment import Names, shard_of, winner
from hvpa.reconcile.ports import Key
from localcluster.client.api import Json, wait_for
from localcluster.client.audit import Mark, Request
from localcluster.controlplane.controlplane import ControlPlane
from localcluster.operator.operator import REPOSITORY, Operator
from tests.e2e.bare.accounts import bind_cluster_role, new_account

LEASES = REPOSITORY / "config" / "sharded" / "shards_role.yaml"
GOVERNED = frozenset(
    {"deployments", "statefulsets", "hvpas", "horizontalpodautoscalers", "verticalpodautoscalers"}
)


@dataclass
class Replica:
    """An operator, and the user that only it is."""

    operator: Operator
    user: str

    @property
    def identity(self) -> str | None:
        """What it calls itself as a member, since its last start."""
        names = [
            line["identity"] for line in self.operator.log_lines() if "-member-" in str(line.get("lease"))
        ]
        return names[-1] if names else None

    @property
    def held(self) -> int:
        """How many shards it works on, by its own word; 0 where it does not run."""
        try:
            return int(self.operator.metric("hvpa_shards_held")) if self.operator.process.alive else 0
        except OSError:
            return 0


class Operators:
    """Replicas for one namespace, where their Leases are, too. Use as a context manager."""

    def __init__(self, plane: ControlPlane, namespace: str) -> None:
        self.plane = plane
        self.namespace = namespace
        self.replicas: list[Replica] = []
        self._start = plane.audit.mark()

    def __enter__(self) -> Operators:
        return self

    def __exit__(self, *error: object) -> None:
        for replica in self.replicas:
            replica.operator.kill()

    def join(self, *flags: str, duration: int) -> Replica:
        """One more replica; started, not awaited. `duration`: of a Lease, in seconds."""
        name = f"replica-{len(self.replicas)}"
        user = new_account(self.plane, self.namespace, name, *rights())
        bind_cluster_role(self.plane, "hvpa-operator", self.namespace, name)
        kubeconfig = self.plane.service_account_kubeconfig(self.namespace, name)
        own = ("--namespace", self.namespace, "--lease-namespace", self.namespace)
        operator = Operator(
            self.plane, kubeconfig, *own, "--lease-duration", str(duration), *flags, name=name
        )
        operator.start(wait=False)
        self.replicas.append(Replica(operator, user))
        return self.replicas[-1]

    def await_shares(self, shards: int, *members: Replica, timeout: float = 120) -> None:
        """Wait until each shard is with the one of these members that wins it."""

        def is_shared() -> bool:
            known = [member.identity for member in members if member.operator.process.alive]
            if None in known or len(known) < len(members):
                return False
            winners = {shard: winner(shard, [str(identity) for identity in known]) for shard in range(shards)}
            return self.holders(shards) == winners

        wait_for(is_shared, timeout, lambda: f"{self.holders(shards)} to be shared", 0.05)

    def holders(self, shards: int) -> dict[int, str | None]:
        """Who holds each shard by its Lease."""
        names, identities = Names("hvpa", shards), {}
        for shard in range(shards):
            lease = self.plane.api.find("Lease", names.shard(shard), self.namespace)
            identities[shard] = (lease or {}).get("spec", {}).get("holderIdentity") or None
        return identities

    # --- by the audit log ---------------------------------------------------------------------------------------------
    def writes(self, since: Mark | None = None) -> list[Request]:
        """What replicas wrote, Leases and Events aside, and was accepted."""
        requests = self.plane.audit.requests(since or self._start, writes=True, namespace=self.namespace)
        users = {replica.user for replica in self.replicas}
        return [
            request
            for request in requests
            if request.user in users and request.resource in GOVERNED and request.code < 300
        ]

    def foreign_writes(self, shards: int) -> list[str]:
        """Writes by others than the one whose Lease of the Hvpa's shard it was when they came: none, one hopes."""
        holders = self._holders(shards)
        wrong = []
        for write in self.writes():
            owner = _at(holders.get(shard_of(Key(self.namespace, write.name), shards), []), write.received)
            if owner != write.user:
                wrong.append(f"{write}, the shard being {owner}'s")
        return wrong

    def _holders(self, shards: int) -> dict[int, list[tuple[dt.datetime, str | None]]]:
        """From when on each shard was whose: the time at which the write of its Lease came that was accepted."""
        names = Names("hvpa", shards)
        by_name = {names.shard(shard): shard for shard in range(shards)}
        holders: dict[int, list[tuple[dt.datetime, str | None]]] = {}
        writes = self.plane.audit.requests(
            self._start, resource="leases", writes=True, namespace=self.namespace
        )
        for write in sorted(writes, key=lambda request: request.received):
            if write.code < 300 and write.name in by_name:
                holder = write.body["spec"].get("holderIdentity")
                holders.setdefault(by_name[write.name], []).append(
                    (write.received, write.user if holder else None)
                )
        return holders


def _at(holders: list[tuple[dt.datetime, str | None]], when: dt.datetime) -> str | None:
    past = [user for since, user in holders if since <= when]
    return past[-1] if past else None


def rights() -> list[Json]:
    """The rules of the role that replicas need besides the operator's own."""
    return [dict(rule) for rule in yaml.safe_load(LEASES.read_text())["rules"]]


def needed(rules: list[Json]) -> Iterator[tuple[str, str]]:
    """Resource and verb of each right in rules."""
    for rule in rules:
        yield from ((resource, verb) for resource in rule["resources"] for verb in rule["verbs"])
