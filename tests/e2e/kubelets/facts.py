"""Observations of a kubelet, each of which gives its answer in a few words: what is seen, in its order, and no exact
times."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from hvpa.api.values.quantity import Resource, parse_cpu, parse_resource
from localcluster.client.api import ApiError, Json, wait_for
from localcluster.workloads.load import is_ready
from localcluster.workloads.pods import MIB, Pods
from localcluster.workloads.real_pods import Versions, applied, asked, condition, is_resized, status

SMALL: Final = {"cpu": "50m", "memory": "64Mi"}
LIMITS: Final = {"cpu": "200m", "memory": "128Mi"}
RESTARTS: Final = [
    {"resourceName": "cpu", "restartPolicy": "NotRequired"},
    {"resourceName": "memory", "restartPolicy": "RestartContainer"},
]
_LATE: Final = 9
"""Seconds: metrics that come with a scrape are there before, if that follows at once."""


@dataclass(frozen=True, slots=True)
class Place:
    """A namespace of a cluster. Its pods are on one node."""

    kubeconfig: Path
    pods: Pods

    def watch(self) -> Versions:
        """All versions of the pods from now on."""
        return Versions(self.kubeconfig, self.pods.namespace)


Fact = Callable[[Place], str]


def course(place: Place) -> str:
    """What the versions of a pod say of a resize. A busy kubelet writes two of them at once: of some resizes, the one
    with most of them counts."""
    pods = place.pods
    pods.create("web", SMALL)
    most: list[str] = []
    with place.watch() as versions:
        wait_for(lambda: versions.of("web"), 10, "the watch has begun")
        for cpu in ("60m", "70m", "80m", "90m"):
            pods.resize("web", {"cpu": cpu})
            wait_for(partial(_has, versions, cpu), 60, "it is resized", 0.05)
            most = max(most, list(dict.fromkeys(map(_step, _requesting(versions, cpu)))), key=len)
    restarts = status(pods.get("web"))["restartCount"]
    return f"{'; '.join(most)}; {f'{restarts} restarts' if restarts else 'no restart'}"


def _has(versions: Versions, cpu: str) -> bool:
    return any(map(is_resized, _requesting(versions, cpu)))


def _requesting(versions: Versions, cpu: str) -> list[Json]:
    return [pod for _, pod in versions.of("web") if asked(pod)["requests"]["cpu"] == cpu]


def _step(pod: Json) -> str:
    wanted = asked(pod)["requests"]
    if applied(pod)["requests"] == wanted:
        state = "there"
    elif status(pod).get("allocatedResources") == wanted:
        state = "allocated"
    else:
        state = "asked for"
    told = condition(pod, "PodResizeInProgress")
    if told is None:
        return state
    reason = f" `{told['reason']}`" if told.get("reason") else " without a reason"
    return f"{state}, with `PodResizeInProgress`{reason}"


def amounts(place: Place) -> str:
    """How the status writes amounts that were asked for."""
    pods = place.pods
    pods.create("web", {"cpu": "100m", "memory": "64M"}, {"cpu": "1", "memory": "999M"})
    others: dict[str, str] = {}
    cases = (("1m", "36254k", "64M"), ("7m", "60M", "61234567"), ("123m", "61234567", "700M"))
    for cpu, memory, limit in cases:
        pods.resize("web", {"cpu": cpu, "memory": memory}, {"memory": limit})
        pod = pods.until("web", _is_equal, "is resized")
        for of_spec, of_status in zip(_texts(asked(pod)), _texts(applied(pod)), strict=True):
            if of_spec != of_status:
                others[of_spec] = of_status
    told = ", ".join(f"`{amount}` for `{wanted}`" for wanted, amount in sorted(others.items()))
    return f"equal, but {told}" if told else "as they were written"


def _texts(resources: Json) -> Iterator[str]:
    for part in ("requests", "limits"):
        yield from (amount for _, amount in sorted(resources.get(part, {}).items()))


def _is_equal(pod: Json) -> bool:
    """Whether the container has the amounts of its spec, however they are written."""

    def parsed(resources: Json) -> dict[tuple[str, Resource], int]:
        return {
            (part, name): parse_resource(name, amount)
            for part, quantities in resources.items()
            for name, amount in quantities.items()
        }

    is_over = not any(condition(pod, kind) for kind in ("PodResizeInProgress", "PodResizePending"))
    return is_over and parsed(asked(pod)) == parsed(applied(pod))


def beyond_the_node(place: Place) -> str:
    """What becomes of a resize that the node never has the room for."""
    pods = place.pods
    pods.create("web", SMALL)
    try:
        pods.resize("web", {"cpu": "1000"})
    except ApiError as error:
        return f"the API server refuses it ({error.status}, cause `{', '.join(error.causes)}`)"
    pod = pods.until("web", lambda pod: is_resized(pod) or _pending(pod), "is looked at")
    return f"`{_pending(pod)}`" if _pending(pod) else "resized"


def _pending(pod: Json) -> str:
    return str((condition(pod, "PodResizePending") or {}).get("reason", ""))


def no_room(place: Place) -> str:
    """What becomes of a resize that there is no room for at present."""
    pods = place.pods
    pods.create("web", SMALL)
    most = _free(place)
    pods.create("other", {"cpu": f"{most - 100}m", "memory": "32Mi"})
    pods.resize("web", {"cpu": "250m"})
    pod = pods.until("web", lambda pod: is_resized(pod) or _pending(pod), "is looked at")
    if not _pending(pod):
        return "resized all the same: room is not counted"
    message = str((condition(pod, "PodResizePending") or {})["message"])
    beginning = re.split(r"\d", message, maxsplit=1)[0]
    pods.resize("other", {"cpu": f"{most - 400}m"})
    pods.until("web", is_resized, "is resized")
    return f"`{_pending(pod)}` (`{beginning}…`); resized when another pod shrinks"


def while_it_waits(place: Place) -> str:
    """What a resize without room keeps from other pods, how it ends if it is taken back, and whether it is done when
    another pod is deleted."""
    pods = place.pods
    pods.create("web", SMALL)
    pods.create("other", {"cpu": f"{_free(place) - 100}m", "memory": "32Mi"})
    pods.resize("web", {"cpu": "250m"})
    pod = pods.until("web", lambda pod: is_resized(pod) or _pending(pod), "is looked at")
    if not _pending(pod):
        return "none waits"
    pods.begin("next", {"cpu": "50m", "memory": "16Mi"}, None, "", {})

    def is_unscheduled(pod: Json) -> bool:
        return (condition(pod, "PodScheduled") or {}).get("status") == "False"

    counts = is_unscheduled(pods.until("next", lambda pod: is_unscheduled(pod) or is_ready(pod), "is placed"))
    pods.resize("web", {"cpu": "50m"})
    pods.until("web", is_resized, "is as before")
    pods.until("next", is_ready, "is ready")
    pods.resize("web", {"cpu": "250m"})
    pods.until("web", _pending, "waits")
    pods.delete("other")
    pods.until("web", is_resized, "is resized")
    counted = f"the scheduler counts its {'requested' if counts else 'present'} size"
    return f"{counted}; it ends if the request is taken back; resized once another pod is deleted"


def order(place: Place) -> str:
    """Which of the resizes that wait is the first that is done: there is room for one at a time."""
    pods = place.pods
    for name, value in (("low", 10), ("high", 1000)):
        metadata = {"name": f"test-{name}"}
        made = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": metadata}
        pods.api.apply({**made, "value": value})
    priorities = {"none": "", "low": "test-low", "high": "test-high"}
    for name, priority in priorities.items():
        pods.create(name, SMALL, priority=priority)
    most = _free(place)
    pods.create("other", {"cpu": f"{most - 100}m", "memory": "32Mi"}, priority="test-high")
    for name in priorities:
        pods.resize(name, {"cpu": "200m"})
        pod = pods.until(name, lambda pod: is_resized(pod) or _pending(pod), "is looked at")
        if not _pending(pod):
            return "none waits"
    turns: list[str] = []
    for turn in (1, 2, 3):
        pods.resize("other", {"cpu": f"{most - 50 - 150 * turn}m"})
        waiting = [name for name in priorities if name not in turns]
        turns += wait_for(partial(_resized, pods, waiting), 60, "one of them is resized", 0.05)
    by_priority = turns == ["high", "low", "none"]
    return "the larger priority first" if by_priority else f"`{', '.join(turns)}`"


def _resized(pods: Pods, names: Sequence[str]) -> list[str]:
    return [name for name in names if is_resized(pods.get(name))]


def _free(place: Place) -> int:
    """Millicores that further pods of the node may request."""
    there = place.pods.api.list("Pod")
    node = next(
        pod["spec"]["nodeName"]
        for pod in there
        if pod["metadata"]["namespace"] == place.pods.namespace and "nodeName" in pod["spec"]
    )
    room = parse_cpu(place.pods.api.get("Node", node)["status"]["allocatable"]["cpu"])
    for pod in there:
        if pod["spec"].get("nodeName") == node:
            containers = pod["spec"]["containers"]
            requests = [(container.get("resources") or {}).get("requests", {}) for container in containers]
            room -= sum(parse_cpu(request.get("cpu", 0)) for request in requests)
    return room


def limit_below_usage(place: Place) -> str:
    """What becomes of a memory limit below usage, and of CPU that is asked for afterwards."""
    pods, pod = place.pods, _lowered_below_usage(place)
    if is_resized(pod):
        return "resized"
    limit = f'container "app" memory limit ({40 * MIB}) below current usage ('
    try:  # before its first sample, a kubelet may say that there is none
        pods.until("web", lambda pod: limit in _message(pod), "is refused with amounts", 45)
        names = "names limit and usage"
    except TimeoutError:
        names = "names no amounts"
    assert pods.in_force("web").memory == 128 * MIB
    return f"`{_told(pod)}`; its message {names}; {_blocked(place)}"


def _lowered_below_usage(place: Place) -> Json:
    """A pod that uses 60 MiB, once its kubelet has refused a limit of 40 MiB or set it."""
    pods = place.pods
    pods.use("web", 10, 60)
    pods.create("web", SMALL, LIMITS)
    pods.await_used("web", 60)
    pods.resize("web", {"memory": "30Mi"}, {"memory": "40Mi"})
    return pods.until("web", lambda pod: _told(pod) == "Error" or is_resized(pod), "is looked at")


def usage_falls(place: Place) -> str:
    """What becomes of a refused memory limit once usage is below it."""
    pods, pod = place.pods, _lowered_below_usage(place)
    if is_resized(pod):
        return "none is refused"
    began = (condition(pod, "PodResizeInProgress") or {})["lastTransitionTime"]
    pods.use("web", 10, 5)
    times: set[str] = set()

    def is_done(pod: Json) -> bool:
        if told := condition(pod, "PodResizeInProgress"):
            times.add(told["lastTransitionTime"])
        return is_resized(pod)

    pods.until("web", is_done, "is resized", 90)
    return f"done; meanwhile `lastTransitionTime` {'stays' if times <= {began} else 'changes'}"


def small_limit(place: Place) -> str:
    """What a CPU limit below 10m is for the kernel."""
    pods = place.pods
    pods.create("web", {"cpu": "1m", "memory": "32Mi"}, {"cpu": "200m", "memory": "64Mi"})
    pods.resize("web", {"cpu": "1m"}, {"cpu": "5m"})
    pod = pods.until("web", is_resized, "is resized")
    return f"`{applied(pod)['limits']['cpu']}` in the status, {pods.in_force('web').cpu}m in force"


def _told(pod: Json) -> str:
    return str((condition(pod, "PodResizeInProgress") or {}).get("reason", ""))


def _message(pod: Json) -> str:
    return str((condition(pod, "PodResizeInProgress") or {}).get("message", ""))


def _blocked(place: Place) -> str:
    """Of CPU that is asked for while a limit is refused."""
    pods = place.pods
    pods.resize("web", {"cpu": "100m"}, {"cpu": "400m"})

    def generation_is_seen(pod: Json) -> bool:
        told = condition(pod, "PodResizeInProgress")
        return told is None or told.get("observedGeneration") == pod["metadata"]["generation"]

    pods.until("web", generation_is_seen, "is looked at")
    time.sleep(3)
    is_allocated = status(pods.get("web")).get("allocatedResources", {}).get("cpu") == "100m"
    is_applied = pods.in_force("web").cpu == 400
    if is_applied:
        return "more CPU comes all the same"
    pods.resize("web", {"memory": "64Mi"}, {"memory": "128Mi"})
    pods.until("web", is_resized, "is resized")
    assert pods.in_force("web") == (400, 128 * MIB)
    meanwhile = "is allocated and waits" if is_allocated else "waits"
    return f"more CPU {meanwhile} until the limit is put back"


def page_cache(place: Place) -> str:
    """Whether page cache counts as usage where a limit is lowered."""
    pods = place.pods
    pods.use("web", 10, 10, cache=80)
    pods.create("web", SMALL, LIMITS)
    pods.await_used("web", 85)
    pods.resize("web", {"memory": "30Mi"}, {"memory": "50Mi"})
    pod = pods.until("web", lambda pod: _told(pod) == "Error" or is_resized(pod), "is looked at")
    return "counts" if _told(pod) == "Error" else "does not count"


def out_of_memory(place: Place) -> str:
    """How a container ends that wants more memory than its limit, and when it is started again."""
    pods = place.pods
    pods.use("web", 10, 20)
    pods.create("web", {"cpu": "50m", "memory": "32Mi"}, {"memory": "64Mi"})
    with place.watch() as versions:
        wait_for(lambda: versions.of("web"), 10, "the watch has begun")
        pods.use("web", 10, 100)
        pods.until("web", lambda pod: status(pod)["restartCount"] == 2, "has been started twice", 90)
        pods.until("web", lambda pod: "running" not in status(pod)["state"], "is killed again", 30)
        began = time.time()
        pods.resize("web", {"memory": "128Mi"}, {"memory": "256Mi"})
        pods.until("web", lambda pod: is_ready(pod) and is_resized(pod), "is ready")
        waited = time.time() - began
        restarts = status(pods.get("web"))["restartCount"]
        pods.use("web", 10, 300)
        pods.until("web", lambda pod: status(pod)["restartCount"] > restarts, "is started after that", 90)
        wait_for(lambda: status(versions.of("web")[-1][1])["restartCount"] > restarts, 10, "it is shown")
        pod_versions = versions.of("web")
    last = status(pods.get("web"))["lastState"]["terminated"]
    ended = f"`{last['reason']}` ({last['exitCode']})"
    after = ", then ".join(_about(_wait(pod_versions, count)) for count in (0, 1))
    down = [pod for _, pod in pod_versions if "running" not in status(pod)["state"]]
    meanwhile = "ready" if any(map(is_ready, down)) or not down else "not ready"
    waiting = any(status(pod)["state"].get("waiting", {}).get("reason") == "CrashLoopBackOff" for pod in down)
    told = " (`CrashLoopBackOff`)" if waiting else ""
    by_resize = "a resize ends the wait" if waited < 12 else "a resize does not end the wait"
    next_one = _about(_wait(pod_versions, restarts))
    return (
        f"{ended}; started {after}{told}; {meanwhile} meanwhile; {by_resize}, and the next one is {next_one}"
    )


def _wait(versions: list[tuple[float, Json]], restarts: int) -> float:
    """Seconds between the end of the container that had been restarted so often, and the next start."""
    started = next(at for at, pod in versions if status(pod)["restartCount"] > restarts)
    before = [(at, "running" in status(pod)["state"]) for at, pod in versions if at < started]
    ended = next((at for at, runs in before if not runs and at > _last_run(before)), started)
    return started - ended


def _last_run(before: list[tuple[float, bool]]) -> float:
    return max((at for at, runs in before if runs), default=0.0)


def _about(seconds: float) -> str:
    return "at once" if seconds < 7 else "after 10 s" if seconds < 16 else "after 20 s or more"


def restart_container(place: Place) -> str:
    """What a `resizePolicy` does that says `RestartContainer` for memory."""
    pods = place.pods
    first = status(pods.create("web", SMALL, LIMITS, resizePolicy=RESTARTS)).get("containerID")
    pods.resize("web", {"cpu": "100m"}, {"cpu": "300m"})
    for_cpu = status(pods.until("web", is_resized, "is resized"))["restartCount"]
    pods.resize("web", {"memory": "80Mi"}, {"memory": "160Mi"})
    pod = pods.until(
        "web", lambda pod: is_resized(pod) and status(pod)["restartCount"] == for_cpu + 1, "is restarted"
    )
    assert first is None or status(pod)["containerID"] != first
    last = status(pod).get("lastState", {}).get("terminated")
    ended = f"`{last['reason']}` ({last['exitCode']})" if last else "nothing"
    return f"restarted{' for CPU too' if for_cpu else ', not for CPU'}; `lastState` says {ended}"


def restart_below_usage(place: Place) -> str:
    """The same with a limit below usage."""
    pods = place.pods
    pods.use("web", 10, 60)
    pods.create("web", SMALL, LIMITS, resizePolicy=RESTARTS)
    pods.await_used("web", 60)
    pods.resize("web", {"memory": "30Mi"}, {"memory": "40Mi"})

    def ended(pod: Json) -> str:
        container_status = status(pod)
        parts = [
            part.get("terminated", {})
            for part in (container_status["state"], container_status.get("lastState", {}))
        ]
        return "OOMKilled" if any(state.get("reason") == "OOMKilled" for state in parts) else ""

    pod = pods.until("web", lambda pod: ended(pod) or _told(pod) == "Error", "comes to an end", 90)
    return f"not refused: `{ended(pod)}`" if ended(pod) else "refused"


def cache_in_metrics(place: Place) -> str:
    """Whether the metrics of a pod include its page cache."""
    pods = place.pods
    path = f"/apis/metrics.k8s.io/v1beta1/namespaces/{pods.namespace}/pods"
    pods.use("web", 10, 10, cache=80)
    pods.create("web", SMALL, LIMITS)
    pods.await_used("web", 85)

    def usage() -> int:
        """Bytes; 0 if there are no metrics yet."""
        return sum(
            parse_resource("memory", container["usage"]["memory"])
            for pod_metrics in pods.api.raw("GET", path)["items"]
            for container in pod_metrics["containers"]
        )

    return "included" if wait_for(usage, 90, "it has metrics") > 60 * MIB else "not included"


def first_metrics(place: Place) -> str:
    """When the first metrics of a pod are there: of three that begin one after the other, the earliest."""
    pods = place.pods
    path = f"/apis/metrics.k8s.io/v1beta1/namespaces/{pods.namespace}/pods"
    began: dict[str, float] = {}
    delays: dict[str, float] = {}

    def look() -> bool:
        for pod_metrics in pods.api.raw("GET", path)["items"]:
            name = pod_metrics["metadata"]["name"]
            delays.setdefault(name, time.monotonic() - began[name])
        return len(delays) == 3

    for number in range(3):
        name = f"web-{number}"
        pods.use(name, 20, 10)
        pods.create(name, {"cpu": "20m", "memory": "32Mi"})
        began[name] = time.monotonic()
        until = began[name] + 4
        while time.monotonic() < until:
            look()
            time.sleep(0.2)
    wait_for(look, 90, "all have metrics")
    return "after 10 s and more" if min(delays.values()) > _LATE else "with the next scrape"


FACTS: Final[Mapping[str, Fact]] = {
    "a resize": course,
    "amounts in the status": amounts,
    "more than the node has": beyond_the_node,
    "no room": no_room,
    "a resize that waits for room": while_it_waits,
    "several wait for room": order,
    "a memory limit below usage": limit_below_usage,
    "a refused limit, once usage has fallen": usage_falls,
    "page cache, if a limit is lowered": page_cache,
    "page cache in metrics": cache_in_metrics,
    "a CPU limit below 10m": small_limit,
    "out of memory": out_of_memory,
    "`RestartContainer` for memory": restart_container,
    "the same, with a limit below usage": restart_below_usage,
    "metrics of a new pod": first_metrics,
}
"""What is observed, by its row in the table."""
ALONE: Final = ("a resize", "no room", "a resize that waits for room", "several wait for room")
"""Those that fill the node, or show each step of a kubelet that is not busy."""
