"""Reports on documents, and documents to report on."""

from __future__ import annotations

import copy
from typing import Any

from tests.unit.cli.support import NOW, Doc, Shell

TEMPLATE = ("spec", "template", "spec")


STALE: dict[str, Any] = {
    "metadata.creationTimestamp": "2026-11-11T10:00:00Z",
    "metadata.managedFields": [
        {"manager": "recommender", "subresource": "status", "time": "2026-11-21T09:55:00Z"}
    ],
    "status.recommendation.containerRecommendations.0.upperBound": {"memory": "2147483649"},
}
"""Of a VPA whose recommender was silent in the last five minutes, which must have changed the upper bound."""


def reported(shell: Shell, documents: list[Doc], *flags: str) -> Any:
    """The JSON of the report on these documents."""
    ran = shell.run("report", "-f", shell.file(documents), "--now", NOW, "-o", "json", *flags)
    assert (ran.code, ran.err) == (0, ""), ran.err
    return ran.json


def of(report: Any, name: str) -> Any:
    """The workload of this name."""
    return next(one for one in report["workloads"] if one["name"] == name)


def named(documents: list[Doc], kind: str, name: str) -> Doc:
    """The document of this kind and name."""
    return next(one for one in documents if (one["kind"], one["metadata"]["name"]) == (kind, name))


def with_fields(documents: list[Doc], kind: str, name: str, fields: dict[str, Any]) -> list[Doc]:
    """A copy in which one document has other fields, by path: `{"spec.replicas": 1}`. None removes a field; a number in
    a path is an index."""
    result = copy.deepcopy(documents)
    for path, value in fields.items():
        *parents, last = path.split(".")
        place: Any = named(result, kind, name)
        for part in parents:
            place = place[int(part)] if isinstance(place, list) else place.setdefault(part, {})
        if value is None:
            del place[last]
        else:
            place[int(last) if isinstance(place, list) else last] = value
    return result


def without(documents: list[Doc], *kinds: str) -> list[Doc]:
    """The documents but those of these kinds."""
    return [one for one in documents if one["kind"] not in kinds]
