"""What is valid in `spec.updateStrategy` and can't work as it is probably meant."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from typing import Final

from hvpa.api.hvpa.actuation import UpdateStrategy
from hvpa.api.hvpa.spec import HvpaSpec
from hvpa.api.values.duration import format_duration
from hvpa.core.spec.ranges import is_off
from hvpa.core.spec.review import Remark, deployed_hpa, has_vpa

SHORTEST: Final = dt.timedelta(seconds=10)
"""How often a kubelet writes the status of its pods at the latest (`syncPeriod` in pkg/kubelet/status): before that, no
response to a resize can be counted on."""
_STRATEGY: Final = "spec.updateStrategy"
_DEFAULT: Final = UpdateStrategy()


def review_resizes(spec: HvpaSpec) -> tuple[Remark, ...]:
    """The remarks on how a changed size reaches the pods."""
    checks = (_timeout, _restarts, _nothing_to_resize) if spec.update_strategy.in_place else (_no_effect,)
    return tuple(remark for check in checks for remark in check(spec))


def _no_effect(spec: HvpaSpec) -> Iterator[Remark]:
    """Fields beside `type: Rollout`. What the API server fills in is no remark."""
    strategy = spec.update_strategy
    for field, value, default in (
        ("timeout", strategy.timeout, _DEFAULT.timeout),
        ("maxUnavailable", strategy.max_unavailable, _DEFAULT.max_unavailable),
    ):
        if value != default:
            yield Remark(
                f"{_STRATEGY}.{field}",
                "has no effect: type is Rollout, so that the workload replaces its pods by its own rules",
                "set type: InPlaceOrRollout or InPlace, or take it out",
            )


def _timeout(spec: HvpaSpec) -> Iterator[Remark]:
    timeout = spec.update_strategy.timeout
    if timeout >= SHORTEST:
        return
    falls = spec.update_strategy.type == "InPlaceOrRollout"
    yield Remark(
        f"{_STRATEGY}.timeout",
        f"{format_duration(timeout)} is shorter than a kubelet may take to report a resize:"
        f" {'pods are replaced by a rollout' if falls else 'pods count as stuck'} although they are resized",
        f"use {format_duration(SHORTEST)} at least; 5m is the default",
    )


def _restarts(spec: HvpaSpec) -> Iterator[Remark]:
    """All pods at once, where containers restart for a resize."""
    most, template = spec.update_strategy.max_unavailable, deployed_hpa(spec)
    if isinstance(most, int):
        is_all = template is not None and 1 < template.max_replicas <= most
        why = (
            ""
            if template is None
            else f"{most} pods are all that there are (maxReplicas {template.max_replicas})"
        )
    else:
        is_all, why = most == "100%", "it is all pods"
    if is_all:
        yield Remark(
            f"{_STRATEGY}.maxUnavailable",
            f"{why}: where a resize restarts containers, none may be left that is ready",
            "use a smaller number or percentage",
        )


def _nothing_to_resize(spec: HvpaSpec) -> Iterator[Remark]:
    if has_vpa(spec) and is_off(spec.vpa.scale_up) and is_off(spec.vpa.scale_down):
        yield Remark(
            f"{_STRATEGY}.type",
            f"{spec.update_strategy.type} resizes no pod: spec.vpa.scaleUp and spec.vpa.scaleDown are Off",
            "set updatePolicy: {updateMode: Auto} in the directions in which requests are to be scaled",
        )
