"""Reads a workload's history from a CSV file with a header.

Columns: `time` (RFC 3339 or unix seconds), `replicas`, `cpu` (cores used by all pods together, or a quantity such as
1500m), `memory` (bytes, or a quantity such as 3Gi), and, if it is known, `load` (requests per second, jobs). With
several containers, the columns are `cpu:NAME` and `memory:NAME` for each container; if there are only `cpu` and
`memory`, usage is divided in proportion to the containers' requests.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from hvpa.api.schema.base import FieldError
from hvpa.api.values.quantity import RESOURCES, QuantityError, parse_quantity
from hvpa_lab.simulate.errors import refusal
from hvpa_lab.simulate.history.record import History, Used
from hvpa_lab.simulate.load.csv import cell, column_of, rows_of, unix_seconds
from hvpa_lab.simulate.load.series import checked_record, gaps, problem_of

TIME: Final = "time"
REPLICAS: Final = "replicas"
LOAD: Final = "load"


class UsageShare(NamedTuple):
    """A container's assumed shares (0 to 1) of the pod's CPU and memory if only the pod's usage is known."""

    cpu: float
    memory: float


def read_history(file: str, text: str, shares: Mapping[str, UsageShare]) -> History:
    """The history in this text. `shares` has the workload's containers. Raises ScenarioError with line and column."""
    rows = rows_of(file, text)
    _, header = next(rows, (1, []))
    names = [heading.strip() for heading in header]
    columns = _columns(names, list(shares))
    places = {name: column_of(file, header, name) for name in columns}
    series: dict[str, array[float]] = {name: array("d") for name in columns}
    lines, left_out = array("L"), 0
    for line, row in rows:
        cells = {}
        for name, place in places.items():
            try:
                cells[name] = cell(row, place)
            except ValueError as error:
                raise refusal(file, line, FieldError(name, str(error))) from None
        if "" in cells.values():
            left_out += 1
            continue
        for name, content in cells.items():
            try:
                series[name].append(unix_seconds(content) if name == TIME else _amount(content))
            except ValueError as error:
                raise refusal(file, line, FieldError(name, str(error))) from None
        lines.append(line)
    record = checked_record(file, series[TIME], series[REPLICAS], lines.__getitem__, (TIME, REPLICAS))
    notes = gaps(record)
    if left_out:
        notes = (f"{file}: {left_out} rows have an empty cell and were left out", *notes)
    return History(
        file, series[TIME], series[REPLICAS], _by_container(series, shares), series.get(LOAD), notes
    )


def _columns(header: Sequence[str], containers: Sequence[str]) -> list[str]:
    """The names of the columns that are read."""
    container_columns = [f"{resource}:{name}" for resource in RESOURCES for name in containers]
    usage = container_columns if any(name in header for name in container_columns) else list(RESOURCES)
    return [TIME, REPLICAS, *usage, *([LOAD] if LOAD in header else [])]


def _by_container(series: Mapping[str, array[float]], shares: Mapping[str, UsageShare]) -> dict[str, Used]:
    if "cpu" not in series:
        return {name: Used(series[f"cpu:{name}"], series[f"memory:{name}"]) for name in shares}
    return {
        name: Used(
            array("d", (value * share.cpu for value in series["cpu"])),
            array("d", (value * share.memory for value in series["memory"])),
        )
        for name, share in shares.items()
    }


def _amount(text: str) -> float:
    """The value of a number, or of a quantity with a suffix. Raises ValueError."""
    try:
        value = float(parse_quantity(text))
    except QuantityError as error:
        raise ValueError(str(error)) from None
    problem = problem_of(value)
    if problem is not None:
        raise ValueError(problem)
    return value
