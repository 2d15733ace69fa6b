"""What the demo reads of the environment."""

from __future__ import annotations

import pytest

from demo.options import OptionError, Options, options


def test_without_any_it_resizes_pods_on_such_nodes_as_it_can() -> None:
    assert options({}) == Options(False, "Auto", None, "InPlaceOrRollout", "auto", compares=True)
    names = ("DEMO", "KEEP", "DEMO_MODE", "DEMO_SECONDS", "NODES", "DEMO_COMPARE")
    assert options(dict.fromkeys(names, "")) == Options()


def test_each_is_read() -> None:
    environment = {"DEMO": "rollout", "KEEP": "1", "DEMO_MODE": "Off", "DEMO_SECONDS": "60"}
    environment |= {"NODES": "simulated", "DEMO_COMPARE": "0"}
    assert options(environment) == Options(True, "Off", 60.0, "Rollout", "simulated", compares=False)
    assert options({"NODES": "real"}).nodes == "real"
    assert options({"DEMO": "fast"}) == Options(nodes="real", fast=True)


@pytest.mark.parametrize("other", ["KEEP=1", "DEMO=rollout"])
def test_real_nodes_do_not_go_with_everything(other: str) -> None:
    name, _, value = other.partition("=")
    with pytest.raises(OptionError, match=f"^NODES=real: {other} needs simulated nodes$"):
        options({"NODES": "real", name: value})


def test_the_fast_signal_needs_kubelets() -> None:
    with pytest.raises(OptionError, match=r"^NODES=simulated: DEMO=fast needs real nodes"):
        options({"NODES": "simulated", "DEMO": "fast"})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("DEMO", "Rollout"),
        ("KEEP", "yes"),
        ("DEMO_MODE", "off"),
        ("DEMO_SECONDS", "19"),
        ("DEMO_SECONDS", "nan"),
        ("NODES", "kind"),
        ("DEMO_COMPARE", "no"),
    ],
)
def test_what_can_not_be_used_is_named(name: str, value: str) -> None:
    with pytest.raises(OptionError, match=f"^{name}={value}: "):
        options({name: value})
