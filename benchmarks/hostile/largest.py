"""CPU of a decision about the largest accepted Hvpas: with cold caches, and again."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import msgspec

from benchmarks.hostile.inputs import Largest, encoded
from builders import build
from hvpa.api.hvpa.resource import read_spec
from hvpa.api.hvpa.status import read_status, to_wire
from hvpa.api.objects.read_models import Hpa
from hvpa.core import Objects, Settings, decide, observe
from hvpa.core.values.memo import Memo, forget_all

T = TypeVar("T")


def _timed(work: Callable[[], T]) -> tuple[float, T]:
    """Return the CPU milliseconds of this thread, and the result."""
    began = time.thread_time()
    result = work()
    return 1000 * (time.thread_time() - began), result


def _decided(objects: Objects, now: dt.datetime, memo: Memo) -> Any:
    return decide(observe(objects, now, Settings(), memo), memo)


def _moved(objects: Objects) -> Objects:
    """Return the objects with a new measurement of the HPA and a changed pod."""
    again = [msgspec.json.decode(msgspec.json.encode(hpa), type=Hpa) for hpa in objects.hpas]
    return replace(objects, hpas=tuple(again), pods=tuple(list(objects.pods)))


def cost(hvpa: Largest, rounds: int) -> dict[str, float]:
    """Return milliseconds of: reading the spec, reading the resulting status, the first decision, and a decision after
    changes."""
    raw = encoded(hvpa.spec)
    best: dict[str, float] = {}
    for _ in range(rounds):
        forget_all()
        memo = Memo()
        reading, (spec, problems) = _timed(partial(read_spec, raw))
        assert spec is not None, problems
        objects = hvpa.make(hvpa.spec)
        objects = replace(objects, hvpa=replace(objects.hvpa, spec=spec))
        cold, decision = _timed(partial(_decided, objects, build.NOW, memo))
        status = msgspec.json.encode(to_wire(decision.status))
        parsing, _ = _timed(partial(read_status, status))
        moved = _moved(objects)
        warm, _ = _timed(partial(_decided, moved, build.at(seconds=15), memo))
        for name, took in {"spec": reading, "cold": cold, "status": parsing, "warm": warm}.items():
            best[name] = min(took, best.get(name, took))
    return best
