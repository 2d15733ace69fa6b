"""Label selectors as the HPA controller reads them. What is accepted and refused, and the errors' words, are those of
`labels.Parse`."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hvpa.recommend.hpa.selector import SelectorError, check_selector, parse_selector, show_selector


@pytest.mark.parametrize(
    ("text", "labels", "selected"),
    [
        ("", {}, True),
        ("  ", {"a": "b"}, True),
        ("app=web", {"app": "web", "more": "x"}, True),
        ("app==web", {"app": "db"}, False),
        ("app=web", {}, False),
        ("app=web,tier = front", {"app": "web", "tier": "front"}, True),
        ("app!=web", {}, True),
        ("app!=web", {"app": "web"}, False),
        ("app in (web, db)", {"app": "db"}, True),
        ("app in (web,db)", {}, False),
        ("app notin (web,db)", {"app": "db"}, False),
        ("app notin (web)", {}, True),
        ("app in ()", {"app": ""}, True),
        ("app in (,a)", {"app": ""}, True),
        ("app in (a,)", {"app": ""}, True),
        ("app in (a,,b)", {"app": ""}, True),
        ("app in (a,b)", {"app": ""}, False),
        ("app=", {"app": ""}, True),
        ("app=,x", {"app": "", "x": "1"}, True),
        ("app", {"app": "x"}, True),
        ("app", {}, False),
        ("!app", {}, True),
        ("!app", {"app": "x"}, False),
        ("n>5", {"n": "6"}, True),
        ("n>5", {"n": "5"}, False),
        ("n<5", {"n": "4"}, True),
        ("n<5", {"n": "six"}, False),
        ("n<5", {}, False),
        ("n>5", {"n": str(2**63 - 1)}, True),
        ("n>5", {"n": str(2**63)}, False),  # no int64
        ("in in (in)", {"in": "in"}, True),
        ("notin=in", {"notin": "in"}, True),
        ("example.com/app=web", {"example.com/app": "web"}, True),
    ],
)
def test_selects(text: str, labels: dict[str, str], selected: bool) -> None:
    assert parse_selector(text).matches(labels) is selected


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("=web", "found '=', expected: !, identifier, or 'end of string'"),
        ("!", "unable to parse requirement: found '', expected: identifier"),
        ("!=web", "found '!=', expected: !, identifier, or 'end of string'"),
        ("app web", "unable to parse requirement: found 'web', expected: in, notin, =, ==, !=, gt, lt"),
        ("app=web db", "found 'db', expected: ',' or 'end of string'"),
        ("!app=web", "found '=', expected: ',' or 'end of string'"),
        ("app=web,", "found '', expected: identifier after ','"),
        ("app==)", "unable to parse requirement: found ')', expected: identifier"),
        ("app in web", "unable to parse requirement: found 'web' expected: '('"),
        ("app in (=", "unable to parse requirement: found '=', expected: ',', ')' or identifier"),
        ("app in (web", "unable to parse requirement: found '', expected: ',' or ')'"),
        ("app in (web,(", "unable to parse requirement: found '(', expected: ',', or identifier"),
        ("-app", "unable to parse requirement: '-app' is no name of a label"),
        ("a/b/c", "unable to parse requirement: 'a/b/c' is no name of a label"),
        ("app=-", "unable to parse requirement: '-' is no value of a label"),
        (f"app={'a' * 64}", f"unable to parse requirement: '{'a' * 64}' is no value of a label"),
        (
            "n>five",
            'unable to parse requirement: values[0]: Invalid value: "five": '
            + "for 'Gt', 'Lt' operators, the value must be an integer",
        ),
        (
            f"n<{2**63}",
            f'unable to parse requirement: values[0]: Invalid value: "{2**63}": '
            + "for 'Gt', 'Lt' operators, the value must be an integer",
        ),
        (
            "n>",
            'unable to parse requirement: values[0]: Invalid value: "": '
            + "for 'Gt', 'Lt' operators, the value must be an integer",
        ),
    ],
)
def test_refuses(text: str, error: str) -> None:
    with pytest.raises(SelectorError) as raised:
        parse_selector(text)
    assert str(raised.value) == error


@given(st.text(alphabet="ab/.-=!(),<> innot5", max_size=20))
def test_any_text_is_parsed_or_refused(text: str) -> None:
    try:
        matcher = parse_selector(text)
    except SelectorError:
        return
    assert matcher.matches({"a": "b"}) in (True, False)


@pytest.mark.parametrize(
    "selector",
    [
        None,
        {},
        {"matchLabels": {"a": "b"}},
        {"matchLabels": None, "matchExpressions": None},
        {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]},
        {"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["b"]}]},
        {"matchExpressions": [{"key": "a", "operator": "Exists"}, {"key": "b", "operator": "DoesNotExist"}]},
    ],
)
def test_selectors_of_metrics(selector: dict[str, Any] | None) -> None:
    check_selector(selector)
    assert show_selector(selector).startswith(
        "nil" if selector is None else "&LabelSelector{MatchLabels:map[string]string{"
    )


@pytest.mark.parametrize(
    ("selector", "error"),
    [
        ({"matchLabels": {"-": "b"}}, "'-' is no name of a label"),
        ({"matchExpressions": [{"key": "a"}]}, '"" is not a valid label selector operator'),
        (
            {"matchExpressions": [{"key": "a", "operator": "In"}]},
            "values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty",
        ),
        (
            {"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["b"]}]},
            'values: Invalid value: ["b"]: values set must be empty for exists and does not exist',
        ),
        ({"matchExpressions": [{"operator": "Exists"}]}, "'' is no name of a label"),
    ],
)
def test_wrong_selectors_of_metrics(selector: dict[str, Any], error: str) -> None:
    with pytest.raises(SelectorError) as raised:
        check_selector(selector)
    assert str(raised.value) == error


def test_selectors_are_printed_as_go_prints_them() -> None:
    selector = {
        "matchLabels": {"b": "2", "a": "1"},
        "matchExpressions": [
            {"key": "c", "operator": "In", "values": ["x", "y"]},
            {"key": "d", "operator": "Exists"},
        ],
    }
    assert show_selector(selector) == (
        "&LabelSelector{MatchLabels:map[string]string{a: 1,b: 2,},MatchExpressions:[]LabelSelectorRequirement{"
        "LabelSelectorRequirement{Key:c,Operator:In,Values:[x y],},"
        "LabelSelectorRequirement{Key:d,Operator:Exists,Values:[],},},}"
    )
    assert show_selector({}) == (
        "&LabelSelector{MatchLabels:map[string]string{},MatchExpressions:[]LabelSelectorRequirement{},}"
    )
