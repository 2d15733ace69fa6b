"""Each alert fires when it should, not before, not for something else, and ends when its cause does: by promtool. One
sample a minute."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml

from localcluster.programs.build import Programs
from localcluster.prometheus import promtool
from tests.e2e.monitoring.rules import alerts, write

ALL_IS_WELL: Final = {
    'hvpa_shards{pod="a"}': "1x200",
    'hvpa_shards{pod="b"}': "1x200",
    'hvpa_shards_held{pod="a"}': "1x200",
    'hvpa_shards_held{pod="b"}': "0x200",
    'hvpa_watch_last_success_timestamp_seconds{pod="a",resource="pods"}': "0+60x200",
    'hvpa_queue_oldest_age_seconds{pod="a"}': "0x200",
    'hvpa_undecodable_objects_total{pod="a",resource="pods"}': "0x200",
    'hvpa_replicas{namespace="shop",name="web",pod="a"}': "3x200",
    'hvpa_recommended_replicas{namespace="shop",name="web",pod="a"}': "3x200",
}
"""A healthy operator of two replicas, and an Hvpa that is as it should be."""
WEB: Final = {"namespace": "shop", "name": "web"}


@dataclass(frozen=True)
class Case:
    """What is measured otherwise than where all is well, and at which minutes the alert fires, with which labels, and
    at which it does not. No other alert fires at any of them."""

    alert: str
    series: dict[str, str]
    fires: tuple[int, ...] = ()
    silent: tuple[int, ...] = ()
    labels: dict[str, str] = field(default_factory=dict)
    value: str = ""
    """What the alert's text has for `$value`."""


def problem(problem: str, reason: str, pod: str = "a") -> str:
    return f'hvpa_problem{{namespace="shop",name="web",problem="{problem}",reason="{reason}",pod="{pod}"}}'


def of_hvpa(alert: str, name: str, reason: str, wait: int) -> list[Case]:
    """An alert about a problem of an Hvpa: it fires after `wait` minutes, until 5 minutes after the problem is over; it
    is none where the problem lasts for less, and it outlives a change of the leader, whose last series are gone when
    the first of the next one come."""
    labels = {**WEB, "problem": name, "reason": reason}
    lasts, brief = f"1x{wait + 10} stale", f"1x{wait - 2} stale"
    leader = {
        problem(name, reason): f"1x{wait - 2} stale",
        problem(name, reason, "b"): f"_x{wait - 1} 1x20 stale",
    }
    fires, ended = (wait, wait + 10, wait + 14), (wait + 17, 100)
    return [
        Case(alert, {problem(name, reason): lasts}, fires, (0, wait - 1, *ended), labels),
        Case(alert, {problem(name, reason): brief}, (), (wait - 1, wait, wait + 5)),
        Case(alert, leader, (wait, wait + 10), (wait - 1, wait + 30), labels),
    ]


def of_many(count: int, problem: str, reason: str, values: str) -> dict[str, str]:
    """The same problem of several Hvpas."""
    labels = f'namespace="shop",problem="{problem}",reason="{reason}"'
    return {f'hvpa_problem{{{labels},name="web-{number}",pod="a"}}': values for number in range(count)}


def of_policy(namespace: str, pod: str = "a") -> str:
    labels = f'kind="HvpaPolicy",namespace="{namespace}",name="team",reason="RemovalHeld"'
    return f'hvpa_policy_problem{{{labels},pod="{pod}"}}'


