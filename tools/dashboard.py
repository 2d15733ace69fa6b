"""Prints the operator's Grafana dashboard (`python -m tools.dashboard`). `ROWS` defines the panels.
`tests/e2e/bare/reporting/test_monitoring.py` runs each query in a Prometheus that scraped an operator."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from typing import Any, Final

from hvpa.api.values.prices import CPU_PRICE, MEMORY_PRICE
from hvpa_lab.report.rows import HOURS_PER_MONTH

SOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}
WIDTH: Final = 24
"""Width of Grafana's grid."""
HEIGHT: Final = 8
CHOSEN: Final = 'namespace=~"$namespace",name=~"$name"'
EACH: Final = "{{namespace}}/{{name}}"
RATE: Final = "[$__rate_interval]"


@dataclass(frozen=True)
class Panel:
    """A graph, table or number: its queries with their legends, and its explanation."""

    title: str
    queries: dict[str, str]
    about: str = ""
    unit: str = "short"
    kind: str = "timeseries"
    floor: int | None = 0
    """Start of the axis; None if values can be negative."""


def each(metric: str, more: str = "") -> str:
    """Return the query of a metric of the chosen Hvpas, independent of the reporting replica."""
    by = "namespace, name" + (", container" if more else "")
    return f"max by ({by}) ({metric}{{{CHOSEN}{more}}})"


def sizes(resource: str) -> dict[str, str]:
    """Return the queries of requests of a resource: current and recommended."""
    return {
        each("hvpa_request", f',resource="{resource}"'): f"{EACH} {{{{container}}}}",
        each("hvpa_recommended_request", f',resource="{resource}"'): f"{EACH} {{{{container}}}} recommended",
    }


def slowest(metric: str) -> dict[str, str]:
    """Return the queries of a histogram's median and 99th percentile."""
    return {
        f"histogram_quantile({part}, sum by (le) (rate({metric}_bucket{RATE})))": name
        for part, name in ((0.5, "median"), (0.99, "99th percentile"))
    }


ROWS: Final[dict[str, tuple[Panel, ...]]] = {
    "All Hvpas": (
        Panel("By state", {"sum by (ready, reason) (hvpa_hvpas)": "Ready {{ready}}: {{reason}}"}),
        Panel(
            "Problems",
            {"count by (problem) (max by (namespace, name, problem) (hvpa_problem))": "{{problem}}"},
            "Hvpas with a problem. Those that last have an alert: docs/alerts.md.",
        ),
        Panel(
            "Held back",
            {"sum by (axis, direction, reason) (hvpa_held_back)": "{{axis}} {{direction}}: {{reason}}"},
            "Changes that are wanted, by the gate that holds them back: docs/troubleshooting.md.",
        ),
        Panel(
            "Changes of workloads",
            {f"sum by (axis, direction) (rate(hvpa_scalings_applied_total{RATE}))": "{{axis}} {{direction}}"},
            unit="ops",
        ),
    ),
    "Chosen Hvpas": (
        Panel(
            "Problems now",
            {f"max by (namespace, name, problem, reason) (hvpa_problem{{{CHOSEN}}})": ""},
            kind="table",
        ),
        Panel(
            "Replicas",
            {each("hvpa_replicas"): EACH, each("hvpa_recommended_replicas"): f"{EACH} recommended"},
            "Needs --per-object-metrics.",
        ),
        Panel("CPU requests", sizes("cpu"), "Of each pod, in cores. Needs --per-object-metrics."),
        Panel("Memory requests", sizes("memory"), "Of each pod. Needs --per-object-metrics.", "bytes"),
    ),
    "Saved": (
        Panel(
            "CPU",
            {"sum by (part) (hvpa_saved_cpu_cores)": "{{part}}"},
            "Requests in cores that workloads no longer have since HVPA first changed them: docs/report.md.",
            floor=None,
        ),
        Panel(
            "Memory",
            {"sum by (part) (hvpa_saved_memory_bytes)": "{{part}}"},
            "Requests that workloads no longer have since HVPA first changed them: docs/report.md.",
            "bytes",
            floor=None,
        ),
        Panel(
            "Per month at the prices above",
            {
                f"{HOURS_PER_MONTH} * (sum by (part) (hvpa_saved_cpu_cores) * $cpu_price"
                " + sum by (part) (hvpa_saved_memory_bytes) / 2^30 * $memory_price)": "{{part}}"
            },
            "If the savings of an instant lasted for a month. Replicas vary with the load: look at whole weeks.",
            floor=None,
        ),
        Panel(
            "CPU of chosen Hvpas",
            {
                f"sum by (namespace, name) (max by (namespace, name, part) "
                f'(hvpa_saved_request{{{CHOSEN},resource="cpu"}}))': EACH
            },
            "In cores. Needs --per-object-metrics.",
            floor=None,
        ),
    ),
    "Operator": (
        Panel(
            "Shards that no replica works on",
            {"max(hvpa_shards) - sum(hvpa_shards_held)": "shards"},
            "0, but for seconds when a replica takes over.",
            kind="stat",
        ),
        Panel("Reconcile", slowest("hvpa_reconcile_duration_seconds"), unit="s"),
        Panel("Waiting for a worker", slowest("hvpa_queue_wait_seconds"), unit="s"),
        Panel(
            "Age of the caches",
            {"time() - hvpa_watch_last_success_timestamp_seconds": "{{resource}} of {{pod}}"},
            "About a minute where nothing changes; an alert from five minutes on.",
            "s",
        ),
        Panel(
            "Requests to the API server",
            {f"sum by (verb, code) (rate(hvpa_api_requests_total{RATE}))": "{{verb}} {{code}}"},
            unit="reqps",
        ),
        Panel(
            "Requests that failed",
            {
                f'sum by (verb, code) (rate(hvpa_api_requests_total{{code!~"[123].*"}}{RATE}))': "{{verb}} {{code}}",
                f"sum(rate(hvpa_throttled_total{RATE}))": "asked to wait",
            },
            "404 is normal where the cluster has no VPAs, 409 where another client wrote first.",
            "reqps",
        ),
        Panel(
            "Writes that failed",
            {
                f"sum by (operation, outcome) (rate(hvpa_write_failures_total{RATE}))": "{{operation}} {{outcome}}",
            },
            unit="ops",
        ),
        Panel(
            "Objects that can't be read",
            {"sum by (resource) (increase(hvpa_undecodable_objects_total[1h]))": "{{resource}}"},
        ),
    ),
}


