"""The environment of the demo, for any kind of nodes: CRD and RBAC, the operator as a separate process with its own
ServiceAccount, the workload, its Hvpa and its load. `simulated.py` and `real/cluster.py` start control planes."""

from __future__ import annotations

import datetime as dt
import os
import sys
import textwrap
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

import yaml

from demo.options import Mode, Options, SizeStrategy
from demo.outcome import Rivals
from demo.scenario import Course, Scenario, State
from demo.snapshot import WIDTH, Snapshot, snapshot
from demo.verdict import Evidence, Write, state_of
from localcluster.client.audit import Mark, Request
from localcluster.controlplane.cluster import DAY
from localcluster.controlplane.controlplane import ControlPlane
from localcluster.operator.operator import install_fast_signal
from localcluster.process import Process, free_port
from localcluster.workloads.load import await_pods

Json = dict[str, Any]
Report = Callable[[str], None]

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
NAMESPACE = "hvpa-demo"
NAME = "web"
# In a cluster the operator runs as pods; here it is a process, and KWOK would pretend to run the pods too.
_LEFT_OUT = frozenset({"Deployment", "PodDisruptionBudget"})
_OPERATOR_READY_SECONDS = 60.0
# metrics-server looks every 11 s, the recommenders every 2 s.
_FIRST_RECOMMENDATION_SECONDS = 120.0
KEPT_SECONDS = 30 * DAY
"""Lifetime of the operator's token in seconds if the demo is left running; a day otherwise."""


class DemoError(Exception):
    """A part of the demo did not start; the text names it, with the end of its log."""


class AnyLoad(Protocol):
    """A load that runs by itself; `error` is the reason that it stopped."""

    error: Exception | None

    def __enter__(self) -> object: ...

    def __exit__(self, *error: object) -> None: ...


LoadT = TypeVar("LoadT", bound=AnyLoad)


