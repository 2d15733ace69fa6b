"""The pure parts of the scale benchmark: percentiles, goals and table, the floor's shares, the log, the HTTP parser."""

from __future__ import annotations

import asyncio
import json
import socket
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from benchmarks.scale import audit as scale_audit
from benchmarks.scale import command as scale
from benchmarks.scale import objects as scale_objects
from benchmarks.scale import report as scale_report
from benchmarks.scale.audit import USER, Requested, RequestKind
from benchmarks.scale.floor import NEW_EVENT, STATUS, WORKLOADS, Share, _write, shares
from benchmarks.scale.http import _Connection
from benchmarks.scale.phases import latencies, quantile


def figures(
    hvpas: int, cpu: float = 1.5, ratio: float = 1.2, rss: float = 100.0, **more: Any
) -> dict[str, Any]:
    step = {
        "seconds": 2.0,
        "cpu_ms_per_hvpa": cpu,
        "requests": {"patch deployments": hvpas, "update leases": 3},
    }
    return {
        "hvpas": hvpas,
        "step": [step],
        "floor": {"ratio": ratio, "seconds": 2.0, "cpu_ms_per_hvpa": 0.5},
        "memory": {"after_creation": {"rss_mb": rss - 1}, "after_steps": {"rss_mb": rss}},
        **more,
    }


# --- percentiles -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("share", "found"), [(0.5, 50), (0.9, 90), (0.99, 99), (1.0, 100), (0.001, 1)])
def test_a_quantile_is_the_nearest_rank(share: float, found: int) -> None:
    assert quantile([*range(100, 0, -1)], share) == found


def test_latencies_are_reported_in_milliseconds() -> None:
    assert latencies([0.001, 0.002, 0.2]) == {
        "median_ms": 2.0,
        "p90_ms": 200.0,
        "p99_ms": 200.0,
        "max_ms": 200.0,
    }


# --- goals and table -------------------------------------------------------------------------------------------------
def test_all_goals_can_be_met() -> None:
    verdicts = scale_report.verdicts([figures(100), figures(2000), figures(10_000)])
    assert verdicts
    assert not any(verdicts.values())


@pytest.mark.parametrize(
    ("results", "label", "missed"),
    [
        ([figures(100, ratio=9), figures(2000, ratio=1.6)], "step: times the floor", [2000]),
        ([figures(100, cpu=2.1)], "step: CPU per Hvpa, ms", [100]),
        ([figures(2000, rss=201), figures(10_000, rss=499)], "memory: resident, the most of all phases, MB", [2000]),
        (
            [figures(100, cpu=1), figures(2000, cpu=1), figures(10_000, cpu=1.3)],
            "step: CPU per Hvpa, ms: within 25% of each other",
            [10_000],
        ),
        ([figures(100, trickle={"latency": {"p99_ms": 251}})], "trickle: the same, p99, ms", [100]),
        (
            [figures(100, idle={"requests": {"watch pods": 1, "update leases": 9, "list pods": 1}, "cpu_share": 0})],
            "idle: requests but watches and lease",
            [100],
        ),
    ],
)  # fmt: skip
def test_a_missed_goal_is_reported_with_its_size(
    results: list[dict[str, Any]], label: str, missed: list[int]
) -> None:
    verdicts = scale_report.verdicts(results)
    assert {name: sizes for name, sizes in verdicts.items() if sizes} == {label: missed}
    assert f"MISSED at {missed[0]:,}" in scale_report.table(results)


def test_what_was_not_measured_has_no_verdict_and_no_line() -> None:
    results = [{"hvpas": 100, "step": figures(100)["step"]}]
    assert list(scale_report.verdicts(results)) == ["step: CPU per Hvpa, ms"]
    table = scale_report.table([*results, figures(2000)])
    assert "idle" not in table
    assert next(line for line in table.splitlines() if "times the floor" in line).split()[4:6] == [
        "-",
        "1.20",
    ]


