"""Label selectors as text, as the scale subresource tells them, and as metrics name them.

Source: `k8s.io/apimachinery/pkg/labels` (Parse) and `metav1.LabelSelectorAsSelector`. Errors have Go's words, except
for what is wrong with a label's name or value.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

from hvpa.recommend.golang.numbers import MAX_INT64, MIN_INT64

_TOKEN: Final = re.compile(r"[ \t\r\n]*(?:(?P<symbol>==|!=|[=!(),<>])|(?P<word>[^=!(),<> \t\r\n]+))")
_NAME: Final = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]", re.ASCII)
_PREFIX: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*", re.ASCII)
_MAX_NAME: Final = 63
_MAX_PREFIX: Final = 253
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,63}", re.ASCII)
_OPERATORS: Final = {"=": "in", "==": "in", "in": "in", "!=": "notin", "notin": "notin", ">": "gt", "<": "lt"}
_END: Final = ("end", "")


class SelectorError(ValueError):
    """A text that is no selector, or a metric's selector with a wrong operator, name or value."""


class _Requirement(NamedTuple):
    key: str
    operator: str  # in, notin, exists, !, gt, lt
    values: frozenset[str]

    def holds(self, labels: Mapping[str, str]) -> bool:
        """Whether the labels meet it (`Requirement.Matches`)."""
        value = labels.get(self.key)
        match self.operator:
            case "in":
                return value in self.values
            case "notin":
                return value not in self.values
            case "exists":
                return value is not None
            case "!":
                return value is None
        bound, number = _integer(*self.values), _integer(value or "")
        if bound is None or number is None:
            return False
        return number > bound if self.operator == "gt" else number < bound


class LabelMatcher(NamedTuple):
    """A parsed selector: all its requirements must hold. Without any, it selects everything."""

    requirements: Sequence[_Requirement]

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether an object with these labels is selected."""
        return all([requirement.holds(labels) for requirement in self.requirements])


@lru_cache(maxsize=4096)
def parse_selector(text: str) -> LabelMatcher:
    """A selector in the form of `kubectl --selector` (`labels.Parse`). Raises `SelectorError`."""
    return LabelMatcher(_Parser(text).parse())


def check_selector(selector: Mapping[str, Any] | None) -> None:
    """Raise `SelectorError` where `metav1.LabelSelectorAsSelector` refuses a metric's selector."""
    if not selector:
        return
    for key, value in (selector.get("matchLabels") or {}).items():
        _requirement(key, "in", [value])
    for expression in selector.get("matchExpressions") or ():
        operator = expression.get("operator", "")
        if operator not in ("In", "NotIn", "Exists", "DoesNotExist"):
            raise SelectorError(f'"{operator}" is not a valid label selector operator')
        name = "!" if operator == "DoesNotExist" else operator.lower()
        _requirement(expression.get("key", ""), name, expression.get("values") or ())


def show_selector(selector: Mapping[str, Any] | None) -> str:
    """A metric's selector as Go prints it into messages (`%+v`)."""
    if selector is None:
        return "nil"
    labels = selector.get("matchLabels") or {}
    equal = "".join(f"{key}: {labels[key]}," for key in sorted(labels))
    rest = "".join(
        f"LabelSelectorRequirement{{Key:{e.get('key', '')},Operator:{e.get('operator', '')},"
        f"Values:[{' '.join(e.get('values') or ())}],}},"
        for e in selector.get("matchExpressions") or ()
    )
    return (
        f"&LabelSelector{{MatchLabels:map[string]string{{{equal}}},"
        f"MatchExpressions:[]LabelSelectorRequirement{{{rest}}},}}"
    )


def _requirement(key: str, operator: str, values: Sequence[str]) -> _Requirement:
    """Source: `labels.NewRequirement`; of several errors the first is reported. Raises `SelectorError`."""
    _check_key(key)
    if operator in ("in", "notin") and not values:
        raise _invalid("values", None, "for 'in', 'notin' operators, values set can't be empty")
    if operator in ("exists", "!") and values:
        raise _invalid("values", list(values), "values set must be empty for exists and does not exist")
    for index, value in enumerate(values):
        if operator in ("gt", "lt") and _integer(value) is None:
            text = "for 'Gt', 'Lt' operators, the value must be an integer"
            raise _invalid(f"values[{index}]", value, text)
        if value and (len(value) > _MAX_NAME or not _NAME.fullmatch(value)):
            raise SelectorError(f"{value!r} is no value of a label")
    return _Requirement(key, operator, frozenset(values))


