"""Answers, whole and in pieces, cut short, followed by what nobody asked for, and what is no answer."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hvpa.kube.answers import Answer, AnswerReader, Malformed


@dataclass(frozen=True)
class Case:
    """What a server sends, what it means, and whether the connection can be used again."""

    data: bytes
    answer: Answer
    reusable: bool = True
    until_end: bool = False


LENGTH = Case(b"HTTP/1.1 200 OK\r\nX-Empty:\r\nContent-Length: 5\r\n\r\nhello", Answer(200, b"hello", None))
CHUNKS = Case(
    b"HTTP/1.1 201 Created\r\ntransfer-encoding: chunked\r\n\r\n"
    b"3\r\nhel\r\n2;x=y\r\nlo\r\n0\r\nRetry-After: 9\r\n\r\n",
    Answer(201, b"hello", None),
)
WAIT = Case(
    b"HTTP/1.1 429 Too Many Requests\r\nRETRY-AFTER: 3\r\nContent-Encoding: identity\r\nContent-Length: 0\r\n\r\n",
    Answer(429, b"", "3"),
)
NOTHING = Case(b"HTTP/1.1 204 No Content\r\n\r\n", Answer(204, b"", None))
UNCHANGED = Case(b"HTTP/1.1 304 Not Modified\r\nContent-Length: 7\r\n\r\n", Answer(304, b"", None))
EARLY = Case(
    b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nRetry-After: 5\r\n\r\n" + LENGTH.data,
    LENGTH.answer,
)
LAST = Case(
    b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello", LENGTH.answer, reusable=False
)
OLD = Case(b"HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello", LENGTH.answer, reusable=False)
OLD_KEPT = Case(b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 5\r\n\r\nhello", LENGTH.answer)
UNTIL_END = Case(b"HTTP/1.1 200 OK\r\n\r\nhello", LENGTH.answer, reusable=False, until_end=True)
ENDING = (LENGTH, CHUNKS, WAIT, NOTHING, UNCHANGED, EARLY, LAST, OLD, OLD_KEPT)


def read(pieces: list[bytes]) -> tuple[Answer | None, AnswerReader]:
    """What a new reader makes of these pieces; they all belong to one answer."""
    reader = AnswerReader()
    answer = None
    for piece in pieces:
        assert answer is None
        answer = reader.feed(piece)
    return answer, reader


@pytest.mark.parametrize("case", [*ENDING, UNTIL_END])
def test_an_answer_is_the_same_wherever_it_is_split(case: Case) -> None:
    for at in range(1, len(case.data)):
        answer, reader = read([case.data[:at], case.data[at:]])
        if case.until_end:
            assert answer is None
            answer = reader.end()
        assert answer == case.answer
        assert reader.reusable == case.reusable


@given(case=st.sampled_from(ENDING), cuts=st.lists(st.integers(0, 200)))
def test_an_answer_in_many_pieces(case: Case, cuts: list[int]) -> None:
    places = sorted({0, len(case.data), *(cut for cut in cuts if cut < len(case.data))})
    pieces = [case.data[a:b] for a, b in itertools.pairwise(places)]
    answer, reader = read(pieces)
    assert (answer, reader.reusable) == (case.answer, case.reusable)


@pytest.mark.parametrize("case", ENDING)
def test_an_answer_that_is_cut_short_is_none(case: Case) -> None:
    for at in range(len(case.data)):
        answer, reader = read([case.data[:at]] if at else [])
        assert (answer, reader.end()) == (None, None)
        assert not reader.reusable
        assert reader.heard == (at > 0)


def test_a_head_that_is_cut_short_is_no_body_until_the_end() -> None:
    for at in range(UNTIL_END.data.index(b"\r\n\r\n") + 4):
        reader = AnswerReader()
        reader.feed(UNTIL_END.data[:at])
        assert reader.end() is None


def test_a_coding_of_the_transfer_that_is_not_known_ends_nothing() -> None:
    answer, reader = read([b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nhello"])
    assert (answer, reader.end()) == (None, None)


@pytest.mark.parametrize("first", [case for case in ENDING if case.reusable])
@pytest.mark.parametrize("second", ENDING)
def test_one_answer_after_another(first: Case, second: Case) -> None:
    answer, reader = read([first.data])
    assert answer == first.answer
    reader.begin(bodiless=False)
    assert not reader.heard
    assert reader.feed(second.data) == second.answer
    assert reader.reusable == second.reusable


@pytest.mark.parametrize("case", ENDING)
@pytest.mark.parametrize(
    "more", [b"H", b"garbage", b"\0", LENGTH.data, CHUNKS.data, NOTHING.data, EARLY.data]
)
def test_what_comes_after_the_end_is_nobody_s(case: Case, more: bytes) -> None:
    answer, reader = read([case.data + more])
    assert answer == case.answer
    assert not reader.reusable


@pytest.mark.parametrize(
    "data",
    [
        b"garbage",
        b"\x15\x03\x03\x00\x02\x02\x50",  # an alert of TLS
        b"HTTP/1.1 2x0 OK\r\n",
        b"HTTP/1.1 200 OK\nContent-Length: 0\n\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcdef\r\n",
        b"HTTP/1.1 200 OK\r\nno header\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 5\r\n\r\nhello",
    ],
)
def test_what_is_no_answer_is_told(data: bytes) -> None:
    reader = AnswerReader()
    with pytest.raises(Malformed):
        reader.feed(data)
    assert not reader.reusable


@given(st.binary(min_size=1))
def test_whatever_comes_is_an_answer_or_malformed(data: bytes) -> None:
    reader = AnswerReader()
    try:
        reader.feed(data)
    except Malformed:
        assert not reader.reusable


def test_an_answer_to_head_ends_with_its_headers() -> None:
    reader = AnswerReader()
    reader.begin(bodiless=True)
    assert reader.feed(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n") == Answer(200, b"", None)
    assert not reader.reusable
    reader = AnswerReader()
    reader.begin(bodiless=True)
    assert reader.feed(LENGTH.data) == Answer(200, b"", None)
    assert not reader.reusable
