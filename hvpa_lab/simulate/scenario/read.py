"""Reads a scenario from its YAML file, and the files that it names, into the `Scenario` that the engine runs.

The fields are in `schema`, loads in `hvpa_lab.simulate.load`, policies in `policies`. Every error is a `ScenarioError`:
one line with file, line and field.
"""

from __future__ import annotations

import datetime as dt
import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from hvpa.api.objects.kinds import api_version_of
from hvpa.api.schema.base import FieldError, field_errors
from hvpa.api.values.duration import HOUR
from hvpa.api.values.quantity import MIB
from hvpa.core.model import ResourceRequirements
from hvpa_lab.recommend.hpa.controller import HpaSettings
from hvpa_lab.recommend.vpa.recommender import VpaSettings
from hvpa_lab.simulate.errors import ScenarioError
from hvpa_lab.simulate.load.csv import read_csv
from hvpa_lab.simulate.load.formula import Formula, FormulaError
from hvpa_lab.simulate.load.prometheus import read_range
from hvpa_lab.simulate.load.series import (
    RecordedSeries,
    StepLoad,
    computed,
    gaps,
    readable_length,
    scaled_values,
    steps_of,
)
from hvpa_lab.simulate.model import (
    ContainerModel,
    Controllers,
    MetricsModel,
    NodeModel,
    RuntimeModel,
    Scenario,
    WorkloadModel,
)
from hvpa_lab.simulate.scenario.documents import SourceDocument, read_documents, read_text
from hvpa_lab.simulate.scenario.policies import beyond_pod, read_policies
from hvpa_lab.simulate.scenario.schema import (
    Blips,
    LoadModel,
    ScenarioContainer,
    ScenarioModel,
    ScenarioWorkload,
    VpaController,
)

MAX_STEPS: Final = 5_000_000
"""Maximum steps of a scenario: two years at 15 s. The record of a step takes about 200 bytes."""
_MAX_VALUES: Final = 50_000_000
"""Maximum recorded values that the simulation reads, repetitions included."""
_DEFAULT_START: Final = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
_UNKNOWN_FIELD: Final = "unknown field"


def load_scenario(path: Path, seed: int) -> Scenario:
    """The scenario in this file. The load's noise is drawn from `seed`, and so is each controller's first sync, unless
    the file sets it.

    Raises ScenarioError, whose text is one line with file, line and field.
    """
    source = _read(path)
    try:
        model = ScenarioModel.model_validate(source.content, by_alias=True, by_name=False)
    except ValidationError as error:
        raise _first(source, field_errors(error)) from None
    times = _times(source, path.parent, model)
    workload = _workload(model.workload, times.duration, seed)
    if (problem := beyond_pod(workload.template)) is not None:
        raise source.refuse(f"workload.resources.{problem.field}", problem.reason)
    policies, notes = read_policies(source, path.parent, model.policies, workload, model.metrics)
    load = _steps(source, model, times, seed)
    return Scenario(
        name=model.name,
        description=model.description,
        start=times.start,
        duration=times.duration,
        step=model.step,
        load=load,
        workload=workload,
        policies=policies,
        nodes=NodeModel(**dict(model.nodes)),
        **_phased(model, seed),
        warm_up=model.warm_up,
        backlog=model.load.backlog,
        notes=(*(() if times.record is None else gaps(times.record)), *notes),
    )


def _first(source: SourceDocument, problems: Sequence[FieldError]) -> ScenarioError:
    """The error to report: an unknown field first, since it may be a misspelt required field; then errors inside a
    field before errors of the whole field, which may only be their consequence."""

    def rank(problem: FieldError) -> tuple[bool, bool, int]:
        whole = any(other.path.startswith((f"{problem.path}.", f"{problem.path}[")) for other in problems)
        return problem.message != _UNKNOWN_FIELD, whole, source.line(problem.path)

    first = min(problems, key=rank)
    return source.refuse(first.path, first.message)


def _read(path: Path) -> SourceDocument:
    documents = read_documents(str(path), read_text(path))
    if len(documents) != 1:
        raise ScenarioError(f"{path}:1: must have a single scenario, but has {len(documents) or 'nothing'}")
    (source,) = documents
    if not isinstance(source.content, dict):
        raise source.refuse("", "a scenario must be an object with name, load, workload and policies")
    return source


# --- load and times -------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class _Times:
    """Start and duration of the scenario."""

    start: dt.datetime
    duration: float
    """Seconds."""
    record: RecordedSeries | None
    """The recorded load; None for a formula."""


def _times(source: SourceDocument, folder: Path, model: ScenarioModel) -> _Times:
    record = _record(source, folder, model.load)
    start, duration = model.start, model.duration
    if record is not None:
        start = start or dt.datetime.fromtimestamp(record.times[0], dt.UTC)
        duration = duration or record.length
        if duration > record.length and not model.load.repeat:
            length = readable_length(record.length)
            raise source.refuse(
                "duration",
                f"is longer than the recorded load ({length}): repeat: true in load starts it again",
            )
    if duration is None:
        raise source.refuse("duration", "is required with a formula")
    times = _Times(start or _DEFAULT_START, duration, record)
    _check_times(source, model, times)
    return times


def _check_times(source: SourceDocument, model: ScenarioModel, times: _Times) -> None:
    duration, record, step, warm_up = times.duration, times.record, model.step, model.warm_up
    length = readable_length(duration)
    values = 0.0 if record is None else duration / record.usual_step
    checks = (
        (duration / step > MAX_STEPS, "step", f"{length} would be more than {MAX_STEPS} steps"),
        (step > duration, "step", f"must not be longer than the duration ({length})"),
        (warm_up >= duration, "warmUp", f"must be shorter than the duration ({length})"),
        (
            math.ceil(warm_up / step) >= math.ceil(duration / step),
            "warmUp",
            "leaves no whole step to count: make it shorter, or step smaller",
        ),
        (values > _MAX_VALUES, "load.repeat", f"{length} would be more than {_MAX_VALUES} recorded values"),
    )
    for is_wrong, field, reason in checks:
        if is_wrong:
            raise source.refuse(field, reason)
    try:
        times.start + dt.timedelta(seconds=duration)
    except OverflowError:
        raise source.refuse("start", "the scenario would end after the year 9999") from None


