"""What KEDA's operator (2.21) does with a ScaledObject, in place of that operator (docs/decisions/0045): the HPA that
it writes (controllers/keda/hpa.go), and how it scales to 0 and back (pkg/scaling/executor/scale_scaledobjects.go)."""

from __future__ import annotations

from localcluster.client.api import ApiError, Json, KubeApi

METRIC = "s0-prometheus"
"""What the metric of a first trigger of type `prometheus` is called (`GenerateMetricNameWithIndex`)."""
OWNER_LABEL = "scaledobject.keda.sh/name"
_ATTEMPTS = 5


class Keda:
    """KEDA for one ScaledObject with one trigger of type `prometheus`."""

    def __init__(self, api: KubeApi, scaled_object: Json) -> None:
        """`scaled_object` as the API server has it."""
        self._api = api
        self._meta, self._spec = scaled_object["metadata"], scaled_object["spec"]
        self._name, self._namespace = self._meta["name"], self._meta["namespace"]
        target = self._spec["scaleTargetRef"]
        self._scale = api.path(
            f"{target['apiVersion']}/{target['kind']}", self._namespace, target["name"], "scale"
        )

    def scale(self) -> Json:
        """The scale of the target, without which KEDA creates no HPA."""
        return self._api.raw("GET", self._scale)

    def create_hpa(self) -> Json:
        """`newHPAForScaledObject`."""
        name, meta = f"keda-hpa-{self._name}", self._meta
        [trigger] = self._spec["triggers"]
        target = {"type": trigger["metricType"], "averageValue": trigger["metadata"]["threshold"]}
        metric = {"name": METRIC, "selector": {"matchLabels": {OWNER_LABEL: self._name}}}
        owner = {
            "apiVersion": "keda.sh/v1alpha1",
            "kind": "ScaledObject",
            "name": self._name,
            "uid": meta["uid"],
        }
        labels = {"name": name, "version": "2.21.0", "part-of": self._name, "managed-by": "keda-operator"}
        return self._api.create(
            {
                "apiVersion": "autoscaling/v2",
                "kind": "HorizontalPodAutoscaler",
                "metadata": {
                    "name": name,
                    "namespace": self._namespace,
                    "labels": {f"app.kubernetes.io/{key}": value for key, value in labels.items()},
                    "ownerReferences": [{**owner, "controller": True, "blockOwnerDeletion": True}],
                },
                "spec": {
                    "minReplicas": self._spec["minReplicaCount"] or 1,
                    "maxReplicas": self._spec["maxReplicaCount"],
                    "metrics": [{"type": "External", "external": {"metric": metric, "target": target}}],
                    "behavior": self._spec["advanced"]["horizontalPodAutoscalerConfig"]["behavior"],
                    "scaleTargetRef": self._spec["scaleTargetRef"],
                },
            }
        )

    def look(self, active: bool) -> None:
        """One look at the triggers, with the cooldown over (`RequestScale`): a target at 0 goes to minReplicaCount or 1
        where a trigger is active, and one above goes to 0 where none is. KEDA looks again soon after a conflict."""
        for _ in range(_ATTEMPTS):
            try:
                return self._scale_to_or_from_zero(active)
            except ApiError as error:
                if error.status != 409:
                    raise
        raise AssertionError(f"{self._scale} changed {_ATTEMPTS} times between a read and a write")

    def _scale_to_or_from_zero(self, active: bool) -> None:
        scale, least = self.scale(), self._spec["minReplicaCount"]
        current = scale["spec"].get("replicas", 0)
        if active and current == 0:
            scale["spec"]["replicas"] = least or 1
        elif not active and current > 0 and least == 0:
            scale["spec"]["replicas"] = 0
        else:
            return
        self._api.raw("PUT", self._scale, scale)
