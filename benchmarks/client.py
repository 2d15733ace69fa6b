"""CPU cost of a request, compared with other clients.

Measures a PATCH over TLS to a small server on loopback, by the operator's `Transport`, by kubernetes-asyncio's
ApiClient and by a bare aiohttp session, one at a time and eight at once. The server is a separate process, so its CPU
does not count. The three clients take turns, and each client's cheapest round counts, because other load of the machine
only adds to it. Times depend on the machine; compare the ratios to the bare session, the floor, measured in the same
run.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import socket
import ssl
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import aiohttp
import uvloop
from yarl import URL

from hvpa.kube.client.credentials import Credentials
from hvpa.kube.client.transport import MERGE_PATCH, Body, Transport
from localcluster.client.kubeconfig import token_user, write_kubeconfig
from localcluster.client.pki import Authority, KeyPair

PATH = "/apis/autoscaling.k8s.io/v1alpha1/namespaces/default/hvpas/web/status"
PATCH = {"metadata": {"resourceVersion": "1"}, "status": {"conditions": [{"message": "x" * 600}]}}
OBJECT = json.dumps(
    {"metadata": {"name": "web", "resourceVersion": "2"}, "status": {"message": "x" * 3000}}
).encode()
"""A patch and a response with the usual sizes of an Hvpa's status."""
ROUND = 500
"""Requests that are timed together."""
AT_ONCE = (1, 8)
GOAL = 1.5
"""Highest cost of the Transport as a multiple of the floor: more would be unnecessary work of our own."""

Send = Callable[[], Awaitable[object]]


class _Server(asyncio.Protocol):
    """Answers each request with OBJECT; parses a request only to find its end."""

    _RESPONSE = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (
        len(OBJECT),
        OBJECT,
    )

    def __init__(self) -> None:
        self._buffer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: Any = transport

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while (end := self._buffer.find(b"\r\n\r\n")) >= 0:
            head = self._buffer[:end].lower()
            _, separator, rest = head.partition(b"\r\ncontent-length:")
            whole = end + 4 + (int(rest.partition(b"\r\n")[0]) if separator else 0)
            if len(self._buffer) < whole:
                return
            self._buffer = self._buffer[whole:]
            self._transport.write(self._RESPONSE)


def _serve(listener: socket.socket, pair: KeyPair, ready: Connection) -> None:
    """Serve until the process is ended."""

    async def run() -> None:
        tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        tls.load_cert_chain(pair.certificate, pair.key)
        server = await asyncio.get_running_loop().create_server(_Server, sock=listener, ssl=tls)
        ready.send(True)
        await server.serve_forever()

    uvloop.run(run())


async def _ours(stack: AsyncExitStack, kubeconfig: Path) -> Send:
    transport = Transport(await Credentials.load(str(kubeconfig)))
    stack.push_async_callback(transport.close)
    query = {"fieldManager": "hvpa"}

    async def send() -> object:
        return await transport.request("PATCH", PATH, query, Body(json.dumps(PATCH).encode(), MERGE_PATCH))

    return send


async def _library(stack: AsyncExitStack, kubeconfig: Path) -> Send:
    from kubernetes_asyncio import client, config

    configuration = client.Configuration()
    await config.load_kube_config(str(kubeconfig), client_configuration=configuration, persist_config=False)
    api = await stack.enter_async_context(client.ApiClient(configuration))

    async def send() -> object:
        return await api.call_api(
            PATH,
            "PATCH",
            query_params=[("fieldManager", "hvpa")],
            header_params={"Content-Type": MERGE_PATCH, "Accept": "application/json"},
            body=PATCH,
            response_types_map={200: "object"},
            auth_settings=["BearerToken"],
            _return_http_data_only=True,
        )

    return send


async def _bare(stack: AsyncExitStack, url: str, authority: Path) -> Send:
    tls = ssl.create_default_context(cafile=authority)
    session = await stack.enter_async_context(
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=tls, limit=0))
    )
    headers = {"Authorization": "Bearer secret", "Content-Type": MERGE_PATCH}
    target = URL(f"{url}{PATH}?fieldManager=hvpa", encoded=True)

    async def send() -> object:
        async with session.patch(target, data=json.dumps(PATCH).encode(), headers=headers) as response:
            return await response.read()

    return send


async def _cost(send: Send, at_once: int) -> float:
    """Return the CPU milliseconds of this process for each request of a round."""

    async def some() -> None:
        for _ in range(ROUND // at_once):
            await send()

    before = time.process_time()
    await asyncio.gather(*(some() for _ in range(at_once)))
    return 1000 * (time.process_time() - before) / (ROUND // at_once * at_once)


async def _measure(url: str, kubeconfig: Path, authority: Path, rounds: int) -> dict[str, Any]:
    async with AsyncExitStack() as stack:
        senders = {
            "Transport": await _ours(stack, kubeconfig),
            "ApiClient": await _library(stack, kubeconfig),
            "aiohttp": await _bare(stack, url, authority),
        }
        best: dict[str, dict[int, float]] = {name: {} for name in senders}
        for at_once in AT_ONCE:
            for _ in range(rounds + 1):  # the first round opens the connections
                for name, send in senders.items():
                    cost = await _cost(send, at_once)
                    best[name][at_once] = min(cost, best[name].get(at_once, cost))
    return {
        name: {
            str(at_once): {"cpu_ms": round(cost, 4), "ratio": round(cost / best["aiohttp"][at_once], 2)}
            for at_once, cost in costs.items()
        }
        for name, costs in best.items()
    }


def measure(rounds: int) -> dict[str, Any]:
    """Return CPU per request and its ratio to the floor, by client and by number of concurrent requests."""
    with tempfile.TemporaryDirectory() as folder, socket.create_server(("127.0.0.1", 0)) as listener:
        authority = Authority(Path(folder) / "pki")
        url = f"https://127.0.0.1:{listener.getsockname()[1]}"
        kubeconfig = write_kubeconfig(
            Path(folder) / "kubeconfig", url, authority.certificate, token_user("secret")
        )
        context = multiprocessing.get_context("fork")
        ready, sender = context.Pipe(duplex=False)
        server = context.Process(
            target=_serve, args=(listener, authority.server("server"), sender), daemon=True
        )
        server.start()
        ready.recv()
        try:
            return uvloop.run(_measure(url, kubeconfig, authority.certificate, rounds))
        finally:
            server.kill()
            server.join()


def main(arguments: list[str]) -> int:
    """Run the benchmark; 0 if the goal is met, else 1."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks client", description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=10, help=f"of {ROUND} requests each (default: 10)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    args = parser.parse_args(arguments)
    result = measure(args.rounds)
    met = all(cost["ratio"] <= GOAL for cost in result["Transport"].values())
    if args.json:
        print(json.dumps(result | {"goal_met": met}, indent=2))
        return 0 if met else 1
    print("CPU for each PATCH over TLS, and times the floor (a bare aiohttp session)")
    for name, costs in result.items():
        parts = [
            f"{at_once} at once {cost['cpu_ms']:.3f} ms ({cost['ratio']:.2f})"
            for at_once, cost in costs.items()
        ]
        print(f"  {name:<10} {', '.join(parts)}")
    print(f"goal (Transport at most {GOAL:g} times the floor): {'met' if met else 'MISSED'}")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
