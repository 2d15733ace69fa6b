"""The operators of a soak, each behind a line and a proxy of its own, and started again whenever one ends, as by a
kubelet.

Each process has a token of its own, by which the audit log distinguishes its requests from those of every other."""

from __future__ import annotations

import signal
from dataclasses import dataclass, field
from pathlib import Path

from localcluster.client.api import ApiError
from localcluster.controlplane.controlplane import ControlPlane
from localcluster.operator.operator import NAMESPACE, SERVICE_ACCOUNT, Operator
from localcluster.proxy.proxy import Proxy
from localcluster.proxy.wire import Wire
from tests.e2e.soak.audit_trail import credential_of
from tests.e2e.soak.growth import Size, size_of

LEASE = 15
"""Seconds of the Lease, the operator's default: its holder writes for two thirds of it after a renewal. With 9, three
operators beside five other tests on two cores lost it again and again: each that starts anew takes time from the
others' renewals."""
CLEAN_ENDS = frozenset({0, 1, 3})
"""Exit codes of an operator that was not killed: asked to stop, lease lost, API server not there at the start."""
GIVING_UP = "lost the lease: exiting"
"""The log line of a process that gives up; while it does, it listens to no signal any more."""
STARTED = "caches are filled"
"""The log line of a process that is at work; before, one that is asked to stop may not yet know how to do it in
order."""


def _text(log: Path) -> str:
    """What a log says; nothing as long as its process has not begun to write."""
    try:
        return log.read_text(errors="replace")
    except FileNotFoundError:
        return ""


@dataclass
class Replica:
    """One of them, over all its lives. `shards`: parts of the work that all share; 1: one of them leads."""

    number: int
    plane: ControlPlane
    proxy: Proxy
    wire: Wire
    """Leads to the proxy, and the proxy to the API server."""
    shards: int = 1
    operator: Operator | None = None
    credential: str = ""
    lives: dict[str, str] = field(default_factory=dict)
    """Credential (as the audit log names it) -> name of each process so far."""
    logs: list[Path] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    bad_ends: list[str] = field(default_factory=list)
    frozen: bool = False
    _killed: bool = False
    _asked: bool = False

    def start(self) -> None:
        """Start a process. Raises ApiError or OSError where the API server gives no token."""
        token = self.plane.service_account_token(NAMESPACE, SERVICE_ACCOUNT, 7200)
        name = f"operator-{self.number}-{len(self.lives) + 1}"
        self.credential = credential_of(token)
        self.lives[self.credential] = name
        part = ("--leader-elect",) if self.shards == 1 else ("--shards", str(self.shards))
        flags = (*part, "--lease-namespace", NAMESPACE, "--lease-duration", str(LEASE))
        kubeconfig = self.wire.kubeconfig(self.proxy.kubeconfig_for(token))
        self.operator = Operator(self.plane, kubeconfig, *flags, name=name)
        self.logs.append(self.operator.log)
        self._killed = self._asked = False
        self.operator.start(wait=False)

    def look_after(self) -> None:
        """Start it again when it has ended."""
        if self.operator is not None:
            if self.operator.process.alive:
                return
            code = self.operator.process.returncode or 0
            self.ends.append(code)
            if not (self._killed or code in CLEAN_ENDS or self._was_giving_up(code)):
                self.bad_ends.append(
                    f"{self.lives[self.credential]} ended with {code}:\n{self.operator.process.tail()}"
                )
            self.operator = None
        try:
            self.start()
        except (ApiError, OSError):
            return  # the next round tries again

    def _was_giving_up(self, code: int) -> bool:
        """Whether it was asked to end while it was giving up."""
        return code == -signal.SIGTERM and GIVING_UP in _text(self.logs[-1])

    @property
    def is_alive(self) -> bool:
        """Whether its process runs."""
        return self.operator is not None and self.operator.process.alive

    @property
    def is_ready(self) -> bool:
        """Whether its process runs and has listed everything."""
        return self.operator is not None and self.is_alive and self.operator.probe("readyz") == 200

    def addresses(self) -> list[str]:
        """The ports that it listens at: health and metrics; none without a process."""
        operator = self.operator
        return [] if operator is None else [operator.health_address, operator.metrics_address]

    def probe(self) -> bool | None:
        """Whether it answers a kubelet's probe; None if it starts, ends, or was stopped meanwhile."""
        operator, credential = self.operator, self.credential
        if operator is None or self._is_disturbed() or STARTED not in _text(operator.log):
            return None
        if operator.probe() != 0:
            return True
        is_same = self.credential == credential and operator.process.alive and not self._is_disturbed()
        return False if is_same else None

    def _is_disturbed(self) -> bool:
        return self.frozen or self._asked or self._killed

    def inject(self, name: str) -> None:
        """Send it a signal."""
        if self.operator is None:
            return
        number = signal.Signals[name]
        self.frozen = self.frozen or number == signal.SIGSTOP
        is_starting = STARTED not in _text(self.logs[-1])
        is_asked = number == signal.SIGTERM
        # One that is asked to end twice, or before it can listen, ends at once.
        self._killed = self._killed or number == signal.SIGKILL or (is_asked and (is_starting or self._asked))
        self._asked = self._asked or is_asked
        self.operator.process.signal(number)

    def thaw(self) -> None:
        """SIGCONT."""
        if self.frozen and self.operator is not None:
            self.operator.resume()
        self.frozen = False

    def end(self) -> None:
        """End it for good."""
        self.thaw()
        if self.operator is not None:
            self.operator.kill()

    @property
    def process(self) -> str:
        """The name of its present (or last) process."""
        return self.lives[self.credential]

    def size(self) -> Size | None:
        """What its process needs; None where it has none at present."""
        return None if self.operator is None else size_of(self.operator.process.pid)
