"""The scenarios of the VPA's updater and webhook: those that are written, whose real answers are recorded."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tests.recorded.replay import Json, by_name, replay
from tests.recorded.updater import cases
from tests.recorded.updater.model import theirs

WRITTEN = by_name(cases.cases())


def replayed(program: Path, scenarios: Mapping[str, Json]) -> dict[str, list[Json]]:
    """What the real updater and the real webhook do in each scenario, loop by loop."""
    real = replay(program, list(scenarios.values()))
    return {name: [theirs(answer) for answer in real[name]["answers"]] for name in scenarios}
