"""`make demo`: a local control plane, the operator as a process, and a workload whose load rises and falls.

The control plane is that of the end-to-end tests (`localcluster`). The demo does not simulate or replace any part of
the operator, and scales nothing itself.
"""
