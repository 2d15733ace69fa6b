"""From a document's plain values to the read-model of its kind.

Read-models trust the API server and look at little; files have not been through one, so what it
would have refused is refused here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from hvpa.api.objects.read_models import Hpa, HpaSpecRead, Vpa, VpaSpecRead
from hvpa.api.schema.base import FieldError
from hvpa.api.values.quantity import QuantityError, parse_cpu, parse_memory, parse_quantity
from hvpa.cli.errors import CommandError
from hvpa.cli.input.files import Document, Plain
from hvpa.kube.objects.resources import HPAS, VPAS, WATCHED, Resource

RESOURCES: Final[dict[str, Resource[Any]]] = {one.kind: one for one in WATCHED}
"""The kinds that a decision reads."""
_SPECS: Final[dict[str, type]] = {HPAS.kind: HpaSpecRead, VPAS.kind: VpaSpecRead}
INT32_MAX: Final = 2**31 - 1
"""Kubernetes counts in 32 bits, generations aside."""
_PLACE: Final = re.compile(r"^(?P<message>.*?)(?: - at `(?:key in )?\$\.?(?P<path>.*)`)?$", re.DOTALL)
_TYPES: Final = re.compile(r"Expected `(?P<wanted>[^`]*)`, got `(?P<found>[^`]*)`")
_BOUNDS: Final = re.compile(r"Expected `int` (?P<side>[<>]=) (?P<bound>-?[0-9]+)")
_WORDS: Final = {
    "object": "an object",
    "str": "text",
    "int": "a whole number",
    "float": "a number",
    "array": "a list",
    "bool": "true or false",
}
_QUANTITY_MAPS: Final = frozenset(
    {
        "requests",
        "limits",
        "target",
        "lower_bound",
        "upper_bound",
        "uncapped_target",
        "min_allowed",
        "max_allowed",
    }
)
_QUANTITIES: Final = frozenset({"value", "average_value", "tolerance"})
_LONG: Final = frozenset({"generation", "observed_generation"})


def decoded(document: Document, content: Plain) -> Any:
    """The read-model of `content`. Raises CommandError that names the field which is wrong."""
    root = ""
    try:
        if document.kind in _SPECS:  # these are kept as bytes, and read when they are used
            root = "spec"
            msgspec.convert(content.get("spec", {}), type=_SPECS[document.kind])
            root = ""
        obj = RESOURCES[document.kind].read(msgspec.json.encode(content))
    except (msgspec.MsgspecError, UnicodeError, OverflowError, RecursionError) as error:
        fault = _field_error(error, root)
        raise CommandError(f"{document.at(fault.path)}: {fault}") from None
    for fault in faults(obj):
        raise CommandError(f"{document.at(fault.path)}: {fault}")
    return obj


def _field_error(error: Exception, root: str) -> FieldError:
    match = _PLACE.match(str(error))
    assert match is not None
    path = ".".join(part for part in (root, (match["path"] or "").replace("[...]", "[*]")) if part)
    if "timezone" in match["message"]:
        return FieldError(path, "must be a timestamp with a time zone (such as 2026-11-21T10:15:00Z)")
    message = _BOUNDS.sub(_bound_text, match["message"])
    message = _TYPES.sub(
        lambda types: f"must be {_word(types['wanted'])}, is {_word(types['found'])}", message
    )
    return FieldError(path or "object", message[:1].lower() + message[1:])


def _bound_text(match: re.Match[str]) -> str:
    if (match["side"], match["bound"]) == (">=", "0"):
        return "must not be negative"
    return f"must not be {'below' if match['side'] == '>=' else 'above'} {match['bound']}"


def _word(types: str) -> str:
    return " or ".join(_WORDS.get(one, one) for one in types.split(" | ") if one != "null")


def faults(value: object, path: str = "") -> Iterator[FieldError]:
    """What is wrong in a read-model and decoding does not see: quantities that are none, negative and huge
    counts."""
    if isinstance(value, Hpa | Vpa):
        yield from faults(value.metadata, "metadata")
        yield from faults(value.spec, "spec")
        yield from faults(value.status, "status")
    elif isinstance(value, msgspec.Struct):
        for field in msgspec.structs.fields(value):
            entry = getattr(value, field.name)
            below = f"{path}.{field.encode_name}" if path else field.encode_name
            yield from _scalar_faults(field.name, entry, below)
            yield from faults(entry, below)
    elif isinstance(value, list):
        for index, entry in enumerate(value):
            yield from faults(entry, f"{path}[{index}]")


def _scalar_faults(name: str, value: object, path: str) -> Iterator[FieldError]:
    if isinstance(value, dict) and name in _QUANTITY_MAPS:
        for resource, quantity in value.items():
            yield from _quantity_faults(resource, quantity, f"{path}.{resource}")
    elif name in _QUANTITIES and isinstance(value, str | int | float):
        yield from _quantity_faults("", value, path)
    elif isinstance(value, int) and not isinstance(value, bool):
        if value < 0:
            yield FieldError(path, "must not be negative")
        elif value > INT32_MAX and name not in _LONG:
            yield FieldError(path, f"must not be above {INT32_MAX}")


def _quantity_faults(resource: str, quantity: str | int | float, path: str) -> Iterator[FieldError]:
    try:
        {"cpu": parse_cpu, "memory": parse_memory}.get(resource, parse_quantity)(quantity)
    except QuantityError as error:
        yield FieldError(path, str(error))
