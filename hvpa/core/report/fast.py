"""The fast signal (`spec.fastSignal`) in the status: whether the kubelets report the pods' usage, and how old that is.
A process that polls no kubelets (`hvpa explain`) keeps the operator's report."""

from __future__ import annotations

from hvpa.api.hvpa.progress import FastSignalStatus
from hvpa.api.hvpa.status import StatusCondition
from hvpa.api.values.timestamp import readable_timestamp
from hvpa.core.model import Finding, ScalableState
from hvpa.core.values.clock import Clock
from hvpa.core.values.tuning import FAST_SHOWN, FAST_SILENT

CONDITION = "FastSignal"
_NOT_IN_PLACE = Finding(
    "NotInPlace", "the fast signal only raises pods that are resized in place, and these are replaced"
)
_NOTHING_RAISED = Finding(
    "NothingRaised",
    "spec.mode or spec.vpa.scaleUp.updatePolicy lets HVPA raise no requests, so it polls no kubelet",
)
_NO_PODS = Finding("SampleAwaited", "no pod runs")
_AWAITED = Finding("SampleAwaited", "no kubelet has reported the pods' usage yet")


def fast_condition(observation: ScalableState, clock: Clock) -> tuple[bool, Finding]:
    """Returns whether the fast signal works, and why not."""
    if not observation.spec.strategy.in_place:
        return False, _NOT_IN_PLACE
    if not observation.spec.polls_kubelets:
        return False, _NOTHING_RAISED
    if (usage := observation.usage) is None:
        return _reported_condition(observation.status.conditions) or (False, _AWAITED)
    if usage.silent:
        address, why = min(usage.silent.items())
        silent = f"the kubelets of {len(usage.silent)} of {usage.nodes} nodes report no usage"
        return False, Finding("KubeletsSilent", f"{silent}; {address}: {why}")
    if usage.time is None:
        return _until_the_first(observation, clock) or (False, _AWAITED if usage.nodes else _NO_PODS)
    if clock.held_until(usage.time, FAST_SILENT) is None:
        when = readable_timestamp(usage.time)
        return False, Finding("SampleStale", f"the kubelets' newest sample of the pods arrived at {when}")
    return True, Finding("Reporting", f"the kubelets report the pods' usage (nodes: {usage.nodes})")


def _reported_condition(conditions: tuple[StatusCondition, ...]) -> tuple[bool, Finding] | None:
    for condition in conditions:
        if condition.type == CONDITION:
            return condition.status == "True", Finding(condition.reason, condition.message)
    return None


def _until_the_first(observation: ScalableState, clock: Clock) -> tuple[bool, Finding] | None:
    """Returns the condition as it was, if samples have arrived until lately: another process has polled."""
    known = observation.status.fast_signal
    if known is None or clock.held_until(known.last_sample_time, FAST_SHOWN + FAST_SILENT) is None:
        return None
    return _reported_condition(observation.status.conditions)


def fast_status(observation: ScalableState, clock: Clock) -> FastSignalStatus | None:
    """Returns the source and the age of the samples; None without a fast signal. The time stays for a while if nothing
    else changes, so that not each sample is a write."""
    if not observation.spec.polls_kubelets:
        return None
    known, usage = observation.status.fast_signal, observation.usage
    if usage is None:
        return known
    if usage.time is None and known is not None and _until_the_first(observation, clock) is not None:
        return known
    status = FastSignalStatus(
        nodes=usage.nodes,
        silent=len(usage.silent),
        sampling_seconds=None if usage.sampling is None else max(1, round(usage.sampling)),
        last_sample_time=None if usage.time is None else usage.time.replace(microsecond=0),
    )
    if known is None or clock.held_until(known.last_sample_time, FAST_SHOWN) is None:
        return status
    if known.sampling_seconds is None and status.sampling_seconds is not None:
        return status
    same = known.model_copy(
        update={name: getattr(status, name) for name in ("last_sample_time", "sampling_seconds")}
    )
    return known if same == status else status
