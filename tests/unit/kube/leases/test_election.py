"""Leader election against a Lease that is kept by a fake server, over HTTP.

`test_election_times.py` has the rest, in virtual time."""

from __future__ import annotations

import asyncio
import copy
import datetime as dt
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from hvpa.kube.client.errors import Unreachable
from hvpa.kube.client.transport import Transport
from hvpa.kube.leases.election import LeaderElector
from hvpa.kube.leases.lease_api import Candidate, LeaseApi, LeaseTimes
from hvpa.reconcile.supervision import Supervisor
from tests.unit.kube.fake_server import FakeServer, always, background, status, until

PATIENT = LeaseTimes(duration=3000, renew=2000, retry=0.02)
"""For what must not be lost, however busy the machine is."""


class FakeClock:
    def now(self) -> dt.datetime:
        return dt.datetime(2026, 11, 21, tzinfo=dt.UTC)


class Leases:
    """The server's side: one Lease, with optimistic locking."""

    def __init__(self) -> None:
        self.lease: dict[str, Any] | None = None
        self.version = 0
        self.server = FakeServer(self._handle)

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        body = self.server.bodies[-1]
        match request.method:
            case "GET" if self.lease is None:
                return status(404, "NotFound")
            case "POST" if self.lease is not None:
                return status(409, "AlreadyExists")
            case "PUT" if self.lease is None or body["metadata"]["resourceVersion"] != str(self.version):
                return status(409, "Conflict")
            case "POST" | "PUT":
                self.store(body)
        return web.json_response(self.lease)

    def store(self, lease: dict[str, Any]) -> None:
        self.version += 1
        self.lease = {**lease, "metadata": {**lease["metadata"], "resourceVersion": str(self.version)}}

    @asynccontextmanager
    async def running(self, folder: Path) -> AsyncIterator[Transport]:
        async with self.server.connected(folder) as transport:
            yield transport


def elector(transport: Transport, identity: str, times: LeaseTimes = PATIENT) -> LeaderElector:
    return LeaderElector(transport, FakeClock(), Candidate("ns", "hvpa", identity, times))


async def test_dead_connections_do_not_cost_the_lease_while_new_ones_get_through(tmp_path: Path) -> None:
    """All connections that are kept are dead at once, as when a load balancer forgets them: many, should the lease's
    transport have had other requests too."""
    leases, many = Leases(), 16

    async def together(request: web.Request) -> web.StreamResponse:
        await until(lambda: len(leases.server.requests) >= many)
        return web.Response(body=b"{}")

    async with leases.running(tmp_path) as transport:
        leases.server.handler = together
        await asyncio.gather(*(transport.request("GET", "/") for _ in range(many)))
        assert leases.server.connections() == many
        leases.server.handler = leases._handle
        leader_elector = elector(transport, "one", LeaseTimes(duration=12.0, renew=8.0, retry=0.2))
        await leader_elector.acquire()
        async with background(leader_elector.keep()) as keeping:
            leases.server.lose_connections()
            known = leases.version
            await until(lambda: leases.version > known or keeping.done())
            assert leader_elector.holds()
            assert not keeping.done()


@pytest.mark.parametrize("answer", [b"", b"<html>", b"{}", b'{"metadata": {}}', b"[" * 100_000, b'"\xff"'])
async def test_an_answer_that_is_no_lease_is_as_good_as_none(tmp_path: Path, answer: bytes) -> None:
    leases = Leases()
    async with leases.running(tmp_path) as transport:
        leader_elector = elector(transport, "one")
        await leader_elector.acquire()
        handler, leases.server.handler = leases.server.handler, always(answer)
        async with background(leader_elector.keep()):
            before = len(leases.server.requests)
            await until(lambda: len(leases.server.requests) > before + 3)
            with pytest.raises(Unreachable):
                await LeaseApi(transport, FakeClock(), "ns", 1.0).list("a=b")
            leases.server.handler = handler
            version = leases.version
            await until(lambda: leases.version > version + 1)  # renewed again
            assert leader_elector.holds()


async def test_a_lease_in_an_earlier_state_is_noticed_by_holder_and_waiting_and_kept(tmp_path: Path) -> None:
    """As after a restore of etcd from a backup."""
    leases, noticed = Leases(), list[str]()
    async with leases.running(tmp_path) as transport:
        holder, waiting = elector(transport, "holder"), elector(transport, "waiting")
        holder.on_set_back = lambda: noticed.append("holder")
        waiting.on_set_back = lambda: noticed.append("waiting")
        async with background(holder.run(Supervisor())) as keeping:
            await until(holder.holds)
            backup = copy.deepcopy(leases.lease)
            async with background(waiting.run(Supervisor())):
                await until(lambda: leases.version > 7)
                requested = len(leases.server.requests)
                await until(lambda: len(leases.server.requests) > requested + 6)
                assert noticed == []
                leases.version, leases.lease = 1, backup
                await until(lambda: {"holder", "waiting"} <= {*noticed})
                assert holder.holds()
                assert not keeping.done()
                assert not waiting.holds()


async def test_an_exception_while_a_lease_is_kept_does_not_cost_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    leases, acquired, faults = Leases(), list[bool](), 0
    original = LeaderElector._try

    async def fail(self: LeaderElector) -> bool:
        nonlocal faults
        if acquired and faults < 3:
            faults += 1
            raise KeyError("a fault")
        return await original(self)

    monkeypatch.setattr(LeaderElector, "_try", fail)
    supervisor = Supervisor()
    async with leases.running(tmp_path) as transport:
        leader_elector = elector(transport, "one")
        async with background(leader_elector.run(supervisor, lambda: acquired.append(True))) as keeping:
            await until(lambda: faults == 3 and leases.version > 5)
            assert leader_elector.holds()
            assert not keeping.done()
    assert acquired == [True]
    assert supervisor.problems() == {"lease hvpa": "keeps failing: KeyError"}


async def test_a_lease_that_another_has_taken_ends_the_run(tmp_path: Path) -> None:
    leases = Leases()
    async with leases.running(tmp_path) as transport:
        leader_elector = elector(transport, "one")
        async with background(leader_elector.run(Supervisor())) as keeping:
            await until(leader_elector.holds)
            assert leases.lease is not None
            leases.store({**leases.lease, "spec": {**leases.lease["spec"], "holderIdentity": "another"}})
            await until(keeping.done)
            assert keeping.result() is None
    assert not leader_elector.holds()
