"""The controllers and users of a soak, level-triggered: each round looks at the objects and brings them on."""

from __future__ import annotations

import contextlib
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor

from localcluster.client.api import ApiError, Json, KubeApi
from tests.e2e.soak.objects import CPU, Place, Role, hpa_status, vpa_status, workload_status
from tests.e2e.soak.plan import Act, delay_of

HPA, VPA = "HorizontalPodAutoscaler", "VerticalPodAutoscaler"
ROLLOUT, GARBAGE = 6.0, 4.0
"""Seconds that a rollout takes at most, and that what an Hvpa owned outlives it at most."""
CLIENTS = 6
"""Requests at once."""
PERSISTENCE = 60.0
"""Seconds for which what a user does is tried again."""


class Controllers:
    """The HPA and VPA controllers, the workloads' controllers, the garbage collector, and users."""

    def __init__(self, api: KubeApi, seed: int, roles: list[Role]) -> None:
        self._api = api
        self._seed = seed
        self._roles = {(role.namespace, role.name): role for role in roles}
        self._by_number = {role.number: role for role in roles}
        self.desired: dict[Place, int] = {}
        self.targets: dict[Place, int] = {}
        self.recommended: dict[tuple[Place, str], dict[int, float]] = defaultdict(dict)
        """All that was recommended for an Hvpa's axis so far (`replicas`, `target`), and when first (seconds of the
        epoch)."""
        self._due: dict[str, float] = {}
        self._later: list[tuple[float, Callable[[], object]]] = []
        self._workers = ThreadPoolExecutor(CLIENTS)

    def close(self) -> None:
        """End the workers."""
        self._workers.shutdown(cancel_futures=True)

    def create(self) -> None:
        """Make all namespaces, workloads and Hvpas."""
        for space in sorted({role.namespace for role in self._roles.values()}):
            self._api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": space}})
        for part in (self._make_workload, self._make_hvpa):
            list(self._workers.map(part, self._roles.values()))

    # --- what is scheduled -------------------------------------------------------------------------------------------
    def act(self, act: Act) -> None:
        """A recommendation, or what a user does."""
        role = self._by_number[act.who]
        place = (role.namespace, role.name)
        match act.kind:
            case "replicas" | "target":
                (self.desired if act.kind == "replicas" else self.targets)[place] = act.number
                self.recommended[place, act.kind].setdefault(act.number, time.time())
            case "edit":
                self._edit(role, {"template": _container({"image": f"app:{act.at:.2f}"})})
            case "set":
                requests = {"cpu": f"{CPU + act.number}m"}
                self._edit(
                    role,
                    {"replicas": act.number, "template": _container({"resources": {"requests": requests}})},
                )
            case "workload":
                self._persist(lambda: self._api.delete(role.kind, role.name, role.namespace))
                self._after(act.lasts, lambda: self._make_workload(role))
            case "hvpa":
                self._persist(lambda: self._api.delete("Hvpa", role.name, role.namespace))
                self._after(act.lasts, lambda: self._make_hvpa(role))

    def _edit(self, role: Role, spec: Json) -> None:
        def patch() -> None:
            body = {"spec": spec}
            self._api.patch(
                role.kind, role.name, role.namespace, body, type="strategic", manager="another-client"
            )

        self._persist(patch)

    def _make_workload(self, role: Role) -> None:
        self._persist(lambda: self._api.create(role.workload()))

    def _make_hvpa(self, role: Role) -> None:
        self._persist(lambda: self._api.create(role.hvpa()))

    def _after(self, seconds: float, work: Callable[[], object]) -> None:
        self._later.append((time.monotonic() + seconds, work))

    def _persist(self, work: Callable[[], object]) -> None:
        """Do it, and again while the API server is away. What is there already, or not there, is left so."""
        deadline = time.monotonic() + PERSISTENCE
        while True:
            try:
                work()
                return
            except ApiError as error:
                if error.status in (404, 409):
                    return
                problem: Exception = error
            except OSError as error:
                problem = error
            if time.monotonic() > deadline:
                raise TimeoutError(f"not in {PERSISTENCE:g} s: {problem}") from problem
            time.sleep(0.2)

    # --- what controllers do -----------------------------------------------------------------------------------------
    @property
    def is_done(self) -> bool:
        """Whether nothing that users began is still to come."""
        return not self._later

    def round(self) -> None:
        """Look at everything, and do what is due. Where the API server is away, or another client was quicker, the
        next round does it."""
        ready = [work for at, work in self._later if at <= time.monotonic()]
        self._later = [(at, work) for at, work in self._later if at > time.monotonic()]
        for begun in ready:
            begun()
        with contextlib.suppress(ApiError, OSError):
            work = [*self._workloads(), *self._recommenders()]
            list(self._workers.map(_attempt, work))

    def _is_due(self, what: str, longest: float) -> bool:
        """Whether its random delay is over; counted from when it is first asked for."""
        due = self._due.setdefault(what, time.monotonic() + delay_of(self._seed, what, longest))
        if time.monotonic() < due:
            return False
        del self._due[what]
        return True

    def _workloads(self) -> Iterable[Callable[[], object]]:
        for kind in ("Deployment", "StatefulSet"):
            for workload in self._api.list(kind):
                wanted, name, space = (
                    workload_status(workload),
                    workload["metadata"]["name"],
                    workload["metadata"]["namespace"],
                )
                if wanted.items() <= workload.get("status", {}).items():
                    continue
                if self._is_due(f"{space}/{name}/{workload['metadata']['generation']}", ROLLOUT):
                    yield _status_writer(self._api, kind, name, space, wanted)

    def _recommenders(self) -> Iterable[Callable[[], object]]:
        hvpas = {hvpa["metadata"]["uid"]: hvpa for hvpa in self._api.list("Hvpa")}
        for kind, recommended, status in ((HPA, self.desired, hpa_status), (VPA, self.targets, vpa_status)):
            for recommender in self._api.list(kind):
                meta = recommender["metadata"]
                uid = next((owner["uid"] for owner in meta.get("ownerReferences", [])), "")
                place = (meta["namespace"], hvpas[uid]["metadata"]["name"]) if uid in hvpas else None
                if place is None:
                    if self._is_due(f"{meta['uid']} goes", GARBAGE):
                        yield _deleter(self._api, kind, meta["name"], meta["namespace"])
                    continue
                if place not in recommended:
                    continue
                due = status(recommended[place])
                if not _has(recommender, due):
                    yield _status_writer(self._api, kind, meta["name"], meta["namespace"], due)
                if kind == HPA and hvpas[uid]["spec"].get("replicas") != recommended[place]:
                    yield _scaler(self._api, place, recommended[place])


def _attempt(work: Callable[[], object]) -> None:
    with contextlib.suppress(ApiError, OSError):
        work()


def _container(fields: Json) -> Json:
    return {"spec": {"containers": [{"name": "app", **fields}]}}


def _has(recommender: Json, due: Json) -> bool:
    status, key = (
        recommender.get("status", {}),
        "recommendation" if "recommendation" in due else "desiredReplicas",
    )
    return bool(status.get(key) == due[key])


def _status_writer(api: KubeApi, kind: str, name: str, space: str, status: Json) -> Callable[[], object]:
    return lambda: api.patch_status(kind, name, space, status)


def _deleter(api: KubeApi, kind: str, name: str, space: str) -> Callable[[], object]:
    return lambda: api.delete(kind, name, space)


def _scaler(api: KubeApi, place: Place, desired: int) -> Callable[[], object]:
    body = {"spec": {"replicas": desired}}
    return lambda: api.patch("Hvpa", place[1], place[0], body, subresource="scale", manager="hpa")
