"""What simulated nodes do with running pods is what the table in docs/real-node.md says."""

from __future__ import annotations

import pytest

from localcluster.controlplane.controlplane import ControlPlane
from tests.e2e.kubelets.facts import FACTS
from tests.e2e.kubelets.observe import Answers, observe
from tests.e2e.kubelets.table import written

pytestmark = pytest.mark.owned_cluster


@pytest.fixture(scope="module")
def observed(cluster: ControlPlane) -> Answers:
    return observe(cluster)


@pytest.mark.parametrize("name", FACTS)
def test_a_fact_is_as_the_page_says(observed: Answers, name: str) -> None:
    assert observed[name] == written()[name].simulated
