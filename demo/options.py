"""The options of the demo, from environment variables: `make demo KEEP=1 DEMO_SECONDS=120`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, cast

Mode = Literal["Auto", "Off"]
SizeStrategy = Literal["InPlaceOrRollout", "Rollout"]
Nodes = Literal["auto", "real", "simulated"]
LEAST_SECONDS = 20.0
"""Below this the load ends before metrics-server has measured twice (every 11 s)."""
MOST_SECONDS = 3600.0

HELP = """\
python -m demo: watch an Hvpa scale a workload out, up, in and down on a control plane of its own.

With real nodes the pods are processes of this machine that serve HTTP requests, and then an HPA and a VPA scale
the same workload under the same load. With simulated nodes the pods are objects alone.

Environment:
  NODES=simulated   simulated nodes, even if this machine can run real ones (NODES=real: nothing else will do)
  KEEP=1            leave everything running in the background, until `make cluster-down` (simulated nodes)
  DEMO=rollout      a changed size replaces the pods, instead of resizing those that run (simulated nodes)
  DEMO=fast         the fast signal (spec.fastSignal): the operator reads the load from the kubelets (real nodes)
  DEMO_SECONDS=300  how long the load rises and falls (real nodes: 160)
  DEMO_COMPARE=0    real nodes without HPA and VPA
  DEMO_MODE=Off     all four update modes Off: nothing may be scaled, so this ends with 1
Exit code: 0 when the workload was scaled all four ways and is back where it began (real nodes: and latency came
back within its goal meanwhile), 1 when not, 2 for options that can't be used, 3 when the control plane or the operator
could not be started (or, with KEEP=1, a control plane that was left running runs already), 130 after Ctrl-C."""


class OptionError(Exception):
    """An option that can't be used; its text names it."""


@dataclass(frozen=True, slots=True)
class Options:
    """`keep`: leave everything running. `mode`: the update mode of all four directions. `seconds`: length of the load,
    None for the default. `sizes`: the update strategy. `compares`: whether an HPA and a VPA scale the workload of real
    nodes, too. `fast`: with the fast signal."""

    keep: bool = False
    mode: Mode = "Auto"
    seconds: float | None = None
    sizes: SizeStrategy = "InPlaceOrRollout"
    nodes: Nodes = "auto"
    compares: bool = True
    fast: bool = False


def options(environment: Mapping[str, str]) -> Options:
    """The options of an environment. Raises `OptionError`."""

    def choice(name: str, *choices: str) -> str:
        text = environment.get(name) or choices[-1]
        if text not in choices:
            raise OptionError(f"{name}={text}: only {' or '.join(sorted(choices))} can be used")
        return text

    keep, mode = choice("KEEP", "1", "0"), choice("DEMO_MODE", "Off", "Auto")
    demo = choice("DEMO", "rollout", "fast", "in-place")
    sizes: SizeStrategy = "Rollout" if demo == "rollout" else "InPlaceOrRollout"
    nodes = cast(Nodes, choice("NODES", "real", "simulated", "auto"))
    if demo == "fast":
        if nodes == "simulated":
            raise OptionError("NODES=simulated: DEMO=fast needs real nodes, whose kubelets measure")
        nodes = "real"
    for name, is_set in (("KEEP=1", keep == "1"), ("DEMO=rollout", sizes == "Rollout")):
        if nodes == "real" and is_set:
            raise OptionError(f"NODES=real: {name} needs simulated nodes")
    seconds = _seconds(environment.get("DEMO_SECONDS"))
    compares = choice("DEMO_COMPARE", "0", "1") == "1"
    return Options(keep == "1", cast(Mode, mode), seconds, sizes, nodes, compares, demo == "fast")


def _seconds(text: str | None) -> float | None:
    if not text:
        return None
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not LEAST_SECONDS <= seconds <= MOST_SECONDS:
        bounds = f"{LEAST_SECONDS:g} to {MOST_SECONDS:g}"
        raise OptionError(f"DEMO_SECONDS={text}: a number from {bounds} is needed")
    return seconds
