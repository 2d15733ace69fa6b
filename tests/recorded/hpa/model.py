"""Playing a scenario of the HPA to our model, and comparing what it does with what the real controller did."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from hvpa.api.objects.read_models import Hpa, HpaStatusRead, Meta, MetricName, ObjectReference, Pod
from hvpa.api.values.quantity import parse_quantity
from hvpa_lab.recommend.hpa.controller import (
    HorizontalAutoscaler,
    HpaResult,
    HpaSettings,
    MetricsError,
    PodReading,
    Scale,
)
from tests.recorded.replay import Json, differences, instant

_QUANTITIES = {"value", "averageValue"}
_NO_METRICS = "no metrics returned from %s metrics API"


class Readings:
    """Metrics that answer from a scenario's readings, as the metrics client of `hpa-replay` does."""

    def __init__(self) -> None:
        self.given: Json = {}
        self.now = instant(0)
        self.existing: frozenset[str] | None = None

    def resource(self, resource: str, container: str) -> Mapping[str, PodReading]:
        return self._pods("resource", "resource", name=resource, container=container)

    def pods(self, metric: MetricName) -> Mapping[str, PodReading]:
        return self._pods("pods", "custom", name=metric.name, selector=_selector(metric))

    def object(self, metric: MetricName, described: ObjectReference) -> int:
        described_text = f"{described.kind}/{described.name}"
        selector = _selector(metric)
        match = self._find("object", "custom", name=metric.name, selector=selector, described=described_text)
        return int(match["value"])

    def external(self, metric: MetricName) -> Sequence[int]:
        values: list[int] = self._find("external", "external", name=metric.name, selector=_selector(metric))[
            "values"
        ]
        return values

    def _find(self, kind: str, api: str, **keys: str) -> Json:
        for given in self.given.get(kind) or ():
            if all(given.get(key, "") == value for key, value in keys.items()):
                if given.get("error"):
                    raise MetricsError(given["error"])
                series: Json = given
                return series
        raise MetricsError(_NO_METRICS % api)

    def _pods(self, kind: str, api: str, **keys: str) -> Mapping[str, PodReading]:
        given = self._find(kind, api, **keys)
        existing = self.existing
        values = {n: v for n, v in given["values"].items() if existing is None or n in existing}
        share = given["share"] // len(values) if given["share"] and values else None
        return {
            name: PodReading(
                value if share is None else share,
                self.now - dt.timedelta(milliseconds=age),
                dt.timedelta(milliseconds=window),
            )
            for name, (value, age, window) in values.items()
        }


def _selector(metric: MetricName) -> str:
    """The selector as `labels.Selector` prints it; the scenarios use `matchLabels` only."""
    labels = (metric.selector or {}).get("matchLabels") or {}
    return ",".join(f"{key}={value}" for key, value in sorted(labels.items()))


class Replay:
    """Our model in a scenario, sync by sync."""

    def __init__(self, scenario: Json) -> None:
        given = scenario["settings"]
        self._model = HorizontalAutoscaler(
            HpaSettings(
                sync_period=given["syncPeriod"],
                tolerance=given["tolerance"],
                downscale_stabilization=given["downscaleStabilization"],
                cpu_initialization_period=given["cpuInitializationPeriod"],
                initial_readiness_delay=given["initialReadinessDelay"],
            )
        )
        self._period = given["syncPeriod"]
        self._steps = sorted(scenario["steps"], key=lambda step: float(step["at"]))
        self._meta = msgspec.convert(scenario["hpa"]["metadata"], Meta)
        self._spec = msgspec.json.encode(scenario["hpa"]["spec"])
        self._status = HpaStatusRead()
        self._replicas = self._current = 0
        self._target_selector = ""
        self._pods: list[Pod] = []
        self._follow = False
        self._readings = Readings()

    def sync(self, number: int, defaulted: Json | None) -> HpaResult:
        """The sync of this number, counted from 1. `defaulted` is the spec as the API server would keep it, where it is
        new; None takes the spec as it was written."""
        at = number * self._period
        while self._steps and self._steps[0]["at"] <= at:
            self._apply(self._steps.pop(0))
        if defaulted is not None:
            self._spec = msgspec.json.encode(defaulted)
        present = self._pods[: self._replicas] if self._follow else self._pods
        if self._follow:
            self._current = len(present)
        self._readings.now = now = instant(at)
        self._readings.existing = frozenset(p.metadata.name for p in present) if self._follow else None
        hpa = Hpa(metadata=self._meta, raw_spec=msgspec.Raw(self._spec), status=self._status)
        scale = Scale(self._replicas, self._current, self._target_selector)
        outcome = self._model.sync(hpa, scale, present, self._readings, now)
        self._status = outcome.status
        if outcome.replicas is not None:
            self._replicas = outcome.replicas
        return outcome

    def _apply(self, step: Json) -> None:
        scale = step.get("scale") or {}
        self._replicas = scale.get("replicas", self._replicas)
        self._current = scale.get("current", self._current)
        self._target_selector = scale.get("selector", self._target_selector)
        if "pods" in step:
            self._pods = msgspec.convert(step["pods"], list[Pod])
        self._follow = step.get("follow", self._follow)
        self._readings.given = step.get("readings", self._readings.given)
        if "spec" in step:
            self._spec = msgspec.json.encode(step["spec"])


def ours(outcome: HpaResult) -> Json:
    """What our model did in a sync, in the form of `theirs`."""
    events = [list(event) for event in outcome.events]
    return _whole(msgspec.to_builtins(outcome.status), outcome.replicas, events)


def theirs(sync: Json) -> Json:
    """What the real controller did in a sync."""
    events = [[event["type"], event["reason"], event["message"]] for event in sync["events"]]
    return _whole(sync["status"], sync.get("written"), events)


def _whole(status: Json, written: int | None, events: list[list[str]]) -> Json:
    return {
        "desiredReplicas": status.get("desiredReplicas", 0),
        "currentReplicas": status.get("currentReplicas", 0),
        "written": written,
        "conditions": [
            {**entry, "lastTransitionTime": _second(entry.get("lastTransitionTime"))}
            for entry in status.get("conditions") or ()
        ],
        "currentMetrics": [_plain(entry) for entry in status.get("currentMetrics") or ()],
        "lastScaleTime": _second(status.get("lastScaleTime")),
        "events": events,
    }


def _second(text: str | None) -> str | None:
    """A timestamp as the API server keeps it, without fractions of a second."""
    return text and dt.datetime.fromisoformat(text).strftime("%Y-%m-%dT%H:%M:%SZ")


def _plain(value: Any, key: str = "") -> Any:
    """Without what is empty, and with numbers for quantities, which can be written in several ways."""
    if key in _QUANTITIES:
        return str(parse_quantity(value))
    if isinstance(value, dict):
        kept = {name: _plain(entry, name) for name, entry in value.items()}
        return {name: entry for name, entry in kept.items() if entry not in ("", None, {})}
    return value


def first_difference(scenario: Json, real: Sequence[Json], specs: Sequence[Json | None] = ()) -> str | None:
    """The first sync in which our model and the real controller (`theirs` of each sync) differ, with both sides; None
    where they agree. `specs` are those that the API server completed, by sync; without them the model fills in."""
    assert len(real) == scenario["syncs"]
    replay = Replay(scenario)
    for number, their in enumerate(real, 1):
        our = ours(replay.sync(number, specs[number - 1] if specs else None))
        if difference := differences(f"{scenario['name']}: sync {number}", our, their):
            return difference
    return None
