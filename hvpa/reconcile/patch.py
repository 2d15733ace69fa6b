"""JSON merge patches (RFC 7386) between two wire dumps."""

from __future__ import annotations

from collections.abc import Mapping


def merge_patch(old: Mapping[str, object], new: Mapping[str, object]) -> dict[str, object]:
    """What turns `old` into `new`: changed and added keys, and None for removed ones; empty when they are equal.

    Lists are replaced whole. Neither side may hold None as a value.
    """
    patch: dict[str, object] = {}
    for key, value in new.items():
        before = old.get(key)
        if isinstance(before, Mapping) and isinstance(value, Mapping):
            if inner := merge_patch(before, value):
                patch[key] = inner
        elif before != value or key not in old:
            patch[key] = value
    for key in old:
        if key not in new:
            patch[key] = None
    return patch
