"""The certificate of an HTTPS server: read from a folder as a Secret of type kubernetes.io/tls is mounted, and read
again when it was replaced."""

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
"""Seconds between two looks at the files; they are looked at when a client connects."""


class CertificateError(AddressError):
    """The certificate can't be used."""


class Certificate:
    """The certificate in one folder. `context` is what a server listens with; it presents what is in the folder at the
    time of the handshake, or, where that can't be used, what it presented before."""

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
        """Called in each handshake, also where the client names no server."""
        self._look()
        connection.context = self._current

    def _look(self) -> None:
        """Load what has changed since the last look."""
        now = self._monotonic()
        if now - self._looked_at < LOOK:
            return
        self._looked_at = now
        if (found := self._fingerprint()) == self._seen:
            return
        try:
            self._current = self._load()
        except (OSError, ValueError) as error:
            # Not remembered as seen: of files that are replaced one after the other, the second may not be there yet.
            log.warning("the new certificate can't be used, the old one stays", error=_reason(error))
        else:
            self._seen = found
            log.info("the certificate was replaced", folder=str(self._files[0].parent))

    def _fingerprint(self) -> tuple[tuple[int, int, int] | None, ...]:
        return tuple(map(_identity, self._files))

    def _load(self) -> ssl.SSLContext:
        for path in self._files:
            path.open("rb").close()  # names the one that can't be read; OpenSSL doesn't
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_alpn_protocols(["http/1.1"])
        context.load_cert_chain(*self._files)
        return context


def _identity(path: Path) -> tuple[int, int, int] | None:
    """What differs between one version of a file and the next; None where there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


def _reason(error: OSError | ValueError) -> str:
    """What is wrong, in a line; never what is in the files."""
    if isinstance(error, ssl.SSLError):
        return f"{CERTIFICATE} and {KEY} are no certificate and its key ({error.reason or 'not PEM'})"
    if isinstance(error, OSError) and error.filename is not None:
        return f"{Path(os.fsdecode(error.filename)).name}: {error.strerror}"
    return f"{CERTIFICATE} or {KEY} can't be read: {error}"
