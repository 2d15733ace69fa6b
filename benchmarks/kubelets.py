"""CPU and memory of polling kubelets for the fast signal.

Many endpoints on loopback answer over TLS as kubelets do: compressed, for 100 pods each, with a new sample every 10 s.
They are another process, so their CPU does not count. The operator's poller asks all of them, first every 10 s (as at
rest), then every 2 s (as if a container of each node might need more soon). The floor are the same polls with answers
that are received and thrown away. Times depend on the machine; compare the ratio to the floor.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import multiprocessing
import random
import resource
import ssl
import sys
import tempfile
import time
from collections.abc import Collection, Mapping
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final, NamedTuple

import uvloop

from hvpa.kube.kubelets import poller
from hvpa.kube.kubelets.answer import PodName
from hvpa.kube.kubelets.client import KubeletClient
from hvpa.kube.kubelets.poller import ContainerUsage, Kubelets, Listener, Node, Poller
from hvpa.reconcile.supervision import Supervisor
from localcluster.client.pki import Authority, KeyPair

PODS: Final = 100
"""Pods of a node."""
WATCHED: Final = 20
"""Pods of a node that the poller wants."""
SAMPLED: Final = 10.0
"""Seconds between two samples of a container."""
GOAL_CORES: Final = 1.0
"""Most CPU for 1,000 nodes that are polled every 10 s."""
GOAL_SHARE: Final = 0.002
"""Most CPU for a node that is polled every 2 s, in cores."""
GOAL_MEMORY: Final = 50
"""Most memory for a node in kB."""


def _name(pod: int) -> str:
    """Return the pod's name, as a ReplicaSet would draw it."""
    return f"web-5d4f9c7b8d-{random.Random(pod).randbytes(3).hex()}"


def answer(seconds: float) -> bytes:
    """Return a kubelet's answer, compressed, of this time."""
    sampled = seconds // SAMPLED * SAMPLED
    stamp = round(1000 * (1.79e9 + sampled))
    lines = [
        "# HELP container_cpu_usage_seconds_total [STABLE] Cumulative cpu time consumed by the container"
    ]
    draw = random.Random(stamp)
    for metric, value in (("cpu_usage_seconds_total", sampled), ("memory_working_set_bytes", 5e7)):
        for scope in ("container", "pod"):
            for pod in range(PODS):
                container = 'container="app",' if scope == "container" else ""
                labels = f'{container}namespace="shop",pod="{_name(pod)}"'
                amount = value * draw.uniform(1.0, 1.0001)
                lines.append(f"{scope}_{metric}{{{labels}}} {amount!r} {stamp + draw.randrange(1000)}")
    return gzip.compress("\n".join(lines).encode())


class _Kubelet(asyncio.Protocol):
    """Answers each request with the answer of this time."""

    body = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: Any = transport
        self._buffer = b""

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while (end := self._buffer.find(b"\r\n\r\n")) >= 0:
            self._buffer = self._buffer[end + 4 :]
            head = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(self.body)
            self._transport.write(head + self.body)


def _serve(count: int, pair: KeyPair, ready: Connection) -> None:
    """Serve at so many ports until the process is ended."""

    async def run() -> None:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(pair.certificate, pair.key)
        loop, began = asyncio.get_running_loop(), time.monotonic()
        _Kubelet.body = answer(0.0)
        servers = [await loop.create_server(_Kubelet, "127.0.0.1", 0, ssl=context) for _ in range(count)]
        ready.send([server.sockets[0].getsockname()[1] for server in servers])
        while True:
            await asyncio.sleep(1)
            _Kubelet.body = answer(time.monotonic() - began)

    uvloop.run(run())


class _Discarded:
    """Reads answers as `KubeletClient` does, and throws them away: the floor."""

    def __init__(self, kubelets: Kubelets) -> None:
        self._kubelets = kubelets

    async def read(self, address: str, port: int) -> bytes:
        await self._kubelets.read(address, port)
        return b""


