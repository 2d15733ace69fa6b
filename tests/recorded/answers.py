"""The recorded answers of the real HPA controller, the real VPA recommender, and the real VPA updater with its webhook,
one file for each: by scenario, the answers in order. An answer lacks what is equal to the one before it, which makes
the files a third as large."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.recorded.replay import Json

_FOLDER = Path(__file__).parent


def read(recommender: str) -> dict[str, list[Json]]:
    """The recorded answers of `hpa`, `vpa` or `updater`, by scenario."""
    recorded = json.loads((_FOLDER / f"{recommender}.json").read_text(encoding="utf-8"))
    return {name: _whole(answers) for name, answers in recorded.items()}


def write(recommender: str, answers: Mapping[str, Sequence[Json]]) -> None:
    """Record these answers of `hpa`, `vpa` or `updater`, a line for each scenario."""
    lines = [f"{json.dumps(name)}: {json.dumps(_changes(given))}" for name, given in answers.items()]
    (_FOLDER / f"{recommender}.json").write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def _changes(answers: Sequence[Json]) -> list[Json]:
    before = [{}, *answers[:-1]]
    return [
        {key: value for key, value in answer.items() if key not in last or last[key] != value}
        for last, answer in zip(before, answers, strict=True)
    ]


def _whole(changes: Sequence[Json]) -> list[Json]:
    answers: list[Json] = []
    for change in changes:
        answers.append({**(answers[-1] if answers else {}), **change})
    return answers
