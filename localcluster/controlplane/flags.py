"""The flags of each program of the control plane, and the settings that a test may change. A comment explains each flag
that is not self-evident."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from localcluster.client.pki import KeyPair
from localcluster.node.config import Size


@dataclass(frozen=True, slots=True)
class AutoscalerSettings:
    """How fast the autoscalers of the control plane react. Durations are Go durations. With these defaults an increase
    and a decrease of load show within a minute; the programs' own defaults need minutes to days."""

    hpa_sync_period: str = "2s"
    hpa_tolerance: float = 0.1
    # Both 0: a pod counts as soon as it is ready and has a metric (5m and 30s by default).
    hpa_cpu_initialization_period: str = "0s"
    hpa_initial_readiness_delay: str = "0s"
    hpa_downscale_stabilization: str = "5m0s"
    # metrics-server refuses less than 10s; `manifests.kwok_config` explains why it is above 10s.
    metric_resolution: str = "11s"
    recommender_interval: str = "2s"
    # With a target percentile of 0.9, a decrease shows once the old samples weigh less than a tenth: 3.3 half-lives.
    cpu_half_life: str = "5s"
    memory_half_life: str = "5s"
    # An interval has a single sample, its peak; the window (interval x count) is how long an unused history is kept.
    memory_aggregation_interval: str = "10s"
    memory_aggregation_count: int = 360
    recommendation_margin: float = 0.15
    pod_min_cpu_millicores: int = 10
    pod_min_memory_megabytes: int = 10
    # Count and size of the nodes; pods is the number of pods that a node takes.
    nodes: int = 2
    node_cpu: str = "64"
    node_memory: str = "256Gi"
    node_pods: str = "500"
    # Real nodes: their number, and the resources that each leaves to the rest of the machine.
    real_nodes: int = 1
    reserved: Size = field(default_factory=Size)
    # Further fields of their kubelets' configuration.
    kubelet: Mapping[str, Any] = field(default_factory=dict)
    # How often these kubelets take samples of usage; up to as much is added.
    housekeeping: str = "10s"
    # Write the audit log (costs the API server about a tenth of its throughput).
    audit: bool = True


@dataclass(frozen=True, slots=True)
class Ports:
    """The ports of a control plane on 127.0.0.1."""

    etcd: int
    etcd_peer: int
    apiserver: int
    kubelet: int
    metrics: int
    recommender: int


@dataclass(frozen=True, slots=True)
class Files:
    """The files of a control plane that the flags name."""

    etcd_data: Path
    authority: Path
    server: KeyPair
    service_accounts: Path
    kubelet_client: KeyPair
    front_proxy_authority: Path
    front_proxy: KeyPair
    audit_policy: Path
    audit_log: Path
    kwok_config: Path


def etcd(ports: Ports, files: Files) -> list[str]:
    """A single member on loopback that does not wait for the disk: its data is temporary."""
    client, peer = f"http://127.0.0.1:{ports.etcd}", f"http://127.0.0.1:{ports.etcd_peer}"
    return [
        "--name=test",
        f"--data-dir={files.etcd_data}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=test={peer}",
        "--unsafe-no-fsync",
        "--logger=zap",
        "--log-level=warn",
    ]


def apiserver(ports: Ports, files: Files, settings: AutoscalerSettings, *, real: bool) -> list[str]:
    """TLS, RBAC, service account tokens, the aggregation layer and the audit log. With real nodes, pods have projected
    tokens, and their logs can be read."""
    arguments = [
        f"--etcd-servers=http://127.0.0.1:{ports.etcd}",
        "--bind-address=127.0.0.1",
        "--advertise-address=127.0.0.1",
        f"--secure-port={ports.apiserver}",
        # No `kubernetes` endpoints: they may not be loopback addresses.
        "--endpoint-reconciler-type=none",
        "--service-cluster-ip-range=10.0.0.0/24",
        "--authorization-mode=Node,RBAC",
        # ServiceAccount would block simulated pods until their namespace has a default account, which none of them
        # needs. TaintNodesByCondition would taint every new node, and the controller that removes the taint does not
        # run.
        f"--disable-admission-plugins={'' if real else 'ServiceAccount,'}TaintNodesByCondition",
        f"--client-ca-file={files.authority}",
        f"--tls-cert-file={files.server.certificate}",
        f"--tls-private-key-file={files.server.key}",
        "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
        f"--service-account-key-file={files.service_accounts}",
        f"--service-account-signing-key-file={files.service_accounts}",
        "--service-account-extend-token-expiration=false",
        f"--requestheader-client-ca-file={files.front_proxy_authority}",
        "--requestheader-allowed-names=front-proxy",
        "--requestheader-username-headers=X-Remote-User",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        f"--proxy-client-cert-file={files.front_proxy.certificate}",
        f"--proxy-client-key-file={files.front_proxy.key}",
    ]
    if real:
        arguments += [
            f"--kubelet-certificate-authority={files.authority}",
            f"--kubelet-client-certificate={files.kubelet_client.certificate}",
            f"--kubelet-client-key={files.kubelet_client.key}",
        ]
    if settings.audit:
        arguments += [
            f"--audit-policy-file={files.audit_policy}",
            f"--audit-log-path={files.audit_log}",
            "--audit-log-maxsize=10000",  # megabytes: never rotated, a test reads it from the start
        ]
    return arguments


