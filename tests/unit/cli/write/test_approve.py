"""`hvpa approve`, and `hvpa status` of all Hvpas: the changes that wait for approval."""

from __future__ import annotations

import datetime as dt
import getpass
import json
from typing import Any

import pytest

from hvpa.core.gates.approval import ANNOTATION, approved
from hvpa.core.path.path import ResourceKey
from tests.unit.cli import schema
from tests.unit.cli.api_server import Api
from tests.unit.cli.support import Doc, Live

DAY = dt.timedelta(days=1)


def blocked(resource: str, current: str, wanted: str, reason: str = "Approval", direction: str = "up") -> Doc:
    change = {"axis": "vertical", "direction": direction, "container": "app", "resource": resource}
    return {"reason": reason, **change, "current": current, "wanted": wanted}


CPU, MEMORY = blocked("cpu", "500m", "800m"), blocked("memory", "2Gi", "1Gi", direction="down")
HELD = blocked("cpu", "500m", "600m", "MinChange")


def hvpa(name: str = "web", *waits: Doc, mode: str = "Review", **metadata: Any) -> Doc:
    ready = {
        "type": "Ready",
        "status": "True",
        "reason": "HeldBack",
        "message": "m",
        "lastTransitionTime": None,
    }
    return {
        "apiVersion": "autoscaling.k8s.io/v1alpha1",
        "kind": "Hvpa",
        "metadata": {"name": name, **metadata},
        "spec": {"targetRef": {"kind": "Deployment", "name": name}, "mode": mode},
        "status": {"conditions": [ready], "lastBlockedScaling": list(waits)},
    }


def approval(api: Api, name: str = "web") -> Any:
    (found,) = [one for one in api.found("", "hvpas") if one["metadata"]["name"] == name]
    text = found["metadata"].get("annotations", {}).get(ANNOTATION)
    return None if text is None else json.loads(text)


def test_the_sizes_that_wait_are_approved_by_the_user_until_tomorrow(live: Live, api: Api) -> None:
    api.put([hvpa("web", CPU, MEMORY, HELD, annotations={"team": "a"})])
    before = dt.datetime.now(dt.UTC)
    ran = live("approve", "web")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("Hvpa default/web: approved until ")
    assert ran.out.endswith(": app cpu 500m -> 800m, app memory 2Gi -> 1Gi\n")
    written = approval(api)
    assert written["sizes"] == {"app": {"cpu": "800m", "memory": "1Gi"}}
    assert written["by"] == "ann@example.com"
    assert "only" not in written
    until = dt.datetime.fromisoformat(written["until"])
    assert before + DAY - dt.timedelta(seconds=1) <= until <= dt.datetime.now(dt.UTC) + DAY
    annotations = api.found("", "hvpas")[0]["metadata"]["annotations"]
    assert annotations["team"] == "a"
    assert approved(annotations).requests[ResourceKey("app", "cpu")] == 800


def test_up_only_approves_raises(live: Live, api: Api) -> None:
    api.put([hvpa("web", CPU, MEMORY), hvpa("down", MEMORY)])
    assert live("approve", "web", "--up-only", "--until", "7d").code == 0
    assert approval(api)["sizes"] == {"app": {"cpu": "800m"}}
    assert approval(api)["only"] == "up"
    assert live("approve", "down", "--up-only").out == "Hvpa default/down: no raise waits for approval\n"
    assert approval(api, "down") is None


@pytest.mark.parametrize(
    ("mode", "waits", "why"),
    [
        ("Review", [HELD], "no change waits for approval"),
        ("Apply", [CPU], "needs no approval: its mode is Apply"),
        ("Recommend", [], "needs no approval: its mode is Recommend"),
    ],
)
def test_what_needs_no_approval_gets_none(
    live: Live, api: Api, mode: str, waits: list[Doc], why: str
) -> None:
    api.put([hvpa("web", *waits, mode=mode)])
    ran = live("approve", "web")
    assert (ran.code, ran.out) == (0, f"Hvpa default/web: {why}\n")
    assert approval(api) is None


def test_an_approval_is_revoked(live: Live, api: Api) -> None:
    api.put([hvpa("web", CPU)])
    assert live("approve", "web").code == 0
    assert live("approve", "web", "--revoke").out == "Hvpa default/web: revoked its approval\n"
    assert approval(api) is None
    assert live("approve", "web", "--revoke").out == "Hvpa default/web: has no approval\n"