def _record(source: SourceDocument, folder: Path, load: LoadModel) -> RecordedSeries | None:
    """The recorded load; None for a formula."""
    named = load.csv or load.prometheus
    if named is None:
        return None
    file = folder / named.file
    text = read_text(file, partial(source.refuse, f"load.{'csv' if load.csv else 'prometheus'}.file"))
    if load.csv is not None:
        return read_csv(str(file), text, load.csv.timestamp, load.csv.value)
    assert load.prometheus is not None
    return read_range(str(file), text, load.prometheus.series, load.prometheus.sum)


def _steps(source: SourceDocument, model: ScenarioModel, times: _Times, seed: int) -> StepLoad:
    """The load at each step."""
    count = math.ceil(times.duration / model.step)
    load, calm = model.load, math.ceil(model.load.noise_from / model.step)
    if times.record is not None:
        values = steps_of(times.record, model.step, count, load.repeat)
        return StepLoad(scaled_values(values, load.scale, load.noise, seed, calm), model.step)
    try:
        values = computed(Formula(load.formula or ""), model.step, count)
        return StepLoad(scaled_values(values, load.scale, load.noise, seed, calm), model.step)
    except FormulaError as error:
        raise source.refuse("load.formula", str(error)) from None


# --- workload and controllers ---------------------------------------------------------------------------------------
def _workload(model: ScenarioWorkload, duration: float, seed: int) -> WorkloadModel:
    fields = dict(model) | {"containers": tuple(_container(container) for container in model.containers)}
    fields["api_version"] = model.api_version or api_version_of(model.kind)
    if model.kind == "DaemonSet":  # the API server's defaults
        unset = {"max_surge": 0, "max_unavailable": 1}
        fields |= {name: value for name, value in unset.items() if name not in model.model_fields_set}
    fields["seed"] = seed
    if model.resources is not None:
        amounts = model.resources.requests.by_resource(), model.resources.limits.by_resource()
        fields["resources"] = ResourceRequirements(*amounts)
    if model.blips is not None:
        fields["blips"] = tuple(_blips(model.blips, duration, seed))
        fields["blip_length"] = model.blips.length
    else:
        del fields["blips"]
    return WorkloadModel(**fields)


def _blips(model: Blips, duration: float, seed: int) -> Iterator[tuple[float, float]]:
    """The times of blips (seconds), each with the relative position (0 to 1) of the pod among the ready pods. Both are
    drawn from the seed."""
    draw, at = random.Random(f"blips {seed}"), 0.0
    while (at := at + draw.expovariate(1 / model.every)) < duration:
        yield at, draw.random()


def _container(model: ScenarioContainer) -> ContainerModel:
    return ContainerModel(
        name=model.name,
        requests=model.requests.by_resource(),
        limits=model.limits.by_resource(),
        cpu_base=model.cpu.base,
        cpu_per_unit=model.cpu.per_unit,
        cpu_start_up=model.cpu.start_up,
        memory_base=model.memory.base,
        memory_per_unit=model.memory.per_unit,
        memory_leak=model.memory.leak_per_hour / HOUR,
        memory_kept=model.memory.kept,
        runtime=None if model.runtime is None else RuntimeModel(model.runtime.kind, model.runtime.heap),
    )


def _phased(model: ScenarioModel, seed: int) -> dict[str, Any]:
    """The settings of metrics-server and the controllers, each with the offset of its first run. An offset that is not
    set is drawn from the seed, within the first period: in a cluster, these loops are not synchronized."""
    draw = random.Random(f"phases {seed}").random
    metrics, hpa, vpa = model.metrics, model.controllers.hpa, model.controllers.vpa
    drawn = (
        (metrics.offset, metrics.resolution),
        (hpa.offset, hpa.sync_period),
        (vpa.offset, vpa.period),
        (vpa.updater_offset, vpa.updater_period),
    )
    offsets = [(draw() * period, given) for given, period in drawn]  # draws all, whether set or not
    measured, synced, recommended, updated = (
        drawn_offset if given is None else given for drawn_offset, given in offsets
    )
    controllers = Controllers(
        hpa=HpaSettings(**hpa.model_dump(exclude={"offset"})),
        vpa=_vpa_settings(vpa),
        hpa_offset=synced,
        vpa_period=vpa.period,
        vpa_offset=recommended,
        updater_period=vpa.updater_period,
        updater_offset=updated,
    )
    served = MetricsModel(
        metrics.resolution,
        metrics.delay,
        measured,
        metrics.load,
        metrics.share,
        metrics.queue,
        metrics.kubelets,
    )
    return {"metrics": served, "controllers": controllers}


def _vpa_settings(model: VpaController) -> VpaSettings:
    """The recommender's settings: the flags that are set, converted to the settings' units."""
    times = {"period", "offset", "updater_period", "updater_offset"}
    flags: dict[str, Any] = model.model_dump(exclude=times, exclude_none=True)
    if "pod_min_cpu" in flags:
        flags["pod_min_cpu_millicores"] = flags.pop("pod_min_cpu")
    if "pod_min_memory" in flags:
        flags["pod_min_memory_mb"] = flags.pop("pod_min_memory") / MIB
    return VpaSettings(**flags)
