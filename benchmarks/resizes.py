"""`python -m benchmarks resizes`: measures the cost of sizes at creation when a pod is created, the delay of resizes
after the HPA's status or after an OOM, and the rate of many resizes.

Runs on a real API server; the operator is the only real controller. Pods are created in turn with and without
`config/size-at-creation`; the ratio of the medians counts. Resizes are read from the audit log. The floor for many
resizes is a client that sends the same requests and does nothing else, in the same run.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import random
import statistics
import sys
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from benchmarks.scale import audit, objects
from benchmarks.scale.environment import Environment, environment
from benchmarks.scale.http import MERGE, STRATEGIC, Client, each, paced
from benchmarks.scale.objects import HPAS, VPAS, Item, Writer, encode, make_items
from localcluster.client.api import Json
from localcluster.workloads.bare_manifests import ago

CREATION_GOAL = 1.05
"""Highest ratio of a pod's creation time with and without the policy, for pods that get no size."""
LATENCY_GOAL = 0.3
"""Highest median seconds from the HPA's status to a pod's resize."""
OOM_GOAL = 1.0
"""Highest median seconds from a pod's status with an OOM to the pod's resize."""
FLOOR_GOAL = 1.5
"""Highest multiple of the bare client's time."""
AT_ONCE = 32
"""Concurrent requests, except the operator's."""
SMALL, LARGE = {"cpu": "500m", "memory": "500M"}, {"cpu": "900m", "memory": "700M"}
ADMISSION = "admissionregistration.k8s.io/v1"
OURS = "hvpa-size-at-creation"
POLICIES_SEEN = 60.0
"""Seconds in which the API server applies a new policy."""
SETTLED = 5.0
"""Seconds after that in which it applies the other policy."""
NODE: Json = {"cpu": "1000000", "memory": "1000Ti", "pods": "1000000"}


# --- creation --------------------------------------------------------------------------------------------------------
CREATED: Mapping[str, tuple[str, str]] = {
    "without the policy": ("policy-none", "web-7"),
    "with it, of another owner": ("policy-ours", "other"),
    "with it, with a size": ("policy-ours", "web-7"),
    "with a policy that changes nothing": ("policy-empty", "web-7"),
}
"""Namespace and Deployment of the pods that are created in turn."""
UNSIZED, SIZED, EMPTY = list(CREATED)[1:]


