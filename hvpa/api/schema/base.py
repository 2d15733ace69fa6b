"""The base of the Hvpa models, and the paths of fields in errors. This module contains nothing specific to Hvpa.

A rule that spans fields is a `Rule`: CEL for the API server, and the same rule in Python. Models list theirs in
`RULES`, fields in `keeps`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice
from math import isfinite
from typing import Any, ClassVar, Final, NamedTuple, Self, TypeVar

import msgspec
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic.alias_generators import to_camel
from pydantic.config import JsonDict
from pydantic_core import ErrorDetails, PydanticCustomError

FieldPath = tuple[str | int, ...]
"""Path of a field relative to a model: names, and indices in lists."""
DEEPEST: Final = 16
"""Maximum nesting of a field that HVPA does not know. No field of an HPA or a VPA has half as many levels."""
MOST_ERRORS: Final = 100
"""Maximum number of errors to report for a document."""
_MAPS: Final = frozenset({"labels", "annotations", "matchLabels", "minAllowed", "maxAllowed"})
"""Fields whose keys the user chooses. A path shows such a key as `labels[app]`."""


@dataclass(frozen=True, slots=True)
class FieldError:
    """An error in a field: the field's path (`spec.hpa.scaleUp.stabilizationDuration`) and the reason."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"


def cel(rule: str, message: str, field_path: str = "") -> JsonDict:
    """Returns an entry of `x-kubernetes-validations`; `field_path` is relative to the rule's own schema."""
    entry: JsonDict = {"rule": rule, "message": message}
    return entry | {"fieldPath": field_path} if field_path else entry


def fault(message: str, *at: str | int) -> PydanticCustomError:
    """Returns the error that a model's validator raises for the field at `at`, relative to the model."""
    return PydanticCustomError("fault", "{reason}", {"reason": message, "at": at})


class Rule(NamedTuple):
    """A rule for a value, in CEL and as a Python function."""

    cel: str
    holds: Callable[[Any], bool]
    message: str
    path: str = ""
    """Path of the field to report, relative to the value: `.template.spec.maxReplicas`."""


def _check_rules(value: Any, rules: Sequence[Rule]) -> None:
    """Raises the `fault` of the first rule that the value violates."""
    for rule in rules:
        if not rule.holds(value):
            raise fault(rule.message, *rule.path.split(".")[1:])


def _in_cel(rules: Sequence[Rule]) -> JsonDict:
    """Returns the rules as schema entries."""
    return (
        {"x-kubernetes-validations": [cel(rule.cel, rule.message, rule.path) for rule in rules]}
        if rules
        else {}
    )


def keeps(*rules: Rule) -> tuple[AfterValidator, Any]:
    """For `Annotated`: rules for a field's value, for example for a list as a whole."""

    def checked(value: Any) -> Any:
        _check_rules(value, rules)
        return value

    return AfterValidator(checked), Field(json_schema_extra=_in_cel(rules))


# --- base models --------------------------------------------------------------------------------------------
class _Model(BaseModel):
    """Base of the spec and status models: frozen, camelCase on the wire."""

    model_config = ConfigDict(
        frozen=True, alias_generator=to_camel, populate_by_name=True, use_attribute_docstrings=True
    )


class SpecModel(_Model):
    """Base of all models that a user writes. It rejects unknown fields, treats null as absent, and checks `RULES`."""

    RULES: ClassVar[tuple[Rule, ...]] = ()
    model_config = ConfigDict(
        extra="forbid", json_schema_extra=lambda schema, model: schema.update(_in_cel(model.RULES))
    )

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, data: Any) -> Any:
        """Drops null values, as the API server does. Unknown fields stay, so that validation rejects them."""
        return without_nulls(data, _aliases(cls)) if isinstance(data, dict) else data

    @model_validator(mode="after")
    def _keeps_rules(self) -> Self:
        _check_rules(self, self.RULES)
        return self

    def to_wire(self) -> dict[str, Any]:
        """Returns the model as Kubernetes writes it, without fields that have their default: `{"matchLabels": {"app":
        "web"}}`."""
        return self.model_dump(by_alias=True, exclude_defaults=True, mode="json")


class OpenModel(SpecModel):
    """Base of models that also keep fields that HVPA does not know, as JSON without null, for the API server to check:
    `passed_on`."""

    model_config = ConfigDict(extra="allow")

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, data: Any) -> Any:
        """Drops null values, also those of unknown fields, and refuses what is no JSON there."""
        if not isinstance(data, dict):
            return data
        known = _aliases(cls)
        return {
            key: value if key in known else _checked_json(value, (key,))
            for key, value in data.items()
            if value is not None
        }

    @property
    def others(self) -> dict[str, Any]:
        """The fields of this object that HVPA does not know."""
        return self.__pydantic_extra__ or {}

    def passed_on(self) -> dict[FieldPath, Any]:
        """Returns the fields that HVPA does not know, here and in the models below, by path: `{("resourcePolicy",
        "containerPolicies", 0, "oomBumpUpRatio"): "1.5"}`."""
        found: dict[FieldPath, Any] = {(name,): value for name, value in self.others.items()}
        for name in type(self).model_fields:
            field = getattr(self, name)
            for at, part in enumerate(field) if isinstance(field, tuple) else ((None, field),):
                if isinstance(part, OpenModel):
                    start: FieldPath = (to_camel(name),) if at is None else (to_camel(name), at)
                    found |= {(*start, *path): value for path, value in part.passed_on().items()}
        return found


