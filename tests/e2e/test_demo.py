"""`python -m demo` as a user runs it: it scales all four ways and ends with 0, ends with 1 where nothing may
be scaled, is left running on request, and leaves no process behind in any case."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.e2e.world.kube import KubeApi, wait_for
from tests.e2e.world.process import Process

ROOT = Path(__file__).resolve().parents[2]
# The load's 200 s, the start, and as much again for a machine that is busy.
WHOLE_SECONDS = 480.0
READY_SECONDS = 180.0
Demo = Callable[..., Process]


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[Demo]:
    """Starts `python -m demo` with some options; what still runs afterwards is ended."""
    if os.environ.get("HVPA_E2E_KUBECONFIG"):
        pytest.skip("the demo starts a control plane of its own")
    started: list[Process] = []

    def start(**options: str) -> Process:
        environment = {**os.environ, "KEEP": "", "DEMO_MODE": "", "DEMO_SECONDS": "", **options}
        log = tmp_path / f"demo-{len(started)}.log"
        process = Process("demo", [sys.executable, "-m", "demo"], log, env=environment, cwd=ROOT)
        process.start()
        started.append(process)
        return process

    yield start
    for process in started:
        process.terminate(30)


def said(process: Process) -> str:
    """All that the demo has printed."""
    return process.log.read_text()


def await_text(process: Process, text: str, seconds: float) -> None:
    """Wait until the demo has printed a text; fails at once when it ends before."""

    def printed() -> bool:
        if text not in said(process) and not process.alive:
            pytest.fail(f"the demo ended with {process.returncode}:\n{said(process)}")
        return text in said(process)

    wait_for(printed, seconds, lambda: f"the demo says {text!r}; it said:\n{said(process)}", interval=0.5)


def descendants(pid: int) -> set[int]:
    """The processes that a process started, and theirs."""
    listed = subprocess.run(
        ["ps", "-A", "-o", "pid=,ppid="], capture_output=True, text=True, check=True
    ).stdout
    parents = {int(child): int(parent) for child, parent in map(str.split, listed.splitlines())}
    found = {pid}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return found - {pid}


def await_end_of(pids: set[int]) -> None:
    """Wait until none of these processes is left."""

    def left() -> list[int]:
        return [pid for pid in pids if _exists(pid)]

    wait_for(lambda: not left(), 10, lambda: f"processes {left()} have ended")


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.timeout(int(WHOLE_SECONDS) + 60)
def test_the_workload_is_scaled_out_up_in_and_down(demo: Demo) -> None:
    process = demo()
    await_text(process, "-- 0:00 calm", READY_SECONDS)
    children = descendants(process.pid)
    assert len(children) == 8  # seven programs of the control plane, and the operator
    code = process.wait(WHOLE_SECONDS)
    text = said(process)
    assert code == 0, text
    assert "Good: scaled out, up, in and down" in text
    assert "FAILED" not in text
    for direction in ("out", "up", "in", "down"):
        assert re.search(rf">> \d+:\d\d scaled {direction}: ", text), direction
        assert re.search(rf"scaled {direction} +(once|[1-9]\d* times)", text), direction
    assert re.search(
        r"Deployment +patched \d+ times by system:serviceaccount:hvpa-system:[-a-z]+$", text, re.M
    )
    assert re.search(r"HPA's wish +written \d+ times by \S+:horizontal-pod-autoscaler$", text, re.M)
    assert re.search(r"VPA's target +written \d+ times by vpa-recommender$", text, re.M)
    assert max(map(len, text.splitlines())) <= 130
    await_end_of(children)


@pytest.mark.timeout(300)
def test_with_every_mode_off_it_ends_with_1_and_says_why(demo: Demo) -> None:
    process = demo(DEMO_MODE="Off", DEMO_SECONDS="60")
    await_text(process, "-- 0:00 calm", READY_SECONDS)
    children = descendants(process.pid)
    began = time.monotonic()
    code = process.wait(120)
    text = said(process)
    assert code == 1, text
    assert time.monotonic() - began < 90
    for direction in ("out", "up", "in", "down"):
        assert f"FAILED: not scaled {direction}: " in text
    assert re.search(
        r"not scaled out: the HPA asked for 2 to \d+ replicas; held back by UpdatePolicy", text
    ), text
    assert "Deployment       patched by nobody" in text
    await_end_of(children)


@pytest.mark.timeout(300)
def test_it_is_left_running_on_request_until_it_is_interrupted(demo: Demo) -> None:
    process = demo(KEEP="1", DEMO_MODE="Off", DEMO_SECONDS="20")
    await_text(process, "Left running", READY_SECONDS)
    await_text(process, "Ctrl-C here", 10)
    kubeconfig = Path(re.search(r"KUBECONFIG=(\S+)", said(process))[1])  # type: ignore[index]
    assert KubeApi(kubeconfig).get("Hvpa", "web", "hvpa-demo")["status"]["conditions"]
    command = next(line for line in said(process).splitlines() if line.endswith("describe hvpa web")).split()
    shown = subprocess.run(
        [*command, f"--kubeconfig={kubeconfig}"], capture_output=True, text=True, check=True
    )
    assert "Target Ref" in shown.stdout
    children = descendants(process.pid)
    assert len(children) == 8
    process.signal(signal.SIGINT)
    assert process.wait(30) == 1, said(process)  # what it would have been without KEEP
    await_end_of(children)
    assert not kubeconfig.exists()


@pytest.mark.timeout(300)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_everything(demo: Demo, number: signal.Signals) -> None:
    process = demo()
    await_text(process, "operator: process", READY_SECONDS)
    children = descendants(process.pid)
    process.signal(number)
    assert process.wait(30) == 130, said(process)
    await_end_of(children)


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    ("name", "value"), [("DEMO_SECONDS", "soon"), ("DEMO_MODE", "Maybe"), ("KEEP", "perhaps")]
)
def test_an_option_that_can_not_be_used_ends_with_2_and_starts_nothing(
    demo: Demo, name: str, value: str
) -> None:
    process = demo(**{name: value})
    assert process.wait(50) == 2
    assert said(process).startswith(f"demo: {name}={value}: ")
