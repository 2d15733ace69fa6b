"""Reads `/metrics/resource` of kubelets, over HTTPS. The only right that it needs is `get nodes/metrics`."""

from __future__ import annotations

import ssl
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Final, Self

import aiohttp
from yarl import URL

PATH: Final = "/metrics/resource"
TIMEOUT: Final = 5.0
"""Seconds for a whole answer."""
MOST_BYTES: Final = 4 * 2**20
"""Maximum bytes of an answer, uncompressed. 250 pods of four containers have half a megabyte."""
_IDLE: Final = 60.0
"""Seconds that an idle connection stays open: longer than the pause between two polls of a kubelet that answers."""


class KubeletError(Exception):
    """A kubelet gave no usable answer; the text says why, in a line."""


class KubeletClient:
    """The connections to kubelets, one for each node. `authorization` returns the value of the header, such as
    `Bearer …`."""

    def __init__(self, trust: ssl.SSLContext, authorization: Callable[[], Awaitable[str]]) -> None:
        self._authorization = authorization
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=trust, limit=0, limit_per_host=1, keepalive_timeout=_IDLE),
            timeout=aiohttp.ClientTimeout(total=TIMEOUT),
            headers={"Accept-Encoding": "gzip"},
            cookie_jar=aiohttp.DummyCookieJar(),
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._session.close()

    async def read(self, address: str, port: int) -> bytes:
        """Returns a kubelet's answer. Raises `KubeletError`."""
        headers = {"Authorization": await self._authorization()}
        url = URL.build(scheme="https", host=address, port=port, path=PATH)
        try:
            async with self._session.get(url, headers=headers, allow_redirects=False) as response:
                if response.status != 200:
                    raise KubeletError(_refused(response.status))
                return await _body(response)
        except TimeoutError as error:
            raise KubeletError(f"no answer within {TIMEOUT:g} s") from error
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
        return f"HTTP {status}: the operator needs the right to get nodes/metrics"
    return f"HTTP {status}"
