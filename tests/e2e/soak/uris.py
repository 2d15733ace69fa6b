"""Which requests an operator and the dashboard may send: no text of an object may lead a request elsewhere."""

from __future__ import annotations

import re
from typing import Final

_NAME: Final = r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?"
_VERSION: Final = r"v[0-9]+((alpha|beta)[0-9]+)?"
_API: Final = rf"/(api/v1|apis/{_NAME}/{_VERSION})"
_PLURAL: Final = r"[a-z]+"
_DISCOVERY: Final = re.compile(rf"/(version|apis(/{_NAME})?)|{_API}")
_COLLECTION: Final = re.compile(rf"{_API}/{_PLURAL}\?(?=.*\b(limit|watch)=).*")
"""All objects of a kind: in pages, or as a watch."""
_NAMESPACED: Final = re.compile(rf"{_API}/namespaces/{_NAME}/{_PLURAL}(/{_NAME}(/[a-z]+)?)?(\?.*)?")
_SHOWN: Final = re.compile(rf"{_API}/namespaces/{_NAME}/{_PLURAL}(/{_NAME}(/scale)?)?(\?[^#]*)?")
"""What the dashboard reads in a namespace: objects, and the scale of a custom kind."""
_REVIEW: Final = re.compile(r"/apis/(authentication|authorization)\.k8s\.io/v1/[a-z]+(\?.*)?")


def is_expected(uri: str) -> bool:
    """Whether a request's URI has one of the forms that the operator sends."""
    return _has_form(uri, _DISCOVERY, _COLLECTION, _NAMESPACED, _REVIEW)


def is_expected_of_dashboard(uri: str) -> bool:
    """Whether a request's URI has one of the forms that the dashboard sends."""
    return _has_form(uri, _DISCOVERY, _COLLECTION, _SHOWN, _REVIEW)


def _has_form(uri: str, *forms: re.Pattern[str]) -> bool:
    return any(form.fullmatch(uri) is not None for form in forms)
