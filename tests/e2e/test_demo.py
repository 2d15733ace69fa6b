"""`python -m demo` as a user runs it, but on simulated nodes and for a shorter load: it scales all four ways and ends
with 0, ends with 1 if nothing may be scaled, is left running on request, and leaves no process behind in any case."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from localcluster.client.api import KubeApi, wait_for
from localcluster.controlplane.manifests import CPU_ANNOTATION
from localcluster.process import Process

ROOT = Path(__file__).resolve().parents[2]
LOAD_SECONDS = "150"
"""A shorter load than the demo's own."""
# The load and three minutes to come back, the start, and as much again for a machine that is busy.
WHOLE_SECONDS = 700.0
READY_SECONDS = 180.0
Demo = Callable[..., Process]


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[Demo]:
    """Starts `python -m demo` with some options; what still runs afterwards is ended."""
    if os.environ.get("HVPA_E2E_KUBECONFIG"):
        pytest.skip("the demo starts a control plane of its own")
    started: list[Process] = []
    folder = tmp_path / "cluster"

    def start(**options: str) -> Process:
        unset = {"KEEP": "", "DEMO": "", "DEMO_MODE": "", "DEMO_SECONDS": "", "NODES": "simulated"}
        environment = {**os.environ, "HVPA_CLUSTER_FOLDER": str(folder), **unset, **options}
        log = tmp_path / f"demo-{len(started)}.log"
        process = Process("demo", [sys.executable, "-m", "demo"], log, env=environment, cwd=ROOT)
        process.start()
        started.append(process)
        return process

    yield start
    for process in started:
        process.terminate(60)
    if folder.exists():
        take_down(folder)


def output(process: Process) -> str:
    """All that the demo has printed."""
    return process.log.read_text()


def await_text(process: Process, text: str, seconds: float) -> None:
    """Wait until the demo has printed a text; fails at once when it ends before."""

    def printed() -> bool:
        if text not in output(process) and not process.alive:
            pytest.fail(f"the demo ended with {process.returncode}:\n{output(process)}")
        return text in output(process)

    wait_for(
        printed, seconds, lambda: f"the demo prints {text!r}; it printed:\n{output(process)}", interval=0.5
    )


def descendants(pid: int) -> set[int]:
    """The processes that a process started, and theirs."""
    parents = _parents()
    pids = {pid}
    while more := {child for child, parent in parents.items() if parent in pids} - pids:
        pids |= more
    return pids - {pid}


def _parents() -> dict[int, int]:
    """Process id -> that of its parent: from /proc where there is one, since small images have no `ps`."""
    if not Path("/proc/self/stat").exists():
        command = ["ps", "-A", "-o", "pid=,ppid="]
        listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        return {int(child): int(parent) for child, parent in map(str.split, listed.splitlines())}
    parents: dict[int, int] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # ended meanwhile
            parents[int(path.parent.name)] = int(_stat(int(path.parent.name))[1])
    return parents