def test_an_api_server_that_does_not_say_who_asks(live: Live, api: Api) -> None:
    api.user = ""
    api.put([hvpa("web", CPU)])
    assert live("approve", "--all").code == 0
    assert approval(api)["by"] == getpass.getuser()


def test_a_user_without_a_name_may_approve(live: Live, api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a container with a user that /etc/passwd does not have."""

    def no_name() -> str:
        raise KeyError("getpwuid(): uid not found: 1000640000")

    monkeypatch.setattr(getpass, "getuser", no_name)
    api.user = ""
    api.put([hvpa("web", CPU)])
    assert live("approve", "web").code == 0
    assert "by" not in approval(api)


def test_a_new_approval_replaces_the_former(live: Live, api: Api) -> None:
    api.put([hvpa("web", CPU)])
    live("approve", "web")
    api.found("", "hvpas")[0]["status"]["lastBlockedScaling"] = [MEMORY]
    assert live("approve", "web").code == 0
    assert approval(api)["sizes"] == {"app": {"memory": "1Gi"}}


@pytest.mark.parametrize(
    ("flags", "why"),
    [
        (("web", "--until", "0s"), "must be more than 0, and at most 90d"),
        (("web", "--until", "91d"), "must be more than 0, and at most 90d"),
        (("web", "--until", "9999d"), "must be more than 0, and at most 90d"),
        (("web", "--until", "soon"), "is not a duration"),
        (("web", "--revoke", "--up-only"), "use either --revoke or --up-only, not both"),
        ((), "name Hvpas, or use --all or --selector"),
    ],
)
def test_a_command_line_that_makes_no_sense_is_an_error(
    live: Live, api: Api, flags: tuple[str, ...], why: str
) -> None:
    ran = live("approve", *flags)
    assert ran.code == 2
    assert why in ran.err
    assert api.asked == []


# --- hvpa status -----------------------------------------------------------------------------------------------------
def test_status_of_all_lists_what_waits_for_approval(live: Live, api: Api) -> None:
    api.put([hvpa("web", CPU, MEMORY, HELD), hvpa("api", mode="Apply")])
    api.put([hvpa("db", MEMORY)], "shop")
    lines = live("status", "-A").out.splitlines()
    assert [line.split()[:5] for line in lines] == [
        ["NAMESPACE", "NAME", "MODE", "READY", "REASON"],
        ["default", "api", "Apply", "True", "HeldBack"],
        ["default", "web", "Review", "True", "HeldBack"],
        ["shop", "db", "Review", "True", "HeldBack"],
    ]
    assert [line.split("HeldBack")[-1].strip() for line in lines[1:]] == [
        "-",
        "app cpu 500m -> 800m, app memory 2Gi -> 1Gi",
        "app memory 2Gi -> 1Gi",
    ]
    assert "shop" not in live("status").out
    assert live("status", "-n", "empty").out == "There are no Hvpas.\n"


def test_status_of_all_as_json(live: Live, api: Api) -> None:
    bare = hvpa("bare") | {"spec": {}, "status": {}}
    api.put([hvpa("web", CPU), bare])
    ran = json.loads(live("status", "-A", "-o", "json").out)
    schema.check(ran, schema.schema_of("status"))
    first, second = ran["hvpas"]
    assert (first["name"], first["mode"], first["ready"], first["waitsForApproval"]) == (
        "bare",
        None,
        None,
        [],
    )
    assert (second["namespace"], second["mode"], second["ready"]["status"]) == ("default", "Review", "True")
    assert [entry["wanted"] for entry in second["waitsForApproval"]] == ["800m"]


@pytest.mark.parametrize(
    ("flags", "why"),
    [
        (("web", "-A"), "use either NAME or --all-namespaces, not both"),
        (("--watch",), "--watch requires NAME"),
        (("-A", "-n", "shop"), "use either --namespace or --all-namespaces, not both"),
    ],
)
def test_flags_of_status_that_exclude_each_other(live: Live, flags: tuple[str, ...], why: str) -> None:
    ran = live("status", *flags)
    assert ran.code == 2
    assert why in ran.err


@pytest.mark.parametrize(("code", "why"), [(404, "the CRD is not installed"), (403, "no hvpas for you")])
def test_status_of_all_without_hvpas_to_list(live: Live, api: Api, code: int, why: str) -> None:
    api.fail["hvpas"] = code
    ran = live("status", "-A")
    assert ran.code == 1
    assert why in ran.err