POLICY: Final = {"kind": "HvpaPolicy", "namespace": "shop", "name": "team", "reason": "RemovalHeld"}
CASES: Final = [
    Case("HvpaPolicyNotReady", {of_policy("shop"): "1x25 stale"}, (15, 25), (0, 14, 32, 100), POLICY),
    Case("HvpaPolicyNotReady", {of_policy("shop"): "1x13 stale"}, (), (14, 15, 30)),
    Case(
        "HvpaPolicyNotReady",
        {of_policy("shop"): "1x13 stale", of_policy("shop", "b"): "_x14 1x20 stale"},
        (15, 30),
        (14, 60),
        POLICY,
    ),
    *of_hvpa("HvpaStarving", "Starving", "UpdatePolicy", 15),
    *of_hvpa("HvpaShortOfCpu", "ShortOfCpu", "Paused", 15),
    *of_hvpa("HvpaSaturated", "Saturated", "Saturated", 30),
    *of_hvpa("HvpaRecommenderSilent", "RecommenderSilent", "NoMetrics", 15),
    *of_hvpa("HvpaContested", "Contested", "SetBack", 5),
    *of_hvpa("HvpaRolledBack", "RolledBack", "RolledBack", 5),
    *of_hvpa("HvpaNotReady", "NotReady", "Refused", 15),
    *of_hvpa("HvpaWritesFail", "WriteFailed", "PatchStatus", 15),
    # metrics-server is down, for four Hvpas and more: one alert, and none for each of them.
    Case(
        "HvpaManyAffected",
        of_many(8, "RecommenderSilent", "FailedGetResourceMetric", "1x40 stale"),
        (15, 40, 44),
        (14, 50, 100),
        {"problem": "RecommenderSilent", "reason": "FailedGetResourceMetric", "severity": "warning"},
        "8",
    ),
    Case(
        "HvpaManyAffected",
        of_many(4, "Starving", "Paused", "1x40 stale"),
        (15, 40),
        (14, 50),
        {"problem": "Starving", "reason": "Paused", "severity": "critical"},
        "4",
    ),
    # The VPA's recommender is down: one alert, however many Hvpas there are.
    Case(
        "HvpaVpaRecommenderDown",
        of_many(1, "RecommenderSilent", "RecommendationStale", "1x40 stale"),
        (5, 40, 44),
        (4, 50),
        value="1",
    ),
    Case(
        "HvpaVpaRecommenderDown",
        of_many(9, "RecommenderSilent", "RecommendationStale", "1x40 stale"),
        (5, 40),
        (4, 50),
        value="9",
    ),
    Case(
        "HvpaShortOfReplicas",
        {'hvpa_recommended_replicas{namespace="shop",name="web",pod="a"}': "5x40 3x100"},
        (30, 40, 45),
        (29, 48),
        WEB,
    ),
    Case(
        "HvpaShortOfReplicas",
        {'hvpa_recommended_replicas{namespace="shop",name="web",pod="a"}': "2x100"},
        (),
        (60,),
    ),
    # The leader is gone, and the other replica takes over at last; it does so at once; no replica is left.
    Case(
        "HvpaOperatorDown",
        {'hvpa_shards_held{pod="a"}': "1x10 stale", 'hvpa_shards_held{pod="b"}': "0x20 1x100"},
        (13, 20),
        (10, 12, 22),
    ),
    Case(
        "HvpaOperatorDown",
        {'hvpa_shards_held{pod="a"}': "1x10 stale", 'hvpa_shards_held{pod="b"}': "0x11 1x100"},
        (),
        (11, 12, 13, 14),
    ),
    Case(
        "HvpaOperatorDown",
        {
            **{f'hvpa_shards{{pod="{pod}"}}': "1x10 stale" for pod in "ab"},
            **{f'hvpa_shards_held{{pod="{pod}"}}': "0x10 stale" for pod in "ab"},
        },
        (2, 30),
        (1,),
    ),
    Case(
        "HvpaOperatorDown",
        {
            **{f'hvpa_shards{{pod="{pod}"}}': "32x100" for pod in "ab"},
            'hvpa_shards_held{pod="a"}': "17x10 16x20 17x10",
            'hvpa_shards_held{pod="b"}': "15x100",
        },
        (13, 30),
        (10, 12, 32),
    ),
    Case(
        "HvpaCacheSilent",
        {'hvpa_watch_last_success_timestamp_seconds{pod="a",resource="pods"}': "0+60x10 600x20 1920+60x100"},
        (18, 30),
        (10, 15, 17, 33),
        {"pod": "a", "resource": "pods"},
    ),
    Case(
        "HvpaQueueStalls",
        {'hvpa_queue_oldest_age_seconds{pod="a"}': "0x9 10+10x20 0x50"},
        (18, 30),
        (12, 17, 32),
    ),
    Case("HvpaQueueStalls", {'hvpa_queue_oldest_age_seconds{pod="a"}': "31x4 0x50"}, (), (3, 5, 7)),
    # Two failures are none to be woken for; a task that is begun again after each of many is.
    Case(
        "HvpaTaskFails",
        {'hvpa_task_failures_total{pod="a",task="watch pods"}': "2x30 2+1x20 22x60"},
        (36, 52),
        (30, 31, 90),
        {"task": "watch pods"},
    ),
    # A counter that rises, and one that begins, as it does where nothing was undecodable before.
    Case(
        "HvpaUndecodable",
        {'hvpa_undecodable_objects_total{pod="a",resource="pods"}': "0x69 1x130"},
        (70, 120),
        (69, 140),
        {"resource": "pods"},
    ),
    Case(
        "HvpaUndecodable",
        {'hvpa_undecodable_objects_total{pod="a",resource="hvpas"}': "_x70 1x130"},
        (70, 120),
        (69, 140),
        {"resource": "hvpas"},
    ),
]


