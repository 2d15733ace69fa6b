"""The conditions that need action, and the remedy for each reason: one table for events, the log, `hvpa explain` and
docs/remedies.md.

It has the reasons of conditions and their remedies. Causes belong in a condition's message.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from hvpa.api.hvpa.spec import HvpaSpec
from hvpa.api.hvpa.status import HvpaStatus, StatusCondition
from hvpa.api.objects.read_models import Meta
from hvpa.api.values import text

EXPECTED: Final = frozenset(
    {
        *("NotConfigured", "NotReady", "HpaCreated", "VpaCreated", "HpaAwaited", "VpaAwaited"),
        *("NoMetrics", "NoRecommendation", "NoPods", "HpaInactive", "VpaInactive", "Contested"),
        *("SampleAwaited", "NothingRaised"),
    }
)
"""Reasons that are part of a normal start, follow from the user's settings, or are reported by another condition."""
NOTEWORTHY: Final = frozenset(
    {
        *("StaleDesiredReplicas", "UnknownContainer", "MissingRequest"),
        *("LostHistory", "PodLevelResources", "NodesUnknown", "ScaledToZero", "Saturated"),
    }
)
"""Reasons that need action although the condition is as it should be."""
REMEDIES: Final[Mapping[str, str]] = {
    # Ready
    "InvalidSpec": "Correct the field that the message names; `hvpa validate -f FILE` checks it offline",
    "TargetNotFound": "Create the workload, or correct spec.targetRef",
    "UnsupportedTarget": "Point spec.targetRef at a supported workload, or correct the field that the message names",
    "TargetUnreadable": "Grant the operator the permission that the message names; it retries",
    "TargetShared": "Delete all but one of these Hvpas, or set spec.mode of the others to Recommend",
    "NoRecommender": "Set spec.hpa.deploy or spec.vpa.deploy to true, or name an existing object",
    "ScaledToZero": "Scale the target to 1 or more replicas to let HVPA scale it again",
    "Saturated": "Raise maxReplicas or maxAllowed, or reduce the load",
    "Refused": "Change the policy, webhook or quota that refuses the change, or lower maxReplicas and maxAllowed",
    "NotPermitted": "Install config/default, whose operator may patch workloads, or set spec.updateStrategy.type to "
    "InPlace",
    "WriteFailed": "Remove the cause that the API server's message names; the operator retries the write",
    "DecisionFailed": "Report this bug with the traceback from the operator's log",
    "DecisionPostponed": "Use fewer windows, intervals and containers in the Hvpas of this namespace, or change them "
    "less often",
    "ReplicaFailure": "Raise the quota, or change the webhook or LimitRange that refuses the pods",
    "PodsNotCreated": "Find the reason in the StatefulSet's Events: `kubectl describe statefulset`",
    "PodsUnschedulable": "Add nodes, or lower maxAllowed so that a pod fits on a node",
    "PodsNotStarting": "See `kubectl describe pod` of the pod that the message names",
    "PodsNotResized": "Lower maxAllowed, or wait: HVPA replaces the pods after the current rollout, within a "
    "maintenance window if the change requires it",
    "PodsNotResized, InPlace": "Lower maxAllowed, or set spec.updateStrategy.type to InPlaceOrRollout",
    "NodeForbidsResize": "Wait: HVPA replaces the pods after the current rollout, within a maintenance window if the "
    "change requires it",
    "NodeForbidsResize, InPlace": "Set spec.updateStrategy.type to InPlaceOrRollout, or run the pods on nodes without "
    "the setting that the message names",
    "PodsNotReplaced": "Delete the pods one by one, set updateStrategy RollingUpdate with partition 0, or set "
    "spec.updateStrategy.type of the Hvpa to InPlace",
    "OutOfMemory": "Raise the bound that the message names, or look for a memory leak",
    "DeploymentPaused": "Resume the Deployment: `kubectl rollout resume`",
    "ProgressDeadlineExceeded": "See `kubectl rollout status`, and the pods that are not ready",
    # HpaActive
    "NoReplicaCount": "Set spec.hpa.deploy to false, and remove spec.hpa.name",
    "HpaNotFound": "Create the HorizontalPodAutoscaler, or correct spec.hpa.name",
    "ForeignHpa": "Delete the other HorizontalPodAutoscaler (or its ScaledObject), or set spec.hpa.selector to match "
    "its labels so that the Hvpa adopts it",
    "NotRecommendationOnly": "Set scaleTargetRef of the named HPA to this Hvpa, or updateMode of the named "
    "VPA to Off",
    "TooManyMetrics": "Remove some of the HPA's metrics",
    "StaleDesiredReplicas": "Set --hpa-tolerance to kube-controller-manager's --horizontal-pod-autoscaler-tolerance",
    "ScalingInactive": "See `kubectl describe hpa`",
    "AmbiguousSelector": "Delete all but one of the HPAs that select these pods",
    "InvalidSelector": "Correct the workload's selector",
    "ScalingDisabled": "Set the HPA's replicas and minReplicas to more than 0",
    "FailedGetScale": "Check that the HPA's scaleTargetRef exists; see `kubectl describe hpa`",
    "FailedUpdateScale": "Find the component that refuses writes to the scale subresource; see `kubectl describe hpa`",
    "InvalidMetricSourceType": "Correct the HPA's metrics",
    # VpaActive
    "VpaNotFound": "Create the VerticalPodAutoscaler, or correct spec.vpa.name",
    "VpaNotServed": "Install the VerticalPodAutoscaler's CRDs and its recommender",
    "ForeignVpa": "Set updateMode of the other VerticalPodAutoscaler to Off, or delete it",
    "OtherTarget": "Set spec.vpa.name to a VPA of this workload",
    "ConfigUnsupported": "Correct the VPA; see `kubectl describe vpa`",
    "ConfigDeprecated": "Correct the VPA; see `kubectl describe vpa`",
    "LowConfidence": "Wait until the VPA has more history; see `kubectl describe vpa`",
    "RecommendationStale": "Check that the VPA's recommender runs and gets metrics (`kubectl top pods`)",
    "LostHistory": "Check that the VPA's recommender can read and write its VerticalPodAutoscalerCheckpoints; HVPA "
    "lowers requests again once the history is long enough",
    "UnknownContainer": "Correct the VPA's container policies, unless the container was removed on purpose",
    "MissingRequest": "Set requests in the pod template, or wait for the first recommendation",
    "PodLevelResources": "Raise the limit in spec.template.spec.resources, or give all containers requests",
    "LargestNode": "Add larger nodes if more replicas can't serve the rest",
    "NodesUnknown": "Apply config/node-room, or correct the pods' node selector, affinity and tolerations",
    "HeapFixed": "Replace the fixed heap in the pod template by a share of the limit (Java: -XX:MaxRAMPercentage), or "
    "set maxAllowed to what the heap needs",
    "HeapKept": "If this is too much memory, give the heap a larger share of the limit (Java: -XX:MaxRAMPercentage) "
    "or a smaller fixed size",
    "RuntimeMismatch": "Correct spec.runtimes, or the command and environment in the pod template",
    # FastSignal
    "NotInPlace": "Set spec.updateStrategy.type to InPlace or InPlaceOrRollout, or spec.fastSignal.mode to Off",
    "KubeletsSilent": "Remove the cause that the message names (docs/fast-signal.md), or set "
    "spec.fastSignal.mode to Off",
    "SampleStale": "See the logs of the pods' kubelets, or set spec.fastSignal.mode to Off",
    # Mode Review
    "ApprovalInvalid": "Correct the annotation, or run `hvpa approve NAME`",
    "Approval": "Run `hvpa approve NAME`, or set spec.mode to Apply",
    # Problems that no condition reports
    "Starving": "Open the gate that the message names, so that HVPA can raise the memory request",
    "RolledBack": "Remove the cause that the message names, or set minAllowed or maxAllowed to exclude "
    "the size",
    "RolledBack, InPlace": "Remove the cause that the message names, set minAllowed or maxAllowed to exclude the size, "
    "or set spec.updateStrategy.type to InPlaceOrRollout if only new pods can have it",
    # Paused, Contested
    "Paused": "Run `hvpa resume NAME` when the incident is over, or set spec.mode to Apply",
    "SetBack": "With Argo CD, set ignoreDifferences for these fields and RespectIgnoreDifferences=true",
}
"""Remedies by reason (and update strategy, if it matters): sentences without their full stop."""
_METRICS: Final = (
    "Check that metrics are served (`kubectl top pods`, or the adapter) and that all containers have requests"
)
FAMILIES: Final[Mapping[str, str]] = {"FailedGet": _METRICS, "FailedCompute": _METRICS}
"""Remedies for families of kube-controller-manager's reasons (`FailedGetResourceMetric`, …)."""
_NAME: Final = "NAME"
"""Placeholder for the Hvpa in a command."""
_OTHERWISE: Final = "See `hvpa explain` and docs/troubleshooting.md"
_ENDS: Final = ("?", "!", "…")
"""Characters that end a sentence like a full stop."""
LENGTH: Final = 1024
"""Maximum length of a message with its remedy, in characters: the API server's limit for an Event's message."""


