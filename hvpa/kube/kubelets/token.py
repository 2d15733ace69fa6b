"""The token for kubelets: that of a ServiceAccount of its own, which may only `get nodes/metrics`.

A kubelet that receives a token can use it. The operator's own token may change workloads, so no kubelet gets it.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from typing import Final

import msgspec

from hvpa.kube.client.errors import ApiError, Unreachable
from hvpa.kube.client.paths import PathError
from hvpa.kube.client.transport import Body, Transport
from hvpa.kube.kubelets.client import KubeletError

LIFETIME: Final = 3600
"""Seconds for which a token is requested."""
RENEWED: Final = 0.8
"""Part of the lifetime after which a new token is requested."""
AGAIN: Final = 30.0
"""Seconds between two requests if the first failed, or if kubelets refuse its token."""


class _Status(msgspec.Struct):
    token: str = ""


class _Review(msgspec.Struct):
    status: _Status = msgspec.field(default_factory=_Status)


_decode: Final = msgspec.json.Decoder(_Review).decode
_BODY: Final = Body(
    msgspec.json.encode(
        {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": LIFETIME},
        }
    )
)


class KubeletToken:
    """Requests the ServiceAccount's token when it is needed, and keeps it for most of its lifetime."""

    def __init__(
        self, transport: Transport, namespace: str, account: str, monotonic: Callable[[], float]
    ) -> None:
        self._transport = transport
        self._account = f"{namespace}/{account}"
        self._path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"
        self._monotonic = monotonic
        self._header = ""
        self._requested_at = self._valid_until = -math.inf
        self._failure: KubeletError | None = None
        self._failed_at = -math.inf
        self._lock = asyncio.Lock()

    async def __call__(self) -> str:
        """Returns the value of the Authorization header. Raises `KubeletError`."""
        async with self._lock:  # of the polls that are due at once, the first requests it
            now = self._monotonic()
            if now < self._requested_at + LIFETIME * RENEWED:
                return self._header
            if self._failure is None or now >= self._failed_at + AGAIN:
                await self._request(now)
            if self._failure is not None and now >= self._valid_until:
                raise self._failure
        return self._header

    def refused(self, header: str) -> None:
        """A kubelet has refused this header: the next poll requests another token, unless this one is new."""
        if header == self._header and self._monotonic() >= self._requested_at + AGAIN:
            self._requested_at = self._valid_until = -math.inf

    async def _request(self, now: float) -> None:
        try:
            self._header, self._failure = await self._requested(), None
            self._requested_at, self._valid_until = now, now + LIFETIME
        except KubeletError as error:
            self._failure, self._failed_at = error, now

    async def _requested(self) -> str:
        try:
            response = await self._transport.request("POST", self._path, body=_BODY, verb="create")
            token = _decode(response).status.token
        except (ApiError, Unreachable, PathError, msgspec.MsgspecError) as error:
            if isinstance(error, ApiError) and error.status in (403, 404):
                raise KubeletError(
                    f"no token for ServiceAccount {self._account}: apply config/fast-signal ({error})"
                ) from error
            raise KubeletError(f"no token for ServiceAccount {self._account}: {error}") from error
        return f"Bearer {token}"
