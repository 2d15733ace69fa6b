"""Whether the operator is alive, by the Lease that it renews every two seconds: its last report may be old."""

from __future__ import annotations

import asyncio
import datetime as dt
from typing import Any, Final, Literal, NamedTuple

import msgspec

from hvpa.api.objects.read_models import Instant, Int, ReadModel
from hvpa.api.values.duration import readable_duration
from hvpa.api.values.timestamp import format_timestamp, readable_timestamp
from hvpa.cli.errors import plain_line
from hvpa.kube.client.errors import ApiError, Unreachable
from hvpa.kube.client.transport import Transport
from hvpa.kube.clock import SystemClock
from hvpa.kube.leases.assignment import Names, shard_of
from hvpa.kube.leases.lease_api import API_VERSION
from hvpa.reconcile.ports import Key

DEFAULT_LEASE: Final = Key("hvpa-system", "hvpa")
"""The operator's Lease as config/ and the chart install it."""
DURATION: Final = dt.timedelta(seconds=15)
"""Validity of a renewal if the Lease contains no duration."""
CONFIRM: Final = 3.0
"""Seconds until a Lease that seems not to be renewed is read again.

This is longer than the two seconds between renewals, so that neither a clock difference nor a change of the leader
looks like silence.
"""
_NOT_FOUND, _FORBIDDEN = 404, 403
_GROUP: Final = "shards-"


class OperatorState(NamedTuple):
    """Whether the operator is alive."""

    state: Literal["alive", "silent", "unknown"]
    since: dt.datetime | None = None
    """When it last renewed its Lease."""
    why: str = ""
    """Why the state is unknown."""

    def text(self, now: dt.datetime) -> str:
        """The message for a user at `now`; empty if the operator is alive."""
        if self.state == "alive":
            return ""
        if self.state == "unknown":
            return f"can't tell whether the operator is alive: {self.why}"
        if self.since is None:
            return "operator silent: its Lease has no holder; nothing is scaled until it is back"
        duration = readable_duration(max(now - self.since, dt.timedelta(0)))
        when = readable_timestamp(self.since)
        return f"operator silent for {duration}, since {when}: nothing is scaled until it is back"

    def as_json(self) -> dict[str, Any]:
        """The state as JSON; `since` is when the Lease was last renewed."""
        since = None if self.since is None else format_timestamp(self.since.replace(microsecond=0))
        return {"state": self.state, "since": since, "why": self.why or None}


class _Spec(ReadModel, frozen=True):
    holder_identity: str | None = None
    lease_duration_seconds: Int | None = None
    renew_time: Instant | None = None


class _Lease(ReadModel, frozen=True):
    spec: _Spec = _Spec()

    def is_renewed(self, now: dt.datetime) -> bool:
        """Whether its holder's last renewal is still valid."""
        seconds, renewed = self.spec.lease_duration_seconds, self.spec.renew_time
        if not self.spec.holder_identity or renewed is None:
            return False
        return now - renewed <= (DURATION if seconds is None else dt.timedelta(seconds=min(seconds, 86400)))


_decode = msgspec.json.Decoder(_Lease).decode


async def operator_state(transport: Transport, lease: Key, hvpa: Key | None = None) -> OperatorState:
    """Whether the operator with this Lease is alive; with shards, the replica that works on `hvpa`.

    Never raises: the state is unknown if the Lease can't be read.
    """
    try:
        state = await _state(transport, lease)
        if state.state != "alive" or hvpa is None:
            return state
        member = await _member(transport, lease, hvpa)
        return state if member is None else await _state(transport, member)
    except ApiError as error:
        return OperatorState("unknown", why=_why(error, lease))
    except (Unreachable, msgspec.MsgspecError) as error:
        return OperatorState("unknown", why=f"Lease {lease} can't be read: {plain_line(error)}")


async def _state(transport: Transport, name: Key) -> OperatorState:
    """The state of the Lease's holder. Raises ApiError, Unreachable and MsgspecError."""
    lease = await _read(transport, name)
    if not lease.is_renewed(SystemClock().now()):
        before = lease.spec
        await asyncio.sleep(CONFIRM)
        lease = await _read(transport, name)
        if lease.spec == before or not lease.spec.holder_identity:
            return OperatorState("silent", lease.spec.renew_time)
    return OperatorState("alive", lease.spec.renew_time)


async def _member(transport: Transport, lease: Key, hvpa: Key) -> Key | None:
    """The Lease of the replica that has the Hvpa's shard.

    None without shards, while the shard is being taken, and if the user may not read it: the Lease of all replicas is
    used then.
    """
    holder = (await _read(transport, lease)).spec.holder_identity or ""
    count = holder.removeprefix(_GROUP)
    if not holder.startswith(_GROUP) or not (count.isascii() and count.isdigit()) or not int(count[:6]) > 0:
        return None
    names = Names(lease.name, int(count[:6]))
    try:
        shard = Key(lease.namespace, names.shard(shard_of(hvpa, names.shards)))
        identity = (await _read(transport, shard)).spec.holder_identity
        member = None if not identity else Key(lease.namespace, names.member(identity))
        if member is not None:
            await _read(transport, member)
    except ApiError as error:
        if error.status in (_NOT_FOUND, _FORBIDDEN):
            return None
        raise
    return member


async def _read(transport: Transport, name: Key) -> _Lease:
    path = f"/apis/{API_VERSION}/namespaces/{name.namespace}/leases/{name.name}"
    return _decode(await transport.request("GET", path))


def _why(error: ApiError, lease: Key) -> str:
    if error.status == _NOT_FOUND:
        return (
            f"Lease {lease} does not exist; the operator runs without --leader-elect, or uses another Lease "
            "(--operator-lease)"
        )
    if error.status == _FORBIDDEN:
        return f"no right to get Lease {lease}"
    return f"Lease {lease} can't be read: {plain_line(error)}"
