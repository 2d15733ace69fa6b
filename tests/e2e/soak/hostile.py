"""A hostile tenant and a stranger among the faults of a soak.

The tenant may write Hvpas in one namespace, and writes the most expensive and the oddest specs that the API server
accepts, again and again. A custom kind that some of its Hvpas target comes and goes. The stranger has no credential:
it reaches the ports of the operators and of the dashboard, and keeps idle and slow connections open; a user of the
dashboard opens streams (`dashboard`). The honest Hvpas must still be served, each operator must answer its probes, and
the dashboard its other user.
"""

from __future__ import annotations

import contextlib
import itertools
import random
import resource
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Final, Protocol

from localcluster.client.api import ApiError, Json, KubeApi, wait_for
from localcluster.workloads.bare_manifests import (
    ROLLOUTS,
    ago,
    condition,
    deployment,
    entry,
    hvpa,
    merged,
    trajectory,
)
from tests.e2e.soak.dashboard import Dashboard, Streams
from tests.e2e.soak.objects import Place
from tests.e2e.soak.replicas import Replica

SPACE: Final = "soak-hostile"
HVPAS: Final = 40
CONTAINERS: Final = 100
"""Containers of the pods of each workload."""
CHANGES: Final = 4
"""Hvpas that the tenant changes in one round."""
ROUND: Final = 0.5
"""Seconds between two rounds of the tenant, and of the stranger."""
IDLE: Final = 150
"""Connections that the stranger keeps open at each port: more than the operator ever served at once."""
OPENED: Final = 50
"""Connections that the stranger opens at a port in one round, at most."""
MOST_FILES: Final = 4096
"""Open files that this process may need: the connections of three operators and the dashboard, and its own."""
KIND_EVERY: Final = 20.0
"""Seconds between the deletion and the next creation of the custom kind."""
PROBED_EVERY: Final = 1.0
"""Seconds between two probes of an operator, and of the dashboard."""
UNANSWERED: Final = 3
"""Probes in a row without an answer (each waits five seconds, as a kubelet does) that count as an outage."""
_CRD: Final = "CustomResourceDefinition"
_HVPA_CRD: Final = "hvpas.autoscaling.k8s.io"
_BAD_VERSIONS: Final = (
    "argoproj.io/v1alpha1?x0=",
    "apps/v1/../v1",
    "apps/v1#",
    "apps/v1\x00",
    "../../api/v1",
    "apps/v1%2f",
)
_BAD_NAMES: Final = ("../../../kube-system", "app?watch=true", "app\x1b[2J", "app\r\nx: y", "app/scale", "ä")


class Probed(Protocol):
    """An operator, or the dashboard."""

    @property
    def process(self) -> str:
        """Its name."""

    def addresses(self) -> list[str]:
        """The ports that it listens at."""

    def probe(self) -> bool | None:
        """Whether it answers; None if that can't be judged now."""


