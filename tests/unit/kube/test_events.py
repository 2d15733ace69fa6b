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
from tests.unit.kube.fake_server import LONG, FakeServer, background, status

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


class Harness:
    def __init__(self) -> None:
        self.server = FakeServer(self._handle)
        self.clock = FakeClock()
        self.codes: list[int] = []
        """Of the first responses; then 200."""
        self.limiter = Limiter(1)

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        code = self.codes.pop(0) if self.codes else 200
        if code == 0:
            assert request.transport is not None
            request.transport.abort()
        elif code != 200:
            return status(code, "" if code == 429 else "Refused", headers={"Retry-After": "0"})
        return web.json_response({})

    @asynccontextmanager
    async def running(self, folder: Path) -> AsyncIterator[EventRecorder]:
        async with self.server.connected(folder) as transport:
            recorder = EventRecorder(transport, self.clock, self.limiter)
            async with background(recorder.run()):
                yield recorder


async def test_an_event_names_the_hvpa_and_a_repeated_one_is_counted(tmp_path: Path) -> None:
    harness = Harness()
    async with harness.running(tmp_path) as recorder:
        recorder.record(HVPA, SCALED)
        recorder.record(HVPA, SCALED)
        recorder.record(HVPA, Event("Warning", "Other", "x"))
        await recorder.flush()
        assert harness.server.methods == ["POST", "PATCH", "POST"]
        first = harness.server.bodies[0]
        assert first["involvedObject"]["kind"] == "Hvpa"
        assert first["involvedObject"]["uid"] == "u"
        assert (first["type"], first["reason"], first["message"], first["count"]) == (
            "Normal",
            "ScaledOut",
            "replicas 2 to 3",
            1,
        )
        assert harness.server.bodies[1] == {"count": 2, "lastTimestamp": "2026-11-21T00:00:00Z"}
        harness.clock.time += dt.timedelta(minutes=11)
        recorder.record(HVPA, SCALED)
        await recorder.flush()
        assert harness.server.methods[3:] == ["POST"]


async def test_an_event_on_the_workload_names_it_and_has_a_limit_of_its_own(tmp_path: Path) -> None:
    harness = Harness()
    workload = Involved("apps/v1", "StatefulSet", "w", "of-w", "7")
    on_workload = Event("Normal", "ScaledOut", "Hvpa h: replicas 2 -> 3", workload)
    async with harness.running(tmp_path) as recorder:
        for number in range(BURST + 1):
            recorder.record(HVPA, Event("Normal", "Other", str(number)))
        recorder.record(HVPA, on_workload)
        recorder.record(HVPA, on_workload)
        await recorder.flush()
    assert harness.server.methods == ["POST"] * (BURST + 1) + ["PATCH"]
    body = harness.server.bodies[BURST]
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


async def test_a_noisy_hvpa_is_cut_short_and_others_are_not(tmp_path: Path) -> None:
    harness = Harness()
    async with harness.running(tmp_path) as recorder:
        for number in range(100):
            recorder.record(HVPA, Event("Normal", "Scaled", str(number)))
        recorder.record(Meta(name="other", namespace="ns", uid="v"), SCALED)
        await recorder.flush()
        assert len(harness.server.requests) == BURST + 1
        harness.clock.time += dt.timedelta(minutes=1)
        for number in range(100):
            recorder.record(HVPA, Event("Normal", "Scaled", str(number)))
        await recorder.flush()
        assert len(harness.server.requests) == BURST + 3


async def test_events_wait_for_whoever_writes_and_report_when_they_happened(tmp_path: Path) -> None:
    harness = Harness()
    async with harness.running(tmp_path) as recorder:
        async with harness.limiter.permit():
            recorder.record(HVPA, SCALED)
            harness.clock.time += dt.timedelta(minutes=1)
            await asyncio.sleep(0.05)
            assert harness.server.methods == []
        await recorder.flush()
        assert harness.server.bodies[0]["firstTimestamp"] == "2026-11-21T00:00:00Z"


@pytest.mark.parametrize(
    ("codes", "methods", "same"),
    [
        pytest.param([200, 404], "POST PATCH POST", 1, id="one that has expired is written anew"),
        pytest.param([403], "POST POST", 1, id="a server that refuses events stops nothing"),
        pytest.param([429], "POST POST PATCH", 2, id="one comes again when the server has asked to wait"),
        pytest.param(
            [0, 409], "POST POST PATCH", 2, id="one whose response was lost is there, and that is fine"
        ),
        pytest.param([0, 0, 0], "POST POST POST POST", 3, id="one for a server that stays away is dropped"),
    ],
)
async def test_the_same_event_twice_before_a_server_that_answers_so(
    tmp_path: Path, codes: list[int], methods: str, same: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`codes` of the first responses, 0 for none; the first so many requests are of the `same` name."""
    monkeypatch.setattr("hvpa.kube.events.PAUSES", (0.01, 0.01))
    harness = Harness()
    harness.codes = codes
    async with harness.running(tmp_path) as recorder:
        for _ in range(2):
            recorder.record(HVPA, SCALED)
            await recorder.flush()
    assert harness.server.methods == methods.split()
    posted = [body["metadata"]["name"] for body in harness.server.bodies if "metadata" in body]
    assert len(set(posted)) == len(posted) - same + 1
    assert len(set(posted[:same])) == 1
