"""The laboratory, `hvpa_lab`: commands and pages that the operator does without, so its image has none of them."""

from __future__ import annotations

import importlib
import importlib.util
from types import ModuleType
from typing import Final

from hvpa.cli.errors import CommandError

PACKAGE: Final = "hvpa_lab"


def require(needed_for: str, *packages: str) -> None:
    """Check that the laboratory and these packages are installed. Raises CommandError, which says how to get them."""
    for package in (PACKAGE, *packages):
        if importlib.util.find_spec(package) is None:
            raise CommandError(
                f"{needed_for} needs {package}, which is not installed: pip install 'hvpa[lab]'"
            )


def load_module(module: str, needed_for: str) -> ModuleType:
    """Import a module of the laboratory. Raises CommandError if the laboratory is not installed."""
    require(needed_for)
    return importlib.import_module(module)
