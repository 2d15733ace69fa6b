"""Bounds, thresholds, waits and update strategies that are valid but prevent a direction from ever changing anything.

This module checks a single Hvpa's spec by itself. A direction in update mode Off changes nothing on purpose and gets no
remark.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from hvpa.api.hvpa.actuation import UpdateStrategy
from hvpa.api.hvpa.spec import HpaSpec, HvpaSpec, VpaSpec
from hvpa.api.values.duration import format_duration
from hvpa.api.values.quantity import RESOURCES, Resource, readable_resource
from hvpa.core.rules import rules_of
from hvpa.core.spec.review import Remark, are_off, deployed_hpa, has_hpa, has_vpa, is_off, resource_metrics
from hvpa.core.values.arithmetic import ceil_div, threshold
from hvpa.core.values.weight import FULL
from hvpa.core.workload.containers import amount

DAY: Final = dt.timedelta(days=1)
"""The VPA's recommender halves the weight of a sample after a day: after a longer wait the recommendation has
changed."""
HISTORY: Final = 8 * DAY
"""History length of the VPA's recommender, by default (`--memory-aggregation-interval-count`)."""
POLICIES: Final = "spec.vpa.template.spec.resourcePolicy.containerPolicies"
SHORTEST: Final = dt.timedelta(seconds=10)
"""Maximum interval between a kubelet's status updates of its pods (`syncPeriod` in pkg/kubelet/status): within it, a
resize may still have no response."""
_HPA: Final = "spec.hpa.template.spec"
_STRATEGY: Final = "spec.updateStrategy"
_DEFAULT: Final = UpdateStrategy()


def review_ranges(spec: HvpaSpec) -> tuple[Remark, ...]:
    """Return the remarks on a spec."""
    checks = (_requests, _replicas, _behavior, _waits, _nothing_moves)
    return tuple(remark for check in checks for remark in check(spec))


# --- requests ---------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class _Range:
    """The requests that a container policy allows for a resource."""

    path: str
    resource: Resource
    least: int
    most: int

    @property
    def width(self) -> int:
        """The largest change within the range."""
        return self.most - self.least

    def __str__(self) -> str:
        return f"{self.shown(self.least)} to {self.shown(self.most)}"

    def shown(self, value: int) -> str:
        """Return a request for people."""
        return readable_resource(self.resource, value)


def _ranges(spec: HvpaSpec) -> Iterator[_Range]:
    """Yield the ranges of the VPA's template that have an upper end."""
    template = spec.vpa.template.spec
    policy = None if template is None or not spec.vpa.deploy else template.resource_policy
    for index, container_policy in enumerate(() if policy is None else policy.container_policies):
        controlled = (
            RESOURCES
            if container_policy.controlled_resources is None
            else container_policy.controlled_resources
        )
        for resource in () if container_policy.mode == "Off" else controlled:
            most = amount(container_policy.max_allowed, resource)
            if most is not None:
                path = f"{POLICIES}[{index}].maxAllowed[{resource}]"
                yield _Range(path, resource, amount(container_policy.min_allowed, resource) or 0, most)


def _requests(spec: HvpaSpec) -> Iterator[Remark]:
    """Yield remarks on ranges that have a single value, or in which no change is as large as minChange."""
    vpa, rules = spec.vpa, rules_of(spec)
    for allowed in () if are_off(vpa) else _ranges(spec):
        if allowed.width == 0:
            yield Remark(
                allowed.path,
                f"minAllowed and maxAllowed are both {allowed.shown(allowed.most)}: HVPA sets the {allowed.resource}"
                " request to that once and never changes it",
                f"raise maxAllowed, or remove {allowed.resource} from controlledResources if HVPA should not scale it",
            )
            continue
        for name, direction, current, verb in (
            ("scaleUp", rules["vertical", "up"], allowed.least, "raised"),
            ("scaleDown", rules["vertical", "down"], allowed.most, "lowered"),
        ):
            least = direction.min_change[allowed.resource].of(current)
            if is_off(direction.policy) or least <= allowed.width:
                continue
            when = " alone" if spec.joint else ""
            if name == "scaleUp" and min(ceil_div(allowed.least, 10), ceil_div(least, 2)) <= allowed.width:
                wait = format_duration(vpa.scale_up.min_change_timeout)  # afterwards some raises are allowed
                when += f" before minChangeTimeout ({wait}) has passed"
            never = f"the {allowed.resource} request is never {verb}{when}"
            field = f"spec.vpa.{name}.minChange.{allowed.resource}.value"
            yield Remark(
                allowed.path,
                f"requests range from {allowed}, but {name}.minChange is {allowed.shown(least)}: {never}",
                f"set a smaller {field}, or move minAllowed and maxAllowed apart",
            )


