"""Label selectors as text, and back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hvpa.api.objects.read_models import Selector, SelectorRequirement
from hvpa.core.workload.selector import parse_selector, selector_text


def entry(key: str, operator: str, *values: str) -> SelectorRequirement:
    return SelectorRequirement(key, operator, frozenset(values) or None)


@pytest.mark.parametrize(
    ("text", "selector"),
    [
        ("", Selector()),
        (" ", Selector()),
        ("app=web", Selector({"app": "web"})),
        ("app==web, example.com/tier = front", Selector({"app": "web", "example.com/tier": "front"})),
        ("app=", Selector({"app": ""})),
        ("a in (x,y),b notin (z)", Selector(None, [entry("a", "In", "x", "y"), entry("b", "NotIn", "z")])),
        (
            "a!=x,b,!c",
            Selector(None, [entry("a", "NotIn", "x"), entry("b", "Exists"), entry("c", "DoesNotExist")]),
        ),
        ("in in (in)", Selector({"in": "in"})),
        ("a=x,a=y", Selector({"a": "x"}, [entry("a", "In", "y")])),
    ],
)
def test_a_text_is_read_as_the_api_server_reads_it(text: str, selector: Selector) -> None:
    assert parse_selector(text) == selector


def test_a_selector_is_written_in_order() -> None:
    expressions = [
        entry("tier", "In", "front", "back"),
        entry("env", "NotIn", "test"),
        entry("canary", "DoesNotExist"),
        entry("live", "Exists"),
    ]
    written = selector_text(Selector({"b": "2", "a": "1"}, expressions))
    assert written == "a=1,b=2,!canary,env notin (test),live,tier in (back,front)"
    assert selector_text(Selector()) == ""


@pytest.mark.parametrize(
    "text", ["a=b,", ",", "=b", "a in x", "a in (x", "a in (x))", "a=b c", "!", "a>1", "a=b=c"]
)
def test_what_is_no_selector_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no label selector"):
        parse_selector(text)


KEYS = st.from_regex(r"([a-z][a-z0-9]?\.io/)?[a-z]([a-z0-9.-]{0,8}[a-z0-9])?", fullmatch=True)
VALUES = st.from_regex(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,8}[A-Za-z0-9])?", fullmatch=True)
SETS = st.frozensets(VALUES, min_size=1, max_size=3)
ENTRIES = st.one_of(
    st.builds(SelectorRequirement, KEYS, st.just("In"), st.frozensets(VALUES, min_size=2, max_size=3)),
    st.builds(SelectorRequirement, KEYS, st.just("NotIn"), SETS),
    st.builds(SelectorRequirement, KEYS, st.sampled_from(["Exists", "DoesNotExist"])),
)


@given(
    st.dictionaries(KEYS, VALUES, max_size=3),
    st.lists(ENTRIES, max_size=3, unique_by=lambda requirement: requirement.key),
)
def test_what_is_written_is_read_again(labels: dict[str, str], entries: list[SelectorRequirement]) -> None:
    selector = parse_selector(selector_text(Selector(labels, entries)))
    assert selector == Selector(
        labels or None, sorted(entries, key=lambda requirement: requirement.key) or None
    )


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        selector = parse_selector(text)
    except ValueError:
        return
    assert parse_selector(selector_text(selector)) is not None
