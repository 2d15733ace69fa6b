"""`make demo`: a control plane on this machine, the operator, and a workload whose load rises and falls.

The control plane is the same as in the end-to-end tests (`localcluster`). This package simulates or replaces no part of
the operator, and scales nothing itself.
"""
