"""How long from a recommendation to the patched workload, and how quiet the operator is at rest.

On etcd and kube-apiserver alone, the benchmark plays the HPA controller, the VPA recommender and the
Deployment controller for a number of Hvpas. In each round every Hvpa gets two statuses, HPA's and VPA's, of
which the last makes the operator act: on the vertical axis in even rounds, on the horizontal one in odd
rounds. A step is timed from just before that last write is sent until a watch shows the patched Deployment.
The floor is the same number of plain patches, by the same client at the same concurrency, timed until the
same watch shows them; the operator's way holds two such writes and its own work.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPSConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from localcluster.client.api import KubeApi, read_kubeconfig, wait_for
from localcluster.controlplane.controlplane import ControlPlane
from localcluster.operator.operator import (
    NAMESPACE,
    SERVICE_ACCOUNT,
    Operator,
    install_crds,
    install_operator_rbac,
)
from localcluster.programs.build import build
from localcluster.workloads.bare_manifests import deployment, weight
from localcluster.workloads.stage import Stage, new_namespace, parallel

GOAL_MS = 100.0
"""The median that the operator must stay below."""
STEP_MILLICORES = 300
"""By how much a vertical step raises the request."""
USER = f"{NAMESPACE}:{SERVICE_ACCOUNT}"


class Watch(threading.Thread):
    """Notes when each generation of each Deployment of a namespace is first seen."""

    def __init__(self, kubeconfig: Path, namespace: str) -> None:
        super().__init__(daemon=True, name="watch")
        self._credentials = read_kubeconfig(kubeconfig)
        self._path = f"/apis/apps/v1/namespaces/{namespace}/deployments?watch=true"
        self._changed = threading.Condition()
        self._seen: dict[tuple[str, int], float] = {}

    def run(self) -> None:
        """Read until the server ends the watch."""
        address = urlsplit(self._credentials.server)
        connection = HTTPSConnection(address.hostname or "", address.port, context=self._credentials.tls)
        connection.request("GET", self._path)
        for line in connection.getresponse():
            now = time.perf_counter()
            metadata = json.loads(line)["object"]["metadata"]
            with self._changed:
                self._seen.setdefault((metadata["name"], metadata["generation"]), now)
                self._changed.notify_all()

    def await_generation(self, name: str, generation: int, timeout: float = 60) -> float:
        """When (perf_counter) a Deployment's generation was seen."""
        with self._changed:
            if not self._changed.wait_for(lambda: (name, generation) in self._seen, timeout):
                raise TimeoutError(f"no step of {name} within {timeout:g} s")
            return self._seen[name, generation]


def vertical_step(stage: Stage, watch: Watch) -> float:
    """Seconds from the VPA's status to the patched requests."""
    target = stage.target
    requests = target["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"]["cpu"]
    present = int(requests[:-1]) if requests.endswith("m") else 1000 * int(requests)
    stage.hpa_wants(target["spec"]["replicas"])
    began = time.perf_counter()
    stage.vpa_recommends(cpu=f"{present + 2 * STEP_MILLICORES}m")
    return watch.await_generation(stage.name, target["metadata"]["generation"] + 1) - began


def horizontal_step(stage: Stage, watch: Watch) -> float:
    """Seconds from the HPA's status to the patched count."""
    target = stage.target
    wish = target["spec"]["replicas"] + 2
    status = stage.hpa_status(wish)
    stage.hpa_wishes(wish)
    began = time.perf_counter()
    stage.api.patch_status("HorizontalPodAutoscaler", stage.name, stage.namespace, status)
    return watch.await_generation(stage.name, target["metadata"]["generation"] + 1) - began


def plain_patch(api: KubeApi, namespace: str, name: str, watch: Watch) -> float:
    """Seconds from a plain patch to its being seen."""
    generation = api.get("Deployment", name, namespace)["metadata"]["generation"]
    began = time.perf_counter()
    api.patch("Deployment", name, namespace, {"spec": {"replicas": 2 + generation}})
    return watch.await_generation(name, generation + 1) - began


def settle(stage: Stage) -> None:
    """The rollout is through, and the HPA is content with what there is."""
    stage.rollout_completes()
    stage.hpa_wants(stage.replicas)


def cpu_seconds(pid: int) -> float:
    """User and system time of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def rss_mib(pid: int) -> float:
    """Resident memory of a process."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024


def summary(seconds: list[float]) -> dict[str, float]:
    """Median and 99th percentile in milliseconds."""
    return {
        "median_ms": round(1000 * statistics.median(seconds), 1),
        "p99_ms": round(1000 * statistics.quantiles(seconds, n=100, method="inclusive")[98], 1),
    }


def rest(plane: ControlPlane, seconds: float) -> dict[str, int]:
    """The operator's requests during so many seconds without a change, by verb and resource."""
    mark = plane.audit.mark()
    time.sleep(seconds)
    found = plane.audit.requests(mark, user=USER)
    return dict(Counter(f"{one.verb} {one.resource}" for one in found))


