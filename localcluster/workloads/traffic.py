"""HTTP requests to the pods of a real node, spread over those that are ready as a Service does, and how long each took.
The program `traffic` (in `localcluster/programs/modules/node`) sends and measures; here is whom it may send to."""

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
"""After this a request has failed."""
QUIET_SECONDS = 5
"""So many in a row without slow requests are an end of them."""


@dataclass(frozen=True, slots=True)
class Answers:
    """The requests that began in some seconds: how many failed, and the milliseconds of all others."""

    failed: int = 0
    milliseconds: tuple[float, ...] = ()

    @property
    def sent(self) -> int:
        """How many there were."""
        return self.failed + len(self.milliseconds)

    def percentile(self, percent: float) -> float | None:
        """So many percent of the requests took so many milliseconds at most. Infinite if fewer were answered, None
        without requests."""
        if not self.sent:
            return None
        place = max(1, math.ceil(self.sent * percent / 100))
        ordered = sorted(self.milliseconds)
        return ordered[place - 1] if place <= len(ordered) else math.inf


def is_slow(answers: Answers, goal: float) -> bool:
    """Whether more than one in a hundred of these requests took more than so many milliseconds, or failed."""
    slow = answers.percentile(99)
    return slow is not None and slow > goal


def recovered(answers: Mapping[int, Answers], begin: float, end: float, goal: float) -> int | None:
    """The second of a stretch from which on so many in a row (`QUIET_SECONDS`) are not slow, the first time after one
    was; `begin` if none ever was, None if that does not come."""
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
        sum(one.failed for one in seconds), tuple(took for one in seconds for took in one.milliseconds)
    )


def read(text: str) -> dict[int, Answers]:
    """What the program has printed: seconds of the clock, each with its requests. A line that is not whole yet is left
    out."""
    lines = [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]
    return {
        one["second"]: Answers(one["failed"], tuple(one["milliseconds"] or ()))
        for one in lines
        if isinstance(one, dict)
    }


def addresses(pods: Sequence[Json], port: int) -> list[str]:
    """Of the pods that are ready."""
    return sorted(f"{pod['status']['podIP']}:{port}" for pod in pods if is_ready(pod))


@dataclass(slots=True)
class Traffic:
    """Requests to the pods of a label selector, `rate` per second. A context manager: it runs in a thread and a process
    of its own; `error` is why it could not go on. `folder` takes its files."""

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
