"""Reads `/metrics/resource` of kubelets, over HTTPS. The only right that it needs is `get nodes/metrics`."""

from __future__ import annotations

import ssl
from types import TracebackType
from typing import Final, Protocol, Self

import aiohttp
from yarl import URL

PATH: Final = "/metrics/resource"
TIMEOUT: Final = 5.0
"""Seconds for a whole answer."""
MOST_BYTES: Final = 2**20
"""Maximum bytes of an answer, uncompressed. 250 pods of four containers have half a megabyte."""
_TRUST: Final = "--kubelet-certificate-authority and --kubelet-insecure-tls"
"""The flags that say which certificates of kubelets are trusted."""
_IDLE: Final = 60.0
"""Seconds that an idle connection stays open: longer than the pause between two polls of a kubelet that answers."""


class KubeletError(Exception):
    """A kubelet gave no usable answer; the text says why, in a line."""


class Authorization(Protocol):
    """Returns the value of the Authorization header, such as `Bearer …`."""

    async def __call__(self) -> str:
        """Returns the value. Raises `KubeletError`."""

    def refused(self, header: str) -> None:
        """A kubelet has answered 401 to this value."""


class KubeletClient:
    """The connections to kubelets, one for each node."""

    def __init__(self, trust: ssl.SSLContext, authorization: Authorization) -> None:
        self._trust = trust
        self._authorization = authorization
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Closes all connections."""
        if self._session is not None:
            await self._session.close()

    def _opened(self) -> aiohttp.ClientSession:
        """The session, which is only there once a kubelet is polled."""
        if self._session is None:
            connector = aiohttp.TCPConnector(
                ssl=self._trust, limit=0, limit_per_host=1, keepalive_timeout=_IDLE
            )
            self._session = aiohttp.ClientSession(
                connector=connector,
                timeout=aiohttp.ClientTimeout(total=TIMEOUT),
                headers={"Accept-Encoding": "gzip"},
                cookie_jar=aiohttp.DummyCookieJar(),
            )
        return self._session

    async def read(self, address: str, port: int) -> bytes:
        """Returns a kubelet's answer. Raises `KubeletError`."""
        header = await self._authorization()
        headers = {"Authorization": header}
        url = URL.build(scheme="https", host=address, port=port, path=PATH)
        try:
            async with self._opened().get(url, headers=headers, allow_redirects=False) as response:
                if response.status == 401:
                    self._authorization.refused(header)
                if response.status != 200:
                    raise KubeletError(_refused(response.status))
                return await _body(response)
        except TimeoutError as error:
            raise KubeletError(f"no answer within {TIMEOUT:g} s at port {port}") from error
        except aiohttp.ClientConnectorCertificateError as error:
            why = getattr(error.certificate_error, "verify_message", "") or str(error.certificate_error)
            raise KubeletError(f"its certificate is not trusted ({why}); see {_TRUST}") from error
        except aiohttp.ClientConnectorError as error:
            why = error.os_error.strerror or str(error.os_error)
            raise KubeletError(f"no connection to port {port} ({' '.join(why.split())})") from error
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise KubeletError(" ".join(str(error).split()) or type(error).__name__) from error


async def _body(response: aiohttp.ClientResponse) -> bytes:
    """Returns the body, which aiohttp decompresses piece by piece."""
    parts, size = [], 0
    async for part in response.content.iter_any():
        size += len(part)
        if size > MOST_BYTES:
            raise KubeletError(f"the answer is longer than {MOST_BYTES} bytes")
        parts.append(part)
    return b"".join(parts)


def _refused(status: int) -> str:
    if status in (401, 403):
        return f"HTTP {status}: the account for kubelets needs the right to get nodes/metrics (config/fast-signal)"
    return f"HTTP {status}"
