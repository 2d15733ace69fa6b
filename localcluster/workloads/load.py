"""Realistic load: a total for a workload, shared by the ready pods. More pods mean less load for each, which
autoscalers depend on."""

from __future__ import annotations

import fcntl
import hashlib
import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from localcluster.client.api import ApiError, Json, KubeApi, wait_for
from localcluster.controlplane.manifests import CPU_ANNOTATION, MEMORY_ANNOTATION, USAGE_ANNOTATION

# A smaller change of a pod's usage is not written: it would be lost in an HPA's tolerance and a VPA's buckets.
_MEANINGFUL = 0.005
_PERIOD_SECONDS = 1.0

Total = float | Callable[[float], float]
"""A number, or a function of the seconds since the load began."""


@dataclass(frozen=True, slots=True)
class Delayed:
    """A kubelet's report of a container's CPU: the mean of a `window`, as it was `delay` seconds ago. With a window of
    15 and a delay of 10, it reports a third of a usage that begins now after 15 seconds, and the whole after 25."""

    delay: float
    window: float


@dataclass(slots=True)
class Course:
    """The usage of a container: `before` until the first entry of `steps`, which are times with the usage from then
    on."""

    before: float
    steps: list[tuple[float, float]] = field(default_factory=list)

    def add(self, now: float, usage: float) -> None:
        """Set the usage from now on."""
        self.steps.append((now, usage))

    def mean(self, now: float, how: Delayed) -> float:
        """The mean of the window; forgets older usage."""
        end = now - how.delay
        begin = end - how.window
        while len(self.steps) > 1 and self.steps[1][0] <= begin:
            del self.steps[0]
        first = self.steps[0][0] if self.steps else end
        total = self.before * max(0.0, min(first, end) - begin)
        ends = [at for at, _ in self.steps[1:]] + [math.inf]
        for (at, usage), until in zip(self.steps, ends, strict=True):
            total += usage * max(0.0, min(until, end) - max(at, begin))
        return total / how.window


@dataclass(slots=True)
class PodShare:
    """The share of each ready pod in the last distribution."""

    cpu: int = 0
    """Millicores per pod."""
    memory: int = 0
    """Bytes per pod."""
    pods: int = 0
    total_cpu: float = 0
    """Millicores that arrived."""


