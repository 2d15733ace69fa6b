"""Reconciling: ports to the outside, the work queue, the reconcile of an Hvpa, and the loop that runs it.

This package does no I/O and reads no clock. It uses the cluster and the clock through `hvpa.reconcile.ports`.
"""