def _memory() -> int:
    """Return the resident memory of this process in kB."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() // 1000


class _Use(NamedTuple):
    """What a measurement found."""

    cores: float
    polls: float
    """Polls per second."""

    @property
    def of_a_poll(self) -> float:
        """CPU seconds of a poll."""
        return self.cores / self.polls


class _Token:
    """The same token for all kubelets."""

    async def __call__(self) -> str:
        return "Bearer token"

    def refused(self, header: str) -> None:
        raise AssertionError("the benchmark's kubelets refuse no token")


class _Count(Listener):
    """Counts polls, each of which is followed by another after 2 s if the nodes are hot."""

    def __init__(self, kubelets: Kubelets) -> None:
        self.kubelets = kubelets
        self.polls = 0
        self.are_hot = False

    def news(self, node: Node, usage: Mapping[PodName, Mapping[str, ContainerUsage]]) -> Collection[PodName]:
        return usage.keys() if self.are_hot else ()

    def answers_changed(self, node: Node) -> None:
        pass

    async def read(self, address: str, port: int) -> bytes:
        """See `Kubelets`."""
        self.polls += 1
        return await self.kubelets.read(address, port)

    async def measured(self, seconds: float, *, are_hot: bool) -> _Use:
        """Return the use of so many seconds, once all nodes are polled at their pace."""
        self.are_hot = are_hot
        await asyncio.sleep(poller.FREQUENT * poller.SOON + poller.LATER + 2)
        self.polls, cpu, began = 0, time.process_time(), time.monotonic()
        await asyncio.sleep(seconds)
        lasted = time.monotonic() - began
        return _Use((time.process_time() - cpu) / lasted, self.polls / lasted)


class _Measured(NamedTuple):
    """The results: at rest, hot, and of the floor, which is hot; and kB for each node."""

    rest: _Use
    hot: _Use
    floor: _Use
    memory: float


async def _measure(ports: list[int], authority: Authority, seconds: float) -> _Measured:
    context = ssl.create_default_context(cafile=str(authority.certificate))
    pods = {PodName("shop", _name(pod)): frozenset({"app"}) for pod in range(WATCHED)}
    wanted = {Node("127.0.0.1", port): pods for port in ports}

    async with KubeletClient(context, _Token()) as client:
        before, supervisor = _memory(), Supervisor()
        count = _Count(client)
        polling = Poller(count, count, supervisor)
        polling.watch(wanted)
        rest = await count.measured(seconds, are_hot=False)
        hot = await count.measured(seconds, are_hot=True)
        memory = (_memory() - before) / len(ports)
        if problem := next(filter(None, map(polling.problem, wanted)), ""):
            raise SystemExit(f"kubelets did not answer: {problem}")
        polling.stop()
        floor = Poller(_Discarded(count), count, supervisor)
        floor.watch(wanted)
        thrown_away = await count.measured(seconds, are_hot=True)
        floor.stop()
    return _Measured(rest, hot, thrown_away, memory)


def main(argv: list[str]) -> int:
    """Run the benchmark; 0 if its goals are met."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks kubelets", description=__doc__)
    parser.add_argument("--nodes", type=int, default=1000, help="endpoints (default: 1000)")
    parser.add_argument("--seconds", type=float, default=20, help="of each measurement (default: 20)")
    options = parser.parse_args(argv)
    ours, theirs = multiprocessing.Pipe()
    spawn = multiprocessing.get_context("spawn")
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    with tempfile.TemporaryDirectory() as folder:
        authority = Authority(Path(folder))
        server = spawn.Process(target=_serve, args=(options.nodes, authority.server("kubelet"), theirs))
        server.start()
        try:
            measured = uvloop.run(_measure(ours.recv(), authority, options.seconds))
        finally:
            server.kill()
            server.join()
    at_rest, share = measured.rest.cores * 1000 / options.nodes, measured.hot.of_a_poll / poller.SOON
    ratio = measured.hot.of_a_poll / measured.floor.of_a_poll
    print(
        f"{options.nodes} nodes of {PODS} pods, {WATCHED} of them wanted; {measured.hot.polls:.0f} polls per second"
    )
    print(f"1,000 nodes every 10 s   {at_rest:.2f} cores (goal: {GOAL_CORES:g})")
    print(f"a node every 2 s         {share * 100:.2f} percent of a core (goal: {GOAL_SHARE * 100:g})")
    print(f"memory of a node         {measured.memory:.0f} kB (goal: {GOAL_MEMORY})")
    print(f"a poll                   {ratio:.2f} times the CPU of an answer that is thrown away")
    return int(at_rest > GOAL_CORES or share > GOAL_SHARE or measured.memory > GOAL_MEMORY)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
