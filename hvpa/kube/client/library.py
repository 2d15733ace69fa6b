"""The used parts of kubernetes-asyncio: its kubeconfig loader and its credential plugins.

All imports of the library are here, because its packages import a thousand generated models that HVPA does not use:
37 MiB, and most of the operator's start. Empty packages replace the library's two outer packages during the import. A
later import of `kubernetes_asyncio` still gets the complete package.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from kubernetes_asyncio.client import Configuration
    from kubernetes_asyncio.config import ConfigException, incluster_config, kube_config
    from kubernetes_asyncio.config.dateutil import parse_rfc3339
    from kubernetes_asyncio.config.exec_provider import ExecProvider

__all__ = [
    "ConfigException",
    "Configuration",
    "ExecProvider",
    "incluster_config",
    "kube_config",
    "parse_rfc3339",
]

_LIBRARY: Final = "kubernetes_asyncio"
_CLIENT: Final = f"{_LIBRARY}.client"


@contextmanager
def _empty(name: str) -> Iterator[ModuleType]:
    """An empty package with this name and path during the block; the real package if it is already loaded."""
    if name in sys.modules:
        yield sys.modules[name]
        return
    spec = importlib.util.find_spec(name)
    assert spec is not None
    package = ModuleType(name)
    package.__path__ = list(spec.submodule_search_locations or ())
    package.__spec__ = spec
    sys.modules[name] = package
    try:
        yield package
    finally:
        del sys.modules[name]


def _client(**options: Any) -> object:
    """The library's client for generated models, for callers that request it from the kubeconfig loader."""
    return importlib.import_module(_CLIENT).ApiClient(**options)


with _empty(_LIBRARY), _empty(_CLIENT) as _package:
    if not hasattr(_package, "Configuration"):
        _package.Configuration = importlib.import_module(f"{_CLIENT}.configuration").Configuration  # type: ignore[attr-defined]
        _package.ApiClient = _client  # type: ignore[attr-defined]
    if not TYPE_CHECKING:
        Configuration = _package.Configuration
        kube_config = importlib.import_module(f"{_LIBRARY}.config.kube_config")
        incluster_config = importlib.import_module(f"{_LIBRARY}.config.incluster_config")
        ConfigException = importlib.import_module(f"{_LIBRARY}.config.config_exception").ConfigException
        ExecProvider = importlib.import_module(f"{_LIBRARY}.config.exec_provider").ExecProvider
        parse_rfc3339 = importlib.import_module(f"{_LIBRARY}.config.dateutil").parse_rfc3339
