"""Whatever stands in whatever place of an Hvpa's objects: the operator does not crash, and what it writes, logs and
explains is bounded and harmless."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.unit.hostile import values
from tests.unit.hostile.documents import BLENDS, PLACES, RECORD_PLACES, Place, documents, put, put_in_record
from tests.unit.hostile.reading import Watched, condition, reconciled

pytestmark = pytest.mark.long

MANY = settings(
    max_examples=30, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
Change = tuple[int, Place, Any]

blends = st.sampled_from(sorted(BLENDS))
changes = st.tuples(st.sampled_from(PLACES), values.anything)


def test_places_are_all_over_the_documents() -> None:
    assert len(PLACES) > 250
    assert len(RECORD_PLACES) > 50


@pytest.mark.parametrize("blend", BLENDS)
def test_untouched_the_hvpa_is_scaled(blend: str) -> None:
    writes = reconciled(documents(blend))
    assert condition(writes, "Ready").reason == "Reconciled"
    assert writes.patch is not None


@MANY
@given(blends, st.lists(changes, min_size=1, max_size=4))
def test_any_value_in_any_place(blend: str, edits: list[tuple[tuple[int, Place], Any]]) -> None:
    docs = documents(blend)
    for (number, place), value in edits:
        put(docs[number], place, value)
    reconciled(docs)


@MANY
@given(blends, st.lists(st.tuples(st.sampled_from(RECORD_PLACES), values.scalars), min_size=1, max_size=3))
def test_any_value_in_what_is_remembered(blend: str, edits: list[tuple[Place, Any]]) -> None:
    docs = documents(blend)
    for place, value in edits:
        put_in_record(docs[1], place, value)
        put(docs[0], ("status", "axes", *place), value)
    reconciled(docs)


@pytest.mark.parametrize("value", values.TIMES)
@pytest.mark.parametrize("blend", BLENDS)
def test_any_time_in_every_place_of_one(blend: str, value: str) -> None:
    docs = documents(blend)
    for number, place in PLACES:
        if place[-1] in ("time", "since", "finishedAt", "startTime") or str(place[-1]).endswith("Time"):
            put(docs[number], place, value)
    reconciled(docs)


@pytest.mark.parametrize("value", values.QUANTITIES)
@pytest.mark.parametrize("blend", BLENDS)
def test_any_quantity_in_every_place_of_one_that_controllers_write(blend: str, value: str) -> None:
    docs = documents(blend)
    for number, place in PLACES:
        if number > 0 and place[-1] in ("cpu", "memory", "averageValue", "tolerance"):
            put(docs[number], place, value)
    reconciled(docs)


@MANY
@given(st.binary(max_size=40), st.sampled_from(sorted({document["kind"] for document in documents("drawn")})))
def test_any_bytes_in_a_name(name: bytes, kind: str) -> None:
    """No server should send what is no JSON or no UTF-8; a proxy may. The watch goes on."""
    watched = Watched(documents("drawn"))
    watched.deliver(kind, b'{"metadata":{"namespace":"default","name":"%s"}}' % name)
    assert watched.objects().hvpa.metadata.name == "web"


def test_nothing_in_every_place_of_an_hvpa() -> None:
    for number, place in PLACES:
        if number == 0:
            docs = documents("written")
            put(docs[0], place, None)
            reconciled(docs)


FOUND: dict[str, tuple[int, Place, Any]] = {
    "a negative count": (1, ("spec", "replicas"), -1),
    "a weight that is no number": (0, ("status", "hpaWeight"), "9" * 5000),
    "conditions that are no list": (0, ("status", "conditions"), {}),
    "a count of 65 bits": (0, ("status", "lastScaling", "hpaStatus", "desiredReplicas"), 2**64),
    "a request that is no quantity": (
        1,
        ("spec", "template", "spec", "containers", 0, "resources", "requests", "cpu"),
        "-1",
    ),
    "a negative tolerance": (2, ("spec", "behavior", "scaleUp", "tolerance"), "-1"),
}
"""What fuzzing has found, each once a crash or a write that the API server refuses."""


@pytest.mark.parametrize("found", FOUND.values(), ids=FOUND.keys())
@pytest.mark.parametrize("blend", BLENDS)
def test_what_was_found_stays_mended(blend: str, found: tuple[int, Place, Any]) -> None:
    docs = documents(blend)
    number, place, value = found
    assert (number, place) in PLACES
    put(docs[number], place, value)
    reconciled(docs)
