"""Rules, dashboard and what else is about metrics, by the real Prometheus."""