def test_a_missed_goal_comes_with_what_stands_in_its_way() -> None:
    assert scale_report.hindrances([figures(2000)]) == ""
    reported = scale_report.hindrances([figures(2000, cpu=2.5, rss=201.0)])
    assert reported.count("what limits it") == 2
    assert "bare client" in reported


def test_the_requests_of_the_last_step_are_reported() -> None:
    assert "step: 100 patch deployments, 3 update leases" in scale_report.requests_table([figures(100)])


def test_an_unknown_phase_is_refused() -> None:
    with pytest.raises(SystemExit):
        scale.arguments().parse_args(["--phases", "step,idel"])


def test_what_a_phase_needs_goes_before_it() -> None:
    assert scale.names("floor") == {"creation", "step", "floor"}


def test_the_floor_has_as_many_requests_at_once_as_the_operator() -> None:
    assert scale.requests_at_once(["--max-in-flight", "5"]) == 5


# --- the audit log ---------------------------------------------------------------------------------------------------
def logged(verb: str, resource: str, user: str = USER, stage: str = "ResponseComplete", **more: Any) -> bytes:
    name, _, subresource = resource.partition("/")
    about = {"resource": name, "subresource": subresource, "namespace": "scale-0"}
    entry = {"stage": stage, "verb": verb, "user": {"username": user}, "objectRef": about}
    return json.dumps({**entry, "responseStatus": {"code": 200}, **more}).encode() + b"\n"


def test_requests_are_counted_from_a_mark_on(tmp_path: Path) -> None:
    before = logged("patch", "deployments")
    lines = [
        logged(
            "patch",
            "deployments",
            requestObject={"spec": {"replicas": 3}},
            requestReceivedTimestamp="2026-11-22T01:00:00.000000Z",
            stageTimestamp="2026-11-22T01:00:00.250000Z",
        ),
        logged("patch", "deployments", responseStatus={"code": 409}, requestObject={"spec": {"replicas": 4}}),
        logged("patch", "hvpas/status"),
        logged("patch", "hvpas/status", user="admin"),
        logged("watch", "pods", stage="ResponseStarted"),
        logged("watch", "pods"),
        logged("get", "")[:-20],  # still being written
    ]
    log = tmp_path / "audit.log"
    log.write_bytes(before + b"".join(lines))
    requested = scale_audit.read(log, len(before), len(before) + sum(map(len, lines[:-1])))
    assert requested.counts() == {"patch deployments": 2, "patch hvpas/status": 1, "watch pods": 1}
    assert requested.refused == {"patch deployments 409": 1}
    assert [json.loads(body) for body in requested.bodies[WORKLOADS]] == [{"spec": {"replicas": 3}}]
    assert requested.seconds == {WORKLOADS: [0.25]}


# --- the floor -------------------------------------------------------------------------------------------------------
def test_requests_are_spread_evenly_and_none_is_lost() -> None:
    share = Share(WORKLOADS, 318, [b"{}"])
    counts = [len(share.of(index, 300)) for index in range(300)]
    assert sum(counts) == 318
    assert set(counts) == {1, 2}


def step(**kinds: int) -> Requested:
    both = b'{"spec":{"replicas":3,"template":{"spec":{"containers":[{"name":"app","resources":{"requests":{}}}]}}}}'
    counted = Counter({WORKLOADS: 5, STATUS: 4, NEW_EVENT: 3, RequestKind("update", "leases"): 2})
    counted.update({RequestKind(*name.split("_")): count for name, count in kinds.items()})
    bodies = {WORKLOADS: [b'{"spec":{"replicas":3}}', both], STATUS: [b"{}"], NEW_EVENT: [b"{}"]}
    return Requested(counted, Counter(), bodies, {})


def test_the_floor_writes_what_the_operator_wrote() -> None:
    by_kind = {share.kind: share for share in shares(step(patch_events=2))}
    assert {kind: share.count for kind, share in by_kind.items() if share.count} == {
        WORKLOADS: 5,
        STATUS: 4,
        NEW_EVENT: 5,
    }
    assert all(b"requests" in body for body in by_kind[WORKLOADS].bodies)


