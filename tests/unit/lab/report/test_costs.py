"""What a workload requests and what that costs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hvpa.api.objects.read_models import (
    PodTemplate,
    Resources,
    TemplateContainer,
    TemplateSpec,
    Workload,
    WorkloadMeta,
    WorkloadSpec,
)
from hvpa.api.values.prices import Prices
from hvpa.api.values.quantity import Resource
from hvpa.core.model import ResourceRequirements
from hvpa.core.workload.containers import SHARED
from hvpa_lab.report.risks import human
from hvpa_lab.report.rows import HOURS_PER_MONTH, Amount, size_of

GIB = 2**30
amounts = st.builds(Amount, st.integers(0, 10**9), st.integers(0, 2**60))
prices = st.builds(Prices, st.floats(0, 1000), st.floats(0, 1000))


def workload(spec: TemplateSpec, replicas: int = 2) -> Workload:
    """A Deployment of these pods."""
    template = PodTemplate(spec=spec)
    return Workload(
        WorkloadMeta(name="web"), "Deployment", spec=WorkloadSpec(replicas=replicas, template=template)
    )


def container(name: str, requests: dict[str, str | int | float], **fields: object) -> TemplateContainer:
    """A container with these requests."""
    return TemplateContainer(name, Resources(requests=requests), **fields)  # type: ignore[arg-type]


def test_a_month_of_two_cores_and_four_gib() -> None:
    assert Amount(2000, 4 * GIB).cost(Prices(0.03, 0.004)) == pytest.approx(55.48)
    assert HOURS_PER_MONTH * 12 == 365 * 24


@given(amounts, amounts, prices)
def test_the_cost_of_a_difference_is_the_difference_of_the_costs(
    amount: Amount, other: Amount, price: Prices
) -> None:
    assert amount.plus(other, -1).cost(price) == pytest.approx(
        amount.cost(price) - other.cost(price),
        rel=1e-6,
        abs=1e-6 * (1 + amount.cost(price) + other.cost(price)),
    )
    assert amount.plus(other).plus(other, -1) == amount


def test_containers_and_native_sidecars_are_added_up() -> None:
    spec = TemplateSpec(
        containers=[container("app", {"cpu": "500m", "memory": "1Gi"}), container("log", {"cpu": "50m"})],
        init_containers=[
            container("mesh", {"cpu": "100m"}, restart_policy="Always"),
            container("migrate", {"cpu": "8"}),
        ],
    )
    size = size_of(workload(spec))
    assert size.pod == Amount(650, GIB)
    assert size.total == Amount(1300, 2 * GIB)


def test_a_missing_request_is_the_limit() -> None:
    spec = TemplateSpec(containers=[TemplateContainer("app", Resources(limits={"cpu": "2"}))])
    assert size_of(workload(spec)).pod == Amount(2000, 0)


def test_requests_of_the_pod_itself_stand_for_those_of_its_containers() -> None:
    spec = TemplateSpec(
        containers=[container("app", {"cpu": "500m", "memory": "1Gi"})],
        resources=Resources(requests={"cpu": "2"}),
    )
    assert size_of(workload(spec)).pod == Amount(2000, GIB)
    decided = {
        "app": ResourceRequirements({"cpu": 900, "memory": 2 * GIB}, {}),
        SHARED: ResourceRequirements({"cpu": 1500}, {}),
    }
    assert size_of(workload(spec), 3, decided).total == Amount(7200, 6 * GIB)


@pytest.mark.parametrize(
    ("resource", "value", "written"),
    [
        ("cpu", 1500, "1.50 cores"),
        ("cpu", 0, "0.00 cores"),
        ("cpu", 5, "0.005 cores"),
        ("cpu", 100, "0.10 cores"),
        ("memory", GIB, "1.00 GiB"),
        ("memory", 64 * 2**20, "0.062 GiB"),
    ],
)
def test_amounts_are_written_in_cores_and_gib(resource: Resource, value: int, written: str) -> None:
    assert human(resource, value) == written
