"""Hvpas with one target whose modes change: whatever the order in which they are decided on, they come to rest with one
HPA, which the one in mode Apply owns (DESIGN 4, 8; docs/decisions/0022)."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import build
from hvpa.api.objects.read_models import Hpa, Vpa
from hvpa.core import Decision
from hvpa.core.model import Objects, OtherHvpa, OwnedChange
from tests.unit.core.recommenders.test_ownership import FREE, HPA, THEIRS, active
from tests.unit.core.recommenders.test_read_only import hpa

NAMES = ("a", "b", "c")
MODES = ("Apply", "Recommend", "Paused")


class Namespace:
    """Three Hvpas of the workload `web`, in the order of their names, and the HPAs and VPAs that there are."""

    def __init__(self) -> None:
        self.modes = dict.fromkeys(NAMES, "Recommend")
        self.hpas: dict[str, Hpa] = {}
        self.vpas: dict[str, Vpa] = {}
        self.deleted = 0

    def decide(self, name: str) -> Decision:
        """What one of them decides on what there is."""
        index = NAMES.index(name)
        others = [
            OtherHvpa(other_name, mode == "Apply", True, True, build.at(minutes=NAMES.index(other_name)))
            for other_name, mode in self.modes.items()
            if other_name != name
        ]
        created = build.stamp(build.at(minutes=index))
        metadata = {"name": name, "uid": f"uid-of-{name}", "creationTimestamp": created}
        objects = Objects(
            hvpa=build.hvpa({"mode": self.modes[name]}, metadata=metadata),
            workload=build.workload(),
            others=tuple(sorted(others, key=lambda other: other.rank)),
            hpas=tuple(self.hpas.values()),
            vpas=tuple(self.vpas.values()),
        )
        return build.decided(replace(objects), build.at(hours=1))

    def change(self, change: OwnedChange) -> None:
        """The write of an owned object."""
        store: dict[str, Any] = self.hpas if change.kind == HPA else self.vpas
        if change.action == "delete":
            self.deleted += 1
            del store[change.name]
            return
        assert change.manifest is not None
        metadata = {"uid": f"{change.kind}-{change.name}", "creationTimestamp": build.LONG_AGO}
        document = build.merged(change.manifest, {"metadata": metadata})
        model: type[Any] = Hpa if change.kind == HPA else Vpa
        store[change.name] = msgspec.json.decode(msgspec.json.encode(document), type=model)

    def settle(self, order: random.Random) -> None:
        """Decide on all of them, in any order, until nothing is to be written any more."""
        for _ in range(6):
            changes = 0
            for name in order.sample(NAMES, len(NAMES)):
                for change in self.decide(name).owned:
                    self.change(change)
                    changes += 1
            if not changes:
                return
        raise AssertionError(f"never at rest: {self.modes}, {list(self.hpas)}")


@settings(max_examples=20, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from(MODES)), max_size=4),
    st.randoms(use_true_random=False),
)
def test_they_come_to_rest_with_one_hpa(changes: list[tuple[str, str]], order: random.Random) -> None:
    space = Namespace()
    space.settle(order)
    assert list(space.hpas) == ["a"], "the oldest creates it"
    for name, mode in changes:
        space.modes[name] = mode
        space.settle(order)
        applying = [hvpa_name for hvpa_name, what in space.modes.items() if what == "Apply"]
        if len(applying) > 1:
            continue  # neither scales
        assert len(space.hpas) == 1
        if applying:
            assert list(space.hpas) == applying
        reasons = {name: active(space.decide(name))[1] for name in NAMES}
        assert not set(reasons.values()) & {"ForeignHpa", "HpaAwaited", "HpaCreated"}, reasons
        assert len(space.vpas) <= 1 + len(applying) + space.deleted


@pytest.mark.parametrize("metadata", [FREE, THEIRS])
@pytest.mark.parametrize("seed", range(4))
def test_beside_an_hpa_of_another_client_there_is_no_other(metadata: dict[str, Any], seed: int) -> None:
    space, order = Namespace(), random.Random(seed)
    space.settle(order)
    space.hpas["keda"] = hpa("keda", labels={"of": None}, **metadata)
    space.settle(order)
    assert list(space.hpas) == ["keda"]
    space.modes["b"] = "Apply"
    space.settle(order)
    assert list(space.hpas) == ["keda"]
    assert active(space.decide("b")) == ("False", "ForeignHpa")
    del space.hpas["keda"]
    space.settle(order)
    assert list(space.hpas) == ["b"]