class DemoCluster(Generic[LoadT]):
    """The running demo. `begin` starts the clock of the load; before that it stays low."""

    load: LoadT
    namespace = NAMESPACE

    def __init__(
        self, plane: ControlPlane, operator: Process, account: str, scenario: Scenario, sizes: SizeStrategy
    ) -> None:
        self.plane = plane
        self.operator = operator
        self.account = account
        """User name of the operator's ServiceAccount."""
        self.scenario = scenario
        self.in_place = sizes == "InPlaceOrRollout"
        """Whether HVPA resizes running pods."""
        self._sizes = sizes
        self._first_pods = ""
        self._replaced: set[str] = set()
        self._began: float | None = None
        self._began_at = dt.datetime.now(dt.UTC)
        self._start: State | None = None
        self.needs_usual = True
        """Whether the demo waits for a mean of the usual demand before it begins."""
        self._mark: Mark | None = None

    @property
    def elapsed(self) -> float:
        """Seconds since the load began to count; 0 before."""
        return 0.0 if self._began is None else time.monotonic() - self._began

    def begin(self) -> None:
        """Start the clock of the load, from its beginning."""
        self._began, self._began_at = time.monotonic(), dt.datetime.now(dt.UTC)

    def look(self) -> Snapshot:
        """The workload and its recommenders now. Raises `DemoError` when the operator or the load has ended."""
        self.check()
        return self.see()

    def see(self) -> Snapshot:
        """The same, even after a process has ended."""
        api = self.plane.api
        observation = snapshot(
            api.get("Deployment", NAME, self.namespace),
            api.find("Hvpa", NAME, self.namespace) or {},
            api.find("HorizontalPodAutoscaler", NAME, self.namespace),
            api.find("VerticalPodAutoscaler", NAME, self.namespace),
            pods := api.list("Pod", self.namespace, f"app={NAME}"),
        )
        for pod in pods:
            of = pod["metadata"]["labels"]["pod-template-hash"]
            self._first_pods = self._first_pods or of
            if of != self._first_pods:
                self._replaced.add(pod["metadata"]["uid"])
        return replace(observation, restarts=observation.restarts + len(self._replaced))

    def check(self) -> None:
        """Raise `DemoError` when a required process has ended."""
        if not self.operator.alive:
            raise DemoError(f"the operator ended with {self.operator.returncode}:\n{self.operator.tail(15)}")
        for name, process in self.plane.processes.items():
            if not process.alive:
                raise DemoError(f"{name} ended with {process.returncode}:\n{process.tail(15)}")
        if self.load.error is not None:
            raise DemoError(f"the load can't go on: {self.load.error}")

    def manifest(self, name: str) -> Json:
        """The object in a file of the demo."""
        manifest: Json = yaml.safe_load((HERE / name).read_text())
        return manifest

    def put_up_workload(self, mode: Mode) -> None:
        """Create namespace, Deployment and Hvpa, and wait for the pods."""
        api = self.plane.api
        api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}})
        api.create(self.manifest("workload.yaml"))
        self._mark = self.plane.audit.mark()
        created = api.create(with_mode(with_sizes(self.manifest("hvpa.yaml"), self._sizes), mode))
        deployment = api.get("Deployment", NAME, self.namespace)
        self._start = state_of(snapshot(deployment, created, None, None))
        self.needs_usual &= mode == "Auto"
        await_pods(api, self.namespace, NAME)

    def await_recommendations(self, report: Report) -> None:
        """Wait until both recommenders have a recommendation, and the Hvpa has a mean of the usual demand, which begins
        with the first measurement of pods that have been ready for a minute. (If it began during the rise, it would be
        the mean of the peak, and fade over hours. If nothing is scaled, it makes no difference.)"""
        deadline = time.monotonic() + _FIRST_RECOMMENDATION_SECONDS
        shown = ""
        while waits := self._silent():
            text = " and ".join(waits)
            if time.monotonic() > deadline:
                waited = f"within {_FIRST_RECOMMENDATION_SECONDS:g} s"
                raise DemoError(
                    f"waited in vain for {text} {waited}; the operator's log:\n{self.operator.tail(15)}"
                )
            if text != shown:
                report(f"waiting for {text}")
            shown = text
            time.sleep(1)

    def _silent(self) -> list[str]:
        """The names of recommendations that are still missing."""
        snapshot = self.look()
        known = (
            ("the HPA's first recommendation", snapshot.hpa_desired is not None),
            ("the VPA's first recommendation", snapshot.vpa_target.cpu is not None),
            ("a minute of measurements", snapshot.knows_usual or not self.needs_usual),
        )
        return [name for name, is_known in known if not is_known]

    def evidence(self, snapshots: list[Snapshot], course: Course) -> Evidence:
        """The writers and writes of the audit log, and the observed states with their times (`course`)."""
        if self._start is None:
            raise DemoError("there is no workload yet")
        scenario = self.scenario
        requests = self._writes("deployments", NAME)
        return Evidence(
            start=self._start,
            writes=[
                Write(
                    request.user,
                    (request.time - self._began_at).total_seconds(),
                    request.subresource,
                    request.body,
                )
                for request in requests
                if request.subresource != "status"
            ],
            operator=self.account,
            hpa_writers=self._writers("horizontalpodautoscalers", "status", NAME),
            vpa_writers=self._writers("verticalpodautoscalers", "status", NAME),
            rise=scenario.phase("rise").start,
            fall=scenario.phase("fall").start,
            gave_up_early=self.elapsed < scenario.phase("fall").end,
            seen=snapshots,
            course=course if self.in_place else (),
            resizes=self._writers("pods", "resize") if self.in_place else None,
            restarts=snapshots[-1].restarts if snapshots else 0,
            rivals=self.rivals(),
        )

    def rivals(self) -> Rivals | None:
        """The computed course of an HPA with a VPA under the same load; None if it is measured instead."""
        return None

    def _writes(self, resource: str, name: str | None, subresource: str | None = None) -> list[Request]:
        """The accepted writes to our objects of a kind, or to a subresource of them."""
        audit = self.plane.audit
        requests = audit.requests(
            self._mark,
            writes=True,
            resource=resource,
            subresource=subresource,
            namespace=self.namespace,
            name=name,
        )
        return [request for request in requests if request.code < 300]

    def _writers(self, resource: str, subresource: str, name: str | None = None) -> Counter[str]:
        """The writers of a subresource of our HPA, VPA or pods, and their number of writes."""
        return Counter(request.user for request in self._writes(resource, name, subresource))


