"""`make demo`: a control plane on this machine, the operator beside it, and a workload whose load rises and
falls.

The control plane is the one of the end-to-end tests (`localcluster`); nothing of the operator is simulated
or replaced here, and nothing in here scales anything.
"""
