"""`python -m benchmarks export`: measures `hvpa export -A` over many workloads on a real API server, without an
operator but with its rights.

The floor is `kubectl get` of the same objects in the same run. The audit log shows how often pods were listed: a page
of 500 objects per request, once.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.scale.environment import Environment, environment
from benchmarks.scale.http import Client, each
from benchmarks.scale.objects import HPAS, HVPAS, VPAS, Item, Writer, encode, make_items
from localcluster.client.api import Json
from localcluster.workloads import samples

GOAL = 30.0
"""Highest seconds of an export of 1,500 workloads."""
AT_ONCE = 32
"""Concurrent requests while the objects are created."""
PAGE = 500
"""Objects per request of a list."""
LISTED = "deployments,statefulsets,horizontalpodautoscalers,pods,hvpas,verticalpodautoscalers"


async def prepare(kubeconfig: Path, items: Sequence[Item], pods: int) -> None:
    """Create the workloads with their pods, an HPA that acts, a VPA that recommends, and an Hvpa in mode Recommend."""
    client = Client(kubeconfig, "driver")
    writer = Writer(client, pods)
    for name in dict.fromkeys(item.namespace for item in items):
        await writer.create_namespace(name)

    async def create(item: Item) -> None:
        item.replicas = pods
        target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": item.name}
        await writer.create_workload(item)
        for path, plural, body in (
            (HPAS, "horizontalpodautoscalers", samples.hpa(item.name, item.namespace, target)),
            (VPAS, "verticalpodautoscalers", samples.vpa(item.name, item.namespace, target)),
            (HVPAS, "hvpas", _hvpa(item, target)),
        ):
            await client.send("POST", item.collection(path, plural), encode(body))
        await writer.recommend(item, 1100)
        await writer.desire(item, pods + 2)

    await each(items, AT_ONCE, create)
    client.close()


def _hvpa(item: Item, target: Json) -> Json:
    named = {"name": item.name}
    return {
        "apiVersion": "autoscaling.k8s.io/v1alpha1",
        "kind": "Hvpa",
        "metadata": {**named, "namespace": item.namespace},
        "spec": {"mode": "Recommend", "blend": "Trajectory", "targetRef": target, "hpa": named, "vpa": named},
    }


def measure(env: Environment, workloads: int, pods: int) -> bool:
    """Print the seconds and the ratios; returns whether the goal is met."""
    asyncio.run(prepare(env.plane.kubeconfig, make_items(workloads), pods))
    kubeconfig = ("--kubeconfig", str(env.account))
    with TemporaryDirectory(prefix="hvpa-export-") as folder:
        command = (sys.executable, "-m", "hvpa", "export", "-A", "--to", folder, *kubeconfig)
        mark = env.plane.audit.mark()
        first = _seconds(*command)
        sent = [request for request in env.plane.audit.requests(mark) if request.user_agent == "hvpa-export"]
        second = _seconds(*command)
        files = sum(1 for _ in Path(folder).rglob("deployment-*.yaml"))
    floor = _seconds(str(env.plane.programs["kubectl"]), "get", "-A", LISTED, "-o", "json", *kubeconfig)
    lists = sum(request.resource == "pods" for request in sent)
    once = math.ceil(workloads * pods / PAGE)
    print(
        f"export of {workloads:,} workloads with {pods} pods each: {first:.1f} s (goal: at most {GOAL:.0f})"
    )
    print(
        f"  as a multiple of kubectl get of the same objects: {first / floor:.2f}; again: {second / floor:.2f}"
    )
    print(f"  {files:,} files; pods listed in {lists} pages (once: {once}); {len(sent)} requests")
    return first <= GOAL and files == workloads and lists == once


def _seconds(*command: str) -> float:
    began = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


def main(options: list[str]) -> int:
    """Run the benchmark; 0 if its goal was met."""
    parser = argparse.ArgumentParser(prog="benchmarks export")
    parser.add_argument("--workloads", type=int, default=1500, help="Deployments, each with an Hvpa")
    parser.add_argument("--pods", type=int, default=3, help="pods of each")
    args = parser.parse_args(options)
    with environment("scale-0", ()) as env:
        return 0 if measure(env, args.workloads, args.pods) else 1