class Tenant:
    """Writes Hvpas that cost the operator as much as possible, in a namespace of its own."""

    def __init__(self, api: KubeApi, seed: int) -> None:
        self.places: frozenset[Place] = frozenset((SPACE, _name(number)) for number in range(HVPAS))
        self.done: Counter[str] = Counter()
        """Writes that the API server accepted or refused, by form."""
        self._api = api
        self._rng = random.Random(f"{seed}/hostile")
        self._windows = self._floors = 1
        self._kind_due = 0.0
        self._is_kind_there = False

    def create(self) -> None:
        """Make the namespace, the workloads and all Hvpas. Raises ApiError and OSError."""
        self._api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SPACE}})
        self._windows, self._floors = self._most("maintenanceWindows"), self._most("hpa", "schedule")
        for number in range(HVPAS):
            self._api.create(_workload(_name(number)))
            self._attempt("create", lambda number=number: self._api.create(self._hvpa(number)))  # type: ignore[misc]

    def round(self) -> None:
        """Change some Hvpas, offer the API server some that it should refuse, and let the custom kind come or go."""
        for number in self._rng.sample(range(HVPAS), CHANGES):
            spec = self._hvpa(number)["spec"]
            self._attempt("change", lambda n=number, s=spec: self._patch(n, s))  # type: ignore[misc]
        self._attempt("odd text", self._odd_text)
        self._attempt("recommendation", self._recommend)
        if time.monotonic() >= self._kind_due:
            self._kind_due = time.monotonic() + KIND_EVERY
            self._attempt("custom kind", self._toggle_kind)

    def end(self) -> None:
        """Delete the custom kind, so that all its Hvpas end the same way."""
        if self._is_kind_there:
            self._attempt("custom kind", self._toggle_kind)

    def _attempt(self, form: str, write: Callable[[], object]) -> None:
        try:
            write()
            self.done[f"{form} accepted"] += 1
        except ApiError as error:
            self.done[f"{form} {'refused' if error.status < 500 else 'failed'}"] += 1
        except (OSError, TimeoutError):
            self.done[f"{form} failed"] += 1

    def _most(self, *path: str) -> int:
        """How many items the installed CRD accepts in a list of the spec."""
        crd = self._api.get(_CRD, _HVPA_CRD)
        schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
        for part in path:
            schema = schema["properties"][part]
        return int(schema["maxItems"])

    def _hvpa(self, number: int) -> Json:
        """An Hvpa of the form that falls to its number, with other texts each time."""
        forms = (self._windows_that_never_open, self._rare_windows, self._large, self._custom)
        return forms[number % len(forms)](_name(number))

    def _windows_that_never_open(self, name: str) -> Json:
        return self._bomb(name, "31 2,4,6,9,11 *")

    def _rare_windows(self, name: str) -> Json:
        return self._bomb(name, "29 2 *")

    def _bomb(self, name: str, day: str) -> Json:
        times = [
            f"{self._rng.randrange(60)} {self._rng.randrange(24)} {day}"
            for _ in range(self._windows + self._floors)
        ]
        windows = [{"schedule": time, "duration": "1h"} for time in times[: self._windows]]
        floors = [{"schedule": time, "duration": "1h", "minReplicas": 2} for time in times[self._windows :]]
        mode = {"updatePolicy": {"updateMode": "MaintenanceWindow"}}
        changes = {"maintenanceWindows": windows, "hpa": {"schedule": floors, "scaleUp": mode}}
        return hvpa(name, SPACE, changes)

    def _large(self, name: str) -> Json:
        policies = [
            {
                "containerName": f"c{number}",
                "minAllowed": {"cpu": f"{self._rng.randrange(1, 99)}m", "memory": "10Mi"},
            }
            for number in range(CONTAINERS)
        ]
        vpa = {"vpa": {"template": {"spec": {"resourcePolicy": {"containerPolicies": policies}}}}}
        return hvpa(name, SPACE, merged(trajectory(most=100), vpa))

    def _custom(self, name: str) -> Json:
        version = self._rng.choice(("v1alpha1", "v1beta1", "v1"))
        target = {
            "apiVersion": f"argoproj.io/{version}",
            "kind": "Rollout",
            "name": f"app-{self._rng.randrange(3)}",
        }
        return hvpa(name, SPACE, {"targetRef": target})

    def _patch(self, number: int, spec: Json) -> None:
        self._api.patch("Hvpa", _name(number), SPACE, {"spec": spec})

    def _odd_text(self) -> None:
        """A target whose texts would lead a URL elsewhere."""
        target = {
            "apiVersion": self._rng.choice((*_BAD_VERSIONS, "argoproj.io/v1alpha1")),
            "kind": self._rng.choice(("Rollout", "Deployment", "Deployment?limit=0", "../pods")),
            "name": self._rng.choice((*_BAD_NAMES, "app-0")),
        }
        self._patch(self._rng.randrange(HVPAS), {"targetRef": target})

    def _recommend(self) -> None:
        """A recommendation for each container, into a VPA that the operator made for the tenant."""
        containers = [
            entry(
                f"c{number}",
                {"cpu": f"{self._rng.randrange(1, 9000)}m", "memory": f"{self._rng.randrange(1, 9000)}Mi"},
            )
            for number in range(CONTAINERS)
        ]
        provided = condition("RecommendationProvided", "True", "", ago(hours=2))
        status = {"conditions": [provided], "recommendation": {"containerRecommendations": containers}}
        self._api.patch_status("VerticalPodAutoscaler", _name(self._rng.randrange(HVPAS)), SPACE, status)

    def _toggle_kind(self) -> None:
        """Delete the custom kind if it is there, else make it and the workloads."""
        if self._is_kind_there:
            self._api.delete(_CRD, "rollouts.argoproj.io")
            self._is_kind_there = False
            return
        self._api.create(ROLLOUTS)
        self._is_kind_there = True
        wait_for(lambda: self._api.raw("GET", "/apis/argoproj.io/v1alpha1"), 10, "the custom kind")
        for number in range(3):
            manifest = deployment(f"app-{number}", SPACE)
            manifest |= {"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout"}
            manifest["status"] = {"replicas": 2, "selector": f"app=app-{number}"}
            self._api.create(manifest)


