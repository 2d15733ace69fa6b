"""The JSON contract of `simulate -o json` and its schema."""

from __future__ import annotations

import json
from array import array
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hvpa_lab.simulate.model import SimulationEvent
from hvpa_lab.simulate.report import json as wire
from tests.unit.cli.schema import faults
from tests.unit.lab.simulate.report.results import REACTION, compared, policy, result, series

SCHEMA_FILE = Path(__file__).parents[5] / "docs" / "simulate.schema.json"


def reported(*policies: Any, with_series: bool = False, **changes: Any) -> Any:
    """The report, which follows the schema."""
    report = json.loads(wire.to_json([compared(*policies, **changes)], series=with_series))
    schema = wire.schema()
    assert faults(report, schema, schema) == []
    return report["scenarios"][0]


def test_the_schema_in_the_documents_is_the_one_of_the_types(capsys: pytest.CaptureFixture[str]) -> None:
    wire.main()
    assert SCHEMA_FILE.read_text(encoding="utf-8") == capsys.readouterr().out, "run: make generate"


def test_a_result_is_reported_field_by_field() -> None:
    reaction = replace(REACTION, gates=None, total=None)
    report = reported(policy(reactions=(reaction,), dropped_events=4), warm_up=30.0, notes=("a gap",))
    (entry,) = report.pop("policies")
    assert report == {
        "name": "day and night",
        "description": "A web shop's week",
        "start": "2026-11-16T00:00:00Z",
        "durationSeconds": 60.0,
        "stepSeconds": 15.0,
        "warmUpSeconds": 30.0,
        "seed": 7,
        "notes": ["a gap"],
        "prices": {"cpuPerCoreHour": 0.03, "memoryPerGibHour": 0.004},
        "baseline": None,
        "unbeaten": ["hvpa"],
        "conclusion": ["hvpa costs 37.42 and leaves 0.02 % of the demand unmet."],
    }
    assert entry == {
        "name": "hvpa",
        "kind": "Hvpa",
        "figures": {
            "coreHoursRequested": 1234.5,
            "coreHoursUsed": 800.25,
            "gibHoursRequested": 96.0,
            "gibHoursUsed": 48.0,
            "slackCpu": 0.3517,
            "slackMemory": 0.5,
            "unmetCoreSeconds": 17.25,
            "unmetShare": 0.00123,
            "ooms": 0,
            "restarts": 3,
            "replicaChanges": 12,
            "requestChanges": 2,
            "nodeHours": 168.0,
            "reactionMedianSeconds": 42.0,
            "reactionMaxSeconds": 95.5,
            "demandCoreSeconds": 86250.0,
            "unmetDemandShare": 0.0002,
            "coverMedianSeconds": 30.0,
            "coverMaxSeconds": 90.0,
            "cost": 37.419,
            "costDifference": None,
        },
        "beatenBy": [],
        "events": [
            {"time": "2026-11-16T00:00:30Z", "kind": "Replicas", "reason": "HPA", "message": "2 -> 4"},
            {
                "time": "2026-11-16T00:00:45.500000Z",
                "kind": "OOM",
                "reason": "OOMKilled",
                "message": "app of web-1 used 1.1Gi of 1Gi",
            },
        ],
        "droppedEvents": 4,
        "reactions": [
            {
                "start": "2026-11-16T01:00:00Z",
                "end": "2026-11-16T01:01:00Z",
                "phases": {
                    "toleranceSeconds": 10.0,
                    "metricAgeSeconds": 15.0,
                    "hpaPeriodSeconds": 7.5,
                    "gatesSeconds": None,
                    "startUpSeconds": 30.0,
                },
                "totalSeconds": None,
                "unmetSeconds": 45.0,
                "coverSeconds": 30.0,
                "covered": True,
            }
        ],
        "series": None,
    }


def test_series_are_reported_where_they_are_asked_for() -> None:
    short_series = series()
    requests = {**short_series.requests, ("proxy", "cpu"): array("d", [100.0] * 4)}
    endless = array("d", [1500.0, float("inf"), 1500.0, 1500.0])
    columns = reported(
        policy(series=replace(short_series, requests=requests, capacity=endless)), with_series=True
    )["policies"][0]["series"]
    assert columns["replicas"] == {"seconds": [0.0, 15.0, 30.0, 45.0], "values": [2.0, 2.0, 4.0, 4.0]}
    assert columns["capacity"]["values"] == [1.5, None, 1.5, 1.5]
    assert columns["requests"] == {
        "app": {
            "cpu": {"seconds": [0.0, 45.0], "values": [0.5, 0.5]},
            "memory": {"seconds": [0.0, 45.0], "values": [1.0, 1.0]},
        },
        "proxy": {"cpu": {"seconds": [0.0, 45.0], "values": [0.1, 0.1]}},
    }


def test_the_same_result_gives_the_same_bytes() -> None:
    assert wire.to_json([compared(), compared()]) == wire.to_json([compared(), compared()])
    assert "\n" in wire.to_json([compared()])
    assert "\n" not in wire.to_json([compared()], series=True)


def test_what_beats_a_policy_and_what_it_is_compared_with_are_named() -> None:
    report = reported(policy("cheap"), policy("hpa", "HPA", core_hours_requested=2469.0))
    assert (report["baseline"], report["unbeaten"]) == ("hpa", ["cheap"])
    cheap, hpa = report["policies"]
    assert (cheap["beatenBy"], hpa["beatenBy"]) == ([], ["cheap"])
    assert cheap["figures"]["costDifference"] == round(37.419 / 74.454 - 1, 6)
    assert len(report["conclusion"]) == 2


def test_what_was_not_reached_is_null() -> None:
    figures = reported(policy(reaction_median_seconds=None, reaction_max_seconds=None))["policies"][0][
        "figures"
    ]
    assert figures["reactionMedianSeconds"] is figures["reactionMaxSeconds"] is None


@given(st.text(st.characters(exclude_categories=()), max_size=20))
def test_any_text_can_be_reported(text: str) -> None:
    report = reported(policy(text, events=(SimulationEvent(0.0, "Event", text, text),)), name=text)
    wanted = text.encode("utf-8", "backslashreplace").decode()
    assert (report["name"], report["policies"][0]["events"][0]["message"]) == (wanted, wanted)


def test_a_part_of_a_millisecond_is_rounded() -> None:
    assert wire.timestamp_at(result().start, 1.0004999) == "2026-11-16T00:00:01Z"