@dataclass(slots=True)
class PodLoad:
    """The total load on the pods of a label selector. `cpu` (millicores) and `memory` (bytes) are totals and may be set
    while it runs; each pod uses its share, plus `base_cpu` and `base_memory` independent of the load. Usage above
    `most_cpu` per pod (its node's headroom, or its limit; a number, or a function of the pod) is lost. With `delayed`
    the CPU is reported late; a pod used `base_cpu` before it was ready. The annotations are written for `container` if
    it is set, otherwise for every container of the pod. Containers of real nodes use their share if they run the
    program `load` (examples/first-day/shop.yaml).

    Use it as a context manager: it runs in its own thread, and `error` is the reason that it stopped.
    """

    api: KubeApi
    namespace: str
    selector: str
    cpu: Total = 0.0
    memory: Total = 0.0
    base_cpu: float = 0.0
    base_memory: float = 16 * 2**20
    most_cpu: float | Callable[[Json], float] = math.inf
    container: str = ""
    delayed: Delayed | None = None
    keeps_memory: bool = False
    """All pods share the memory, ready or not: a restarted container holds the same memory as before."""
    usage: PodShare = field(default_factory=PodShare, init=False)
    error: Exception | None = field(default=None, init=False)
    _written: dict[str, tuple[int, int]] = field(default_factory=dict, init=False)
    _courses: dict[str, Course] = field(default_factory=dict, init=False)
    _stop: threading.Event = field(default_factory=threading.Event, init=False)
    _thread: threading.Thread | None = field(default=None, init=False)
    _started: float = field(default=0.0, init=False)

    def __enter__(self) -> PodLoad:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def start(self) -> None:
        """Begin to distribute the load; the first distribution is done when this returns."""
        self._started = time.monotonic()
        self.share_out()
        self._thread = threading.Thread(
            target=self._run, name=f"load {self.namespace}/{self.selector}", daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        """End the thread; the pods keep their usage."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(10)

    @property
    def seconds(self) -> float:
        """Seconds since the load began."""
        return time.monotonic() - self._started

    def share_out(self) -> PodShare:
        """Write each ready pod's share of the present total."""
        listed = self.api.list("Pod", self.namespace, self.selector)
        pods = [pod for pod in listed if is_ready(pod)]
        cpu, memory = self._now(self.cpu), self._now(self.memory)
        count = max(1, len(pods))
        # At least 1: metrics-server drops pods that use nothing.
        holders = sum("deletionTimestamp" not in pod["metadata"] for pod in listed)
        each = max(1, round(self.base_memory + memory / max(1, holders if self.keeps_memory else count)))
        share = 1
        for pod in pods:
            share = max(1, round(self._reported(pod, self.base_cpu + cpu / count)))
            self._write(pod, (share, each))
        uids = {pod["metadata"]["uid"] for pod in pods}
        self._written = {uid: written for uid, written in self._written.items() if uid in uids}
        self._courses = {uid: course for uid, course in self._courses.items() if uid in uids}
        self.usage = PodShare(share, each, len(pods), cpu)
        return self.usage

    def _reported(self, pod: Json, wanted: float) -> float:
        """The reported usage of a pod that would use `wanted` millicores."""
        used = min(wanted, self.most_cpu(pod) if callable(self.most_cpu) else self.most_cpu)
        if self.delayed is None:
            return used
        course = self._courses.setdefault(pod["metadata"]["uid"], Course(self.base_cpu))
        course.add(self.seconds, used)
        return course.mean(self.seconds, self.delayed)

    def _now(self, total: Total) -> float:
        return total(self.seconds) if callable(total) else total

    def _write(self, pod: Json, share: tuple[int, int]) -> None:
        uid = pod["metadata"]["uid"]
        old = self._written.get(uid)
        if old and all(abs(new - was) <= _MEANINGFUL * was for new, was in zip(share, old, strict=True)):
            return
        suffix = f".{self.container}" if self.container else ""
        annotations = {
            f"{CPU_ANNOTATION}{suffix}": f"{share[0]}m",
            f"{MEMORY_ANNOTATION}{suffix}": str(share[1]),
            USAGE_ANNOTATION: f"cpu={share[0]} memory={round(share[1] / 2**20)}",
        }
        body = {"metadata": {"annotations": annotations}}
        try:
            self.api.patch("Pod", pod["metadata"]["name"], self.namespace, body, manager="load")
        except ApiError as error:
            if error.status != 404:  # deleted in the meantime
                raise
        self._written[uid] = share

    def _run(self) -> None:
        failures = 0
        while not self._stop.wait(_PERIOD_SECONDS):
            try:
                self.share_out()
                failures = 0
            except (ApiError, OSError) as error:
                # The API server may be away for a while: tests restart it.
                failures += 1
                self.error = error if failures > 30 else self.error


@contextmanager
def alone(folder: Path, namespace: str, selector: str) -> Iterator[None]:
    """For the time of a manual load. Raises RuntimeError if another process distributes a load to these pods: each
    would overwrite the values of the other. The lock is a file in `folder`, and ends with its process."""
    name = hashlib.sha256(f"{namespace}/{selector}".encode()).hexdigest()[:16]
    with (folder / f"load-{name}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RuntimeError(
                f"another process shares out a load to the pods {selector} of namespace {namespace} already: end it"
                " first (Ctrl-C)"
            ) from None
        yield


def await_pods(api: KubeApi, namespace: str, name: str) -> None:
    """Wait until all pods of a Deployment are ready. If the load began before, the first pods would be measured with
    all of it."""

    def ready() -> bool:
        deployment = api.get("Deployment", name, namespace)
        return bool(deployment["status"]["readyReplicas"] >= deployment["spec"]["replicas"])

    wait_for(ready, 60, f"the pods of the Deployment {namespace}/{name}")


def is_ready(pod: Json) -> bool:
    """Whether a Service would send it requests."""
    if "deletionTimestamp" in pod["metadata"]:
        return False
    conditions = pod.get("status", {}).get("conditions", [])
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)
