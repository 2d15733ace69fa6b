"""The lines of the demo on real nodes."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace

from demo.real.cluster import RunningContainer
from demo.real.show import COLUMNS, resized, row
from demo.snapshot import WIDTH, Held, Resources, Snapshot, header
from localcluster.node.cgroups import Granted
from localcluster.workloads.traffic import Answers

MIB = 2**20
NOW = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
SMALL = Granted(102, 20_000, 128 * MIB, 30 * MIB)
LARGE = replace(SMALL, shares=209, quota=41_000)
SEEN = Snapshot(3, 2, Resources(100, 64 * MIB), Resources(), asked=200)


def container(granted: Granted, pod: str = "a") -> RunningContainer:
    return RunningContainer(pod, granted, 0)


def test_a_line_has_the_requests_of_the_last_seconds_and_what_is_granted() -> None:
    answers = {second: Answers(second, (5.0, 90.0)) for second in range(7)}
    text = row(answers, [container(SMALL), container(LARGE, "b")], SEEN, 65, NOW)
    assert text.split() == ["1:05", "6", "20", "failed", "failed", "2/3", "200m", "200-410m", "128Mi", "0"]


def test_before_the_first_answer_nothing_is_known() -> None:
    assert row({}, [], SEEN, 0, NOW).split() == ["0:00", "-", "0", "-", "-", "2/3", "200m", "-", "-", "0"]


def test_columns_stand_under_their_names_and_no_line_is_too_wide() -> None:
    long = replace(
        SEEN, held=tuple(Held("down", resource, "StabilizationWindow") for resource in ("cpu", "memory"))
    )
    text = row({0: Answers(0, (5.0,))}, [container(SMALL)], long, 0, NOW)
    names = header(COLUMNS)
    for cell, name in (("5 ms", "P50"), ("200m", "asked"), ("128Mi", "mem max")):
        assert text.index(cell) + len(cell) == names.index(name) + len(name)
    assert len(text) <= WIDTH


class TestResized:
    def test_files_that_have_other_values_are_named(self) -> None:
        assert resized({"a": SMALL, "b": SMALL}, [container(LARGE), container(SMALL, "b")]) == (
            "cgroups of 1 container, running: cpu.cfs_quota_us 20000 to 41000, cpu.shares 102 to 209"
        )

    def test_several_have_a_range(self) -> None:
        more = replace(LARGE, quota=50_000, limit=160 * MIB)
        assert resized({"a": SMALL, "b": SMALL}, [container(LARGE), container(more, "b")]) == (
            "cgroups of 2 containers, running: cpu.cfs_quota_us 20000 to 41000-50000, cpu.shares 102 to 209, "
            "memory.limit_in_bytes 128Mi to 160Mi"
        )

    def test_what_is_used_and_new_containers_are_no_resizes(self) -> None:
        assert resized({"a": SMALL}, [container(replace(SMALL, usage=1)), container(LARGE, "new")]) == ""
