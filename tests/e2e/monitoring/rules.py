"""The rules of `config/monitoring`, as Prometheus reads them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from localcluster.monitoring import rules


def alerts() -> dict[str, dict[str, Any]]:
    """The alerts, by name."""
    every = [rule for group in rules()["groups"] for rule in group["rules"]]
    alert_rules = {rule["alert"]: rule for rule in every if "alert" in rule}
    assert len(alert_rules) == sum("alert" in rule for rule in every)
    return alert_rules


def write(folder: Path) -> Path:
    """A file of rules."""
    path = folder / "rules.yaml"
    path.write_text(yaml.safe_dump(rules()))
    return path