class StatusModel(_Model):
    """Base of the parts of a status. It ignores unknown fields; `read_json` treats null as absent.

    The CRD requires none of its fields. Otherwise a status from an older version or from gardener's controller would
    make the API server reject changes of the spec.
    """

    model_config = ConfigDict(extra="ignore", json_schema_extra=lambda schema: schema.pop("required", None))


def _checked_json(value: object, path: FieldPath) -> object:
    """Returns a value of an unknown field without null entries. Raises `fault` if JSON or Kubernetes has no such
    value, or if it is nested too deeply to be handled safely."""
    if len(path) > DEEPEST:
        raise fault(f"must not be nested deeper than {DEEPEST} levels", *path)
    if isinstance(value, dict):
        if not all(isinstance(key, str) for key in value):
            raise fault("must have strings as keys", *path)
        return {key: _checked_json(entry, (*path, key)) for key, entry in value.items() if entry is not None}
    if isinstance(value, list):
        return [_checked_json(entry, (*path, index)) for index, entry in enumerate(value)]
    is_number = isinstance(value, int) and -(2**63) <= value < 2**63
    is_number = is_number or (isinstance(value, float) and isfinite(value))
    if value is None or is_number or isinstance(value, str):
        return value
    raise fault("must be JSON: text, true, false, a number of 64 bits, a list or an object", *path)


S = TypeVar("S", bound=StatusModel)


def read_json(model: type[S], raw: bytes) -> S:
    """Reads a part of a status; null counts as absent. Raises ValidationError, or msgspec.DecodeError if the text is
    not JSON."""
    if b"null" in raw:
        raw = msgspec.json.encode(_pruned(msgspec.json.decode(raw)))
    return model.model_validate_json(raw, by_alias=True, by_name=False)


def _pruned(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _pruned(entry) for key, entry in value.items() if entry is not None}
    return [_pruned(entry) for entry in value] if isinstance(value, list) else value


def without_nulls(data: Any, among: frozenset[str] | None = None) -> Any:
    """Returns the mapping without its null entries (only those with a key in `among`, if given). Other values are
    returned unchanged."""
    if not isinstance(data, dict):
        return data
    return {
        key: value
        for key, value in data.items()
        if value is not None or (among is not None and key not in among)
    }


@cache
def _aliases(model: type[BaseModel]) -> frozenset[str]:
    return frozenset(to_camel(field) for field in model.model_fields)


# --- errors -------------------------------------------------------------------------------------------------
_MESSAGES: Final = {
    "extra_forbidden": "unknown field",
    "invalid_key": "unknown field",
    "missing": "is required",
    "string_type": "must be a string",
    "bool_type": "must be true or false",
    "int_type": "must be an integer",
    "int_from_float": "must be an integer",
    "dict_type": "must be an object",
    "model_type": "must be an object",
    "model_attributes_type": "must be an object",
    "tuple_type": "must be a list",
    "string_too_short": "must not be empty",
}
"""Messages for pydantic's error types, in YAML terms. Other types keep pydantic's message."""
_SUBJECT: Final = re.compile(r"^(Input|String|Tuple|Dictionary) should")


def field_errors(error: ValidationError, *root: str) -> tuple[FieldError, ...]:
    """Returns pydantic's errors in the order of the model's fields, each with its path below `root`."""
    errors = islice(error.errors(include_url=False, include_input=False), MOST_ERRORS)
    return tuple(
        FieldError(dotted_path((*root, *_location(details))), _message(details)) for details in errors
    )


def dotted_path(location: Sequence[str | int]) -> str:
    """Returns `spec.list[1].labels[a/b]` for `("spec", "list", 1, "labels", "a/b")`."""
    path, inside_map = "", False
    for part in location:
        if isinstance(part, int) or inside_map:
            path += f"[{part}]"
        else:
            path += f".{part}" if path else part
        inside_map = part in _MAPS and not inside_map
    return path


def _location(details: ErrorDetails) -> tuple[str | int, ...]:
    at = details["ctx"]["at"] if details["type"] == "fault" else ()
    parts = tuple(part for part in details["loc"] if part != "[key]")
    return (*parts, *at)


def _message(details: ErrorDetails) -> str:
    if details["type"] == "value_error":
        return str(details["ctx"]["error"])
    message = _MESSAGES.get(details["type"], details["msg"])
    return _SUBJECT.sub("must", message)
