"""The real cluster: configuration and transport, watch caches, the cluster port, leader election, events, metrics.

No decision is made here. Modules import `hvpa.reconcile` and below, never `hvpa.simulate` or `hvpa.cli`.
"""