def await_end_of(pids: set[int]) -> None:
    """Wait until none of these processes is left."""

    def left() -> list[int]:
        return [pid for pid in pids if _exists(pid)]

    wait_for(lambda: not left(), 60, lambda: f"processes {left()} have ended")


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        # One that has ended may wait for ever to be asked for its exit code: not every container has an init.
        return not Path("/proc/self/stat").exists() or _stat(pid)[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False


def _stat(pid: int) -> list[str]:
    """What Linux says of a process, from its state on: state, parent, …"""
    # pid (name) state ppid …, and the name may hold anything
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


@pytest.mark.timeout(int(WHOLE_SECONDS) + 60)
def test_the_workload_is_scaled_out_up_in_and_down_and_is_back_where_it_began(demo: Demo) -> None:
    process = demo(DEMO_SECONDS=LOAD_SECONDS)
    await_text(process, "-- 0:00 calm", READY_SECONDS)
    children = descendants(process.pid)
    assert len(children) == 9  # eight programs of the control plane, and the operator
    code = process.wait(WHOLE_SECONDS)
    text = output(process)
    assert code == 0, text
    assert "Good: scaled out, up, in and down, and back where it began" in text
    assert "FAILED" not in text
    for direction in ("out", "up", "in", "down"):
        assert re.search(rf">> \d+:\d\d scaled {direction}: ", text), direction
        assert re.search(rf"scaled {direction} +(once|[1-9]\d* times)", text), direction
    operator = "by system:serviceaccount:hvpa-system:[-a-z]+$"
    assert re.search(rf"Deployment +patched \d+ times {operator}", text, re.M)
    assert re.search(rf"pods +resized \d+ times {operator}", text, re.M)
    assert re.search(r"restarts +none$", text, re.M)
    assert re.search(r"HPA's status +written \d+ times by \S+:horizontal-pod-autoscaler$", text, re.M)
    assert re.search(r"VPA's status +written \d+ times by vpa-recommender$", text, re.M)
    last_screen = text.partition("What users felt, and what it cost")[2]
    end = re.search(r"at the end +2 × (\d+)m, (\d+)Mi +\d × \d+m, \d+Mi$", last_screen, re.M)
    assert end, text
    cpu, memory = map(int, end.groups())
    assert 250 <= cpu <= 275, "within a tenth of the beginning"
    assert 192 <= memory <= 211
    unserved = r"CPU unserved on a full node +\d+ core-s \(\S+ %\) +[1-9]\d* core-s \(\S+ %\)"
    assert re.search(unserved, last_screen), text
    assert re.search(r"restarts +0 +\d+$", last_screen, re.M), text
    assert re.search(r"CPU requested +\d+ core-s +\d+ core-s", last_screen.partition("over an hour")[2]), text
    assert max(map(len, text.splitlines())) <= 130
    await_end_of(children)


@pytest.mark.timeout(300)
def test_with_every_mode_off_it_fails_and_is_left_running_on_request_until_it_is_taken_down(
    demo: Demo,
) -> None:
    """With `DEMO=rollout`: the manifests of this other way to change sizes are accepted, too."""
    process = demo(KEEP="1", DEMO="rollout", DEMO_MODE="Off", DEMO_SECONDS="60")
    await_text(process, "-- 0:00 calm", READY_SECONDS)
    children = descendants(process.pid)
    assert len(children) == 10  # eight programs of the control plane, the operator, and what owns them all
    began = time.monotonic()
    assert process.wait(READY_SECONDS) == 1, output(process)
    assert time.monotonic() - began < 150  # without DEMO_SECONDS the load alone takes 300 s
    text = output(process)
    for direction in ("out", "up", "in", "down"):
        assert f"FAILED: not scaled {direction}: " in text
    held = r"not scaled out: the HPA asked for 2 to \d+ replicas; held back by UpdatePolicy"
    assert re.search(held, text), text
    assert "Deployment       patched by no client" in text
    assert text.endswith("To stop everything: make cluster-down\n")
    assert all(map(_exists, children))

    kubeconfig = Path(re.search(r"export KUBECONFIG=(\S+)", text)[1])  # type: ignore[index]
    command = next(line for line in text.splitlines() if line.endswith("describe hvpa web")).split()
    environment = {**os.environ, "KUBECONFIG": str(kubeconfig)}
    shown = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert "Target Ref" in shown.stdout
    api = KubeApi(kubeconfig)
    before = load_of(api)
    wait_for(lambda: load_of(api) != before, 60, "the load goes on")
    holder = api.list("Lease", "hvpa-system")[0]
    wait_for(
        lambda: api.list("Lease", "hvpa-system")[0]["spec"]["renewTime"] != holder["spec"]["renewTime"],
        90,
        "the operator goes on",
    )

    again = demo(KEEP="1")
    assert again.wait(120) == 3, output(again)
    assert f"a control plane runs already, its kubeconfig is {kubeconfig}; " in output(again)
    assert all(map(_exists, children))

    down = take_down(kubeconfig.parents[1])
    assert (down.returncode, down.stderr) == (0, "ended\n")
    await_end_of(children)
    assert output(process) == text  # nothing more after the prompt is back


def load_of(api: KubeApi) -> set[str]:
    """The CPU that the demo's pods are reported to use."""
    return {pod["metadata"]["annotations"][CPU_ANNOTATION] for pod in api.list("Pod", "hvpa-demo")}


def take_down(folder: Path) -> subprocess.CompletedProcess[str]:
    """What `make cluster-down` does, for a control plane that keeps its files in this folder."""
    command = [sys.executable, "-m", "localcluster", "down"]
    environment = {**os.environ, "HVPA_CLUSTER_FOLDER": str(folder)}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120)


@pytest.mark.timeout(300)
def test_an_interrupt_ends_everything(demo: Demo) -> None:
    """The command hands its SIGINT on, as SIGTERM, to the process that owns everything."""
    process = demo(KEEP="1")
    await_text(process, "control plane: ", READY_SECONDS)
    children = descendants(process.pid)
    process.signal(signal.SIGINT)
    assert process.wait(60) == 130, output(process)
    await_end_of(children)


@pytest.mark.timeout(60)
def test_an_option_that_can_not_be_used_ends_with_2_and_starts_nothing(demo: Demo) -> None:
    process = demo(DEMO_SECONDS="soon")
    assert process.wait(50) == 2
    assert output(process).startswith("demo: DEMO_SECONDS=soon: ")
