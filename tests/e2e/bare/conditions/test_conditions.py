"""Walks the table of reasons: each from its true cause on an API server to what `kubectl get` shows, to the status, the
Events, `hvpa explain` and the log of the operator, and back to healthy. The rows are in `tests/e2e/bare/conditions`."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from hvpa.api.objects.read_models import Meta
from hvpa.cli.main import main
from hvpa.core.report.events import PASSING
from hvpa.core.report.remedies import remedy
from localcluster.client.api import Json
from localcluster.controlplane.controlplane import ControlPlane
from localcluster.operator.operator import Operator
from localcluster.workloads.bare_manifests import merged, weight
from localcluster.workloads.scenario import Scenario, new_namespace
from tests.e2e.bare.conditions.row import HEALTHY, Row, content_again
from tests.e2e.bare.conditions.table import ROWS
from tests.reasons import GATES

PERIOD = ("--vpa-recommender-interval", "1s")
"""A recommendation is stale after three seconds."""


class Walk(NamedTuple):
    """The control plane, an operator for one namespace, and that namespace."""

    plane: ControlPlane
    operator: Operator
    space: str


@pytest.fixture(scope="module")
def walk(plane: ControlPlane, account: Path) -> Iterator[Walk]:
    """One operator for all rows."""
    space = new_namespace(plane.api)
    with Operator(plane, account, "--log-level", "debug", "--namespace", space, *PERIOD) as operator:
        yield Walk(plane, operator, space)


class Explained(NamedTuple):
    """Exit code and output of `hvpa explain`. The command runs in this process: another one takes a second to start."""

    code: int
    output: str
    errors: str


class Seen(NamedTuple):
    """What is to be seen of an Hvpa: columns of `kubectl get -o wide`, conditions (type: status, reason, message),
    Events (type, reason, message), and the answer of `hvpa explain`."""

    columns: dict[str, str]
    conditions: dict[str, tuple[str, str, str]]
    events: list[tuple[str, str, str]]
    explained: Explained


def seen(walk: Walk, scenario: Scenario) -> Seen:
    """What is to be seen now."""
    name, api = scenario.name, scenario.api
    flags = ("-n", scenario.namespace, "--kubeconfig", str(walk.plane.kubeconfig), "-o", "json", *PERIOD)
    return Seen(
        api.columns("Hvpa", name, scenario.namespace),
        by_type(scenario.status["conditions"]),
        [(event["type"], event["reason"], event["message"]) for event in scenario.events()],
        explain(name, *flags),
    )


def explain(*args: str) -> Explained:
    """What `hvpa explain` prints."""
    output, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
        code = main(["explain", *args])
    return Explained(code, output.getvalue(), errors.getvalue())


def logged(walk: Walk, scenario: Scenario) -> list[tuple[str, str]]:
    """Level and text of the log's lines about conditions of an Hvpa."""
    return [
        (line["level"], line["event"])
        for line in walk.operator.log_lines()
        if (line.get("namespace"), line.get("name")) == (scenario.namespace, scenario.name)
        and "condition" in line
    ]


def named(scenario: Scenario) -> Meta:
    """The Hvpa, as remedies name it."""
    return Meta(name=scenario.name, namespace=scenario.namespace)


def warnings(walk: Walk, scenario: Scenario) -> list[str]:
    """The reasons of the log's warnings, each of which ends with the remedy of its reason."""
    texts = [text for level, text in logged(walk, scenario) if level == "warning"]
    reasons = [text.partition(":")[0] for text in texts]
    for reason, text in zip(reasons, texts, strict=True):
        assert text.endswith(f"{remedy(reason, named(scenario))}.")
    return sorted(reasons)


def is_over(walk: Walk, scenario: Scenario) -> list[str]:
    """The reasons that are over by the log."""
    texts = [text for level, text in logged(walk, scenario) if level == "info"]
    return sorted(text.partition(" is over: ")[0] for text in texts)


