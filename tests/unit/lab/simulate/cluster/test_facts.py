"""The simulated kubelet does what the table in docs/real-node.md says of it."""

from __future__ import annotations

import pytest

from tests.e2e.kubelets.simulator import answer
from tests.e2e.kubelets.table import written


@pytest.mark.parametrize("name", written())
def test_a_fact_is_as_the_page_says(name: str) -> None:
    assert answer(name) == written()[name].simulator
