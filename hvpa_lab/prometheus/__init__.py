"""Queries of a Prometheus server: for a single workload (`hvpa_lab.init`), or for all (`hvpa_lab.report`)."""
