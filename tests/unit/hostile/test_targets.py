"""The targets of the fuzzer, on any bytes: what `python -m tests.fuzz` goes on with for as long as one likes."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hvpa.core.values.memo import forget_all
from tests.fuzz.targets import TARGETS, seeds
from tests.unit.hostile import values

pytestmark = pytest.mark.long

FEW = settings(max_examples=20, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
JSON_LIKE = st.binary(max_size=60) | st.text(alphabet='{}[]",:0123456789.eE+-nultrfas \\', max_size=60).map(
    str.encode
)
NAMES = sorted(TARGETS)


@pytest.mark.parametrize("name", NAMES)
def test_any_bytes(name: str) -> None:
    @FEW
    @given(JSON_LIKE)
    def holds(data: bytes) -> None:
        TARGETS[name](data)

    forget_all()
    holds()


@pytest.mark.parametrize("name", sorted(set(NAMES) - {"decision"}))
def test_what_is_known_to_be_nasty(name: str) -> None:
    deep = b"[" * 100_000 + b"]" * 100_000
    wide = b'{"a":1' + b',"a":1' * 100_000 + b"}"
    long = b'"' + b"9" * 10**6 + b'"'
    texts = [
        str(value).encode("utf-8", "surrogatepass")
        for value in values.QUANTITIES + values.TIMES + values.TEXTS
    ]
    for data in (
        deep,
        b'{"a":' + deep,
        wide,
        long,
        b"9" * 10**6,
        b"\xff\xfe",
        b'"\\ud800"',
        b"",
        b"null",
        *texts,
    ):
        TARGETS[name](data)


@pytest.mark.parametrize("name", NAMES)
def test_what_fuzzing_begins_with_cut_anywhere(name: str) -> None:
    for seed in seeds(name):
        for end in range(0, len(seed), 40):
            TARGETS[name](seed[:end])
        TARGETS[name](seed)
