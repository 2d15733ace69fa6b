"""Label selectors as text, as in the scale subresource, and as metrics contain them.

Source: `k8s.io/apimachinery/pkg/labels` (Parse) and `metav1.LabelSelectorAsSelector`. Error messages are Go's, except
for invalid names and values of labels.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

from hvpa.recommend.golang import MAX_INT64, MIN_INT64

_TOKEN: Final = re.compile(r"[ \t\r\n]*(?:(?P<symbol>==|!=|[=!(),<>])|(?P<word>[^=!(),<> \t\r\n]+))")
_NAME: Final = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]", re.ASCII)
_PREFIX: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*", re.ASCII)
_MAX_NAME: Final = 63
_MAX_PREFIX: Final = 253
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,63}", re.ASCII)
_SYMBOLS: Final = frozenset({"==", "!=", *"=!(),<>"})
_OPERATORS: Final = {"=": "in", "==": "in", "in": "in", "!=": "notin", "notin": "notin", ">": "gt", "<": "lt"}


class SelectorError(ValueError):
    """The text is not a selector, or a metric's selector has an invalid operator, name or value."""


class _Requirement(NamedTuple):
    key: str
    operator: str  # in, notin, exists, !, gt, lt
    values: frozenset[str]

    def holds(self, labels: Mapping[str, str]) -> bool:
        """Whether the labels meet the requirement (`Requirement.Matches`)."""
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


@lru_cache(maxsize=4096)
def parse_selector(text: str) -> tuple[_Requirement, ...]:
    """Returns the requirements of a selector in the form of `kubectl --selector` (`labels.Parse`). All must hold; a
    selector that selects everything has none. Raises `SelectorError`."""
    return tuple(_Parser(text).parse())


def matches(requirements: Sequence[_Requirement], labels: Mapping[str, str]) -> bool:
    """Whether the selector selects an object with these labels."""
    return all([requirement.holds(labels) for requirement in requirements])


def check_selector(selector: Mapping[str, Any] | None) -> None:
    """Raises `SelectorError` if `metav1.LabelSelectorAsSelector` rejects a metric's selector."""
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
    """Returns a metric's selector as Go prints it in messages (`%+v`)."""
    if selector is None:
        return "nil"
    labels = selector.get("matchLabels") or {}
    equal = "".join(f"{key}: {labels[key]}," for key in sorted(labels))
    rest = "".join(
        f"LabelSelectorRequirement{{Key:{expression.get('key', '')},Operator:{expression.get('operator', '')},"
        f"Values:[{' '.join(expression.get('values') or ())}],}},"
        for expression in selector.get("matchExpressions") or ()
    )
    return (
        f"&LabelSelector{{MatchLabels:map[string]string{{{equal}}},"
        f"MatchExpressions:[]LabelSelectorRequirement{{{rest}}},}}"
    )


def _requirement(key: str, operator: str, values: Sequence[str]) -> _Requirement:
    """Source: `labels.NewRequirement`. Only the first error is reported. Raises `SelectorError`."""
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
    """Returns an error with the text of `field.Invalid`."""
    shown = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return SelectorError(f"{field}: Invalid value: {shown}: {text}")


def _integer(text: str) -> int | None:
    """`strconv.ParseInt(text, 10, 64)`; None if that returns an error."""
    number = int(text) if _INTEGER.fullmatch(text) else None
    return number if number is not None and MIN_INT64 <= number <= MAX_INT64 else None


def _check_key(key: str) -> None:
    prefix, slash, name = key.rpartition("/")
    if slash and (len(prefix) > _MAX_PREFIX or not _PREFIX.fullmatch(prefix)):
        raise SelectorError(f"{key!r} is no name of a label")
    if len(name) > _MAX_NAME or not _NAME.fullmatch(name):
        raise SelectorError(f"{key!r} is no name of a label")


class _Parser:
    """The parser of `labels.Parse`: it makes the same decisions at the same tokens. The kind of a token is "word",
    "end" or the token itself; `in` and `notin` are words in the place of a key or a value."""

    def __init__(self, text: str) -> None:
        self._tokens = [match["symbol"] or match["word"] for match in _TOKEN.finditer(text)]

    def _kind(self, values: bool = True) -> str:
        if not self._tokens:
            return "end"
        token = self._tokens[0]
        return token if token in _SYMBOLS or (token in ("in", "notin") and not values) else "word"

    def _check(self, kinds: Collection[str], otherwise: str, values: bool = True) -> None:
        """Raises `SelectorError` if the next token is of another kind. `otherwise` follows the token in the message."""
        if self._kind(values) not in kinds:
            raise SelectorError(f"found '{''.join(self._tokens[:1])}'{otherwise}")

    def _take(self, kinds: Collection[str], otherwise: str, values: bool = True) -> str:
        self._check(kinds, otherwise, values)
        return self._tokens.pop(0) if self._tokens else ""

    def parse(self) -> Iterator[_Requirement]:
        """Returns all requirements of the text. Raises `SelectorError`."""
        otherwise = ", expected: !, identifier, or 'end of string'"
        goes_on = self._kind() != "end"
        while goes_on:
            self._check(("word", "!"), otherwise)
            try:
                yield self._requirement()
            except SelectorError as error:
                raise SelectorError(f"unable to parse requirement: {error}") from None
            goes_on = self._take(("end", ","), ", expected: ',' or 'end of string'") == ","
            otherwise = ", expected: identifier after ','"

    def _requirement(self) -> _Requirement:
        is_absence = self._kind() == "!"
        if is_absence:
            self._tokens.pop(0)
        key = self._take(("word",), ", expected: identifier")
        _check_key(key)
        if is_absence:
            return _requirement(key, "!", ())
        if self._kind() in ("end", ","):
            return _requirement(key, "exists", ())
        sign = self._take(_OPERATORS, ", expected: in, notin, =, ==, !=, gt, lt", values=False)
        values = self._values() if sign in ("in", "notin") else [self._value()]
        return _requirement(key, _OPERATORS[sign], values)

    def _value(self) -> str:
        return "" if self._kind() in ("end", ",") else self._take(("word",), ", expected: identifier")

    def _values(self) -> list[str]:
        """Returns the values in parentheses. A missing value between commas is the empty value."""
        self._take(("(",), " expected: '('")
        self._check(("word", ",", ")"), ", expected: ',', ')' or identifier")
        values = [""] if self._kind() == ")" else []
        while self._kind() != ")":
            token = self._take(("word", ","), ", expected: ',', or identifier")
            if token != ",":
                values.append(token)
                self._check((",", ")"), ", expected: ',' or ')'")
            elif not values or self._kind() in (",", ")"):
                values.append("")
        self._tokens.pop(0)
        return values
