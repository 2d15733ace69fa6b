"""Hvpas as gardener's generators wrote them: each form that occurs, as its client serialised it.

The shapes are those of github.com/gardener/gardener (Apache License 2.0): `pkg/component/kubeapiserver/hvpa.go`
(1ca758cc), `pkg/component/gardener/apiserver/hvpa.go`, `pkg/operation/botanist/component/etcd/etcd.go` (038efd2f),
`…/kubecontrollermanager`, `…/logging/vali`, and the charts `seed-controlplane/charts/kube-apiserver` (2ccebd7e),
`seed-bootstrap/templates/prometheus` (1afe6c15) and `seed-bootstrap/charts/loki` (06d4e71f). The manifests keep the
quirks of a Go client: it omits zero values (`deploy: false`, `vpaWeight: 0`, a replica count of 0), and writes some
empty values (`minChange: {cpu: {}}`, `creationTimestamp: null`).
"""

from __future__ import annotations

from typing import Any, Final

Doc = dict[str, Any]

_NO_CHANGE: Final[Doc] = {"cpu": {}, "memory": {}, "replicas": {}}
NAMESPACE: Final = "shoot--dev--one"
WINDOW: Final = {"begin": "220000+0100", "end": "230000+0100"}


def direction(mode: str | None, wait: str | None = None, cpu: str = "", memory: str = "") -> Doc:
    """A `scaleUp` or `scaleDown` with `minChange` by value, and by 80 percent."""
    change = {"cpu": {"value": cpu, "percentage": 80}, "memory": {"value": memory, "percentage": 80}}
    return {
        "updatePolicy": {} if mode is None else {"updateMode": mode},
        "minChange": (change if cpu else {"cpu": {}, "memory": {}}) | {"replicas": {}},
    } | ({} if wait is None else {"stabilizationDuration": wait})


def interval(weight: int, start: int, last: int) -> Doc:
    """An interval; zeros are left out."""
    entry = {"vpaWeight": weight, "startReplicaCount": start, "lastReplicaCount": last}
    return {field: value for field, value in entry.items() if value}


def _utilization(*resources: str) -> list[Doc]:
    return [
        {"type": "Resource", "resource": {"name": resource, "targetAverageUtilization": 80}}
        for resource in resources
    ]


def _axis(role: str, spec: Doc, up: Doc, down: Doc) -> Doc:
    labels = {"role": role}
    template = {"metadata": {"creationTimestamp": None, "labels": labels}, "spec": spec}
    return {"selector": {"matchLabels": labels}, "template": template, "scaleUp": up, "scaleDown": down}


def _hvpa(name: str, kind: str, hpa: Doc, vpa: Doc, intervals: list[Doc], **more: Any) -> Doc:
    return {
        "apiVersion": "autoscaling.k8s.io/v1alpha1",
        "kind": "Hvpa",
        "metadata": {"name": name, "namespace": NAMESPACE, "creationTimestamp": None},
        "spec": {
            "replicas": 1,
            "hpa": hpa,
            "vpa": vpa | {"deploy": True},
            "weightBasedScalingIntervals": intervals,
            "targetRef": {"apiVersion": "apps/v1", "kind": kind, "name": name},
        }
        | more,
    }


def _gap(cpu: str, memory: str, percent: int) -> Doc:
    gap = {"cpu": {"value": cpu, "percentage": percent}, "memory": {"value": memory, "percentage": percent}}
    return {"limitsRequestsGapScaleParams": gap | {"replicas": {}}}


def _policies(*containers: Doc) -> Doc:
    return {"resourcePolicy": {"containerPolicies": list(containers)}}


def kube_apiserver(least: int = 2, most: int = 4, *, scale_down: str = "Auto") -> Doc:
    """The Hvpa of a Shoot's kube-apiserver since 2021: the interval at maxReplicas comes first, and is the only
    interval if the bounds are equal."""
    auto = direction("Auto")
    hpa = _axis(
        "apiserver-hpa",
        {"minReplicas": least, "maxReplicas": most, "metrics": _utilization("cpu")},
        auto,
        auto,
    )
    container = {
        "containerName": "kube-apiserver",
        "minAllowed": {"memory": "400M"},
        "maxAllowed": {"cpu": "8", "memory": "25G"},
        "controlledValues": "RequestsOnly",
    }
    clients = [
        {"containerName": name, "minAllowed": {"memory": "20Mi"}, "controlledValues": "RequestsOnly"}
        for name in ("vpn-client-0", "vpn-client-1", "vpn-path-controller")
    ]
    up, down = direction("Auto", "3m", "300m", "200M"), direction(scale_down, "15m", "300m", "200M")
    vpa = _axis("apiserver-vpa", _policies(container, *clients), up, down) | _gap("1", "1G", 70)
    below = [interval(0, least, most - 1)] if most > least else []
    return _hvpa(
        "kube-apiserver", "Deployment", hpa | {"deploy": True}, vpa, [interval(100, most, most), *below]
    )


def kube_apiserver_of_the_chart(least: int = 1, most: int = 4) -> Doc:
    """The Hvpa of a Shoot's kube-apiserver until 2021, from a chart: intervals in order, with a window and unformatted
    numbers."""
    hvpa = kube_apiserver(least, most)
    spec = hvpa["spec"] | {"maintenanceTimeWindow": WINDOW}
    spec["weightBasedScalingIntervals"] = [
        {"vpaWeight": 0, "startReplicaCount": least, "lastReplicaCount": most - 1},
        {"vpaWeight": 100, "startReplicaCount": most, "lastReplicaCount": most},
    ]
    return hvpa | {"spec": spec}


