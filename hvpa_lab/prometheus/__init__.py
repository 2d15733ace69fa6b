"""Queries of a Prometheus server: of one workload (`hvpa_lab.init`), or of all at once (`hvpa_lab.report`)."""