def _invalid(field: str, value: object, text: str) -> SelectorError:
    """The text of `field.Invalid`."""
    shown = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return SelectorError(f"{field}: Invalid value: {shown}: {text}")


def _integer(text: str) -> int | None:
    """`strconv.ParseInt(text, 10, 64)`; None for its error."""
    number = int(text) if _INTEGER.fullmatch(text) else None
    return number if number is not None and MIN_INT64 <= number <= MAX_INT64 else None


def _check_key(key: str) -> None:
    prefix, slash, name = key.rpartition("/")
    if slash and (len(prefix) > _MAX_PREFIX or not _PREFIX.fullmatch(prefix)):
        raise SelectorError(f"{key!r} is no name of a label")
    if len(name) > _MAX_NAME or not _NAME.fullmatch(name):
        raise SelectorError(f"{key!r} is no name of a label")


class _Parser:
    """The parser of `labels.Parse`: the same decisions at the same tokens."""

    def __init__(self, text: str) -> None:
        self._tokens = []
        for match in _TOKEN.finditer(text):
            token = match["symbol"] or match["word"]
            special = match["symbol"] or token in ("in", "notin")
            self._tokens.append((token if special else "word", token))
        self._tokens.append(_END)
        self._position = 0

    def _look(self, values: bool = True) -> tuple[str, str]:
        kind, token = self._tokens[self._position]
        return ("word", token) if values and kind in ("in", "notin") else (kind, token)

    def _take(self, values: bool = True) -> tuple[str, str]:
        taken = self._look(values)
        self._position += 1
        return taken

    def parse(self) -> list[_Requirement]:
        """All requirements of the text. Raises `SelectorError`."""
        requirements: list[_Requirement] = []
        while True:
            kind, token = self._look()
            if kind == "end":
                return requirements
            if kind not in ("word", "!"):
                raise SelectorError(f"found '{token}', expected: !, identifier, or 'end of string'")
            try:
                requirements.append(self._requirement())
            except SelectorError as error:
                raise SelectorError(f"unable to parse requirement: {error}") from None
            kind, token = self._take()
            if kind == "end":
                return requirements
            if kind != ",":
                raise SelectorError(f"found '{token}', expected: ',' or 'end of string'")
            kind, token = self._look()
            if kind not in ("word", "!"):
                raise SelectorError(f"found '{token}', expected: identifier after ','")

    def _requirement(self) -> _Requirement:
        kind, key = self._take()
        absent = kind == "!"
        if absent:
            kind, key = self._take()
        if kind != "word":
            raise SelectorError(f"found '{key}', expected: identifier")
        _check_key(key)
        if absent:
            return _requirement(key, "!", ())
        if self._look()[0] in ("end", ","):
            return _requirement(key, "exists", ())
        sign, token = self._take(values=False)
        operator = _OPERATORS.get(sign)
        if operator is None:
            raise SelectorError(f"found '{token}', expected: in, notin, =, ==, !=, gt, lt")
        return _requirement(key, operator, self._values() if sign in ("in", "notin") else [self._value()])

    def _value(self) -> str:
        if self._look()[0] in ("end", ","):
            return ""
        kind, token = self._take()
        if kind != "word":
            raise SelectorError(f"found '{token}', expected: identifier")
        return token

    def _values(self) -> list[str]:
        kind, token = self._take()
        if kind != "(":
            raise SelectorError(f"found '{token}' expected: '('")
        kind, token = self._look()
        if kind not in ("word", ",", ")"):
            raise SelectorError(f"found '{token}', expected: ',', ')' or identifier")
        values = [""] if kind == ")" else self._list()
        self._take()  # the closing parenthesis
        return values

    def _list(self) -> list[str]:
        """Values up to the closing parenthesis; what is left out between commas is the empty value."""
        values: list[str] = []
        while True:
            kind, token = self._take()
            following, after = self._look()
            if kind == "word":
                values.append(token)
                if following not in (",", ")"):
                    raise SelectorError(f"found '{after}', expected: ',' or ')'")
            elif kind == ",":
                if not values or following in (",", ")"):
                    values.append("")
            else:
                raise SelectorError(f"found '{token}', expected: ',', or identifier")
            if following == ")":
                return values
