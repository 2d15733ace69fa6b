"""Statuses that change all the time, and what the audit log says was made of them: each recommendation, once."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from types import TracebackType

from localcluster.client.api import ApiError
from localcluster.client.audit import Audit, Mark
from localcluster.workloads.scenario import Scenario

LOOK = 0.05
"""Seconds between two looks at what was applied."""
LEAST, MOST = 3, 9
"""Counts that are recommended. (Two pods of a scenario stay ready, and a measurement that fits two asks for none.)"""


class Steps:
    """Has the HPA of each scenario recommend another count as soon as the last one was applied, in the background, from
    `with` on until its end."""

    def __init__(self, scenarios: list[Scenario]) -> None:
        """The scenarios have two replicas."""
        self._scenarios = scenarios
        self._counts = {scenario.name: _counts() for scenario in scenarios}
        self.wanted: dict[str, list[int]] = {scenario.name: [] for scenario in scenarios}
        """What was recommended, in order, by scenario."""
        self.longest = 0.0
        """Seconds that a recommendation waited until it was applied, at the most."""
        self._since: dict[str, float] = {}
        self._ending = threading.Event()
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="steps", daemon=True)

    def __enter__(self) -> Steps:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ending.set()
        if kind is not None:
            self._since.clear()  # what was not applied is not waited for
        self._thread.join(120)
        if kind is None and self._failure is not None:
            raise self._failure

    @property
    def count(self) -> int:
        """Recommendations so far."""
        return sum(map(len, self.wanted.values()))

    def go_on(self, steps: int) -> bool:
        """Wait until so many more recommendations of each scenario were applied; True, for `assert`."""
        goals = {name: len(wanted) + steps + 1 for name, wanted in self.wanted.items()}
        deadline = time.monotonic() + 120
        while any(len(self.wanted[name]) < goal for name, goal in goals.items()):
            assert self._thread.is_alive(), self._failure
            assert time.monotonic() < deadline, f"recommended and not applied: {self._since}"
            time.sleep(LOOK)
        return True

    def _run(self) -> None:
        try:
            for scenario in self._scenarios:
                self._recommend(scenario)
            while self._since:
                for scenario in [candidate for candidate in self._scenarios if candidate.name in self._since]:
                    self._look(scenario)
                time.sleep(LOOK)
        except Exception as error:  # reported by `go_on` and at the end
            self._failure = error

    def _look(self, scenario: Scenario) -> None:
        try:
            applied = scenario.replicas == self.wanted[scenario.name][-1]
        except (OSError, ApiError):
            return
        if applied:
            now = time.monotonic()
            self.longest = max(self.longest, now - self._since.pop(scenario.name, now))
            if not self._ending.is_set():
                self._recommend(scenario)

    def _recommend(self, scenario: Scenario) -> None:
        count = next(self._counts[scenario.name])
        self.wanted[scenario.name].append(count)
        self._since[scenario.name] = time.monotonic()
        scenario.hpa_wants(count)


def _counts() -> Iterator[int]:
    yield LEAST
    while True:
        yield from range(LEAST + 1, MOST + 1)
        yield from range(MOST - 1, LEAST - 1, -1)


def applied(audit: Audit, namespace: str, since: Mark) -> dict[str, list[int]]:
    """The counts that Deployments of a namespace were set to, in order, by name."""
    counts: dict[str, list[int]] = {}
    for request in audit.requests(since, resource="deployments", namespace=namespace, writes=True):
        replicas = ((request.body or {}).get("spec") or {}).get("replicas")
        if (
            request.verb == "patch"
            and not request.subresource
            and request.code < 300
            and replicas is not None
        ):
            counts.setdefault(request.name, []).append(int(replicas))
    return counts