class Stranger:
    """Keeps connections open at each port: half of them idle, half of them slow to send a request."""

    def __init__(self, probed: Sequence[Probed]) -> None:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, MOST_FILES)), hard))
        self._probed = probed
        self._open: dict[str, list[socket.socket]] = {}
        self.opened = 0
        self.closed = 0
        """Connections that the other side closed."""

    def round(self) -> None:
        """Open further connections, send one more byte on the slow ones, and drop those that were closed."""
        addresses = [address for target in self._probed for address in target.addresses()]
        for address in self._open.keys() - set(addresses):
            _close(self._open.pop(address))
        for address in addresses:
            live = [line for line in self._open.get(address, []) if self._is_live(line)]
            wanted = min(OPENED, IDLE - len(live))
            self._open[address] = [*live, *itertools.islice(self._connections(address), wanted)]

    def end(self) -> None:
        """Close all connections."""
        for lines in self._open.values():
            _close(lines)
        self._open.clear()

    def _connections(self, address: str) -> Iterator[socket.socket]:
        host, _, port = address.rpartition(":")
        while True:
            line = socket.socket()
            line.setblocking(False)
            line.connect_ex((host, int(port)))
            self.opened += 1
            yield line

    def _is_live(self, line: socket.socket) -> bool:
        try:
            if line.fileno() % 2:
                line.send(b"G")
            is_live = line.recv(1) != b""
        except BlockingIOError:
            return True
        except OSError:
            is_live = False
        if not is_live:
            line.close()
            self.closed += 1
        return is_live


class Prober:
    """Probes each operator as a kubelet does, and the dashboard as a user, and counts the probes that nobody
    answered."""

    def __init__(self, probed: Sequence[Probed]) -> None:
        self._probed = probed
        self._in_a_row: Counter[str] = Counter()
        self.answered = 0
        self.unanswered = 0
        self.outages: list[str] = []

    def round(self) -> None:
        """Probe each that is started and not stopped."""
        for target in self._probed:
            process, is_answered = target.process, target.probe()
            if is_answered is None:
                self._in_a_row[process] = 0
            elif is_answered:
                self.answered += 1
                self._in_a_row[process] = 0
            else:
                self.unanswered += 1
                self._in_a_row[process] += 1
                if self._in_a_row[process] == UNANSWERED:
                    self.outages.append(f"{process} left {UNANSWERED} probes in a row unanswered")


class Hostile:
    """Tenant, stranger, streams and two probers, each in a thread of its own, from `begin` to `end`."""

    def __init__(self, api: KubeApi, replicas: list[Replica], dashboard: Dashboard, seed: int) -> None:
        self.tenant, self.stranger = Tenant(api, seed), Stranger([*replicas, dashboard])
        self.streams = Streams(dashboard, sorted(self.tenant.places))
        self.prober, self.user = Prober(replicas), Prober([dashboard])
        self._dashboard = dashboard
        self._over = threading.Event()
        self._failures: list[str] = []
        work = (
            *((actor.round, ROUND) for actor in (self.tenant, self.stranger, self.streams)),
            *((prober.round, PROBED_EVERY) for prober in (self.prober, self.user)),
        )
        self._threads = [threading.Thread(target=self._repeat, args=part, name="hostile") for part in work]

    def begin(self) -> None:
        """Start them all."""
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        """Stop them all; the connections are closed then."""
        self._over.set()
        for thread in self._threads:
            if thread.ident is not None:
                thread.join()
        self.stranger.end()
        self.streams.end()
        self.tenant.end()

    def problems(self) -> list[str]:
        """Outages that the probers noticed, and how a thread failed."""
        outages = self.prober.outages + self.user.outages
        return outages + self._failures + self.streams.problems()

    def facts(self) -> Json:
        """Figures for the report."""
        return {
            "writes": dict(sorted(self.tenant.done.items())),
            "connections": {"opened": self.stranger.opened, "closed by the other side": self.stranger.closed},
            "streams": dict(sorted(self.streams.done.items())),
            "probes": {"answered": self.prober.answered, "unanswered": self.prober.unanswered},
            "pages": dict(sorted(self._dashboard.answers.items())),
        }

    def _repeat(self, work: Callable[[], None], seconds: float) -> None:
        try:
            while not self._over.wait(seconds):
                work()
        except Exception as error:
            self._failures.append(f"the hostile part of the soak failed: {type(error).__name__}: {error}")


def _name(number: int) -> str:
    return f"app-{number}"


def _workload(name: str) -> Json:
    """A Deployment whose pods have many containers."""
    made = deployment(name, SPACE)
    containers = made["spec"]["template"]["spec"]["containers"]
    made["spec"]["template"]["spec"]["containers"] = [
        merged(containers[0], {"name": f"c{number}"}) for number in range(CONTAINERS)
    ]
    return made


def _close(lines: list[socket.socket]) -> None:
    for line in lines:
        with contextlib.suppress(OSError):
            line.close()
