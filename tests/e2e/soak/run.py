"""A soak from its beginning to its end, and its report."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from localcluster.client.api import ApiError, Json, wait_for
from localcluster.controlplane.controlplane import ControlPlane
from localcluster.operator.operator import (
    NAMESPACE,
    REPOSITORY,
    SERVICE_ACCOUNT,
    install_crds,
    install_custom_kinds,
    install_operator_rbac,
    install_vpa_crd,
)
from localcluster.programs.build import build
from localcluster.proxy.wire import Wire
from tests.e2e.soak.audit_trail import AuditTrail
from tests.e2e.soak.check import Checker
from tests.e2e.soak.controllers import Controllers
from tests.e2e.soak.dashboard import Dashboard, served
from tests.e2e.soak.ending import unsettled
from tests.e2e.soak.growth import ROUNDS, Growth, Size
from tests.e2e.soak.hostile import Hostile
from tests.e2e.soak.injections import Injections
from tests.e2e.soak.leases import Leases
from tests.e2e.soak.objects import Role
from tests.e2e.soak.plan import Act, recommendations_of, replicas_of, schedule
from tests.e2e.soak.replicas import Replica
from tests.e2e.soak.uris import is_expected_of_dashboard

USERS = frozenset({"replicas", "target", "edit", "set", "workload", "hvpa"})
"""Acts that are no faults."""
TICK, ROUND = 0.1, 0.5
"""Seconds between looks at faults and processes, and between rounds of the controllers."""
SHARE_WITHOUT_FAULTS = 0.3
"""How long the rounds of the same work without faults last together, measured by the time with faults."""
SHARDED = REPOSITORY / "config" / "sharded"
LAST_FAULTS = 40
"""How many faults are listed where something is wrong."""


@dataclass
class Report:
    """What a soak found."""

    seed: int
    minutes: float
    hvpas: int
    shards: int = 1
    growth: bool = True
    problems: list[str] = field(default_factory=list)
    facts: dict[str, object] = field(default_factory=dict)
    last_faults: list[str] = field(default_factory=list)

    @property
    def is_good(self) -> bool:
        """Whether all was as it must be."""
        return not self.problems

    def __str__(self) -> str:
        divided = f", {self.shards} shards" if self.shards > 1 else ""
        lines = [f"soak: seed {self.seed}, {self.minutes:g} min, {self.hvpas} Hvpas{divided}"]
        lines += [f"  {name}: {json.dumps(value)}" for name, value in self.facts.items()]
        if self.is_good:
            return "\n".join([*lines, "  all well"])
        lines += [f"  WRONG: {problem}" for problem in self.problems]
        return "\n".join([*lines, "  last faults:", *(f"    {fault}" for fault in self.last_faults)])


class Soak:
    """One soak on a control plane of its own."""

    def __init__(
        self, plane: ControlPlane, replicas: list[Replica], dashboard: Dashboard, report: Report
    ) -> None:
        self.plane = plane
        self.replicas = replicas
        self.dashboard = dashboard
        self.report = report
        self.roles = [Role(number) for number in range(report.hvpas)]
        self.controllers = Controllers(plane.api, report.seed, self.roles)
        self.audit_trail = AuditTrail(plane.logs / "audit.log")
        self.audit_trail.forms[dashboard.credential] = is_expected_of_dashboard
        places = {(role.namespace, role.name): role for role in self.roles}
        self.hostile = Hostile(plane.api, replicas, dashboard, report.seed)
        hostile = self.hostile.tenant.places
        dashboard.show([*places, *sorted(hostile)])
        self.checker = Checker(self.controllers, places, {}, Leases(report.shards), hostile)
        self.injections = Injections(plane, replicas)
        self.checker.thaws = self.injections.thaws
        self.growth = Growth()
        self._over = threading.Event()
        self._failure: Exception | None = None

    def run(self) -> None:
        """Set up, disturb, and wait for peace. What is wrong is in the report."""
        self.controllers.create()
        for replica in self.replicas:
            replica.start()
        self._await_peace("at the start", 60 + self.report.hvpas)
        self.hostile.tenant.create()
        began, report = time.monotonic(), self.report
        self._disturb(schedule(report.seed, report.minutes * 60, report.hvpas, report.shards))
        self.report.facts["seconds of faults"] = round(time.monotonic() - began, 1)
        calm = time.monotonic()
        self._await_peace("at the end", 300 + self.report.hvpas / 5)
        wait_for(self.dashboard.probe, 60, "the dashboard answers")
        self.report.facts["seconds until all was well"] = round(time.monotonic() - calm, 1)
        if report.growth:
            self._repeat()
        self._judge()

    # --- with faults -------------------------------------------------------------------------------------------------
    def _disturb(self, acts: list[Act]) -> None:
        began = time.monotonic()
        users = deque(act for act in acts if act.kind in USERS)
        faults = deque(act for act in acts if act.kind not in USERS)
        users_thread = threading.Thread(target=self._run_users, args=(users, began), name="users")
        users_thread.start()
        self.hostile.begin()
        end = began + self.report.minutes * 60
        try:
            while time.monotonic() < end and not self._failure:
                for act in _due(faults, began):
                    self.injections.begin(act, self._target_of(act))
                self._tick()
                time.sleep(TICK)
        finally:
            self.injections.stop()
            self._over.set()
            users_thread.join()
            self.hostile.end()
        if self._failure:
            raise self._failure

    def _run_users(self, acts: deque[Act], began: float) -> None:
        """What users and controllers do, until all is done and the time is over."""
        try:
            while acts or not self._over.is_set():
                for act in _due(acts, began):
                    self.controllers.act(act)
                self.controllers.round()
                time.sleep(ROUND)
        except Exception as error:
            self._failure = error

    def _tick(self) -> None:
        self.injections.tick()
        for replica in self.replicas:
            replica.look_after()
            self.checker.operators.update(replica.lives)
            if (size := replica.size()) is not None:
                self.growth.look(replica.process, size)
        if (size := self.dashboard.size()) is not None:
            self.growth.look(self.dashboard.process, size)
        for write in self.audit_trail.news():
            self.checker.feed(write)
            self.dashboard.note(write)

    def _target_of(self, act: Act) -> Replica:
        """Whom a signal is for: the leader, or where the work is shared any that is alive."""
        leases = self.checker.leases
        if len(leases.names) == 1:
            holder = leases.holder(leases.names[0])
            return next(
                (replica for replica in self.replicas if replica.credential == holder), self.replicas[0]
            )
        alive = [replica for replica in self.replicas if replica.is_alive] or self.replicas
        return alive[act.who % len(alive)]

    # --- without -----------------------------------------------------------------------------------------------------
    def _await_peace(self, when: str, seconds: float) -> None:
        """Wait until every decision is quiet, and processes that are alive hold all Leases. Where each step goes half
        of the way, there is one a minute for a while: such an Hvpa must have been quiet once, the others are so all at
        once."""
        left = {role: "not looked at" for role in self.roles}

        def peaceful() -> bool:
            self._tick()
            self.controllers.round()
            asked = [role for role in self.roles if role in left or role.axes != "both"]
            reasons = unsettled(self.plane.api, self.controllers, asked)
            left.clear()
            left.update(reasons)
            is_well = not self._unheld() and all(replica.is_ready for replica in self.replicas)
            return not left and self.controllers.is_done and is_well

        try:
            wait_for(peaceful, seconds, interval=ROUND)
        except TimeoutError as error:
            problems = [f"no process that is alive holds the Lease {lease}" for lease in self._unheld()]
            problems += [f"{role.namespace}/{role.name} ({role.axes}): {why}" for role, why in left.items()]
            self.report.problems += [
                f"{when}, after {seconds:g} s: {problem}" for problem in problems[:20] or [str(error)]
            ]

    def _unheld(self) -> list[str]:
        return self.checker.leases.unheld(
            {replica.credential for replica in self.replicas if replica.is_alive}
        )

    def _repeat(self) -> None:
        """The same work again and again, without faults: each Hvpa gets new recommendations, and each operator has to
        list everything anew."""
        seconds = self.report.minutes * 60 * SHARE_WITHOUT_FAULTS / ROUNDS
        for number in range(ROUNDS):
            for act in recommendations_of(number, self.report.hvpas):
                self.controllers.act(act)
            for replica in self.replicas:
                replica.proxy.expire_watches()
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                self.controllers.round()
                self._tick()
                time.sleep(ROUND)
            for replica in self.replicas:
                if (size := replica.size()) is not None:
                    self.growth.after_round(replica.process, size)
            if (size := self.dashboard.size()) is not None:
                self.growth.after_round(self.dashboard.process, size)

    def _judge(self) -> None:
        report, checker, growth = self.report, self.checker, self.growth
        report.problems += checker.violations() + growth.problems() + self.hostile.problems()
        report.problems += self.dashboard.problems()
        processes = {**checker.operators, self.dashboard.credential: self.dashboard.process}
        report.problems += [
            f"{process} requested {uri}"
            for credential, process in processes.items()
            for uri in sorted(self.audit_trail.unexpected[credential])
        ]
        report.facts["hostile"] = self.hostile.facts()
        for replica in self.replicas:
            report.problems += replica.bad_ends
            sizes = growth.rounds[replica.process]
            largest = max(growth.largest.get(life, 0.0) for life in replica.lives.values())
            ends = {"processes": len(replica.lives), "ends": sorted(replica.ends)}
            report.facts[f"operator {replica.number}"] = ends | _memory(largest, sizes)
            report.problems += [line for log in replica.logs for line in _crashes(log)]
        name = self.dashboard.process
        report.facts[name] = _memory(growth.largest.get(name, 0.0), growth.rounds[name])
        report.problems += _crashes(self.dashboard.log)
        report.facts["faults"] = dict(self.injections.done)
        report.facts["Leases taken over"] = checker.leases.takeovers
        report.facts["writes"] = dict(sorted(checker.writes.items()))
        report.facts["Events sent after the Lease was lost"] = checker.late_events
        report.facts["writes sent late, after a SIGSTOP"] = checker.late_sends
        report.facts["requests"] = self.audit_trail.requests
        report.last_faults = self.injections.log[-LAST_FAULTS:]


def _due(acts: deque[Act], began: float) -> Iterator[Act]:
    while acts and acts[0].at <= time.monotonic() - began:
        yield acts.popleft()


def _memory(largest: float, sizes: list[Size]) -> Json:
    return {
        "largest, in MB": round(largest),
        "MB after each round": [round(size.megabytes) for size in sizes],
        "files after each round": [size.files for size in sizes],
    }


def _crashes(log: Path) -> Iterator[str]:
    """The lines of a process's log that report an error in the program, shortened."""
    for line in log.read_text(errors="replace").splitlines():
        if "crashed" in line or "Traceback" in line or "Unclosed" in line or "never retrieved" in line:
            yield f"{log.name}: {line[:2000]}"


