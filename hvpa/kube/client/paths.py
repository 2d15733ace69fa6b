"""URL paths of requests: every path is made here, of segments, and none leaves the process otherwise.

The API server takes no name with a `/` or a `%` in it, and none that is `.` or `..` (`IsValidPathSegmentName` in
k8s.io/apimachinery/pkg/api/validation/path): nothing has such a name, so nothing is requested by it. They are refused
rather than escaped, since a proxy between may unescape a path and then resolve it.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final
from urllib.parse import quote

_UNSAFE: Final = re.compile(r"[/%]|\A\.{0,2}\Z")
_PATH: Final = re.compile(r"/|(/(?!\.{1,2}(/|\Z))[A-Za-z0-9._~%!$&'()*+,;=:@-]+)+")
"""A path of segments (RFC 3986, section 3.3), none of which is `.` or `..`."""


class PathError(ValueError):
    """A request that can't be built, since a name in its path is none; the message names it."""


@lru_cache(maxsize=4096)
def _escaped(segment: str) -> str:
    """A segment of a path. Raises PathError."""
    if _UNSAFE.search(segment) is not None:
        raise PathError(f"{segment!r} can't be the name of anything in a cluster")
    try:
        return quote(segment, safe="")
    except UnicodeEncodeError:  # half of a pair of surrogates
        raise PathError(f"{segment!r} can't be the name of anything in a cluster") from None


def path_of(*segments: str) -> str:
    """The path with these segments, each of them escaped: `/api/v1/namespaces/shop/pods`. Raises PathError for a
    segment that can't be a name."""
    return "".join([f"/{_escaped(one)}" for one in segments])


def api_path(api_version: str) -> str:
    """Where an API version is served: `/api/v1`, `/apis/apps/v1`. Raises PathError."""
    group, _, version = api_version.rpartition("/")
    return path_of("apis", group, version) if group else path_of("api", version)


def checked(path: str) -> str:
    """The path, if it is one. Raises PathError for anything that would end it (`?`, `#`), that a server or a proxy
    would resolve (`..`), or that no request can have (a control character)."""
    if _PATH.fullmatch(path) is None:
        raise PathError(f"{path!r} is no path of a request")
    return path
