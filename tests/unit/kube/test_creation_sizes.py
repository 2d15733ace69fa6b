"""Writes of the sizes of new pods: one object per namespace, and as few writes as possible."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import msgspec

from hvpa.api.objects.read_models import Meta
from hvpa.kube.client.errors import ApiError
from hvpa.kube.client.transport import Body
from hvpa.kube.creation_sizes import CreationSizes
from hvpa.reconcile.ports import Conflict, Unavailable, WriteError

SIZE = "web; app 1: :"
PATH = "/apis/autoscaling.k8s.io/v1alpha1/namespaces/ns/hvpasizes"


def hvpa(name: str = "web", namespace: str = "ns") -> Meta:
    return Meta(name=name, namespace=namespace)


class Server:
    """Answers writes one at a time, when `gate` is open; `errors` are raised first."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, str, Any]] = []
        self.taken: list[bytes] = []
        self.errors: list[WriteError] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.sizes = CreationSizes(self._send, self.taken.append)

    async def _send(self, hvpa: Meta, method: str, path: str, query: Mapping[str, str], body: Body) -> bytes:
        self.sent.append((method, path, msgspec.json.decode(body.data)))
        await self.gate.wait()
        if self.errors:
            raise self.errors.pop(0)
        return b"response"


def missing() -> Conflict:
    error = Conflict("not found")
    error.__cause__ = ApiError(404, "NotFound", "not found")
    return error


async def test_entries_are_written_and_removed_by_a_merge_patch() -> None:
    server = Server()
    await server.sizes.write(hvpa(), {"Deployment.apps/web": SIZE, "Deployment.apps/old": None})
    patch = {"sizes": {"Deployment.apps/web": SIZE, "Deployment.apps/old": None}}
    assert server.sent == [("PATCH", f"{PATH}/hvpa", patch)]
    assert server.taken == [b"response"]


async def test_a_namespaces_first_entry_makes_the_object() -> None:
    server = Server()
    server.errors = [missing()]
    await server.sizes.write(hvpa(), {"Deployment.apps/web": SIZE, "Deployment.apps/old": None})
    method, path, body = server.sent[1]
    assert (method, path) == ("POST", PATH)
    assert body["metadata"]["name"] == "hvpa"
    assert body["sizes"] == {"Deployment.apps/web": SIZE}
    server.errors = [missing()]
    await server.sizes.write(hvpa(), {"Deployment.apps/old": None})
    assert len(server.sent) == 3  # nothing to remove from what is not there


async def under_way(server: Server, *names: str) -> list[asyncio.Task[None]]:
    """Writes of Hvpas, all of which have begun, one after another."""
    tasks = []
    for name in names:
        tasks.append(asyncio.create_task(server.sizes.write(hvpa(name), {f"Deployment.apps/{name}": SIZE})))
        await asyncio.sleep(0)
    return tasks


async def test_what_comes_while_a_write_is_under_way_goes_together_with_the_next_one() -> None:
    server = Server()
    server.gate.clear()
    writes = await under_way(server, *(f"h{number}" for number in range(20)))
    other = asyncio.create_task(server.sizes.write(hvpa("h", "else"), {"Deployment.apps/h": SIZE}))
    await asyncio.sleep(0)
    server.gate.set()
    await asyncio.gather(*writes, other)
    by_path = [path for _, path, _ in server.sent]
    assert by_path.count(f"{PATH}/hvpa") == 2
    written = {key for _, path, body in server.sent if "/ns/" in path for key in body["sizes"]}
    assert len(written) == 20


async def test_a_failure_reaches_all_whose_entries_it_had() -> None:
    server = Server()
    server.gate.clear()
    tasks = await under_way(server, "web", "a", "b")
    server.errors = [Conflict("another client"), Unavailable("no response")]
    server.gate.set()
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [Conflict, Unavailable, Unavailable]
    await server.sizes.write(hvpa(), {"Deployment.apps/web": SIZE})
    assert len(server.sent) == 3


async def test_a_writer_that_is_cancelled_leaves_its_part_to_the_next_one() -> None:
    server = Server()
    server.gate.clear()
    first, second, third = await under_way(server, "web", "a", "b")
    first.cancel()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    second.cancel()
    server.gate.set()
    await asyncio.gather(first, second, third, return_exceptions=True)
    assert third.exception() is None
    assert set(server.sent[-1][2]["sizes"]) == {"Deployment.apps/a", "Deployment.apps/b"}


async def test_nothing_is_kept_of_namespaces_that_are_written_to_no_longer() -> None:
    server = Server()
    for number in range(50):
        await server.sizes.write(hvpa(namespace=f"ns-{number}"), {"Deployment.apps/web": SIZE})
    assert len(server.sizes._locks) == len(server.sizes._batches) == 0
