"""Whether the operator is alive, by its Leases."""

from __future__ import annotations

import asyncio
import datetime as dt
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hvpa.cli.input import operator
from hvpa.cli.input.operator import DEFAULT_LEASE, OperatorState, operator_state
from hvpa.kube.leases.assignment import Names, shard_of
from hvpa.reconcile.ports import Key
from tests.unit.cli.api_server import OPERATOR, Api
from tests.unit.kube.fake_server import FakeServer
from tests.unit.lab.dashboard.harness import Watched

NOW = dt.datetime(2026, 11, 27, 10, tzinfo=dt.UTC)
HVPA = Key("shop", "web")
NAMES = Names("hvpa", 4)
SHARD = NAMES.shard(shard_of(HVPA, 4))
HOLDER = "pod-1_abc"
MEMBER = NAMES.member(HOLDER)


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operator, "CONFIRM", 0.05)


async def state(api: Api, folder: Path, hvpa: Key | None = HVPA) -> OperatorState:
    async with FakeServer(Watched(api).handle).connected(folder) as transport:
        return await operator_state(transport, DEFAULT_LEASE, hvpa)


async def test_an_operator_that_renews_its_lease_is_alive(tmp_path: Path) -> None:
    operator = await state(Api(), tmp_path)
    assert operator.state == "alive"
    assert operator.text(NOW) == ""


async def test_an_operator_that_does_not_is_silent_since_its_last_renewal(tmp_path: Path) -> None:
    api = Api()
    api.put_lease("hvpa", "me", seconds=120, duration=15)
    operator = await state(api, tmp_path)
    assert operator.state == "silent"
    assert operator.since is not None
    begin = "operator silent for 2m, since "
    assert operator.text(operator.since + dt.timedelta(minutes=2)).startswith(begin)
    assert operator.as_json()["state"] == "silent"


async def test_a_lease_that_was_given_back_is_nobody_s(tmp_path: Path) -> None:
    api = Api()
    api.put_lease("hvpa", "", duration=15)
    assert (await state(api, tmp_path)).state == "silent"


async def test_another_clock_is_no_silence(tmp_path: Path) -> None:
    """The operator's clock is ten minutes behind, and it renews."""
    api = Api()
    api.put_lease("hvpa", "me", seconds=600, duration=15)

    async def renew() -> None:
        while True:
            await asyncio.sleep(0.01)
            api.put_lease("hvpa", "me", seconds=600, duration=15)

    renewing = asyncio.create_task(renew())
    assert (await state(api, tmp_path)).state == "alive"
    renewing.cancel()


@pytest.mark.parametrize(
    ("fail", "why"),
    [
        (
            404,
            "Lease hvpa-system/hvpa does not exist; the operator runs without --leader-elect, or uses another Lease "
            "(--operator-lease)",
        ),
        (403, "no right to get Lease hvpa-system/hvpa"),
        (500, "Lease hvpa-system/hvpa can't be read: no leases for you"),
    ],
)
async def test_a_lease_that_can_not_be_read_is_no_silence(tmp_path: Path, fail: int, why: str) -> None:
    api = Api()
    api.fail["leases"] = fail
    operator = await state(api, tmp_path)
    assert (operator.state, operator.why) == ("unknown", why)
    assert operator.text(NOW) == f"can't tell whether the operator is alive: {why}"


@pytest.mark.parametrize("raw", [b"[]", b"{", b'{"spec": {"renewTime": "yesterday"}}'])
async def test_a_lease_that_makes_no_sense_is_not_known(tmp_path: Path, raw: bytes) -> None:
    api = Api()
    api.raw["leases"] = raw
    assert (await state(api, tmp_path)).state == "unknown"


def sharded(member: float = 0.0) -> Api:
    api = Api()
    api.put_lease("hvpa", NAMES.group)
    api.put_lease(SHARD, HOLDER, seconds=9999)
    api.put_lease(MEMBER, HOLDER, seconds=member, duration=15)
    return api


async def test_with_shards_the_replica_that_works_on_the_hvpa_counts(tmp_path: Path) -> None:
    assert (await state(sharded(), tmp_path)).state == "alive"
    assert (await state(sharded(60), tmp_path)).state == "silent"
    assert (await state(sharded(60), tmp_path, None)).state == "alive"


@pytest.mark.parametrize("missing", [SHARD, MEMBER])
async def test_without_the_replica_s_lease_that_of_all_replicas_counts(tmp_path: Path, missing: str) -> None:
    api = sharded(60)
    held = api.objects[OPERATOR, "leases"]
    held[:] = [lease for lease in held if lease["metadata"]["name"] != missing]
    assert (await state(api, tmp_path)).state == "alive"


@given(st.text(max_size=20), st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1)))
def test_any_lease_is_read(holder: str, duration: int | None) -> None:
    spec = {
        "holderIdentity": holder,
        "leaseDurationSeconds": duration,
        "renewTime": "2026-11-27T09:59:50.000000Z",
    }
    lease = operator._decode(json.dumps({"spec": spec}).encode())
    limit = 15 if duration is None else duration
    assert lease.is_renewed(NOW) == (bool(holder) and limit >= 10)


@pytest.mark.parametrize("group", ["shards-", "shards-x", "shards-0", "shards-٣"])
async def test_a_strange_group_is_taken_for_a_single_leader(tmp_path: Path, group: str) -> None:
    api = Api()
    api.put_lease("hvpa", group)
    assert (await state(api, tmp_path)).state == "alive"
