"""The scenarios of the VPA recommender: those that are written, whose real answers are recorded."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tests.recorded.replay import Json, by_name, replay
from tests.recorded.vpa import cases
from tests.recorded.vpa.model import theirs

WRITTEN = by_name(cases.cases())


def replayed(program: Path, scenarios: Mapping[str, Json]) -> dict[str, list[Json]]:
    """What the real recommender recommends in each scenario, answer by answer."""
    real = replay(program, list(scenarios.values()))
    return {name: [theirs(answer) for answer in real[name]["answers"]] for name in scenarios}
