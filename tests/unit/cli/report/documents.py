"""Reports on documents."""

from __future__ import annotations

from typing import Any

from tests.unit.cli import schema
from tests.unit.cli.support import NOW, Doc, Shell

STALE: dict[str, Any] = {
    "metadata.creationTimestamp": "2026-11-11T10:00:00Z",
    "metadata.managedFields": [
        {"manager": "recommender", "subresource": "status", "time": "2026-11-21T09:55:00Z"}
    ],
    "status.recommendation.containerRecommendations.0.upperBound": {"memory": "2147483649"},
}
"""Of a VPA whose recommender was silent in the last five minutes, which must have changed the upper bound."""


def reported(shell: Shell, documents: list[Doc], *flags: str) -> Any:
    """The JSON of the report on these documents, which follows its schema."""
    ran = shell.run("report", "-f", shell.file(documents), "--now", NOW, "-o", "json", *flags)
    assert (ran.code, ran.err) == (0, ""), ran.err
    schema.check(ran.json, schema.schema_of("report"))
    return ran.json


def of(report: Any, name: str) -> Any:
    """The workload of this name."""
    return next(one for one in report["workloads"] if one["name"] == name)