# --- replicas ---------------------------------------------------------------------------------------------------
def _replicas(spec: HvpaSpec) -> Iterator[Remark]:
    """Yield a remark on a minChange that no change between minReplicas and maxReplicas reaches."""
    template = deployed_hpa(spec)
    if template is None:
        return
    fewest, most = template.min_replicas or 1, template.max_replicas
    for name, direction, current, verb in (
        ("scaleUp", spec.hpa.scale_up, fewest, "adds"),
        ("scaleDown", spec.hpa.scale_down, most, "removes"),
    ):
        params = direction.min_change.replicas
        least = threshold(params.value, params.percentage, current)
        if fewest < most and not is_off(direction) and least > most - fewest:
            yield Remark(
                f"spec.hpa.{name}.minChange.replicas",
                f"replicas range from {fewest} to {most}, but minChange is {least}: HVPA never {verb} a replica",
                "set a smaller value, or raise maxReplicas",
            )


def _behavior(spec: HvpaSpec) -> Iterator[Remark]:
    template = deployed_hpa(spec)
    behavior = None if template is None else template.behavior
    if behavior is None or are_off(spec.hpa):
        return
    directions = (behavior.scale_up, behavior.scale_down)
    if all(rules is not None and rules.select_policy == "Disabled" for rules in directions):
        yield Remark(
            f"{_HPA}.behavior",
            "selectPolicy is Disabled in both directions: the HPA never changes its desired replicas",
            "remove behavior, and limit changes with the gates of this Hvpa",
        )


# --- waits ------------------------------------------------------------------------------------------------------
def _waits(spec: HvpaSpec) -> Iterator[Remark]:
    hpa, vpa = spec.hpa, spec.vpa
    after = "after each change of its axis"
    waits = (
        ("hpa.scaleDown.stabilizationDuration", has_hpa(spec), hpa.scale_down,
         hpa.scale_down.stabilization_duration, DAY, f"HVPA removes no replica for {{}} {after}"),
        ("vpa.scaleUp.stabilizationDuration", has_vpa(spec), vpa.scale_up,
         vpa.scale_up.stabilization_duration, DAY, f"HVPA raises no request for {{}} {after}"),
        ("vpa.scaleDown.stabilizationDuration", has_vpa(spec), vpa.scale_down,
         vpa.scale_down.stabilization_duration, HISTORY, f"HVPA lowers no request for {{}} {after}"),
        ("vpa.scaleDown.minHistory", has_vpa(spec), vpa.scale_down, vpa.scale_down.min_history, HISTORY,
         "HVPA lowers no request in the first {}, but the VPA's recommender keeps only 8 days"),
        ("vpa.scaleUp.minChangeTimeout", has_vpa(spec), vpa.scale_up, vpa.scale_up.min_change_timeout, DAY,
         "an increase below minChange waits for {}"),
    )  # fmt: skip
    for path, used, direction, wait, most, reason in waits:
        if used and not is_off(direction) and wait > most:
            yield Remark(
                f"spec.{path}",
                reason.format(format_duration(wait)),
                f"use at most {format_duration(most)}, or updateMode: Off if HVPA should not scale in this direction",
            )


# --- both axes --------------------------------------------------------------------------------------------------
def _nothing_moves(spec: HvpaSpec) -> Iterator[Remark]:
    """Yield a remark if both axes are switched off, by update modes or by weights."""
    if not spec.applies or not (has_hpa(spec) or has_vpa(spec)):
        return
    weights, is_split = spec.weights_ppm, has_hpa(spec) and has_vpa(spec) and not spec.joint
    vertical = horizontal = ""
    if is_split and weights and all(weight == FULL for weight in weights):
        vertical = "all weights are 100 percent vertical"
    if is_split and not any(weights):
        why = "requests are raised only at maxReplicas or after running out of memory"
        horizontal = f"the vertical weight is 0 ({why})"
    replicas = _why_off("hpa", has_hpa(spec), spec.hpa) or vertical
    requests = _why_off("vpa", has_vpa(spec), spec.vpa) or horizontal
    if replicas and requests:
        yield Remark(
            "spec",
            f"HVPA scales nothing: {replicas}, and {requests}",
            "set mode: Recommend for recommendations only, or updateMode: Auto on the axis that HVPA should scale",
        )


