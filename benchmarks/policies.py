"""`python -m benchmarks policies`: measures how long the Hvpas of a policy take to be created and changed, what they
write at rest, and the operator's memory, beside the same Hvpas written by a client.

Runs on a real API server; the operator is the only controller. The floor for the creation is a client that creates the
same Hvpas and does nothing else. Memory is that of an operator that has just started with all objects.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import logging
import sys
import time
from collections.abc import Sequence
from typing import Any, cast

import msgspec
import structlog

from benchmarks.scale import audit
from benchmarks.scale.environment import Environment, environment
from benchmarks.scale.http import MERGE, Client, each
from benchmarks.scale.objects import HVPAS, Item, Writer, encode, make_items
from hvpa.api.policy.resource import PolicyObject
from hvpa.api.policy.status import PolicyStatus
from hvpa.core.policies.model import PolicyChange
from hvpa.kube.cache.cluster_cache import LocalCluster
from hvpa.kube.cache.reflector import WatchState
from hvpa.kube.cache.store import ALL_NAMESPACES
from hvpa.kube.cache.watches import Watches
from hvpa.kube.client.limits import Limiter
from hvpa.kube.client.transport import Transport
from hvpa.kube.clock import SystemClock
from hvpa.kube.objects.resources import CLUSTER_POLICIES, DEPLOYMENTS, NAMESPACES, ApiResource
from hvpa.kube.objects.resources import HVPAS as HVPA
from hvpa.kube.policies import PolicyWriter
from hvpa.operator import policies
from hvpa.operator.garbage import look_after
from hvpa.operator.policies import SLICE, PolicyKeeper, Process
from hvpa.reconcile.aside import Aside
from localcluster.client.api import Json
from localcluster.operator.operator import install_policies
from localcluster.workloads.bare_manifests import deployment, merged

CREATION_GOAL = 60.0
"""Highest number of seconds until all Hvpas exist, for 1,000 workloads."""
MEMORY_GOAL = 1.05
"""Highest ratio of the operator's memory to that with the same Hvpas written by a client."""
PLANNED = 10_000
"""Workloads of the plan that is made in memory."""
AT_REST = 30.0
"""Seconds during which writes at rest are counted."""
AT_ONCE = 32
"""Concurrent requests, except the operator's."""
LIMIT = 600.0
NAME = "everywhere"
POLICY = f"{HVPAS}/clusterhvpapolicies/{NAME}"
TEMPLATE: Json = {
    "blend": "Trajectory",
    "hpa": {"deploy": True, "template": {"spec": {"minReplicas": 1, "maxReplicas": 10}}},
    "vpa": {"deploy": True},
    "weightBasedScalingIntervals": [{"vpaWeight": 50}],
}
WRITES = ("hvpas", "clusterhvpapolicies", "clusterhvpapolicies/status")


async def _prepare(client: Client, items: Sequence[Item]) -> None:
    """Create namespaces and Deployments."""
    writer = Writer(client, 0)
    for name in dict.fromkeys(item.namespace for item in items):
        await writer.create_namespace(name)
    await each(items, AT_ONCE, writer.create_workload)


async def _until_up_to_date(client: Client, count: int, generation: int) -> float:
    """Wait until all Hvpas are as this generation of the policy requires; return the time."""
    deadline = time.perf_counter() + LIMIT
    status: Json = {}
    while time.perf_counter() < deadline:
        status = msgspec.json.decode(await client.send("GET", POLICY)).get("status", {})
        if (status.get("observedGeneration"), status.get("upToDate")) == (generation, count):
            return time.perf_counter()
        await asyncio.sleep(0.1)
    raise TimeoutError(f"not all Hvpas are up to date after {LIMIT} s: {status}")


def _started(env: Environment) -> float:
    """Start the operator anew; return its memory in MB once it is quiet."""
    env.end()
    env.start()
    env.until_quiet()
    return env.memory()["rss_mb"]


async def by_policy(env: Environment, workloads: int) -> tuple[float, float, int, float]:
    """Return the seconds of creation and change, the writes at rest, and the memory in MB."""
    client = Client(env.plane.kubeconfig, "driver")
    await _prepare(client, make_items(workloads))
    await asyncio.to_thread(env.start)
    spec = {"template": TEMPLATE, "namespaces": {"all": True}, "rollout": {"maxConcurrent": workloads}}
    began = time.perf_counter()
    policy = {
        "apiVersion": HVPAS.removeprefix("/apis/"),
        "kind": "ClusterHvpaPolicy",
        "metadata": {"name": NAME},
    }
    await client.send("POST", f"{HVPAS}/clusterhvpapolicies", encode({**policy, "spec": spec}))
    created = await _until_up_to_date(client, workloads, 1) - began
    await asyncio.to_thread(env.until_quiet)
    since = env.plane.audit.mark().offset
    await asyncio.sleep(AT_REST)
    kinds = audit.read(env.log, since, env.plane.audit.mark().offset).kinds
    writes = sum(count for kind, count in kinds.items() if kind.is_write and kind.resource in WRITES)
    change = {"spec": {"template": {"hpa": {"template": {"spec": {"maxReplicas": 12}}}}}}
    began = time.perf_counter()
    await client.send("PATCH", POLICY, encode(change), MERGE)
    changed = await _until_up_to_date(client, workloads, 2) - began
    await asyncio.to_thread(env.until_quiet)
    memory = await asyncio.to_thread(_started, env)
    client.close()
    return created, changed, writes, memory


