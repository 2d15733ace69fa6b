"""Running the programs that replay scenarios through the code of the real recommenders. What is common to the
scenarios of both is here too: their time, which starts with the century as `testing/synctest` has it."""

from __future__ import annotations

import datetime as dt
import json
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

Json = dict[str, Any]

START = dt.datetime(2000, 1, 1, tzinfo=dt.UTC)
"""Second 0 of all scenarios."""
_TIMEOUT_SECONDS = 240


def instant(seconds: float) -> dt.datetime:
    """The time of a scenario's second."""
    return START + dt.timedelta(seconds=seconds)


def timestamp(seconds: float) -> str:
    """The time of a scenario's second, as the API server writes it: without fractions."""
    return instant(seconds).strftime("%Y-%m-%dT%H:%M:%SZ")


def by_name(scenarios: Iterable[Json]) -> dict[str, Json]:
    """The scenarios by their names, none of which may come twice."""
    named: dict[str, Json] = {}
    for scenario in scenarios:
        name = scenario["name"]
        assert name not in named, f"two scenarios are called {name}"
        named[name] = scenario
    return named


def differences(where: str, ours: Json, real: Json) -> str | None:
    """The parts in which two answers differ, with both sides; None where they agree."""
    wrong = [part for part in {**ours, **real} if ours.get(part) != real.get(part)]
    lines = (f"  {part}: ours {ours.get(part)!r}, real {real.get(part)!r}" for part in wrong)
    return "\n".join([f"{where}:", *lines]) if wrong else None


def replay(program: Path, scenarios: Sequence[Json]) -> dict[str, Json]:
    """What the real code does in each scenario, by the scenario's name."""
    given = json.dumps(scenarios).encode()
    answer = subprocess.run([program], input=given, capture_output=True, timeout=_TIMEOUT_SECONDS)
    if answer.returncode:
        text = (answer.stderr or answer.stdout).decode(errors="replace")
        raise RuntimeError(f"{program.name} ended with {answer.returncode}:\n{text[-4000:]}")
    return {result["name"]: result for result in json.loads(answer.stdout)}