def _why_off(name: str, exists: bool, axis: HpaSpec | VpaSpec) -> str:
    if not exists:
        return f"no {name.upper()} is deployed or named"
    return f"spec.{name} is Off in both directions" if are_off(axis) else ""


# --- resizes ----------------------------------------------------------------------------------------------------
def review_resizes(spec: HvpaSpec) -> tuple[Remark, ...]:
    """Return the remarks on how a changed size reaches the pods."""
    in_place = (_resize_timeout, _restarts, _nothing_to_resize, _always_above)
    checks = in_place if spec.strategy.in_place else (_no_effect,)
    return tuple(remark for check in checks for remark in check(spec))


def _no_effect(spec: HvpaSpec) -> Iterator[Remark]:
    """Yield remarks on fields without effect with `type: Rollout`. A value that equals the API server's default gets no
    remark."""
    strategy = spec.strategy
    for field, value, default in (
        ("timeout", strategy.timeout, _DEFAULT.timeout),
        ("maxUnavailable", strategy.max_unavailable, _DEFAULT.max_unavailable),
    ):
        if value != default:
            yield Remark(
                f"{_STRATEGY}.{field}",
                "has no effect: with type Rollout, the workload replaces its pods by its own rules",
                "set type: InPlaceOrRollout or InPlace, or remove it",
            )
    if spec.fast_signal.mode != "Off":
        yield Remark(
            "spec.fastSignal",
            "has no effect: with type Rollout, pods are replaced, and not raised",
            "set updateStrategy: {type: InPlaceOrRollout} or {type: InPlace}, or remove it",
        )


def _resize_timeout(spec: HvpaSpec) -> Iterator[Remark]:
    timeout = spec.strategy.timeout
    if timeout >= SHORTEST:
        return
    falls = spec.strategy.type == "InPlaceOrRollout"
    yield Remark(
        f"{_STRATEGY}.timeout",
        f"{format_duration(timeout)} is shorter than a kubelet may take to report a resize:"
        f" {'pods are replaced by a rollout' if falls else 'pods count as stuck'} although they are resized",
        f"use at least {format_duration(SHORTEST)} (default: 5m)",
    )


def _restarts(spec: HvpaSpec) -> Iterator[Remark]:
    """Yield a remark if a resize that restarts containers could restart all pods at once."""
    most, template = spec.strategy.max_unavailable, deployed_hpa(spec)
    if isinstance(most, str):
        is_all, why = most == "100%", "100% allows all pods at once"
    else:
        is_all = template is not None and 1 < template.max_replicas <= most
        replicas = 0 if template is None else template.max_replicas
        why = f"{most} allows all pods at once (maxReplicas {replicas})"
    if is_all:
        yield Remark(
            f"{_STRATEGY}.maxUnavailable",
            f"{why}: if a resize restarts containers, no ready pod may remain",
            "use a smaller number or percentage",
        )


def _nothing_to_resize(spec: HvpaSpec) -> Iterator[Remark]:
    if has_vpa(spec) and are_off(spec.vpa):
        yield Remark(
            f"{_STRATEGY}.type",
            f"{spec.strategy.type} resizes no pod: spec.vpa.scaleUp and spec.vpa.scaleDown are Off",
            "set updatePolicy: {updateMode: Auto} in the directions in which HVPA should scale requests",
        )


def _always_above(spec: HvpaSpec) -> Iterator[Remark]:
    """Yield a remark if pods use more than `fastSignal.above` percent whenever they follow the HPA's target."""
    above = spec.fast_signal.above
    targets = [
        source["target"].get("averageUtilization") or 0
        for _, source in resource_metrics(spec)
        if source["name"] == "cpu"
    ]
    if spec.fast_signal.mode == "Raise" and (target := max(targets, default=0)) >= above:
        yield Remark(
            "spec.fastSignal.above",
            f"{above} is not above the HPA's target of {target} percent: pods that fit are raised, too",
            f"use more than {target}, or a lower target",
        )
