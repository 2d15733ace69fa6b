"""The options of the demo, from environment variables: `make demo KEEP=1 DEMO_SECONDS=120`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, cast

Mode = Literal["Auto", "Off"]
Sizes = Literal["InPlaceOrRollout", "Rollout"]
LEAST_SECONDS = 20.0
"""Below this the load is over before metrics-server has looked twice (every 11 s)."""
MOST_SECONDS = 3600.0

HELP = """\
python -m demo: watch an Hvpa scale a workload out, up, in and down on a control plane of its own.

Environment:
  KEEP=1            leave everything running in the background, until `make cluster-down`
  DEMO=rollout      a changed size replaces the pods, instead of resizing those that run
  DEMO_SECONDS=300  how long the load rises and falls
  DEMO_MODE=Off     all four update modes Off: nothing may be scaled, so this ends with 1
Exit code: 0 when the workload was scaled all four ways and is back where it began, 1 when not, 2 for options
that can't be used, 3 when the control plane or the operator could not be started (or, with KEEP=1, a control
plane that was left running runs already), 130 after Ctrl-C."""


class OptionError(Exception):
    """An option that can't be used; its text names it."""


@dataclass(frozen=True, slots=True)
class Options:
    """`keep`: leave everything running. `mode`: the update mode of all four directions. `seconds`: length of the
    load. `sizes`: how a changed size reaches the pods."""

    keep: bool = False
    mode: Mode = "Auto"
    seconds: float = 300.0
    sizes: Sizes = "InPlaceOrRollout"


def options(environment: Mapping[str, str]) -> Options:
    """The options of an environment. Raises `OptionError`."""

    def choice(name: str, *choices: str) -> str:
        text = environment.get(name) or choices[-1]
        if text not in choices:
            raise OptionError(f"{name}={text}: only {' or '.join(sorted(choices))} can be used")
        return text

    keep, mode = choice("KEEP", "1", "0"), choice("DEMO_MODE", "Off", "Auto")
    sizes: Sizes = "Rollout" if choice("DEMO", "rollout", "in-place") == "rollout" else "InPlaceOrRollout"
    text = environment.get("DEMO_SECONDS") or "300"
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not LEAST_SECONDS <= seconds <= MOST_SECONDS:
        bounds = f"{LEAST_SECONDS:g} to {MOST_SECONDS:g}"
        raise OptionError(f"DEMO_SECONDS={text}: a number from {bounds} is needed")
    return Options(keep == "1", cast(Mode, mode), seconds, sizes)
