"""`make demo` on a real node: the beginning of its story, and what it leaves when it is interrupted then."""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from localcluster.client.api import wait_for
from localcluster.process import Process
from tests.e2e.node.leftovers import machine

pytestmark = [pytest.mark.owned_cluster, pytest.mark.usefixtures("real_nodes")]
ROOT = Path(__file__).resolve().parents[3]
UNSET = dict.fromkeys(("KEEP", "DEMO", "DEMO_MODE", "NODES"), "")
STORY = (
    r"nodes: real \(kubelet, containerd, runc\)",
    r"-- 0:00 calm",
    r"^ 0:\d\d +[1-9]\d* +\d+ +\S.* 2/2 +200m +200m +128Mi +0$",
    r">> \d:\d\d scaled out: 2 to \d replicas",
    r"cgroups of \d containers?, running: .*cpu\.cfs_quota_us 20000 to [2-9]\d{4}",
)


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[Process]:
    """The demo, with a short load and without a comparison; it is ended afterwards."""
    environment = {**os.environ, **UNSET, "DEMO_SECONDS": "90", "DEMO_COMPARE": "0"}
    process = Process(
        "demo", [sys.executable, "-m", "demo"], tmp_path / "demo.log", env=environment, cwd=ROOT
    )
    process.start()
    yield process
    process.terminate(60)


@pytest.mark.timeout(300)
def test_running_containers_grow_under_the_load_and_nothing_is_left(demo: Process) -> None:
    def lacks() -> list[str]:
        text = demo.log.read_text()
        patterns = [pattern for pattern in STORY if not re.search(pattern, text, re.MULTILINE)]
        assert demo.alive or not patterns, text
        return patterns

    wait_for(lambda: not lacks(), 200, lambda: f"{lacks()} in:\n{demo.log.read_text()}", interval=0.5)
    demo.signal(signal.SIGINT)
    assert demo.wait(60) == 130
    assert demo.log.read_text().endswith("stopped; nothing is left running\n")
    left = machine(demo.pid)
    assert (left["cgroups"], left["running"]) == ([], [])
