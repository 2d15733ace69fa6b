"""The content of `config/monitoring`, which is for the Prometheus operator, for a Prometheus that is started without
it."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import yaml

from localcluster.operator.operator import NAMESPACE, REPOSITORY
from localcluster.prometheus import scraping

Json = dict[str, Any]
CONFIG: Final = REPOSITORY / "config/monitoring"
_PORT: Final = 9569
"""The metrics port of the operator's pods."""


def rules() -> Json:
    """The groups of rules, in Prometheus' format."""
    spec: Json = yaml.safe_load((CONFIG / "prometheus_rule.yaml").read_text())["spec"]
    return spec


def write_quick_rules(path: Path) -> Path:
    """Write a file of the rules whose alerts wait for seconds instead of minutes: 15 s for 15 minutes."""
    groups = rules()
    for rule in (rule for group in groups["groups"] for rule in group["rules"]):
        for wait in rule.keys() & {"for", "keep_firing_for"}:
            rule[wait] = re.sub("m$", "s", rule[wait])
    path.write_text(yaml.safe_dump(groups))
    return path


def scraping_operator(address: str) -> Json:
    """The scrape configuration that the Prometheus operator derives from the PodMonitor: its endpoint, and the pod's
    labels for each target."""
    (endpoint,) = yaml.safe_load((CONFIG / "pod_monitor.yaml").read_text())["spec"]["podMetricsEndpoints"]
    made = scraping({f"{NAMESPACE}/hvpa": address})
    (job,) = made["scrape_configs"]
    job["honor_labels"] = endpoint["honorLabels"]
    job["static_configs"][0]["labels"] = _labels("hvpa-1")
    return made


def scraping_pods(file: Path) -> Json:
    """The same for the pods in a file (`write_pods`), which Prometheus reads when it changes."""
    made = scraping_operator("")
    (job,) = made["scrape_configs"]
    del job["static_configs"]
    job["file_sd_configs"] = [{"files": [str(file)], "refresh_interval": "1s"}]
    return made


def write_pods(file: Path, pods: Sequence[Json]) -> None:
    """Write the addresses of the operator's pods."""
    targets = [
        {
            "targets": [f"{pod['status']['podIP']}:{_PORT}"],
            "labels": _labels(pod["metadata"]["name"]),
        }
        for pod in pods
        if pod["status"].get("podIP")
    ]
    temporary = file.with_suffix(".tmp")
    temporary.write_text(json.dumps(targets))
    temporary.replace(file)


def _labels(pod: str) -> Json:
    return {"namespace": NAMESPACE, "pod": pod, "container": "hvpa"}
