"""Answers of HTTP/1.1, read from the bytes of one connection as they come; llhttp (by httptools) parses them."""

from __future__ import annotations

from typing import NamedTuple

import httptools


class Answer(NamedTuple):
    """A whole answer; `retry_after` is the header of this name."""

    status: int
    body: bytes
    retry_after: str | None


class Lost(ConnectionError):
    """The connection ended before the answer did."""


class Malformed(ValueError):
    """What came is no answer of HTTP/1.1, or what is to be sent can't be a request."""


class AnswerReader:
    """Reads one answer after another. Call `begin` before each, `feed` with what comes, `end` when that was
    all, and `close` at last."""

    def __init__(self) -> None:
        self.reusable = True
        """Whether another answer may follow the last one on this connection."""
        self.heard = False
        """Whether anything of the present answer has come."""
        self._parser = httptools.HttpResponseParser(self)
        self.begin(bodiless=False)

    def begin(self, *, bodiless: bool) -> None:
        """Wait for the next answer; `bodiless`: its headers tell of a body that doesn't come (HEAD)."""
        self.heard = False
        self._bodiless = bodiless
        self._whole = False
        self._forget()

    def _forget(self) -> None:
        self._status = 0  # until all headers are there
        self._pieces: list[bytes] = []
        self._retry_after: str | None = None
        self._coding: str | None = None
        self._until_end = True  # neither length nor chunks: the body ends with the connection

    def feed(self, data: bytes) -> Answer | None:
        """The answer, once the whole of it is there. Raises Malformed. What comes after its end belongs to nobody: the
        connection is not reusable then."""
        self.heard = True
        wrong: Exception | None = None
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self.reusable = False
            wrong = error
        if self._whole:
            return self._answer()
        if wrong is not None:
            raise Malformed(f"the answer is not HTTP/1.1: {wrong}") from wrong
        return None

    @property
    def status(self) -> int:
        """The status of the present answer, once all headers are there; 0 before."""
        return self._status

    def take(self) -> bytes:
        """What has come of the body since the last time, for those who don't wait for the whole answer."""
        pieces, self._pieces = self._pieces, []
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def end(self) -> Answer | None:
        """The connection has ended in order: the answer, if that is what ends its body."""
        self.reusable = False
        return self._answer() if self._status and self._until_end else None

    def close(self) -> None:
        """Let go of the parser, which refers to its reader: without this, both wait for the garbage collector."""
        del self._parser

    def _answer(self) -> Answer:
        if self._coding is not None:
            self.reusable = False
            raise Malformed(f"the answer is encoded ({self._coding}), which was not asked for")
        return Answer(self._status, b"".join(self._pieces), self._retry_after)

    # --- what the parser calls -------------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        """The first byte of an answer."""
        if self._whole:
            self.reusable = False

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header, or a trailer, which is of no interest."""
        if self._status:
            return
        name = name.lower()
        if name in (b"content-length", b"transfer-encoding"):
            self._until_end = False
        elif name == b"retry-after":
            self._retry_after = value.decode("latin-1")
        elif name == b"content-encoding" and value.lower() != b"identity":
            self._coding = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        """All headers are there. What comes before the answer proper (status 100 to 199) has nothing else."""
        status = self._parser.get_status_code()
        if self._whole or status < 200:
            return
        self._status = status
        self.reusable = self.reusable and self._parser.should_keep_alive()
        if self._bodiless:  # the parser can't be told, and would wait for the body
            self._whole = True
            self.reusable = False

    def on_body(self, piece: bytes) -> None:
        """A piece of the body."""
        if not self._whole:
            self._pieces.append(piece)

    def on_message_complete(self) -> None:
        """The end of an answer."""
        if self._status:
            self._whole = True
        else:
            self._forget()
