"""A cluster on this machine, for tests, demo and benchmarks: a real control plane on loopback (etcd, kube-apiserver,
kube-controller-manager, kube-scheduler, KWOK, metrics-server, the VPA recommender), load on its pods, faults in front
of its API server, its audit log, and the operator as a process of its own. Nothing here is imported by the product, and
nothing leaves loopback once it is built.

`ControlPlane` starts one in-process; `python -m localcluster up` starts one that stays. Of the modules,
`build` and `toolchain` make the programs, `flags` and `manifests` say how they are set, `process` owns
them."""
