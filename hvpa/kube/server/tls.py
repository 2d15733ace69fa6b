"""The certificate of an HTTPS server, read from the folder of a mounted Secret of type kubernetes.io/tls, and read
again when it changes."""

from __future__ import annotations

import os
import ssl
import time
from collections.abc import Callable
from pathlib import Path

import structlog

from hvpa.kube.server.endpoints import AddressError

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

CERTIFICATE, KEY = "tls.crt", "tls.key"
"""Names of the files, PEM (those of a Secret of type kubernetes.io/tls)."""
LOOK = 1.0
"""Minimum seconds between two checks of the files; they are checked when a client connects."""


class CertificateError(AddressError):
    """The certificate can't be used."""


class Certificate:
    """The certificate in a folder.

    A server listens with `context`. It presents the folder's certificate at the time of the handshake, or the
    previous certificate if that can't be used.
    """

    def __init__(self, folder: Path, monotonic: Callable[[], float] = time.monotonic) -> None:
        """Read the files. Raises CertificateError."""
        self._files = (folder / CERTIFICATE, folder / KEY)
        self._monotonic = monotonic
        self._looked_at = monotonic()
        self._seen = self._fingerprint()
        try:
            self.context = self._current = self._load()
        except (OSError, ValueError) as error:
            raise CertificateError(f"{folder}: {_reason(error)}") from error
        self.context.sni_callback = self._present

    def _present(
        self, connection: ssl.SSLObject | ssl.SSLSocket, name: str | None, _: ssl.SSLContext
    ) -> None:
        """Select the certificate; called in each handshake, also if the client names no server."""
        self._look()
        connection.context = self._current

    def _look(self) -> None:
        """Load the files if they have changed since the last check."""
        now = self._monotonic()
        if now - self._looked_at < LOOK:
            return
        self._looked_at = now
        if (fingerprint := self._fingerprint()) == self._seen:
            return
        try:
            self._current = self._load()
        except (OSError, ValueError) as error:
            # Not stored as seen: if the files are replaced in sequence, the second may be missing still.
            log.warning(
                "the new certificate can't be used; keeping the old certificate", error=_reason(error)
            )
        else:
            self._seen = fingerprint
            log.info("the certificate was replaced", folder=str(self._files[0].parent))

    def _fingerprint(self) -> tuple[tuple[int, int, int] | None, ...]:
        return tuple(map(_identity, self._files))

    def _load(self) -> ssl.SSLContext:
        for path in self._files:
            path.open("rb").close()  # names the file that can't be read; OpenSSL doesn't
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_alpn_protocols(["http/1.1"])
        context.load_cert_chain(*self._files)
        return context


def _identity(path: Path) -> tuple[int, int, int] | None:
    """The data that differ between versions of a file; None if it does not exist."""
    try:
        stat = os.stat(path)
    except OSError:
        return None
    return stat.st_ino, stat.st_mtime_ns, stat.st_size


def _reason(error: OSError | ValueError) -> str:
    """The problem, in a line, without any content of the files."""
    if isinstance(error, ssl.SSLError):
        return f"{CERTIFICATE} and {KEY} are not a certificate and its key ({error.reason or 'not PEM'})"
    if isinstance(error, OSError) and error.filename is not None:
        return f"{Path(os.fsdecode(error.filename)).name}: {error.strerror}"
    return f"{CERTIFICATE} or {KEY} can't be read: {error}"
