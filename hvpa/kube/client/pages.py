"""Lists, page by page: limited in count and size, with a single page in memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from hvpa.kube.client.errors import TooLarge, decoded
from hvpa.kube.client.transport import MOST_BYTES, Transport

PAGE = 500
"""Objects per list request (client-go's default page size)."""
PAGE_BYTES = 2**23
"""Maximum bytes of a page, beyond which fewer objects are requested: 500 pods of 16 KiB.

Six resources are listed at once, each with a page's bytes and, for a short time, their pieces: 96 MiB of the 512 MiB
that `config/manager` allows.
"""
LIST_TIMEOUT = 60.0
"""Timeout of a page, in seconds."""


class ListMeta(msgspec.Struct, rename="camel"):
    """The used fields of a list's metadata."""

    resource_version: str = ""
    continue_token: str = msgspec.field(default="", name="continue")


class ListPage(msgspec.Struct):
    """A page of a list; its items refer to the page's bytes."""

    metadata: ListMeta = msgspec.field(default_factory=ListMeta)
    items: list[msgspec.Raw] | None = None


decode_page = msgspec.json.Decoder(ListPage).decode


async def read_list(
    transport: Transport, path: str, take: Callable[[ListPage], None], query: Mapping[str, str] | None = None
) -> None:
    """Pass all pages of a list to `take`, in order, without keeping them. Raises ApiError and Unreachable.

    If a page has more than PAGE_BYTES, it is requested again with half as many objects, down to one. While pages are
    small, each request doubles the number of objects, up to PAGE.
    """
    token, limit = "", PAGE
    while True:
        parameters = {**(query or {}), "limit": str(limit)} | ({"continue": token} if token else {})
        most = PAGE_BYTES if limit > 1 else MOST_BYTES
        try:
            body = await transport.page(path, parameters, LIST_TIMEOUT, most)
        except TooLarge:
            if limit == 1:
                raise
            limit //= 2
            continue
        if len(body) < PAGE_BYTES // 4:
            limit = min(PAGE, limit * 2)
        token = _take(path, body, take)
        del body  # before the next page arrives
        if not token:
            return


def _take(path: str, body: bytes, take: Callable[[ListPage], None]) -> str:
    """The token of the next page; empty after the last page."""
    page = decoded(decode_page, body, f"the list {path}")
    take(page)
    return page.metadata.continue_token