def measure(plane: ControlPlane, args: argparse.Namespace, tell: Callable[[str], None]) -> dict[str, Any]:
    """All numbers of one run."""
    namespace = new_namespace(plane.api, "bench")
    watch = Watch(plane.kubeconfig, namespace)
    watch.start()
    account = plane.service_account_kubeconfig(NAMESPACE, SERVICE_ACCOUNT)
    flags = ("--leader-elect", "--lease-namespace", NAMESPACE)
    with Operator(plane, account, *flags) as operator, ThreadPoolExecutor(args.concurrency) as pool:
        tell(f"creating {args.hvpas} workloads with their Hvpas")
        stages = parallel([Stage(plane.api, namespace, changes=weight(50)) for _ in range(args.hvpas)])
        plain = [f"plain-{number}" for number in range(args.hvpas)]
        for name in plain:
            plane.api.create(deployment(name, namespace))
        list(pool.map(settle, stages))
        results: dict[str, list[float]] = {"vertical": [], "horizontal": [], "floor": []}
        cpu = 0.0
        for number in range(args.rounds):
            axis, step = (("vertical", vertical_step), ("horizontal", horizontal_step))[number % 2]
            tell(f"round {number + 1} of {args.rounds}: {axis}")
            wait_for(lambda: operator.metric("hvpa_queue_depth") == 0, 60, "an empty queue")
            time.sleep(1)
            before = cpu_seconds(operator.process.pid)
            results[axis] += pool.map(lambda stage, step=step: step(stage, watch), stages)
            time.sleep(0.5)
            cpu += cpu_seconds(operator.process.pid) - before
            list(pool.map(settle, stages))
            results["floor"] += pool.map(lambda name: plain_patch(plane.api, namespace, name, watch), plain)
        tell(f"at rest for {args.rest:g} s")
        time.sleep(3)
        at_rest = rest(plane, args.rest)
        steps = results["vertical"] + results["horizontal"]
        told, floor = summary(steps), summary(results["floor"])
        return {
            "hvpas": args.hvpas,
            "concurrency": args.concurrency,
            "steps": len(steps),
            "latency": told,
            "by_axis": {axis: summary(results[axis]) for axis in ("vertical", "horizontal") if results[axis]},
            "floor": floor,
            "ratio_of_medians": round(told["median_ms"] / floor["median_ms"], 2),
            "operator_cpu_ms_per_step": round(1000 * cpu / len(steps), 2),
            "operator_rss_mib": round(rss_mib(operator.process.pid), 1),
            "requests_at_rest": at_rest,
            "rest_seconds": args.rest,
            "goal_met": told["median_ms"] < GOAL_MS,
        }


def show(result: dict[str, Any]) -> None:
    """The numbers for people."""
    told, floor = result["latency"], result["floor"]
    print(f"{result['steps']} steps of {result['hvpas']} Hvpas, {result['concurrency']} at a time")
    print(f"last status write to patched workload: median {told['median_ms']} ms, p99 {told['p99_ms']} ms")
    for axis, numbers in result["by_axis"].items():
        print(f"  {axis:<10}: median {numbers['median_ms']} ms, p99 {numbers['p99_ms']} ms")
    print(f"floor (a plain patch): median {floor['median_ms']} ms, p99 {floor['p99_ms']} ms")
    print(f"ratio of medians: {result['ratio_of_medians']}")
    print(
        f"operator: {result['operator_cpu_ms_per_step']} ms of CPU per step, {result['operator_rss_mib']} MiB"
    )
    print(f"requests during {result['rest_seconds']:g} s at rest: {result['requests_at_rest'] or 'none'}")
    print(f"goal (median below {GOAL_MS:g} ms): {'met' if result['goal_met'] else 'MISSED'}")


def main() -> int:
    """Run it: 0 when the goal is met, 1 when not."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__.splitlines()[0])
    parser.add_argument("--hvpas", type=int, default=100, help="default: 100")
    parser.add_argument("--rounds", type=int, default=4, help="steps of each Hvpa (default: 4)")
    parser.add_argument(
        "--concurrency", type=int, default=4, help="Hvpas that get statuses at once (default: 4)"
    )
    parser.add_argument("--rest", type=float, default=30, metavar="SECONDS", help="default: 30")
    parser.add_argument("--json", action="store_true", help="print JSON")
    args = parser.parse_args()
    programs = build(full=True)
    with ControlPlane(full=False, programs=programs) as plane:
        install_crds(plane)
        crds = yaml.safe_load_all(programs.shared["vpa-crd.yaml"].read_text())
        plane.apply_all([document for document in crds if document])
        install_operator_rbac(plane)
        result = measure(plane, args, lambda line: print(line, file=sys.stderr, flush=True))
    print(json.dumps(result, indent=2)) if args.json else show(result)
    return 0 if result["goal_met"] else 1
