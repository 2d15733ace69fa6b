"""The state of an Hvpa as JSON: a stable contract, whose types and words are in `docs/status.schema.json`. All keys are
always there."""

from __future__ import annotations

import datetime as dt

from hvpa.api.hvpa.status import to_wire
from hvpa.api.values.timestamp import format_timestamp
from hvpa.cli.explain.json import containers, indented, pod
from hvpa.cli.status.view import View


def to_json(view: View) -> str:
    """The state as indented JSON, without a line break at the end."""
    return indented(
        {
            "namespace": view.namespace,
            "name": view.name,
            "target": view.target,
            "mode": view.mode,
            "updateStrategy": view.strategy,
            "notes": list(view.notes),
            "conditions": [to_wire(one) for one in view.conditions],
            "blocked": [to_wire(one) for one in view.blocked],
            "replicas": {"current": view.replicas, "ready": view.ready, "desired": view.desired_replicas},
            "desired": {"containers": containers(view.desired), "since": _time(view.since)},
            "actuation": None if view.actuation is None else to_wire(view.actuation),
            "pods": [pod(one) for one in view.pods],
        }
    )


def _time(instant: dt.datetime | None) -> str | None:
    return None if instant is None else format_timestamp(instant)