def text_box(name: str, label: str, value: float) -> dict[str, Any]:
    """Return a variable whose value the user types."""
    text = str(value)
    shown = {"text": text, "value": text}
    return {
        "type": "textbox",
        "name": name,
        "label": label,
        "query": text,
        "current": shown,
        "options": [shown],
    }


def variable(name: str, label: str, query: str) -> dict[str, Any]:
    """Return a variable that selects from the values of a label."""
    return {
        "type": "query",
        "name": name,
        "label": label,
        "datasource": SOURCE,
        "query": {"query": query, "refId": name},
        "refresh": 2,
        "multi": True,
        "includeAll": True,
        "allValue": ".*",
        "current": {"text": "All", "value": "$__all"},
    }


def panel(content: Panel, x: int, y: int, width: int) -> dict[str, Any]:
    """Return a panel in Grafana's format."""
    now = content.kind != "timeseries"
    targets = [
        {
            "refId": chr(ord("A") + number),
            "datasource": SOURCE,
            "expr": query,
            "legendFormat": legend,
            **({"instant": True, "range": False} if now else {"range": True}),
            **({"format": "table"} if content.kind == "table" else {}),
        }
        for number, (query, legend) in enumerate(content.queries.items())
    ]
    return {
        "type": content.kind,
        "title": content.title,
        "description": content.about,
        "datasource": SOURCE,
        "gridPos": {"x": x, "y": y, "w": width, "h": HEIGHT},
        "fieldConfig": {"defaults": {"unit": content.unit, "min": content.floor}, "overrides": []},
        "targets": targets,
    }


def dashboard() -> dict[str, Any]:
    """Return the whole dashboard: four panels in a row."""
    panels: list[dict[str, Any]] = []
    y, width = 0, WIDTH // 4
    for title, row in ROWS.items():
        at = {"x": 0, "y": y, "w": WIDTH, "h": 1}
        panels.append({"type": "row", "title": title, "collapsed": False, "gridPos": at, "panels": []})
        for number, content in enumerate(row):
            panels.append(panel(content, number % 4 * width, y + 1 + number // 4 * HEIGHT, width))
        y += 1 + -(-len(row) // 4) * HEIGHT
    for number, shown in enumerate(panels, 1):
        shown["id"] = number
    return {
        "uid": "hvpa",
        "title": "HVPA",
        "tags": ["hvpa"],
        "schemaVersion": 39,
        "editable": True,
        "refresh": "1m",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {
            "list": [
                {"type": "datasource", "name": "datasource", "label": "Prometheus", "query": "prometheus"},
                variable(
                    "namespace", "Namespace", 'label_values({__name__=~"hvpa_(problem|replicas)"}, namespace)'
                ),
                variable(
                    "name",
                    "Hvpa",
                    'label_values({__name__=~"hvpa_(problem|replicas)",namespace=~"$namespace"}, name)',
                ),
                text_box("cpu_price", "Price of a core-hour", CPU_PRICE),
                text_box("memory_price", "Price of a GiB-hour", MEMORY_PRICE),
            ]
        },
        "panels": panels,
    }


if __name__ == "__main__":
    json.dump(dashboard(), sys.stdout, indent=1, ensure_ascii=False)
    print()
