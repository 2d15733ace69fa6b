"""A toy world around the real decision: a total load shared out among pods, an HPA and a VPA that follow it, a clock.

The HPA is the algorithm for one CPU metric without missing or unready pods; the VPA is a plain average over time. It is
here to show that the loop closes and comes to rest, not how good it is: that is the simulator's matter.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from builders import build
from hvpa.core import Decision, Objects, decide, observe
from hvpa.core.model import Settings

TICK = dt.timedelta(seconds=30)
"""How often the HPA and the VPA look."""
HEADROOM = 1.15
"""The VPA's margin."""


@dataclass
class World:
    """One Deployment under a load in cores; `spec` is a change of the usual Hvpa."""

    spec: Mapping[str, Any]
    replicas: int = 1
    cpu: int = 1000
    """Request of a pod in millicores."""
    target_value: int | None = None
    """The HPA's target: millicores per pod, or half of the request where it is None."""
    vpa_memory: float = 0.9
    """What of its average the VPA keeps in a tick."""
    node: int | None = None
    """Millicores that a pod can use at most above its request: the node's headroom."""
    tolerance: Fraction = Fraction(1, 10)
    """The HPA's own; the operator believes in 0.1."""
    now: dt.datetime = build.NOW
    usage: float = 0.0
    scale_replicas: int | None = None
    version: int = 1
    desired: int = 0
    average: float | None = None
    told: object = None
    """What the recommenders told last: where nothing is new, their objects stay as they are."""
    writes: list[tuple[dt.datetime, str]] = field(default_factory=list)
    seen: Objects = field(init=False)

    def __post_init__(self) -> None:
        self.seen = build.objects(
            build.hvpa({**self.spec, "replicas": self.replicas}),
            build.workload(self.replicas, [build.container(requests={"cpu": f"{self.cpu}m"})]),
        )

    def run(self, load: Callable[[dt.timedelta], float], duration: dt.timedelta) -> None:
        """Let `duration` pass under a load in cores that depends on the time since the start of this run."""
        start = self.now
        while self.now < start + duration:
            self._measure(load(self.now - start))
            for _ in range(10):
                if not self._decide():
                    break
            else:
                raise AssertionError(f"{self.now}: it writes again and again at the same instant")
            self.now += TICK

    def written(self, what: str, since: dt.datetime) -> int:
        """How often something was written since then."""
        return sum(when >= since and kind == what for when, kind in self.writes)

    @property
    def cores(self) -> float:
        """What is requested in total."""
        return self.replicas * self.cpu / 1000

    def _measure(self, load: float) -> None:
        """The recommenders' turn: usage by pod, the HPA's desired replicas (into `spec.replicas`), the VPA's target."""
        self.usage = load * 1000 / self.replicas
        if self.node is not None:
            self.usage = min(self.usage, self.cpu + self.node)
        known = self.usage if self.average is None else self.average
        self.average = known * self.vpa_memory + self.usage * (1 - self.vpa_memory)
        assert self.seen.hvpa.spec is not None
        scale_replicas = self.seen.hvpa.spec.replicas or 1
        # The HPA reckons with whole percent of the request, and with whole millicores.
        percent = int(self.usage * 100 / self.cpu)
        ratio = (
            Fraction(percent, 50)
            if self.target_value is None
            else Fraction(int(self.usage), self.target_value)
        )
        self.desired = (
            scale_replicas if abs(ratio - 1) <= self.tolerance else max(1, math.ceil(ratio * self.replicas))
        )
        limited = self.desired > 10
        self.desired = min(self.desired, 10)
        told = (
            self.desired,
            limited,
            self.replicas,
            self.cpu,
            self.usage,
            math.ceil(self.average * HEADROOM),
        )
        one = (
            _with_scale_replicas(self.seen, self.desired)
            if scale_replicas != self.desired
            else self.seen.hvpa
        )
        if told == self.told:
            self.seen = replace(self.seen, hvpa=one)
            return
        self.told = told
        self.version += 1
        self.seen = build.objects(one, self.seen.workload, self._hpa(limited), self._vpa())

    def _hpa(self, limited: bool) -> Any:
        target: dict[str, Any] = {"averageUtilization": 50}
        current: dict[str, Any] = {"averageUtilization": int(self.usage * 100 / self.cpu)}
        if self.target_value is not None:
            target, current = (
                {"averageValue": f"{self.target_value}m"},
                {"averageValue": f"{int(self.usage)}m"},
            )
        metric = {"type": "Resource", "resource": {"name": "cpu", "target": target}}
        measured = {"type": "Resource", "resource": {"name": "cpu", "current": current}}
        conditions = [
            {"type": "ScalingActive", "status": "True"},
            {"type": "ScalingLimited", "status": str(limited), "reason": "TooManyReplicas"},
        ]
        change = {
            "metadata": {"resourceVersion": str(self.version)},
            "spec": {"metrics": [metric]},
            "status": {"currentMetrics": [measured], "conditions": conditions},
        }
        return build.hpa(self.desired, change=change, replicas=self.replicas)

    def _vpa(self) -> Any:
        assert self.average is not None
        return build.vpa({"app": {"cpu": f"{math.ceil(self.average * HEADROOM)}m"}})

    def _decide(self) -> bool:
        """The operator's turn: one decision and its writes; whether there were any."""
        decision = decide(observe(self.seen, self.now, Settings()))
        before = self.seen.hvpa.status
        self.seen = build.apply(self.seen, decision)
        kinds = self._kinds(decision)
        if decision.status != before:
            kinds.append("status")
        self.writes += [(self.now, kind) for kind in kinds]
        if decision.replicas is not None:
            self.replicas = decision.replicas.target
        self.cpu = decision.containers["app"].requests["cpu"]
        return bool(kinds)

    def _kinds(self, decision: Decision) -> list[str]:
        found = [axis for axis, _ in decision.applied]
        return [*dict.fromkeys(found), *(["scale_replicas"] if decision.scale_replicas is not None else [])]


def _with_scale_replicas(seen: Objects, replicas: int) -> Any:
    assert seen.hvpa.spec is not None
    return replace(seen.hvpa, spec=seen.hvpa.spec.model_copy(update={"replicas": replicas}))
