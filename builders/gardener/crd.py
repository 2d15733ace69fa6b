"""gardener's CustomResourceDefinition of Hvpa as last shipped, without its texts.

Field names, types, required fields and bounds are those of
`pkg/component/autoscaling/hvpa/templates/crd-autoscaling.k8s.io_hvpas.yaml` of github.com/gardener/gardener (commit
2773e175), Copyright SAP SE or an SAP affiliate company and Gardener contributors, licensed under the Apache License 2.0
(http://www.apache.org/licenses/LICENSE-2.0). This file is a new transcription.
"""

from __future__ import annotations

from typing import Any, Final

Schema = dict[str, Any]

TEXT: Final[Schema] = {"type": "string"}
FLAG: Final[Schema] = {"type": "boolean"}
INT32: Final[Schema] = {"type": "integer", "format": "int32"}
TIME: Final[Schema] = {"type": "string", "format": "date-time"}
QUANTITY: Final[Schema] = {
    "anyOf": [{"type": "integer"}, {"type": "string"}],
    "pattern": r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]"
    r"|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$",
    "x-kubernetes-int-or-string": True,
}
QUANTITIES: Final[Schema] = {"type": "object", "additionalProperties": QUANTITY}


def _object(*required: str, **properties: Schema) -> Schema:
    return {"type": "object", "properties": properties} | ({"required": list(required)} if required else {})


def _list(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def _enum(*values: str) -> Schema:
    return TEXT | {"enum": list(values)}


SELECTOR: Final = _object(
    matchExpressions=_list(_object("key", "operator", key=TEXT, operator=TEXT, values=_list(TEXT))),
    matchLabels={"type": "object", "additionalProperties": TEXT},
) | {"x-kubernetes-map-type": "atomic"}
METADATA: Final[Schema] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
REFERENCE: Final = _object("kind", "name", apiVersion=TEXT, kind=TEXT, name=TEXT)

_CHANGE: Final = _object(percentage=INT32, value=TEXT)
_PARAMS: Final = _object(cpu=_CHANGE, memory=_CHANGE, replicas=_CHANGE)
_POLICY: Final = _object(updateMode=TEXT)
_DIRECTION: Final = _object(minChange=_PARAMS, stabilizationDuration=TEXT, updatePolicy=_POLICY)
_RESOURCE: Final = {"name": TEXT, "targetAverageUtilization": INT32, "targetAverageValue": QUANTITY}
_METRIC: Final = _object(
    "type",
    type=TEXT,
    containerResource=_object("container", "name", container=TEXT, **_RESOURCE),
    external=_object(
        "metricName",
        metricName=TEXT,
        metricSelector=SELECTOR,
        targetAverageValue=QUANTITY,
        targetValue=QUANTITY,
    ),
    object=_object(
        "metricName",
        "target",
        "targetValue",
        averageValue=QUANTITY,
        metricName=TEXT,
        selector=SELECTOR,
        target=REFERENCE,
        targetValue=QUANTITY,
    ),
    pods=_object(
        "metricName", "targetAverageValue", metricName=TEXT, selector=SELECTOR, targetAverageValue=QUANTITY
    ),
    resource=_object("name", **_RESOURCE),
)
_CONTAINER: Final = _object(
    containerName=TEXT,
    controlledResources=_list(TEXT),
    controlledValues=_enum("RequestsAndLimits", "RequestsOnly"),
    maxAllowed=QUANTITIES,
    minAllowed=QUANTITIES,
    mode=_enum("Auto", "Off"),
)
_HPA_TEMPLATE: Final = _object("maxReplicas", maxReplicas=INT32, metrics=_list(_METRIC), minReplicas=INT32)
_VPA_TEMPLATE: Final = _object(resourcePolicy=_object(containerPolicies=_list(_CONTAINER)))


def _axis(template: Schema, **more: Schema) -> Schema:
    return _object(
        deploy=FLAG,
        scaleDown=_DIRECTION,
        scaleUp=_DIRECTION,
        selector=SELECTOR,
        template=_object(metadata=METADATA, spec=template),
        **more,
    )


_WEIGHT: Final[Schema] = INT32 | {"minimum": 0, "maximum": 100}
SPEC: Final = _object(
    "targetRef",
    hpa=_axis(_HPA_TEMPLATE),
    maintenanceTimeWindow=_object("begin", "end", begin=TEXT, end=TEXT),
    replicas=INT32,
    targetRef=REFERENCE,
    vpa=_axis(_VPA_TEMPLATE, limitsRequestsGapScaleParams=_PARAMS),
    weightBasedScalingIntervals=_list(
        _object(lastReplicaCount=INT32, startReplicaCount=INT32, vpaWeight=_WEIGHT)
    ),
)

_CONDITION: Final = _object(
    "status", "type", lastTransitionTime=TIME, message=TEXT, reason=TEXT, status=TEXT, type=TEXT
)
_RECOMMENDED: Final = _object(
    "target",
    containerName=TEXT,
    lowerBound=QUANTITIES,
    target=QUANTITIES,
    uncappedTarget=QUANTITIES,
    upperBound=QUANTITIES,
)
_SCALING: Final = _object(
    hpaStatus=_object(currentReplicas=INT32, desiredReplicas=INT32),
    lastScaleTime=TIME,
    vpaStatus=_object(
        conditions=_list(_CONDITION), recommendation=_object(containerRecommendations=_list(_RECOMMENDED))
    ),
)
STATUS: Final = _object(
    hpaScaleDownUpdatePolicy=_POLICY,
    hpaScaleUpUpdatePolicy=_POLICY,
    hpaWeight=INT32,
    lastBlockedScaling=_list(_object(reason=TEXT, scalingStatus=_SCALING)),
    lastError=_object(description=TEXT, lastOperation=TEXT, lastUpdateTime=TIME),
    lastScaling=_SCALING,
    overrideScaleUpStabilization=FLAG,
    replicas=INT32,
    targetSelector=TEXT,
    vpaScaleDownUpdatePolicy=_POLICY,
    vpaScaleUpUpdatePolicy=_POLICY,
    vpaWeight=INT32,
)


def crd() -> dict[str, Any]:
    """The CustomResourceDefinition."""
    scale = {
        "labelSelectorPath": ".status.targetSelector",
        "specReplicasPath": ".spec.replicas",
        "statusReplicasPath": ".status.replicas",
    }
    version = {
        "name": "v1alpha1",
        "served": True,
        "storage": True,
        "schema": {
            "openAPIV3Schema": _object(
                apiVersion=TEXT, kind=TEXT, metadata={"type": "object"}, spec=SPEC, status=STATUS
            )
        },
        "subresources": {"scale": scale, "status": {}},
    }
    names = {"kind": "Hvpa", "listKind": "HvpaList", "plural": "hvpas", "singular": "hvpa"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": "hvpas.autoscaling.k8s.io",
            "annotations": {"api-approved.kubernetes.io": "unapproved, temporarily squatting"},
        },
        "spec": {
            "group": "autoscaling.k8s.io",
            "names": names,
            "scope": "Namespaced",
            "versions": [version],
        },
    }
