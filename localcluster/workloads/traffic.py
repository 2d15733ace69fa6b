"""HTTP requests to the pods of a real node, distributed among the ready pods as by a Service, and their latencies. The
program `traffic` (in `localcluster/programs/modules/node`) sends and measures; this module gives it the addresses."""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from localcluster.client.api import ApiError, Json, KubeApi
from localcluster.process import Process
from localcluster.workloads.load import is_ready

_PERIOD_SECONDS = 0.5
TIMEOUT_SECONDS = 2.0
"""Seconds after which a request has failed."""
REQUEST_CPU = 5.0
"""Millicores of a request per second, as in the manifests of the demo and the tutorial (`web -cpu=5ms`)."""
QUIET_SECONDS = 5
"""Number of consecutive seconds without slow requests that counts as recovery."""


@dataclass(frozen=True, slots=True)
class Answers:
    """The requests that began in some seconds: the number of failures, and the milliseconds of all others."""

    failed: int = 0
    milliseconds: tuple[float, ...] = ()

    @property
    def sent(self) -> int:
        """Their number."""
        return self.failed + len(self.milliseconds)

    def percentile(self, percent: float) -> float | None:
        """The percentile of the latencies in milliseconds. Infinite if fewer requests were answered, None without
        requests."""
        if not self.sent:
            return None
        place = max(1, math.ceil(self.sent * percent / 100))
        ordered = sorted(self.milliseconds)
        return ordered[place - 1] if place <= len(ordered) else math.inf

    @property
    def line(self) -> str:
        """A line for a reader: `400 requests, 2 failed; P50 6 ms, P99 31 ms`."""
        middle, slow = (milliseconds(self.percentile(percent)) for percent in (50, 99))
        return f"{self.sent} requests, {self.failed} failed; P50 {middle}, P99 {slow}"


def milliseconds(value: float | None) -> str:
    """`5 ms`; `failed` if too many requests failed, `-` without requests."""
    if value is None:
        return "-"
    return "failed" if math.isinf(value) else f"{value:.0f} ms"


def is_slow(answers: Answers, goal: float) -> bool:
    """Whether more than one in a hundred of these requests took more than `goal` milliseconds, or failed."""
    slow = answers.percentile(99)
    return slow is not None and slow > goal


def recovered(answers: Mapping[int, Answers], begin: float, end: float, goal: float) -> int | None:
    """The first second of a period that begins a sequence of `QUIET_SECONDS` seconds that are not slow, after a slow
    second; `begin` if no second was slow, None if there is no such sequence."""
    seconds = [second for second in sorted(answers) if begin <= second < end]
    slow = next((second for second in seconds if is_slow(answers[second], goal)), None)
    if slow is None:
        return math.ceil(begin)
    quiet = 0
    for place, second in enumerate(seconds):
        if second > slow:
            quiet = 0 if is_slow(answers[second], goal) else quiet + 1
            if quiet == QUIET_SECONDS:
                return seconds[place - QUIET_SECONDS + 1]
    return None


def together(seconds: Sequence[Answers]) -> Answers:
    """The requests of several seconds."""
    return Answers(
        sum(answers.failed for answers in seconds),
        tuple(took for answers in seconds for took in answers.milliseconds),
    )


def read(text: str) -> dict[int, Answers]:
    """The output of the program: seconds of the clock, each with its requests. An incomplete line is omitted."""
    lines = [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]
    return {
        entry["second"]: Answers(entry["failed"], tuple(entry["milliseconds"] or ()))
        for entry in lines
        if isinstance(entry, dict)
    }


def addresses(pods: Sequence[Json], port: int) -> list[str]:
    """The addresses of the ready pods."""
    return sorted(f"{pod['status']['podIP']}:{port}" for pod in pods if is_ready(pod))


def port_of(pods: Sequence[Json]) -> int | None:
    """The first container port of these pods, None if they have none."""
    ports = [
        port["containerPort"]
        for pod in pods
        for container in pod["spec"]["containers"]
        for port in container.get("ports", ())
    ]
    return ports[0] if ports else None


@dataclass(slots=True)
class Traffic:
    """Requests to the pods of a label selector, `rate` per second. A context manager: it runs in its own thread and
    process; `error` is the reason that it stopped. `folder` takes its files."""

    api: KubeApi
    namespace: str
    selector: str
    port: int
    program: Path
    folder: Path
    rate: Callable[[], float]
    error: Exception | None = field(default=None, init=False)
    _process: Process = field(init=False)
    _plan: Path = field(init=False)
    _stop: threading.Event = field(default_factory=threading.Event, init=False)
    _thread: threading.Thread = field(init=False)

    def __post_init__(self) -> None:
        """Nothing is sent yet."""
        name = f"traffic-{self.namespace}"
        self._plan = self.folder / f"{name}.json"
        argv: list[str | Path] = [self.program, "-plan", self._plan, "-timeout", f"{TIMEOUT_SECONDS}s"]
        self._process = Process("traffic", argv, self.folder / f"{name}.log")
        self._thread = threading.Thread(target=self._run, name="traffic", daemon=True)

    def __enter__(self) -> Traffic:
        self._direct()
        self._process.start()
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stop.set()
        self._thread.join(10)
        self._process.kill()

    def answers(self) -> dict[int, Answers]:
        """All seconds that are over and whose requests have ended."""
        return read(self._process.log.read_text())

    def _direct(self) -> None:
        pods = self.api.list("Pod", self.namespace, self.selector)
        plan = {"rate": self.rate(), "addresses": addresses(pods, self.port)}
        temporary = self._plan.with_suffix(".tmp")
        temporary.write_text(json.dumps(plan))
        temporary.replace(self._plan)

    def _run(self) -> None:
        failures = 0
        while not self._stop.wait(_PERIOD_SECONDS):
            try:
                self._direct()
                failures = 0
            except (ApiError, OSError) as error:
                failures += 1
                self.error = error if failures > 30 else self.error
            if not self._process.alive:
                self.error = RuntimeError(
                    f"traffic ended with {self._process.returncode}: {self._process.tail(3)}"
                )
                return
