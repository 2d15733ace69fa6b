"""Tables of good and bad manifests. Unit tests run them through the models, end-to-end tests through an API
server."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from builders.gardener.manifests import FORMS

_HERE = Path(__file__).parent

Manifest = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """A manifest with a sentence about it; `path` is the field that is wrong, and empty where none is.

    `message` is what the model and the API server both say of it, where they use the same words.
    """

    name: str
    manifest: Manifest
    path: str = ""
    message: str = ""


def base() -> Manifest:
    """The complete manifest that most cases start from."""
    return copy.deepcopy(_base())


def good() -> list[Case]:
    """Manifests to accept: those of the table, and all that gardener's generators wrote."""
    forms = [
        Case(f"gardener's {name}", {**form, "metadata": {"name": form["metadata"]["name"]}})
        for name, form in copy.deepcopy(FORMS).items()
    ]
    return [*(_case(entry) for entry in _load("good.yaml")), *forms]


def bad() -> list[Case]:
    """Manifests to refuse."""
    return [_case(entry) for entry in _load("bad.yaml")]


def changed(manifest: Manifest, values: dict[str, Any], removed: Sequence[str] = ()) -> Manifest:
    """A copy in which the fields at these dotted paths are replaced, and the `removed` ones taken out."""
    result = copy.deepcopy(manifest)
    for path, value in values.items():
        *parents, last = path.split(".")
        place = result
        for parent in parents:
            place = place.setdefault(parent, {})
        place[last] = value
    for path in removed:
        *parents, last = path.split(".")
        place = result
        for parent in parents:
            place = place[parent]
        del place[last]
    return result


_ONE = {
    "metric": "spec.hpa.template.spec.metrics",
    "policy": "spec.vpa.template.spec.resourcePolicy.containerPolicies",
    "window": "spec.maintenanceWindows",
    "floor": "spec.hpa.schedule",
}
"""Short for a list of one: of `metric: {type: Custom}, path: type`, the path is
`spec.hpa.template.spec.metrics[0].type`."""
_PATH = "spec.trajectory.intervals"
"""`path_of` lists these, without the weights of the base."""


def _whole(entry: Manifest) -> Manifest:
    """The entry with what is short for a `set` written out."""
    path = entry.get("path", "")
    if "path_of" in entry:
        values = {"spec.weightBasedScalingIntervals": [], _PATH: entry["path_of"]}
        return {**entry, "set": values, "path": f"{_PATH}{path}"}
    for short, field in _ONE.items():
        if short in entry:
            return {**entry, "set": {field: [entry[short]]}, "path": f"{field}[0].{path}"}
    return entry


def _case(entry: Manifest) -> Case:
    entry = _whole(entry)
    manifest = entry.get("manifest") or changed(_base(), entry.get("set", {}), entry.get("remove", []))
    return Case(entry["name"], manifest, entry.get("path", ""), entry.get("message", ""))


@cache
def _base() -> Manifest:
    manifest: Manifest = _load("base.yaml")
    return manifest


def _load(name: str) -> Any:
    return yaml.load((_HERE / name).read_text(encoding="utf-8"), yaml.CSafeLoader)
