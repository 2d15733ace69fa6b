"""Our models of the VPA's updater and webhook against what the real ones did; that the record is current is tested end
to end (`tests/e2e/recommenders`)."""

from __future__ import annotations

import pytest

from tests.recorded import answers
from tests.recorded.updater.model import first_difference
from tests.recorded.updater.scenarios import WRITTEN

REAL = answers.read("updater")


@pytest.mark.parametrize("name", WRITTEN)
def test_our_updater_and_webhook_do_what_the_real_ones_did(name: str) -> None:
    difference = first_difference(WRITTEN[name], REAL[name])
    assert difference is None, difference