def text(annotation: str, labels: dict[str, str], measured: str) -> str:
    """An annotation with the values of its labels, and what was measured."""
    annotation = annotation.replace("{{ $value }}", measured)
    for name, value in labels.items():
        annotation = annotation.replace(f"{{{{ $labels.{name} }}}}", value)
    return annotation


def as_test(case: Case, minute: int) -> list[dict[str, Any]]:
    """What promtool expects of every alert at this minute."""
    expectations = []
    for name, rule in alerts().items():
        firing = name == case.alert and minute in case.fires
        annotations = {
            key: text(value, case.labels, case.value) for key, value in rule["annotations"].items()
        }
        expected = {"exp_labels": {**rule["labels"], **case.labels}, "exp_annotations": annotations}
        expectations.append(
            {"eval_time": f"{minute}m", "alertname": name, "exp_alerts": [expected] if firing else []}
        )
    return expectations


def group(number: int, case: Case) -> dict[str, Any]:
    """A case as promtool reads it."""
    series = [{"series": name, "values": values} for name, values in {**ALL_IS_WELL, **case.series}.items()]
    expected = [
        expectation for minute in sorted({*case.fires, *case.silent}) for expectation in as_test(case, minute)
    ]
    name = f"{number}: {case.alert}"
    return {"name": name, "interval": "1m", "input_series": series, "alert_rule_test": expected}


def test_each_alert_fires_when_it_should_and_no_other_does(prometheus: Programs, tmp_path: Path) -> None:
    cases = [group(number, case) for number, case in enumerate(CASES)]
    written = {"rule_files": [write(tmp_path).name], "evaluation_interval": "1m", "tests": cases}
    (tmp_path / "test.yaml").write_text(yaml.safe_dump(written))
    promtool(prometheus, "test", "rules", tmp_path / "test.yaml")


def test_each_alert_is_seen_to_fire_not_to_fire_and_to_end() -> None:
    for name in alerts():
        mine = [case for case in CASES if case.alert == name]
        assert any(case.fires and min(case.silent) < min(case.fires) for case in mine), name
        assert any(case.fires and max(case.silent) > max(case.fires) for case in mine), name
    assert {case.alert for case in CASES} == alerts().keys()


def test_promtool_finds_nothing_wrong_with_the_rules(prometheus: Programs, tmp_path: Path) -> None:
    assert "SUCCESS" in promtool(prometheus, "check", "rules", "--lint=all", "--lint-fatal", write(tmp_path))
