"""The rows of the table: state, reason and remedy by what the operator last reported."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hvpa.core.report.remedies import REMEDIES
from hvpa.kube.objects.resources import HVPAS
from hvpa_lab.dashboard import table as module
from hvpa_lab.dashboard.table import PROBLEM, row
from tests.unit.cli.api_server import Api
from tests.unit.cli.resizing import hvpa
from tests.unit.cli.support import Doc
from tests.unit.lab.dashboard.harness import Watched, serving

AT = "2026-11-21T09:58:00Z"


def made(kind: str = "InPlace", /, **status: Any) -> Doc:
    """The row of an Hvpa with this status, and this update strategy."""
    document = hvpa(kind, status=status)
    document["metadata"]["namespace"] = "default"
    return row(HVPAS.decode(json.dumps(document).encode()).read())


def conditions(*given: tuple[str, str, str]) -> list[Doc]:
    """Conditions by type, status and reason."""
    return [
        {"type": kind, "status": status, "reason": reason, "message": "m", "lastTransitionTime": AT}
        for kind, status, reason in given
    ]


READY = ("Ready", "True", "Reconciled")


def test_the_update_strategy_is_the_one_that_the_operator_uses() -> None:
    """It knows what the API server can do, and whether pods could not be resized."""
    assert made()["updateStrategy"] == "InPlace"
    assert made(updateStrategy="Rollout")["updateStrategy"] == "Rollout"


def test_the_size_is_the_desired_one_with_names_if_there_are_several_containers() -> None:
    app = {"name": "app", "requests": {"cpu": "432m", "memory": "240Mi"}}
    assert made(desired={"replicas": 3, "since": AT, "containers": [app]})["size"] == "cpu 432m, memory 240Mi"
    two = [app, {"name": "side", "requests": {"cpu": "50m"}}]
    size = made(desired={"replicas": 3, "since": AT, "containers": two})["size"]
    assert size == "app: cpu 432m, memory 240Mi; side: cpu 50m"
    assert made(desired={"replicas": 3, "since": AT})["size"] is None
    assert (
        made(desired=None, recommended={"replicas": 3, "containers": [app]})["size"]
        == "cpu 432m, memory 240Mi"
    )


def test_the_remedy_is_of_the_update_strategy() -> None:
    assert made()["remedy"] == REMEDIES["PodsNotResized, InPlace"]
    assert made("InPlaceOrRollout")["remedy"] == REMEDIES["PodsNotResized"]


@pytest.mark.parametrize(
    ("reported", "state", "reason"),
    [
        pytest.param([READY], "ready", "Reconciled", id="all is well"),
        pytest.param(
            [("Ready", "True", "HeldBack")], "ready", "HeldBack", id="what its own gates hold is well"
        ),
        pytest.param([("Ready", "False", "TargetNotFound")], "attention", "TargetNotFound", id="no target"),
        pytest.param([READY, ("Contested", "True", "SetBack")], "attention", "SetBack", id="another client"),
        pytest.param([("Ready", "True", "Saturated")], "attention", "Saturated", id="saturated"),
        pytest.param([("Ready", "False", "HpaInactive")], "starting", "HpaInactive", id="a normal start"),
        pytest.param([READY, ("Paused", "True", "Paused")], "paused", "Paused", id="paused"),
        pytest.param(
            [("Ready", "False", "TargetNotFound"), ("Paused", "True", "Paused")],
            "attention",
            "TargetNotFound",
            id="paused, and something is wrong",
        ),
        pytest.param([], "unknown", "NotReported", id="no operator has looked at it"),
    ],
)
def test_the_state_and_its_reason(reported: list[tuple[str, str, str]], state: str, reason: str) -> None:
    row = made(conditions=conditions(*reported))
    assert (row["state"], row["reason"]) == (state, reason)
    assert (row["remedy"] is not None) == (state == "attention")
    assert row["since"] == (AT if reported else None)


def test_a_container_that_starves_needs_action_although_its_gates_are_the_users_own() -> None:
    held = {
        "axis": "vertical",
        "direction": "up",
        "container": "app",
        "resource": "memory",
        "reason": "UpdatePolicy",
    }
    status = {"overrideScaleUpStabilization": True, "lastBlockedScaling": [held]}
    row = made(conditions=conditions(("Ready", "True", "HeldBack")), **status)
    assert (row["state"], row["reason"], row["message"]) == (
        "attention",
        "Starving",
        "out of memory: app ? -> ? is held back by UpdatePolicy",
    )


def test_memory_that_ran_out_comes_before_cpu_that_is_short() -> None:
    def held(resource: str, current: str, wanted: str) -> dict[str, str]:
        sizes = {"resource": resource, "current": current, "wanted": wanted}
        return {"axis": "vertical", "direction": "up", "container": "app", "reason": "Paused", **sizes}

    short = held("cpu", "1", "2")
    paused = conditions(("Ready", "True", "Paused"), ("Paused", "True", "Paused"))
    row = made(conditions=paused, lastBlockedScaling=[short])
    assert (row["state"], row["reason"]) == ("attention", "ShortOfCpu")
    assert row["message"].endswith("app 1 -> 2 is held back by Paused")
    status = {
        "overrideScaleUpStabilization": True,
        "lastBlockedScaling": [short, held("memory", "1Gi", "2Gi")],
    }
    assert made(conditions=paused, **status)["reason"] == "Starving"


def test_a_size_that_was_taken_back_has_its_reason_and_its_time() -> None:
    held = {
        "axis": "vertical",
        "direction": "up",
        "container": "app",
        "resource": "cpu",
        "current": "1",
        "wanted": "4",
        "reason": "RolledBack",
        "until": AT,
    }
    record = {"count": 1, "time": AT, "message": "pod web-0: the kubelet says Infeasible"}
    status = {"lastBlockedScaling": [held], "rolledBack": record}
    row = made(conditions=conditions(("Ready", "True", "HeldBack")), **status)
    assert (row["state"], row["reason"]) == ("attention", "RolledBack")
    assert row["message"] == (
        f"rolled back: pod web-0: the kubelet says Infeasible; not tried again: app cpu 1 -> 4 until {AT}"
    )
    assert "troubleshooting" not in row["remedy"]


def test_a_paused_hvpa_is_resumed_by_its_own_name() -> None:
    row = made(conditions=conditions(("Paused", "True", "Paused")))
    assert row["remedy"] is None or "NAME" not in row["remedy"]


def test_a_row_has_replicas_what_is_held_and_how_far_pods_are() -> None:
    held = {
        "axis": "vertical",
        "direction": "down",
        "container": "app",
        "resource": "cpu",
        "current": "1",
        "wanted": "2",
    }
    blocked = [{**held, "reason": "Rollout"}, {**held, "resource": "memory", "reason": "Rollout"}]
    row = made(replicas=3, lastBlockedScaling=blocked)
    assert (row["replicas"], row["desired"], row["held"]) == (3, 4, ["Rollout"])
    assert (row["target"], row["blend"], row["resized"]) == ("Deployment web", "Additive", "1/4")


def test_a_spec_that_can_not_be_read_has_a_row() -> None:
    document = {**hvpa(targetRef=7), "metadata": {"name": "web", "namespace": "x"}}
    entry = row(HVPAS.decode(json.dumps(document).encode()).read())
    assert (entry["target"], entry["blend"], entry["name"]) == (None, None, "web")


async def test_rows_follow_the_cluster(tmp_path: Path) -> None:
    server = Watched(Api())
    server.api.put([hvpa()])
    async with serving(server, tmp_path) as (client, _), client.stream("/api/hvpas") as rows:
        await rows.until(lambda parts: parts.get("default/web", {}).get("reason") == "PodsNotResized")
        assert rows.first == {"scope": ""}
        server.change("MODIFIED", hvpa(status={"conditions": conditions(READY)}))
        await rows.until(lambda parts: parts["default/web"]["reason"] == "Reconciled")
        other = {**hvpa(), "metadata": {"name": "other", "uid": "o"}}
        server.change("ADDED", other, "shop")
        await rows.until(lambda parts: "shop/other" in parts)
        server.change("DELETED", hvpa())
        await rows.until(lambda parts: parts["default/web"] is None)


async def test_the_rows_of_one_namespace(tmp_path: Path) -> None:
    server = Watched(Api())
    server.api.put([hvpa()])
    server.api.put([hvpa()], "shop")
    async with serving(server, tmp_path) as (client, _):
        async with client.stream("/api/hvpas?namespace=shop") as rows:
            await rows.until(lambda parts: "shop/web" in parts)
        assert "default/web" not in rows.parts


async def test_a_watch_that_fails_is_reported_and_so_is_one_that_works_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LOOK_EVERY", 0.02)
    server = Watched(Api())
    server.api.fail = {"hvpas": 403}
    async with serving(server, tmp_path) as (client, _), client.stream("/api/hvpas") as rows:
        await rows.until(lambda parts: parts.get(PROBLEM))
        assert "can't be watched, so this may be out of date: 403" in rows.parts[PROBLEM]
        server.api.fail = {}
        await rows.until(lambda parts: PROBLEM in parts and parts[PROBLEM] is None)


async def test_without_the_crd_that_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LOOK_EVERY", 0.02)
    monkeypatch.setattr("hvpa.kube.cache.reflector.SECOND_LOOK", 0.0)
    server = Watched(Api())
    server.api.fail = {"hvpas": 404}
    async with serving(server, tmp_path) as (client, _), client.stream("/api/hvpas") as rows:
        await rows.until(lambda parts: "CRD is not installed" in (parts.get(PROBLEM) or ""))
