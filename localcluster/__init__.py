"""A cluster on this machine for tests, demo and benchmarks: a real control plane on loopback (etcd, kube-apiserver,
kube-controller-manager, kube-scheduler, KWOK, metrics-server, the VPA recommender), load on its pods, faults in front
of its API server, its audit log, and the operator as a separate process. The product imports nothing from here. Once
built, nothing leaves loopback.

`ControlPlane` starts a control plane in-process; `python -m localcluster up` starts one that stays. `programs` builds
the programs, `controlplane/flags.py` and `controlplane/manifests.py` configure them, `process` owns them.
"""
