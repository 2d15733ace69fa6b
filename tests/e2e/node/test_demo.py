"""`make demo` on a real node: the beginning of its story, what it leaves when it is interrupted then, and its end."""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
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


@contextmanager
def demo(folder: Path, **options: str) -> Iterator[Process]:
    """The demo with these options, without a comparison; it is ended afterwards."""
    environment = {**os.environ, **UNSET, "DEMO_COMPARE": "0", **options}
    argv: list[str | Path] = [sys.executable, "-m", "demo"]
    process = Process("demo", argv, folder / "demo.log", env=environment, cwd=ROOT)
    process.start()
    try:
        yield process
    finally:
        process.terminate(60)


@pytest.mark.at_length
@pytest.mark.timeout(300)
def test_running_containers_grow_under_the_load_and_nothing_is_left(tmp_path: Path) -> None:
    with demo(tmp_path, DEMO_SECONDS="90") as process:

        def lacks() -> list[str]:
            text = process.log.read_text()
            patterns = [pattern for pattern in STORY if not re.search(pattern, text, re.MULTILINE)]
            assert process.alive or not patterns, text
            return patterns

        wait_for(lambda: not lacks(), 200, lambda: f"{lacks()} in:\n{process.log.read_text()}", interval=0.5)
        process.signal(signal.SIGINT)
        assert process.wait(60) == 130
        assert process.log.read_text().endswith("stopped; nothing is left running\n")
        left = machine(process.pid)
        assert (left["cgroups"], left["running"]) == ([], [])


@pytest.mark.at_length
@pytest.mark.timeout(600)
@pytest.mark.parametrize("kind", ["in-place", "fast"])
def test_the_story_is_told_to_its_end(tmp_path: Path, kind: str) -> None:
    with demo(tmp_path, DEMO=kind) as process:
        code = process.wait(500)
        text = process.log.read_text()
        assert (code, "Good: scaled out, up, in and down, and back where it began" in text) == (0, True), text
        assert ("fast signal" in text) == (kind == "fast")
