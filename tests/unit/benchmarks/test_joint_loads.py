"""The loads that nothing was tuned on, and the limit of what they cost."""

from __future__ import annotations

import math

import pytest

from benchmarks.joint.generated import KINDS, generated
from benchmarks.joint.loads import DAY
from benchmarks.joint.oracle import limit, price
from benchmarks.joint.policies import WORKLOADS
from hvpa_lab.simulate.load.formula import MAX_LENGTH, Formula

CPU = WORKLOADS[0]


@pytest.mark.parametrize("seed", range(20))
def test_every_drawn_load_is_a_formula_that_the_bounds_can_serve(seed: int) -> None:
    for load in generated(seed, 3):
        text = str(load.field["formula"])
        assert len(text) <= MAX_LENGTH
        formula = Formula(text)
        values = [formula(at * 600.0) for at in range(3 * 144)]
        assert min(values) > 0
        assert max(values) < 40
        assert load.duration == 3 * DAY


def test_a_seed_draws_the_same_loads_again_and_another_one_others() -> None:
    assert generated(1, 2) == generated(1, 2)
    assert [load.name for load in generated(1, 2)] == list(KINDS)
    for load, other in zip(generated(1, 2), generated(2, 2), strict=True):
        assert load.field != other.field


def test_what_a_load_costs_at_least() -> None:
    """Two pods use 20m and 150Mi each, and a core and 42Mi for each core of work."""
    hour = [3.0] * 720
    gib = (2 * 150 * 2**20 + 3 * 43_690_667) / 2**30
    in_place = limit(hour, 5 / 3600, CPU, "InPlace")
    assert in_place == pytest.approx(price(3.04, gib))
    replaced = limit(hour, 5 / 3600, CPU, "Recreate")
    assert in_place < replaced < 1.2 * in_place
    assert limit([0.01] * 720, 5 / 3600, CPU, "InPlace") > price(0.2, 0.25), "pods have a least size"


def test_one_size_is_dearer_where_the_load_changes() -> None:
    load = [1.0] * 600 + [9.0] * 120
    in_place, replaced = (limit(load, 5 / 3600, WORKLOADS[2], kind) for kind in ("InPlace", "Recreate"))
    assert math.isfinite(replaced)
    assert in_place < replaced


def test_a_load_that_no_size_serves_is_refused() -> None:
    with pytest.raises(ValueError, match="no allowed size serves 200 cores"):
        limit([200.0], 5 / 3600, CPU, "Recreate")
