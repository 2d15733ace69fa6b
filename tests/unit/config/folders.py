"""Reads the objects of a folder of `config/` by its kustomization, as `kubectl kustomize` would."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import yaml

CONFIG = Path(__file__).resolve().parents[3] / "config"

Json = dict[str, Any]


def resources(name: str) -> list[str]:
    """The entries of `resources` in a folder's kustomization."""
    kustomization = yaml.safe_load((CONFIG / name / "kustomization.yaml").read_text())
    listed: list[str] = kustomization["resources"]
    return listed


@cache
def objects(name: str) -> list[Json]:
    """All objects of a folder, those of folders that it refers to included."""
    documents: list[Json] = []
    for entry in resources(name):
        path = CONFIG / name / entry
        if path.is_dir():
            documents += objects(str(path.resolve().relative_to(CONFIG)))
        else:
            documents += [
                document for document in yaml.load_all(path.read_text(), yaml.CSafeLoader) if document
            ]
    return documents


def only(name: str, kind: str, object_name: str) -> Json:
    """The one object of a kind and name in a folder."""
    (document,) = (o for o in objects(name) if (o["kind"], o["metadata"]["name"]) == (kind, object_name))
    return document
