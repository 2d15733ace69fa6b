"""JSON merge patches (RFC 7386) between two wire dumps, and between two statuses of an Hvpa."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property

from hvpa.api.hvpa.resource import HvpaObject
from hvpa.api.hvpa.status import HvpaStatus, to_wire


def merge_patch(old: Mapping[str, object], new: Mapping[str, object]) -> dict[str, object]:
    """Returns the patch from `old` to `new`: changed and added keys, and None for removed keys. It is empty if they are
    equal.

    Lists are replaced as a whole. Neither side may contain None as a value.
    """
    patch: dict[str, object] = {}
    for key, value in new.items():
        before = old.get(key)
        if isinstance(before, Mapping) and isinstance(value, Mapping):
            if inner := merge_patch(before, value):
                patch[key] = inner
        elif before != value or key not in old:
            patch[key] = value
    return patch | {key: None for key in old if key not in new}


class StatusPatch(Mapping[str, object]):
    """The merge patch from the stored status of `hvpa` to `status`. It is calculated on first access: an in-memory
    cluster takes the status as it is. `fields` are the top-level fields that the patch changes; empty if there is
    nothing to write."""

    def __init__(self, hvpa: HvpaObject, status: HvpaStatus) -> None:
        self._hvpa, self._status = hvpa, status
        fields = HvpaStatus.model_fields if status is not hvpa.status else {}
        self._differ = {name: True for name in fields if getattr(hvpa.status, name) != getattr(status, name)}
        self.fields = sorted({fields[name].alias or name for name in self._differ} | self._leftover().keys())

    def _leftover(self) -> dict[str, object]:
        """Returns the removal of unreadable fields (from a status of gardener's controller) that the new status does
        not replace."""
        if not self._hvpa.unreadable_status:
            return {}
        wanted = to_wire(self._status)
        return {field: None for field in self._hvpa.unreadable_status if field not in wanted}

    @cached_property
    def _patch(self) -> dict[str, object]:
        old, new = to_wire(self._hvpa.status, self._differ), to_wire(self._status, self._differ)
        return merge_patch(old, new) | self._leftover()

    def __getitem__(self, key: str) -> object:
        return self._patch[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._patch)

    def __len__(self) -> int:
        return len(self._patch)
