"""Kubernetes names of objects, containers, kinds and API versions, as in `k8s.io/apimachinery/pkg/util/validation`. The
patterns are regular expressions that Python, Rust (pydantic) and RE2 (the API server) read alike.

An invalid name can't belong to an object, so HVPA sends no request for it.
"""

from __future__ import annotations

import re
from typing import Final

_PART: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN: Final = rf"{_PART}(\.{_PART})*"
_VERSION: Final = "[a-z]([-a-z0-9]*[a-z0-9])?"
LABEL_LENGTH: Final = 63
"""Longest DNS label (RFC 1123)."""
SUBDOMAIN_LENGTH: Final = 253
"""Longest DNS subdomain (RFC 1123)."""
API_VERSION_LENGTH: Final = SUBDOMAIN_LENGTH + 1 + LABEL_LENGTH
"""A group, a slash and a version."""
LABEL_PATTERN: Final = f"^{_PART}$"
"""The name of a namespace or container."""
SUBDOMAIN_PATTERN: Final = f"^{_SUBDOMAIN}$"
"""The name of an object."""
KIND_PATTERN: Final = "^[A-Za-z]([-A-Za-z0-9]*[A-Za-z0-9])?$"
"""A kind: in lower case, a DNS label that begins with a letter (`ValidateCustomResourceDefinitionNames`)."""
API_VERSION_PATTERN: Final = f"^(({_SUBDOMAIN}/)?{_VERSION})?$"
"""An API version: `v1`, `apps/v1`; empty for the default."""
CONTAINERS_PATTERN: Final = rf"^(\*|{_PART})?$"
"""A container, or * for all other containers (in a VPA's container policy)."""


def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern.removeprefix("^").removesuffix("$"), re.ASCII)


_LABEL_RE, _SUBDOMAIN_RE = _compiled(LABEL_PATTERN), _compiled(SUBDOMAIN_PATTERN)
_KIND_RE, _API_VERSION_RE = _compiled(KIND_PATTERN), _compiled(API_VERSION_PATTERN)
_CONTAINERS_RE = _compiled(CONTAINERS_PATTERN)


def is_label(text: str) -> bool:
    """Whether the text is a DNS label, such as the name of a namespace or a container."""
    return len(text) <= LABEL_LENGTH and _LABEL_RE.fullmatch(text) is not None


def is_subdomain(text: str) -> bool:
    """Whether the text is a DNS subdomain, such as the name of an object."""
    return len(text) <= SUBDOMAIN_LENGTH and _SUBDOMAIN_RE.fullmatch(text) is not None


def is_kind(text: str) -> bool:
    """Whether a kind can have this name."""
    return len(text) <= LABEL_LENGTH and _KIND_RE.fullmatch(text) is not None


def is_api_version(text: str) -> bool:
    """Whether the text is an API version: `apps/v1`, `v1`, or empty."""
    return len(text) <= API_VERSION_LENGTH and _API_VERSION_RE.fullmatch(text) is not None


def is_container_choice(text: str) -> bool:
    """Whether the text is the name of a container, *, or empty."""
    return len(text) <= LABEL_LENGTH and _CONTAINERS_RE.fullmatch(text) is not None