def controller_manager(
    kubeconfig: Path, files: Files, settings: AutoscalerSettings, *, real: bool
) -> list[str]:
    """The controllers that workloads and their autoscaling need, each with its own service account, so that the audit
    log distinguishes the HPA controller from the deployment controller. With real nodes, also the controllers for
    projected tokens."""
    controllers = [
        "clusterrole-aggregation-controller",
        "daemonset-controller",
        "deployment-controller",
        "disruption-controller",
        "garbage-collector-controller",
        "horizontal-pod-autoscaler-controller",
        "namespace-controller",
        "replicaset-controller",
        "replicationcontroller-controller",
        "resourcequota-controller",  # counts usage: without a count, the API server enforces no quota
        "statefulset-controller",
    ]
    if real:
        controllers += ["root-ca-certificate-publisher-controller", "serviceaccount-controller"]
    return [
        f"--kubeconfig={kubeconfig}",
        f"--controllers={','.join(controllers)}",
        "--use-service-account-credentials=true",
        f"--service-account-private-key-file={files.service_accounts}",
        f"--root-ca-file={files.authority}",
        "--leader-elect=false",
        "--secure-port=0",
        "--kube-api-qps=1000",
        "--kube-api-burst=2000",
        f"--horizontal-pod-autoscaler-sync-period={settings.hpa_sync_period}",
        f"--horizontal-pod-autoscaler-tolerance={settings.hpa_tolerance}",
        f"--horizontal-pod-autoscaler-cpu-initialization-period={settings.hpa_cpu_initialization_period}",
        f"--horizontal-pod-autoscaler-initial-readiness-delay={settings.hpa_initial_readiness_delay}",
        f"--horizontal-pod-autoscaler-downscale-stabilization={settings.hpa_downscale_stabilization}",
    ]


def scheduler(kubeconfig: Path) -> list[str]:
    """The default scheduler only."""
    return [
        f"--kubeconfig={kubeconfig}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        "--leader-elect=false",
        "--secure-port=0",
        "--kube-api-qps=1000",
        "--kube-api-burst=2000",
    ]


def kwok(kubeconfig: Path, ports: Ports, files: Files) -> list[str]:
    """The kubelet of all nodes: makes pods ready and serves their usage like a kubelet."""
    return [
        f"--kubeconfig={kubeconfig}",
        f"--config={files.kwok_config}",
        "--manage-all-nodes=true",
        "--node-ip=127.0.0.1",
        "--node-name=localhost",
        f"--node-port={ports.kubelet}",
        f"--server-address=127.0.0.1:{ports.kubelet}",
        f"--tls-cert-file={files.server.certificate}",
        f"--tls-private-key-file={files.server.key}",
        "--node-lease-duration-seconds=0",
    ]


def metrics_server(kubeconfig: Path, ports: Ports, files: Files, settings: AutoscalerSettings) -> list[str]:
    """metrics-server, which reads kubelets by their Hostname (localhost): addresses of other types may leave
    loopback."""
    return [
        f"--kubeconfig={kubeconfig}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        "--bind-address=127.0.0.1",
        f"--secure-port={ports.metrics}",
        f"--tls-cert-file={files.server.certificate}",
        f"--tls-private-key-file={files.server.key}",
        "--kubelet-use-node-status-port",
        "--kubelet-preferred-address-types=Hostname",
        f"--kubelet-certificate-authority={files.authority}",
        f"--metric-resolution={settings.metric_resolution}",
        "--kubelet-request-timeout=5s",  # must be well below the resolution, or metrics-server panics
    ]


def recommender(kubeconfig: Path, ports: Ports, settings: AutoscalerSettings) -> list[str]:
    """The VPA recommender."""
    return [
        f"--kubeconfig={kubeconfig}",
        f"--address=127.0.0.1:{ports.recommender}",
        f"--recommender-interval={settings.recommender_interval}",
        f"--cpu-histogram-decay-half-life={settings.cpu_half_life}",
        f"--memory-histogram-decay-half-life={settings.memory_half_life}",
        f"--memory-aggregation-interval={settings.memory_aggregation_interval}",
        f"--memory-aggregation-interval-count={settings.memory_aggregation_count}",
        f"--recommendation-margin-fraction={settings.recommendation_margin}",
        f"--pod-recommendation-min-cpu-millicores={settings.pod_min_cpu_millicores}",
        f"--pod-recommendation-min-memory-mb={settings.pod_min_memory_megabytes}",
        "--kube-api-qps=500",
        "--kube-api-burst=1000",
    ]