@contextmanager
def operator_on(
    plane: ControlPlane, chosen: Options, report: Report, configs: Sequence[str] = ("default",)
) -> Iterator[tuple[Process, str]]:
    """Install the operator from these folders of `config` and run it. Returns its process, and the user name of its
    ServiceAccount. Raises `DemoError` if it does not start."""
    namespace, account = _install(plane, configs, report)
    token_seconds = KEPT_SECONDS if chosen.keep else DAY
    arguments = install_fast_signal(plane) if chosen.fast else ()
    operator = _operator(plane, namespace, account, token_seconds, arguments)
    user = f"system:serviceaccount:{namespace}:{account}"
    try:
        _start(operator, report, user)
        yield operator, user
    finally:
        operator.terminate(10)


def _install(plane: ControlPlane, configs: Sequence[str], report: Report) -> tuple[str, str]:
    """Apply these folders of `config` and return the operator's namespace and ServiceAccount."""
    rendered = [plane.kubectl("kustomize", ROOT / "config" / name).stdout for name in configs]
    documents = [document for text in rendered for document in yaml.safe_load_all(text) if document]
    applied = [document for document in documents if document["kind"] not in _LEFT_OUT]
    # kube-controller-manager discovers new kinds every 30 s. If it starts after the CRD, its HPA controller has Hvpas
    # at once.
    with plane.stopped("kube-controller-manager"):
        plane.apply_all(applied)
    kinds = ", ".join(sorted({document["kind"] for document in applied}))
    report(textwrap.fill(f"config/{', config/'.join(configs)}: {kinds}", WIDTH, subsequent_indent="  "))
    account = next(document for document in documents if document["kind"] == "ServiceAccount")["metadata"]
    return account["namespace"], account["name"]


def _operator(
    plane: ControlPlane, namespace: str, account: str, token_seconds: int, arguments: Sequence[str]
) -> Process:
    """`hvpa run` with only the rights of its ServiceAccount."""
    kubeconfig = plane.service_account_kubeconfig(namespace, account, token_seconds)
    argv: list[str | Path] = [
        sys.executable,
        *("-m", "hvpa", "run", "--kubeconfig", kubeconfig),
        *("--leader-elect", "--lease-namespace", namespace),
        *("--metrics-bind-address", "0"),
        *("--health-probe-bind-address", f"127.0.0.1:{free_port()}"),
        *("--log-format", "console"),
        *arguments,
    ]
    # The user's own configuration (KUBECONFIG, proxies) does not reach it.
    environment = {"HOME": str(plane.folder), "PATH": os.environ.get("PATH", ""), "PYTHONUNBUFFERED": "1"}
    return Process("operator", argv, plane.logs / "operator.log", env=environment, cwd=ROOT)


def _start(operator: Process, report: Report, user: str) -> None:
    began = time.monotonic()
    operator.start()
    address = next(part for part in operator.argv if part.startswith("127.0.0.1:"))
    while not _is_ready(address):
        if not operator.alive or time.monotonic() - began > _OPERATOR_READY_SECONDS:
            state = "is not ready" if operator.alive else f"ended with {operator.returncode}"
            raise DemoError(f"the operator {state}:\n{operator.tail(15)}")
        time.sleep(0.1)
    report(f"operator: process {operator.pid} as {user} ({time.monotonic() - began:.0f} s)")


def _is_ready(address: str) -> bool:
    # Connect to loopback directly, even if the environment names a proxy.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(f"http://{address}/readyz", timeout=2) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def with_sizes(hvpa: Json, sizes: SizeStrategy) -> Json:
    """The Hvpa with this update strategy (InPlaceOrRollout leaves the manifest unchanged)."""
    if sizes == "Rollout":
        hvpa["spec"]["updateStrategy"] = {"type": "Rollout"}
        hvpa["spec"]["vpa"]["scaleDown"]["stabilizationDuration"] = "2m"
    return hvpa


def with_mode(hvpa: Json, mode: Mode) -> Json:
    """The Hvpa with this update mode in all four directions (`Auto` is the default and leaves the manifest
    unchanged)."""
    if mode != "Auto":
        for axis in ("hpa", "vpa"):
            for direction in ("scaleUp", "scaleDown"):
                hvpa["spec"][axis].setdefault(direction, {})["updatePolicy"] = {"updateMode": mode}
    return hvpa
