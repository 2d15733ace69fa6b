"""Merge patches, checked against RFC 7386's own algorithm."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from builders import build
from hvpa.api.hvpa.status import to_wire
from hvpa.core import Objects
from hvpa.reconcile import patch
from hvpa.reconcile.patch import StatusPatch, merge_patch
from tests.unit.core.strategies import objects
from tests.unit.reconcile.fakes import patched

CALM = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # on a busy machine
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.integers() | st.booleans() | st.sampled_from(["", "x", "y"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)
DOCUMENTS = st.dictionaries(st.sampled_from("abcd"), VALUES, max_size=4)


@CALM
@given(DOCUMENTS, DOCUMENTS)
def test_the_patch_leads_from_old_to_new(old: dict[str, Any], new: dict[str, Any]) -> None:
    assert patched(old, merge_patch(old, new)) == new


@CALM
@given(DOCUMENTS)
def test_equal_documents_need_no_patch(document: dict[str, Any]) -> None:
    assert merge_patch(document, document) == {}


@CALM
@given(objects(), st.sampled_from([(), ("lastError", "axes"), ("conditions", "old")]))
def test_the_patch_of_a_status_is_that_of_its_whole_dump(
    inputs: Objects, unreadable: tuple[str, ...]
) -> None:
    hvpa, status = replace(inputs.hvpa, unreadable_status=unreadable), build.decided(inputs).status
    status_patch, wanted = StatusPatch(hvpa, status), to_wire(status)
    leftover = {field: None for field in unreadable if field not in wanted}
    assert status_patch == merge_patch(to_wire(hvpa.status), wanted) | leftover
    assert status_patch.fields == sorted(status_patch)
    assert len(status_patch) == len(status_patch.fields)
    assert StatusPatch(inputs.hvpa, inputs.hvpa.status).fields == []


def test_a_patch_that_is_not_looked_into_is_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    objects = build.objects()
    status = build.decided(objects).status
    monkeypatch.setattr(patch, "to_wire", None)
    status_patch = StatusPatch(objects.hvpa, status)
    assert "conditions" in status_patch.fields
    with pytest.raises(TypeError):
        status_patch["conditions"]
