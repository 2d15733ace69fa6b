"""The environment of the scale benchmark: a control plane without controllers, the operator as a process with its own
rights, and measurements of both from outside: CPU, memory, requests."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import yaml

from benchmarks.scale import audit as scale_audit
from localcluster.client.api import wait_for
from localcluster.controlplane.controlplane import ControlPlane
from localcluster.operator.operator import (
    NAMESPACE,
    SERVICE_ACCOUNT,
    Operator,
    install_crds,
    install_operator_rbac,
)
from localcluster.programs.build import build

QUIET_SECONDS = 1.0
"""The operator counts as quiet after this number of seconds without a request, and with little CPU."""
QUIET_CPU = 0.1
"""Most cores of a quiet operator."""
QUIET_LOG = 8192
"""Most bytes by which the audit log grows in that time: the Lease's renewals."""
LIMIT = 900.0
"""Timeout of any wait in seconds."""


@dataclass(frozen=True, slots=True)
class Spent:
    """Seconds of CPU by process, requests, and wall-clock seconds of a phase."""

    seconds: float
    cpu: dict[str, float]
    requested: scale_audit.Requested


@dataclass(slots=True)
class Environment:
    """A control plane with an operator that can be stopped and started."""

    plane: ControlPlane
    log: Path
    account: Path
    flags: Sequence[str]
    others: dict[str, int] = field(default_factory=dict)
    """Process ids of other programs by name."""
    operator: Operator | None = None

    def start(self, *, wait: bool = True) -> Operator:
        """Start an operator."""
        flags = ("--leader-elect", "--lease-namespace", NAMESPACE, *self.flags)
        self.operator = Operator(self.plane, self.account, *flags)
        self.operator.start(wait=wait, timeout=LIMIT)
        return self.operator

    def end(self) -> None:
        """Stop the operator in order, so that it releases its Lease."""
        if self.operator is not None:
            self.operator.terminate()
            self.operator = None

    def memory(self) -> dict[str, float]:
        """Return the operator's resident memory in MB (10^6 bytes) now, and its highest since the start."""
        assert self.operator is not None
        lines = Path(f"/proc/{self.operator.process.pid}/status").read_text().splitlines()
        kibibytes = {line.split(":")[0]: int(line.split()[1]) for line in lines if line.startswith("Vm")}
        return {
            "rss_mb": round(kibibytes["VmRSS"] * 1024 / 1e6, 1),
            "peak_mb": round(kibibytes["VmHWM"] * 1024 / 1e6, 1),
        }

    def cpu(self) -> dict[str, float]:
        """Return the seconds of CPU so far of each process."""
        pids = {name: process.pid for name, process in self.plane.processes.items()} | self.others
        if self.operator is not None:
            pids["operator"] = self.operator.process.pid
        return {name: cpu_seconds(pid) for name, pid in pids.items()}

    @contextlib.contextmanager
    def profiled(self, file: Path | None) -> Iterator[None]:
        """Write the operator's CPU profile of the block (in speedscope's format) with py-spy, which samples from
        outside, so it costs the operator little. Does nothing without a `file`."""
        if file is None:
            yield
            return
        assert self.operator is not None
        recorded = ["record", "--pid", str(self.operator.process.pid), "--output", str(file)]
        format_flags = ["--format", "speedscope", "--rate", "200", "--nonblocking"]
        sampler = subprocess.Popen([profiler(), *recorded, *format_flags], stdout=subprocess.DEVNULL)
        try:
            yield
        finally:
            sampler.send_signal(signal.SIGINT)
            sampler.wait(60)

    def until_quiet(self, limit: float = LIMIT) -> bool:
        """Wait until the operator is quiet; False if it does not become quiet within `limit` seconds."""
        assert self.operator is not None
        deadline = time.monotonic() + limit
        while time.monotonic() < deadline:
            size, cpu = self.log.stat().st_size, cpu_seconds(self.operator.process.pid)
            time.sleep(QUIET_SECONDS)
            used = cpu_seconds(self.operator.process.pid) - cpu
            if used < QUIET_CPU * QUIET_SECONDS and self.log.stat().st_size - size < QUIET_LOG:
                return True
        return False

    @contextlib.contextmanager
    def measured(self) -> Iterator[list[Spent]]:
        """Measure the block; the result is put into the list at its end."""
        measurements: list[Spent] = []
        mark = self.plane.audit.mark().offset
        before, began = self.cpu(), time.perf_counter()
        yield measurements
        seconds, after = time.perf_counter() - began, self.cpu()
        used = {name: after[name] - before.get(name, 0.0) for name in after}
        requested = scale_audit.read(self.log, mark, self.plane.audit.mark().offset)
        measurements.append(Spent(seconds, used, requested))


def cpu_seconds(pid: int) -> float:
    """Return user and system time of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def profiler() -> str:
    """Return the program py-spy, which is not a dependency of ours. Raises `RuntimeError` if it is not installed."""
    program = shutil.which(
        "py-spy", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    )
    if program is None:
        raise RuntimeError("a profile needs py-spy: pip install py-spy")
    return program


@contextlib.contextmanager
def environment(sample: str, flags: Sequence[str]) -> Iterator[Environment]:
    """Run a new control plane without controllers, with all CRDs and the operator's rights. The audit log shows the
    operator's requests, with bodies of writes in the namespace `sample`."""
    programs = build(full=True)
    with TemporaryDirectory(prefix="hvpa-scale-") as folder:
        plane = ControlPlane(full=False, programs=programs, folder=Path(folder))
        (Path(folder) / "audit-policy.yaml").write_text(scale_audit.policy(sample))
        with plane:
            install_crds(plane)
            crds = yaml.safe_load_all(programs.shared["vpa-crd.yaml"].read_text())
            plane.apply_all([document for document in crds if document])
            install_operator_rbac(plane)
            account = plane.service_account_kubeconfig(NAMESPACE, SERVICE_ACCOUNT, 6 * 3600)
            env = Environment(plane, plane.logs / "audit.log", account, flags)
            try:
                yield env
            finally:
                if env.operator is not None:
                    env.operator.kill()


def await_decisions(operator: Operator, count: int) -> None:
    """Wait until an operator has decided on this number of Hvpas and none waits."""

    def through() -> bool:
        return operator.metric("hvpa_decisions_total") >= count and operator.metric("hvpa_queue_depth") == 0

    wait_for(through, LIMIT, f"{count} decisions", interval=0.2)
