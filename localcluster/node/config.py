"""The configuration of a node's containerd and kubelet. A comment explains each line that is not self-evident."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from localcluster.client.pki import KeyPair

SOCKET = "/run/containerd/containerd.sock"
IMAGE = "hvpa.test/node:1"
"""The image of sandboxes and of the pods of tests."""
NO_REGISTRY = 'server = "http://127.0.0.1:1"\n'
"""The server of every registry (hosts.toml). Nothing listens there, so a pull fails at once, and nothing is requested
from other machines."""
HIDDEN = ("/run", "/var/log", "/var/lib")
"""Folders that the node's own replace in its mount namespace."""

TUNABLES = {
    "vm/overcommit_memory": "1",
    "vm/panic_on_oom": "0",
    "kernel/panic": "10",
    "kernel/panic_on_oops": "1",
    "kernel/keys/root_maxkeys": "1000000",
    "kernel/keys/root_maxbytes": "25000000",
}
"""Settings of the machine that the kubelet would write. In the node's mount namespace, files with the kubelet's values
replace them: it finds its values, and writes nothing."""


def _rest() -> str:
    """The CPU beyond the 1500m that pods may request, at least 500m: 6500m of 8 cores. The kubelet counts the cores of
    the machine, not only those that this process may use."""
    return f"{max(500, (os.cpu_count() or 1) * 1000 - 1500)}m"


@dataclass(frozen=True, slots=True)
class Size:
    """CPU and memory that a node leaves to the rest of the machine; its pods may request the remainder. By default
    they may request 1500m, so tests find the same node on any machine with two cores or more."""

    cpu: str = field(default_factory=_rest)
    memory: str = "1Gi"


def containerd(state: Path, runc: Path) -> str:
    """The configuration of containerd, which keeps its files in `state`."""
    return f"""\
version = 4
root = "{state}/containerd"
state = "/run/containerd"
disabled_plugins = [
  "io.containerd.nri.v1.nri", "io.containerd.internal.v1.tracing", "io.containerd.tracing.processor.v1.otlp",
]
oom_score = 0
[grpc]
  address = "{SOCKET}"
[plugins."io.containerd.cri.v1.images"]
  snapshotter = "overlayfs"
  [plugins."io.containerd.cri.v1.images".pinned_images]
    sandbox = "{IMAGE}"
  [plugins."io.containerd.cri.v1.images".registry]
    config_path = "{state}/registries"
[plugins."io.containerd.cri.v1.runtime"]
  tolerate_missing_hugetlb_controller = true
  disable_hugetlb_controller = true
  disable_apparmor = true
  # Without CAP_SYS_RESOURCE runc may not lower the score of a sandbox.
  restrict_oom_score_adj = true
  # Settings of a pod's network, which is the machine's.
  enable_unprivileged_ports = false
  enable_unprivileged_icmp = false
  [plugins."io.containerd.cri.v1.runtime".cni]
    bin_dirs = ["{state}/cni/bin"]
    conf_dir = "{state}/cni/net.d"
    use_internal_loopback = true
  [plugins."io.containerd.cri.v1.runtime".containerd]
    default_runtime_name = "runc"
    [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
        BinaryName = "{runc}"
        SystemdCgroup = false
"""


NETWORK = '{"cniVersion": "1.0.0", "name": "none", "plugins": [{"type": "addresses"}]}'
"""The network of pods that don't use the host's."""

PLUGIN = r"""#!/bin/sh
# Gives each pod an address on the machine's loopback. Nothing is set up for it: all of 127.0.0.0/8 is there. Each port
# of the kubelet has 1600 addresses, from 127.1.0.0 on: no other node has the same port (`process.free_port`).
set -eu
case $CNI_COMMAND in
VERSION) echo '{"cniVersion": "1.0.0", "supportedVersions": ["1.0.0"]}' ;;
ADD)
    mkdir -p "$STATE/addresses"
    n=1
    until mkdir "$STATE/addresses/$n" 2> /dev/null; do n=$((n + 1)); done
    n=$((65536 + (PORT - 20000) * 1600 + n))
    cat << END
{"cniVersion": "1.0.0",
 "interfaces": [{"name": "$CNI_IFNAME", "sandbox": "$CNI_NETNS"}],
 "ips": [{"interface": 0, "address": "127.$((n / 65536)).$((n / 256 % 256)).$((n % 256))/8"}]}
END
    ;;
esac
"""
"""The plugin (CNI). `unfiltered-runc` leaves the pod in the network of the machine."""