def remedy(reason: str, hvpa: Meta | None = None, spec: HvpaSpec | None = None) -> str:
    """Return the remedy for a reason with the update strategy of this spec; for an unknown reason, where to look.
    Commands name this Hvpa, or `NAME` without one."""
    by_strategy = "" if spec is None else f"{reason}, {spec.strategy.type}"
    if by_strategy in REMEDIES:
        what = REMEDIES[by_strategy]
    elif reason in REMEDIES:
        what = REMEDIES[reason]
    else:
        what = next((what for prefix, what in FAMILIES.items() if reason.startswith(prefix)), _OTHERWISE)
    return what if hvpa is None else what.replace(_NAME, f"{hvpa.name} -n {hvpa.namespace}")


def advised(reason: str, message: str, hvpa: Meta | None = None, spec: HvpaSpec | None = None) -> str:
    """Return a condition's message with the remedy at its end, once; a long message is cut so that the remedy fits."""
    what = remedy(reason, hvpa, spec)
    if what in message:
        return text.one_line(message, LENGTH)
    sentence = text.one_line(message, LENGTH - len(what) - 3).rstrip(". ")
    return f"{sentence if sentence.endswith(_ENDS) else sentence + '.'} {what}."


def needs_action(condition: StatusCondition) -> bool:
    """Return whether a condition will not recover without action."""
    if condition.type == "ScalingBlocked":
        return False
    is_bad = condition.status == ("True" if condition.type in ("Contested", "Paused") else "False")
    return (is_bad and condition.reason not in EXPECTED) or condition.reason in NOTEWORTHY


def entered(before: HvpaStatus, after: HvpaStatus) -> Iterator[StatusCondition]:
    """Yield the conditions that now need action and did not for this reason before."""
    known = {condition.type: (condition.status, condition.reason) for condition in before.conditions}
    for condition in after.conditions:
        if needs_action(condition) and known.get(condition.type) != (condition.status, condition.reason):
            yield condition


def left(before: HvpaStatus, after: HvpaStatus) -> Iterator[tuple[StatusCondition, StatusCondition]]:
    """Yield the conditions that needed action and no longer do: before and after."""
    now = {condition.type: condition for condition in after.conditions}
    for condition in before.conditions:
        if (
            needs_action(condition)
            and (then := now.get(condition.type)) is not None
            and not needs_action(then)
        ):
            yield condition, then
