"""What is fuzzed, as functions of bytes: each reads whatever they say, and must end without an exception but those that
it is known to raise. `python -m tests.fuzz` runs them under atheris; `tests/unit/hostile/test_targets.py` runs each of
them on a few inputs."""

from __future__ import annotations

import contextlib
import datetime as dt
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec
import structlog
from pydantic import ValidationError

from builders import build
from hvpa.api.hvpa.resource import read_hvpa, validate_manifest
from hvpa.api.hvpa.status import Axes, read_status, to_wire
from hvpa.api.hvpa.windows import MaintenanceWindow
from hvpa.api.objects.read_models import RawHvpa
from hvpa.api.values.duration import DurationError, format_duration, parse_duration
from hvpa.api.values.quantity import QuantityError, format_memory, parse_cpu, parse_memory, parse_quantity
from hvpa.api.values.text import one_line
from hvpa.api.values.timestamp import TimestampError, format_timestamp, parse_timestamp
from hvpa.core.gates.windows import window_state
from hvpa.core.state import recorded_axes
from hvpa.core.values.clock import Clock
from hvpa.core.values.schedules import parsed_schedule
from hvpa.kube.client.errors import UNREADABLE
from hvpa.kube.objects.resources import WATCHED
from hvpa.kube.objects.salvage import without_wrong_times
from tests.unit.hostile import values
from tests.unit.hostile.documents import (
    BLENDS,
    PLACES,
    RECORD,
    RECORD_PLACES,
    documents,
    encoded,
    put,
    put_in_record,
)
from tests.unit.hostile.reading import reconciled

Target = Callable[[bytes], None]
_BLENDS: Final = sorted(BLENDS)


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def quantity(data: bytes) -> None:
    """A quantity is read or refused, and what is written is read as the same."""
    text = _text(data)
    with contextlib.suppress(QuantityError):
        parse_quantity(text)
        parse_cpu(text)
        size = parse_memory(text)
        if size < 2**63:
            assert parse_memory(format_memory(size)) == size


def duration(data: bytes) -> None:
    """A duration is read or refused."""
    with contextlib.suppress(DurationError):
        delta = parse_duration(_text(data))
        assert parse_duration(format_duration(delta)) == delta


def timestamp(data: bytes) -> None:
    """A timestamp is read or refused."""
    with contextlib.suppress(TimestampError):
        moment = parse_timestamp(_text(data))
        assert parse_timestamp(format_timestamp(moment)) == moment


def windows(data: bytes) -> None:
    """A schedule and a time zone are refused, or have a state at any time."""
    schedule, _, zone = _text(data[:300]).partition("|")
    try:
        window = MaintenanceWindow(schedule=schedule, duration=dt.timedelta(hours=1), time_zone=zone or "UTC")
    except ValidationError:
        return
    if parsed_schedule(window).occurrences is None:
        return
    spec = build.hvpa().spec
    assert spec is not None
    spec = spec.model_copy(update={"maintenance_windows": (window,)})
    for hours in (0, 1, 24 * 31):
        window_state(spec, build.at(hours=hours))


def objects(data: bytes) -> None:
    """Objects of each watched kind are decoded, mended or refused."""
    for resource in WATCHED:
        try:
            resource.decode(data)
        except UNREADABLE:
            with contextlib.suppress(*UNREADABLE):
                mended = without_wrong_times(data)
                if mended is not None:
                    resource.decode(mended)


def hvpa(data: bytes) -> None:
    """An Hvpa with any spec and status is read, and what is wrong has paths."""
    spec, _, status = data.partition(b"\n")
    raw = msgspec.structs.replace(
        msgspec.json.decode(b'{"metadata":{}}', type=RawHvpa),
        spec=msgspec.Raw(spec),
        status=msgspec.Raw(status),
    )
    hvpa_object = read_hvpa(raw)
    assert (hvpa_object.spec is None) == bool(hvpa_object.problems)
    assert all(problem.path for problem in hvpa_object.problems)
    with contextlib.suppress(*UNREADABLE):
        validate_manifest(msgspec.json.decode(data))


def status(data: bytes) -> None:
    """Any status is read, and what is written of it is read as the same."""
    wire = to_wire(read_status(data)[0])
    assert to_wire(read_status(msgspec.json.encode(wire))[0]) == wire


def record(data: bytes) -> None:
    """Any annotation is a record, or counts as none."""
    known, _ = read_status(b"{}")
    horizontal, vertical = recorded_axes(known, _text(data), Clock(build.NOW))
    json.dumps(to_wire(Axes(horizontal=horizontal, vertical=vertical)), allow_nan=False)


def report(data: bytes) -> None:
    """Any text is reported in one line."""
    assert one_line(_text(data)).isprintable()


def decision(data: bytes) -> None:
    """An Hvpa's objects with any values in any places are decided on, and what is written is bounded."""
    numbers = iter(data)
    blend = _BLENDS[next(numbers, 0) % len(_BLENDS)]
    changed = documents(blend)
    for kind in numbers:
        index = next(numbers, 0) * 256 + next(numbers, 0)
        value = _value(numbers)
        if kind % 4 == 0:
            put_in_record(changed[1], RECORD_PLACES[index % len(RECORD_PLACES)], value)
        elif kind % 4 == 1:
            place = RECORD_PLACES[index % len(RECORD_PLACES)]
            put(changed[0], ("status", "axes", *place), value)
        else:
            number, place = PLACES[index % len(PLACES)]
            put(changed[number], place, value)
    reconciled(changed)


def _value(numbers: Iterator[int]) -> Any:
    """A value that the next bytes say."""
    kind, number = next(numbers, 0), next(numbers, 0)
    if kind < 128:
        return values.ALL[(kind * 256 + number) % len(values.ALL)]
    rest = bytes(next(numbers, 0) for _ in range(number % 24))
    if kind < 160:
        return int.from_bytes(rest, signed=True)
    if kind < 192:
        return _text(rest)
    if kind < 224:
        return f"{int.from_bytes(rest[:4])}{('m', 'Mi', 'n', 'E', 'e9')[number % 5]}"
    return build.stamp(build.at(seconds=int.from_bytes(rest[:4], signed=True)))


TARGETS: Mapping[str, Target] = {
    target.__name__: target
    for target in (quantity, duration, timestamp, windows, objects, hvpa, status, record, report, decision)
}


def seeds(name: str) -> Iterable[bytes]:
    """What to begin with."""
    for blend in BLENDS:
        made = documents(blend)
        axes = json.loads(made[1]["metadata"]["annotations"][RECORD])
        whole = {"status": made[0]["status"], "record": axes}
        if name == "hvpa":
            yield encoded(made[0]["spec"]) + b"\n" + encoded(made[0]["status"])
        elif name == "objects":
            yield from map(encoded, made)
        elif name in whole:
            yield encoded(whole[name])
    if name in ("quantity", "duration", "timestamp", "report"):
        yield from (str(value).encode() for value in values.QUANTITIES + values.TIMES + values.TEXTS)
    elif name == "windows":
        yield from (
            b"30 3 * * 1|Europe/Berlin",
            b"0 0 29 2 *",
            b"@hourly|UTC",
            b"*/5 9-17 1,15 jan-mar mon#2",
        )


def quiet() -> None:
    """Log nothing."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger("critical"))
