"""Events: written in the background, counted when they repeat, never too many."""

from __future__ import annotations

import asyncio
import datetime as dt
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web

from hvpa.api.objects.read_models import Meta
from hvpa.core.model import Event, Involved
from hvpa.kube.client.limits import Limiter
from hvpa.kube.events import BURST, EventRecorder
from tests.unit.kube.fake_server import LONG, FakeServer, status

pytestmark = pytest.mark.asyncio
HVPA = Meta(name="h", namespace="ns", uid="u", resource_version="5")
SCALED = Event("Normal", "ScaledOut", "replicas 2 to 3")


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """All that is noted is written within milliseconds, but on a machine that does many other things."""
    monkeypatch.setattr("hvpa.kube.events.FLUSH", LONG)


class FakeClock:
    def __init__(self) -> None:
        self.time = dt.datetime(2026, 11, 21, tzinfo=dt.UTC)

    def now(self) -> dt.datetime:
        return self.time


class World:
    def __init__(self) -> None:
        self.server = FakeServer()
        self.clock = FakeClock()
        self.code = 200
        self.first_codes: list[int] = []
        """Of the first requests; then `code`."""
        self.limiter = Limiter(1)
        self.server.handler = self._handle

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        code = self.first_codes.pop(0) if self.first_codes else self.code
        if code == 0:
            assert request.transport is not None
            request.transport.abort()
        elif code != 200:
            return status(code, "" if code == 429 else "Refused", headers={"Retry-After": "0"})
        return web.json_response({})

    def methods(self) -> list[str]:
        return [method for method, _, _ in self.server.requests]

    @asynccontextmanager
    async def running(self, folder: Path) -> AsyncIterator[EventRecorder]:
        async with self.server.running(), self.server.transport(folder) as transport:
            recorder = EventRecorder(transport, self.clock, self.limiter)
            task = asyncio.create_task(recorder.run())
            yield recorder
            task.cancel()


async def test_an_event_names_the_hvpa_and_a_repeated_one_is_counted(tmp_path: Path) -> None:
    world = World()
    async with world.running(tmp_path) as recorder:
        recorder.record(HVPA, SCALED)
        recorder.record(HVPA, SCALED)
        recorder.record(HVPA, Event("Warning", "Other", "x"))
        await recorder.flush()
        assert world.methods() == ["POST", "PATCH", "POST"]
        first = world.server.bodies[0]
        assert first["involvedObject"]["kind"] == "Hvpa"
        assert first["involvedObject"]["uid"] == "u"
        assert (first["type"], first["reason"], first["message"], first["count"]) == (
            "Normal",
            "ScaledOut",
            "replicas 2 to 3",
            1,
        )
        assert world.server.bodies[1] == {"count": 2, "lastTimestamp": "2026-11-21T00:00:00Z"}
        world.clock.time += dt.timedelta(minutes=11)
        recorder.record(HVPA, SCALED)
        await recorder.flush()
        assert world.methods()[3:] == ["POST"]


async def test_an_event_on_the_workload_names_it_and_has_a_limit_of_its_own(tmp_path: Path) -> None:
    world = World()
    workload = Involved("apps/v1", "StatefulSet", "w", "of-w", "7")
    on_workload = Event("Normal", "ScaledOut", "Hvpa h: replicas 2 -> 3", workload)
    async with world.running(tmp_path) as recorder:
        for number in range(BURST + 1):
            recorder.record(HVPA, Event("Normal", "Other", str(number)))
        recorder.record(HVPA, on_workload)
        recorder.record(HVPA, on_workload)
        await recorder.flush()
    assert world.methods() == ["POST"] * (BURST + 1) + ["PATCH"]
    body = world.server.bodies[BURST]
    assert body["involvedObject"] == {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "namespace": "ns",
        "name": "w",
        "uid": "of-w",
        "resourceVersion": "7",
    }
    assert body["metadata"]["name"].startswith("w.")
    assert body["metadata"]["namespace"] == "ns"


async def test_an_event_that_has_expired_is_written_anew(tmp_path: Path) -> None:
    world = World()
    async with world.running(tmp_path) as recorder:
        recorder.record(HVPA, SCALED)
        await recorder.flush()
        world.code = 404
        recorder.record(HVPA, SCALED)
        await recorder.flush()
        assert world.methods() == ["POST", "PATCH", "POST"]


async def test_a_server_that_refuses_events_stops_nothing(tmp_path: Path) -> None:
    world = World()
    world.code = 403
    async with world.running(tmp_path) as recorder:
        recorder.record(HVPA, SCALED)
        await recorder.flush()
        world.code = 200
        recorder.record(HVPA, SCALED)
        await recorder.flush()
        assert world.methods() == ["POST", "POST"]


async def test_a_noisy_hvpa_is_cut_short_and_others_are_not(tmp_path: Path) -> None:
    world = World()
    async with world.running(tmp_path) as recorder:
        for number in range(100):
            recorder.record(HVPA, Event("Normal", "Scaled", str(number)))
        recorder.record(Meta(name="other", namespace="ns", uid="v"), SCALED)
        await recorder.flush()
        assert len(world.server.requests) == BURST + 1
        world.clock.time += dt.timedelta(minutes=1)
        for number in range(100):
            recorder.record(HVPA, Event("Normal", "Scaled", str(number)))
        await recorder.flush()
        assert len(world.server.requests) == BURST + 3


async def test_events_wait_for_whoever_writes_and_tell_when_they_happened(tmp_path: Path) -> None:
    world = World()
    async with world.running(tmp_path) as recorder:
        async with world.limiter.permit():
            recorder.record(HVPA, SCALED)
            world.clock.time += dt.timedelta(minutes=1)
            await asyncio.sleep(0.05)
            assert world.methods() == []
        await recorder.flush()
        assert world.server.bodies[0]["firstTimestamp"] == "2026-11-21T00:00:00Z"


async def test_an_event_comes_again_when_the_server_has_asked_to_wait(tmp_path: Path) -> None:
    world = World()
    world.first_codes = [429]
    async with world.running(tmp_path) as recorder:
        recorder.record(HVPA, SCALED)
        await recorder.flush()
        assert world.methods() == ["POST", "POST"]


async def test_an_event_whose_answer_was_lost_is_written_under_the_same_name_and_that_it_is_there_is_fine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hvpa.kube.events.PAUSES", (0.01, 0.01))
    world = World()
    world.first_codes = [0, 409]
    async with world.running(tmp_path) as recorder:
        recorder.record(HVPA, SCALED)
        await recorder.flush()
        first, second = (body["metadata"]["name"] for body in world.server.bodies)
        assert first == second
        recorder.record(HVPA, SCALED)
        await recorder.flush()
        assert world.methods() == ["POST", "POST", "PATCH"]


async def test_an_event_for_a_server_that_stays_away_is_dropped_in_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hvpa.kube.events.PAUSES", (0.01, 0.01))
    world = World()
    world.code = 0
    async with world.running(tmp_path) as recorder:
        recorder.record(HVPA, SCALED)
        await recorder.flush()
        assert world.methods() == ["POST"] * 3