def test_what_was_not_sampled_in_a_step_is_taken_from_an_earlier_one() -> None:
    last, earlier = step(patch_events=2), step()
    last.bodies.pop(NEW_EVENT)
    with pytest.raises(ValueError, match="no create events in the sample"):
        shares(last)
    by_kind = {share.kind: share for share in shares(last, [last, earlier])}
    assert (by_kind[NEW_EVENT].count, by_kind[NEW_EVENT].bodies) == (5, earlier.bodies[NEW_EVENT])


def test_a_write_that_the_floor_does_not_know_is_no_floor() -> None:
    with pytest.raises(ValueError, match="delete pods"):
        shares(step(delete_pods=1))


def test_a_sampled_write_becomes_one_of_another_object() -> None:
    item = scale_objects.make_items(51)[-1]
    resources = {"requests": {"cpu": "800m"}, "limits": {"cpu": "1600m", "memory": "1G"}}
    containers = [{"name": "app", "resources": resources}]
    body = {
        "metadata": {"resourceVersion": "7"},
        "spec": {"replicas": 3, "template": {"spec": {"containers": containers}}},
    }
    write = _write(WORKLOADS, item, body, 1)
    assert write.path == "/apis/apps/v1/namespaces/scale-1/deployments/app-50?fieldManager=hvpa"
    written = json.loads(write.body)
    assert written["metadata"] == {}
    assert written["spec"]["replicas"] == 51
    assert written["spec"]["template"]["spec"]["containers"][0]["resources"] == {
        "requests": {"cpu": "7001m"},
        "limits": {"cpu": "14002m", "memory": "1G"},
    }


def test_an_event_gets_a_name_of_its_own() -> None:
    item = scale_objects.make_items(1)[0]
    made = [
        json.loads(_write(NEW_EVENT, item, {"metadata": {}, "involvedObject": {"name": "other"}}, 0).body)
        for _ in range(2)
    ]
    assert made[0]["involvedObject"] == {"name": "app-0", "namespace": "scale-0"}
    assert made[0]["metadata"]["name"] != made[1]["metadata"]["name"]


# --- HTTP ------------------------------------------------------------------------------------------------------------
async def _exchange(responses: list[bytes], size: int) -> list[tuple[int, bytes]]:
    """What a connection reads of answers that come in pieces of `size` bytes, one request after another."""
    ours, theirs = socket.socketpair()
    _, connection = await asyncio.get_running_loop().create_connection(_Connection, sock=ours)
    reader, writer = await asyncio.open_connection(sock=theirs)
    answers = []
    for response in responses:
        requested = asyncio.create_task(connection.ask(b"GET / HTTP/1.1\r\n\r\n"))
        await reader.readuntil(b"\r\n\r\n")
        for start in range(0, len(response), size):
            writer.write(response[start : start + size])
            await writer.drain()
            await asyncio.sleep(0)
        answers.append(await asyncio.wait_for(requested, 30))
    connection.close()
    writer.close()
    return answers


FIXED = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\nhello"
CHUNKED = b"HTTP/1.1 409 Conflict\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nsome\r\n5\r\nwhere\r\n0\r\n\r\n"


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_answers_are_read_whatever_pieces_they_come_in(size: int) -> None:
    answers = asyncio.run(_exchange([FIXED, CHUNKED, FIXED], size))
    assert answers == [(200, b"hello"), (409, b"somewhere"), (200, b"hello")]


def test_a_closed_connection_ends_the_request() -> None:
    with pytest.raises(ConnectionResetError):
        asyncio.run(_cut_off())


async def _cut_off() -> None:
    ours, theirs = socket.socketpair()
    _, connection = await asyncio.get_running_loop().create_connection(_Connection, sock=ours)
    theirs.send(CHUNKED[:-5])
    theirs.close()
    await asyncio.wait_for(connection.ask(b"GET / HTTP/1.1\r\n\r\n"), 30)
