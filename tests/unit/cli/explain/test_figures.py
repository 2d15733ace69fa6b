"""Each figure that `hvpa explain` prints of gates and holds is the one that the decision has, in all golden cases."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hvpa.api.values.duration import parse_duration
from hvpa.api.values.quantity import parse_resource, readable_resource
from hvpa.core.values.arithmetic import threshold
from tests.unit.cli.explain.test_text import CASES, PATHS, RULES
from tests.unit.cli.support import NOW, Doc, Shell, changed, load, plain_documents
from tests.unit.cli.test_cases import FILES

RULE = re.compile(
    r"(?P<name>[hv]pa\.scale(?:Up|Down)): (?P<mode>\w+)(?: \([^)]*\)+)?, last step (?P<last>[^ ,]+)"
    r"(?:, stabilization (?P<stabilization>[^ ,]+) \((?:over|until [^)]*\))\))?"
    r"(?:, [ \w]+ once wanted for (?P<sustained>[^ ,]+(?: \(default\))?)"
    r"(?:; requests with a metric: by the highest demand of the last (?P<highest>[^ ,]+(?: \(default\))?))?)?"
    r", minChange (?P<least>.+?)(?:, minChangeTimeout (?P<timeout>[^ ,]+))?"
)
HELD = re.compile(
    r"(?P<change>.+): (?P<reason>\w+)(?: until (?P<until>\S+)(?: \(in [^)]*\))?)?"
    r"(?:, (?P<figures>.+) \((?P<source>\S+)\))?"
)
BY_REASON = {"StabilizationWindow": "stabilization", "SustainedDemand": "sustained"}
"""The rule of a direction by which a gate holds a change."""
GOLDEN: list[Any] = [
    *[pytest.param("gardener.yaml", changes, id=name) for name, (changes, *_) in CASES.items()],
    *[pytest.param("trajectory.yaml", changes, id=name) for name, (changes, _) in (PATHS | RULES).items()],
    *[pytest.param(path, {}, id=path.stem) for path in FILES],
]


@pytest.mark.parametrize(("source", "changes"), GOLDEN)
def test_each_figure_of_gates_and_holds_is_that_of_the_decision(
    shell: Shell, source: str | Path, changes: Doc
) -> None:
    now = NOW
    if isinstance(source, str):
        file = shell.file(changed(load(source), **changes))
    else:
        case, (_, _, objects) = (
            plain_documents(source)[0],
            source.read_text(encoding="utf-8").partition("\n---\n"),
        )
        file, now = shell.file(case.get("rawInput") or objects), case["now"]
    explained = shell.run("explain", "-f", file, "--now", now, "-o", "json").json
    text = shell.run("explain", "-f", file, "--now", now).out
    gates, held = _section(text, "Gates"), _section(text, "Held back")
    shown = [match.groupdict() for line in gates if (match := RULE.fullmatch(line)) is not None]
    assert [_of_text(gate) for gate in shown] == [_of_json(gate) for gate in explained["gates"]]
    by_name = {gate["name"]: gate for gate in explained["gates"]}
    assert [_held(line) for line in held if line != "(nothing)"] == [
        _held_json(hold, now) for hold in explained["blocked"]
    ]
    for entry in explained["blocked"]:
        assert set(_contradictions(entry, by_name)) == set()


def _section(text: str, heading: str) -> list[str]:
    blocks = [block.splitlines() for block in text.split("\n\n")]
    return [line[2:] for head, *lines in blocks if head == heading for line in lines]


def _seconds(text: str | None) -> tuple[float, bool] | None:
    """A wait as it is shown, and whether it is a default."""
    if text is None:
        return None
    return parse_duration(text.removesuffix(" (default)")).total_seconds(), text.endswith(" (default)")


def _of_text(rule: Doc) -> Doc:
    timeout = None if rule["timeout"] is None else parse_duration(rule["timeout"]).total_seconds()
    return {
        **rule,
        "stabilization": 0
        if rule["stabilization"] is None
        else parse_duration(rule["stabilization"]).total_seconds(),
        "sustained": _seconds(rule["sustained"]),
        "highest": _seconds(rule["highest"]),
        "timeout": timeout,
    }


def _of_json(rule: Doc) -> Doc:
    waits = {
        name: None if rule[key] is None else (rule[key]["seconds"], rule[key]["source"] == "default")
        for name, key in (("sustained", "sustained"), ("highest", "highestDemand"))
    }
    least = [
        f"{'' if name == 'replicas' else f'{name} '}{_least(name, minimum)}"
        for name, minimum in rule["minChange"].items()
    ]
    return {
        "name": rule["name"],
        "mode": rule["updateMode"],
        "last": rule["lastStep"] or "never",
        "stabilization": rule["stabilization"]["seconds"],
        "least": " and ".join(least),
        "timeout": None if rule["minChangeTimeout"] is None else rule["minChangeTimeout"]["seconds"],
        **waits,
    }


def _amount(resource: Any, amount: Any) -> str:
    """An amount of the JSON for people."""
    return (
        readable_resource(resource, parse_resource(resource, amount))
        if isinstance(amount, str)
        else str(amount)
    )


def _least(resource: Any, least: Doc) -> str:
    value = least["value"] not in (None, 0, "0") and _amount(resource, least["value"])
    parts = [
        *([value] if value else []),
        *([f"{least['percentage']} %"] if least["percentage"] is not None else []),
    ]
    mark = " (default)" if parts and least["source"] == "default" else ""
    return (" or ".join(parts) or "none") + mark


def _held(line: str) -> tuple[Any, ...]:
    match = HELD.fullmatch(line)
    assert match is not None, line
    figures = dict(figure.split(" ") for figure in (match["figures"] or "").split(", ") if figure)
    wait = parse_duration(figures["wait"]).total_seconds() if "wait" in figures else None
    return match["reason"], match["until"], wait, figures.get("least"), match["source"]


def _held_json(entry: Doc, now: str) -> tuple[Any, ...]:
    least = None if entry["least"] is None else _amount(entry["resource"], entry["least"])
    until = "now" if entry["until"] is not None and entry["until"] <= now else entry["until"]
    return entry["reason"], until, entry["waitSeconds"], least, entry["source"]


def _contradictions(entry: Doc, by_name: Doc) -> Iterator[str]:
    """The figures of a hold that are not those of its direction."""
    axis = "hpa" if entry["axis"] == "horizontal" else "vpa"
    rules = by_name[f"{axis}.scale{entry['direction'].capitalize()}"]
    wait = rules[BY_REASON[entry["reason"]]] if entry["reason"] in BY_REASON else None
    if wait is not None and (entry["waitSeconds"], entry["source"]) != (wait["seconds"], wait["source"]):
        yield "wait"
    if entry["reason"] == "MinChange":
        resource: Any = entry["resource"] or "replicas"
        least = rules["minChange"][resource]

        def number(amount: Any) -> Any:
            return parse_resource(resource, amount) if isinstance(amount, str) else amount

        smallest = threshold(number(least["value"]), least["percentage"], number(entry["current"]))
        if (number(entry["least"]), entry["source"]) != (smallest, least["source"]):
            yield "minChange"
