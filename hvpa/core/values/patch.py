"""JSON merge patches, and owner references as the API server reads them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from hvpa.api.objects.read_models import OwnerReference


def difference(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the JSON merge patch from one document to another. Example: from `{a: 1, b: 2}` to `{b: 2, c: 3}` it is
    `{a: null, c: 3}`."""
    patch: dict[str, Any] = {key: None for key in before if key not in after}
    for key, value in after.items():
        old = before.get(key)
        if isinstance(value, dict) and isinstance(old, dict):
            if nested := difference(old, value):
                patch[key] = nested
        elif key not in before or old != value:
            patch[key] = value
    return patch


def wire(owner: OwnerReference) -> dict[str, Any]:
    """Returns an owner reference as JSON."""
    return {"controller": False, **msgspec.to_builtins(owner)}
