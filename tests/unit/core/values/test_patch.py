"""Merge patches."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from builders import build
from hvpa.core.values.patch import difference

Json = dict[str, Any]
documents = st.recursive(
    st.integers(0, 2) | st.lists(st.integers(0, 2), max_size=2),
    lambda inner: st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
)
objects = st.dictionaries(st.sampled_from("abc"), documents, max_size=3)


@given(objects, objects)
def test_a_difference_leads_from_one_document_to_the_other(before: Json, after: Json) -> None:
    patch = difference(before, after)
    assert build.merged(before, patch) == after
    assert (patch == {}) == (before == after)
