"""What `hvpa explain` makes of each input of `tests/cases`, held against the expectation in its first document."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any, Final

import pytest

from hvpa.api.values.quantity import parse_cpu, parse_memory
from hvpa.api.values.timestamp import parse_timestamp
from tests.unit.cli.support import Ran, Shell, plain_documents

CASES = Path(__file__).parents[2] / "cases"
FILES = sorted(CASES.glob("*.yaml"))
OPEN: Final[dict[str, str]] = {}
"""Cases that still fail, by number, each with the reason. One that passes fails the run: take it out here."""
_NEAR: Final = {"cpu": (parse_cpu, 1), "memory": (parse_memory, 1000)}
"""How each resource is read, and how far a value may be off: 1 millicore, 1 kilobyte."""
_SECOND: Final = dt.timedelta(seconds=1)

Doc = dict[str, Any]


def _params() -> list[Any]:
    marks = {
        number: pytest.mark.xfail(reason=reason, strict=True, raises=AssertionError)
        for number, reason in OPEN.items()
    }
    return [
        pytest.param(path, id=path.stem, marks=[marks[number]] if (number := path.stem[:3]) in marks else [])
        for path in FILES
    ]


@pytest.mark.parametrize("path", _params())
def test_a_case_is_decided_as_expected(shell: Shell, path: Path) -> None:
    case = plain_documents(path)[0]
    assert case["kind"] == "Case"
    _, _, objects = path.read_text(encoding="utf-8").partition("\n---\n")
    raw = case.get("rawInput") or objects
    ran = shell.run("explain", "-f", shell.file(raw), "--now", case["now"], "-o", "json")
    faults = list(differences(case["expect"], ran))
    assert not faults, "\n".join(faults)


def test_each_open_case_is_there() -> None:
    assert set(OPEN) <= {path.stem[:3] for path in FILES}


# --- the comparison ---------------------------------------------------------------------------------------------------
def differences(expect: Doc, ran: Ran) -> list[str]:
    """What differs from the expectation, a line each."""
    unknown = sorted(expect.keys() - COMPARED.keys() - _OUTPUT.keys() - {"exit"})
    lines = [f"unknown field of expect: {field}" for field in unknown]
    if ran.code != expect.get("exit", 0):
        return [*lines, f"exit {ran.code}, not {expect.get('exit', 0)}: {ran.err}"]
    for field, check in _OUTPUT.items():
        if field in expect:
            lines += check(expect[field], ran)
    if ran.code == 0:
        for field, compare in COMPARED.items():
            if field in expect:
                lines += compare(expect[field], ran.json)
    return lines


def _equal(field: str) -> Any:
    def compare(wanted: Any, output: Doc) -> list[str]:
        pairs = wanted.items() if isinstance(wanted, dict) else [(None, wanted)]
        return [
            f"{field} {key}: {value!r} is wanted, not {got!r}"
            for key, value in pairs
            if (got := output[field] if key is None else output[field].get(key)) != value
        ]

    return compare


def _containers(wanted: Doc, output: Doc) -> list[str]:
    lines = []
    for name, resources in wanted.items():
        for kind, values in resources.items():
            present = output["containers"].get(name, {}).get(kind, {})
            lines += [
                f"{name} {kind} {resource}: {value!r} is wanted, not {present.get(resource)!r}"
                for resource, value in values.items()
                if not _is_near(resource, value, present.get(resource))
            ]
    return lines


def _is_near(resource: str, wanted: Any, got: Any) -> bool:
    if wanted is None or got is None:
        return wanted is got
    parse, tolerance = _NEAR[resource]
    return abs(parse(wanted) - parse(got)) <= tolerance


_KEYS: Final = ("axis", "direction", "reason", "container", "resource")


def _blocked(wanted: list[Doc], output: Doc) -> list[str]:
    def key(entry: Doc) -> tuple[str, ...]:
        return tuple(entry.get(field) or "" for field in _KEYS)

    got = {key(entry): entry for entry in output["blocked"]}
    if sorted(got) != sorted(map(key, wanted)):
        return [f"blocked: {sorted(map(key, wanted))} is wanted, not {sorted(got)}"]
    return [
        f"blocked {key(entry)} until {entry['until']} is wanted, not {got[key(entry)].get('until')}"
        for entry in wanted
        if "until" in entry and not _is_same_second(entry["until"], got[key(entry)].get("until"))
    ]


def _is_same_second(wanted: str | None, got: str | None) -> bool:
    if wanted is None or got is None:
        return wanted is got
    return abs(parse_timestamp(wanted) - parse_timestamp(got)) < _SECOND


def _conditions(wanted: list[Doc], output: Doc) -> list[str]:
    return [
        f"condition {expected} is not among {output['conditions']}"
        for expected in wanted
        if not any(expected.items() <= condition.items() for condition in output["conditions"])
    ]


def _recheck(wanted: float | None, output: Doc) -> list[str]:
    got = output["recheckAfterSeconds"]
    near = got is wanted if wanted is None or got is None else abs(got - wanted) <= 1
    return [] if near else [f"recheckAfterSeconds {wanted} is wanted, not {got}"]


def _contains(stream: str) -> Any:
    def check(wanted: list[str], ran: Ran) -> list[str]:
        text = getattr(ran, stream).lower()
        return [f"{phrase!r} is not in std{stream}" for phrase in wanted if phrase.lower() not in text]

    return check


COMPARED: Final = {
    "replicas": _equal("replicas"),
    "weights": _equal("weights"),
    "containers": _containers,
    "blocked": _blocked,
    "changes": _equal("changes"),
    "recheckAfterSeconds": _recheck,
    "conditions": _conditions,
    "noChanges": lambda wanted, output: (
        ["a change"] if wanted and '"changes": true' in json.dumps(output) else []
    ),
}
"""Fields of `expect` that are compared with the JSON."""
_OUTPUT: Final = {
    "stdoutContains": _contains("out"),
    "stderrContains": _contains("err"),
    "stderrLines": lambda wanted, ran: (
        []
        if len(ran.err.splitlines()) == wanted
        else [f"{wanted} lines of standard error are wanted: {ran.err}"]
    ),
}


# --- the runner itself --------------------------------------------------------------------------------------------
OUTPUT: Final = {
    "replicas": {"current": 3, "hpa": 4, "target": 4},
    "weights": {"hpa": 60, "vpa": 40},
    "containers": {"app": {"requests": {"cpu": "800m", "memory": "1Gi"}, "limits": {}}},
    "changes": True,
    "blocked": [
        {"axis": "vertical", "direction": "up", "reason": "MinChange", "container": "app", "resource": "cpu",
         "until": "2026-11-21T10:15:00Z"},
        {"axis": "horizontal", "direction": "up", "reason": "Weight"},
    ],
    "conditions": [{"type": "Ready", "status": "True", "reason": "Reconciled", "message": "all is well"}],
    "recheckAfterSeconds": 42.0,
}  # fmt: skip
_HELD: Final = {
    "axis": "vertical",
    "direction": "up",
    "reason": "MinChange",
    "container": "app",
    "resource": "cpu",
}
_WEIGHT: Final = {"axis": "horizontal", "direction": "up", "reason": "Weight"}
MATCHES: Final[dict[str, Doc]] = {
    "numbers": {"replicas": {"hpa": 4, "target": 4.0}, "weights": {"vpa": 40}},
    "values within rounding": {"containers": {"app": {"requests": {"cpu": "801m", "memory": "1073742k"}}}},
    "an absent limit": {"containers": {"app": {"limits": {"cpu": None}}}},
    "blocks in any order": {"blocked": [_WEIGHT, _HELD | {"until": "2026-11-21T11:15:00+01:00"}]},
    "flags": {"changes": True, "recheckAfterSeconds": 41.5},
    "a condition": {"conditions": [{"type": "Ready", "reason": "Reconciled"}]},
    "text": {"stdoutContains": ["ALL is"], "stderrLines": 0},
}
DIFFERS: Final[dict[str, Doc]] = {
    "another exit code": {"exit": 1},
    "numbers": {"replicas": {"target": 5}},
    "a weight": {"weights": {"vpa": 41}},
    "cpu": {"containers": {"app": {"requests": {"cpu": "802m"}}}},
    "memory": {"containers": {"app": {"requests": {"memory": "1073744k"}}}},
    "a limit": {"containers": {"app": {"limits": {"cpu": "1"}}}},
    "a container": {"containers": {"other": {"requests": {"cpu": "1"}}}},
    "a block too few": {"blocked": [_HELD]},
    "another time": {"blocked": [_WEIGHT, _HELD | {"until": "2026-11-21T10:15:01Z"}]},
    "a time where there is none": {"blocked": [_WEIGHT | {"until": "2026-11-21T10:15:01Z"}, _HELD]},
    "changes": {"changes": False},
    "no changes": {"noChanges": True},
    "a later look": {"recheckAfterSeconds": 44},
    "a condition": {"conditions": [{"type": "Ready", "status": "False"}]},
    "text": {"stdoutContains": ["all is bad"]},
    "errors": {"stderrContains": ["refused"], "stderrLines": 1},
    "a field of the expectation that there is not": {"replica": {"target": 4}},
}  # fmt: skip


@pytest.mark.parametrize("expect", MATCHES.values(), ids=MATCHES.keys())
def test_the_runner_passes(expect: Doc) -> None:
    assert differences(expect, Ran(0, json.dumps(OUTPUT), "")) == []


@pytest.mark.parametrize("expect", DIFFERS.values(), ids=DIFFERS.keys())
def test_the_runner_fails(expect: Doc) -> None:
    assert differences(expect, Ran(0, json.dumps(OUTPUT), ""))