def reports(walk: Walk, scenario: Scenario, row: Row) -> None:
    """All programs say what the row expects, and the log has a warning for each reason to act on."""
    for condition in row.conditions:
        scenario.await_condition(*condition)
    expected = [("Warning", reason, remedy(reason, named(scenario))) for reason in row.to_act]
    if row.gate in GATES - PASSING:
        expected.append(("Normal", "ScalingBlocked", f"held by {row.gate}"))
    for _, reason, text in expected:
        scenario.await_event(reason, text)
    assert warnings(walk, scenario) == sorted(row.to_act)

    scenario.soon(lambda: shows(seen(walk, scenario), row, expected), f"shown: {row.ready}, {row.gate}")


def shows(shown: Seen, row: Row, expected: list[tuple[str, str, str]]) -> bool:
    """Columns, conditions and `hvpa explain` say what the row expects, and `expected` is among the Events. Between one
    request and the next the operator may have written another time or count: then all are sent again."""
    columns = {"READY": row.ready[0], "REASON": row.ready[1], "BLOCKED": row.gate, **row.columns}
    assert columns.items() <= shown.columns.items(), shown.columns
    for kind, status, reason in row.conditions:
        assert shown.conditions[kind][:2] == (status, reason)
    assert any(row.text in message for _, _, message in shown.conditions.values()), shown.conditions
    for kind, reason, text in expected:
        assert [message for *what, message in shown.events if what == [kind, reason] and text in message]
    explains(shown, row)
    return True


def explains(shown: Seen, row: Row) -> None:
    """`hvpa explain` says of the conditions what the status says."""
    answer = shown.explained
    if "InvalidSpec" in row.reasons:
        assert (answer.code, row.text in answer.errors) == (1, True), answer.errors
        return
    assert answer.code == 0, answer.errors
    explained = json.loads(answer.output)
    assert by_type(explained["reported"]["conditions"]) == shown.conditions
    if "WriteFailed" in row.reasons:  # a write of the operator, which `explain` does not try
        assert row.text in explained["reported"]["lastError"]["description"]
        assert [difference["reported"] for difference in explained["differences"]] == ["False WriteFailed"]
    else:
        assert by_type(explained["conditions"]) == shown.conditions


def by_type(conditions: list[Json]) -> dict[str, tuple[str, str, str]]:
    return {
        condition["type"]: (condition["status"], condition["reason"], condition["message"])
        for condition in conditions
    }


def is_healthy(walk: Walk, scenario: Scenario, row: Row) -> None:
    """Nothing is left of the reason but one line of the log for each reason to act on, which says that it is over."""
    for condition in HEALTHY:
        scenario.await_condition(*condition)
    assert "lastError" not in scenario.status
    scenario.soon(
        lambda: is_over(walk, scenario) == sorted(row.to_act), f"the log says that {row.to_act} is over"
    )
    assert warnings(walk, scenario) == sorted(row.to_act), "none is repeated"
    scenario.soon(lambda: shows_health(seen(walk, scenario)), "shown: healthy")


def shows_health(shown: Seen) -> bool:
    """All programs say that all is well. (As in `shows`, the operator may write between one program and the next.)"""
    assert (shown.columns["READY"], shown.columns["BLOCKED"]) == ("True", "NotBlocked")
    assert {(kind, *condition[:2]) for kind, condition in shown.conditions.items()} == set(HEALTHY)
    assert by_type(json.loads(shown.explained.output)["conditions"]) == shown.conditions
    return True


@pytest.mark.parametrize("row", ROWS, ids=[row.name for row in ROWS])
def test_a_reason_comes_with_its_cause_and_goes_with_it(walk: Walk, row: Row) -> None:
    scenario = Scenario(
        walk.plane.api, walk.space, changes=merged(weight(50), dict(row.changes)), **row.start
    )
    scenario.create(wait=False)
    content_again(scenario)
    for condition in HEALTHY:
        scenario.await_condition(*condition)
    assert logged(walk, scenario) == [], "a start is nothing to act on"
    row.cause(scenario)
    reports(walk, scenario, row)
    row.cure(scenario)
    is_healthy(walk, scenario, row)
    scenario.delete()
