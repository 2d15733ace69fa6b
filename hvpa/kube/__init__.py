"""The real cluster: credentials and transport, watch caches, the cluster port, leader election, events, metrics.

No scaling decision is made here. Modules import `hvpa.reconcile` and below, never `hvpa_lab.simulate` or `hvpa.cli`.
"""
