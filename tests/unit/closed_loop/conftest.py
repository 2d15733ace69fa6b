"""Nothing of what the operator logs is of interest here."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import structlog

from hvpa_lab.simulate.engine import quiet


@pytest.fixture(autouse=True)
def silent_operator() -> Iterator[None]:
    before = structlog.get_config()
    quiet()
    yield
    structlog.configure(**before)
