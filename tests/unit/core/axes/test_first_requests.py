"""The requests that a workload had when HVPA first saw it (DESIGN 5.4)."""

from __future__ import annotations

from typing import Any

from builders import build
from tests.unit.core.trajectory.jointly import app, state, value


def base(*containers: dict[str, Any], status: Any = None, **targets: str) -> dict[str, dict[str, str]]:
    objects = state(2, containers, [value("cpu", "1", "1")], {"app": targets}, status=status)
    axes = build.decided(objects).status.axes
    assert axes is not None
    assert axes.vertical is not None
    return axes.vertical.base


def test_at_first_sight_the_requests_are_remembered() -> None:
    assert base(app("700m", "1Gi"), app("50m", name="side"), cpu="2") == {
        "app": {"cpu": "700m", "memory": "1Gi"},
        "side": {"cpu": "50m"},
    }


def test_a_missing_request_is_the_limit_or_the_vpas_target_or_nothing() -> None:
    assert base(app(cpu="3"), cpu="2", memory="2Gi") == {"app": {"cpu": "3", "memory": "2Gi"}}
    limited = build.container("app", {}, {"cpu": "4"})
    assert base(limited, cpu="2") == {"app": {"cpu": "4"}}
    assert base(app(), cpu="0") == {"app": {"cpu": "0"}}


def test_without_a_request_and_a_target_nothing_is_remembered_yet() -> None:
    assert base(app()) == {}


def test_what_was_first_seen_stays_and_what_is_new_is_added() -> None:
    known = {"axes": {"vertical": {"base": {"app": {"cpu": "500m", "memory": "0"}}}}}
    assert base(app("2", "1Gi"), cpu="2", status=known) == {"app": {"cpu": "500m", "memory": "1Gi"}}
    unreadable = {"axes": {"vertical": {"base": {"app": {"cpu": "much"}}}}}
    assert base(app("2"), cpu="2", status=unreadable) == {"app": {"cpu": "2"}}


def test_a_container_that_is_gone_is_forgotten() -> None:
    known = {"axes": {"vertical": {"base": {"old": {"cpu": "500m"}}}}}
    assert base(app("2"), cpu="2", status=known) == {"app": {"cpu": "2"}}