def creation(env: Environment, entries: int, pods: int) -> dict[str, float]:
    """Return the median time to create a pod with this number of entries in HvpaSizes, as a multiple of the time
    without."""
    api = env.plane.api
    sizes = {f"Deployment.apps/web-{number}": _entry(number) for number in range(entries)}
    for namespace in dict.fromkeys(namespace for namespace, _ in CREATED.values()):
        api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
        kind = {"apiVersion": "autoscaling.k8s.io/v1alpha1", "kind": "HvpaSizes"}
        api.create({**kind, "metadata": {"name": "hvpa", "namespace": namespace}, "sizes": sizes})
    _bind(env, OURS, "policy-ours")
    empty = api.get(f"{ADMISSION}/MutatingAdmissionPolicy", OURS)
    nothing = {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": "Object{}"}}
    spec = {name: empty["spec"][name] for name in ("paramKind", "matchConstraints", "failurePolicy")}
    policy = {"kind": "MutatingAdmissionPolicy", "metadata": {"name": "empty"}}
    spec = {**spec, "reinvocationPolicy": "IfNeeded", "mutations": [nothing]}
    api.create({"apiVersion": ADMISSION, **policy, "spec": spec})
    param = api.get(f"{ADMISSION}/MutatingAdmissionPolicyBinding", OURS)["spec"]["paramRef"]
    binding = {"kind": "MutatingAdmissionPolicyBinding", "metadata": {"name": "empty"}}
    api.create({"apiVersion": ADMISSION, **binding, "spec": {"policyName": "empty", "paramRef": param}})
    _bind(env, "empty", "policy-empty")
    return asyncio.run(_create_in_turn(Client(env.plane.kubeconfig, "driver"), pods))


def _bind(env: Environment, policy: str, namespace: str) -> None:
    """Apply a policy only in this namespace."""
    selector = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
    bound = {"spec": {"matchResources": {"namespaceSelector": selector}}}
    env.plane.api.patch(f"{ADMISSION}/MutatingAdmissionPolicyBinding", policy, None, bound)


def _entry(number: int) -> str:
    return f"web-{number}; app {LARGE['cpu']}: {LARGE['memory']}:"


async def _create_in_turn(client: Client, pods: int) -> dict[str, float]:
    numbers = itertools.count(1)
    deadline = time.monotonic() + POLICIES_SEEN
    while await _created(client, Item(*CREATED[SIZED]), next(numbers)) != LARGE["cpu"]:
        if time.monotonic() > deadline:
            raise TimeoutError(f"the policy gives no size after {POLICIES_SEEN} s")
        await asyncio.sleep(1)
    await asyncio.sleep(SETTLED)
    seconds: dict[str, list[float]] = {name: [] for name in CREATED}
    for _ in range(pods):
        for name in random.sample(list(CREATED), len(CREATED)):
            item = Item(*CREATED[name])
            began = time.perf_counter()
            size = await _created(client, item, next(numbers))
            seconds[name].append(time.perf_counter() - began)
            if size != (LARGE if name == SIZED else SMALL)["cpu"]:
                raise RuntimeError(f"a pod {name} was created with {size} of CPU")
    client.close()
    floor, *others = [statistics.median(times) for times in seconds.values()]
    return dict(zip(list(CREATED)[1:], [median / floor for median in others], strict=True))


async def _created(client: Client, item: Item, number: int) -> str:
    """Create a pod; return its CPU request."""
    path = item.collection("/api/v1", "pods")
    made = msgspec.json.decode(await client.send("POST", path, objects.pod(item, number, _owner(item))))
    return str(made["spec"]["containers"][0]["resources"]["requests"]["cpu"])


def _owner(item: Item) -> Json:
    """Return the Deployment's ReplicaSet as owner."""
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": f"{item.name}-1"}
    return {**owner, "uid": "1", "controller": True}


# --- resizes ---------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class ResizeRequest:
    """A resize request of the operator: its begin and end in seconds since 1970."""

    pod: str
    began: float
    ended: float


def resizes(env: Environment, since: int) -> list[ResizeRequest]:
    """Return the resizes in the audit log from this position on. Raises RuntimeError if a resize failed."""
    made = []
    for entry in audit.entries(env.log, since, env.plane.audit.mark().offset):
        if entry.kind.resource == "pods/resize":
            if entry.responseStatus.code != 200:
                raise RuntimeError(f"a resize failed: {entry.responseStatus}")
            assert entry.requestReceivedTimestamp is not None
            assert entry.stageTimestamp is not None
            began, ended = entry.requestReceivedTimestamp.timestamp(), entry.stageTimestamp.timestamp()
            made.append(ResizeRequest(f"{entry.objectRef.namespace}/{entry.objectRef.name}", began, ended))
    return made


class Workloads:
    """Deployments with their pods and Hvpas, and the writes of their controllers."""

    def __init__(self, client: Client, items: Sequence[Item], pods: int) -> None:
        self._client = client
        self._writer = Writer(client, pods)
        self._pods = pods
        self.items = items
        for item in items:
            item.replicas = pods

    async def prepare(self) -> None:
        """Create namespaces, Deployments and pods, as if they had run for hours, and their Hvpas."""
        send = self._client.send
        node: Json = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node"}}
        await send("POST", "/api/v1/nodes", encode(node))
        room = encode({"status": {"capacity": NODE, "allocatable": NODE}})
        await send("PATCH", "/api/v1/nodes/node/status", room, MERGE)
        for name in dict.fromkeys(item.namespace for item in self.items):
            await self._writer.create_namespace(name)
        await each(self.items, AT_ONCE, self._prepare)

    async def _prepare(self, item: Item) -> None:
        await self._writer.create_workload(item, _owner(item), _running())
        await self._writer.create_hvpa(item, updateStrategy={"type": "InPlace"})

    async def are_content(self) -> None:
        """Let each HPA and VPA recommend the current sizes."""

        async def settle(item: Item) -> None:
            await self._writer.recommend(item, 500)
            await self._writer.desire(item, item.replicas)

        await each(self.items, AT_ONCE, settle)

    async def step(self, item: Item) -> float:
        """Let both recommend more, the HPA last; return when its status was sent, in seconds since 1970."""
        await self._writer.recommend(item, 1100)
        sent = time.time()
        await self._writer.desire(item, item.replicas + 2)
        return sent

    async def run_out(self, item: Item) -> float:
        """Report an OOM of the first pod's container as the kubelet; return when the status was sent, in seconds since
        1970."""
        status = msgspec.json.decode(_running())
        ended = {"reason": "OOMKilled", "exitCode": 137, "startedAt": ago(hours=2), "finishedAt": ago()}
        for container in status["status"]["containerStatuses"]:
            container |= {"restartCount": 1, "lastState": {"terminated": ended}}
        sent = time.time()
        path = item.collection("/api/v1", f"pods/{item.name}-0/status")
        await self._client.send("PATCH", path, encode(status), MERGE)
        return sent

    async def resize_all(self, cpu: str) -> float:
        """Measure the floor: resize all pods by a client that does nothing else; return the seconds."""
        container = {"name": "app", "resources": {"requests": {"cpu": cpu}}}
        body = encode({"spec": {"containers": [container]}})

        paths = [
            item.collection("/api/v1", f"pods/{item.name}-{number}/resize")
            for item in self.items
            for number in range(self._pods)
        ]
        began = time.perf_counter()
        await each(paths, AT_ONCE, lambda path: self._client.send("PATCH", path, body, STRATEGIC))
        return time.perf_counter() - began


def _running() -> bytes:
    """Return the kubelet's status of a ready pod with the resources of its spec."""
    status = msgspec.json.decode(objects.pod_status())
    for container in status["status"]["containerStatuses"]:
        container["resources"] = {"requests": SMALL}
    return encode(status)


Act = Callable[[Workloads, Item], Awaitable[float]]
"""Causes resizes of a workload's pods; returns when it was sent."""


async def latencies(env: Environment, hvpas: int, pods: int, rate: float) -> list[float]:
    """Return the seconds from the HPA's status to each pod's resize request, at a rate of Hvpas per second."""
    return await _latencies(env, Workloads.step, hvpas, pods, rate, pods)


async def oom_latencies(env: Environment, hvpas: int, pods: int, rate: float) -> list[float]:
    """Return the seconds from the status with a container's OOM to that pod's resize request, at a rate of Hvpas per
    second. The other pods wait for that pod's kubelet, which does nothing here."""
    return await _latencies(env, Workloads.run_out, hvpas, pods, rate, 1)


async def _latencies(
    env: Environment, act: Act, hvpas: int, pods: int, rate: float, resized: int
) -> list[float]:
    """Return the seconds from `act` to each resize; `resized` is the number of resized pods per Hvpa."""
    client = Client(env.plane.kubeconfig, "driver")
    workloads = Workloads(client, make_items(hvpas), pods)
    await workloads.prepare()
    await asyncio.to_thread(env.start)
    await _until_owned(client, hvpas)
    await workloads.are_content()
    await asyncio.to_thread(env.until_quiet)
    since = env.plane.audit.mark().offset
    sent: dict[str, float] = {}
    async for item in paced(workloads.items, rate):
        sent[f"{item.namespace}/{item.name}"] = await act(workloads, item)
    await asyncio.to_thread(env.until_quiet)
    first: dict[str, float] = {}
    for resize in resizes(env, since):
        first.setdefault(resize.pod, resize.began)
    _all_resized(first, hvpas * resized)
    client.close()
    return [began - sent[pod.rpartition("-")[0]] for pod, began in first.items()]


async def many(env: Environment, hvpas: int, pods: int) -> tuple[float, float, int]:
    """Return the seconds in which the operator resizes all pods, from its first resize to the last response; those of
    the floor; and the number of the operator's other writes. All statuses exist when it starts."""
    client = Client(env.plane.kubeconfig, "driver")
    workloads = Workloads(client, make_items(hvpas), pods)
    await workloads.prepare()
    await asyncio.to_thread(env.start)
    await _until_owned(client, hvpas)
    await asyncio.to_thread(env.until_quiet)
    await asyncio.to_thread(env.end)
    await each(workloads.items, AT_ONCE, workloads.step)
    since = env.plane.audit.mark().offset
    await asyncio.to_thread(env.start)
    await asyncio.to_thread(env.until_quiet)
    made = resizes(env, since)
    _all_resized({resize.pod for resize in made}, hvpas * pods)
    kinds = audit.read(env.log, since, env.plane.audit.mark().offset).kinds
    writes = sum(count for kind, count in kinds.items() if kind.is_write) - len(made)
    await asyncio.to_thread(env.end)
    floor = min([await workloads.resize_all(cpu) for cpu in ("750m", "760m")])
    client.close()
    return max(resize.ended for resize in made) - min(resize.began for resize in made), floor, writes


async def _until_owned(client: Client, hvpas: int) -> None:
    """Wait until each Hvpa has its HPA and VPA."""
    deadline = time.monotonic() + 300
    for path in (f"{HPAS}/horizontalpodautoscalers", f"{VPAS}/verticalpodautoscalers"):
        while len(msgspec.json.decode(await client.send("GET", path))["items"]) < hvpas:
            if time.monotonic() > deadline:
                raise TimeoutError(f"not all of {path} are there after 300 s")
            await asyncio.sleep(1)


def _all_resized(pods: Iterable[str], count: int) -> None:
    if (resized := len(list(pods))) != count:
        raise RuntimeError(f"{resized} of {count} pods were resized")


# --- command ---------------------------------------------------------------------------------------------------------
def _creation(env: Environment, args: argparse.Namespace) -> bool:
    ratios = creation(env, args.entries, args.creations)
    print(
        f"creation of a pod with {args.entries:,} Hvpas in its namespace, as a multiple of one without the policy:"
    )
    for name, ratio in ratios.items():
        print(f"  {name}: {ratio:.2f}" + (f" (goal: at most {CREATION_GOAL})" if name == UNSIZED else ""))
    return ratios[UNSIZED] <= CREATION_GOAL


def _latency(env: Environment, args: argparse.Namespace) -> bool:
    times = asyncio.run(latencies(env, args.hvpas, args.pods, args.rate))
    return _in_time(f"{_named(args)}, from the HPA's status to a pod's resize", times, LATENCY_GOAL)


def _oom(env: Environment, args: argparse.Namespace) -> bool:
    times = asyncio.run(oom_latencies(env, args.hvpas, args.pods, args.rate))
    return _in_time(f"{_named(args)}, from a container's OOM to its pod's resize", times, OOM_GOAL)


def _named(args: argparse.Namespace) -> str:
    return f"{args.hvpas} Hvpas with {args.pods} pods"


def _in_time(label: str, seconds: Iterable[float], goal: float) -> bool:
    times = sorted(seconds)
    median, late = statistics.median(times), times[int(0.99 * len(times))]
    print(f"{label}: median {median:.3f} s, 99th percentile {late:.3f} s (goal: median below {goal} s)")
    return median < goal


def _many(env: Environment, args: argparse.Namespace) -> bool:
    took, floor, writes = asyncio.run(many(env, args.many, args.pods))
    print(
        f"{args.many * args.pods:,} pods resized in {took:.1f} s, beside {writes:,} other writes; by a bare client "
        f"in {floor:.1f} s: {took / floor:.2f} (goal: at most {FLOOR_GOAL})"
    )
    return took <= FLOOR_GOAL * floor


PARTS = {"creation": _creation, "latency": _latency, "oom": _oom, "many": _many}


def main(options: list[str] | None = None) -> int:
    """Run the benchmark; 0 if every goal was met."""
    parser = argparse.ArgumentParser(
        prog="benchmarks resizes", description="sizes at creation, and resizes of pods"
    )
    parser.add_argument("--only", choices=PARTS, action="append", help="this part; may be repeated")
    parser.add_argument("--entries", type=int, default=1000, help="Hvpas of the namespace, each with a size")
    parser.add_argument("--creations", type=int, default=500, help="pods that are created in each namespace")
    parser.add_argument("--hvpas", type=int, default=100, help="Hvpas whose pods' resizes are timed")
    parser.add_argument("--pods", type=int, default=10, help="pods of each Hvpa")
    parser.add_argument("--rate", type=float, default=5.0, help="Hvpas that change per second")
    parser.add_argument("--many", type=int, default=1000, help="Hvpas whose pods are resized at once")
    args = parser.parse_args(options)
    met = []
    for name in args.only or PARTS:
        with environment("none", ()) as env:
            met.append(PARTS[name](env, args))
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
