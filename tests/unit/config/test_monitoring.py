"""Alerts, their page and the dashboard name one another, and metrics that there are."""

from __future__ import annotations

import json
import re
from typing import Any, Final

import pytest
import yaml

from tests.unit.test_documents import OPERATIONS, ROOT

MONITORING: Final = ROOT / "config/monitoring"
RULES: Final[list[dict[str, Any]]] = [
    rule
    for group in yaml.safe_load((MONITORING / "prometheus_rule.yaml").read_text())["spec"]["groups"]
    for rule in group["rules"]
]
ALERTS: Final = [rule for rule in RULES if "alert" in rule]
PAGE: Final = (ROOT / "docs/alerts.md").read_text()
EXISTING: Final = set(re.findall(r"`(hvpa_\w+)`", OPERATIONS.partition("## Metrics")[2].partition("## ")[0]))
"""`tests/unit/test_documents.py` holds that table against the code."""


def of_an_hvpa(rule: dict[str, Any]) -> bool:
    """Whether an alert is about a single Hvpa."""
    if of_a_policy(rule):
        return False
    return "namespace_name:hvpa_problem:few" in rule["expr"] or "namespace, name" in rule["expr"]


def of_a_policy(rule: dict[str, Any]) -> bool:
    """Whether an alert is about a policy."""
    return "hvpa_policy_problem" in rule["expr"]


def test_each_alert_has_its_paragraph_and_each_paragraph_its_alert() -> None:
    parts = PAGE.split("\n## ")
    about = {part.partition("\n")[0]: re.findall(r"^### (\w+)$", part, re.MULTILINE) for part in parts[1:]}
    assert about["About an Hvpa"] == [rule["alert"] for rule in ALERTS if of_an_hvpa(rule)]
    assert about["About a policy"] == [rule["alert"] for rule in ALERTS if of_a_policy(rule)]
    others = [rule["alert"] for rule in ALERTS if not of_an_hvpa(rule) and not of_a_policy(rule)]
    assert about["About the operator"] == others


@pytest.mark.parametrize("rule", ALERTS, ids=lambda rule: str(rule["alert"]))
def test_an_alert_says_what_it_is_about_and_where_to_read_on(rule: dict[str, Any]) -> None:
    notes = rule["annotations"]
    assert notes.keys() == {"summary", "description", "runbook", "runbook_url"}
    assert notes["runbook_url"] == f"https://hvpa.example.org/alerts/#{rule['alert'].lower()}"
    assert notes["runbook"] == f"docs/alerts.md#{rule['alert'].lower()}"
    severity = rule["labels"]["severity"]
    assert severity in ("critical", "warning") or (severity.startswith("{{ if") and "critical" in severity)
    names = "Hvpa {{ $labels.namespace }}/{{ $labels.name }}:" in notes["description"]
    assert names == of_an_hvpa(rule)


def test_rules_and_dashboard_use_metrics_that_there_are() -> None:
    panels = json.loads((MONITORING / "dashboard.json").read_text())["panels"]
    queries = [target["expr"] for panel in panels for target in panel.get("targets", ())]
    recorded = {rule["record"] for rule in RULES if "record" in rule}
    text = "\n".join([*queries, *(rule["expr"] for rule in RULES)])
    for name in recorded:
        assert name in text
        text = text.replace(name, "")
    used = {name.removesuffix("_bucket") for name in re.findall(r"\bhvpa_\w+", text)}
    assert used <= EXISTING
