"""`hvpa history`: what changed of an Hvpa, from its Events and its status."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.cli import schema
from tests.unit.cli.api_server import Api
from tests.unit.cli.resizing import hvpa
from tests.unit.cli.support import NOW, Doc, Live

KEPT = (
    "Kubernetes keeps Events for an hour by default (kube-apiserver --event-ttl). The status stores only the last "
    "change of each kind."
)


pytestmark = pytest.mark.usefixtures("at_ten")
SILENT: Doc = {"conditions": [], "desired": None}
"""A status that remembers nothing."""


def event(reason: str, message: str, uid: str = "h", kind: str = "Normal", **fields: Any) -> Doc:
    meta = {"name": f"web.{reason}", "creationTimestamp": "2026-11-21T09:00:00Z"}
    about = {"kind": "Hvpa", "name": "web", "uid": uid}
    report = {"type": kind, "reason": reason, "message": message, **fields}
    return {"apiVersion": "v1", "kind": "Event", "metadata": meta, "involvedObject": about, **report}


def entries(live: Live, *flags: str) -> list[Any]:
    ran = live("history", "web", "-o", "json", *flags)
    assert (ran.code, ran.err) == (0, "")
    schema.check(ran.json, schema.schema_of("history"))
    history: list[Any] = ran.json["entries"]
    return history


def test_events_and_status_are_one_list_newest_last(live: Live, api: Api) -> None:
    steps: Doc = {
        "firstTimestamp": "2026-11-21T09:10:00Z",
        "lastTimestamp": "2026-11-21T09:57:30Z",
        "count": 3,
    }
    api.put([hvpa(), event("ScaledUp", "cpu 500m -> 800m of app\nbecause", **steps)])
    ran = live("history", "web")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == (
        "Hvpa default/web\n"
        "\n"
        "TIME                  FROM    TYPE     WHAT         MESSAGE\n"
        "2026-11-21T09:57:00Z  status  Normal   Desired      decided: 4 replicas of cpu 800m memory 600M\n"
        "2026-11-21T09:57:30Z  Event   Normal   ScaledUp     cpu 500m -> 800m of app because (3 times since"
        " 2026-11-21T09:10:00Z)\n"
        "2026-11-21T09:58:00Z  status  Warning  Ready=False  PodsNotResized: pod web-deferred: no room\n"
        "\n"
        f"{KEPT}\n"
    )


def test_a_change_of_the_mode_names_the_client_that_made_it(live: Live, api: Api) -> None:
    def by(manager: str, time: str, field: str) -> Doc:
        fields: Doc = {"f:spec": {field: {}}}
        return {
            "manager": manager,
            "operation": "Update",
            "time": time,
            "fieldsType": "FieldsV1",
            "fieldsV1": fields,
        }

    paused = hvpa(mode="Paused", status=SILENT)
    paused["metadata"]["managedFields"] = [
        by("kubectl-hvpa", "2026-11-21T09:59:00Z", "f:mode"),
        by("hvpa", "2026-11-21T09:59:30Z", "f:replicas"),
    ]
    api.put([paused])
    (change,) = [entry for entry in entries(live) if entry["source"] == "spec"]
    assert (change["time"], change["reason"]) == ("2026-11-21T09:59:00Z", "Mode")
    assert change["message"] == "mode Paused, set by kubectl-hvpa (Update)"


def test_all_that_the_status_remembers_is_shown(live: Live, api: Api) -> None:
    replicas = [{"current": 2, "wanted": 4}]
    refusal = {"count": 2, "time": "2026-11-21T09:05:00Z", "message": "quota", "changes": replicas}
    target = {"containerName": "app", "target": {"cpu": "800m", "memory": "600M"}}
    failed = "2026-11-21T09:02:00Z"
    status = {
        "desired": {"replicas": 1, "since": "2026-11-21T09:00:00Z", "generation": 1},
        "conditions": [
            {"type": "Ready", "status": "True", "reason": "Reconciled", "lastTransitionTime": NOW},
            {"type": "Paused", "status": "False", "reason": "NotPaused"},
        ],
        "lastScaling": {
            "lastScaleTime": "2026-11-21T09:01:00Z",
            "hpaStatus": {"currentReplicas": 2, "desiredReplicas": 4},
            "vpaStatus": {"recommendation": {"containerRecommendations": [target]}},
        },
        "lastError": {"description": "denied", "lastOperation": "PatchWorkload", "lastUpdateTime": failed},
        "axes": {"horizontal": {"refused": refusal}, "vertical": {}},
    }
    manifest = hvpa(status=status)
    manifest["metadata"]["creationTimestamp"] = "2026-11-20T09:00:00Z"
    api.put([manifest])
    rows = [(each["reason"], each["type"], each["message"]) for each in entries(live)]
    assert rows == [
        ("Created", "Normal", "the Hvpa was created"),
        ("Desired", "Normal", "decided: 1 replica"),
        ("LastScaling", "Normal", "replicas 2 -> 4, cpu 800m memory 600M of app"),
        ("LastError", "Warning", "PatchWorkload: denied"),
        ("Refused", "Warning", "refused at 2026-11-21T09:05:00Z, 2 times in a row: replicas 2 -> 4: quota"),
        ("Ready=True", "Normal", "Reconciled"),
    ]


@pytest.mark.parametrize(
    ("since", "kept"),
    [
        ("30m", ["New", "Desired", "Ready=False"]),
        ("2026-11-21T09:57:30Z", ["Ready=False"]),
        ("1s", []),
        ("2562047h", ["Old", "New", "Desired", "Ready=False"]),
    ],
)
def test_what_is_older_can_be_left_out(live: Live, api: Api, since: str, kept: list[str]) -> None:
    api.put(
        [
            hvpa(),
            event("Old", "long ago", lastTimestamp="2026-11-21T09:20:00Z"),
            event("New", "just now", lastTimestamp="2026-11-21T09:40:00Z"),
        ]
    )
    assert [entry["reason"] for entry in entries(live, "--since", since)] == kept
    assert ("(nothing)" in live("history", "web", "--since", since).out) == (not kept)


@pytest.mark.parametrize(
    ("fields", "time", "count", "first"),
    [
        ({"lastTimestamp": "2026-11-21T09:30:00Z", "count": 1}, "2026-11-21T09:30:00Z", 1, None),
        (
            {
                "eventTime": "2026-11-21T09:20:00.5Z",
                "series": {"count": 7, "lastObservedTime": "2026-11-21T09:40:00Z"},
            },
            "2026-11-21T09:40:00Z",
            7,
            "2026-11-21T09:20:00.500000Z",
        ),
        ({}, "2026-11-21T09:00:00Z", 1, None),
    ],
)
def test_each_way_to_say_when_an_event_was_is_read(
    live: Live, api: Api, fields: Doc, time: str, count: int, first: str | None
) -> None:
    api.put([hvpa(status=SILENT), event("Scaled", "x", **fields)])
    (entry,) = entries(live)
    assert (entry["time"], entry["count"], entry["first"]) == (time, count, first)


def test_an_event_without_a_time_is_left_out(live: Live, api: Api) -> None:
    timeless = event("Scaled", "x")
    del timeless["metadata"]["creationTimestamp"]
    api.put([hvpa(status=SILENT), timeless])
    assert entries(live) == []


def test_events_of_an_earlier_hvpa_of_the_name_are_not_its_own(live: Live, api: Api) -> None:
    api.put([hvpa(status=SILENT), event("Scaled", "x", uid="before")])
    assert entries(live) == []


def test_without_the_right_to_read_events_the_status_is_shown(live: Live, api: Api) -> None:
    api.put([hvpa()])
    api.fail["events"] = 403
    ran = live("history", "web")
    assert ran.code == 0
    assert "Note: Events can't be read: no events for you\n" in ran.out
    assert "PodsNotResized" in ran.out
    api.fail["events"] = 500
    assert live("history", "web").code == 3


def test_a_wrong_time_is_a_wrong_command_line(live: Live) -> None:
    ran = live("history", "web", "--since", "yesterday")
    assert ran.code == 2
    assert "'yesterday' is not a timestamp" in ran.err


def test_an_hvpa_that_is_not_there_is_an_error(live: Live) -> None:
    assert live("history", "web").err == "hvpa: error: Hvpa default/web does not exist\n"
