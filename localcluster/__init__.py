"""A cluster on this machine, for tests, demo and benchmarks: a real control plane on loopback (etcd, kube-apiserver,
kube-controller-manager, kube-scheduler, KWOK, metrics-server, the VPA recommender), load on its pods, a proxy with
faults in front of its API server, its audit log, and the operator as a separate process. The product imports nothing
from here, and nothing leaves loopback once the programs are built.

`ControlPlane` starts a control plane in-process; `python -m localcluster up` starts a control plane that stays. The
modules `build` and `toolchain` build the programs, `flags` and `manifests` configure them, `process` owns them.
"""
