"""Field types of an Hvpa: quantities, durations, counts, names. Each type has a reader and a schema."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable
from typing import Annotated, Any, Final

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    PlainSerializer,
    StringConstraints,
    WithJsonSchema,
)

from hvpa.api.schema.base import cel, without_nulls
from hvpa.api.values.duration import MAX_LENGTH as DURATION_LENGTH
from hvpa.api.values.duration import PATTERN as DURATION_PATTERN
from hvpa.api.values.duration import format_duration, parse_duration
from hvpa.api.values.names import (
    API_VERSION_LENGTH,
    API_VERSION_PATTERN,
    CONTAINERS_PATTERN,
    KIND_PATTERN,
    LABEL_LENGTH,
    LABEL_PATTERN,
    SUBDOMAIN_LENGTH,
    SUBDOMAIN_PATTERN,
    is_api_version,
    is_container_choice,
    is_kind,
    is_label,
    is_subdomain,
)
from hvpa.api.values.quantity import MAX_LENGTH as QUANTITY_LENGTH
from hvpa.api.values.quantity import (
    NON_NEGATIVE_PATTERN,
    POSITIVE_PATTERN,
    parse_cpu,
    parse_memory,
    parse_quantity,
)
from hvpa.api.values.timestamp import format_timestamp, parse_timestamp

INT32_MAX: Final = 2**31 - 1
"""Kubernetes stores replica counts in 32 bits."""
INT64_MAX: Final = 2**63 - 1
"""The largest integer and the largest quantity in Kubernetes."""
_LARGEST: Final = 1e30
"""Larger than any stored number: amounts of 19 digits, weights in seconds times replicas."""
Whole = Annotated[int, Field(ge=0, le=INT64_MAX), WithJsonSchema({"type": "integer"})]
"""A non-negative integer. If another client has written something else, the record is unreadable."""
Real = Annotated[float, Field(ge=0, le=_LARGEST, allow_inf_nan=False), WithJsonSchema({"type": "number"})]
"""A non-negative number."""
LIST_LENGTH: Final = 100
"""Maximum number of intervals, metrics or policies. The API server calculates the cost of CEL rules from it."""
LONGEST_FLOOR: Final = dt.timedelta(days=7)
"""Longest duration of a scheduled floor. For longer needs, use minReplicas."""
NAME_LENGTH: Final = SUBDOMAIN_LENGTH
"""Longest name of a Kubernetes object."""
LABEL_VALUE_PATTERN: Final = r"^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$"
"""A label's value (k8s.io/apimachinery/pkg/util/validation)."""


def _integer(value: object) -> object:
    """Accepts 3.0 as an integer, because JSON has only one number type. Rejects "3" and true."""
    if isinstance(value, bool | str | bytes):
        raise ValueError("must be an integer")
    return value


def _number(value: object) -> object:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("must be a number")
    return value


def _growth(value: object) -> int | float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 1 < value <= INT32_MAX:
        raise ValueError(f"must be a number greater than 1, {INT32_MAX} at most")
    return value


