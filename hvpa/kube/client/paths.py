"""URL paths of requests. Every path is built here from segments.

The API server accepts no name that contains `/` or `%`, or that is `.` or `..` (`IsValidPathSegmentName` in
k8s.io/apimachinery/pkg/api/validation/path). So no object has such a name, and no request is made for it. Such names
are refused rather than escaped, since a proxy may unescape a path and then resolve it.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final
from urllib.parse import quote

_UNSAFE: Final = re.compile(r"[/%]|\A\.{0,2}\Z")
_PATH: Final = re.compile(r"/|(/(?!\.{1,2}(/|\Z))[A-Za-z0-9._~%!$&'()*+,;=:@-]+)+")
"""A path of segments (RFC 3986, section 3.3), none of them `.` or `..`."""


class PathError(ValueError):
    """A request that can't be built, since its path contains an invalid name; the message contains the name."""


@lru_cache(maxsize=4096)
def _escaped(segment: str) -> str:
    """The escaped segment of a path. Raises PathError."""
    if _UNSAFE.search(segment) is not None:
        raise PathError(f"{segment!r} is not a valid name in a cluster")
    try:
        return quote(segment, safe="")
    except UnicodeEncodeError:  # half of a surrogate pair
        raise PathError(f"{segment!r} is not a valid name in a cluster") from None


def escaped_path(*segments: str) -> str:
    """The path with these segments, each escaped: `/api/v1/namespaces/shop/pods`.

    Raises PathError for a segment that can't be a name.
    """
    return "".join([f"/{_escaped(segment)}" for segment in segments])


def api_path(api_version: str) -> str:
    """The path of an API version: `/api/v1`, `/apis/apps/v1`. Raises PathError."""
    group, _, version = api_version.rpartition("/")
    return escaped_path("apis", group, version) if group else escaped_path("api", version)


def valid_path(path: str) -> str:
    """The path, if it is valid.

    Raises PathError for characters that would end it (`?`, `#`), segments that a server or proxy would resolve
    (`..`), and characters that no request can contain (control characters).
    """
    if _PATH.fullmatch(path) is None:
        raise PathError(f"{path!r} is not a request path")
    return path