def gardener_apiserver() -> Doc:
    """The Hvpa of gardener's own API server: no interval at maxReplicas, and no upper bounds."""
    auto, metrics = direction("Auto"), _utilization("cpu", "memory")
    hpa = _axis(
        "gardener-apiserver-hpa", {"minReplicas": 1, "maxReplicas": 4, "metrics": metrics}, auto, auto
    )
    container = {"containerName": "gardener-apiserver", "minAllowed": {"memory": "400M"}}
    up, down = direction("Auto", "3m", "300m", "200M"), direction("Auto", "15m", "600m", "600M")
    vpa = _axis("gardener-apiserver-vpa", _policies(container), up, down) | _gap("1", "1G", 70)
    return _hvpa("gardener-apiserver", "Deployment", hpa | {"deploy": True}, vpa, [interval(0, 1, 3)])


def etcd(replicas: int = 1, *, scale_down: str = "MaintenanceWindow") -> Doc:
    """The Hvpa of a Shoot's etcd: no HPA, bounds equal to the replicas of etcd, which are 0 while the Shoot is
    hibernated."""
    off = {"containerName": "backup-restore", "mode": "Off", "controlledValues": "RequestsOnly"}
    container = {
        "containerName": "etcd",
        "minAllowed": {"cpu": "200m", "memory": "700M"},
        "maxAllowed": {"cpu": "4", "memory": "30G"},
        "controlledValues": "RequestsOnly",
    }
    spec = {"minReplicas": replicas, "maxReplicas": replicas, "metrics": _utilization("cpu", "memory")}
    hpa = _axis("etcd-hpa-main", spec, direction(None), direction(None))
    up, down = direction("Auto", "5m", "1", "2G"), direction(scale_down, "15m", "1", "2G")
    vpa = _axis("etcd-vpa-main", _policies(container, off), up, down) | _gap("2", "5G", 40)
    intervals = [interval(100, replicas, replicas)]
    return _hvpa("etcd-main", "StatefulSet", hpa, vpa, intervals, maintenanceTimeWindow=WINDOW)


def kube_controller_manager() -> Doc:
    """The Hvpa of a Shoot's kube-controller-manager: no metrics, no thresholds, and a selector that VPAs don't have."""
    spec = {"minReplicas": 1, "maxReplicas": 1}
    hpa = _axis("controller-manager", spec, direction(None), direction(None))
    container = {"containerName": "kube-controller-manager", "minAllowed": {"memory": "100Mi"}}
    bounds = {"maxAllowed": {"cpu": "4", "memory": "10G"}, "controlledValues": "RequestsOnly"}
    vpa = _axis(
        "kube-controller-manager-vpa", _policies(container | bounds), direction("Auto"), direction("Auto")
    )
    return _hvpa("kube-controller-manager", "Deployment", hpa, vpa, [interval(100, 1, 1)])


def prometheus(*, window: bool = True) -> Doc:
    """The Hvpa of a Seed's Prometheus: `deploy: false` is written, only memory has a bound, a sidecar is not scaled."""
    spec = {"minReplicas": 1, "maxReplicas": 1, "metrics": _utilization("memory", "cpu")}
    hpa = _axis("prometheus-hpa", spec, direction(None), direction(None)) | {"deploy": False}
    policies = _policies(
        {"containerName": "prometheus", "minAllowed": {"memory": "400M"}},
        {"containerName": "prometheus-config-reloader", "mode": "Off"},
    )
    mode = "MaintenanceWindow" if window else "Auto"
    up, down = direction("Auto", "5m", "100m", "300M"), direction(mode, "168h", "200m", "500M")
    vpa = _axis("prometheus-vpa", policies, up, down) | _gap("300m", "1G", 40)
    more = {"maintenanceTimeWindow": WINDOW} if window else {}
    return _hvpa("prometheus", "StatefulSet", hpa, vpa, [interval(100, 1, 1)], **more)


def vali(replicas: int = 1) -> Doc:
    """The Hvpa of Loki, and of Vali after it: bounds equal to the replicas, three containers are not scaled."""
    spec = {"minReplicas": replicas, "maxReplicas": replicas, "metrics": _utilization("memory", "cpu")}
    hpa = _axis("valihpa", spec, direction(None), direction(None))
    off = [
        {"containerName": name, "mode": "Off", "controlledValues": "RequestsOnly"}
        for name in ("curator", "init-large-dir", "kube-rbac-proxy", "telegraf")
    ]
    container = {
        "containerName": "vali",
        "minAllowed": {"memory": "300M"},
        "maxAllowed": {"cpu": "800m", "memory": "3Gi"},
        "controlledValues": "RequestsOnly",
    }
    up, down = direction("Auto", "5m", "100m", "300M"), direction("Auto", "168h", "200m", "500M")
    vpa = _axis("valivpa", _policies(container, *off), up, down) | _gap("300m", "1G", 40)
    return _hvpa("vali", "StatefulSet", hpa, vpa, [interval(100, replicas, replicas)])


FORMS: Final[dict[str, Doc]] = {
    "kube-apiserver, 2 to 4": kube_apiserver(),
    "kube-apiserver without scaling down": kube_apiserver(scale_down="Off"),
    "kube-apiserver with equal bounds": kube_apiserver(3, 3),
    "kube-apiserver of the chart": kube_apiserver_of_the_chart(),
    "gardener-apiserver": gardener_apiserver(),
    "etcd": etcd(),
    "etcd of three members": etcd(3),
    "etcd of a hibernated Shoot": etcd(0),
    "etcd that is never lowered": etcd(scale_down="Off"),
    "kube-controller-manager": kube_controller_manager(),
    "Prometheus": prometheus(),
    "Prometheus without a window": prometheus(window=False),
    "Vali": vali(),
    "Vali of a hibernated Shoot": vali(0),
}
"""All forms, by name."""
