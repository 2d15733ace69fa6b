"""The scenarios of the HPA: those that are written, whose real answers are recorded."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tests.recorded.hpa import cases_custom, cases_metrics, cases_pods, cases_rates
from tests.recorded.hpa.model import theirs
from tests.recorded.replay import Json, by_name, replay

WRITTEN = by_name(
    case for written in (cases_metrics, cases_custom, cases_pods, cases_rates) for case in written.cases()
)


def replayed(program: Path, scenarios: Mapping[str, Json]) -> dict[str, list[Json]]:
    """What the real controller does in each scenario, sync by sync."""
    real = replay(program, list(scenarios.values()))
    return {name: [theirs(sync) for sync in real[name]["syncs"]] for name in scenarios}