def soak(seed: int, minutes: float, hvpas: int, shards: int = 1, *, growth: bool = True) -> Report:
    """Run one soak on a new bare control plane. `shards`: parts of the work that the operators share; 1: one leads.
    `growth`: whether rounds without faults follow, in which a process that goes on growing is found."""
    report = Report(seed, minutes, hvpas, shards, growth)
    with ControlPlane(full=False, programs=build(full=True)) as plane, ExitStack() as stack:
        install_crds(plane)
        install_vpa_crd(plane)
        install_operator_rbac(plane)
        install_custom_kinds(plane)
        rules: list[Json] = []
        for rights in SHARDED.glob("shards_role*.yaml") if shards > 1 else ():
            document = yaml.safe_load(rights.read_text())
            plane.apply_all([document])
            rules += document.get("rules", [])
        for rule in rules:
            plane.await_right(f"system:serviceaccount:{NAMESPACE}:{SERVICE_ACCOUNT}", rule, NAMESPACE)
        proxies = [stack.enter_context(plane.proxy()) for _ in range(replicas_of(shards))]
        wires = [stack.enter_context(Wire(proxy.address)) for proxy in proxies]
        replicas = [
            Replica(number, plane, *line, shards)
            for number, line in enumerate(zip(proxies, wires, strict=True))
        ]
        running = Soak(plane, replicas, stack.enter_context(served(plane)), report)
        stack.callback(running.controllers.close)
        for replica in replicas:
            stack.callback(replica.end)
        try:
            running.run()
        except (ApiError, OSError, TimeoutError, RuntimeError) as error:
            report.problems.append(f"the soak itself failed: {type(error).__name__}: {error}")
            report.last_faults = running.injections.log[-LAST_FAULTS:]
        if not report.is_good:
            _show_logs(replicas, report)
    return report


def _show_logs(replicas: list[Replica], report: Report) -> None:
    """Show the ends of the operators' logs, which go with the control plane, without the steps of the workloads."""
    for replica in replicas:
        for log in replica.logs[-2:]:
            lines = [
                line
                for line in log.read_text(errors="replace").splitlines()
                if '"event":"scaled"' not in line
            ]
            text = "\n".join(lines[-10:])
            print(f"--- {log.name} (seed {report.seed})\n{text}", file=sys.stderr)
