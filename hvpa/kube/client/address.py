"""The address of a server or proxy, separate from the user and password that its URL may contain. No output shows
those."""

from __future__ import annotations

import base64
from typing import NamedTuple
from urllib.parse import unquote

from hvpa.kube.client.errors import ConfigError


class Address(NamedTuple):
    """A URL without user and password, which become a Basic authorization header."""

    url: str
    basic: str | None = None
    """The value of the header; None without user and password."""


def address_of(url: str, what: str) -> Address:
    """The address in a URL; `what` names its owner in errors.

    Raises ConfigError, without any part of the URL, if it is ambiguous which part belongs to a password.
    """
    scheme, separator, rest = url.partition("://")
    end = min((at for at in map(rest.find, "/?#") if at >= 0), default=len(rest))
    authority, path = rest[:end], rest[end:]
    user, at, host = authority.rpartition("@")
    if not separator and "@" in url:
        raise ConfigError(f"the URL of {what} has a user or password and no scheme, such as https://")
    if "@" in path:
        raise ConfigError(
            f"the URL of {what} has an @ after its host: write / ? and # of a user or password as %2F %3F and %23, "
            "and an @ of the path as %40"
        )
    if not at:
        return Address(url)
    name, _, password = user.partition(":")
    credentials = f"{unquote(name)}:{unquote(password)}".encode()
    return Address(f"{scheme}://{host}{path}", "Basic " + base64.b64encode(credentials).decode())
