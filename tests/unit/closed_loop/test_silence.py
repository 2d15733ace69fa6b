"""Nothing is held silently: what differs from the recommendation is done, or reported with a reason and, where there is
one, a time (DESIGN 5.2, 6.2, 8)."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hvpa.core.model import Blocked
from tests.unit.closed_loop import loads
from tests.unit.closed_loop.cases import BLENDS, Case, cases, examples
from tests.unit.closed_loop.loads import DAY, HOUR
from tests.unit.closed_loop.loop import Decided, Loop
from tests.unit.closed_loop.workload import instant

pytestmark = pytest.mark.long

TIMED = {"StabilizationWindow", "MaintenanceWindow", "Measurement"}
"""Reasons that end at a known time."""
OFF = {"updatePolicy": {"updateMode": "Off"}}
WINDOW = {"updatePolicy": {"updateMode": "MaintenanceWindow"}}
NOON = {"begin": "120000+0000", "end": "130000+0000"}
SLOW = {"stabilizationDuration": "20m"}
Fields = tuple[tuple[str, object], ...]
MODES: tuple[tuple[Fields, Fields], ...] = (
    ((), ()),
    ((), (("scaleDown", OFF),)),
    ((("scaleDown", OFF),), ()),
    ((("scaleUp", SLOW), ("scaleDown", SLOW)), (("scaleUp", SLOW), ("scaleDown", SLOW))),
    ((("scaleDown", WINDOW),), (("scaleUp", WINDOW), ("scaleDown", WINDOW))),
)
"""Further fields of the HPA's axis and of the VPA's."""


def silent(record: Decided) -> Iterator[str]:
    """What one decision leaves as it is without a word."""
    decision, view = record.decision, record.decision.replicas
    if view is None:
        return
    horizontal = [entry for entry in decision.blocked if entry.axis == "horizontal"]
    # Where both axes are solved together, a count may wait for sizes that are held, and that is what is reported.
    vpa_active = next(entry for entry in decision.status.conditions if entry.type == "VpaActive")
    waits = decision.blocked or vpa_active.reason == "YoungHistory"
    reasons = waits if decision.joint is not None else horizontal
    if view.recommended != view.target and not reasons:
        yield f"{view.target} replicas, {view.recommended} recommended"
    shared = decision.joint is None and view.target == view.current
    if shared and view.hpa is not None and view.hpa != view.current and not horizontal:
        yield f"{view.current} replicas, {view.hpa} desired by the HPA, recommended {view.recommended}"
    held = {(entry.container, entry.resource) for entry in decision.blocked if entry.axis == "vertical"}
    for name, resources in decision.recommended.items():
        for resource, amount in resources.requests.items():
            if amount != decision.containers[name].requests.get(resource) and (name, resource) not in held:
                yield f"{name} {resource}: {decision.containers[name].requests}, {amount} recommended"
    for entry in decision.blocked:
        yield from _badly_reported(record, entry)
    blocked = next(entry for entry in decision.status.conditions if entry.type == "ScalingBlocked")
    if (blocked.status == "True") != bool(decision.blocked):
        yield f"ScalingBlocked is {blocked.status} while {len(decision.blocked)} changes are held"


def _badly_reported(record: Decided, entry: Blocked) -> Iterator[str]:
    wait = record.decision.recheck_after
    if entry.until is None:
        if entry.reason in TIMED:
            yield f"{entry} has no time"
    elif entry.until <= instant(record.at):
        yield f"{entry} is over"
    elif wait is None or instant(record.at) + wait > entry.until:
        yield f"nobody looks again when {entry} is over"


def check_reported(loop: Loop) -> None:
    problems = [(f"{record.at / HOUR:.2f}h", text) for record in loop.decisions for text in silent(record)]
    assert problems == [], (len(problems), loop.writes)


@pytest.mark.parametrize("blend", BLENDS)
def test_whatever_differs_from_the_recommendation_is_done_or_reported(blend: str) -> None:
    @examples(4)
    @given(cases(blend), st.sampled_from(MODES), st.integers(0, 3))
    def check(case: Case, modes: tuple[Fields, Fields], which: int) -> None:
        hpa, vpa = modes
        load = (
            loads.constant(case.load),
            loads.wave(case.load, 30.0),
            loads.step(case.load, 2 * case.load, 2 * HOUR, 8 * HOUR),
            loads.noise(case.load),
        )[which]
        changed = dataclasses.replace(case, hpa=hpa, vpa=vpa)
        spec = {**changed.loop(load).spec, "maintenanceTimeWindow": NOON}
        check_reported(Loop(spec, case.shape, load).run(DAY))

    check()


@pytest.mark.parametrize("blend", BLENDS)
def test_a_pod_that_never_becomes_ready_is_no_reason_for_silence(blend: str) -> None:
    @examples(3)
    @given(cases(blend, weights=(30, 50)))
    def check(case: Case) -> None:
        broken = case.shape.replicas + 1
        load = loads.step(case.load, 2 * case.load, 3 * HOUR)
        check_reported(case.loop_with(load, lambda number, _: number != broken).run(12 * HOUR))

    check()
