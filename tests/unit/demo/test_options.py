"""What the demo reads of the environment."""

from __future__ import annotations

import pytest

from demo.options import OptionError, Options, options


def test_without_any_it_resizes_pods_for_five_minutes() -> None:
    assert options({}) == Options(False, "Auto", 300.0, "InPlaceOrRollout")
    assert options({"DEMO": "", "KEEP": "", "DEMO_MODE": "", "DEMO_SECONDS": ""}) == Options()


def test_each_is_read() -> None:
    environment = {"DEMO": "rollout", "KEEP": "1", "DEMO_MODE": "Off", "DEMO_SECONDS": "60"}
    assert options(environment) == Options(True, "Off", 60.0, "Rollout")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("DEMO", "Rollout"),
        ("KEEP", "yes"),
        ("DEMO_MODE", "off"),
        ("DEMO_SECONDS", "19"),
        ("DEMO_SECONDS", "nan"),
    ],
)
def test_what_can_not_be_used_is_named(name: str, value: str) -> None:
    with pytest.raises(OptionError, match=f"^{name}={value}: "):
        options({name: value})
