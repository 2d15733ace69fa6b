"""config/samples/web.yaml does what its comments say, whenever the load begins."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.unit.closed_loop.loads import Load
from tests.unit.closed_loop.loop import Loop
from tests.unit.closed_loop.workload import MIB, Shape, Use

pytestmark = pytest.mark.long

ROOT = Path(__file__).resolve().parents[3]
MINUTE = 60.0


@pytest.mark.parametrize("begin", [0, 20, 45, 100, 900])
def test_the_sample_scales_as_it_says_whenever_the_load_begins(begin: int) -> None:
    """Two idle pods get 1000m after `begin` seconds, 2000m 15 minutes later, and 100m after 15 minutes more. HPA and
    VPA have the periods of a real cluster here, and the HPA waits five minutes for new pods."""
    _, hvpa = yaml.safe_load_all((ROOT / "config/samples/web.yaml").read_text())
    second, third = begin + 15 * MINUTE, begin + 30 * MINUTE
    steps = ((third, 100.0), (second, 2000.0), (begin, 1000.0), (0.0, 2.0))
    load = Load("three steps", lambda now: next(total for since, total in steps if now >= since), 5.0)
    use = Use("web", 200, 256 * MIB, memory_base=16 * MIB, memory_share=0)
    loop = Loop(hvpa["spec"], Shape((use,), 2), load)
    for until, expected in (
        (begin + 2 * MINUTE, (8, 200)),
        (second, (8, 200)),
        (second + 7 * MINUTE, (10, 286)),
        (third + 6 * MINUTE, (2, 286)),
    ):
        loop.run(until)
        assert (loop.deployment.replicas, loop.request("web")) == expected, loop.writes
    assert loop.vertical(until=second) == []
