"""What `config/monitoring` has for the Prometheus operator, for a Prometheus that is started without one."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

import yaml

from localcluster.operator.operator import NAMESPACE, REPOSITORY
from localcluster.prometheus import scraping

Json = dict[str, Any]
CONFIG: Final = REPOSITORY / "config/monitoring"


def rules() -> Json:
    """The groups of rules, as Prometheus reads them."""
    found: Json = yaml.safe_load((CONFIG / "prometheus_rule.yaml").read_text())["spec"]
    return found


def write_quick_rules(path: Path) -> Path:
    """A file of the rules whose alerts wait for seconds in place of minutes: 15 s for 15 minutes."""
    groups = rules()
    for rule in (rule for group in groups["groups"] for rule in group["rules"]):
        for wait in rule.keys() & {"for", "keep_firing_for"}:
            rule[wait] = re.sub("m$", "s", rule[wait])
    path.write_text(yaml.safe_dump(groups))
    return path


def scraping_operator(address: str) -> Json:
    """What the Prometheus operator makes of the PodMonitor: its endpoint, and the pod's labels for each target."""
    (endpoint,) = yaml.safe_load((CONFIG / "pod_monitor.yaml").read_text())["spec"]["podMetricsEndpoints"]
    made = scraping({f"{NAMESPACE}/hvpa": address})
    (job,) = made["scrape_configs"]
    job["honor_labels"] = endpoint["honorLabels"]
    job["static_configs"][0]["labels"] = {"namespace": NAMESPACE, "pod": "hvpa-1", "container": "hvpa"}
    return made