def kubelet(
    state: Path,
    address: str,
    port: int,
    authority: Path,
    serving: KeyPair,
    cgroup: str,
    size: Size,
    more: Mapping[str, Any],
) -> str:
    """The configuration of the kubelet, which listens only on `address`, with `more` fields."""
    config: dict[str, Any] = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": address,
        "port": port,
        "readOnlyPort": 0,
        "healthzPort": 0,
        "tlsCertFile": str(serving.certificate),
        "tlsPrivateKeyFile": str(serving.key),
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": str(authority)},
        },
        "authorization": {"mode": "Webhook"},
        "containerRuntimeEndpoint": f"unix://{SOCKET}",
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{cgroup}",
        "cgroupsPerQOS": True,
        "enforceNodeAllocatable": ["pods"],
        "failCgroupV1": False,
        "failSwapOn": False,
        "makeIPTablesUtilChains": False,
        "localStorageCapacityIsolation": False,
        # A full disk of the machine must not evict pods or remove the only image.
        "evictionHard": {
            "memory.available": "0%",
            "nodefs.available": "0%",
            "nodefs.inodesFree": "0%",
            "imagefs.available": "0%",
        },
        "imageGCHighThresholdPercent": 100,
        "imageGCLowThresholdPercent": 99,
        "enableControllerAttachDetach": False,
        "resolvConf": "",
        "podLogsDir": f"{state}/pods",
        "volumePluginDir": f"{state}/volume-plugins",
        "kubeAPIQPS": 500,
        "kubeAPIBurst": 1000,
        "eventRecordQPS": 0,
        "systemReserved": {"cpu": size.cpu, "memory": size.memory},
    }
    return yaml.safe_dump({**config, **more})


INIT = rf"""
set -eu
export STATE=$1 PORT=$4; CGROUP=$2 NAME=$3 HOUSEKEEPING=$5
for hierarchy in /sys/fs/cgroup/*/; do  # a hierarchy with two names is entered twice
    case $hierarchy in */unified/) continue;; esac
    echo 0 > "$hierarchy$CGROUP/system/cgroup.procs"
done
# Paths that are fixed, whatever flags say: shims' sockets, /var/log/containers, /var/lib/kubelet/device-plugins.
for folder in {" ".join(HIDDEN)}; do mount -t tmpfs -o size=64m tmpfs "$folder"; done
mkdir -p /run/containerd /var/log/pods /var/log/containers /var/lib/kubelet
mount --bind "$STATE/kubelet" /var/lib/kubelet  # a short path: the kubelet makes sockets there
for file in {" ".join(TUNABLES)}; do
    if [ -e "/proc/sys/$file" ]; then mount --bind "$STATE/sys/$file" "/proc/sys/$file"; fi
done
if ls "$STATE"/images/[0-9]*.tar > /dev/null 2>&1; then
    # Thousands of files, which a disk takes a minute to delete. Otherwise not: page cache needs files of a disk.
    mkdir -p "$STATE/containerd"; mount -t tmpfs -o size=1g tmpfs "$STATE/containerd"
fi
PATH=$STATE/bin:$PATH
containerd --config "$STATE/containerd.toml" > "$STATE/containerd.log" 2>&1 &
n=0
until ctr --address {SOCKET} version > /dev/null 2>&1; do
    n=$((n + 1)); [ $n -lt 300 ] || {{ echo "containerd does not answer"; tail -20 "$STATE/containerd.log"; exit 1; }}
    sleep 0.1
done
for image in "$STATE"/images/*.tar; do
    ctr --address {SOCKET} -n k8s.io images import "$image" >> "$STATE/import.log" 2>&1
done
kubelet --config "$STATE/kubelet.yaml" --kubeconfig "$STATE/kubelet.kubeconfig" --hostname-override "$NAME" \
    --root-dir /var/lib/kubelet --cert-dir /var/lib/kubelet/pki \
    --housekeeping-interval "$HOUSEKEEPING" --v=2 > "$STATE/kubelet.log" 2>&1 &
wait $! || {{ tail -20 "$STATE/kubelet.log"; exit 1; }}
# Not exec: as the namespace's first process, sh reaps what containerd's shims leave behind; the kubelet does not.
"""
"""The script of the node's first process, in its own mount and PID namespace."""
