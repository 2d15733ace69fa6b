"""Formulas: what they may say, what they are worth, and that nothing else gets through."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hvpa_lab.simulate.load.formula import MAX_LENGTH, NAMES, Formula, FormulaError

DAY = 86_400.0


@pytest.mark.parametrize(
    ("text", "t", "value"),
    [
        ("3", 0, 3),
        ("2.5e1", 0, 25),
        ("t / hour", 7200, 2),
        ("1 + 2 * 3 - 4 / 8", 0, 6.5),
        ("-t + +1", 3, -2),
        ("t % minute", 61, 1),
        ("2 ** 0.5", 0, math.sqrt(2)),
        ("(-2) ** 3", 0, -8),
        ("200 + 150 * sin(2 * pi * t / day)", DAY / 4, 350),
        ("cos(0) + exp(0) + log(1) + sqrt(4)", 0, 4),
        ("abs(-2) + floor(1.5) + ceil(1.5)", 0, 5),
        ("min(1, 2, 3) + max(1, 2, 3)", 0, 4),
        ("1 if t < week else 2", 7 * DAY, 2),
        ("1 if t >= day and not t > 2 * day or t == 5 else 0", 1.5 * DAY, 1),
        ("10 * (1 < t <= 3) + (t != 2)", 2, 10),
        ("pulse(t, 10, 5)", 9.9, 0),
        ("pulse(t, 10, 5)", 10, 1),
        ("pulse(t, 10, 5)", 15, 0),
        ("ramp(t, 10, 4)", 9, 0),
        ("ramp(t, 10, 4)", 11, 0.25),
        ("ramp(t, 10, 4)", 20, 1),
        ("ramp(t, 10, 0)", 10, 1),
        ("  1 +\n  t # the time", 1, 2),
    ],
)
def test_a_formula_is_worth_what_it_says(text: str, t: float, value: float) -> None:
    assert Formula(text)(t) == pytest.approx(value, abs=1e-12)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "column 1: invalid syntax"),
        ("1 +", "column 4: invalid syntax"),
        ("t)", "column 2: unmatched ')'"),
        ("t) + (1", "column 2: unmatched ')'"),
        ("3 + load", "column 5: 'load' is not known; there are t, minute, hour"),
        ("sin", "column 1: sin is a function"),
        ("1 + sin(1, 2)", "column 5: sin takes 1 argument"),
        ("pulse(t, 1)", "column 1: pulse takes 3 arguments"),
        ("min(1)", "column 1: min takes 2 or more arguments"),
        ("sin(x=1)", "column 1: sin takes 1 argument"),
        ("sin(*t)", "column 5: only numbers, operators"),
        ("open('x')", "column 1: only these can be called: sin,"),
        ("(1)(2)", "column 1: only these can be called"),
        ("t.real", "column 1: only numbers, operators"),
        ("t[0]", "column 1: only numbers, operators"),
        ("[t for t in t]", "column 1: only numbers, operators"),
        ("(lambda: 1)", "column 2: only numbers, operators"),
        ("(t := 3)", "column 2: only numbers, operators"),
        ("'a'", "column 1: 'a' is not a number"),
        ("True", "column 1: True is not a number"),
        ("1j", "column 1: 1j is not a number"),
        ("9" * 400, "column 1: the number is too large"),
        ("t // 2", "column 1: the operators are"),
        ("~t", "column 1: the operators are"),
        ("t is 1", "column 1: the operators are"),
        ("1if t else 2", "column 1: invalid"),
        ("1" + "+1" * MAX_LENGTH, f"is longer than {MAX_LENGTH} characters"),
        ("-" * (MAX_LENGTH - 1) + "1", "nested too deep"),
        ("'\ud800'", "not text"),
    ],
)
def test_what_is_no_formula_is_refused_with_its_place(text: str, message: str) -> None:
    with pytest.raises(FormulaError) as caught:
        Formula(text)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 / (t - 5)", "has no value at t = 5: division by zero"),
        ("t % 0", "has no value at t = 5: division by zero"),
        ("log(0)", "has no value at t = 5: math domain error"),
        ("exp(1000)", "has no value at t = 5: math range error"),
        ("(-8) ** 0.5", "has no value at t = 5"),
        ("9 ** 9 ** 9", "has no value at t = 5: an exponent beyond 1000"),
        ("1e308 * 10", "is inf at t = 5"),
        ("1e999 - 1e999", "is nan at t = 5"),
    ],
)
def test_a_formula_without_a_value_names_the_time(text: str, message: str) -> None:
    with pytest.raises(FormulaError) as caught:
        Formula(text)(5.0)
    assert message in str(caught.value)


_SNIPPETS = st.sampled_from(
    [*NAMES, "(", ")", ",", "+", "-", "*", "/", "%", "**", "<", "==", "if", "else", "and", "not", "1", "0", "2.5",
     "1e9", "__import__", "lambda", ":", "[", "]", ".", "'", "\\", " ", "for", "in", "await", "yield", ":="]
)  # fmt: skip


def _outcome(text: str, t: float) -> float | str:
    try:
        return Formula(text)(t)
    except FormulaError as error:
        return str(error)


@given(st.one_of(st.text(max_size=40), st.lists(_SNIPPETS, max_size=25).map(" ".join)), st.floats(0, 1e9))
def test_any_text_is_a_number_or_refused(text: str, t: float) -> None:
    outcome = _outcome(text, t)
    assert outcome if isinstance(outcome, str) else math.isfinite(outcome)


@given(st.integers(-(10**12), 10**12) | st.floats(0, 1e300))
def test_a_number_is_worth_what_is_written(number: float) -> None:
    assert Formula(repr(number))(0.0) == number


@given(st.floats(0, 1e9), st.floats(0, 1e9), st.floats(0, 1e9))
def test_ramps_rise_and_pulses_are_on_or_off(t: float, start: float, length: float) -> None:
    ramp = Formula(f"ramp(t, {start!r}, {length!r})")
    assert 0 <= ramp(t) <= ramp(t + 1) <= 1
    assert Formula(f"pulse(t, {start!r}, {length!r})")(t) == float(start <= t < start + length)