def _quantity(value: object) -> str | int:
    """Returns a non-negative quantity in a form that the API server accepts: text, or an integer of 64 bits."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise ValueError("must be a quantity: a string or a whole number")
    if isinstance(value, int) and abs(value) > INT64_MAX:
        raise ValueError("must be a quantity: a string, or a whole number of 64 bits")
    parse_quantity(value)
    if str(value).startswith("-"):
        raise ValueError("must not be negative")
    return value


def _positive_quantity(value: object) -> str:
    checked = _quantity(value)
    if parse_quantity(checked) == 0:
        raise ValueError("must be greater than 0")
    return str(checked)


def _replicas(value: object) -> int:
    """Returns a number of replicas from a quantity field: plain digits, as number or as text."""
    value = _quantity(value)
    if _REPLICAS.match(str(value)) is None:
        raise ValueError("must be a number of replicas, in up to nine digits")
    return int(value)


def _duration(value: object) -> dt.timedelta:
    if isinstance(value, dt.timedelta):
        return value
    if not isinstance(value, str):
        raise ValueError("must be a duration: a string such as 90s, 3m or 1h30m")
    return parse_duration(value)


def _positive_duration(value: object) -> dt.timedelta:
    duration = _duration(value)
    if duration <= dt.timedelta(0):
        raise ValueError("must be longer than 0")
    return duration


def _floor_duration(value: object) -> dt.timedelta:
    duration = _positive_duration(value)
    if duration > LONGEST_FLOOR:
        raise ValueError("must be 168h (a week) at most")
    return duration


def _timestamp(value: object) -> dt.datetime:
    """Returns the time. YAML readers convert unquoted timestamps themselves; without a zone they count as UTC."""
    if isinstance(value, dt.datetime):
        return value.replace(tzinfo=value.tzinfo or dt.UTC)
    if not isinstance(value, str):
        raise ValueError("must be a timestamp")
    return parse_timestamp(value)


def cel_at_most(smaller: str, larger: str) -> str:
    """Returns CEL for "the quantity `smaller` is not greater than the quantity `larger`", for fields with
    `QUANTITY_SCHEMA`.

    The lists with a single element only name their value. Without them, API servers before 1.34 ignore `maxLength` of a
    field that is a string or an integer, estimate the cost of a string operation as if the string were as long as the
    largest request, and reject the CRD for this cost. For a named value they estimate the real cost (decision note 20).
    """
    compared = "quantity(string(a)).compareTo(quantity(string(b))) <= 0"
    return f"[{smaller}].all(a, [{larger}].all(b, {compared}))"


_REPLICAS_PATTERN: Final = r"^[0-9]{1,9}$"
_REPLICAS: Final = re.compile(_REPLICAS_PATTERN.replace("$", r"\Z"), re.ASCII)
_GROWTH_SCHEMA: Final = {"type": "number", "minimum": 1, "exclusiveMinimum": True, "maximum": INT32_MAX}
QUANTITY_SCHEMA: Final[dict[str, Any]] = {
    "x-kubernetes-int-or-string": True,
    "anyOf": [{"type": "integer"}, {"type": "string"}],
    "minimum": 0,
    "maxLength": QUANTITY_LENGTH,
    "pattern": NON_NEGATIVE_PATTERN,
}
_POSITIVE_QUANTITY_SCHEMA: Final = QUANTITY_SCHEMA | {"minimum": 1, "pattern": POSITIVE_PATTERN}
_REPLICAS_SCHEMA: Final = QUANTITY_SCHEMA | {"maximum": 999_999_999, "pattern": _REPLICAS_PATTERN}


def _duration_schema(comparison: str, meaning: str) -> dict[str, Any]:
    rule = f"self.matches(r'{DURATION_PATTERN}') && duration(self) {comparison}"
    rules = [cel(rule, f"must be a duration {meaning}, such as 90s, 3m or 1h30m")]
    return {"type": "string", "maxLength": DURATION_LENGTH, "x-kubernetes-validations": rules}


_WRITE_DURATION = PlainSerializer(format_duration, return_type=str, when_used="json")
_WRITE_TIMESTAMP = PlainSerializer(format_timestamp, return_type=str, when_used="json")

Count = Annotated[int, BeforeValidator(_integer), Field(ge=0, le=INT32_MAX)]
PositiveCount = Annotated[int, BeforeValidator(_integer), Field(ge=1, le=INT32_MAX)]
Percent = Annotated[int, BeforeValidator(_integer), Field(ge=0, le=100)]
Weight = Annotated[float, BeforeValidator(_number), Field(ge=0, le=100, allow_inf_nan=False)]
GrowthFactor = Annotated[float, BeforeValidator(_growth), WithJsonSchema(_GROWTH_SCHEMA)]
"""A factor above 1: with a smaller factor nothing would grow."""
Flag = Annotated[bool, Field(strict=True)]
Text = Annotated[str, StringConstraints(strict=True, max_length=NAME_LENGTH)]
Name = Annotated[str, StringConstraints(strict=True, min_length=1, max_length=NAME_LENGTH)]


def _named(
    is_valid: Callable[[str], bool], pattern: str, length: int, words: str
) -> tuple[StringConstraints, AfterValidator, Any]:
    """For `Annotated`: text that is a Kubernetes name. `words` describe it after "must be"."""

    def checked(text: str) -> str:
        if not is_valid(text):
            raise ValueError(f"must be {words}; it is {text!r}")
        return text

    constraints = StringConstraints(strict=True, max_length=length)
    return constraints, AfterValidator(checked), Field(json_schema_extra={"pattern": pattern})


_LETTERS: Final = "lower-case letters, digits and - (no - at an end)"
ObjectName = Annotated[
    str,
    *_named(
        is_subdomain,
        SUBDOMAIN_PATTERN,
        SUBDOMAIN_LENGTH,
        f"the name of an object: {_LETTERS}, in parts with dots between them",
    ),
]
"""The name of an object (DNS subdomain)."""
NamespaceName = Annotated[
    str, *_named(is_label, LABEL_PATTERN, LABEL_LENGTH, f"the name of a namespace: {_LETTERS}")
]
"""The name of a namespace (DNS label)."""
ContainerName = Annotated[
    str, *_named(is_label, LABEL_PATTERN, LABEL_LENGTH, f"the name of a container: {_LETTERS}")
]
"""The name of a container (DNS label)."""
ContainerChoice = Annotated[
    str,
    *_named(
        is_container_choice, CONTAINERS_PATTERN, LABEL_LENGTH, f"the name of a container ({_LETTERS}) or *"
    ),
]
"""The name of a container, or * for all other containers."""
KindName = Annotated[
    str, *_named(is_kind, KIND_PATTERN, LABEL_LENGTH, "a kind: letters, digits and -, a letter first")
]
"""A kind, such as Deployment."""
ApiVersion = Annotated[
    str,
    *_named(
        is_api_version,
        API_VERSION_PATTERN,
        API_VERSION_LENGTH,
        "an API version, GROUP/VERSION or VERSION, such as apps/v1",
    ),
]
"""An API version, such as apps/v1."""
LabelValue = Annotated[str, StringConstraints(strict=True, max_length=63, pattern=LABEL_VALUE_PATTERN)]
NoNulls = BeforeValidator(without_nulls)
"""For maps: a null entry counts as absent."""
Labels = Annotated[dict[Text, LabelValue], Field(max_length=LIST_LENGTH), NoNulls]
Annotations = Annotated[
    dict[Text, Annotated[str, Field(strict=True)]], Field(max_length=LIST_LENGTH), NoNulls
]
# The last validator runs first: it checks the quantity before the others convert it to an amount.
_QUANTITY = (BeforeValidator(_quantity), WithJsonSchema(QUANTITY_SCHEMA))
PlainQuantity = Annotated[str | int | float, *_QUANTITY]
NonNegativeQuantity = Annotated[str, BeforeValidator(str), *_QUANTITY]
PositiveQuantity = Annotated[
    str, BeforeValidator(_positive_quantity), WithJsonSchema(_POSITIVE_QUANTITY_SCHEMA)
]
Millicores = Annotated[int, BeforeValidator(parse_cpu), *_QUANTITY]
Bytes = Annotated[int, BeforeValidator(parse_memory), *_QUANTITY]
ReplicaAmount = Annotated[int, BeforeValidator(_replicas), WithJsonSchema(_REPLICAS_SCHEMA)]
Duration = Annotated[
    dt.timedelta,
    BeforeValidator(_duration),
    _WRITE_DURATION,
    WithJsonSchema(_duration_schema(">= duration('0s')", "that is not negative")),
]
RecordedDuration = Annotated[
    dt.timedelta, BeforeValidator(_duration), _WRITE_DURATION, WithJsonSchema({"type": "string"})
]
"""A duration in the status, which only the operator writes: a rule would cost the API server more than it allows."""
PositiveDuration = Annotated[
    dt.timedelta,
    BeforeValidator(_positive_duration),
    _WRITE_DURATION,
    WithJsonSchema(_duration_schema("> duration('0s')", "longer than 0")),
]
FloorDuration = Annotated[
    dt.timedelta,
    BeforeValidator(_floor_duration),
    _WRITE_DURATION,
    WithJsonSchema(
        _duration_schema(
            "> duration('0s') && duration(self) <= duration('168h')", "longer than 0 and 168h at most"
        )
    ),
]
Timestamp = Annotated[
    dt.datetime,
    BeforeValidator(_timestamp),
    _WRITE_TIMESTAMP,
    WithJsonSchema({"type": "string", "format": "date-time"}),
]
