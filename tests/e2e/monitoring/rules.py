"""The rules of `config/monitoring`, as Prometheus reads them."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import yaml

from localcluster.operator.operator import REPOSITORY

MANIFEST: Final = REPOSITORY / "config/monitoring/prometheus_rule.yaml"


def spec() -> dict[str, Any]:
    """The groups of rules."""
    found: dict[str, Any] = yaml.safe_load(MANIFEST.read_text())["spec"]
    return found


def alerts() -> dict[str, dict[str, Any]]:
    """The alerts, by name."""
    rules = [rule for group in spec()["groups"] for rule in group["rules"]]
    found = {rule["alert"]: rule for rule in rules if "alert" in rule}
    assert len(found) == sum("alert" in rule for rule in rules)
    return found


def write(folder: Path) -> Path:
    """A file of rules."""
    path = folder / "rules.yaml"
    path.write_text(yaml.safe_dump(spec()))
    return path
