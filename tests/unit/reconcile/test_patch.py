"""Merge patches, checked against RFC 7386's own algorithm."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hvpa.reconcile.patch import merge_patch

CALM = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # on a busy machine
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.integers() | st.booleans() | st.sampled_from(["", "x", "y"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)
DOCUMENTS = st.dictionaries(st.sampled_from("abcd"), VALUES, max_size=4)


def applied(target: Any, patch: Any) -> Any:
    """MergePatch of RFC 7386, section 2."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = applied(result.get(name), value)
    return result


@CALM
@given(DOCUMENTS, DOCUMENTS)
def test_the_patch_leads_from_old_to_new(old: dict[str, Any], new: dict[str, Any]) -> None:
    assert applied(old, merge_patch(old, new)) == new


@CALM
@given(DOCUMENTS)
def test_equal_documents_need_no_patch(document: dict[str, Any]) -> None:
    assert merge_patch(document, document) == {}
