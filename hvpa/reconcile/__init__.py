"""Reconciling: ports to the outside, the work queue, one Hvpa's reconcile, and the loop that runs it.

No I/O happens here and no clock is read: the cluster and the clock come in through `hvpa.reconcile.ports`.
"""