async def by_client(env: Environment, workloads: int) -> tuple[float, float]:
    """Return the seconds in which a client creates the same Hvpas, and the operator's memory in MB."""
    client, items = Client(env.plane.kubeconfig, "driver"), make_items(workloads)
    await _prepare(client, items)

    async def create(item: Item) -> None:
        target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": item.name}
        metadata = {"name": item.name, "namespace": item.namespace}
        spec = {**TEMPLATE, "mode": "Recommend", "targetRef": target}
        kind = {"apiVersion": HVPAS.removeprefix("/apis/"), "kind": "Hvpa"}
        body = encode({**kind, "metadata": metadata, "spec": spec})
        await client.send("POST", item.collection(HVPAS, "hvpas"), body)

    began = time.perf_counter()
    await each(items, AT_ONCE, create)
    created = time.perf_counter() - began
    await asyncio.to_thread(env.start)
    await asyncio.to_thread(env.until_quiet)
    memory = await asyncio.to_thread(_started, env)
    client.close()
    return created, memory


class _Accepts(PolicyWriter):
    """Stands in for the API server: accepts each write, and puts created Hvpas into the local copy."""

    def __init__(self, local: LocalCluster) -> None:
        super().__init__(cast(Transport, None), local, Limiter(), lambda: True)
        self.plans = 0
        """Statuses written, of which each plan writes one."""

    async def write(self, change: PolicyChange) -> None:
        if change.action == "create":
            metadata = {**change.body["metadata"], "uid": change.name, "resourceVersion": "1"}
            self._local.hvpas.put(HVPA.decode(encode({**change.body, "metadata": metadata})))

    async def write_status(self, policy: PolicyObject, status: PolicyStatus) -> None:
        self.plans += 1


class _Synced(Watches):
    """Stands in for the watches: all is listed."""

    def __init__(self) -> None:
        pass

    def states(self, resource: ApiResource[Any]) -> set[WatchState]:
        return {"synced"}


async def _longest_gap(gaps: list[float]) -> None:
    """Note how long others block the event loop."""
    while True:
        began = time.perf_counter()
        await asyncio.sleep(0)
        gaps.append(time.perf_counter() - began)


async def longest_blocks(workloads: int) -> dict[str, float]:
    """Return the longest time, in milliseconds, for which a plan for all workloads blocks the event loop: at once, and
    in slices. After each change of the policy, all Hvpas must change."""
    local, clock, aside = LocalCluster((ALL_NAMESPACES,), lambda key: None), SystemClock(), Aside()
    writer, gaps = _Accepts(local), list[float]()
    keeper = PolicyKeeper(
        local, _Synced(), writer, Process(clock, lambda: True, "hvpa-system", aside, lambda meta, event: None)
    )
    for item in make_items(workloads):
        local.workloads["Deployment"].put(DEPLOYMENTS.decode(encode(deployment(item.name, item.namespace))))
    for namespace in {item.namespace for item in make_items(workloads)}:
        metadata = {"name": namespace, "resourceVersion": "1"}
        local.policies.namespaces.put(NAMESPACES.decode(encode({"metadata": metadata})))
    found: dict[str, float] = {}
    work = (look_after(), keeper.run(), _longest_gap(gaps))
    tasks = [asyncio.create_task(each) for each in work]
    for generation, (name, slice_s) in enumerate(
        (("creation", SLICE), ("at once", LIMIT), ("in slices", SLICE)), start=1
    ):
        patch = {"hpa": {"template": {"spec": {"maxReplicas": 10 + generation}}}}
        spec = {"template": merged(TEMPLATE, patch), "namespaces": {"all": True}}
        version = {"uid": NAME, "resourceVersion": str(generation), "generation": generation}
        planned, policies.SLICE = writer.plans, slice_s  # type: ignore[misc]
        gc.collect()
        await asyncio.sleep(0.1)
        gaps.clear()
        made = {"metadata": {"name": NAME, **version}, "spec": spec, "status": {}}
        local.policies.cluster_policies.put(CLUSTER_POLICIES.decode(encode(made)))
        while writer.plans == planned or len(local.hvpas) < workloads:
            await asyncio.sleep(0.1)
        found[name] = 1000 * max(gaps)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    aside.close()
    return found


def main(options: list[str] | None = None) -> int:
    """Run the benchmark; 0 if every goal was met."""
    parser = argparse.ArgumentParser(prog="benchmarks policies", description="the Hvpas of a policy")
    parser.add_argument("--workloads", type=int, default=1000, help="workloads of the policy")
    args = parser.parse_args(options)
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    blocks = asyncio.run(longest_blocks(PLANNED))
    print(
        f"a plan for {PLANNED:,} workloads that all change blocks the event loop for up to "
        f"{blocks['in slices']:.0f} ms, at once {blocks['at once']:.0f} ms"
    )
    with environment("none", ("--policies",)) as env:
        install_policies(env.plane)
        created, changed, writes, memory = asyncio.run(by_policy(env, args.workloads))
    with environment("none", ()) as env:
        floor, usual = asyncio.run(by_client(env, args.workloads))
    goal = CREATION_GOAL * args.workloads / 1000
    print(
        f"{args.workloads:,} Hvpas of a policy created in {created:.1f} s (goal: {goal:.0f} s), by a bare client in "
        f"{floor:.1f} s; all changed in {changed:.1f} s"
    )
    print(f"writes in {AT_REST:.0f} s at rest: {writes} (goal: 0)")
    print(
        f"memory of the operator: {memory:.0f} MB, with the same Hvpas written by a client {usual:.0f} MB: "
        f"{memory / usual:.2f} (goal: at most {MEMORY_GOAL})"
    )
    return 0 if created <= goal and writes == 0 and memory <= MEMORY_GOAL * usual else 1


if __name__ == "__main__":
    sys.exit(main())
